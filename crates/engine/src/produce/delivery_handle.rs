//! The pending delivery of a message: what its sender has until the broker has answered.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use super::Reports;
use super::delivery_reports::FlushSchedule;
use crate::clock::Deadline;
use crate::fork_guard::Birthplace;
use crate::kafka::{AccessFailure, Code, Delivery};
use crate::wake::{Completion, Latch, Parker, Place, ServingWait, Waker};
use crate::{Error, Result};

/// The broker's answer, or why there is none.
pub type Report = std::result::Result<Delivery, Code>;

/// The destination that the handles of messages of one topic share.
#[derive(Debug)]
pub(super) struct Destination {
    /// The topic, to name the operation in errors.
    pub(super) topic: Arc<str>,
    /// Weak: a handle that is kept must not keep a client.
    pub(super) reports: Weak<Reports>,
    /// Why brokers refused the client, when a message failed for that.
    pub(super) refused: Mutex<Option<AccessFailure>>,
}

/// A wait for one answer, by a thread that serves reports while it is the leader. Dropped, it leaves its place to
/// others.
pub struct Waiting<'a> {
    handle: &'a DeliveryHandle,
    /// `None` when the producer is gone: the answer has come, or is about to.
    reports: Option<Arc<Reports>>,
    place: Cell<Option<Place>>,
    /// When it has librdkafka send messages that linger.
    schedule: Cell<FlushSchedule>,
    waker: Waker,
}

impl ServingWait for Waiting<'_> {
    /// Serves until the answer is there or the deadline passes, if this thread is the leader. Returns whether the
    /// answer is there. May return early: a follower then waits for its waker, and calls again. Blocks a leader.
    fn step(&self, deadline: &Deadline) -> bool {
        if let (Some(reports), Some(place)) = (&self.reports, self.place.get()) {
            let place = reports.leadership().current(place);
            self.place.set(Some(place));
            if place == Place::Leader && !self.handle.completion.is_done() {
                reports.serve_for(self.handle, &self.schedule, deadline);
            }
        }
        self.handle.completion.is_done()
    }

    /// Returns whether another thread serves.
    fn is_follower(&self) -> bool {
        self.place.get() != Some(Place::Leader)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.handle.completion.unregister(&self.waker);
        if let (Some(reports), Some(place)) = (&self.reports, self.place.get()) {
            reports.leave(place);
        }
        self.handle.cancel_wait();
    }
}

/// The pending delivery of a message.
///
/// The producer has the other reference until the report has come; a handle that its sender drops costs nothing more.
#[derive(Debug)]
pub struct DeliveryHandle {
    destination: Arc<Destination>,
    /// Key, value and headers; the size that the producer's budget counts.
    pub(super) size_bytes: usize,
    birthplace: Birthplace,
    /// A thread or an event loop waits: the message must not linger.
    is_awaited: AtomicBool,
    /// The leader serves reports for this message: another thread that serves its report ends the leader's poll.
    pub(super) is_served_for: AtomicBool,
    completion: Completion<Report>,
}

impl DeliveryHandle {
    pub(super) fn new(destination: Arc<Destination>, size_bytes: usize, birthplace: Birthplace) -> Self {
        let (is_awaited, is_served_for) = (AtomicBool::new(false), AtomicBool::new(false));
        Self { destination, size_bytes, birthplace, is_awaited, is_served_for, completion: Completion::default() }
    }

    /// Completes the handle. Returns whether it was the last one that was awaited.
    pub(super) fn complete(&self, report: Report) -> bool {
        let report = report.map_err(|code| self.note_failed(code));
        self.completion.complete(report);
        self.end_wait()
    }

    /// Counts a failure. Returns the code of its cause, where brokers refused the client.
    fn note_failed(&self, code: Code) -> Code {
        let Some(reports) = self.destination.reports.upgrade() else { return code };
        let failure = reports.cause_of(code);
        let code = failure.as_ref().map_or(code, |failure| failure.code);
        if let Some(failure) = failure {
            *self.destination.refused.lock().unwrap_or_else(PoisonError::into_inner) = Some(failure);
        }
        reports.count_failed(self.error(code));
        code
    }

    /// Has the message, and those sent before it, sent without lingering, because its answer is awaited. Does not
    /// block.
    pub fn flush_now(&self) {
        if let Some(reports) = self.begin_awaiting() {
            reports.request_flush();
        }
    }

