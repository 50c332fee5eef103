//! A record in the topic of requests: its content, its kind, and the reasons for which it is refused.

use crate::rpc::protocol::{self, HeaderList, RequestHead, Times};

/// A record in the topic of requests.
#[derive(Clone, Copy, Debug)]
pub struct RequestRecord<'a> {
    /// Its headers.
    pub headers: &'a HeaderList<'a>,
    /// Its key.
    pub key: Option<&'a [u8]>,
    /// Its value.
    pub value: Option<&'a [u8]>,
    /// Partition and offset.
    pub place: (i32, i64),
    /// Its timestamp, in milliseconds since 1970.
    pub sent_ms: i64,
}

impl RequestRecord<'_> {
    /// Bytes of key, value and headers.
    pub fn size_bytes(&self) -> usize {
        protocol::size_bytes(self.key, self.value, self.headers)
    }
}

/// The content of a record that was read.
#[derive(Clone, Copy, Debug)]
pub enum Arrival<'a> {
    /// A call.
    Call(RequestHead<'a>, Times),
    /// The caller of a call waits no longer.
    Cancel(RequestHead<'a>, Times),
    /// The caller of a stream grants more results.
    More(RequestHead<'a>),
}

/// The reason why a record gets no reply: its sender may not be the caller that it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InvalidRequest {
    /// It is larger than requests may be.
    TooLarge,
    /// A header is missing, malformed or out of bounds.
    Undecodable,
    /// Its signature is missing or wrong.
    Forged,
    /// It is a copy of a request at another place of the log.
    Replayed,
    /// Its reply would go to a topic that is not allowed.
    ReplyTopic,
    /// Its reply would go to a partition that does not exist, as far as is known.
    ReplyPartition,
}

impl InvalidRequest {
    /// The name in events and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::TooLarge => "too_large",
            Self::Undecodable => "undecodable",
            Self::Forged => "forged",
            Self::Replayed => "replayed",
            Self::ReplyTopic => "reply_topic",
            Self::ReplyPartition => "reply_partition",
        }
    }
}

/// The reason why a call is not executed; its caller is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RejectReason {
    /// Its deadline has passed.
    Expired,
    /// Its caller has cancelled it.
    Cancelled,
    /// The service has no such method.
    UnknownMethod,
    /// This caller may not call the method.
    NotAllowed,
    /// Its deadline is too far away.
    DeadlineTooFar,
    /// It has spent too much of its time in queues.
    Overloaded,
    /// The queue is full.
    QueueFull,
}

impl RejectReason {
    /// The name that the errors of `awoke.rpc.responder.endings` are found by.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Expired => "expired",
            Self::Cancelled => "cancelled",
            Self::UnknownMethod => "unknown_method",
            Self::NotAllowed => "not_allowed",
            Self::DeadlineTooFar => "deadline_too_far",
            Self::Overloaded => "overloaded",
            Self::QueueFull => "queue_full",
        }
    }
}
