//! Delivery reports are served by a thread that waits for one, or else by the report thread; a thread that flushes
//! helps.
//!
//! A message that is awaited ends the linger of its partition (`DeliveryHandle::begin_awaiting`). A thread that waits
//! for its handle becomes the leader if there is none. It polls, and runs librdkafka's delivery callback itself when
//! its own report comes. It also serves the reports of the followers, and hands the leadership to one of them at the
//! end.
//!
//! While a task of an event loop waits for a handle, the loop serves the reports itself (`LoopService`).
//!
//! The report thread's loop:
//! 1. Wait until librdkafka's queue turns non-empty while there is no leader, and no loop serves it in time.
//! 2. Lead: serve the reports that are there.
//! 3. End when the producer is closed.
//!
//! Each report completes its handle, which wakes the waiters; the budget of all reports of a poll is released at once.

use std::cell::Cell;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use super::idle::{Idle, IdleWatch};
use super::outputs::{Outputs, are_some_watched};
use super::{Budget, DeliveryHandle, Report};
use crate::Error;
use crate::clock::{self, Deadline};
use crate::events::What;
use crate::kafka::{AccessFailure, Client, Code, EndedLinger, Kind, Queue, Reported};
use crate::sync::thread_local;
use crate::wake::{Leadership, LoopService, Parker, Place, Served, Tokens};

thread_local! {
    /// Messages and bytes that were reported during this thread's present call: see `Reports::settle`.
    static REPORTED: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
    /// This thread is within `Reports::settle`, which tells of lost messages at its end.
    static IS_SETTLING: Cell<bool> = const { Cell::new(false) };
    /// The handle for which this thread, as the leader, serves reports.
    static SERVED_FOR: Cell<*const DeliveryHandle> = const { Cell::new(ptr::null()) };
}

/// The time for which a thread flushes beside a leader before it checks whether the leader's poll has to end.
const BESIDE: Duration = Duration::from_millis(20);

/// The number of times that a new producer asks for the brokers, and the longest wait for an answer.
const PREFETCH_TRIES: usize = 5;
const PREFETCH_TIMEOUT: Duration = Duration::from_millis(200);

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
    /// The event loop that serves the queue while its tasks wait.
    of_loop: LoopService,
}

impl Serving {
    /// Wakes the report thread, unless it expects the report or a thread leads. Called by the client's threads, under
    /// the queue's lock.
    fn on_non_empty(&self) {
        let is_expected = self.is_coalescing.load(Ordering::SeqCst) && self.awaited.load(Ordering::SeqCst) == 0;
        if !is_expected && !self.leadership.is_led() {
            self.wake();
        }
    }

