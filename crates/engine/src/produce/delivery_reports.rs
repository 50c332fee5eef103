//! Delivery reports are served by a thread that waits for one, or else by the report thread; a thread that flushes
//! helps.
//!
//! A thread that waits for its handle becomes the leader if there is none. It flushes (or polls, where messages do not
//! linger), which makes librdkafka send without lingering, and it runs librdkafka's delivery callback itself when its
//! own report comes. It also serves the reports of the followers, and hands the leadership to one of them at the end.
//!
//! The report thread's loop:
//! 1. Wait until librdkafka's queue turns non-empty while there is no leader, or a waiter comes that cannot lead (an
//!    event loop, a wait for many handles).
//! 2. Lead: flush for those who have begun to wait; then serve the reports that are there.
//! 3. End when the producer is closed.
//!
//! Each report completes its handle, which wakes the waiters; the budget of all reports of a poll is released at once.

use std::cell::Cell;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::idle::{Idle, IdleWatch};
use super::{Budget, DeliveryHandle, Report};
use crate::Error;
use crate::clock::Deadline;
use crate::kafka::{AccessFailure, Client, Code, Queue, Reported};
use crate::wake::{Leadership, Parker, Place};

thread_local! {
    /// Messages and bytes that were reported during this thread's present poll.
    static REPORTED: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
    /// The handle for which this thread, as the leader, serves reports.
    static SERVED_FOR: Cell<*const DeliveryHandle> = const { Cell::new(ptr::null()) };
}

/// The longest flush for a new waiter: in that time librdkafka's threads have checked their queues, and sent the
/// messages there. Messages that others send meanwhile do not linger either, and go in smaller batches.
const FLUSH_MS: i32 = 1;

/// The time for which a thread flushes beside a leader before it checks whether the leader's poll has to end.
const BESIDE: Duration = Duration::from_millis(20);

/// The number of times that a new producer asks for the brokers, and the longest wait for an answer.
const PREFETCH_TRIES: usize = 5;
const PREFETCH_TIMEOUT: Duration = Duration::from_millis(200);

/// The distance from the first flush to the second; it doubles.
const FLUSH_AGAIN: Duration = Duration::from_millis(2);

/// When a waiter has librdkafka send lingering messages: at once, and, because a broker may not have been up then, at
/// growing distances for as long as messages linger at all.
#[derive(Clone, Copy, Debug)]
pub(super) struct FlushSchedule {
    next: Option<Instant>,
    distance: Duration,
    until: Instant,
}

impl Default for FlushSchedule {
    fn default() -> Self {
        Self::new(Duration::ZERO)
    }
}

impl FlushSchedule {
    fn new(linger: Duration) -> Self {
        let now = Instant::now();
        Self { next: (!linger.is_zero()).then_some(now), distance: FLUSH_AGAIN, until: now + linger }
    }

    /// Returns whether it is time, and sets the next time then.
    fn is_due(&mut self) -> bool {
        let now = Instant::now();
        if self.next.is_none_or(|next| now < next) {
            return false;
        }
        self.next = Some(now + self.distance).filter(|next| *next < self.until);
        self.distance *= 2;
        true
    }
}

/// The threads that serve the queue. The queue's listener has a part in it.
#[derive(Default)]
struct Serving {
    /// The thread that serves the queue. Asked under the queue's lock; no function of librdkafka's is called under this
    /// one.
    leadership: Leadership,
    /// Where the report thread waits.
    parker: Parker,
    /// Messages whose reports are awaited.
    awaited: AtomicUsize,
    /// The report thread has set a time for reports that are not awaited.
    is_coalescing: AtomicBool,
}

impl Serving {
    /// Wakes the report thread, unless it expects the report or a thread leads. Called by the client's threads, under
    /// the queue's lock.
    fn on_non_empty(&self) {
        let is_expected = self.is_coalescing.load(Ordering::SeqCst) && self.awaited.load(Ordering::SeqCst) == 0;
        if !is_expected && !self.leadership.is_led() {
            self.parker.unpark();
        }
    }
}

