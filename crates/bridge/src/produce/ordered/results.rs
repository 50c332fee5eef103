//! The results of one job on their way to an ordered output, as its worker adds them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use awoke_engine::Error;
use awoke_engine::produce::{Added, Turn};
use pyo3::prelude::*;

use super::owner::{Failed, Owner};
use super::queue::{Answer, Entry, OrderedQueue, Value};
use crate::consume::Message;
use crate::errors::Result;
use crate::produce::results::Kept;
use crate::produce::{Bytes, Results, value_bytes};

/// The results of one job, each sent when its turn comes; the worker of the job adds them in the order of the job.
///
/// A message that is passed without a result gives its turn to the next. `outgoing` is told of what is sent after
/// `seal`: `sending()` before, `sent(results, failed)` after it; `send(offset, records)` sends what Python sends.
#[pyclass(frozen, module = "awoke._native")]
pub struct OrderedResults {
    owner: Arc<Owner>,
    /// Nanoseconds in which its worker sent results of other jobs.
    others_ns: AtomicU64,
    /// `None` when all messages are passed: then what waits in the queue does not keep it.
    queue: Mutex<Option<Py<OrderedQueue>>>,
}

impl OrderedResults {
    fn queue(&self, py: Python<'_>) -> Result<Py<OrderedQueue>> {
        let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(queue.as_ref().map(|queue| queue.clone_ref(py)).ok_or(Error::Closed { what: "job's results" })?)
    }

    /// Goes on to a message. Returns its place and its ordinal; `None`, where it is not one of the job.
    fn go_to(&self, py: Python<'_>, queue: &OrderedQueue, offset: i64) -> Option<(usize, Option<u64>)> {
        let (place, from) = self.owner.go_to(offset)?;
        self.owner.places[from..place].iter().for_each(|(_, ordinal)| queue.skip(py, *ordinal));
        Some((place, self.owner.places[place].1))
    }

    fn run(&self, py: Python<'_>, queue: &OrderedQueue) {
        let since = Instant::now();
        queue.run(py);
        self.others_ns.fetch_add(since.elapsed().as_nanos() as u64, Ordering::Relaxed);
    }

    /// Has a result wait for its turn. Returns it, if its turn is over.
    fn wait(
        &self,
        py: Python<'_>,
        queue: &OrderedQueue,
        (place, ordinal): (usize, u64),
        outgoing: &Bound<'_, PyAny>,
        answer: Answer,
    ) -> Option<Answer> {
        self.owner.wait(place);
        let (owner, outgoing) = (Arc::clone(&self.owner), outgoing.clone().unbind());
        match queue.buffer.add(ordinal, Entry { owner, outgoing, place, answer }) {
            // Where the partition was given back, its next owner processes the message again.
            Added::Waits | Added::Closed(_) => (),
            Added::Runs => self.run(py, queue),
            Added::Late(entry) => {
                self.owner.end_wait(place);
                return Some(entry.answer);
            }
        }
        None
    }
}

#[pymethods]
impl OrderedResults {
    /// `offsets` and `ordinals` of the messages of the job that are not done.
    #[new]
    fn new(queue: Py<OrderedQueue>, offsets: Vec<i64>, ordinals: Vec<Option<u64>>) -> Self {
        let owner = Arc::new(Owner::new(offsets.into_iter().zip(ordinals).collect()));
        Self { owner, others_ns: AtomicU64::new(0), queue: Mutex::new(Some(queue)) }
    }

