//! Where the reading of a partition begins, and goes on.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{Buffered, Interrupt, PartitionQueue};
use crate::Result;
use crate::consume::StartAt;
use crate::events::What;
use crate::kafka::{Code, MessageRef, Position, TopicId};

/// The opening of the text beside an offset that tells of a crash; `runtime/crashes.py` writes it.
pub(super) const CRASH_RECORD: &str = "awoke:began=";

/// A request to go on somewhere else.
#[derive(Clone, Debug)]
pub(super) enum Seek {
    /// Go on at this offset; all earlier state is dropped.
    To(i64),
    /// Go on at the first message of a log that went back. Messages before it that are not done are read again. By its
    /// leader epoch a broker notices when the log has gone back farther since.
    Rewound(Position),
    /// Go on at the first message of a topic that was made again, and has this id now.
    Renewed(TopicId),
    /// Go on where the member has begun to fetch again; all earlier state is dropped.
    Restarted,
    /// The member could not fetch again, for this reason.
    Refused(Code, String),
}

/// The position at which reading has to begin, until librdkafka knows it.
#[derive(Debug, Default)]
pub(super) struct Start {
    position: Mutex<Option<Position>>,
    /// True if there is one.
    is_due: AtomicBool,
}

impl Start {
    pub(super) fn set(&self, position: Position) {
        *self.lock() = Some(position);
        self.is_due.store(true, Ordering::Release);
    }

