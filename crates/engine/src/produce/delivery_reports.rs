//! Who serves delivery reports: whoever waits for one, else the report thread; a thread that flushes helps.
//!
//! A thread that waits for its handle leads, if nobody does: it flushes (or polls, where nothing lingers), which makes
//! librdkafka send without lingering, and is itself in librdkafka's delivery callback when its own report comes. Others who wait
//! meanwhile are served by it, and one of them is handed the lead.
//!
//! The report thread's loop:
//! 1. Wait until librdkafka's queue turns non-empty while nobody leads, or somebody waits who can't lead (an event loop, a
//!    wait for many).
//! 2. Lead: flush for those who have begun to wait; then serve what is there.
//! 3. End when the producer is closed.
//!
//! For each report its handle is completed, which wakes whoever waits for it; the room of a whole poll is given back at once.

use std::cell::Cell;
use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::idle::{Idle, IdleWatch};
use super::{Delivery, DeliveryHandle, Room};
use crate::Error;
use crate::clock::Deadline;
use crate::kafka::{Client, Code, Queue, Refusal, ffi, note_let_in};
use crate::wake::{Lead, Parker, Place};

thread_local! {
    /// Messages and bytes reported during the poll that is under way on this thread.
    static REPORTED: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
    /// The handle that this thread serves reports for.
    static AWAITED: Cell<*const DeliveryHandle> = const { Cell::new(ptr::null()) };
}

/// A flush for whoever begins to wait lasts so long at most: in that time librdkafka's threads have looked, and sent what was there.
/// What others send meanwhile does not linger either, and goes in smaller batches.
const FLUSH_MS: i32 = 1;

/// So long a thread flushes beside one that leads, before it looks whether that one is to go.
const BESIDE: Duration = Duration::from_millis(20);

/// How often, and for how long, a new producer asks who the brokers are.
const ACQUAINTED_TRIES: usize = 5;
const ACQUAINTED_WITHIN: Duration = Duration::from_millis(200);

/// The distance from the first flush to the second; it doubles.
const FLUSH_AGAIN: Duration = Duration::from_millis(2);

/// When somebody who waits has librdkafka look again for what lingers: at once, and, because a broker may not have been up then, at
/// growing distances for as long as messages linger at all.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hurry {
    next: Option<Instant>,
    distance: Duration,
    until: Instant,
}

impl Default for Hurry {
    fn default() -> Self {
        Self::new(Duration::ZERO)
    }
}

impl Hurry {
    fn new(linger: Duration) -> Self {
        let now = Instant::now();
        Self { next: (!linger.is_zero()).then_some(now), distance: FLUSH_AGAIN, until: now + linger }
    }

