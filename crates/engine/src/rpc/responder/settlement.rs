//! The end of a call's job: when its last reply is acknowledged or refused for good.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use super::incoming_call::Service;
use super::stage::{Stage, Step, advance};
use crate::Error;
use crate::consume::Job;
use crate::events::{Event, What};
use crate::kafka::TopicPartition;
use crate::produce::{Delivery, DeliveryHandle};
use crate::wake::{Listener, Waker};

/// A call whose last reply was sent.
pub(super) struct Settlement {
    /// `None` if the call's offset was committed before its method began.
    pub(super) job: Option<Job>,
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

/// Waits for the broker's answer.
struct Watch {
    settlement: Mutex<Option<Settlement>>,
    /// Weak: the handle holds this until it has its result.
    delivery: Weak<DeliveryHandle>,
}

impl Settlement {
    /// Ends the job when the reply is acknowledged or refused for good. Does not block.
    pub(super) fn when_acknowledged(mut self, delivery: &Arc<DeliveryHandle>) {
        if let Some(job) = &mut self.job {
            job.leave_slot(true);
        }
        let watch = Watch { settlement: Mutex::new(Some(self)), delivery: Arc::downgrade(delivery) };
        let waker = Waker::Listener { listener: Arc::new(watch), token: 0 };
        if !delivery.completion().register(waker.clone()) {
            waker.wake();
        }
    }

    fn end(self, result: Option<&crate::Result<Delivery>>) {
        let refused = match result {
            Some(Err(Error::Kafka { code, .. })) if code.is_refused_for_good() => Some(*code),
            _ => None,
        };
        let is_over = refused.is_some() || matches!(result, Some(Ok(_)));
        if let Some(mut job) = self.job {
            if is_over {
                // A job of an assignment that has ended changes nothing.
                drop(job.complete());
            } else {
                job.retry(self.delay);
            }
        }
        advance(&self.stage, Step::Settle);
        if let Some(code) = refused {
            let what = What::ReplyRefused { at: self.at, offset: self.offset, code };
            self.service.events.post(Event { client: Arc::clone(&self.service.name), what });
        }
    }
}

impl std::fmt::Debug for Watch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Watch")
    }
}

impl Listener for Watch {
    fn tell(&self, _token: u64) {
        let settlement = self.settlement.lock().unwrap_or_else(PoisonError::into_inner).take();
        let result = self.delivery.upgrade().and_then(|delivery| delivery.result());
        if let Some(settlement) = settlement {
            settlement.end(result.as_ref());
        }
    }
}
