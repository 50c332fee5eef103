//! The end of a call whose last reply was sent: with its acknowledgement, or because it is refused.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use crate::Error;
use crate::consume::Job;
use crate::events::{Event, EventBox, What};
use crate::kafka::TopicPartition;
use crate::produce::{Delivery, DeliveryHandle};
use crate::wake::{Listener, Waker};

/// A call whose last reply was sent.
pub struct ReplySent {
    /// The job that brought it; `None` where its offset has been committed before.
    pub job: Option<Job>,
    /// Where it stands.
    pub at: TopicPartition,
    /// Its offset.
    pub offset: i64,
    /// It is executed again after so long when its reply is refused, but not for good.
    pub delay: Duration,
    /// Who answers.
    pub client: Arc<str>,
    /// Where a reply that is refused for good is told.
    pub events: Arc<EventBox>,
}

/// Waits for the acknowledgement.
struct Watch {
    sent: Mutex<Option<ReplySent>>,
    /// Weak: the handle holds this until it has its result.
    delivery: Weak<DeliveryHandle>,
}

impl ReplySent {
    /// Ends the job when the reply is acknowledged or refused for good. Does not block.
    pub fn watch(mut self, delivery: &Arc<DeliveryHandle>) {
        if let Some(job) = &mut self.job {
            job.step_aside(true);
        }
        let watch = Watch { sent: Mutex::new(Some(self)), delivery: Arc::downgrade(delivery) };
        let waker = Waker::Listener { listener: Arc::new(watch), token: 0 };
        if !delivery.completion().register(waker.clone()) {
            waker.wake();
        }
    }

    fn end(self, result: Option<&crate::Result<Delivery>>) {
        let refusal = match result {
            Some(Err(Error::Kafka { code, .. })) if code.is_refused_for_good() => Some(code),
            _ => None,
        };
        let is_over = refusal.is_some() || matches!(result, Some(Ok(_)));
        if let Some(mut job) = self.job {
            if is_over {
                // Of an assignment that has ended there is nothing to say.
                drop(job.complete());
            } else {
                job.retry(self.delay);
            }
        }
        if let Some(code) = refusal {
            let what = What::ReplyRefused { at: self.at, offset: self.offset, code: *code };
            self.events.post(Event { client: self.client, what });
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
        let sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner).take();
        let result = self.delivery.upgrade().and_then(|delivery| delivery.result());
        if let Some(sent) = sent {
            sent.end(result.as_ref());
        }
    }
}
