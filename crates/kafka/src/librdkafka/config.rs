//! librdkafka's settings: every property passes through by name; what is unknown or wrong gives one error, and secrets
//! never show.

use std::collections::BTreeMap;
use std::ffi::c_char;
use std::sync::Arc;

use super::{TokenSource, c_string, ffi, text_of};
use crate::{Error, Result};

/// Properties that carry a secret, or the way to one, by librdkafka's own marking (`_RK_SENSITIVE`) and by their names.
const SECRET_NAMES: [&str; 7] =
    ["password", "secret", "token", "key", "pem", "sasl.username", "sasl.oauthbearer.config"];
/// Properties whose names look like a secret and are not.
const OPEN_NAMES: [&str; 2] = ["enable.sasl.oauthbearer.unsecure.jwt", "sasl.oauthbearer.token.endpoint.url"];
/// Properties that run code from the file system: a shared library is loaded, or a command is run. They are refused.
const CODE_NAMES: [&str; 5] =
    ["plugin.library.paths", "sasl.kerberos.kinit.cmd", "ssl.engine.id", "ssl.engine.location", "ssl.providers"];

/// librdkafka asks for tokens by itself only where it is built with libcurl.
const OIDC: &str =
    "oidc is not in this build; give a function that asks for the token, oauth_token=…: see docs/security.md";

/// Returns whether the value of this property must never be shown.
pub fn is_secret(property: &str) -> bool {
    let name = property.to_ascii_lowercase();
    !OPEN_NAMES.contains(&name.as_str()) && SECRET_NAMES.iter().any(|secret| name.contains(secret))
}

/// Properties and values for one client, checked as they are set.
#[derive(Clone, Default)]
pub struct ClientConfig {
    properties: BTreeMap<String, String>,
    /// Where tokens for SASL OAUTHBEARER come from.
    token_source: Option<Arc<dyn TokenSource>>,
}

impl std::fmt::Debug for ClientConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let shown = self
            .properties
            .iter()
            .map(|(name, value)| (name, if is_secret(name) { "[secret]" } else { value.as_str() }));
        f.debug_map().entries(shown).finish()
    }
}

impl ClientConfig {
    /// No properties: librdkafka's defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets a property; its name and value are judged when the client is made.
    pub fn set(&mut self, property: impl Into<String>, value: impl Into<String>) -> &mut Self {
        self.properties.insert(property.into(), value.into());
        self
    }

    /// Says where tokens for SASL OAUTHBEARER come from.
    pub fn set_token_source(&mut self, source: Arc<dyn TokenSource>) -> &mut Self {
        self.token_source = Some(source);
        self
    }

    /// Returns the source of tokens (OAUTHBEARER), where one is set.
    pub const fn token_source(&self) -> Option<&Arc<dyn TokenSource>> {
        self.token_source.as_ref()
    }

    /// Leaves a property at librdkafka's default.
    pub fn remove(&mut self, property: &str) -> &mut Self {
        self.properties.remove(property);
        self
    }

    /// Sets a property that the caller has not set.
    pub fn set_default(&mut self, property: &str, value: &str) -> &mut Self {
        self.properties.entry(property.to_owned()).or_insert_with(|| value.to_owned());
        self
    }

    /// The value that was set.
    pub fn get(&self, property: &str) -> Option<&str> {
        self.properties.get(property).map(String::as_str)
    }

    /// The value that holds, librdkafka's default where none was set, as a number.
    ///
    /// # Errors
    /// [`Error::Config`] for a property or a value that librdkafka does not know.
    pub fn effective_number(&self, property: &str) -> Result<u64> {
        let text = self.effective(property)?;
        text.parse()
            .map_err(|_| Error::Config { property: property.to_owned(), reason: format!("is {text:?}, not a number") })
    }

    /// The value that holds, librdkafka's default where none was set, as text of up to 63 bytes.
    ///
    /// # Errors
    /// [`Error::Config`] for a property or a value that librdkafka does not know.
    pub fn effective(&self, property: &str) -> Result<String> {
        let conf = self.to_native()?;
        let mut value = [0 as c_char; 64];
        let mut size = value.len();
        let name = c_string("a property", property)?;
        // SAFETY: librdkafka writes at most `size` bytes and ends them with a zero. A topic's property is found in the
        // configuration only when it was set there; its default stands in a fresh topic configuration.
        Ok(unsafe {
            let found = ffi::rd_kafka_conf_get(conf.0, name.as_ptr(), value.as_mut_ptr(), &raw mut size);
            if found != ffi::rd_kafka_conf_res_t::RD_KAFKA_CONF_OK {
                let topic = ffi::rd_kafka_topic_conf_new();
                size = value.len();
                ffi::rd_kafka_topic_conf_get(topic, name.as_ptr(), value.as_mut_ptr(), &raw mut size);
                ffi::rd_kafka_topic_conf_destroy(topic);
            }
            text_of(value.as_ptr())
        })
    }

