//! A batch of messages as librdkafka fetched them: lent, not copied.

use std::borrow::Cow;
use std::ffi::CStr;
use std::sync::{Arc, Mutex, PoisonError};

use super::{Client, Code, FetchError, Fetched, TimestampKind, TopicPartition, ffi, text_of};

unsafe extern "C" {
    /// The bytes of a fetched message that is alive (patch 0012).
    pub(super) fn awoke_message_bytes(message: *const ffi::rd_kafka_message_t) -> usize;
}

/// Messages of one topic-partition in offset order.
///
/// The bytes stay where librdkafka put them when they came from the broker, and are freed with the batch. A batch keeps
/// its client's memory alive, so it is to be dropped soon: what is kept for long should be copied out.
pub struct Batch {
    at: TopicPartition,
    messages: Vec<*mut ffi::rd_kafka_message_t>,
    /// librdkafka parses headers on first use without a lock of its own.
    headers: Mutex<()>,
    client: Arc<Client>,
}

// SAFETY: a fetched message is not tied to a thread.
unsafe impl Send for Batch {}
// SAFETY: messages are only read, but for their headers, which have a lock.
unsafe impl Sync for Batch {}

impl Batch {
    /// Takes over messages of librdkafka's; fetch errors among them are returned apart.
    ///
    /// # Safety
    /// The messages are ours to destroy and came from `client`.
    pub(crate) unsafe fn from_raw(
        at: TopicPartition,
        mut messages: Vec<*mut ffi::rd_kafka_message_t>,
        client: Arc<Client>,
    ) -> (Self, Vec<FetchError>) {
        let mut errors = Vec::new();
        messages.retain(|&message| {
            // SAFETY: the message is valid until it is destroyed; the error is read as the number it is.
            unsafe {
                let code = Code((&raw const (*message).err).cast::<i32>().read());
                if code == Code::NONE {
                    return true;
                }
                let text = text_of(ffi::rd_kafka_message_errstr(message));
                errors.push(FetchError { code, text, offset: (*message).offset });
                ffi::rd_kafka_message_destroy(message);
            }
            false
        });
        (Self { at, messages, headers: Mutex::new(()), client }, errors)
    }

    /// Where the messages come from.
    pub const fn topic_partition(&self) -> &TopicPartition {
        &self.at
    }

    /// Returns the number of messages.
    pub fn len(&self) -> usize {
        self.messages.len()
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Keys, values and headers together.
    pub fn size_bytes(&self) -> usize {
        // SAFETY: the messages are ours.
        self.messages.iter().map(|&message| unsafe { awoke_message_bytes(message) }).sum()
    }

    /// Takes the messages apart, to put them into other batches.
    pub fn into_loose(mut self) -> Vec<Loose> {
        std::mem::take(&mut self.messages).into_iter().map(Loose).collect()
    }

    /// Messages that were taken apart.
    pub fn of_loose(at: TopicPartition, messages: impl IntoIterator<Item = Loose>, client: Arc<Client>) -> Self {
        let messages = messages.into_iter().map(|message| message.0).collect();
        Self { at, messages, headers: Mutex::new(()), client }
    }

    /// Takes off the messages from `index` on.
    #[must_use]
    pub fn split_off(&mut self, index: usize) -> Self {
        Self {
            at: self.at.clone(),
            messages: self.messages.split_off(index.min(self.messages.len())),
            headers: Mutex::new(()),
            client: Arc::clone(&self.client),
        }
    }

    /// Keeps the messages for which `keep` says `Some(true)`, up to the first for which it says `None`. The others are
    /// freed.
    pub fn retain_while(&mut self, mut keep: impl FnMut(MessageRef<'_>) -> Option<bool>) {
        let messages = std::mem::take(&mut self.messages);
        let mut is_over = false;
        let (kept, freed): (Vec<_>, Vec<_>) = messages.into_iter().partition(|&message| {
            let kept = if is_over { None } else { keep(MessageRef { batch: self, message }) };
            is_over |= kept.is_none();
            kept == Some(true)
        });
        self.messages = kept;
        for message in freed {
            // SAFETY: the message is ours, and has left the batch.
            unsafe { ffi::rd_kafka_message_destroy(message) };
        }
    }

    /// Puts the messages of another batch of the same partition behind these.
    pub fn append(&mut self, mut other: Self) {
        self.messages.append(&mut other.messages);
    }

    /// The message at `index`, which must be less than `len`.
    #[inline]
    pub fn message(&self, index: usize) -> MessageRef<'_> {
        MessageRef { batch: self, message: self.messages[index] }
    }

    /// All of them, in offset order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = MessageRef<'_>> {
        self.messages.iter().map(|&message| MessageRef { batch: self, message })
    }
}

