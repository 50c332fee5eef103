//! Why brokers do not let a client in: reads librdkafka's lines about failed connections, and tells when every
//! bootstrap broker refuses.
//!
//! librdkafka (2.12.1) connects again for ever, whatever the broker said, and its error codes mix up causes: a closed
//! connection may be a broker that stops, or a listener that expects TLS. Its lines say more, and come at once.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::{AccessFailure, ClientConfig, Code};

/// A sign that a stopping broker may give as well counts after this time.
const DOUBT: Duration = Duration::from_secs(3);

/// librdkafka's words for a connection that the broker has closed.
const CLOSED: [&str; 4] = ["Disconnected", "Send failed", "Receive failed", "Broken pipe"];

/// The access failures of one client. Written by librdkafka's threads; nothing blocks for long.
#[derive(Debug)]
pub struct Security {
    /// The bootstrap brokers, as they are configured.
    servers: String,
    bootstrap: usize,
    uses_sasl: bool,
    uses_tls: bool,
    /// True if there is anything to look at.
    is_suspect: AtomicBool,
    said: Mutex<Said>,
}

#[derive(Debug, Default)]
struct Said {
    /// By the broker's name.
    signs: HashMap<String, Sign>,
    /// OpenSSL's verify result on the certificate of each broker, by host and port.
    certificates: HashMap<String, i32>,
    /// Why there is no token for OAUTHBEARER.
    token: Option<AccessFailure>,
}

#[derive(Clone, Debug)]
struct Sign {
    failure: AccessFailure,
    since: Instant,
    is_certain: bool,
}

impl Security {
    pub fn of(config: &ClientConfig) -> Self {
        let servers =
            config.get("bootstrap.servers").or_else(|| config.get("metadata.broker.list")).unwrap_or_default();
        let protocol = config.get("security.protocol").unwrap_or_default().to_ascii_uppercase();
        let bootstrap = servers.split(',').map(str::trim).filter(|each| !each.is_empty());
        Self {
            bootstrap: bootstrap.collect::<std::collections::HashSet<_>>().len().max(1),
            servers: servers.to_owned(),
            uses_sasl: protocol.starts_with("SASL"),
            uses_tls: protocol.ends_with("SSL"),
            is_suspect: AtomicBool::new(false),
            said: Mutex::default(),
        }
    }

    fn said(&self) -> MutexGuard<'_, Said> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether a broker has refused the client since `forget`. Reads one atomic.
    pub fn is_suspect(&self) -> bool {
        self.is_suspect.load(Ordering::Relaxed)
    }

    /// Notes a line like `[thrd:…]: sasl_ssl://host:9092/bootstrap: SASL authentication error: … (after 3ms in state
    /// AUTH_REQ)`.
    pub fn note_failure(&self, line: &str) {
        let line = line.strip_prefix("[thrd:").and_then(|rest| rest.split_once("]: ")).map_or(line, |(_, rest)| rest);
        let Some((broker, text)) = line.split_once(": ") else { return };
        let mut said = self.said();
        let host = broker.rsplit_once('/').map_or(broker, |(host, _)| host);
        let host = host.rsplit_once("//").map_or(host, |(_, host)| host);
        let Some((failure, is_certain)) = self.cause(text, host, said.certificates.get(host).copied()) else {
            // Another failure lifts a doubt. What a broker has said clearly stands, though it may be away now.
            said.signs.retain(|name, sign| sign.is_certain || name != broker);
            return;
        };
        let since = match said.signs.get(broker) {
            Some(known) if known.failure.code == failure.code => known.since,
            _ => Instant::now(),
        };
        said.signs.insert(broker.to_owned(), Sign { failure, since, is_certain });
        self.is_suspect.store(true, Ordering::Relaxed);
    }

    /// Notes OpenSSL's verify result on a broker's certificate; `host` with its port.
    pub fn note_certificate(&self, host: &str, error: i32) {
        self.said().certificates.insert(host.to_owned(), error);
    }

    /// Notes why the token function gave no token, or that it gave one.
    pub fn note_token(&self, failure: Option<&str>) {
        let text = |failure: &str| format!("no token for SASL OAUTHBEARER: {failure}");
        self.said().token = failure.map(|failure| AccessFailure { code: Code::AUTHENTICATION, text: text(failure) });
        if failure.is_some() {
            self.is_suspect.store(true, Ordering::Relaxed);
        }
    }

    /// Forgets what was said: a broker has let the client in.
    pub fn forget(&self) {
        self.is_suspect.store(false, Ordering::Relaxed);
        self.said().signs.clear();
    }