    /// Adds a value, which is sent under the key of its message. Blocks while the producer's queue is full, if it is
    /// its turn; raises as `Producer.produce`, and then its turn has not ended.
    fn send(
        &self,
        py: Python<'_>,
        outgoing: &Bound<'_, PyAny>,
        message: &Message,
        value: &Bound<'_, PyAny>,
    ) -> Result<()> {
        let (queue, offset) = (self.queue(py)?, message.offset());
        let queue = queue.get();
        let bytes = value_bytes(queue.producer()?.encoder.bind(py), value)?;
        let (bytes, key) = (bytes.as_ref().map(Bytes::as_slice), message.copy_key());
        let at = self.go_to(py, queue, offset).and_then(|(place, ordinal)| Some((place, ordinal?)));
        if let Some((place, ordinal)) = at {
            match queue.buffer.begin_turn(ordinal) {
                Turn::Now => {
                    let sent = queue.send(py, bytes, key.as_deref());
                    let is_sent = sent.is_ok();
                    let pushed =
                        sent.map(|handle| self.owner.push(handle, offset, Kept::Value(value.clone().unbind(), key)));
                    if queue.buffer.end_turn(is_sent) {
                        self.run(py, queue);
                    }
                    return pushed;
                }
                Turn::Later | Turn::Never => {
                    let answer = Answer::Value(Value { value: bytes.map(Box::from), key });
                    let Some(Answer::Value(late)) = self.wait(py, queue, (place, ordinal), outgoing, answer) else {
                        return Ok(());
                    };
                    let handle = queue.send(py, late.value.as_deref(), late.key.as_deref())?;
                    self.owner.push(handle, offset, Kept::Bytes(late.value, late.key));
                    return Ok(());
                }
                Turn::Over => (),
            }
        }
        // Of before a seek, or refused at its turn: this time it is sent at once.
        let handle = queue.send(py, bytes, key.as_deref())?;
        self.owner.push(handle, offset, Kept::Value(value.clone().unbind(), key));
        Ok(())
    }

    /// Adds the records of the message with this offset, which `outgoing` sends. Blocks as `send`.
    fn add(&self, py: Python<'_>, outgoing: &Bound<'_, PyAny>, offset: i64, records: Bound<'_, PyAny>) -> Result<()> {
        let queue = self.queue(py)?;
        let queue = queue.get();
        let at = self.go_to(py, queue, offset).and_then(|(place, ordinal)| Some((place, ordinal?)));
        let Some(at) = at else {
            outgoing.call_method1("send", (offset, records))?;
            return Ok(());
        };
        let answer = Answer::Records(records.unbind());
        if let Some(Answer::Records(late)) = self.wait(py, queue, at, outgoing, answer) {
            outgoing.call_method1("send", (offset, late))?;
        }
        Ok(())
    }

    /// Skips the message with this offset, which has no result. Blocks as `send`.
    fn skip(&self, py: Python<'_>, offset: i64) -> Result<()> {
        let queue = self.queue(py)?;
        if let Some((_, ordinal)) = self.go_to(py, queue.get(), offset) {
            queue.get().skip(py, ordinal);
        }
        Ok(())
    }

    /// Skips the messages without a result before this place; nothing may be added after it. Blocks as `send`.
    fn skip_before(&self, py: Python<'_>, place: usize) -> Result<()> {
        let queue = self.queue(py)?;
        for index in self.owner.go_before(place) {
            queue.get().skip(py, self.owner.places[index].1);
        }
        drop(self.queue.lock().unwrap_or_else(PoisonError::into_inner).take());
        Ok(())
    }

    /// Ends the adding. Does not block.
    ///
    /// Returns what was sent, the offsets that could not be sent with the reasons, and whether more is sent at this
    /// moment: `outgoing.sent` is called then.
    fn seal(&self) -> (Results, Failed, bool) {
        let (sent, failed, is_sending) = self.owner.seal();
        (Results { sent }, failed, is_sending)
    }

    /// Returns the place of the message with this offset, in the order of the job; 0 where it is not one of the job.
    fn place_of(&self, offset: i64) -> usize {
        self.owner.place_of(offset).unwrap_or_default()
    }

    /// Seconds in which the worker sent results of other jobs.
    #[getter]
    fn others_s(&self) -> f64 {
        Duration::from_nanos(self.others_ns.load(Ordering::Relaxed)).as_secs_f64()
    }

    /// True if results wait for their turn.
    #[getter]
    fn are_waiting(&self) -> bool {
        self.owner.waits()
    }

    /// Returns the offset of the first message in the order of the job whose result waits, or was refused.
    ///
    /// None for none. Does not block.
    fn first_open(&self, refused: Vec<i64>) -> Option<i64> {
        self.owner.first_open(&refused)
    }
}
