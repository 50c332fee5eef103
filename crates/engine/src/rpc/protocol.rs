//! What stands in the headers of calls and replies. `docs/rpc_protocol.md` says it for clients in other languages.

use std::borrow::Cow;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::signature::SigningKey;
use crate::kafka::Fetched;

/// What a record is: see the constants below.
pub const KIND: &str = "rpc-kind";
/// Names the call that a record belongs to: 16 bytes, chosen by the caller.
pub const ID: &str = "rpc-id";
/// The method that is called.
pub const METHOD: &str = "rpc-method";
/// Where replies go.
pub const REPLY_TOPIC: &str = "rpc-reply-topic";
/// The partition there, as a decimal number.
pub const REPLY_PARTITION: &str = "rpc-reply-partition";
/// When nobody waits any more, in milliseconds since 1970.
pub const DEADLINE: &str = "rpc-deadline-ms";
/// How long the caller was ready to wait when it called, in milliseconds.
pub const BUDGET: &str = "rpc-budget-ms";
/// The same for all attempts at one call.
pub const IDEMPOTENCY: &str = "rpc-idempotency-key";
/// Who calls.
pub const CALLER: &str = "rpc-caller";
/// How many replies of a stream may be under way, or how many more.
pub const CREDIT: &str = "rpc-credit";
/// The place of a reply in its stream, from 0.
pub const SEQUENCE: &str = "rpc-sequence";
/// The code of an error.
pub const CODE: &str = "rpc-code";
/// How long a call stood in queues and ran, in microseconds, with a comma between.
pub const TIMES: &str = "rpc-times-us";
/// HMAC-SHA256 of what `signature` says.
pub const SIGNATURE: &str = "rpc-signature";

/// The headers of a request that its signature covers, in this order; its body comes behind them.
pub const SIGNED: [&str; 10] =
    [KIND, ID, METHOD, DEADLINE, BUDGET, CALLER, REPLY_TOPIC, REPLY_PARTITION, IDEMPOTENCY, CREDIT];

/// A call that wants a reply.
pub const CALL: &str = "call";
/// A call that wants none.
pub const CAST: &str = "cast";
/// The caller waits no longer.
pub const CANCEL: &str = "cancel";
/// The caller takes more of a stream.
pub const MORE: &str = "more";
/// A result.
pub const REPLY: &str = "reply";
/// One of several results.
pub const ITEM: &str = "item";
/// There are no more results.
pub const END: &str = "end";
/// The call failed.
pub const ERROR: &str = "error";

/// For a request without a deadline, from when it was sent.
pub const TIMEOUT_DEFAULT: Duration = Duration::from_secs(30);

/// The longest name of a call.
pub const ID_BYTES_MAX: usize = 64;

/// What a record in a topic of calls says.
#[derive(Clone, Copy, Debug, Default)]
pub struct RequestHead<'a> {
    /// See the constants above.
    pub kind: &'a str,
    /// Names the call; empty where it has no name.
    pub id: &'a [u8],
    /// The method that is called.
    pub method: &'a str,
    /// Who calls.
    pub caller: &'a str,
    /// Topic and partition; `None` where nobody wants a reply.
    pub reply_to: Option<(&'a str, i32)>,
    /// When nobody waits any more.
    pub deadline_ms: Option<u64>,
    /// How long the caller was ready to wait.
    pub budget_ms: Option<u64>,
    /// The same for all attempts at one call.
    pub idempotency_key: Option<&'a [u8]>,
    /// How many replies may be under way, or how many more.
    pub credit: Option<u64>,
}

/// A record's headers, in order.
pub type HeaderList<'a> = [(Cow<'a, str>, Option<&'a [u8]>)];

impl<'a> RequestHead<'a> {
    /// Reads headers.
    ///
    /// # Errors
    /// What makes no sense in them, in words.
    pub fn read(headers: &'a HeaderList<'a>) -> std::result::Result<Self, String> {
        let mut head = Self { kind: CAST, ..Self::default() };
        let (mut reply_topic, mut reply_partition) = (None, None);
        for (name, value) in headers {
            let Some(value) = *value else { continue };
            match &**name {
                KIND => head.kind = text(name, value)?,
                ID => head.id = value,
                METHOD => head.method = text(name, value)?,
                CALLER => head.caller = text(name, value)?,
                REPLY_TOPIC => reply_topic = Some(text(name, value)?),
                REPLY_PARTITION => reply_partition = Some(number(name, value)?),
                DEADLINE => head.deadline_ms = Some(number(name, value)?),
                BUDGET => head.budget_ms = Some(number(name, value)?),
                IDEMPOTENCY => head.idempotency_key = Some(value),
                CREDIT => head.credit = Some(number(name, value)?),
                _ => (),
            }
        }
        if head.kind == CALL
            && let Some(topic) = reply_topic
        {
            let partition = reply_partition.and_then(|partition| i32::try_from(partition).ok());
            let partition = partition.ok_or_else(|| format!("{REPLY_PARTITION} is missing"))?;
            if head.id.is_empty() || head.id.len() > ID_BYTES_MAX {
                return Err(format!("{ID} has {} bytes", head.id.len()));
            }
            head.reply_to = Some((topic, partition));
        }
        Ok(head)
    }
}

