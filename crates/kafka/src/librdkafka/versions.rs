//! The versions of the C libraries that are linked. Each library is asked, because OpenSSL may be the system's.

use std::ffi::{CStr, c_char, c_int};

// Declared here and not by bindings: nothing else of these libraries is called.
unsafe extern "C" {
    fn LZ4_versionString() -> *const c_char;
    fn OpenSSL_version(kind: c_int) -> *const c_char;
    fn ZSTD_versionString() -> *const c_char;
    fn zlibVersion() -> *const c_char;
}

/// `OPENSSL_FULL_VERSION_STRING` of OpenSSL 3: the number, with the name of a pre-release or a distribution.
const OPENSSL_FULL_VERSION: c_int = 7;

/// The version of librdkafka that is built in.
pub fn librdkafka_version() -> &'static str {
    // SAFETY: returns a pointer to a constant string.
    unsafe { constant(super::ffi::rd_kafka_version_str()) }
}

/// The C libraries that are linked, with their versions, in the order of their importance to users.
pub fn library_versions() -> [(&'static str, &'static str); 5] {
    // SAFETY: each returns a pointer to a constant string, and may be called at any time from any thread.
    unsafe {
        [
            ("librdkafka", librdkafka_version()),
            ("OpenSSL", constant(OpenSSL_version(OPENSSL_FULL_VERSION))),
            ("zlib", constant(zlibVersion())),
            ("zstd", constant(ZSTD_versionString())),
            ("LZ4", constant(LZ4_versionString())),
        ]
    }
}

/// A constant C string as ours.
///
/// # Safety
/// `text` points to a string that ends in zero, and is never freed or changed.
unsafe fn constant(text: *const c_char) -> &'static str {
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(text) }.to_str().unwrap_or("unknown")
}

#[cfg(test)]
mod tests {
    use super::library_versions;

    #[test]
    fn each_library_tells_its_version() {
        for (name, version) in library_versions() {
            let numbers = version.split('.').filter(|part| part.starts_with(|first: char| first.is_ascii_digit()));
            assert!(numbers.count() >= 3, "{name}: {version}");
        }
    }
}
