//! An event loop serves a queue itself while its tasks wait for answers from it: no other thread has to wake first.
//!
//! A queue has a thread of its own, which would serve it, post a token to the loop's mailbox, and so wake the loop:
//! two wake-ups for one answer. While a task waits, the queue tells the loop's mailbox instead, and the loop serves the
//! queue when it takes its tokens. The loop may be busy with user code meanwhile. So the thread *watches*: it wakes,
//! too, and serves what the loop has not served within `LATE`. It wakes once for all that comes in that time. It waits
//! twice as long after each watch in which the loop has served all, up to `TRUST_MAX`: beside a loop that is in time it
//! is seldom woken. After a watch in which the loop has not, it waits for `LATE` again.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use crate::sync::{Mutex, lock};
use crate::{EventFd, Mailbox, Notifier};

/// The time after which the queue's thread serves what a loop has not that was late before, or is new.
pub const LATE: Duration = Duration::from_millis(2);

/// The longest time after which the queue's thread serves what a loop has not that was in time before.
pub const TRUST_MAX: Duration = Duration::from_millis(32);

/// A queue that any thread can serve.
pub trait Served: Send + Sync {
    /// Serves what is there for an event loop that was told, if no other thread serves the queue. Does not wait for
    /// more.
    fn serve_now(&self);
}

/// The event loop that serves a queue, if tasks of one wait.
#[derive(Debug)]
pub struct LoopService<B = EventFd> {
    /// Taken under the queue's lock; no function of the queue is called under it.
    state: Mutex<State<B>>,
}

#[derive(Debug)]
struct State<B> {
    waits: usize,
    /// Weak: a loop that ends must not be kept by a wait that it has left behind.
    of_loop: Option<Serving<B>>,
    /// The thread is awake, or about to be, because the loop was told of something.
    is_watching: bool,
    /// The loop has served what it was told of last.
    has_served: bool,
    /// The length of the next watch.
    trust: Duration,
}

/// The mailbox of an event loop, and the queue that it serves.
type Serving<B> = (Weak<Mailbox<u64, B>>, Weak<dyn Served>);

impl<B> Default for LoopService<B> {
    fn default() -> Self {
        let state = State { waits: 0, of_loop: None, is_watching: false, has_served: false, trust: LATE };
        Self { state: Mutex::new(state) }
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
        let mut state = lock(&self.state);
        let told = state.of_loop.as_ref().and_then(|(mailbox, served)| {
            let mailbox = mailbox.upgrade()?;
            Some((mailbox, Weak::clone(served)))
        });
        let Some((mailbox, served)) = told else {
            state.is_watching = false; // The thread serves at once, also in the midst of a watch.
            return true;
        };
        let begins = !std::mem::replace(&mut state.is_watching, true);
        state.has_served = false;
        drop(state);
        mailbox.ask_to_serve(served);
        begins
    }

    /// Notes that the loop serves. Does not block.
    pub fn note_served(&self) {
        lock(&self.state).has_served = true;
    }

    /// Returns whether the thread, which is awake, has to leave the queue to the loop until `serve_at`, which it sets.
    pub fn is_early(&self, serve_at: &mut Option<Instant>, now: Instant) -> bool {
        let mut state = lock(&self.state);
        if state.is_watching {
            let at = *serve_at.get_or_insert(now + state.trust);
            if now < at {
                return true;
            }
            state.trust = if state.has_served { (state.trust * 2).min(TRUST_MAX) } else { LATE };
            // Before the thread serves: what comes from here on wakes it again.
            state.is_watching = false;
        }
        *serve_at = None;
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
        assert!(service.tell());
        assert!(!service.is_early(&mut None, Instant::now()));
    }

    /// Returns for how long the thread leaves to the loop what it is told of now.
    fn watched(service: &LoopService<EventFd>, does_loop_serve: bool) -> Duration {
        assert!(service.tell());
        if does_loop_serve {
            service.note_served();
        }
        let (now, mut serve_at) = (Instant::now(), None);
        assert!(service.is_early(&mut serve_at, now));
        let until = serve_at.expect("it watches");
        assert!(!service.is_early(&mut serve_at, until));
        until - now
    }

    #[test]
    fn a_loop_that_serves_in_time_is_watched_less_often_until_it_is_late() {
        let (service, queue, mailbox) = (LoopService::default(), Arc::new(Queue::default()), mailbox());
        service.begin(&mailbox, weak(&queue));
        let lengths: Vec<_> = (0..6).map(|_| watched(&service, true)).collect();
        assert_eq!(lengths, [LATE, LATE * 2, LATE * 4, LATE * 8, TRUST_MAX, TRUST_MAX]);
        assert_eq!(watched(&service, false), TRUST_MAX);
        assert_eq!(watched(&service, true), LATE);
    }

    #[test]
    fn a_loop_that_serves_once_and_is_busy_then_is_late() {
        let (service, queue, mailbox) = (LoopService::default(), Arc::new(Queue::default()), mailbox());
        service.begin(&mailbox, weak(&queue));
        assert_eq!([watched(&service, true), watched(&service, true)], [LATE, LATE * 2]);
        assert!(service.tell());
        service.note_served();
        assert!(!service.tell());
        let (now, mut serve_at) = (Instant::now(), None);
        assert!(service.is_early(&mut serve_at, now));
        assert!(!service.is_early(&mut serve_at, now + LATE * 4));
        assert_eq!(watched(&service, true), LATE);
    }

    #[test]
    fn what_comes_between_two_waits_wakes_no_thread_a_second_time() {
        let (service, queue, mailbox) = (LoopService::default(), Arc::new(Queue::default()), mailbox());
        service.begin(&mailbox, weak(&queue));
        assert!(service.tell());
        service.note_served();
        assert!(service.end());
        let (now, mut serve_at) = (Instant::now(), None);
        assert!(service.is_early(&mut serve_at, now), "the wait was served; the next one begins soon");
        service.begin(&mailbox, weak(&queue));
        assert!(!service.tell());
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