/// Whether the signature of a request is right.
pub fn is_signed(key: &SigningKey, headers: &HeaderList<'_>, body: &[u8]) -> bool {
    // Of several with one name the last that says something, as `RequestHead` reads them: what is signed is what is obeyed.
    let of = |name| headers.iter().rev().find_map(|(each, value)| value.filter(|_| each == name));
    let mut fields = SIGNED.map(|name| of(name).unwrap_or_default()).to_vec();
    fields.push(body);
    key.verify(&fields, of(SIGNATURE).unwrap_or_default())
}

/// The signature of a reply.
pub fn sign_reply(key: &SigningKey, id: &[u8], kind: &str, sequence: &str, code: &str, body: &[u8]) -> Vec<u8> {
    key.sign(&[id, kind.as_bytes(), sequence.as_bytes(), code.as_bytes(), body])
}

/// The time of a call, as its responder sees it; seconds on the callers' clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Times {
    /// How long the caller was ready to wait when it called.
    pub budget_s: f64,
    /// How long it still waits; negative when it does no more.
    pub left_s: f64,
    /// From the call to here.
    pub queued_s: f64,
}

impl RequestHead<'_> {
    /// The call's time, for a record that was sent, and is looked at, so many milliseconds after the beginning of 1970. Clocks may be apart
    /// by `clock_skew_s`, in the caller's favour.
    #[allow(clippy::cast_precision_loss)] // Milliseconds of our century have 41 bits.
    pub fn times(&self, sent_ms: i64, now_ms: f64, clock_skew_s: f64) -> Times {
        let sent_ms = if sent_ms <= 0 { now_ms } else { sent_ms as f64 };
        let until_ms = self.deadline_ms.map_or(sent_ms + TIMEOUT_DEFAULT.as_secs_f64() * 1e3, |ms| ms as f64);
        let budget_s = self.budget_ms.map_or((until_ms - sent_ms).max(0.0), |ms| ms as f64) / 1e3;
        let left_s = (until_ms - now_ms) / 1e3 + clock_skew_s;
        Times { budget_s, left_s, queued_s: (budget_s - left_s).max(0.0) }
    }
}

fn text<'a>(name: &str, value: &'a [u8]) -> std::result::Result<&'a str, String> {
    std::str::from_utf8(value).map_err(|_| format!("{name} is no text"))
}

fn number(name: &str, value: &[u8]) -> std::result::Result<u64, String> {
    let digits = Some(value).filter(|value| value.len() <= 18 && value.iter().all(u8::is_ascii_digit));
    digits
        .and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok())
        .ok_or_else(|| format!("{name} is no number"))
}

/// What a reply is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyKind {
    /// The result, and the only one.
    Result,
    /// One of several results.
    Item,
    /// There are no more of them.
    End,
    /// The call failed.
    Error,
}

impl ReplyKind {
    /// By its name in the header.
    pub fn of(text: &[u8]) -> Option<Self> {
        [(REPLY, Self::Result), (ITEM, Self::Item), (END, Self::End), (ERROR, Self::Error)]
            .into_iter()
            .find_map(|(name, kind)| (name.as_bytes() == text).then_some(kind))
    }

    /// Its name in the header.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Result => REPLY,
            Self::Item => ITEM,
            Self::End => END,
            Self::Error => ERROR,
        }
    }
}

/// What a responder sent.
#[derive(Clone, Debug)]
pub struct Reply {
    /// What it is.
    pub kind: ReplyKind,
    /// Its place among several, from 0.
    pub sequence: u64,
    /// JSON; empty where there is nothing to say.
    pub body: Vec<u8>,
}

/// The name of a call: the caller's part, then the call's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallId {
    pub(super) caller: u64,
    pub(super) call: u64,
}

impl CallId {
    /// As in the header.
    pub fn to_bytes(self) -> [u8; 16] {
        ((u128::from(self.caller) << 64) | u128::from(self.call)).to_be_bytes()
    }

    /// Read from the header.
    pub(super) fn of(bytes: &[u8]) -> Option<Self> {
        let number = u128::from_be_bytes(bytes.try_into().ok()?);
        Some(Self { caller: (number >> 64) as u64, call: number as u64 })
    }
}

/// The header's value.
pub(super) fn header<'a>(headers: &'a [(Cow<'a, str>, Cow<'a, [u8]>)], name: &str) -> Option<&'a [u8]> {
    headers.iter().find_map(|(each, value)| (each == name).then_some(&**value))
}