impl std::fmt::Debug for Batch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Batch({}, {} messages)", self.at, self.len())
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        if self.client.check_process().is_err() {
            return; // A batch of the parent's: its buffers belong to threads that are not here.
        }
        for &message in &self.messages {
            // SAFETY: the message is ours and its client alive.
            unsafe { ffi::rd_kafka_message_destroy(message) };
        }
    }
}

/// A message that is in no batch. It is freed by being put into one: its owner must not drop it otherwise.
#[derive(Debug)]
pub struct Loose(*mut ffi::rd_kafka_message_t);

// SAFETY: a fetched message is not tied to a thread.
unsafe impl Send for Loose {}

impl Loose {
    /// Returns its offset.
    pub fn offset(&self) -> i64 {
        // SAFETY: the message is ours as long as this lives.
        unsafe { (*self.0).offset }
    }

    /// Returns the epoch of the leader that wrote it; -1 if unknown.
    pub fn leader_epoch(&self) -> i32 {
        // SAFETY: as above.
        unsafe { ffi::rd_kafka_message_leader_epoch(self.0) }
    }

    /// The last header of this name.
    pub fn header(&self, name: &CStr) -> Option<&[u8]> {
        let mut headers = std::ptr::null_mut();
        let (mut value, mut size) = (std::ptr::null(), 0);
        // SAFETY: as above; no other thread has the message, so its headers may be parsed. They live as long as it.
        unsafe {
            if Code::of(ffi::rd_kafka_message_headers(self.0, &raw mut headers)) != Code::NONE {
                return None;
            }
            let code = ffi::rd_kafka_header_get_last(headers, name.as_ptr(), &raw mut value, &raw mut size);
            (Code::of(code) == Code::NONE).then(|| bytes_of(value.cast(), size)).flatten()
        }
    }

    /// Returns its key.
    pub fn key(&self) -> Option<&[u8]> {
        // SAFETY: as above; librdkafka gives a pointer and its length.
        unsafe { bytes_of((*self.0).key.cast(), (*self.0).key_len) }
    }
}

/// One message of a batch.
#[derive(Clone, Copy)]
pub struct MessageRef<'a> {
    batch: &'a Batch,
    message: *const ffi::rd_kafka_message_t,
}

impl<'a> MessageRef<'a> {
    /// The partition that it is from.
    pub fn partition(self) -> i32 {
        self.batch.topic_partition().partition
    }

    /// Its offset.
    #[inline]
    pub fn offset(self) -> i64 {
        // SAFETY: the message lives as long as the batch; so in every method here.
        unsafe { (*self.message).offset }
    }

