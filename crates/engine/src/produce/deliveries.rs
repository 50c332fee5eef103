//! The answers to several messages, as one: they cost one wake-up, however many messages there are.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use super::DeliveryHandle;
use crate::wake::{Completion, Listener, Waker};

/// Messages that were sent, in order, each with what their sender keeps of it.
#[derive(Debug)]
pub struct Deliveries<K> {
    sent: Mutex<Vec<(Arc<DeliveryHandle>, K)>>,
    answers: OnceLock<Arc<Answers>>,
}

impl<K> Default for Deliveries<K> {
    fn default() -> Self {
        Self { sent: Mutex::default(), answers: OnceLock::new() }
    }
}

impl<K> Deliveries<K> {
    fn sent(&self) -> MutexGuard<'_, Vec<(Arc<DeliveryHandle>, K)>> {
        self.sent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a message that was sent.
    pub fn push(&self, handle: Arc<DeliveryHandle>, kept: K) {
        self.sent().push((handle, kept));
    }

    /// Returns the number of messages.
    pub fn len(&self) -> usize {
        self.sent().len()
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.sent().is_empty()
    }

    /// Takes all out, in order.
    pub fn take(&self) -> Vec<(Arc<DeliveryHandle>, K)> {
        std::mem::take(&mut *self.sent())
    }

    /// Returns the handles, in order.
    pub fn handles(&self) -> Vec<Arc<DeliveryHandle>> {
        self.sent().iter().map(|(handle, _)| Arc::clone(handle)).collect()
    }

    /// Returns whether all messages are delivered. Does not block.
    pub fn are_delivered(&self) -> bool {
        self.sent().iter().all(|(handle, _)| is_delivered(handle))
    }

    /// Returns what is completed when all messages are answered. No message may be added after the first call. Does
    /// not block, and ends no linger.
    pub fn completion(&self) -> &Completion<()> {
        &self.answers.get_or_init(|| Answers::new(&self.handles())).completion
    }
}

/// Returns whether all of these messages are delivered. Does not block.
pub(crate) fn are_delivered(handles: &[Arc<DeliveryHandle>]) -> bool {
    handles.iter().all(|handle| is_delivered(handle))
}

fn is_delivered(handle: &DeliveryHandle) -> bool {
    matches!(handle.completion().get(), Some(Ok(_)))
}

/// Counts answers.
#[derive(Debug)]
struct Answers {
    /// Messages without an answer, and one more until all are listened to.
    missing: AtomicUsize,
    completion: Completion<()>,
}

impl Answers {
    fn new(handles: &[Arc<DeliveryHandle>]) -> Arc<Self> {
        let answers =
            Arc::new(Self { missing: AtomicUsize::new(handles.len() + 1), completion: Completion::default() });
        for handle in handles {
            let listener: Arc<dyn Listener> = Arc::<Self>::clone(&answers);
            if !handle.completion().register(Waker::Listener { listener, token: 0 }) {
                answers.count();
            }
        }
        answers.count();
        answers
    }

    fn count(&self) {
        if self.missing.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.completion.complete(());
        }
    }
}

impl Listener for Answers {
    fn tell(&self, _token: u64) {
        self.count();
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use std::sync::Weak;
    use std::time::Duration;

    use super::super::delivery_handle::Destination;
    use super::*;
    use crate::fork_guard::ForkGuard;
    use crate::kafka::{Code, Delivery};

    fn handles(count: usize) -> Vec<Arc<DeliveryHandle>> {
        let destination = Arc::new(Destination {
            topic: "orders".into(),
            reports: Weak::new(),
            sender: Weak::new(),
            refused: Mutex::default(),
            answer_timeout: None,
        });
        let birthplace = ForkGuard::new("test").birthplace();
        let handle = || Arc::new(DeliveryHandle::new(Arc::clone(&destination), 1, birthplace));
        (0..count).map(|_| handle()).collect()
    }

    const DELIVERED: Delivery = Delivery { partition: 0, offset: 0, has_answer: true, timestamp_ms: 0 };

    fn deliveries(handles: &[Arc<DeliveryHandle>]) -> Deliveries<usize> {
        let deliveries = Deliveries::default();
        for (place, handle) in handles.iter().enumerate() {
            deliveries.push(Arc::clone(handle), place);
        }
        deliveries
    }

    #[test]
    fn the_last_answer_completes_them() {
        let handles = handles(3);
        handles[1].complete(Ok(DELIVERED));
        let deliveries = deliveries(&handles);
        handles[0].complete(Ok(DELIVERED));
        assert!(!deliveries.completion().is_done() && !deliveries.are_delivered());
        handles[2].complete(Ok(DELIVERED));
        assert!(deliveries.completion().is_done() && deliveries.are_delivered());
    }

    #[test]
    fn a_refused_message_is_answered_and_not_delivered() {
        let handles = handles(2);
        let deliveries = deliveries(&handles);
        handles[0].complete(Ok(DELIVERED));
        handles[1].complete(Err(Code::MESSAGE_TOO_LARGE));
        assert!(deliveries.completion().is_done() && !deliveries.are_delivered());
    }

    #[test]
    fn without_messages_they_are_complete_at_once() {
        assert!(deliveries(&[]).completion().is_done());
    }

    #[test]
    fn a_wait_lasts_as_long_as_the_settings_say_or_as_the_handle_was_told() {
        let handle = &handles(1)[0];
        assert_eq!(handle.wait_max(), None);
        handle.limit_wait(Duration::from_micros(1));
        assert_eq!(handle.wait_max(), Some(Duration::from_millis(1)), "less would be no limit");
        handle.limit_wait(Duration::from_secs(2));
        assert_eq!(handle.wait_max(), Some(Duration::from_secs(2)));
    }

    #[test]
    fn they_are_taken_out_in_order_once() {
        let deliveries = deliveries(&handles(2));
        assert_eq!(deliveries.len(), 2);
        assert_eq!(deliveries.take().into_iter().map(|(_, place)| place).collect::<Vec<_>>(), [0, 1]);
        assert!(deliveries.is_empty());
    }
}