    /// Does the same as `flush_now` for many messages: they are sent together.
    pub fn flush_all_now<'a>(handles: impl IntoIterator<Item = &'a Self>) {
        let mut requested: Option<Arc<Reports>> = None;
        for reports in handles.into_iter().filter_map(Self::begin_awaiting) {
            if requested.as_ref().is_none_or(|known| !Arc::ptr_eq(known, &reports))
                && let Some(other) = requested.replace(reports)
            {
                other.request_flush();
            }
        }
        if let Some(reports) = requested {
            reports.request_flush();
        }
    }

    /// Counts the message as awaited. Returns the reports to flush, if it was not counted before.
    fn begin_awaiting(&self) -> Option<Arc<Reports>> {
        if self.completion.is_done() || self.is_awaited.swap(true, Ordering::AcqRel) {
            return None;
        }
        let reports = self.destination.reports.upgrade()?;
        reports.add_awaited();
        if self.completion.is_done() {
            self.end_wait(); // The report came meanwhile, perhaps before the message was counted.
            return None;
        }
        Some(reports)
    }

    /// Ends a wait before the answer: the message may linger again. Does not block.
    pub fn cancel_wait(&self) {
        self.end_wait();
    }

    /// Counts the message as awaited no more. Returns whether no message of the producer is awaited.
    fn end_wait(&self) -> bool {
        if !self.is_awaited.swap(false, Ordering::AcqRel) {
            return false;
        }
        self.destination.reports.upgrade().is_some_and(|reports| reports.end_awaited())
    }

    /// Ends the poll of the leader, which serves reports for this handle, because another thread has served its report.
    pub(super) fn end_service(&self) {
        if let Some(reports) = self.destination.reports.upgrade() {
            reports.end_service();
        }
    }

    /// Returns the topic that the message was sent to.
    pub fn topic(&self) -> &Arc<str> {
        &self.destination.topic
    }

    /// Refuses use in another process than the producer's, where no answer comes.
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn check_process(&self) -> Result<()> {
        Ok(self.birthplace.check("delivery handle")?)
    }

    /// Returns the completion, to wait on in other ways.
    pub const fn completion(&self) -> &Completion<Report> {
        &self.completion
    }

    /// Returns the answer, if it has come. Does not block.
    pub fn result(&self) -> Option<Result<Delivery>> {
        self.completion.get().map(|report| self.explain(report))
    }

    /// Returns when the answer came, in nanoseconds of the monotonic clock; 0 when it was not awaited then.
    pub fn woken_at_ns(&self) -> u64 {
        self.completion.woken_at_ns()
    }

    /// Waits for the answer. Blocks the calling thread, which serves the producer's reports if no other thread does.
    ///
    /// # Errors
    /// [`Error::TimedOut`] when none came within `timeout` (the message may still arrive); [`Error::Kafka`] when the
    /// broker or librdkafka refused the message; [`Error::Forked`] in another process than the producer's.
    pub fn wait(&self, timeout: Option<Duration>) -> Result<Delivery> {
        self.check_process()?;
        let since = Instant::now();
        if let Some(report) = self.wait_until(&Deadline::after(timeout)) {
            return self.explain(report);
        }
        Err(Error::TimedOut { operation: self.operation(), waited: since.elapsed() })
    }

    /// Waits for the answer, as `wait`; `None` when the deadline passed first.
    pub fn wait_until(&self, deadline: &Deadline) -> Option<Report> {
        let parker = Arc::new(Parker::default());
        if let Some(waiting) = self.begin_wait(Waker::Parker(Arc::clone(&parker))) {
            waiting.wait(&parker, deadline, deadline);
        }
        self.completion.get()
    }

    /// Begins a wait; `None` when the answer is there. The waker is woken when there may be something to do: see
    /// `Waiting`.
    pub fn begin_wait(&self, waker: Waker) -> Option<Waiting<'_>> {
        if self.completion.is_done() {
            return None;
        }
        let reports = self.destination.reports.upgrade();
        let place = reports.as_ref().map(|reports| reports.leadership().join(waker.clone()));
        let schedule =
            Cell::new(reports.as_ref().map_or_else(FlushSchedule::default, |reports| reports.flush_schedule()));
        let waker = if place == Some(Place::Leader) { Waker::Leader } else { waker };
        let waiting = Waiting { handle: self, reports, place: Cell::new(place), schedule, waker };
        if !self.completion.register(waiting.waker.clone()) {
            return None;
        }
        if waiting.is_follower() {
            self.flush_now();
        }
        Some(waiting)
    }

    /// Waits until all messages are answered, delivered or not; `false` when the time was up first. Blocks the calling
    /// thread.
    pub fn wait_all(handles: &[Arc<Self>], timeout: Option<Duration>) -> bool {
        Self::flush_all_now(handles.iter().map(|handle| &**handle));
        let are_done = Latch::wait_all(handles.iter().map(|handle| &handle.completion), &Deadline::after(timeout));
        if !are_done {
            handles.iter().for_each(|handle| handle.cancel_wait());
        }
        are_done
    }

    /// Returns the answer, with an error of this operation.
    fn explain(&self, report: Report) -> Result<Delivery> {
        report.map_err(|code| self.error(code))
    }

    fn error(&self, code: Code) -> Error {
        let refused = self.destination.refused.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let detail = refused.filter(|failure| failure.code == code).map(|failure| failure.text);
        Error::kafka(self.operation(), code, detail.unwrap_or_default())
    }

    /// Returns the operation in words, for errors.
    pub fn operation(&self) -> String {
        format!("produce to {}", self.destination.topic)
    }
}