    /// Its value; `None` for a tombstone.
    #[inline]
    pub fn value(self) -> Option<&'a [u8]> {
        // SAFETY: librdkafka gives a pointer and its length, valid as long as the message.
        unsafe { bytes_of((*self.message).payload.cast(), (*self.message).len) }
    }

    /// Its key; `None` when it has none.
    #[inline]
    pub fn key(self) -> Option<&'a [u8]> {
        // SAFETY: as for the value.
        unsafe { bytes_of((*self.message).key.cast(), (*self.message).key_len) }
    }

    /// Of key, value and headers together.
    pub fn size_bytes(self) -> usize {
        // SAFETY: the message is alive.
        unsafe { awoke_message_bytes(self.message) }
    }

    /// Milliseconds since 1970, and what they mean; -1 when unknown.
    pub fn timestamp(self) -> (i64, TimestampKind) {
        let mut kind = ffi::rd_kafka_timestamp_type_t::RD_KAFKA_TIMESTAMP_NOT_AVAILABLE;
        // SAFETY: the message is alive, `kind` on our stack.
        let timestamp = unsafe { ffi::rd_kafka_message_timestamp(self.message, &raw mut kind) };
        let kind = match kind {
            ffi::rd_kafka_timestamp_type_t::RD_KAFKA_TIMESTAMP_NOT_AVAILABLE => TimestampKind::Unknown,
            ffi::rd_kafka_timestamp_type_t::RD_KAFKA_TIMESTAMP_CREATE_TIME => TimestampKind::Created,
            ffi::rd_kafka_timestamp_type_t::RD_KAFKA_TIMESTAMP_LOG_APPEND_TIME => TimestampKind::Appended,
        };
        (timestamp, kind)
    }

    /// The epoch of the leader that served it; -1 when unknown.
    pub fn leader_epoch(self) -> i32 {
        // SAFETY: the message is alive.
        unsafe { ffi::rd_kafka_message_leader_epoch(self.message) }
    }

    /// Its headers in order; a header may have no value, and a name may come more than once.
    pub fn headers(self) -> Vec<(Cow<'a, str>, Option<&'a [u8]>)> {
        let _parsing = self.batch.headers.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the message is alive, and no other thread parses its headers.
        unsafe { headers_of(self.message) }
    }
}

/// # Safety
/// `message` is a fetched message that lives for `'a`, and no other thread reads its headers for the first time.
unsafe fn headers_of<'a>(message: *const ffi::rd_kafka_message_t) -> Vec<(Cow<'a, str>, Option<&'a [u8]>)> {
    let mut headers = std::ptr::null_mut();
    // SAFETY: the headers belong to the message and live as long; names end in zero, values have their length.
    unsafe {
        if Code::of(ffi::rd_kafka_message_headers(message, &raw mut headers)) != Code::NONE {
            return Vec::new();
        }
        let mut found = Vec::with_capacity(ffi::rd_kafka_header_cnt(headers));
        let (mut name, mut value, mut size) = (std::ptr::null(), std::ptr::null(), 0);
        while Code::of(ffi::rd_kafka_header_get_all(headers, found.len(), &raw mut name, &raw mut value, &raw mut size))
            == Code::NONE
        {
            found.push((CStr::from_ptr(name).to_string_lossy(), bytes_of(value.cast(), size)));
        }
        found
    }
}

/// # Safety
/// `start` is null or points to `size` bytes that live for `'a`.
#[inline]
unsafe fn bytes_of<'a>(start: *const u8, size: usize) -> Option<&'a [u8]> {
    // SAFETY: the caller's promise.
    (!start.is_null()).then(|| unsafe { std::slice::from_raw_parts(start, size) })
}

impl Fetched<'_> {
    /// # Safety
    /// `message` is a fetched message that lives as long as the returned value, and no other thread reads its headers.
    pub(super) unsafe fn of(message: *const ffi::rd_kafka_message_t) -> Self {
        // SAFETY: the caller's promise.
        unsafe {
            let value = bytes_of((*message).payload.cast(), (*message).len).unwrap_or_default();
            let headers = headers_of(message).into_iter();
            let headers = headers.map(|(name, value)| (name, Cow::Borrowed(value.unwrap_or_default())));
            Self { value: Cow::Borrowed(value), headers: headers.collect() }
        }
    }
}
