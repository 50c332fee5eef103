//! Tokens for SASL OAUTHBEARER: asks the user's function for one when librdkafka wants it, on a thread made for that.
//!
//! librdkafka wants a token when the client is made, when 80 % of the last one's time is over, and 10 s after a
//! failure. It says so on a thread of its own that serves nothing else; there only our thread is started:
//! 1. ask the source, which may block;
//! 2. give the client its token, or the failure, if the client still is there;
//! 3. end.

use std::ffi::{CString, c_char};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{SystemTime, UNIX_EPOCH};

use super::{Client, ClientConfig, Code, ffi};
use crate::{Error, Result};

/// A token for SASL OAUTHBEARER.
#[derive(Clone)]
pub struct Token {
    /// The text that is sent to the brokers.
    pub value: String,
    /// When it expires, in milliseconds since 1970.
    pub expires_at_ms: i64,
    /// The user that it names; may be empty.
    pub principal: String,
    /// SASL extensions (RFC 7628): names of letters, and values.
    pub extensions: Vec<(String, String)>,
}

/// Where tokens come from.
pub trait TokenSource: Send + Sync {
    /// A new token, or why there is none, in words that may be shown. May block; any thread.
    fn token(&self) -> std::result::Result<Token, String>;
}

/// A client's source, and the client once it is there.
#[derive(Default)]
pub struct Tokens {
    source: Option<Arc<dyn TokenSource>>,
    client: OnceLock<Weak<Client>>,
}

impl Tokens {
    /// The source that a client of this configuration needs; none where it logs in otherwise.
    ///
    /// # Errors
    /// [`Error::Config`]: OAUTHBEARER without a source, or a source without OAUTHBEARER.
    pub fn of(config: &ClientConfig) -> Result<Self> {
        let mechanism = config.get("sasl.mechanism").or_else(|| config.get("sasl.mechanisms")).unwrap_or_default();
        let is_wanted = mechanism.eq_ignore_ascii_case("OAUTHBEARER");
        let is_unsecured = config.get("enable.sasl.oauthbearer.unsecure.jwt") == Some("true");
        match config.token_source() {
            None if is_wanted && !is_unsecured => {
                Err(refused("OAUTHBEARER needs a function that gives tokens: oauth_token=…"))
            }
            Some(_) if !is_wanted => Err(refused("oauth_token=… is given, which needs sasl.mechanism=OAUTHBEARER")),
            source => Ok(Self { source: source.cloned(), client: OnceLock::new() }),
        }
    }

    /// Has the client that is made of this configuration ask here.
    pub fn prepare(&self, conf: *mut ffi::rd_kafka_conf_t) {
        if self.source.is_some() {
            // SAFETY: the configuration is valid while the client is being made.
            unsafe {
                ffi::rd_kafka_conf_enable_sasl_queue(conf, 1);
                ffi::rd_kafka_conf_set_oauthbearer_token_refresh_cb(conf, Some(super::client::on_token_wanted));
            }
        }
    }

    /// Begins to give tokens to the client, once it is there.
    pub fn begin(&self, client: &Arc<Client>) -> Result<()> {
        if self.source.is_none() {
            return Ok(());
        }
        drop(self.client.set(Arc::downgrade(client)));
        // SAFETY: the handle is alive; the error, if any, is ours to destroy.
        unsafe {
            let error = ffi::rd_kafka_sasl_background_callbacks_enable(client.handle());
            if error.is_null() {
                return Ok(());
            }
            let code = Code::of(ffi::rd_kafka_error_code(error));
            ffi::rd_kafka_error_destroy(error);
            Err(Error::kafka("serve tokens", code, ""))
        }
    }

    /// Fetches a token on a thread of its own. Does not block.
    pub(super) fn fetch(&self) -> std::io::Result<()> {
        let (Some(source), Some(client)) = (self.source.clone(), self.client.get().cloned()) else { return Ok(()) };
        let thread = std::thread::Builder::new().name("awoke-token".into());
        thread.spawn(move || {
            let fetched = source.token();
            if let Some(client) = client.upgrade() {
                client.give_token(fetched);
            }
        })?;
        Ok(())
    }
}

impl Client {
    /// Gives librdkafka a token, or says why there is none; it asks again later in both cases.
    fn give_token(&self, fetched: std::result::Result<Token, String>) {
        if self.check_process().is_err() {
            return;
        }
        let failure = fetched.and_then(|token| self.set_token(&token)).err();
        self.note_token(failure.as_deref());
        let Some(failure) = failure else { return };
        let text = CString::new(failure.replace('\0', " ")).unwrap_or_default();
        // SAFETY: the handle is alive and copies the text.
        unsafe { ffi::rd_kafka_oauthbearer_set_token_failure(self.handle(), text.as_ptr()) };
    }

    fn set_token(&self, token: &Token) -> std::result::Result<(), String> {
        let now_ms = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64);
        if token.expires_at_ms <= now_ms {
            return Err("the token function gave a token that has expired".into());
        }
        let unusable = || "librdkafka does not accept the token, its principal or its extensions".to_owned();
        let text = |text: &str| CString::new(text).map_err(|_| unusable());
        let (value, principal) = (text(&token.value)?, text(&token.principal)?);
        let pairs = token.extensions.iter().flat_map(|(name, value)| [name, value]);
        let extensions = pairs.map(|each| text(each)).collect::<std::result::Result<Vec<_>, _>>()?;
        let mut pointers: Vec<*const c_char> = extensions.iter().map(|each| each.as_ptr()).collect();
        // Its reason may quote the token: it is not shown.
        let mut reason = [0 as c_char; 512];
        // SAFETY: the handle is alive and copies all strings, which outlive the call.
        let code = Code::of(unsafe {
            ffi::rd_kafka_oauthbearer_set_token(
                self.handle(),
                value.as_ptr(),
                token.expires_at_ms,
                principal.as_ptr(),
                pointers.as_mut_ptr(),
                pointers.len(),
                reason.as_mut_ptr(),
                reason.len(),
            )
        });
        if code == Code::NONE { Ok(()) } else { Err(unusable()) }
    }
}

fn refused(reason: &str) -> Error {
    Error::Config { property: "sasl.mechanism".into(), reason: reason.into() }
}
