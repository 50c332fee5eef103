//! A request: its parts, their bounds, and the record that is made of them.

use std::time::Duration;

use crate::kafka::{TopicPartition, partition_of_key};
use crate::produce::Record;
use crate::rpc::protocol::{
    self, CallId, HEADERS_MAX, IDEMPOTENCY_BYTES_MAX, NAME_BYTES_MAX, RequestHead, SIGNED_NAMES_BYTES_MAX,
};
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

/// The parts of a record that are not those of its request: a request itself, a cancellation, credit.
pub(super) struct Header<'a> {
    pub kind: &'a str,
    pub id: CallId,
    pub left: Duration,
    pub credit: Option<u64>,
}

impl Request<'_> {
    /// Returns the partition of a request: by its key, or any.
    pub(super) fn place(&self, id: CallId, options: &CallerOptions, partitions: usize) -> TopicPartition {
        let partition = match self.key.or(self.idempotency_key) {
            Some(key) => partition_of_key(key, partitions),
            None => (id.call % partitions as u64) as i32,
        };
        TopicPartition::new(options.calls_topic.as_str(), partition)
    }

    /// Calls a function with the record of this request, whose replies are to come to a partition of their topic.
    ///
    /// # Errors
    /// [`Error::Invalid`]: a header can't be signed, is too long, or there are too many; those of the function.
    pub(super) fn with_record<T>(
        &self,
        header: &Header<'_>,
        options: &CallerOptions,
        replies_partition: i32,
        partition: i32,
        send: impl FnOnce(&Record<'_>) -> Result<T>,
    ) -> Result<T> {
        let Header { kind, left, credit, .. } = *header;
        let id = header.id.to_bytes();
        let signed_names = if options.key.is_some() { self.signed_names()? } else { String::new() };
        let head = RequestHead {
            kind,
            id: &id,
            method: self.method,
            caller: &options.name,
            reply_to: (kind == protocol::CALL).then_some((options.replies_topic.as_str(), replies_partition)),
            deadline_ms: Some(protocol::deadline_ms(left)),
            budget_ms: u64::try_from(left.as_millis()).ok(),
            idempotency_key: self.idempotency_key,
            credit,
            signed_names: &signed_names,
        };
        check_bounds(&head, self.headers.len())?;
        let fields = head.encode();
        let mut headers: Vec<(&str, Option<&[u8]>)> = Vec::with_capacity(fields.len() + self.headers.len() + 1);
        headers.extend(fields.iter().map(|(name, value)| (*name, Some(&**value))));
        headers.extend_from_slice(self.headers);
        let signature = options.key.as_ref().map(|key| key.sign_request(self.key, &headers, self.body));
        if let Some(signature) = &signature {
            headers.push((protocol::SIGNATURE, Some(signature)));
        }
        send(&Record {
            value: Some(self.body),
            key: self.key,
            partition: Some(partition),
            timestamp_ms: None,
            headers: &headers,
            variant: None,
        })
    }

    /// Returns the names of the other headers, all of which a signature covers.
    fn signed_names(&self) -> Result<String> {
        let names: Vec<&str> = self.headers.iter().map(|(name, _)| *name).collect();
        if let Some(name) = names.iter().find(|name| name.is_empty() || name.contains(',')) {
            return Err(Error::Invalid { reason: format!("a header named {name:?} can't be signed") });
        }
        Ok(names.join(","))
    }

    pub(super) fn size_bytes(&self) -> usize {
        let headers: usize = self.headers.iter().map(|(name, value)| name.len() + value.map_or(0, <[u8]>::len)).sum();
        self.body.len() + self.method.len() + self.key.map_or(0, <[u8]>::len) + headers
    }
}

/// Checks the bounds that every responder checks.
///
/// # Errors
/// [`Error::Invalid`]: a header is too long, or there are too many.
fn check_bounds(head: &RequestHead<'_>, headers: usize) -> Result<()> {
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
