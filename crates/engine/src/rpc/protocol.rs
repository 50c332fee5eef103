//! The headers of requests and replies. `docs/rpc_protocol.md` describes them for clients in other languages.

use std::borrow::Cow;
use std::time::Duration;

use crate::clock;
use crate::kafka::Fetched;

/// The kind of a record: see the constants below.
pub const KIND: &str = "rpc-kind";
/// The id of the call that a record belongs to: 16 bytes, chosen by the caller.
pub const ID: &str = "rpc-id";
/// The method that is called.
pub const METHOD: &str = "rpc-method";
/// The topic of replies.
pub const REPLY_TOPIC: &str = "rpc-reply-topic";
/// The partition there, as a decimal number.
pub const REPLY_PARTITION: &str = "rpc-reply-partition";
/// The deadline, in milliseconds since 1970.
pub const DEADLINE: &str = "rpc-deadline-ms";
/// The time that the caller granted when it called, in milliseconds.
pub const BUDGET: &str = "rpc-budget-ms";
/// The key that all attempts at one call share.
pub const IDEMPOTENCY: &str = "rpc-idempotency-key";
/// The caller's name.
pub const CALLER: &str = "rpc-caller";
/// The number of results of a stream that the caller grants in total.
pub const CREDIT: &str = "rpc-credit";
/// The place of a reply in its stream, from 0.
pub const SEQUENCE: &str = "rpc-sequence";
/// The code of an error.
pub const CODE: &str = "rpc-code";
/// The time of a call in queues, and of its method, in microseconds, with a comma between.
pub const TIMES: &str = "rpc-times-us";
/// The names of other headers that the signature covers, with commas between.
pub const SIGNED_NAMES: &str = "rpc-signed";
/// A version and an HMAC-SHA256: see `signature`.
pub const SIGNATURE: &str = "rpc-signature";

/// A call that wants a reply.
pub const CALL: &str = "call";
/// A call that wants none.
pub const CAST: &str = "cast";
/// The caller cancels the call.
pub const CANCEL: &str = "cancel";
/// The caller grants more results of a stream.
pub const MORE: &str = "more";
/// A result.
pub const REPLY: &str = "reply";
/// One of several results.
pub const ITEM: &str = "item";
/// There are no more results.
pub const END: &str = "end";
/// The call failed.
pub const ERROR: &str = "error";

/// The time of a request without a deadline, from its timestamp.
pub const TIMEOUT_DEFAULT: Duration = Duration::from_secs(30);

/// Most bytes of the id of a call.
pub const ID_BYTES_MAX: usize = 64;
/// Most bytes of a method's name, and of a caller's.
pub const NAME_BYTES_MAX: usize = 128;
/// Most bytes of an idempotency key.
pub const IDEMPOTENCY_BYTES_MAX: usize = 256;
/// Most bytes of a topic's name, as Kafka has it.
pub const TOPIC_BYTES_MAX: usize = 249;
/// Most bytes of the names of other headers that a signature covers.
pub const SIGNED_NAMES_BYTES_MAX: usize = 4_096;
/// Most headers of a record, other headers included.
pub const HEADERS_MAX: usize = 64;
/// Most results of a stream that may be granted and not sent: a larger credit counts as this.
pub const CREDIT_MAX: u64 = 65_536;

/// The headers of a record in a topic of requests. Every field is bounded, whatever the kind of the record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestHead<'a> {
    /// One of [`CALL`], [`CAST`], [`CANCEL`] and [`MORE`].
    pub kind: &'a str,
    /// The id of the call; only a cast may have an empty one.
    pub id: &'a [u8],
    /// The method that is called.
    pub method: &'a str,
    /// The caller's name.
    pub caller: &'a str,
    /// Topic and partition of the replies to a call; `None` for other kinds.
    pub reply_to: Option<(&'a str, i32)>,
    /// The deadline, in milliseconds since 1970.
    pub deadline_ms: Option<u64>,
    /// The time that the caller granted.
    pub budget_ms: Option<u64>,
    /// The key that all attempts at one call share.
    pub idempotency_key: Option<&'a [u8]>,
    /// Number of results of a stream the caller has granted in total.
    pub credit: Option<u64>,
    /// The names of other headers that the signature covers, with commas between.
    pub signed_names: &'a str,
}

/// A record's headers, in order.
pub type HeaderList<'a> = [(Cow<'a, str>, Option<&'a [u8]>)];

/// Returns a header's value: of several with one name the last that has one, which is also the one that the
/// signature covers.
pub(in crate::rpc) fn header_of<'a, N: AsRef<str>>(headers: &[(N, Option<&'a [u8]>)], name: &str) -> Option<&'a [u8]> {
    headers.iter().rev().find_map(|(each, value)| value.filter(|_| each.as_ref() == name))
}

