//! Signatures of requests and replies, version 1: HMAC-SHA256 (RFC 2104) under a secret that callers and responders
//! share.
//!
//! A signature covers its version and purpose, the service's topic of requests, the record's key, the headers of
//! the protocol, other headers by their names, and the body. A copy in another topic, under another key or with
//! other headers is refused.

use hmac::{Hmac, Mac};
use sha2::Sha256;

use super::protocol::{
    BUDGET, CALLER, CODE, CREDIT, DEADLINE, ID, IDEMPOTENCY, KIND, METHOD, REPLY_PARTITION, REPLY_TOPIC, SEQUENCE,
    SIGNATURE, SIGNED_NAMES, header, header_of,
};
use crate::kafka::Fetched;

/// The first byte of a signature.
const VERSION: u8 = 1;
/// The first field: a reply's signature is never a request's, nor one of another version.
const REQUEST: &[u8] = b"awoke-rpc-request-v1";
const REPLY: &[u8] = b"awoke-rpc-reply-v1";
/// The length that stands for an absent field: it differs from an empty one.
const ABSENT: u64 = u64::MAX;

/// The headers of a request that its signature covers, in this order.
pub const SIGNED: [&str; 11] =
    [KIND, ID, METHOD, CALLER, DEADLINE, BUDGET, REPLY_TOPIC, REPLY_PARTITION, IDEMPOTENCY, CREDIT, SIGNED_NAMES];

/// A secret that the callers and responders of one service share.
#[derive(Clone)]
pub struct SigningKey {
    secret: Vec<u8>,
    /// The service's topic of requests.
    topic: Vec<u8>,
}

impl std::fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SigningKey([secret])")
    }
}

type Fields<'a> = Vec<Option<&'a [u8]>>;

impl SigningKey {
    /// A key of any bytes, better 32 random ones, for the service with this topic of requests.
    pub fn new(secret: &[u8], topic: &str) -> Self {
        Self { secret: secret.to_vec(), topic: topic.as_bytes().to_vec() }
    }

    /// Signs a request with these headers.
    pub fn sign_request<N: AsRef<str>>(
        &self,
        key: Option<&[u8]>,
        headers: &[(N, Option<&[u8]>)],
        body: &[u8],
    ) -> Vec<u8> {
        self.sign(REQUEST, &request_fields(key, headers, body))
    }

    /// Checks the signature among the headers of a request.
    pub fn is_request_signed<N: AsRef<str>>(
        &self,
        key: Option<&[u8]>,
        headers: &[(N, Option<&[u8]>)],
        body: &[u8],
    ) -> bool {
        self.verify(REQUEST, &request_fields(key, headers, body), header_of(headers, SIGNATURE))
    }

    /// Signs a reply.
    pub fn sign_reply(
        &self,
        id: &[u8],
        kind: &str,
        sequence: Option<&str>,
        code: Option<&str>,
        body: &[u8],
    ) -> Vec<u8> {
        let (sequence, code) = (sequence.map(str::as_bytes), code.map(str::as_bytes));
        self.sign(REPLY, &[Some(id), Some(kind.as_bytes()), sequence, code, Some(body)])
    }

    /// Checks the signature of a reply.
    pub(in crate::rpc) fn is_reply_signed(&self, reply: &Fetched<'_>) -> bool {
        let of = |name| header(&reply.headers, name);
        let fields = [of(ID), of(KIND), of(SEQUENCE), of(CODE), Some(&*reply.value)];
        self.verify(REPLY, &fields, of(SIGNATURE))
    }

    fn mac(&self, purpose: &[u8], fields: &[Option<&[u8]>]) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.secret).expect("HMAC takes keys of any length");
        for field in [Some(purpose), Some(&self.topic)].iter().chain(fields) {
            // The length before each field: no two lists of fields give the same bytes.
            mac.update(&field.map_or(ABSENT, |field| field.len() as u64).to_be_bytes());
            mac.update(field.unwrap_or_default());
        }
        mac
    }

    fn sign(&self, purpose: &[u8], fields: &[Option<&[u8]>]) -> Vec<u8> {
        let mac = self.mac(purpose, fields).finalize().into_bytes();
        [&[VERSION], &*mac].concat()
    }

    /// Verifies a signature, in the same time for every wrong one of the right version.
    fn verify(&self, purpose: &[u8], fields: &[Option<&[u8]>], signature: Option<&[u8]>) -> bool {
        match signature.and_then(<[u8]>::split_first) {
            Some((&VERSION, signature)) => self.mac(purpose, fields).verify_slice(signature).is_ok(),
            _ => false,
        }
    }
}