    /// Refuses properties that awoke sets itself.
    ///
    /// # Errors
    /// [`Error::Config`] naming the first of them that was set.
    pub fn refuse(&self, properties: &[(&str, &str)]) -> Result<()> {
        for (property, reason) in properties {
            if self.properties.contains_key(*property) {
                return Err(Error::Config { property: (*property).to_owned(), reason: (*reason).to_owned() });
            }
        }
        Ok(())
    }

    /// Judges every property as librdkafka does, without making a client.
    ///
    /// # Errors
    /// [`Error::Config`] for a property or a value that librdkafka does not know.
    pub fn check(&self) -> Result<()> {
        self.to_native().map(drop)
    }

    /// Sets every property on the configuration of a topic.
    ///
    /// # Errors
    /// [`Error::Config`] for a property that topics do not have, or a value that librdkafka does not know.
    ///
    /// # Safety
    /// The configuration is valid.
    pub(crate) unsafe fn set_on_topic(&self, conf: *mut ffi::rd_kafka_topic_conf_t) -> Result<()> {
        for (property, value) in &self.properties {
            let (name, text) = (c_string("a property", property)?, c_string("a property's value", value)?);
            let mut reason = [0 as c_char; 512];
            // SAFETY: the caller says that the configuration is valid; both strings outlive the call; librdkafka writes
            // at most 512 bytes.
            let result = unsafe {
                ffi::rd_kafka_topic_conf_set(conf, name.as_ptr(), text.as_ptr(), reason.as_mut_ptr(), reason.len())
            };
            match result {
                ffi::rd_kafka_conf_res_t::RD_KAFKA_CONF_OK => (),
                ffi::rd_kafka_conf_res_t::RD_KAFKA_CONF_UNKNOWN => {
                    return Err(refused(property, "is no property of topics"));
                }
                ffi::rd_kafka_conf_res_t::RD_KAFKA_CONF_INVALID => {
                    // SAFETY: librdkafka ended the reason with a zero.
                    return Err(refused(property, &unsafe { text_of(reason.as_ptr()) }));
                }
            }
        }
        Ok(())
    }

    /// Makes a configuration of librdkafka's from it.
    pub(crate) fn to_native(&self) -> Result<NativeConfig> {
        #[cfg(feature = "vendored")]
        super::openssl::read_no_configuration();
        // SAFETY: takes nothing, returns a configuration that NativeConfig owns.
        let conf = NativeConfig(unsafe { ffi::rd_kafka_conf_new() });
        for (property, value) in &self.properties {
            conf.set(property, value)?;
        }
        Ok(conf)
    }
}

/// An owned `rd_kafka_conf_t`: no client has taken it over yet.
pub(crate) struct NativeConfig(*mut ffi::rd_kafka_conf_t);

impl NativeConfig {
    fn set(&self, property: &str, value: &str) -> Result<()> {
        if CODE_NAMES.contains(&property) {
            return Err(refused(property, "is refused: it makes the client run code from the file system"));
        }
        if property == "sasl.oauthbearer.method" && value.eq_ignore_ascii_case("oidc") {
            return Err(refused(property, OIDC));
        }
        let (name, text) = (c_string("a property", property)?, c_string("a property's value", value)?);
        let mut reason = [0 as c_char; 512];
        // SAFETY: both strings outlive the call; librdkafka writes at most 512 bytes of reason.
        let result =
            unsafe { ffi::rd_kafka_conf_set(self.0, name.as_ptr(), text.as_ptr(), reason.as_mut_ptr(), reason.len()) };
        // SAFETY: librdkafka ended the reason with a zero.
        let reason = unsafe { text_of(reason.as_ptr()) };
        match result {
            ffi::rd_kafka_conf_res_t::RD_KAFKA_CONF_OK => Ok(()),
            ffi::rd_kafka_conf_res_t::RD_KAFKA_CONF_UNKNOWN => {
                Err(refused(property, &format!("is no property of librdkafka {}", super::librdkafka_version())))
            }
            // The reason quotes the value, which may be a secret.
            ffi::rd_kafka_conf_res_t::RD_KAFKA_CONF_INVALID if is_secret(property) => {
                Err(refused(property, "has a value that librdkafka does not accept (not shown: it is a secret)"))
            }
            ffi::rd_kafka_conf_res_t::RD_KAFKA_CONF_INVALID => Err(refused(property, &format!("{reason}: {value:?}"))),
        }
    }

    pub const fn as_ptr(&self) -> *mut ffi::rd_kafka_conf_t {
        self.0
    }