    /// Why the client can't connect, if every bootstrap broker says so, or if it has no token.
    pub fn access_failure(&self) -> Option<AccessFailure> {
        let said = self.said();
        if let Some(failure) = &said.token {
            return Some(failure.clone());
        }
        let signs = said.signs.iter().filter(|(broker, _)| broker.ends_with("/bootstrap")).map(|(_, sign)| sign);
        let standing: Vec<_> = signs.filter(|sign| sign.is_certain || sign.since.elapsed() >= DOUBT).collect();
        let first = standing.first().filter(|_| standing.len() >= self.bootstrap)?;
        Some(AccessFailure { code: first.failure.code, text: format!("{}: {}", self.servers, first.failure.text) })
    }

    /// Returns a broker's last answer about the client's right to connect, if it was a failure.
    pub fn last_access_failure(&self) -> Option<AccessFailure> {
        let said = self.said();
        let last = said.signs.values().filter(|sign| sign.is_certain).max_by_key(|sign| sign.since);
        said.token.clone().or_else(|| last.map(|sign| sign.failure.clone()))
    }

    /// The cause of a failed connection, and whether nothing else can be the cause.
    fn cause(&self, text: &str, host: &str, certificate: Option<i32>) -> Option<(AccessFailure, bool)> {
        let (what, state) = text.rsplit_once(" (after ").unwrap_or((text, ""));
        let is_closed = CLOSED.iter().any(|word| what.contains(word));
        let tls = |text: String, is_certain| Some((AccessFailure { code: Code::SSL, text }, is_certain));
        let login = |text: String, is_certain| Some((AccessFailure { code: Code::AUTHENTICATION, text }, is_certain));
        if what.contains("SASL") && !what.contains("Local: ") {
            return login(login_text(what), true);
        }
        if what.contains("certificate verify failed") || what.contains("Failed to verify broker certificate") {
            return tls(certificate_text(host, certificate, what), true);
        }
        if what.contains("SSL alert number") {
            return tls(alert_text(what), true);
        }
        if is_closed && state.contains("SSL_HANDSHAKE") {
            let advice = "is it a listener without TLS? Check the port, and security.protocol";
            return tls(format!("the broker closes the connection during the TLS handshake; {advice}"), false);
        }
        if what.starts_with("SSL handshake failed") || what.contains("did not provide a certificate") {
            return tls(format!("the TLS handshake failed: {what}"), true);
        }
        if is_closed && state.contains("APIVERSION_QUERY") && !self.uses_tls {
            let to_set = if self.uses_sasl { "SASL_SSL" } else { "SSL" };
            let advice = format!("is it a listener with TLS? Check the port, and set security.protocol={to_set}");
            return tls(format!("the broker closes the connection at the first request; {advice}"), false);
        }
        if is_closed && state.contains("state UP") && !self.uses_sasl {
            let advice = "does the listener expect SASL? Check the port, and security.protocol";
            return login(format!("the broker closes the connection before the client has logged in; {advice}"), false);
        }
        None
    }
}

/// The text for a refused login. Brokers do not quote secrets; librdkafka neither.
fn login_text(what: &str) -> String {
    if what.contains("supported mechanisms") {
        let advice = "set sasl.mechanism to one that the listener has, or security.protocol without SASL";
        return format!("the broker does not take this login: {what}; {advice}");
    }
    let said = what.strip_prefix("SASL authentication error: ").unwrap_or(what);
    format!("the broker refuses the login: {said}; check sasl.mechanism and the user, the password or the token")
}

/// The text for a broker's certificate that was not accepted. Numbers are OpenSSL's `X509_V_ERR_…`.
fn certificate_text(host: &str, error: Option<i32>, what: &str) -> String {
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    match error {
        Some(10) => format!(
            "the certificate of the broker {host} has expired: the broker needs a new one (or this machine's clock is \
            wrong)"
        ),
        Some(9) => format!("the certificate of the broker {host} is not valid yet: look at this machine's clock"),
        Some(62 | 64) => format!(
            "the certificate of the broker {host} is for another host: connect by a name that stands in the \
            certificate, or give the broker one for {name:?}"
        ),
        Some(2 | 18..=21 | 27) => format!(
            "the certificate of the broker {host} is signed by an unknown authority: set ssl.ca.location to the \
            certificate of the authority that signed it"
        ),
        Some(number) if number > 0 => {
            format!("the certificate of the broker {host} was not accepted: OpenSSL's verification error {number}")
        }
        _ => format!("the certificate of the broker {host} was not accepted: {what}"),
    }
}

