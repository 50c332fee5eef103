//! The fetched messages of one assigned partition, still in librdkafka's own bounded queue.
//!
//! There is no second queue: librdkafka calls back when its queue turns non-empty, the scheduler notes it, and a worker
//! pulls its batch straight from there. What a handler could not process stays here, in place, until its time has come.

use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use rdkafka_sys as ffi;

use super::PartitionScheduler;
use super::offsets::Offsets;
use super::scheduler::LaneId;
use crate::Result;
use crate::events::What;
use crate::kafka::{Batch, Client, Code, Position, Queue, TopicPartition};

/// How much one job may hold.
#[derive(Clone, Copy, Debug)]
pub struct PullLimits {
    /// Most messages of a batch.
    pub messages_max: usize,
    /// A batch ends with the first few hundred messages that reach this sum of keys and values.
    pub bytes_max: usize,
}

impl Default for PullLimits {
    fn default() -> Self {
        Self { messages_max: 1_000, bytes_max: 16 * 1024 * 1024 }
    }
}

/// Messages that wait to be tried again.
#[derive(Debug)]
pub(super) struct Parked {
    pub(super) batch: Arc<Batch>,
    /// The first of the batch that is not done.
    pub(super) first: usize,
    /// How many times that message has been tried.
    pub(super) attempts: u32,
}

/// What a worker found.
pub(super) enum Found {
    Parked(Parked),
    Fresh {
        batch: Batch,
        is_exhausted: bool,
    },
    /// The partition has no more messages for now, and the consumer asked to be told.
    End,
}

/// The fetched messages of one assigned partition.
pub struct PartitionQueue {
    at: TopicPartition,
    generation: u64,
    limits: PullLimits,
    queue: Queue,
    scheduler: Arc<PartitionScheduler>,
    lane: OnceLock<LaneId>,
    announcer: Mutex<Option<Box<Announcer>>>,
    parked: Mutex<Option<Parked>>,
    /// The end was reached behind messages that were given first. Only the worker that holds the lane looks here.
    is_end_due: AtomicBool,
    offsets: Arc<Offsets>,
    /// Called when there is something to commit.
    on_stored: Arc<dyn Fn() + Send + Sync>,
    client: Arc<Client>,
}

/// What librdkafka's callback gets. Boxed, so that it stays where it is.
struct Announcer {
    scheduler: Arc<PartitionScheduler>,
    lane: LaneId,
}

/// What a partition queue needs from whoever opens it.
#[derive(Clone)]
pub(super) struct Surroundings {
    pub(super) client: Arc<Client>,
    pub(super) offsets: Arc<Offsets>,
    pub(super) on_stored: Arc<dyn Fn() + Send + Sync>,
}

impl PartitionQueue {
    /// Takes the partition's queue out of the consumer's and opens a lane for it; to be called before it is assigned.
    pub(super) fn open(
        at: TopicPartition,
        generation: u64,
        limits: PullLimits,
        scheduler: &Arc<PartitionScheduler>,
        surroundings: Surroundings,
    ) -> Result<Arc<Self>> {
        let Surroundings { client, offsets, on_stored } = surroundings;
        let queue = Queue::partition(&client, &at)?;
        offsets.open(&at, generation);
        let partition = Arc::new(Self {
            at,
            generation,
            limits,
            queue,
            scheduler: Arc::clone(scheduler),
            lane: OnceLock::new(),
            announcer: Mutex::default(),
            parked: Mutex::default(),
            is_end_due: AtomicBool::new(false),
            offsets,
            on_stored,
            client,
        });
        let lane = scheduler.open(Arc::clone(&partition));
        partition.lane.set(lane).expect("set once, here");
        let announcer = Box::new(Announcer { scheduler: Arc::clone(scheduler), lane });
        // SAFETY: the announcer stays in its box until `close` has disabled the callback.
        unsafe {
            let opaque = (&raw const *announcer).cast_mut().cast();
            partition.queue.enable_callback(on_messages, opaque);
        }
        *partition.announcer.lock().unwrap_or_else(PoisonError::into_inner) = Some(announcer);
        // What an earlier assignment left in the queue would keep it from ever turning non-empty again, and so from being
        // announced. After the callback is enabled, so that whatever comes behind this is.
        partition.queue.discard(&partition.at);
        Ok(partition)
    }

    /// Cuts the partition off from librdkafka and from the scheduler: nothing is announced, given or stored any more.
    pub(super) fn close(&self) {
        self.queue.disable_callback();
        self.announcer.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.offsets.close(&self.at, self.generation);
        self.scheduler.close_lane(self.lane());
        self.parked.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    /// Which partition.
    pub const fn topic_partition(&self) -> &TopicPartition {
        &self.at
    }

    /// Which assignment of it, counted by the group member.
    pub const fn generation(&self) -> u64 {
        self.generation
    }

    /// Stored and committed offset, as long as the partition is assigned.
    pub fn stored_and_committed(&self) -> (Option<i64>, Option<i64>) {
        self.offsets.of(&self.at).unwrap_or_default()
    }

    /// Refuses use in another process than the group member's.
    pub(super) fn check_process(&self) -> Result<()> {
        self.client.check_process()
    }

    pub(super) fn lane(&self) -> LaneId {
        *self.lane.get().expect("set when the partition was opened")
    }

    pub(super) fn scheduler(&self) -> &Arc<PartitionScheduler> {
        &self.scheduler
    }

    /// What is to be processed next. Does not wait; only the worker that holds the lane may call it.
    pub(super) fn find(&self) -> Found {
        if let Some(parked) = self.parked.lock().unwrap_or_else(PoisonError::into_inner).take() {
            return Found::Parked(parked);
        }
        if self.is_end_due.swap(false, Ordering::Relaxed) {
            return Found::End;
        }
        let pull = self.queue.pull(&self.at, self.limits.messages_max, self.limits.bytes_max);
        let mut is_at_end = false;
        for (code, text) in pull.errors {
            if code == Code::PARTITION_EOF {
                is_at_end = true;
            } else {
                self.client.emit(What::FetchFailed { at: self.at.clone(), code, text });
            }
        }
        if is_at_end && pull.batch.is_empty() {
            return Found::End;
        }
        self.is_end_due.store(is_at_end, Ordering::Relaxed);
        Found::Fresh { batch: pull.batch, is_exhausted: pull.is_exhausted && !is_at_end }
    }

    /// Keeps messages for a later try.
    pub(super) fn park(&self, parked: Parked) {
        *self.parked.lock().unwrap_or_else(PoisonError::into_inner) = Some(parked);
    }

    /// Stores the next offset to read.
    pub(super) fn store(&self, position: Position) -> Result<()> {
        if self.offsets.store(&self.at, self.generation, position)? {
            (self.on_stored)();
        }
        Ok(())
    }
}

/// librdkafka's callback: the queue has turned non-empty. Runs on its threads, under the queue's lock.
unsafe extern "C" fn on_messages(_rk: *mut ffi::rd_kafka_t, opaque: *mut c_void) {
    // SAFETY: the announcer lives until the callback has been disabled.
    let announcer = unsafe { &*opaque.cast::<Announcer>() };
    announcer.scheduler.announce(announcer.lane);
}

impl std::fmt::Debug for PartitionQueue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PartitionQueue({}, generation {})", self.at, self.generation)
    }
}