    /// Gives the configuration away; the client that is made of it owns it then.
    pub fn into_raw(self) -> *mut ffi::rd_kafka_conf_t {
        let raw = self.0;
        std::mem::forget(self);
        raw
    }
}

impl Drop for NativeConfig {
    fn drop(&mut self) {
        // SAFETY: no client has taken the configuration over, or `into_raw` would have forgotten this value.
        unsafe { ffi::rd_kafka_conf_destroy(self.0) };
    }
}

fn refused(property: &str, reason: &str) -> Error {
    Error::Config { property: property.to_owned(), reason: reason.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_property_is_named() {
        let error = ClientConfig::new().set("linger.msec", "5").check().expect_err("unknown");
        assert!(error.to_string().contains("linger.msec"), "{error}");
    }

    #[test]
    fn a_wrong_value_is_explained() {
        let error = ClientConfig::new().set("linger.ms", "soon").check().expect_err("not a number");
        assert!(error.to_string().contains("linger.ms"), "{error}");
    }

    #[test]
    fn secrets_show_neither_in_errors_nor_in_debug_output() {
        let mut config = ClientConfig::new();
        config.set("ssl.key.pem", "canary").set("sasl.password", "canary").set("ssl.keystore.password", "canary");
        assert!(!format!("{config:?}").contains("canary"));
        if let Err(error) = config.check() {
            assert!(!error.to_string().contains("canary"), "{error}");
        }
    }

    /// Properties that name files which are read as data, or, in a legacy consumer that awoke does not use, written.
    const FILE_NAMES: [&str; 13] = [
        "https.ca.location",
        "offset.store.method",
        "offset.store.path",
        "sasl.kerberos.keytab",
        "sasl.oauthbearer.assertion.file",
        "sasl.oauthbearer.assertion.jwt.template.file",
        "sasl.oauthbearer.assertion.private.key.file",
        "sasl.oauthbearer.assertion.private.key.passphrase",
        "ssl.ca.location",
        "ssl.certificate.location",
        "ssl.crl.location",
        "ssl.key.location",
        "ssl.keystore.location",
    ];
    /// Properties that only sound as if they named a file, a library or a command.
    const OTHER_NAMES: [&str; 13] = [
        "property",
        "auto.commit.enable",
        "builtin.features",
        "debug",
        "enable.auto.commit",
        "enable.metrics.push",
        "offset.store.sync.interval.ms",
        "open_cb",
        "sasl.oauthbearer.assertion.algorithm",
        "sasl.oauthbearer.grant.type",
        "ssl.ca.certificate.stores",
        "ssl_engine_callback_data",
        "topic.metadata.refresh.interval.ms",
    ];

    /// Every property that librdkafka knows, with what it says of it: a line each.
    fn known_properties() -> Vec<String> {
        let (mut text, mut size) = (std::ptr::null_mut(), 0);
        // SAFETY: the stream is closed before its text is read; both places outlive it; the text is freed once.
        unsafe {
            let stream = libc::open_memstream(&raw mut text, &raw mut size);
            assert!(!stream.is_null());
            ffi::rd_kafka_conf_properties_show(stream.cast());
            libc::fclose(stream);
            let lines = text_of(text).lines().map(str::to_lowercase).collect();
            libc::free(text.cast());
            lines
        }
    }

    #[test]
    fn every_property_that_names_a_file_a_library_or_a_command_is_classified() {
        let suspicious = ["file", "path", "librar", "command", "engine", "plugin", "provider", "script", "director"];
        let lines = known_properties();
        let of = |line: &str| line.split('|').next().unwrap_or_default().trim().to_owned();
        assert!(CODE_NAMES.iter().chain(&FILE_NAMES).all(|name| lines.iter().any(|line| of(line) == *name)));
        let unclassified: Vec<_> = lines
            .iter()
            .filter(|line| suspicious.iter().any(|word| line.contains(word)))
            .filter(|line| ![&CODE_NAMES[..], &FILE_NAMES, &OTHER_NAMES].concat().contains(&&*of(line)))
            .collect();
        assert!(unclassified.is_empty(), "{unclassified:#?}");
    }

    #[test]
    fn properties_that_run_code_are_refused() {
        for name in CODE_NAMES {
            let error = ClientConfig::new().set(name, "evil.so").check().expect_err(name).to_string();
            assert!(error.contains(name) && error.contains("run code"), "{error}");
        }
    }

    #[test]
    fn defaults_are_librdkafkas() {
        let mut config = ClientConfig::new();
        assert_eq!(config.effective_number("queue.buffering.max.messages").expect("known"), 100_000);
        assert_eq!(config.effective_number("message.timeout.ms").expect("known"), 300_000);
        config.set("delivery.timeout.ms", "5000");
        assert_eq!(config.effective_number("message.timeout.ms").expect("known"), 5_000);
    }
}