    /// Has the event loop or the report thread serve the queue.
    fn wake(&self) {
        if self.of_loop.tell() {
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
    /// The leader waits for a handle of its own.
    is_for_one: AtomicBool,
    /// Another thread served the report that the leader waits for, so the leader's poll must end. A third thread's poll
    /// may have consumed the interrupt.
    interrupt_pending: AtomicBool,
    is_closing: AtomicBool,
    /// The time for which reports that are not awaited may wait, so that several are served at once.
    report_coalescing: Duration,
    /// True if messages are sent only after a broker has given the producer an id.
    is_idempotent: bool,
    /// True if a message that fails makes its transaction fail.
    is_transactional: bool,
    /// Counts records; wraps around.
    sent: AtomicU32,
    /// Finds partitions to which nothing can be written.
    outputs: Arc<Outputs>,
    /// Counts messages that failed; wraps around.
    failed: AtomicU32,
    /// Counts those of them that a broker may have; wraps around.
    in_doubt: AtomicU32,
    /// Why the last one failed.
    last_failure: Mutex<Option<Error>>,
    /// Messages that failed and whose handles were not looked at, to be told of.
    lost: Mutex<Vec<Lost>>,
}

/// Messages of one topic that failed alike.
struct Lost {
    topic: Arc<str>,
    code: Code,
    text: String,
    messages: u64,
}

impl Reports {
    pub(super) fn new(
        client: Arc<Client>,
        budget: Arc<Budget>,
        report_coalescing: Duration,
        kind: Kind,
        is_idempotent: bool,
        outputs: Arc<Outputs>,
    ) -> Arc<Self> {
        let queue = Queue::main(&client);
        let reports = Arc::new(Self {
            client,
            queue,
            budget,
            serving: Arc::default(),
            is_for_one: AtomicBool::new(false),
            interrupt_pending: AtomicBool::new(false),
            is_closing: AtomicBool::new(false),
            report_coalescing,
            is_idempotent,
            is_transactional: kind == Kind::Transactional,
            sent: AtomicU32::new(0),
            outputs,
            failed: AtomicU32::new(0),
            in_doubt: AtomicU32::new(0),
            last_failure: Mutex::default(),
            lost: Mutex::default(),
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
        if self.outputs.arm() {
            self.serving.parker.unpark();
        }
    }

    /// Counts a message that failed with this error.
    pub(super) fn count_failed(&self, error: Error) {
        if error.code() != Code::PURGED {
            self.in_doubt.fetch_add(1, Ordering::Relaxed);
        }
        *self.last_failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        self.failed.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes a message that failed and whose handle was not looked at. A transaction fails with it, which is told.
    pub(super) fn note_lost(&self, topic: &Arc<str>, code: Code, error: &Error) {
        if self.is_transactional {
            return;
        }
        let mut lost = self.lost.lock().unwrap_or_else(PoisonError::into_inner);
        match lost.iter_mut().find(|lost| lost.code == code && lost.topic == *topic) {
            Some(lost) => lost.messages += 1,
            None => lost.push(Lost { topic: Arc::clone(topic), code, text: error.to_string(), messages: 1 }),
        }
        drop(lost);
        if !IS_SETTLING.get() {
            self.tell_lost();
        }
    }

    fn tell_lost(&self) {
        let lost = std::mem::take(&mut *self.lost.lock().unwrap_or_else(PoisonError::into_inner));
        let told = |Lost { topic, code, text, messages }| What::DeliveryLost { topic, code, text, messages };
        self.tell(lost.into_iter().map(told).collect());
    }

    /// Returns why the last message failed that did.
    pub(super) fn last_failure(&self) -> Option<Error> {
        self.last_failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns how many messages failed.
    pub(super) fn failed(&self) -> u32 {
        self.failed.load(Ordering::Relaxed)
    }

    /// Returns how many messages failed that a broker may have: all but those that were dropped before they were sent.
    pub(super) fn in_doubt(&self) -> u32 {
        self.in_doubt.load(Ordering::Relaxed)
    }

    /// Counts one more message as awaited.
    pub(super) fn add_awaited(&self) {
        self.serving.awaited.fetch_add(1, Ordering::SeqCst);
        if self.serving.is_coalescing.load(Ordering::SeqCst) {
            self.serving.parker.unpark();
        }
    }

    /// Counts one awaited message less, and lets its partition linger again.
    pub(super) fn end_awaited(&self, ended: EndedLinger) {
        self.serving.awaited.fetch_sub(1, Ordering::SeqCst);
        self.client.linger_again(ended);
    }

    /// Returns the leadership over the queue.
    pub(super) fn leadership(&self) -> &Leadership {
        &self.serving.leadership
    }

    /// Serves the reports of all waiters until this handle's has come or the time is up; to be called by the leader.
    /// May return early. Blocks the calling thread.
    pub(super) fn serve_for(&self, handle: &DeliveryHandle, deadline: &Deadline) {
        let left_ms = deadline.or_real(self.check_again_at()).remaining_ms();
        self.interrupt_pending.store(false, Ordering::SeqCst);
        self.is_for_one.store(true, Ordering::SeqCst);
        handle.is_served_for.store(true, Ordering::SeqCst);
        self.purge_if_refused();
        // Checked after the flags are set: a thread that serves this report from here on ends the poll below.
        if !handle.completion().is_done() {
            SERVED_FOR.set(ptr::from_ref(handle));
            self.serve_once(left_ms);
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
        if self.serving.leadership.leave(place) {
            self.wake_if_needed();
        }
    }

    fn wake_if_needed(&self) {
        if !self.queue.is_empty() {
            self.serving.wake();
        }
    }

    /// Begins a wait of a task: its event loop serves the queue meanwhile. Does not block.
    pub(super) fn begin_wait_of_loop(self: &Arc<Self>, mailbox: &Arc<Tokens>) {
        let reports: Weak<Self> = Arc::downgrade(self);
        self.serving.of_loop.begin(mailbox, reports);
    }

    /// Ends a wait of a task. Does not block.
    pub(super) fn end_wait_of_loop(&self) {
        // A leader looks at the queue when it leaves.
        if self.serving.of_loop.end() && !self.serving.leadership.is_led() {
            self.wake_if_needed();
        }
    }

    /// The report thread: serves reports until `close`.
    pub(super) fn serve(&self, idle: Option<Idle>) {
        if self.is_idempotent {
            self.prefetch_producer_id();
        }
        let mut watch = idle.map(IdleWatch::new);
        let (mut serve_at, mut loop_until, mut outputs_at) = (None, None, None);
        while !self.is_closing.load(Ordering::Acquire) {
            let idle_at = watch.as_ref().map(IdleWatch::due);
            let look_at = self.check_again_at();
            let deadline = Deadline::NEVER.or_real(idle_at).or_real(serve_at).or_real(loop_until);
            outputs_at = self.outputs.due(outputs_at);
            self.serving.parker.park_until(&deadline.or_real(look_at).or_real(outputs_at));
            if outputs_at.is_none() && self.outputs.due(None).is_some() && self.queue.is_empty() {
                continue; // It was woken for that only, and a sender may be about to lead.
            }
            if outputs_at.is_some_and(|at| at <= clock::real_now()) {
                outputs_at = None;
                self.tell(self.outputs.look(|| self.client.unanswered()));
            }
            self.purge_if_refused();
            if watch.as_mut().is_some_and(|watch| watch.check(self.sent.load(Ordering::Relaxed))) {
                return;
            }
            if self.serving.of_loop.is_early(&mut loop_until, clock::real_now()) {
                continue;
            }
            if self.is_time_to_serve(&mut serve_at) {
                self.serve_if_free();
            }
        }
        self.serve_once(0);
    }

    /// Ends the watch over outputs: the producer is closed.
    pub(super) fn end_outputs(&self) {
        self.tell(self.outputs.end());
    }

    fn tell(&self, events: Vec<What>) {
        events.into_iter().for_each(|what| self.client.emit(what));
    }

    /// Notes that a partition can be written to.
    fn note_delivered(&self, topic: &Arc<str>, partition: i32) {
        self.tell(self.outputs.note_delivered(topic, partition));
    }

    /// Serves the reports that are there, if no thread leads.
    fn serve_if_free(&self) {
        if self.serving.leadership.try_take() {
            self.serve_once(0);
            self.leave(Place::Leader);
        }
    }

    /// Returns whether reports are to be served now; sets the time when not.
    fn is_time_to_serve(&self, serve_at: &mut Option<Instant>) -> bool {
        if self.report_coalescing.is_zero() {
            return true;
        }
        // Set first: from here on a new waiter wakes this thread, and a report does not.
        self.serving.is_coalescing.store(true, Ordering::SeqCst);
        let now = clock::real_now();
        let at = *serve_at.get_or_insert(now + self.report_coalescing);
        let is_urgent = self.serving.awaited.load(Ordering::SeqCst) > 0;
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

    /// Waits up to `timeout_ms` (-1 for ever) for the first report, and serves all reports that are there.
    pub(super) fn serve_once(&self, timeout_ms: i32) {
        self.settle(|client| client.serve_reports(timeout_ms));
    }

    /// Makes a call in which librdkafka may serve reports on this thread, and releases their budget: the thread may
    /// serve those of another connection next.
    pub(super) fn settle<T>(&self, call: impl FnOnce(&Client) -> T) -> T {
        let failed = self.failed();
        let was_settling = IS_SETTLING.with(|settling| settling.replace(true));
        let outcome = call(&self.client);
        IS_SETTLING.set(was_settling);
        if self.failed() != failed {
            self.tell_lost();
        }
        let (messages, bytes) = REPORTED.take();
        if messages > 0 {
            self.budget.release(messages, bytes);
        }
        self.repeat_interrupt();
        self.purge_if_refused();
        outcome
    }

    /// Returns when to check again whether all brokers refuse the client, which no callback tells; `None` where none
    /// has refused it, or no message waits.
    fn check_again_at(&self) -> Option<Instant> {
        let is_waiting = self.client.is_suspect() && self.budget.used().0 > 0;
        is_waiting.then(|| clock::real_now() + Client::LOOK_AGAIN)
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
            let slice = deadline.or_within((!leads).then_some(BESIDE));
            let code = self.settle(|client| client.flush(slice.remaining_ms()));
            // An error of the client ends a flush early.
            if code == Code::NONE || deadline.has_passed() {
                break code == Code::NONE;
            }
        };
        if leads {
            self.leave(Place::Leader);
        }
        is_done
    }

    /// Ends `serve`.
    pub(super) fn close(&self) {
        self.queue.stop_listening();
        self.is_closing.store(true, Ordering::Release);
        self.serving.parker.unpark();
    }
}

impl Served for Reports {
    fn serve_now(&self) {
        self.serving.of_loop.note_served();
        self.serve_if_free();
    }
}

impl Drop for Reports {
    fn drop(&mut self) {
        if self.client.check_process().is_ok() {
            self.queue.stop_listening();
        }
    }
}

/// Refuses to take a message without an offset for delivered, where a broker was asked for one.
///
/// librdkafka (2.12.1) takes a later answer of an idempotent producer for one to every earlier message of the partition
/// (`rd_kafka_dr_implicit_ack`), also to one that was refused and waits to be sent again. A broker accepts the later
/// one if its partition has no message of the producer yet, and then the earlier one is not there.
fn confirmed(report: Report) -> Report {
    report.and_then(|delivery| {
        let is_missing = delivery.has_answer && delivery.offset < 0;
        if is_missing { Err(Code::DUPLICATE_SEQUENCE) } else { Ok(delivery) }
    })
}

impl Reported for DeliveryHandle {
    fn report(self: Arc<Self>, report: Report) -> bool {
        REPORTED.with(|reported| {
            let (messages, bytes) = reported.get();
            reported.set((messages + 1, bytes + self.size_bytes));
        });
        let report = confirmed(report);
        self.complete(report);
        if let Ok(delivery) = report
            && are_some_watched()
            && let Some(reports) = self.reports()
        {
            reports.note_delivered(self.topic(), delivery.partition);
        }
        let is_mine = SERVED_FOR.get() == Arc::as_ptr(&self);
        if !is_mine && self.is_served_for.load(Ordering::SeqCst) {
            self.end_service();
        }
        is_mine
    }

    fn set_partition(&self, partition: i32) {
        Self::set_partition(self, partition);
    }

    fn partition(&self) -> i32 {
        Self::partition(self)
    }
}