    /// Whether it is time; says when it will be next.
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

/// What report thread, senders and handles share.
pub struct Reports {
    client: Arc<Client>,
    queue: Queue,
    room: Arc<Room>,
    /// Who serves the queue. Asked under the queue's lock; nothing of librdkafka's is called under this one.
    lead: Lead,
    /// Where the report thread waits.
    parker: Parker,
    /// Messages whose reports somebody waits for.
    awaited: AtomicUsize,
    /// Somebody has begun to wait since the leader last began to serve.
    is_hurried: AtomicBool,
    /// A leader serves for a handle of its own.
    is_for_one: AtomicBool,
    /// Its report was served by another thread: its poll is to end. Whoever polls beside it may have taken what was to end it.
    is_end_owed: AtomicBool,
    is_closing: AtomicBool,
    /// How long messages linger; where they don't, nobody need hurry them.
    linger: Duration,
    /// How long reports that nobody waits for may lie, so that several are served at once.
    patience: Duration,
    /// The report thread knows of them, and comes when it is time.
    is_patient: AtomicBool,
    /// Whether nothing is sent before a broker has given the producer an id.
    is_idempotent: bool,
    /// Counted up with each record.
    sent: AtomicU32,
    /// Counted up with each message that failed.
    failed: AtomicU32,
    /// Why the last one failed.
    last_failure: Mutex<Option<Error>>,
}

impl Reports {
    pub(super) fn new(
        client: Arc<Client>,
        room: Arc<Room>,
        linger: Duration,
        patience: Duration,
        is_idempotent: bool,
    ) -> Arc<Self> {
        let queue = Queue::main(&client);
        let reports = Arc::new(Self {
            client,
            queue,
            room,
            lead: Lead::default(),
            parker: Parker::default(),
            awaited: AtomicUsize::new(0),
            is_hurried: AtomicBool::new(false),
            is_for_one: AtomicBool::new(false),
            is_end_owed: AtomicBool::new(false),
            is_closing: AtomicBool::new(false),
            linger,
            patience,
            is_patient: AtomicBool::new(false),
            is_idempotent,
            sent: AtomicU32::new(0),
            failed: AtomicU32::new(0),
            last_failure: Mutex::default(),
        });
        // SAFETY: the callback is disabled before the last reference goes.
        unsafe { reports.queue.enable_callback(on_non_empty, Arc::as_ptr(&reports).cast_mut().cast()) };
        // What was in the queue before, a refused connection say, would keep it from ever turning non-empty.
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

    /// Why the last message failed that did.
    pub(super) fn last_failure(&self) -> Option<Error> {
        self.last_failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How many messages failed.
    pub(super) fn failed(&self) -> u32 {
        self.failed.load(Ordering::Relaxed)
    }

    /// Somebody waits for one more message who does not lead; to be followed by `begin_hurry`.
    pub(super) fn expect_one(&self) {
        self.awaited.fetch_add(1, Ordering::AcqRel);
    }

    /// Has what is awaited sent without lingering: once for all messages that somebody has begun to wait for.
    pub(super) fn begin_hurry(&self) {
        if !self.lingers() {
            if self.is_patient.load(Ordering::Acquire) {
                self.parker.unpark();
            }
            return;
        }
        // Said before anybody is looked for: whoever leaves the lead looks at it after.
        let was_hurried = self.is_hurried.swap(true, Ordering::AcqRel);
        if !self.lead.is_led() {
            self.parker.unpark();
        } else if !was_hurried {
            // Where the leader flushes, this has the broker threads look at what came since; where it waits, it flushes again.
            self.flush(0);
            self.queue.interrupt();
        }
    }

    /// Nobody waits for that message any more; whether nobody waits for any.
    pub(super) fn settle_one(&self) -> bool {
        self.awaited.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// Who serves the queue.
    pub(super) const fn lead(&self) -> &Lead {
        &self.lead
    }

    const fn lingers(&self) -> bool {
        !self.linger.is_zero()
    }

    /// What whoever begins to wait goes by.
    pub(super) fn hurry(&self) -> Hurry {
        Hurry::new(self.linger)
    }

    /// Serves reports for everybody until this handle's has come or the time is up: to be called by the leader. May return early.
    /// Blocks the calling thread.
    pub(super) fn serve_for(&self, handle: &DeliveryHandle, hurry: &Cell<Hurry>, deadline: &Deadline) {
        let mut mine = hurry.get();
        if self.is_hurried.swap(false, Ordering::AcqRel) {
            mine = self.hurry(); // For the sake of others.
        }
        let is_due = mine.is_due();
        hurry.set(mine);
        let deadline = deadline.or_earlier(self.look_again_at());
        let left_ms = if is_due { deadline.remaining_ms() } else { deadline.or_earlier(mine.next).remaining_ms() };
        self.is_end_owed.store(false, Ordering::SeqCst);
        self.is_for_one.store(true, Ordering::SeqCst);
        handle.is_served_for.store(true, Ordering::SeqCst);
        self.fail_if_refused();
        // After that is said: whoever serves this report from here on ends the poll below.
        if !handle.completion().is_done() {
            AWAITED.set(ptr::from_ref(handle));
            if is_due {
                self.flush(if left_ms < 0 { FLUSH_MS } else { left_ms.min(FLUSH_MS) });
            } else {
                self.serve_once(left_ms);
            }
            AWAITED.set(ptr::null());
        }
        handle.is_served_for.store(false, Ordering::SeqCst);
        self.is_for_one.store(false, Ordering::SeqCst);
    }

    /// Ends the leader's poll: another thread has served the report that it waits for.
    pub(super) fn end_service(&self) {
        self.is_end_owed.store(true, Ordering::SeqCst);
        self.queue.interrupt();
    }

    /// To be called after a poll. librdkafka's queue ends one poll for each interruption, whosever it is: where this thread's was ended in the
    /// place of the leader's, the leader's is ended now.
    fn pass_interruption_on(&self) {
        let is_beside = AWAITED.get().is_null() && self.is_for_one.load(Ordering::SeqCst);
        if is_beside && self.is_end_owed.load(Ordering::SeqCst) {
            self.queue.interrupt();
        }
    }

    /// Leaves a place; where nobody leads any more, the report thread takes over what there is to do.
    pub(super) fn leave(&self, place: Place) {
        if !self.lead.leave(place) {
            return;
        }
        // What others wait for was under way in the leader's flush, which ended with its own report.
        if self.lingers() && self.awaited.load(Ordering::Acquire) > 0 {
            self.is_hurried.store(true, Ordering::Release);
        }
        self.wake_if_needed();
    }

    fn wake_if_needed(&self) {
        if self.is_hurried.load(Ordering::Acquire) || !self.queue.is_empty() {
            self.parker.unpark();
        }
    }

    /// The report thread: serves reports until `close`.
    pub(super) fn serve(&self, idle: Option<Idle>) {
        if self.is_idempotent {
            self.get_acquainted();
        }
        let (mut watch, mut hurry) = (idle.map(IdleWatch::new), None::<Hurry>);
        let mut serve_at = None;
        while !self.is_closing.load(Ordering::Acquire) {
            let idle_at = watch.as_ref().map(IdleWatch::due);
            let hurry_at = hurry.and_then(|hurry| hurry.next);
            let look_at = self.look_again_at();
            let deadline = Deadline::NEVER.or_earlier(idle_at).or_earlier(hurry_at).or_earlier(serve_at);
            self.parker.park_until(&deadline.or_earlier(look_at));
            self.fail_if_refused();
            if watch.as_mut().is_some_and(|watch| watch.look(self.sent.load(Ordering::Relaxed))) {
                return;
            }
            if !self.has_patience_ended(&mut serve_at) {
                continue;
            }
            if self.lead.try_take() {
                self.serve_all(&mut hurry);
                if self.lead.leave(Place::Leader) {
                    self.wake_if_needed();
                }
            }
        }
        self.serve_once(0);
    }

    /// Whether reports are to be served now; else it says when.
    fn has_patience_ended(&self, serve_at: &mut Option<Instant>) -> bool {
        if self.patience.is_zero() {
            return true;
        }
        // Said first: from here on whoever begins to wait wakes this thread, and no report does.
        self.is_patient.store(true, Ordering::SeqCst);
        let now = Instant::now();
        let at = *serve_at.get_or_insert(now + self.patience);
        let is_urgent = self.awaited.load(Ordering::SeqCst) > 0 || self.is_hurried.load(Ordering::Acquire);
        let has_ended = is_urgent || at <= now || self.is_closing.load(Ordering::Acquire);
        if has_ended {
            *serve_at = None;
            // Before they are served: what comes after wakes this thread again.
            self.is_patient.store(false, Ordering::SeqCst);
        }
        has_ended
    }

    /// Has librdkafka (2.12.1) ask for a producer id at once: it does so whenever metadata come and a broker is up, else every half
    /// second. The first metadata come from a bootstrap connection, which they end; the second from the broker itself.
    fn get_acquainted(&self) {
        let mut answers = 0;
        for _ in 0..ACQUAINTED_TRIES {
            answers += usize::from(self.client.asks_for_brokers(ACQUAINTED_WITHIN));
            if answers == 2 || self.is_closing.load(Ordering::Acquire) {
                return;
            }
        }
    }

    /// Flushes for those who have begun to wait, as long as messages may linger, and serves what is there.
    fn serve_all(&self, hurry: &mut Option<Hurry>) {
        if self.is_hurried.swap(false, Ordering::AcqRel) {
            *hurry = Some(self.hurry());
        }
        if self.awaited.load(Ordering::Acquire) == 0 {
            *hurry = None;
        }
        if hurry.as_mut().is_some_and(Hurry::is_due) && !self.is_closing.load(Ordering::Acquire) {
            self.flush(FLUSH_MS);
        }
        self.serve_once(0);
    }

    /// Waits up to `timeout_ms` (-1 for ever) for the first report, and serves all that are there.
    pub(super) fn serve_once(&self, timeout_ms: i32) {
        // SAFETY: the handle is alive; the callback below runs inside this call.
        unsafe { ffi::rd_kafka_poll(self.client.handle(), timeout_ms) };
        give_room_back(&self.room);
        self.pass_interruption_on();
        self.fail_if_refused();
    }

    /// When to look again whether all brokers refuse the client, which no callback may tell; `None` where none has refused it, or nothing
    /// waits to be sent.
    fn look_again_at(&self) -> Option<Instant> {
        let is_waiting = self.client.is_suspect() && self.room.occupancy().0 > 0;
        is_waiting.then(|| Instant::now() + Client::LOOK_AGAIN)
    }

    /// Fails what waits to be sent if no broker lets the client in: their reports come next. Does not wait for a broker.
    fn fail_if_refused(&self) {
        if self.client.is_suspect() && self.room.occupancy().0 > 0 && self.client.refusal().is_some() {
            let flags = ffi::RD_KAFKA_PURGE_F_QUEUE | ffi::RD_KAFKA_PURGE_F_NON_BLOCKING;
            // SAFETY: the handle is alive.
            unsafe { ffi::rd_kafka_purge(self.client.handle(), flags) };
        }
    }

    /// Why brokers do not let the client in, or what they do not allow it, as far as it explains this failure of a message.
    pub(super) fn cause_of(&self, code: Code) -> Option<Refusal> {
        let may_explain =
            matches!(code, Code::MESSAGE_TIMED_OUT | Code::PURGED | Code::PURGED_IN_FLIGHT | Code::TRANSPORT);
        may_explain.then(|| self.client.denial().or_else(|| self.client.last_cause())).flatten()
    }

    /// Has everything sent without lingering until all of it is answered; `false` when the time was up first. Leads, if nobody does:
    /// whoever flushes looks only every 10 ms for what others serve.
    pub(super) fn flush_all(&self, deadline: &Deadline) -> bool {
        let leads = self.lead.try_take();
        let is_done = loop {
            // Beside a leader not for long: see `pass_interruption_on`.
            let slice = deadline.or_earlier((!leads).then(|| Instant::now() + BESIDE));
            let code = self.flush(slice.remaining_ms());
            // A flush ends early when the last report came that somebody else waited for.
            if code == Code::NONE || deadline.has_passed() {
                break code == Code::NONE;
            }
        };
        if leads {
            self.leave(Place::Leader);
        }
        is_done
    }

    /// Has everything sent without lingering, and serves reports meanwhile.
    pub(super) fn flush(&self, timeout_ms: i32) -> Code {
        // SAFETY: the handle is alive. Any thread may serve reports: they complete handles, whoever serves them.
        let code = Code::of(unsafe { ffi::rd_kafka_flush(self.client.handle(), timeout_ms) });
        give_room_back(&self.room);
        self.pass_interruption_on();
        self.fail_if_refused();
        code
    }

    /// Ends `serve`.
    pub(super) fn close(&self) {
        self.queue.disable_callback();
        self.is_closing.store(true, Ordering::Release);
        self.parker.unpark();
    }
}

impl Drop for Reports {
    fn drop(&mut self) {
        if self.client.check_process().is_ok() {
            self.queue.disable_callback();
        }
    }
}

/// librdkafka's callback: the queue has turned non-empty. Runs on its threads, under the queue's lock.
unsafe extern "C" fn on_non_empty(_rk: *mut ffi::rd_kafka_t, opaque: *mut c_void) {
    // SAFETY: the reports live until the callback has been disabled.
    let reports = unsafe { &*opaque.cast::<Reports>() };
    let is_expected = reports.is_patient.load(Ordering::SeqCst) && reports.awaited.load(Ordering::SeqCst) == 0;
    if !is_expected && !reports.lead.is_led() {
        reports.parker.unpark();
    }
}

/// Gives back the room of the messages that were reported on this thread.
fn give_room_back(room: &Room) {
    let (messages, bytes) = REPORTED.take();
    if messages > 0 {
        room.leave(messages, bytes);
    }
}

/// librdkafka's delivery callback.
pub(super) unsafe extern "C" fn on_report(
    rk: *mut ffi::rd_kafka_t,
    message: *const ffi::rd_kafka_message_t,
    opaque: *mut c_void,
) {
    // SAFETY: librdkafka calls with a valid message, whose private pointer is the handle that `produce` gave away, once.
    let (handle, report) = unsafe {
        let handle = Arc::from_raw((*message)._private.cast::<DeliveryHandle>().cast_const());
        let code = Code((&raw const (*message).err).cast::<i32>().read());
        let report = if code == Code::NONE {
            note_let_in(opaque);
            let mut kind = ffi::rd_kafka_timestamp_type_t::RD_KAFKA_TIMESTAMP_NOT_AVAILABLE;
            Ok(Delivery {
                partition: (*message).partition,
                // librdkafka has a number of its own for none.
                offset: (*message).offset.max(-1),
                timestamp_ms: ffi::rd_kafka_message_timestamp(message, &raw mut kind),
            })
        } else {
            Err(code)
        };
        (handle, report)
    };
    REPORTED.with(|reported| {
        let (messages, bytes) = reported.get();
        reported.set((messages + 1, bytes + handle.size_bytes));
    });
    let is_last = handle.complete(report);
    let is_mine = AWAITED.get() == Arc::as_ptr(&handle);
    if !is_mine && handle.is_served_for.load(Ordering::SeqCst) {
        handle.end_service();
    }
    if is_last || is_mine {
        // The last that somebody waited for, or this thread's own: it may stop, and what is left may linger.
        // SAFETY: we are in a callback of this handle's.
        unsafe { ffi::rd_kafka_yield(rk) };
    }
}