/// The text for an alert with which the broker ended the handshake. Numbers are those of RFC 8446.
fn alert_text(what: &str) -> String {
    let number = what.rsplit("SSL alert number ").next().and_then(|rest| rest.trim().parse::<u8>().ok());
    match number {
        Some(42 | 43 | 46 | 48 | 116) => {
            "the broker expects a client certificate that it trusts: set ssl.certificate.location and \
             ssl.key.location to a certificate that the broker's authority signed, and its key"
                .into()
        }
        Some(44) => "the broker says that the client's certificate was revoked: the client needs a new one".into(),
        Some(45) => "the broker says that the client's certificate has expired: the client needs a new one".into(),
        _ => format!("the broker ended the TLS handshake: {what}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(servers: &str, protocol: &str) -> Security {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", servers).set("security.protocol", protocol);
        Security::of(&config)
    }

    const LOGIN: &str = "[thrd:sasl_ssl://one:1/bootstrap]: sasl_ssl://one:1/bootstrap: SASL authentication error: \
        Authentication failed: Invalid username or password (after 9ms in state AUTH_REQ)";

    #[test]
    fn a_refused_login_counts_when_every_bootstrap_broker_refuses() {
        let security = client("one:1, two:2", "SASL_SSL");
        security.note_failure(LOGIN);
        assert_eq!(security.access_failure(), None);
        security.note_failure(&LOGIN.replace("one:1", "two:2"));
        let failure = security.access_failure().expect("both refuse");
        assert_eq!(failure.code, Code::AUTHENTICATION);
        assert!(failure.text.contains("Invalid username or password"), "{}", failure.text);
    }

    #[test]
    fn a_broker_that_goes_away_lifts_a_doubt_and_no_refusal() {
        let security = client("one:1", "SASL_SSL");
        security.note_failure(
            "[thrd:x]: sasl_ssl://one:1/bootstrap: Disconnected: SSL connection closed by peer \
            (after 0ms in state SSL_HANDSHAKE)",
        );
        assert_eq!(security.said().signs.len(), 1);
        security.note_failure(
            "[thrd:x]: sasl_ssl://one:1/bootstrap: Connect to ipv4#1:1 failed: Connection refused \
            (after 0ms in state CONNECT)",
        );
        assert_eq!(security.said().signs.len(), 0);
        security.note_failure(LOGIN);
        security.note_failure(
            "[thrd:x]: sasl_ssl://one:1/bootstrap: Connect to ipv6#1:1 failed: Connection refused \
            (after 0ms in state CONNECT)",
        );
        assert!(security.access_failure().is_some());
    }

    #[test]
    fn a_closed_connection_is_in_doubt_for_a_while() {
        let security = client("one:1", "PLAINTEXT");
        security.note_failure(
            "[thrd:x]: one:1/bootstrap: Disconnected: connection closed by peer: receive 0 after \
            POLLIN (after 1ms in state APIVERSION_QUERY)",
        );
        assert!(security.is_suspect());
        assert_eq!(security.access_failure(), None);
    }

    #[test]
    fn a_connection_may_be_closed_in_several_words() {
        let security = client("one:1", "SSL");
        security.note_failure(
            "[thrd:x]: ssl://one:1/bootstrap: Disconnected: SSL connection closed by peer (after 1ms in state UP)",
        );
        security.note_failure(
            "[thrd:x]: ssl://one:1/bootstrap: Send failed: error:80000020:system library::Broken \
            pipe (after 0ms in state UP)",
        );
        assert_eq!(security.said().signs.len(), 1);
    }

    #[test]
    fn three_faults_of_certificates_are_three_texts() {
        let security = client("one:1", "SSL");
        let line = "[thrd:x]: ssl://one:1/bootstrap: SSL handshake failed: error:0A000086:SSL routines::certificate \
            verify failed: broker certificate could not be verified (after 4ms in state SSL_HANDSHAKE)";
        let text = |error| {
            security.note_certificate("one:1", error);
            security.note_failure(line);
            security.access_failure().expect("certain").text
        };
        let (expired, host, authority) = (text(10), text(62), text(20));
        assert!(
            expired.contains("expired") && host.contains("another host") && authority.contains("unknown authority")
        );
    }

    #[test]
    fn a_missing_token_is_a_refusal_until_there_is_one() {
        let security = client("one:1", "SASL_SSL");
        security.note_token(Some("ValueError: no"));
        assert!(security.access_failure().is_some_and(|failure| failure.text.contains("ValueError: no")));
        security.note_token(None);
        assert_eq!(security.access_failure(), None);
    }
}