/// Returns the bytes of a record: its key, its value, and the names and values of its headers.
pub fn size_bytes(key: Option<&[u8]>, value: Option<&[u8]>, headers: &HeaderList<'_>) -> usize {
    let of = |bytes: Option<&[u8]>| bytes.map_or(0, <[u8]>::len);
    let headers: usize = headers.iter().map(|(name, value)| name.len() + of(*value)).sum();
    of(key) + of(value) + headers
}

impl<'a> RequestHead<'a> {
    /// Reads headers.
    ///
    /// # Errors
    /// A header is missing, malformed or too long; the text says which.
    pub fn read(headers: &'a HeaderList<'a>) -> std::result::Result<Self, String> {
        if headers.len() > HEADERS_MAX {
            return Err(format!("{} headers", headers.len()));
        }
        let of = |name| header_of(headers, name);
        let kind = text(KIND, of(KIND).unwrap_or_default(), NAME_BYTES_MAX)?;
        let head = Self {
            kind: [CALL, CAST, CANCEL, MORE].into_iter().find(|known| *known == kind).ok_or("an unknown kind")?,
            id: bounded(ID, of(ID).unwrap_or_default(), ID_BYTES_MAX)?,
            method: text(METHOD, of(METHOD).unwrap_or_default(), NAME_BYTES_MAX)?,
            caller: text(CALLER, of(CALLER).unwrap_or_default(), NAME_BYTES_MAX)?,
            reply_to: Self::read_address(headers, kind)?,
            deadline_ms: of(DEADLINE).map(|value| number(DEADLINE, value)).transpose()?,
            budget_ms: of(BUDGET).map(|value| number(BUDGET, value)).transpose()?,
            idempotency_key: of(IDEMPOTENCY)
                .map(|value| bounded(IDEMPOTENCY, value, IDEMPOTENCY_BYTES_MAX))
                .transpose()?,
            credit: of(CREDIT).map(|value| number(CREDIT, value)).transpose()?,
            signed_names: text(SIGNED_NAMES, of(SIGNED_NAMES).unwrap_or_default(), SIGNED_NAMES_BYTES_MAX)?,
        };
        if head.id.is_empty() && head.kind != CAST {
            return Err(format!("a {kind} without {ID}"));
        }
        Ok(head)
    }

    /// Reads the address of replies, whose form is checked for every kind; only a call has one.
    fn read_address(headers: &'a HeaderList<'a>, kind: &str) -> std::result::Result<Option<(&'a str, i32)>, String> {
        let topic =
            header_of(headers, REPLY_TOPIC).map(|value| text(REPLY_TOPIC, value, TOPIC_BYTES_MAX)).transpose()?;
        let partition = header_of(headers, REPLY_PARTITION).map(|value| number(REPLY_PARTITION, value)).transpose()?;
        let partition =
            partition.map(i32::try_from).transpose().map_err(|_| format!("{REPLY_PARTITION} is too large"))?;
        match (kind, topic, partition) {
            (CALL, Some(topic), Some(partition)) => Ok(Some((topic, partition))),
            (CALL, ..) => Err(format!("a call without {REPLY_TOPIC} or {REPLY_PARTITION}")),
            _ => Ok(None),
        }
    }

    /// Returns the headers that `read` reads this from, in the order in which a signature covers them.
    pub fn encode(&self) -> Vec<(&'static str, Cow<'a, [u8]>)> {
        let digits = |number: u64| Cow::Owned(number.to_string().into_bytes());
        let mut headers = vec![
            (KIND, Cow::Borrowed(self.kind.as_bytes())),
            (ID, self.id.into()),
            (METHOD, self.method.as_bytes().into()),
            (CALLER, self.caller.as_bytes().into()),
        ];
        headers.extend(self.deadline_ms.map(|ms| (DEADLINE, digits(ms))));
        headers.extend(self.budget_ms.map(|ms| (BUDGET, digits(ms))));
        if let Some((topic, partition)) = self.reply_to {
            headers.push((REPLY_TOPIC, topic.as_bytes().into()));
            headers.push((REPLY_PARTITION, digits(u64::from(partition.unsigned_abs()))));
        }
        headers.extend(self.idempotency_key.map(|key| (IDEMPOTENCY, key.into())));
        headers.extend(self.credit.map(|credit| (CREDIT, digits(credit))));
        if !self.signed_names.is_empty() {
            headers.push((SIGNED_NAMES, self.signed_names.as_bytes().into()));
        }
        headers
    }