/// The reports of a connection, which the report thread, senders and handles share.
pub struct Reports {
    client: Arc<Client>,
    queue: Queue,
    budget: Arc<Budget>,
    serving: Arc<Serving>,
    /// A waiter came since the leader last began to serve.
    is_flush_requested: AtomicBool,
    /// The leader waits for a handle of its own.
    is_for_one: AtomicBool,
    /// Another thread served the report that the leader waits for, so the leader's poll must end. A third thread's poll
    /// may have consumed the interrupt.
    interrupt_pending: AtomicBool,
    is_closing: AtomicBool,
    /// The time for which messages linger; 0 if they do not, and need no flush.
    linger: Duration,
    /// The time for which reports that are not awaited may wait, so that several are served at once.
    report_coalescing: Duration,
    /// True if messages are sent only after a broker has given the producer an id.
    is_idempotent: bool,
    /// Counts records; wraps around.
    sent: AtomicU32,
    /// Counts messages that failed; wraps around.
    failed: AtomicU32,
    /// Why the last one failed.
    last_failure: Mutex<Option<Error>>,
}

impl Reports {
    pub(super) fn new(
        client: Arc<Client>,
        budget: Arc<Budget>,
        linger: Duration,
        report_coalescing: Duration,
        is_idempotent: bool,
    ) -> Arc<Self> {
        let queue = Queue::main(&client);
        let reports = Arc::new(Self {
            client,
            queue,
            budget,
            serving: Arc::default(),
            is_flush_requested: AtomicBool::new(false),
            is_for_one: AtomicBool::new(false),
            interrupt_pending: AtomicBool::new(false),
            is_closing: AtomicBool::new(false),
            linger,
            report_coalescing,
            is_idempotent,
            sent: AtomicU32::new(0),
            failed: AtomicU32::new(0),
            last_failure: Mutex::default(),
        });
        let serving = Arc::clone(&reports.serving);
        reports.queue.on_non_empty(move || serving.on_non_empty());
        // An event that was in the queue before, such as a refused connection, would keep it from ever turning
        // non-empty.
        reports.wake_if_needed();
        reports
    }

    /// Counts records that are sent.
    pub(super) fn count_sent(&self, records: u32) {
        self.sent.fetch_add(records, Ordering::Relaxed);
    }

