//! The parts of a client that no property sets.

use std::any::TypeId;
use std::ffi::{c_int, c_void};
use std::sync::Arc;

use super::linger::{Linger, note_partition};
use super::sender::deliver_to;
use super::{EndTxns, Reported, ffi};

/// librdkafka's type of a delivery callback.
pub(crate) type Deliverer = unsafe extern "C" fn(*mut ffi::rd_kafka_t, *const ffi::rd_kafka_message_t, *mut c_void);

/// The parts of a client that no property sets. By default it has none of them.
#[derive(Default)]
pub struct ClientOptions {
    /// The callback, and the type that it hands reports to.
    deliverer: Option<(Deliverer, TypeId)>,
    /// librdkafka's mask of events.
    events: c_int,
    end_txns: Option<Arc<EndTxns>>,
    /// Tells a message its partition.
    note_partition: Option<unsafe fn(*const c_void, i32)>,
    crowd: Option<u32>,
}

impl ClientOptions {
    /// Has delivery reports handed to messages' `R`, by the thread that serves the reports of the client.
    #[must_use]
    pub fn with_reports_to<R: Reported>(mut self) -> Self {
        self.deliverer = Some((deliver_to::<R>, TypeId::of::<R>()));
        self.note_partition = Some(note_partition::<R>);
        self
    }

    /// Has rebalances and the answers to commits put into the consumer's queue.
    #[must_use]
    pub const fn with_group_events(mut self) -> Self {
        self.events |= ffi::RD_KAFKA_EVENT_REBALANCE | ffi::RD_KAFKA_EVENT_OFFSET_COMMIT;
        self
    }

    /// Has errors put into the client's queue.
    #[must_use]
    pub const fn with_errors(mut self) -> Self {
        self.events |= ffi::RD_KAFKA_EVENT_ERROR;
        self
    }

    /// Has the requests that end a transaction counted. The client keeps the counts.
    #[must_use]
    pub fn with_counts(mut self, end_txns: Arc<EndTxns>) -> Self {
        self.end_txns = Some(end_txns);
        self
    }

    /// Has messages linger only while more than `messages` of the client have no report.
    #[must_use]
    pub const fn with_crowd(mut self, messages: u32) -> Self {
        self.crowd = Some(messages);
        self
    }

    /// Returns which messages do not linger.
    pub(super) fn linger(&self) -> Linger {
        Linger::new(self.crowd, self.note_partition)
    }

    /// Returns whether the client has interceptors.
    pub(crate) const fn has_interceptors(&self) -> bool {
        self.end_txns.is_some()
    }

    /// Returns the type that takes delivery reports.
    pub(crate) fn reported(&self) -> Option<TypeId> {
        self.deliverer.map(|(_, reported)| reported)
    }

    /// Sets the options on a configuration. Returns the counts, which must live as long as its client.
    ///
    /// # Safety
    /// The configuration is valid.
    pub(crate) unsafe fn prepare(self, conf: *mut ffi::rd_kafka_conf_t) -> Option<Arc<EndTxns>> {
        // SAFETY: the caller's promise, also about the counts.
        unsafe {
            if let Some((deliverer, _)) = self.deliverer {
                ffi::rd_kafka_conf_set_dr_msg_cb(conf, Some(deliverer));
            }
            if self.events != 0 {
                ffi::rd_kafka_conf_set_events(conf, self.events);
            }
            if let Some(end_txns) = &self.end_txns {
                end_txns.listen(conf);
            }
        }
        self.end_txns
    }
}