    /// Returns the names of other headers that the signature covers.
    pub fn names_signed(&self) -> impl Iterator<Item = &'a str> {
        self.signed_names.split(',').filter(|name| !name.is_empty())
    }
}

/// The times of a call, as its responder sees them; in seconds, on the callers' clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Times {
    /// The time that the caller granted when it called.
    pub budget_s: f64,
    /// The rest of that time; negative when it is over.
    pub left_s: f64,
    /// The time from the call to now.
    pub queued_s: f64,
}

impl RequestHead<'_> {
    /// Returns the call's times, for a record that was sent, and is read, at these milliseconds since 1970. Clocks
    /// may be apart by `clock_skew_s`, in the caller's favour. A budget counts as at most `budget_max_s`, and so
    /// does the time in queues.
    #[allow(clippy::cast_precision_loss)] // Milliseconds of our century have 41 bits.
    pub fn times(&self, sent_ms: i64, now_ms: f64, clock_skew_s: f64, budget_max_s: f64) -> Times {
        let sent_ms = if sent_ms <= 0 { now_ms } else { sent_ms as f64 };
        let until_ms = self.deadline_ms.map_or(sent_ms + TIMEOUT_DEFAULT.as_secs_f64() * 1e3, |ms| ms as f64);
        let budget_s = self.budget_ms.map_or((until_ms - sent_ms).max(0.0), |ms| ms as f64) / 1e3;
        let budget_s = budget_s.min(budget_max_s);
        let left_s = (until_ms - now_ms) / 1e3 + clock_skew_s;
        Times { budget_s, left_s, queued_s: (budget_s - left_s).clamp(0.0, budget_max_s) }
    }
}

fn bounded<'a>(name: &str, value: &'a [u8], bytes_max: usize) -> std::result::Result<&'a [u8], String> {
    if value.len() <= bytes_max { Ok(value) } else { Err(format!("{name} has {} bytes", value.len())) }
}

fn text<'a>(name: &str, value: &'a [u8], bytes_max: usize) -> std::result::Result<&'a str, String> {
    std::str::from_utf8(bounded(name, value, bytes_max)?).map_err(|_| format!("{name} is no text"))
}

fn number(name: &str, value: &[u8]) -> std::result::Result<u64, String> {
    let digits = Some(value).filter(|value| value.len() <= 18 && value.iter().all(u8::is_ascii_digit));
    digits
        .and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok())
        .ok_or_else(|| format!("{name} is no number"))
}

/// The kind of a reply.
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
    /// Returns the kind with this name in the header.
    pub fn of(text: &[u8]) -> Option<Self> {
        [(REPLY, Self::Result), (ITEM, Self::Item), (END, Self::End), (ERROR, Self::Error)]
            .into_iter()
            .find_map(|(name, kind)| (name.as_bytes() == text).then_some(kind))
    }

    /// Returns its name in the header.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Result => REPLY,
            Self::Item => ITEM,
            Self::End => END,
            Self::Error => ERROR,
        }
    }
}

/// A reply of a responder.
#[derive(Clone, Debug)]
pub struct Reply {
    /// Its kind.
    pub kind: ReplyKind,
    /// Its place among several, from 0.
    pub sequence: u64,
    /// JSON; empty at the end of a stream.
    pub body: Vec<u8>,
}

/// The id of a call: the caller's part, then the call's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallId {
    pub(in crate::rpc) caller: u64,
    pub(in crate::rpc) call: u64,
}

impl CallId {
    /// Returns it as in the header.
    pub fn to_bytes(self) -> [u8; 16] {
        ((u128::from(self.caller) << 64) | u128::from(self.call)).to_be_bytes()
    }

    /// Reads it from the header.
    pub(in crate::rpc) fn of(bytes: &[u8]) -> Option<Self> {
        let number = u128::from_be_bytes(bytes.try_into().ok()?);
        Some(Self { caller: (number >> 64) as u64, call: number as u64 })
    }
}

/// Returns a header's value.
pub(in crate::rpc) fn header<'a>(headers: &'a [(Cow<'a, str>, Cow<'a, [u8]>)], name: &str) -> Option<&'a [u8]> {
    headers.iter().find_map(|(each, value)| (each == name).then_some(&**value))
}

/// Reads a fetched record as a reply; returns `None` if it is malformed.
pub(in crate::rpc) fn read_reply(fetched: &Fetched<'_>) -> Option<Reply> {
    if fetched.headers.len() > HEADERS_MAX {
        return None;
    }
    let kind = ReplyKind::of(header(&fetched.headers, KIND)?)?;
    let sequence = match header(&fetched.headers, SEQUENCE) {
        None => 0,
        Some(text) => number(SEQUENCE, text).ok()?,
    };
    Some(Reply { kind, sequence, body: fetched.value.to_vec() })
}