/// Reads a fetched record as a reply; `None` when it is none.
pub(super) fn read_reply(fetched: &Fetched<'_>) -> Option<Reply> {
    let kind = ReplyKind::of(header(&fetched.headers, KIND)?)?;
    let sequence = match header(&fetched.headers, SEQUENCE) {
        None => 0,
        Some(text) => std::str::from_utf8(text).ok()?.parse().ok()?,
    };
    Some(Reply { kind, sequence, body: fetched.value.to_vec() })
}

/// The deadline's header: so long from now.
pub(super) fn deadline_ms(budget: Duration) -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from((now + budget).as_millis()).unwrap_or(u64::MAX)
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;

    fn headers<'a>(changes: &[(&'a str, Option<&'a [u8]>)]) -> Vec<(Cow<'a, str>, Option<&'a [u8]>)> {
        let plain: [(&str, &[u8]); 6] = [
            (KIND, b"call"),
            (ID, b"id"),
            (METHOD, b"quote"),
            (REPLY_TOPIC, b"replies"),
            (REPLY_PARTITION, b"3"),
            (DEADLINE, b"1700000000000"),
        ];
        let mut all: Vec<_> = plain.into_iter().map(|(name, value)| (Cow::from(name), Some(value))).collect();
        all.retain(|(name, _)| changes.iter().all(|(changed, _)| changed != name));
        all.extend(changes.iter().map(|&(name, value)| (Cow::from(name), value)));
        all
    }

    #[test]
    fn a_request_is_read() {
        let all = headers(&[("traceparent", Some(b"x")), (CREDIT, Some(b"8"))]);
        let head = RequestHead::read(&all).expect("makes sense");
        assert_eq!((head.kind, head.id, head.method, head.reply_to), (CALL, &b"id"[..], "quote", Some(("replies", 3))));
        assert_eq!((head.deadline_ms, head.budget_ms, head.credit), (Some(1_700_000_000_000), None, Some(8)));
    }

    #[test]
    fn a_call_has_so_much_time_left() {
        let head = |deadline_ms, budget_ms| RequestHead { deadline_ms, budget_ms, ..RequestHead::default() };
        let times = |budget_s, left_s, queued_s| Times { budget_s, left_s, queued_s };
        assert_eq!(head(Some(12_000), Some(5_000)).times(7_000, 8_000.0, 0.0), times(5.0, 4.0, 1.0));
        assert_eq!(head(Some(12_000), Some(5_000)).times(7_000, 13_000.0, 0.5), times(5.0, -0.5, 5.5));
        // Without a budget it is what the deadline was away when it was sent; without either, what calls have by default.
        assert_eq!(head(Some(12_000), None).times(10_000, 11_000.0, 0.0), times(2.0, 1.0, 1.0));
        assert_eq!(head(None, None).times(10_000, 11_000.0, 0.0), times(30.0, 29.0, 1.0));
        for unknown in [-1, 0] {
            assert_eq!(head(None, None).times(unknown, 11_000.0, 0.0), times(30.0, 30.0, 0.0));
        }
    }

    #[test]
    fn a_signature_covers_every_field() {
        let key = SigningKey::new(b"secret");
        let mut all: Vec<_> = SIGNED.iter().map(|name| (Cow::from(*name), Some(name.as_bytes()))).collect();
        let mut fields: Vec<_> = SIGNED.iter().map(|name| name.as_bytes()).collect();
        fields.push(b"body");
        let signature = key.sign(&fields);
        all.push((SIGNATURE.into(), Some(&signature)));
        assert!(is_signed(&key, &all, b"body"));
        assert!(!is_signed(&key, &all, b"bodY"));
        assert!(!is_signed(&SigningKey::new(b"other"), &all, b"body"));
        for (place, name) in SIGNED.iter().enumerate() {
            let mut changed = all.clone();
            changed[place].1 = Some(b"changed");
            assert!(!is_signed(&key, &changed, b"body"), "{name}");
        }
        assert!(!is_signed(&key, &all[..SIGNED.len()], b"body"));
        all.push((IDEMPOTENCY.into(), Some(b"another")));
        all.push((IDEMPOTENCY.into(), None));
        assert!(!is_signed(&key, &all, b"body"), "what stands before a header without a value is obeyed");
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let long = [b'x'; ID_BYTES_MAX + 1];
        let wrong: [(&str, Option<&[u8]>); 9] = [
            (REPLY_PARTITION, Some(b"-1")),
            (REPLY_PARTITION, Some(b"4294967296")),
            (REPLY_PARTITION, None),
            (DEADLINE, Some(b"soon")),
            (DEADLINE, Some(b"")),
            (BUDGET, Some(b"9999999999999999999")),
            (ID, None),
            (ID, Some(&long)),
            (METHOD, Some(b"\xff")),
        ];
        for change in wrong {
            assert!(RequestHead::read(&headers(&[change])).is_err(), "{change:?}");
        }
    }
}