    /// Counts a message that failed with this error.
    pub(super) fn count_failed(&self, error: Error) {
        *self.last_failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        self.failed.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns why the last message failed that did.
    pub(super) fn last_failure(&self) -> Option<Error> {
        self.last_failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns how many messages failed.
    pub(super) fn failed(&self) -> u32 {
        self.failed.load(Ordering::Relaxed)
    }

    /// Counts one more message that is awaited by another than the leader; to be followed by `request_flush`.
    pub(super) fn add_awaited(&self) {
        self.serving.awaited.fetch_add(1, Ordering::AcqRel);
    }

    /// Has awaited messages sent without lingering: once for all that are awaited since the last flush.
    pub(super) fn request_flush(&self) {
        if !self.lingers() {
            if self.serving.is_coalescing.load(Ordering::Acquire) {
                self.serving.parker.unpark();
            }
            return;
        }
        // Set before the leader is looked for: a leader checks it after it has left.
        let was_requested = self.is_flush_requested.swap(true, Ordering::AcqRel);
        if !self.serving.leadership.is_led() {
            self.serving.parker.unpark();
        } else if !was_requested {
            // If the leader flushes, this has the broker threads check for messages that came since; if it waits, it
            // flushes again.
            self.flush(0);
            self.queue.interrupt();
        }
    }

    /// Counts one awaited message less. Returns whether none is awaited.
    pub(super) fn end_awaited(&self) -> bool {
        self.serving.awaited.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// Returns the leadership over the queue.
    pub(super) fn leadership(&self) -> &Leadership {
        &self.serving.leadership
    }

    const fn lingers(&self) -> bool {
        !self.linger.is_zero()
    }

    /// Returns the schedule of a wait that begins now.
    pub(super) fn flush_schedule(&self) -> FlushSchedule {
        FlushSchedule::new(self.linger)
    }

    /// Serves the reports of all waiters until this handle's has come or the time is up; to be called by the leader.
    /// May return early. Blocks the calling thread.
    pub(super) fn serve_for(&self, handle: &DeliveryHandle, schedule: &Cell<FlushSchedule>, deadline: &Deadline) {
        let mut mine = schedule.get();
        if self.is_flush_requested.swap(false, Ordering::AcqRel) {
            mine = self.flush_schedule(); // For a follower.
        }
        let is_due = mine.is_due();
        schedule.set(mine);
        let deadline = deadline.or_earlier(self.check_again_at());
        let left_ms = if is_due { deadline.remaining_ms() } else { deadline.or_earlier(mine.next).remaining_ms() };
        self.interrupt_pending.store(false, Ordering::SeqCst);
        self.is_for_one.store(true, Ordering::SeqCst);
        handle.is_served_for.store(true, Ordering::SeqCst);
        self.purge_if_refused();
        // Checked after the flags are set: a thread that serves this report from here on ends the poll below.
        if !handle.completion().is_done() {
            SERVED_FOR.set(ptr::from_ref(handle));
            if is_due {
                self.flush(if left_ms < 0 { FLUSH_MS } else { left_ms.min(FLUSH_MS) });
            } else {
                self.serve_once(left_ms);
            }
            SERVED_FOR.set(ptr::null());
        }
        handle.is_served_for.store(false, Ordering::SeqCst);
        self.is_for_one.store(false, Ordering::SeqCst);
    }

    /// Ends the leader's poll, because another thread has served the report that it waits for.
    pub(super) fn end_service(&self) {
        self.interrupt_pending.store(true, Ordering::SeqCst);
        self.queue.interrupt();
    }

    /// Interrupts again after a poll of this thread that may have consumed the interrupt meant for the leader. One
    /// interrupt ends exactly one `rd_kafka_poll` (librdkafka 2.12.1).
    fn repeat_interrupt(&self) {
        let is_beside = SERVED_FOR.get().is_null() && self.is_for_one.load(Ordering::SeqCst);
        if is_beside && self.interrupt_pending.load(Ordering::SeqCst) {
            self.queue.interrupt();
        }
    }

    /// Leaves a place; without a leader the report thread goes on.
    pub(super) fn leave(&self, place: Place) {
        if !self.serving.leadership.leave(place) {
            return;
        }
        // The leader's flush, which ended with its own report, was also for the other waiters.
        if self.lingers() && self.serving.awaited.load(Ordering::Acquire) > 0 {
            self.is_flush_requested.store(true, Ordering::Release);
        }
        self.wake_if_needed();
    }

    fn wake_if_needed(&self) {
        if self.is_flush_requested.load(Ordering::Acquire) || !self.queue.is_empty() {
            self.serving.parker.unpark();
        }
    }

    /// The report thread: serves reports until `close`.
    pub(super) fn serve(&self, idle: Option<Idle>) {
        if self.is_idempotent {
            self.prefetch_producer_id();
        }
        let (mut watch, mut schedule) = (idle.map(IdleWatch::new), None::<FlushSchedule>);
        let mut serve_at = None;
        while !self.is_closing.load(Ordering::Acquire) {
            let idle_at = watch.as_ref().map(IdleWatch::due);
            let flush_at = schedule.and_then(|schedule| schedule.next);
            let look_at = self.check_again_at();
            let deadline = Deadline::NEVER.or_earlier(idle_at).or_earlier(flush_at).or_earlier(serve_at);
            self.serving.parker.park_until(&deadline.or_earlier(look_at));
            self.purge_if_refused();
            if watch.as_mut().is_some_and(|watch| watch.check(self.sent.load(Ordering::Relaxed))) {
                return;
            }
            if !self.is_time_to_serve(&mut serve_at) {
                continue;
            }
            if self.serving.leadership.try_take() {
                self.serve_all(&mut schedule);
                if self.serving.leadership.leave(Place::Leader) {
                    self.wake_if_needed();
                }
            }
        }
        self.serve_once(0);
    }

    /// Returns whether reports are to be served now; sets the time when not.
    fn is_time_to_serve(&self, serve_at: &mut Option<Instant>) -> bool {
        if self.report_coalescing.is_zero() {
            return true;
        }
        // Set first: from here on a new waiter wakes this thread, and a report does not.
        self.serving.is_coalescing.store(true, Ordering::SeqCst);
        let now = Instant::now();
        let at = *serve_at.get_or_insert(now + self.report_coalescing);
        let is_urgent =
            self.serving.awaited.load(Ordering::SeqCst) > 0 || self.is_flush_requested.load(Ordering::Acquire);
        let has_ended = is_urgent || at <= now || self.is_closing.load(Ordering::Acquire);
        if has_ended {
            *serve_at = None;
            // Before they are served: later reports wake this thread again.
            self.serving.is_coalescing.store(false, Ordering::SeqCst);
        }
        has_ended
    }

    /// Has librdkafka (2.12.1) ask for a producer id at once: it does so whenever metadata come and a broker is up,
    /// else every half second. The first metadata come from a bootstrap connection, which they end; the second from the
    /// broker itself.
    fn prefetch_producer_id(&self) {
        let mut answers = 0;
        for _ in 0..PREFETCH_TRIES {
            answers += usize::from(self.client.asks_for_brokers(PREFETCH_TIMEOUT));
            if answers == 2 || self.is_closing.load(Ordering::Acquire) {
                return;
            }
        }
    }

    /// Flushes for new waiters, as long as messages may linger, and serves the reports that are there.
    fn serve_all(&self, schedule: &mut Option<FlushSchedule>) {
        if self.is_flush_requested.swap(false, Ordering::AcqRel) {
            *schedule = Some(self.flush_schedule());
        }
        if self.serving.awaited.load(Ordering::Acquire) == 0 {
            *schedule = None;
        }
        if schedule.as_mut().is_some_and(FlushSchedule::is_due) && !self.is_closing.load(Ordering::Acquire) {
            self.flush(FLUSH_MS);
        }
        self.serve_once(0);
    }

    /// Waits up to `timeout_ms` (-1 for ever) for the first report, and serves all reports that are there.
    pub(super) fn serve_once(&self, timeout_ms: i32) {
        self.client.serve_reports(timeout_ms);
        release_reported(&self.budget);
        self.repeat_interrupt();
        self.purge_if_refused();
    }

    /// Returns when to check again whether all brokers refuse the client, which no callback tells; `None` where none
    /// has refused it, or no message waits.
    fn check_again_at(&self) -> Option<Instant> {
        let is_waiting = self.client.is_suspect() && self.budget.used().0 > 0;
        is_waiting.then(|| Instant::now() + Client::LOOK_AGAIN)
    }

    /// Fails the messages that wait if all brokers refuse the client: their reports come next. Does not wait for a
    /// broker.
    fn purge_if_refused(&self) {
        if self.client.is_suspect() && self.budget.used().0 > 0 && self.client.access_failure().is_some() {
            self.client.purge_queued();
        }
    }

    /// Returns why brokers refuse the client, as far as it explains this failure of a message.
    pub(super) fn cause_of(&self, code: Code) -> Option<AccessFailure> {
        let may_explain =
            matches!(code, Code::MESSAGE_TIMED_OUT | Code::PURGED | Code::PURGED_IN_FLIGHT | Code::TRANSPORT);
        may_explain.then(|| self.client.denial().or_else(|| self.client.last_access_failure())).flatten()
    }

    /// Has all messages sent without lingering, and waits until all are answered; `false` when the time was up first.
    /// Leads, if there is no leader: librdkafka's flush checks only every 10 ms for reports that another thread serves.
    pub(super) fn flush_all(&self, deadline: &Deadline) -> bool {
        let leads = self.serving.leadership.try_take();
        let is_done = loop {
            // Beside a leader not for long: see `repeat_interrupt`.
            let slice = deadline.or_earlier((!leads).then(|| Instant::now() + BESIDE));
            let code = self.flush(slice.remaining_ms());
            // A flush ends early with the last report that another thread waited for.
            if code == Code::NONE || deadline.has_passed() {
                break code == Code::NONE;
            }
        };
        if leads {
            self.leave(Place::Leader);
        }
        is_done
    }

    /// Has all messages sent without lingering, and serves reports meanwhile.
    pub(super) fn flush(&self, timeout_ms: i32) -> Code {
        let code = self.client.flush(timeout_ms);
        release_reported(&self.budget);
        self.repeat_interrupt();
        self.purge_if_refused();
        code
    }

    /// Ends `serve`.
    pub(super) fn close(&self) {
        self.queue.stop_listening();
        self.is_closing.store(true, Ordering::Release);
        self.serving.parker.unpark();
    }
}

impl Drop for Reports {
    fn drop(&mut self) {
        if self.client.check_process().is_ok() {
            self.queue.stop_listening();
        }
    }
}

/// Releases the budget of the messages that were reported on this thread.
fn release_reported(budget: &Budget) {
    let (messages, bytes) = REPORTED.take();
    if messages > 0 {
        budget.release(messages, bytes);
    }
}

impl Reported for DeliveryHandle {
    fn report(self: Arc<Self>, report: Report) -> bool {
        REPORTED.with(|reported| {
            let (messages, bytes) = reported.get();
            reported.set((messages + 1, bytes + self.size_bytes));
        });
        let is_last = self.complete(report);
        let is_mine = SERVED_FOR.get() == Arc::as_ptr(&self);
        if !is_mine && self.is_served_for.load(Ordering::SeqCst) {
            self.end_service();
        }
        // The last report that is awaited, or this thread's own: it may stop, and other messages may linger.
        is_last || is_mine
    }
}
