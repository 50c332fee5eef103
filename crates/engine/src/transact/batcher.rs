//! Commits the entries of jobs in shared transactions, on a thread of its own.
//!
//! The thread takes the entries that are there, of any partitions, and commits them together:
//! 1. It begins a transaction, sends all records and waits for their reports. Records that the broker refuses fail
//!    their own entry only.
//! 2. Each entry records how far its job is done. The stored offsets are now the ones to commit.
//! 3. It adds the offsets, with this member's present identity in the group: brokers refuse an identity that is out of
//!    date.
//! 4. It commits, and completes the entries.
//!
//! A transaction that fails through no fault of an entry is aborted and tried again with the same entries: user code
//! does not run twice for it. A commit that is in doubt is looked up: the next begin has the broker end that
//! transaction, and then the group's committed offsets tell whether it was committed. An entry whose partition was
//! revoked meanwhile is dropped: the new owner of the partition processes the messages again.
//!
//! While one transaction commits, jobs go on, and entries gather for the next. So there are as many transactions as the
//! broker can commit, and each is as large as the load makes it. Under load they alternate between two producers. A
//! broker still writes the markers of a transaction after it has acknowledged the commit, and makes the same producer
//! wait for that, but not another one. librdkafka (2.12.1) asks again after 20 ms.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::attempt::{AbortReason, Attempt};
use super::entry::{Committed, TransactionEntry};
use super::queue::EntryQueue;
use crate::clock::{self, Activity, Deadline, Due, Timed};
use crate::events::EventBox;
use crate::kafka::ClientConfig;
use crate::produce::{Producer, ProducerOptions};
use crate::wake::{OwnThread, Parker};
use crate::{Error, Result};

/// Bounds of a transaction.
#[derive(Clone, Copy, Debug)]
pub struct TransactionLimits {
    /// Transactions that follow one another begin at least this far apart; a lone one begins at once.
    pub interval: Duration,
    /// A transaction takes no further entry when it has this number of records.
    pub records_max: usize,
}

/// The time in which the markers of a transaction are written, as a rule.
const MARKERS_WITHIN: Duration = Duration::from_millis(50);

/// The shortest and the longest wait before a transaction that failed is tried again.
const BACK_OFF: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(5));

/// Commits the entries of jobs in shared transactions; closed once.
pub struct TransactionBatcher {
    shared: Arc<Shared>,
    thread: Mutex<Option<OwnThread>>,
}

struct Shared {
    /// Their transactional ids differ, so that they do not fence each other.
    producers: [Arc<Producer>; 2],
    entries: EntryQueue,
    interval: Duration,
    parker: Parker,
    is_closing: AtomicBool,
    /// The moment that the thread waits for. Read only by a test that has the clock.
    waits_until: Mutex<Option<Instant>>,
    /// The number of entries that the thread commits.
    committing: AtomicUsize,
}

impl TransactionBatcher {
    /// Makes the producers and starts the thread. With `is_alone` no other process can have the transactional id.
    ///
    /// # Errors
    /// [`Error::Config`]: librdkafka refuses a property. [`Error::System`]: the thread did not start.
    pub fn new(
        config: &ClientConfig,
        is_alone: bool,
        limits: TransactionLimits,
        events: &Arc<EventBox>,
    ) -> Result<Self> {
        let options = ProducerOptions { is_alone, ..ProducerOptions::default() };
        let name = config.get("transactional.id").unwrap_or_default();
        let producer = |number| {
            let mut config = config.clone();
            config.set("transactional.id", format!("{name}.{number}"));
            Producer::new(&config, options, Arc::clone(events)).map(Arc::new)
        };
        let shared = Arc::new(Shared {
            producers: [producer(0)?, producer(1)?],
            entries: EntryQueue::new(limits.records_max),
            interval: limits.interval,
            parker: Parker::default(),
            is_closing: AtomicBool::new(false),
            waits_until: Mutex::default(),
            committing: AtomicUsize::new(0),
        });
        clock::register(&shared);
        let thread = OwnThread::start("awoke-transact", "start the batcher's thread", {
            let shared = Arc::clone(&shared);
            move || shared.run()
        })?;
        Ok(Self { shared, thread: Mutex::new(Some(thread)) })
    }

    /// Queues an entry. Does not block; the completion is done when the entry is committed.
    ///
    /// Errors of the completion: [`Error::Kafka`] and [`Error::MessageTooLarge`] when a record of the entry was
    /// refused; [`Error::Fenced`] when its partition was revoked; [`Error::ProducerFenced`]; [`Error::Closed`]. Nothing
    /// of it was committed then.
    ///
    /// # Errors
    /// [`Error::Closed`]: the batcher is closed.
    pub fn submit(&self, entry: TransactionEntry) -> Result<Arc<Committed>> {
        let committed = Arc::clone(&entry.committed);
        let mut waiting = self.shared.entries.lock();
        // Under the lock, so that the thread cannot end between this check and the entry.
        if self.shared.is_closing() {
            return Err(Error::Closed { what: "transaction batcher" });
        }
        waiting.push_back(entry);
        drop(waiting);
        self.shared.parker.unpark();
        Ok(committed)
    }

