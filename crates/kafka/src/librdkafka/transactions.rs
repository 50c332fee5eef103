//! librdkafka's calls for transactions, with the kinds of failure that it tells apart. All but `begin` block.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::{AccessFailure, Client, Code, Failure, Limit, TopicPartitionList, ffi, text_of};

/// The identity of a consumer in its group just now: brokers refuse offsets of a member that the group has left behind.
pub struct GroupMetadata(*mut ffi::rd_kafka_consumer_group_metadata_t);

impl GroupMetadata {
    /// Of a consumer; `None` when it is no member of a group.
    pub fn of(consumer: &Client) -> Option<Self> {
        // SAFETY: the handle is alive; what is returned is ours.
        let metadata = unsafe { ffi::rd_kafka_consumer_group_metadata(consumer.handle()) };
        (!metadata.is_null()).then_some(Self(metadata))
    }
}

impl Drop for GroupMetadata {
    fn drop(&mut self) {
        // SAFETY: it is ours.
        unsafe { ffi::rd_kafka_consumer_group_metadata_destroy(self.0) };
    }
}

impl Client {
    /// Takes the transactional id: older producers of it are fenced, their open transaction ended.
    pub fn init_transactions(&self, limit: Limit<'_>) -> std::result::Result<(), Failure> {
        // SAFETY: the handle is alive.
        insist(self, limit, |timeout_ms| unsafe { ffi::rd_kafka_init_transactions(self.handle(), timeout_ms) })
    }

    /// Begins a transaction. Does not block.
    pub fn begin_transaction(&self) -> std::result::Result<(), Failure> {
        // SAFETY: the handle is alive; the error is ours.
        unsafe { outcome(ffi::rd_kafka_begin_transaction(self.handle())) }
    }

    /// Makes these positions of the group a part of the transaction.
    pub fn send_offsets(
        &self,
        positions: &TopicPartitionList,
        group: &GroupMetadata,
        limit: Limit<'_>,
    ) -> std::result::Result<(), Failure> {
        // SAFETY: handle, list and metadata are alive; librdkafka copies both.
        insist(self, limit, |timeout_ms| unsafe {
            ffi::rd_kafka_send_offsets_to_transaction(self.handle(), positions.as_ptr(), group.0, timeout_ms)
        })
    }

    /// Commits.
    pub fn commit_transaction(&self, limit: Limit<'_>) -> std::result::Result<(), Failure> {
        // SAFETY: the handle is alive.
        insist(self, limit, |timeout_ms| unsafe { ffi::rd_kafka_commit_transaction(self.handle(), timeout_ms) })
    }

    /// Aborts; messages that wait fail.
    pub fn abort_transaction(&self, limit: Limit<'_>) -> std::result::Result<(), Failure> {
        // SAFETY: the handle is alive.
        insist(self, limit, |timeout_ms| unsafe { ffi::rd_kafka_abort_transaction(self.handle(), timeout_ms) })
    }
}

/// The longest call before the end of its limit is noticed; librdkafka goes on with it in the next call.
const SLICE: Duration = Duration::from_millis(250);

impl Limit<'_> {
    fn has_passed(self) -> bool {
        self.deadline.has_passed() || self.is_over.load(Ordering::Acquire)
    }
}

/// Makes a call again while librdkafka wants it made again. It ends at its deadline, when it is cancelled, or when the
/// brokers cannot let the client in.
fn insist(
    client: &Client,
    limit: Limit<'_>,
    call: impl Fn(i32) -> *mut ffi::rd_kafka_error_t,
) -> std::result::Result<(), Failure> {
    loop {
        let slice = limit.deadline.or_within(Some(SLICE));
        // SAFETY: the error is ours.
        match unsafe { outcome(call(slice.remaining_ms())) } {
            Err(failure) if failure.is_retriable => {
                if let Some(AccessFailure { code, text }) = client.access_failure() {
                    return Err(Failure { code, text, ..failure });
                }
                if limit.has_passed() {
                    return Err(failure);
                }
            }
            other => return other,
        }
    }
}

/// # Safety
/// `error` is null or an error that is ours to destroy.
unsafe fn outcome(error: *mut ffi::rd_kafka_error_t) -> std::result::Result<(), Failure> {
    if error.is_null() {
        return Ok(());
    }
    // SAFETY: the caller's promise.
    unsafe {
        let failure = Failure {
            code: Code::of(ffi::rd_kafka_error_code(error)),
            text: text_of(ffi::rd_kafka_error_string(error)),
            is_fatal: ffi::rd_kafka_error_is_fatal(error) != 0,
            is_retriable: ffi::rd_kafka_error_is_retriable(error) != 0,
        };
        ffi::rd_kafka_error_destroy(error);
        Err(failure)
    }
}