/// Returns the deadline this long from now, in milliseconds since 1970.
pub(in crate::rpc) fn deadline_ms(budget: Duration) -> u64 {
    u64::try_from((clock::wall() + budget).as_millis()).unwrap_or(u64::MAX)
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
        let max_s = 100.0;
        assert_eq!(head(Some(12_000), Some(5_000)).times(7_000, 8_000.0, 0.0, max_s), times(5.0, 4.0, 1.0));
        assert_eq!(head(Some(12_000), Some(5_000)).times(7_000, 13_000.0, 0.5, max_s), times(5.0, -0.5, 5.5));
        // Without a budget it is what the deadline was away when it was sent; without either, what calls have by
        // default.
        assert_eq!(head(Some(12_000), None).times(10_000, 11_000.0, 0.0, max_s), times(2.0, 1.0, 1.0));
        assert_eq!(head(None, None).times(10_000, 11_000.0, 0.0, max_s), times(30.0, 29.0, 1.0));
        for unknown in [-1, 0] {
            assert_eq!(head(None, None).times(unknown, 11_000.0, 0.0, max_s), times(30.0, 30.0, 0.0));
        }
    }

    #[test]
    fn a_budget_is_bounded_and_so_is_the_time_in_queues() {
        let head = |deadline_ms, budget_ms| RequestHead { deadline_ms, budget_ms, ..RequestHead::default() };
        let found = head(Some(12_000), Some(10u64.pow(17))).times(7_000, 8_000.0, 0.0, 100.0);
        assert_eq!(found, Times { budget_s: 100.0, left_s: 4.0, queued_s: 96.0 });
        let found = head(Some(0), Some(5_000)).times(7_000, 1.7e12, 0.0, 100.0);
        assert_eq!((found.budget_s, found.queued_s), (5.0, 100.0));
    }

    #[test]
    fn every_field_is_bounded_in_every_kind_of_record() {
        let bounds = [
            (KIND, NAME_BYTES_MAX),
            (ID, ID_BYTES_MAX),
            (METHOD, NAME_BYTES_MAX),
            (CALLER, NAME_BYTES_MAX),
            (REPLY_TOPIC, TOPIC_BYTES_MAX),
            (REPLY_PARTITION, 18),
            (DEADLINE, 18),
            (BUDGET, 18),
            (IDEMPOTENCY, IDEMPOTENCY_BYTES_MAX),
            (CREDIT, 18),
            (SIGNED_NAMES, SIGNED_NAMES_BYTES_MAX),
        ];
        for kind in [CALL, CAST, CANCEL, MORE] {
            for (name, bytes_max) in bounds {
                let long = vec![b'0'; bytes_max + 1];
                let all = headers(&[(KIND, Some(kind.as_bytes()))]);
                let rest = all.into_iter().filter(|(each, _)| each != name);
                let changed: Vec<_> = rest.chain([(name.into(), Some(&long[..]))]).collect();
                assert!(RequestHead::read(&changed).is_err(), "{kind} with {name} of {} bytes", long.len());
            }
        }
    }

    #[test]
    fn headers_are_bounded_in_number_and_counted_in_bytes() {
        let mut all = headers(&[]);
        let count = all.len();
        all.extend((count..HEADERS_MAX).map(|_| (Cow::from("x"), Some(&b"12"[..]))));
        assert!(RequestHead::read(&all).is_ok());
        let before = size_bytes(Some(b"key"), Some(b"value"), &all);
        all.push(("abc".into(), Some(b"12345")));
        assert_eq!(size_bytes(Some(b"key"), Some(b"value"), &all), before + 8);
        assert_eq!(size_bytes(None, None, &[]), 0);
        assert!(RequestHead::read(&all).is_err(), "one header too many");
    }

    #[test]
    fn a_credit_is_a_total_of_any_size() {
        let all = headers(&[(CREDIT, Some(b"999999999999999999"))]);
        assert_eq!(RequestHead::read(&all).expect("makes sense").credit, Some(999_999_999_999_999_999));
    }

    #[test]
    fn malformed_headers_are_refused() {
        let long = [b'x'; ID_BYTES_MAX + 1];
        let wrong: [(&str, Option<&[u8]>); 13] = [
            (KIND, None),
            (KIND, Some(b"nonsense")),
            (REPLY_TOPIC, None),
            (REPLY_TOPIC, Some(b"\xff")),
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
        for kind in [&b"cancel"[..], b"more"] {
            assert!(RequestHead::read(&headers(&[(KIND, Some(kind)), (ID, None)])).is_err(), "of which call?");
        }
    }
}