    /// Ends the thread; entries that are not committed fail. Blocks until the thread has ended. Closing again does
    /// nothing.
    ///
    /// # Errors
    /// [`Error::Forked`]: another process made the batcher.
    pub fn close(&self) -> Result<()> {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(thread) = thread else { return Ok(()) };
        {
            let _waiting = self.shared.entries.lock();
            self.shared.is_closing.store(true, Ordering::Release);
        }
        self.shared.parker.unpark();
        self.shared.producers.iter().for_each(|producer| producer.cancel());
        thread.join();
        self.shared.producers.iter().try_for_each(|producer| producer.close(Some(Duration::ZERO)).map(drop))
    }
}

impl Drop for TransactionBatcher {
    fn drop(&mut self) {
        if self.shared.producers[0].check_process().is_ok() {
            drop(self.close());
        }
    }
}

impl Shared {
    fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::Acquire)
    }

    fn run(&self) {
        // Takes the transactional ids early, because that takes a while. An error comes again with the first
        // transaction.
        for producer in &self.producers {
            drop(producer.prepare(&Deadline::after(Some(producer.transaction_timeout()))));
        }
        let (mut next, mut turn, mut ended) = (clock::now(), 0, None::<Instant>);
        let mut failed = None::<Error>;
        loop {
            self.wait_until(next);
            // After the wait, which may have taken the token that `close` left.
            if self.is_closing() {
                break;
            }
            let entries = self.entries.take();
            if entries.is_empty() {
                self.parker.park_until(&Deadline::NEVER);
                continue;
            }
            if let Some(error) = &failed {
                entries.iter().for_each(|entry| entry.fail(error.clone()));
                continue;
            }
            self.committing.store(entries.len(), Ordering::SeqCst);
            next = clock::now() + self.interval;
            turn = if ended.is_some_and(|ended| clock::real_since(ended) < MARKERS_WITHIN) { 1 - turn } else { 0 };
            failed = self.commit(&self.producers[turn], entries);
            ended = Some(clock::real_now());
            self.committing.store(0, Ordering::SeqCst);
            clock::changed();
        }
        for entry in self.entries.lock().drain(..) {
            entry.fail(Error::Closed { what: "transaction batcher" });
        }
    }

    fn waits_until(&self) -> MutexGuard<'_, Option<Instant>> {
        self.waits_until.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns how many entries are not committed yet.
    fn entries(&self) -> usize {
        self.entries.lock().len() + self.committing.load(Ordering::SeqCst)
    }

    /// Parks until this moment, or until it is unparked.
    fn park(&self, moment: Option<Instant>) {
        *self.waits_until() = moment;
        clock::changed();
        self.parker.park_until(&Deadline::NEVER.or_earlier(moment));
        *self.waits_until() = None;
    }

    /// Waits until this moment, or the end.
    fn wait_until(&self, moment: Instant) {
        while clock::now() < moment && !self.is_closing() {
            self.park(Some(moment));
        }
    }

    /// Tries a transaction until each entry is committed, has failed, or was moved to a transaction of its own.
    ///
    /// Returns an error after which no entry may be committed: one has failed whose offset is recorded, and the offsets
    /// of a later transaction would pass its messages.
    fn commit(&self, producer: &Arc<Producer>, mut entries: Vec<TransactionEntry>) -> Option<Error> {
        let mut back_off = BACK_OFF.0;
        let mut attempt = Attempt::new(producer);
        loop {
            entries.retain(|entry| entry.check().map_err(|error| entry.fail(error)).is_ok());
            if entries.is_empty() {
                return None;
            }
            match attempt.run(&mut entries) {
                Ok(()) => {
                    entries.iter().for_each(TransactionEntry::succeed);
                    return None;
                }
                Err(AbortReason::Fatal(error)) => {
                    entries.iter().for_each(|entry| entry.fail(error.clone()));
                    return entries.iter().any(|entry| entry.is_offset_recorded).then_some(error);
                }
                Err(AbortReason::Refused(refused)) => entries = self.entries.separate(entries, refused),
                Err(AbortReason::MetadataFull) => {
                    self.park(Some(clock::now() + back_off));
                    entries.extend(self.entries.take());
                }
                Err(AbortReason::Retry) => {
                    self.wait_until(clock::now() + back_off);
                    back_off = BACK_OFF.1.min(back_off * 2);
                }
            }
            if self.is_closing() {
                entries.iter().for_each(|entry| entry.fail(Error::Closed { what: "transaction batcher" }));
                return None;
            }
        }
    }
}

impl Timed for Shared {
    fn name(&self) -> String {
        "the transaction batcher".into()
    }

    fn due(&self) -> Due {
        // Without entries it waits for the end of an interval in which nothing is to be committed.
        Due { once: self.waits_until().filter(|_| self.entries() > 0 && !self.is_closing()), recurring: None }
    }

    fn activity(&self) -> Activity {
        let (waits, entries) = (self.waits_until().is_some(), self.entries());
        let waiting = if waits { entries } else { 0 };
        Activity { is_busy: entries > 0 && !waits && !self.is_closing(), running: 0, waiting }
    }

    fn look(&self) {
        self.parker.unpark();
    }
}
