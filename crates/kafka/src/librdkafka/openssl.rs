//! Settings of the OpenSSL that is built in, made before its first use.

use std::ffi::{c_int, c_void};
use std::sync::Once;

const NO_LOAD_CONFIG: u64 = 0x80;

unsafe extern "C" {
    fn OPENSSL_init_crypto(options: u64, settings: *const c_void) -> c_int;
}

/// Has OpenSSL read no configuration file: neither one of the place where it was built, nor one of `OPENSSL_CONF`.
///
/// Such a file can name engines, providers and weaker protocols; awoke's settings are the only source. The first call
/// that initialises OpenSSL decides, so this one comes before librdkafka's. Any thread.
pub(super) fn read_no_configuration() {
    static FIRST: Once = Once::new();
    // SAFETY: both arguments are of the documented kind; null stands for no settings.
    FIRST.call_once(|| _ = unsafe { OPENSSL_init_crypto(NO_LOAD_CONFIG, std::ptr::null()) });
}