/// Returns the signed fields: key, headers of the protocol, other headers that `rpc-signed` names, body.
fn request_fields<'a, N: AsRef<str>>(
    key: Option<&'a [u8]>,
    headers: &'a [(N, Option<&'a [u8]>)],
    body: &'a [u8],
) -> Fields<'a> {
    let mut fields = vec![key];
    fields.extend(SIGNED.map(|name| header_of(headers, name)));
    let names = header_of(headers, SIGNED_NAMES).and_then(|names| std::str::from_utf8(names).ok()).unwrap_or_default();
    // Of several with one name the last, with or without a value: that is the one that a method sees.
    let of = |name: &str| headers.iter().rev().find(|(each, _)| each.as_ref() == name).and_then(|(_, value)| *value);
    fields.extend(names.split(',').filter(|name| !name.is_empty()).map(of));
    fields.push(Some(body));
    fields
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;

    type Headers<'a> = Vec<(&'a str, Option<&'a [u8]>)>;

    fn key() -> SigningKey {
        SigningKey::new(b"secret", "shop.rpc.calls")
    }

    fn headers() -> Headers<'static> {
        let mut all: Headers<'_> = SIGNED.iter().map(|name| (*name, Some(name.as_bytes()))).collect();
        all.pop();
        all.extend([(SIGNED_NAMES, Some(&b"tenant,trace"[..])), ("tenant", Some(b"7")), ("trace", None)]);
        all.push(("more", Some(b"x")));
        all
    }

    /// With the signature of these headers.
    fn signed<'a>(headers: &Headers<'a>, signature: &'a [u8]) -> Headers<'a> {
        let mut all = headers.clone();
        all.push((SIGNATURE, Some(signature)));
        all
    }

    #[test]
    fn a_signature_covers_every_field() {
        let (plain, key) = (headers(), key());
        let signature = key.sign_request(Some(b"key"), &plain, b"body");
        let all = signed(&plain, &signature);
        assert!(key.is_request_signed(Some(b"key"), &all, b"body"));
        assert!(!key.is_request_signed(Some(b"key"), &all, b"bodY"));
        for other in [Some(&b"other"[..]), Some(b""), None] {
            assert!(!key.is_request_signed(other, &all, b"body"), "the key of the record");
        }
        assert!(!SigningKey::new(b"other", "shop.rpc.calls").is_request_signed(Some(b"key"), &all, b"body"));
        assert!(!SigningKey::new(b"secret", "bank.rpc.calls").is_request_signed(Some(b"key"), &all, b"body"));
        for place in 0..plain.len() {
            for value in [Some(&b"changed"[..]), Some(b""), None] {
                let mut changed = all.clone();
                let is_same = std::mem::replace(&mut changed[place].1, value) == value;
                let is_free = changed[place].0 == "more";
                let is_right = key.is_request_signed(Some(b"key"), &changed, b"body");
                assert_eq!(is_right, is_same || is_free, "{} is {value:?}", changed[place].0);
            }
        }
        assert!(!key.is_request_signed(Some(b"key"), &plain, b"body"), "none at all");
    }

    #[test]
    fn of_several_headers_the_one_that_is_obeyed_is_covered() {
        let (plain, key) = (headers(), key());
        let signature = key.sign_request(None, &plain, b"");
        for more in [(IDEMPOTENCY, Some(&b"another"[..])), ("tenant", Some(b"8")), ("tenant", None)] {
            let mut all = signed(&plain, &signature);
            all.push(more);
            assert!(!key.is_request_signed(None, &all, b""), "{more:?}");
        }
        let mut all = signed(&plain, &signature);
        all.push((IDEMPOTENCY, None));
        assert!(key.is_request_signed(None, &all, b""), "the one before a header without a value is obeyed");
    }

    #[test]
    fn another_version_is_refused() {
        let (plain, key) = (headers(), key());
        let mut signature = key.sign_request(None, &plain, b"");
        assert!(key.is_request_signed(None, &signed(&plain, &signature), b""));
        assert!(!key.is_request_signed(None, &signed(&plain, &signature[1..]), b""));
        signature[0] = 2;
        assert!(!key.is_request_signed(None, &signed(&plain, &signature), b""));
        assert!(!key.is_request_signed(None, &signed(&plain, &[]), b""));
    }

    fn hex(bytes: &[u8]) -> String {
        use std::fmt::Write;
        bytes.iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
    }

    /// The documentation has it for clients in other languages.
    #[test]
    fn it_is_the_one_of_the_test_vector() {
        let page = include_str!("../../../../docs/rpc_protocol.md");
        let key = SigningKey::new(b"0123456789abcdef0123456789abcdef", "shop.rpc.calls");
        let headers: Headers<'_> = vec![
            (KIND, Some(b"call")),
            (ID, Some(b"sixteen bytes id")),
            (METHOD, Some(b"quote")),
            (CALLER, Some(b"web")),
            (DEADLINE, Some(b"1700000005000")),
            (BUDGET, Some(b"5000")),
            (REPLY_TOPIC, Some(b"shop.rpc.replies")),
            (REPLY_PARTITION, Some(b"0")),
            (SIGNED_NAMES, Some(b"tenant")),
            ("tenant", Some(b"7")),
        ];
        let request = key.sign_request(Some(b"A1"), &headers, br#"{"sku":"A1"}"#);
        assert!(page.contains(&hex(&request)), "{}", hex(&request));
        let reply = key.sign_reply(b"sixteen bytes id", "reply", None, None, b"28.5");
        assert!(page.contains(&hex(&reply)), "{}", hex(&reply));
    }

    #[test]
    fn it_is_the_hmac_of_the_standard() {
        // RFC 4231, test case 2, without our lengths.
        let mut mac = Hmac::<Sha256>::new_from_slice(b"Jefe").expect("any length");
        mac.update(b"what do ya want for nothing?");
        assert_eq!(mac.finalize().into_bytes()[..4], [0x5b, 0xdc, 0xc1, 0x46]);
    }
}
