//! A request: its parts and their bounds.

use std::time::Duration;

use crate::rpc::protocol::{HEADERS_MAX, IDEMPOTENCY_BYTES_MAX, NAME_BYTES_MAX, RequestHead, SIGNED_NAMES_BYTES_MAX};
use crate::rpc::signature::SigningKey;
use crate::{Error, Result};

/// Headers of the protocol that a request has at most, its signature included.
const HEADERS_OF_PROTOCOL: usize = 14;

/// The service that a caller calls, and its bounds.
#[derive(Clone, Debug)]
pub struct CallerOptions {
    /// The topic of requests.
    pub calls_topic: String,
    /// The topic of replies.
    pub replies_topic: String,
    /// The responders' consumer group; empty: it is not looked up.
    pub group: String,
    /// The caller's name, as responders see it.
    pub name: String,
    /// Most calls under way.
    pub calls_max: usize,
    /// Most bytes of their requests.
    pub bytes_max: usize,
    /// A reply that is larger is refused.
    pub reply_bytes_max: usize,
    /// The key of requests and replies; `None`: they are not signed.
    pub key: Option<SigningKey>,
}

/// The request of a call.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The method's name.
    pub method: &'a str,
    /// JSON.
    pub body: &'a [u8],
    /// Requests with one key go to one partition, and are executed in order.
    pub key: Option<&'a [u8]>,
    /// Time that the caller waits for the reply.
    pub timeout: Duration,
    /// The key that all attempts at one call share.
    pub idempotency_key: Option<&'a [u8]>,
    /// Other headers.
    pub headers: &'a [(&'a str, Option<&'a [u8]>)],
}

impl Request<'_> {
    pub(super) fn size_bytes(&self) -> usize {
        let headers: usize = self.headers.iter().map(|(name, value)| name.len() + value.map_or(0, <[u8]>::len)).sum();
        self.body.len() + self.method.len() + self.key.map_or(0, <[u8]>::len) + headers
    }
}

/// Checks the bounds that every responder checks.
///
/// # Errors
/// [`Error::Invalid`]: a header is too long, or there are too many.
pub(super) fn check_bounds(head: &RequestHead<'_>, headers: usize) -> Result<()> {
    let fields = [
        ("the method's name", head.method.len(), NAME_BYTES_MAX),
        ("the caller's name", head.caller.len(), NAME_BYTES_MAX),
        ("the idempotency key", head.idempotency_key.map_or(0, <[u8]>::len), IDEMPOTENCY_BYTES_MAX),
        ("the names of the headers", head.signed_names.len(), SIGNED_NAMES_BYTES_MAX),
    ];
    if let Some((what, bytes, bytes_max)) = fields.into_iter().find(|(_, bytes, bytes_max)| bytes > bytes_max) {
        return Err(Error::Invalid { reason: format!("{what} has {bytes} bytes, allowed are {bytes_max}") });
    }
    if headers + HEADERS_OF_PROTOCOL > HEADERS_MAX {
        let allowed = HEADERS_MAX - HEADERS_OF_PROTOCOL;
        return Err(Error::Invalid { reason: format!("a call with {headers} headers, allowed are {allowed}") });
    }
    Ok(())
}
