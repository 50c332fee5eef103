//! An event loop serves a queue itself while its tasks wait for answers from it: no other thread has to wake first.
//!
//! A queue has a thread of its own, which would serve it, post a token to the loop's mailbox, and so wake the loop:
//! two wake-ups for one answer. While a task waits, the queue tells the loop's mailbox instead, and the loop serves the
//! queue when it takes its tokens. The loop may be busy with user code meanwhile. So the thread wakes, too, and serves
//! what the loop has not served within `LATE`. It wakes once for all that comes in that time.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use crate::sync::{AtomicBool, Mutex, lock};
use crate::{EventFd, Mailbox, Notifier};

/// The time after which the queue's thread serves what the loop has not.
pub const LATE: Duration = Duration::from_millis(2);

/// A queue that any thread can serve.
pub trait Served: Send + Sync {
    /// Serves what is there, if no other thread serves the queue. Does not wait for more.
    fn serve_now(&self);
}

/// The event loop that serves a queue, if tasks of one wait.
#[derive(Debug)]
pub struct LoopService<B = EventFd> {
    /// Taken under the queue's lock; no function of the queue is called under it.
    state: Mutex<State<B>>,
    /// The thread is awake, or about to be, because the loop was told of something.
    is_watching: AtomicBool,
}

#[derive(Debug)]
struct State<B> {
    waits: usize,
    /// Weak: a loop that ends must not be kept by a wait that it has left behind.
    of_loop: Option<Serving<B>>,
}

/// The mailbox of an event loop, and the queue that it serves.
type Serving<B> = (Weak<Mailbox<u64, B>>, Weak<dyn Served>);

impl<B> Default for LoopService<B> {
    fn default() -> Self {
        Self { state: Mutex::new(State { waits: 0, of_loop: None }), is_watching: AtomicBool::new(false) }
    }
}

impl<B: Notifier> LoopService<B> {
    /// Begins a wait of a task. The loop of the first one serves; tasks of other loops are told by it. Does not block.
    pub fn begin(&self, mailbox: &Arc<Mailbox<u64, B>>, served: Weak<dyn Served>) {
        let mut state = lock(&self.state);
        state.waits += 1;
        if state.of_loop.as_ref().is_none_or(|(mailbox, _)| mailbox.strong_count() == 0) {
            state.of_loop = Some((Arc::downgrade(mailbox), served));
        }
    }

    /// Ends a wait of a task. Returns whether it was the last: the thread then has to serve what is there. Does not
    /// block.
    pub fn end(&self) -> bool {
        let mut state = lock(&self.state);
        state.waits -= 1;
        let is_last = state.waits == 0;
        if is_last {
            state.of_loop = None;
        }
        is_last
    }

    /// Tells the loop that there is something to serve. Returns whether to wake the queue's thread. Called when the
    /// queue turns non-empty, or has lost its leader and is not empty. Does not block.
    pub fn tell(&self) -> bool {
        let told = lock(&self.state).of_loop.as_ref().and_then(|(mailbox, served)| {
            let mailbox = mailbox.upgrade()?;
            Some((mailbox, Weak::clone(served)))
        });
        let Some((mailbox, served)) = told else { return true };
        mailbox.ask_to_serve(served);
        !self.is_watching.swap(true, Ordering::SeqCst)
    }

    /// Returns whether the thread, which is awake, has to leave the queue to the loop until `serve_at`, which it sets.
    pub fn is_early(&self, serve_at: &mut Option<Instant>, now: Instant) -> bool {
        if self.is_watching.load(Ordering::SeqCst) && lock(&self.state).of_loop.is_some() {
            let at = *serve_at.get_or_insert(now + LATE);
            if now < at {
                return true;
            }
        }
        *serve_at = None;
        // Before the thread serves: what comes from here on wakes it again.
        self.is_watching.store(false, Ordering::SeqCst);
        false
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;
    use crate::counters::Counter;

    #[derive(Default)]
    struct Queue(Counter);

    impl Served for Queue {
        fn serve_now(&self) {
            self.0.increment();
        }
    }

    fn mailbox() -> Arc<Mailbox<u64, EventFd>> {
        Arc::new(Mailbox::new(EventFd::new().expect("a descriptor")))
    }

    fn weak(queue: &Arc<Queue>) -> Weak<dyn Served> {
        let queue: Weak<Queue> = Arc::downgrade(queue);
        queue
    }

    #[test]
    fn without_a_wait_the_thread_serves() {
        let service = LoopService::<EventFd>::default();
        let mut serve_at = None;
        assert!(service.tell());
        assert!(!service.is_early(&mut serve_at, Instant::now()));
    }

    #[test]
    fn the_loop_of_a_wait_serves_and_the_thread_is_woken_once() {
        let (service, queue, mailbox) = (LoopService::default(), Arc::new(Queue::default()), mailbox());
        service.begin(&mailbox, weak(&queue));
        assert!(service.tell());
        assert!(!service.tell());
        assert!(mailbox.drain().is_empty());
        assert_eq!(queue.0.get(), 1, "asked for twice, the queue is served once");
    }

    #[test]
    fn the_thread_serves_what_a_loop_has_not_in_time() {
        let (service, queue, mailbox) = (LoopService::default(), Arc::new(Queue::default()), mailbox());
        service.begin(&mailbox, weak(&queue));
        service.tell();
        let (now, mut serve_at) = (Instant::now(), None);
        assert!(service.is_early(&mut serve_at, now));
        assert!(service.is_early(&mut serve_at, now + LATE / 2));
        assert!(!service.is_early(&mut serve_at, now + LATE));
        assert_eq!(serve_at, None);
        assert!(service.tell(), "what comes next wakes it again");
    }

    #[test]
    fn with_its_last_wait_the_loop_leaves_the_queue_to_the_thread() {
        let (service, queue, mailbox) = (LoopService::default(), Arc::new(Queue::default()), mailbox());
        service.begin(&mailbox, weak(&queue));
        service.begin(&mailbox, weak(&queue));
        assert!(!service.end());
        service.tell();
        assert!(service.end());
        assert!(!service.is_early(&mut None, Instant::now()));
    }

    #[test]
    fn a_loop_that_has_gone_leaves_its_place_to_another() {
        let (service, queue) = (LoopService::default(), Arc::new(Queue::default()));
        let (gone, other) = (mailbox(), mailbox());
        service.begin(&gone, weak(&queue));
        drop(gone);
        assert!(service.tell(), "nothing serves in its place");
        service.begin(&other, weak(&queue));
        service.tell();
        other.drain();
        assert_eq!(queue.0.get(), 1);
    }
}
