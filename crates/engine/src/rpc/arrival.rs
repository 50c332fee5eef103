//! A record that comes to a responder: what it holds, what it is, and why it is not answered.

use super::protocol::{self, HeaderList, RequestHead, Times};

/// A record in the topic of calls.
#[derive(Clone, Copy, Debug)]
pub struct Received<'a> {
    /// Its headers.
    pub headers: &'a HeaderList<'a>,
    /// Its key.
    pub key: Option<&'a [u8]>,
    /// Its value.
    pub value: Option<&'a [u8]>,
    /// Partition and offset.
    pub place: (i32, i64),
    /// When it was sent, in milliseconds since 1970.
    pub sent_ms: i64,
}

impl Received<'_> {
    /// Bytes of key, value and headers.
    pub fn size_bytes(&self) -> usize {
        protocol::size_bytes(self.key, self.value, self.headers)
    }
}

/// What a record is.
#[derive(Clone, Copy, Debug)]
pub enum Arrival<'a> {
    /// A call.
    Call(RequestHead<'a>, Times),
    /// A caller waits no longer.
    Cancel(RequestHead<'a>, Times),
    /// A caller takes more of a stream.
    More(RequestHead<'a>),
}

/// Why a record is not answered: its sender may not be who it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unwanted {
    /// It is larger than requests may be.
    Huge,
    /// It makes no sense.
    Undecodable,
    /// Its signature is missing or wrong.
    Forged,
    /// It has stood in another place of the log before.
    Replayed,
    /// Its reply is to go where replies may not.
    ReplyTopic,
    /// Its reply is to go to a partition that does not exist, as far as is known.
    ReplyPartition,
}
