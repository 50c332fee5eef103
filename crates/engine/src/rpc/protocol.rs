//! What stands in the headers of calls and replies. `docs/rpc_protocol.md` says it for clients in other languages.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

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
    fn of(text: &[u8]) -> Option<Self> {
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
    /// All headers.
    pub headers: Vec<(String, Vec<u8>)>,
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
pub(super) fn header<'a>(headers: &'a [(String, Vec<u8>)], name: &str) -> Option<&'a [u8]> {
    headers.iter().find_map(|(each, value)| (each == name).then_some(value.as_slice()))
}

/// Reads a fetched record as a reply; `None` when it is none.
pub(super) fn read_reply(fetched: Fetched) -> Option<Reply> {
    let kind = ReplyKind::of(header(&fetched.headers, KIND)?)?;
    let sequence = match header(&fetched.headers, SEQUENCE) {
        None => 0,
        Some(text) => std::str::from_utf8(text).ok()?.parse().ok()?,
    };
    Some(Reply { kind, sequence, body: fetched.value, headers: fetched.headers })
}

/// The deadline's header: so long from now.
pub(super) fn deadline_ms(budget: Duration) -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from((now + budget).as_millis()).unwrap_or(u64::MAX)
}
