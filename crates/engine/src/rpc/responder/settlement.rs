//! The end of a call: its last reply is acknowledged or refused for good, or the call is executed again.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::incoming_call::Service;
use super::stage::{Stage, Step, advance};
use crate::Error;
use crate::consume::{Job, JobEnd};
use crate::events::{Event, What};
use crate::kafka::TopicPartition;
use crate::produce::{Delivery, DeliveryHandle};

/// A call whose last reply was sent.
pub(super) struct Settlement {
    /// The partition of the request.
    pub(super) at: TopicPartition,
    /// The offset of the request.
    pub(super) offset: i64,
    /// When the call is executed again if its reply fails, but may succeed later.
    pub(super) delay: Duration,
    /// The receiver of the event of a reply that is refused for good.
    pub(super) service: Arc<Service>,
    /// The call's state.
    pub(super) stage: Arc<Mutex<Stage>>,
}

impl Settlement {
    /// Ends the call and its job when the reply is acknowledged or refused for good. The job is `None` if the call's
    /// offset was committed before its method began. Does not block.
    pub(super) fn when_acknowledged(self, job: Option<Job>, delivery: &Arc<DeliveryHandle>) {
        let weak = Arc::downgrade(delivery);
        let decide = move || self.end(weak.upgrade().and_then(|delivery| delivery.result()).as_ref());
        Job::end_when_done(job, delivery.completion(), decide);
    }

    fn end(self, result: Option<&crate::Result<Delivery>>) -> JobEnd {
        let refused = match result {
            Some(Err(Error::Kafka { code, .. })) if code.is_refused_for_good() => Some(*code),
            _ => None,
        };
        let is_over = refused.is_some() || matches!(result, Some(Ok(_)));
        advance(&self.stage, Step::Settle);
        if let Some(code) = refused {
            let what = What::ReplyRefused { at: self.at, offset: self.offset, code };
            self.service.events.post(Event { client: Arc::clone(&self.service.name), what });
        }
        if is_over { JobEnd::Complete } else { JobEnd::Retry(self.delay) }
    }
}