    fn is_due(&self) -> bool {
        self.is_due.load(Ordering::Acquire)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Position>> {
        self.position.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Clears the position, if it is this offset.
    fn clear(&self, offset: i64) {
        let mut position = self.lock();
        if position.is_some_and(|position| position.offset == offset) {
            *position = None;
            self.is_due.store(false, Ordering::Release);
        }
    }
}

impl PartitionQueue {
    /// Goes on from another offset (-2 the first, -1 the end) after the job that runs now. Does not block.
    ///
    /// The next commit is after that offset, even if that is less than the committed one.
    ///
    /// # Errors
    /// [`crate::Error::Fenced`]: the assignment has ended.
    pub fn seek(&self, offset: i64) -> Result<()> {
        self.check_current()?;
        self.request_seek(Seek::To(offset));
        Ok(())
    }

    /// Goes on from the first message of a topic that was made again. Does not block.
    ///
    /// Until then what is done, and is committed, is of the topic before, and has the id of that.
    pub(in crate::consume) fn renew(&self, id: TopicId) {
        self.request_seek(Seek::Renewed(id));
    }

    /// Notes that the member fetches again, from a place of its choice. Does not block.
    pub(in crate::consume) fn restarted(&self) {
        self.request_seek(Seek::Restarted);
    }

    /// Notes that the member could not fetch again: the partition is stuck as before. Does not block.
    pub(in crate::consume) fn restart_refused(&self, code: Code, text: String) {
        self.request_seek(Seek::Refused(code, text));
    }

    fn request_seek(&self, seek: Seek) {
        {
            let mut due = self.seek_lock();
            *due = Some(seek);
            self.interrupt(Interrupt::Seek);
        }
        self.scheduler.clear_backoff(self.unit());
    }

    fn seek_lock(&self) -> MutexGuard<'_, Option<Seek>> {
        self.seek.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_seek_due(&self) -> bool {
        self.seek_lock().is_some()
    }

    /// Goes on at this place, at which a log went back, unless another place was requested.
    pub(super) fn rewind_to(&self, position: Position) {
        self.seek_lock().get_or_insert(Seek::Rewound(position));
    }

    /// Returns the first message that was handed out, or is kept for a later job, and is not done, as far as there is
    /// one. Only the worker that has the partition calls it.
    fn first_unfinished(&self) -> Option<i64> {
        let kept = match &*self.buffered.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(Buffered::Parked(parked)) => Some(parked.batch.message(parked.first).offset()),
            Some(Buffered::Filling(batch, _)) => batch.iter().next().map(MessageRef::offset),
            None => None,
        };
        self.lanes.as_ref().and_then(|lanes| lanes.offset()).into_iter().chain(kept).min()
    }

    /// Seeks to the place where reading has to begin, if it has not begun there. Returns `false` when fetching has not
    /// begun, so that it is to be tried again. Blocks the calling thread for a moment.
    ///
    /// That is a place that the route sought before, or the group's committed offset, because the log may have been
    /// truncated since the commit. librdkafka (2.12.1) has a broker compare the two (KIP-320) when a leader changes, or
    /// in a seek with a leader epoch, but not when a partition is assigned. Where the log was truncated it goes back to
    /// that place; the messages from there on tell of a rewind.
    pub(in crate::consume) fn start(&self) -> bool {
        if !self.start.is_due() {
            return true;
        }
        // The lock is held, so that a seek of the route's comes after this one.
        let mut position = self.start.lock();
        if let Some(position) = position.filter(|_| !self.is_seek_due()) {
            if !self.context.client.seek(&self.at, position) {
                return false;
            }
            self.clear_stuck();
        }
        *position = None;
        self.start.is_due.store(false, Ordering::Release);
        true
    }

    /// Returns the offset of a seek that librdkafka has not executed; negative for the first message or the end.
    pub(in crate::consume) fn sought_offset(&self) -> Option<i64> {
        self.start.lock().map(|position| position.offset)
    }

    /// Notes that the member fetches again from this offset, which was sought.
    pub(in crate::consume) fn note_fetched_again(&self, offset: i64) {
        self.start.clear(offset);
        self.clear_stuck();
    }

    /// Returns one past the last message that was pulled; `None` before the first.
    pub(in crate::consume) fn next_offset(&self) -> Option<i64> {
        self.history().next()
    }

    /// Returns the offset at which fetching has to go on: after the last message, or where the last seek went.
    pub(in crate::consume) fn resume_offset(&self) -> Option<i64> {
        self.sought_offset().or_else(|| self.history().resume_offset())
    }

    /// Executes a seek that was requested. The buffered messages and the stored offset belong to the reading before.
    pub(super) fn execute_seek(&self) {
        let seek = {
            let mut seek = self.seek_lock();
            self.end_interrupt(Interrupt::Seek);
            seek.take()
        };
        let at = |offset| Position { offset, leader_epoch: -1 };
        let mut new_topic = None;
        let (position, is_fetching) = match seek {
            None => return,
            Some(Seek::Refused(code, text)) => return self.note_stuck(code, text, None),
            Some(Seek::To(offset)) => (at(offset), false),
            // The seek drops them: the next commit would pass them.
            Some(Seek::Rewound(to)) => {
                let offset = self.first_unfinished().map_or(to.offset, |unfinished| unfinished.min(to.offset));
                (Position { offset, ..to }, false)
            }
            Some(Seek::Restarted) => (at(StartAt::EARLIEST), true),
            Some(Seek::Renewed(id)) => {
                self.begin_renewed();
                new_topic = Some(id);
                (at(0), false)
            }
        };
        self.forget_reading(position);
        if new_topic.is_some() {
            self.context.offsets.set_topic(&self.at, new_topic);
        }
        if is_fetching {
            *self.start.lock() = None;
            self.start.is_due.store(false, Ordering::Release);
            self.clear_stuck();
        } else {
            self.seek_in_client(position);
        }
    }

    /// Drops what belongs to the reading before a seek.
    fn forget_reading(&self, position: Position) {
        if let Some(lanes) = &self.lanes {
            lanes.reset();
        }
        self.buffer(None);
        self.history().seek(position.offset);
        self.is_end_due.store(false, Ordering::Relaxed);
        self.end.store(-1, Ordering::Relaxed);
        let is_first = self.context.offsets.rewind(&self.at, self.generation, position);
        self.wake_committer(is_first);
    }

    fn begin_renewed(&self) {
        if let Some(from) = self.next_offset() {
            let reason = "the topic was deleted and made again".into();
            self.context.client.emit(What::Rewound { at: self.at.clone(), from, to: 0, reason });
        }
        // On the thread of the group member; a reader has none.
        (self.context.wake_owner)();
        if self.context.tells_end {
            self.context.open_partitions.learn_leaders(&self.context.client);
        }
    }

    /// Seeks in librdkafka, which then drops the messages of its queue, one by one, when they are pulled. Before it
    /// begins to fetch, in the hook `assigned` for example, and where fetching has ended, it takes no seek: the owner's
    /// thread tries again then.
    fn seek_in_client(&self, position: Position) {
        let mut start = self.start.lock();
        let has_begun = self.context.client.seek(&self.at, position);
        *start = (!has_begun).then_some(position);
        self.start.is_due.store(!has_begun, Ordering::Release);
        drop(start);
        if has_begun {
            self.clear_stuck();
        } else {
            (self.context.wake_owner)();
        }
    }

    /// Returns librdkafka's own position.
    pub(super) fn client_position(&self) -> Option<Position> {
        self.context.client.position(&mut self.position_list.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
