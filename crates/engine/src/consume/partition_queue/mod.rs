//! The fetched messages of one assigned partition, still in librdkafka's own bounded queue.
//!
//! There is no second queue: librdkafka calls back when its queue turns non-empty, the scheduler notes it, and a worker
//! pulls its batch straight from there. What a handler could not process stays here, in place, until its time has come.

mod pull;

use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicI64, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use super::classes::ClassId;
use super::finished::split_metadata;
use super::flow::Flow;
use super::given::Given;
use super::lanes::{Concurrency, Lanes, Taken, Wakes};
use super::offsets::{Offsets, ToCommit};
use super::open_partitions::OpenPartitions;
use super::scheduler::{LaneId, LaneOptions};
use super::{Hook, PartitionScheduler, Turn};
use crate::Result;
use crate::kafka::{Batch, Client, Code, CommittedOffset, Position, Queue, TopicPartition, TopicPartitionList, ffi};

/// How the text beside an offset begins that tells of a crash; `runtime/crashes.py` writes it.
const CRASH_RECORD: &str = "awoke:began=";

/// Messages that wait in their place: to be tried again, or because the route's flow does not allow them yet.
#[derive(Debug)]
pub(super) struct Parked {
    pub(super) batch: Arc<Batch>,
    /// The first of the batch that is not done.
    pub(super) first: usize,
    /// How many times that message has been tried.
    pub(super) attempts: u32,
}

/// What a lane keeps between two jobs.
#[derive(Debug)]
enum Held {
    Parked(Parked),
    /// A batch that waits for more, until then at the latest.
    Filling(Batch, Instant),
}

/// What a worker found.
pub(super) enum Found {
    /// Messages from `first` of `parked` to before `end`. Not exhausted: there may be more behind them.
    Messages { parked: Parked, end: usize, is_exhausted: bool },
    /// Nothing.
    Nothing { is_exhausted: bool },
    /// Nothing before this moment.
    NotBefore(Instant),
    /// Nothing until more comes, or this moment.
    Until(Instant),
    /// The partition has no more messages for now, and the consumer asked to be told.
    End,
    /// Messages have gone to their lanes: these slots have something to do.
    TakenIn { slots: Vec<LaneId>, is_exhausted: bool },
    /// Messages whose lanes the route is to say.
    ToSort { batch: Arc<Batch>, is_exhausted: bool },
    /// A job of lanes.
    Job(Taken),
}

/// What the scheduler gives to workers: a partition, or a slot of one that has several jobs at once.
#[derive(Clone)]
pub struct LaneOwner {
    pub(super) partition: Arc<PartitionQueue>,
    /// `None` for the partition itself: its hooks, and what it takes in.
    pub(super) slot: Option<usize>,
}

/// How one route's partitions are worked on.
#[derive(Clone, Debug, Default)]
pub struct LaneSettings {
    /// How fast messages may come.
    pub flow: Flow,
    /// Whose weight the partitions count for.
    pub class: ClassId,
    /// How often the hook `tick` comes; `None` for never.
    pub tick_every: Option<Duration>,
    /// Whether several messages of a partition are worked on at once; `None` for one job at a time.
    pub concurrency: Option<Concurrency>,
    /// Whether offsets are committed in transactions only, with what came of the messages.
    pub is_transactional: bool,
}

/// The fetched messages of one assigned partition.
pub struct PartitionQueue {
    at: TopicPartition,
    generation: u64,
    flow: Flow,
    queue: Queue,
    scheduler: Arc<PartitionScheduler>,
    lane: OnceLock<LaneId>,
    /// Where the route has several jobs of a partition at once: its lanes, and the slots of those jobs.
    lanes: Option<Arc<Lanes>>,
    slots: OnceLock<Box<[LaneId]>>,
    announcer: Mutex<Option<Box<Announcer>>>,
    held: Mutex<Option<Held>>,
    /// Where to go on; executed by the next worker that holds the lane.
    seek: Mutex<Option<Seek>>,
    /// Where reading is to begin, until librdkafka has been told.
    go_to: Mutex<Option<Position>>,
    /// Whether there is such a place.
    is_start_due: AtomicBool,
    /// For asking librdkafka where it is; kept, because it is asked after nearly each pull.
    place: Mutex<TopicPartitionList>,
    /// How far messages have been given out. Only the worker that holds the lane looks here.
    given: Mutex<Given>,
    /// The end was reached behind messages that were given first. Only the worker that holds the lane looks here.
    is_end_due: AtomicBool,
    /// Offset after trailing control records that is not stored yet; -1 for none.
    end: AtomicI64,
    /// The leader epoch of that control record.
    end_epoch: AtomicI32,
    /// Why a job of single messages is to end before its next message: bits of `Interrupt`.
    interrupts: AtomicU8,
    is_stuck: AtomicBool,
    /// An error has moved librdkafka's position, and no message has come since.
    is_position_wrong: AtomicBool,
    siblings: Arc<OpenPartitions>,
    is_transactional: bool,
    /// Whether its worker wants to be told of its end.
    tells_end: bool,
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

/// Why a job of single messages is to end before its next message.
#[derive(Clone, Copy)]
#[repr(u8)]
enum Interrupt {
    Withdrawn = 1,
    Paused = 2,
    Seek = 4,
}

/// Where reading is to go on, and what for.
#[derive(Clone, Debug)]
enum Seek {
    /// At this offset: everything before is forgotten.
    To(i64),
    /// At the first message of a topic that was made again.
    Renewed,
    /// Where the member has begun to fetch anew: everything before is forgotten.
    Restarted,
    /// Nowhere: the member could not fetch anew, for this reason.
    Refused(Code, String),
}

/// What a partition queue needs from its owner, a group member or a reader.
#[derive(Clone)]
pub(super) struct Surroundings {
    pub(super) siblings: Arc<OpenPartitions>,
    /// Whether `Found::End` is wanted. Otherwise the end moves the stored offset beyond control records.
    pub(super) tells_end: bool,
    pub(super) client: Arc<Client>,
    pub(super) offsets: Arc<Offsets>,
    pub(super) on_stored: Arc<dyn Fn() + Send + Sync>,
}

impl PartitionQueue {
    /// Takes the partition's queue out of the consumer's and opens a lane for it; to be called before it is assigned.
    pub(super) fn open(
        at: TopicPartition,
        generation: u64,
        settings: &LaneSettings,
        scheduler: &Arc<PartitionScheduler>,
        surroundings: Surroundings,
    ) -> Result<Arc<Self>> {
        let Surroundings { client, offsets, on_stored, siblings, tells_end } = surroundings;
        let queue = Queue::partition(&client, &at)?;
        let place = TopicPartitionList::of(std::slice::from_ref(&at))?;
        let lanes =
            settings.concurrency.clone().map(|each| Arc::new(Lanes::new(at.clone(), each, Arc::clone(&client))));
        offsets.open(&at, generation, lanes.clone(), settings.is_transactional);
        let partition = Arc::new(Self {
            at,
            generation,
            flow: settings.flow.clone(),
            queue,
            scheduler: Arc::clone(scheduler),
            lane: OnceLock::new(),
            lanes,
            slots: OnceLock::new(),
            announcer: Mutex::default(),
            held: Mutex::default(),
            seek: Mutex::default(),
            go_to: Mutex::default(),
            is_start_due: AtomicBool::new(false),
            place: Mutex::new(place),
            given: Mutex::default(),
            is_end_due: AtomicBool::new(false),
            end: AtomicI64::new(-1),
            end_epoch: AtomicI32::new(-1),
            interrupts: AtomicU8::new(0),
            is_stuck: AtomicBool::new(false),
            is_position_wrong: AtomicBool::new(false),
            siblings,
            is_transactional: settings.is_transactional,
            tells_end,
            offsets,
            on_stored,
            client,
        });
        let tick = settings.tick_every.map(|every| (every, Hook::Tick));
        let owner = |slot| LaneOwner { partition: Arc::clone(&partition), slot };
        let lane =
            scheduler.open(owner(None), LaneOptions { class: settings.class, counts: partition.lanes.is_none(), tick });
        partition.lane.set(lane).expect("set once, here");
        let slots = partition.lanes.as_ref().map_or(0, |lanes| lanes.settings().jobs_max);
        let open =
            |slot| scheduler.open(owner(Some(slot)), LaneOptions { class: settings.class, counts: true, tick: None });
        partition.slots.set((0..slots).map(open).collect()).expect("set once, here");
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
        partition.siblings.add(&partition);
        Ok(partition)
    }

    /// Cuts the partition off from librdkafka and from the scheduler: nothing is announced, given or stored any more.
    pub(super) fn close(&self) {
        self.interrupt(Interrupt::Withdrawn);
        self.siblings.remove(self);
        self.queue.disable_callback();
        self.announcer.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.offsets.close(&self.at, self.generation);
        self.all_lanes().for_each(|lane| self.scheduler.close_lane(lane));
        if let Some(lanes) = &self.lanes {
            lanes.begin_anew();
        }
        self.hold(None);
    }

    /// Notes how long a batch took, where batches are bounded by that.
    pub(super) fn note_pace(&self, messages: usize, took: Duration) {
        if let Some(pace) = &self.flow.pace {
            pace.note(messages, took);
        }
    }

    /// The turn of a job of single messages that begins now.
    pub(super) fn turn(self: &Arc<Self>) -> Turn {
        Turn::new(self, self.flow.turn_max)
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

    fn slots(&self) -> &[LaneId] {
        self.slots.get().expect("set when the partition was opened")
    }

    /// The partition's own lane in the scheduler, and those of its slots.
    pub(super) fn all_lanes(&self) -> impl Iterator<Item = LaneId> {
        std::iter::once(self.lane()).chain(self.slots().iter().copied())
    }

    /// The lanes, where the route has several jobs of a partition at once.
    pub(super) const fn lanes(&self) -> Option<&Arc<Lanes>> {
        self.lanes.as_ref()
    }

    /// Goes on where the group's last commit stands.
    pub(super) fn remember(&self, committed: &CommittedOffset) {
        let position = Position { offset: committed.offset, leader_epoch: committed.leader_epoch };
        self.given.lock().unwrap_or_else(PoisonError::into_inner).begin(position.offset);
        self.offsets.committed(&self.at, position.offset);
        if position.offset > 0 && position.leader_epoch >= 0 {
            *self.go_to() = Some(position);
            self.is_start_due.store(true, Ordering::Release);
        }
        let Some(lanes) = &self.lanes else { return };
        let (note, earlier) = split_metadata(position.offset, committed.metadata.as_deref().unwrap_or_default());
        let is_careful = note.is_some_and(|note| note.starts_with(CRASH_RECORD));
        lanes.remember(position, earlier, is_careful);
    }

    /// Seeks to where reading is to begin, if it has not begun there; `false`: fetching has not begun, try again. Blocks the calling
    /// thread for a moment.
    ///
    /// That is a place that the route sought before, or the group's committed offset: the log may have been truncated since the
    /// commit. librdkafka (2.12.1) has a broker compare the two (KIP-320) when a leader changes, or in a seek with a leader epoch, but
    /// not when a partition is assigned. Where the log was truncated it goes back to that place; the messages from there on
    /// tell of a rewind.
    pub(super) fn start(&self) -> bool {
        if !self.is_start_due.load(Ordering::Acquire) {
            return true;
        }
        // The lock is held, so that a seek of the route's comes behind this one.
        let mut go_to = self.go_to();
        let has_begun = self.is_seek_due() || go_to.is_none_or(|position| self.client.seek(&self.at, position));
        if has_begun {
            *go_to = None;
            self.is_start_due.store(false, Ordering::Release);
        }
        has_begun
    }

    fn go_to(&self) -> MutexGuard<'_, Option<Position>> {
        self.go_to.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn scheduler(&self) -> &Arc<PartitionScheduler> {
        &self.scheduler
    }

    /// Gives messages to their lanes; the slots that have something to do now.
    pub(super) fn admit(&self, batch: Batch, told: Option<&[u64]>) -> Vec<LaneId> {
        let Some(lanes) = &self.lanes else { return Vec::new() };
        let wakes = lanes.admit(batch, told);
        if wakes.is_news {
            self.touch();
        }
        self.slots_of(&wakes)
    }

    pub(super) fn empty_batch(&self) -> Batch {
        Batch::of_loose(self.at.clone(), [], Arc::clone(&self.client))
    }

    fn slots_of(&self, wakes: &Wakes) -> Vec<LaneId> {
        wakes.slots.iter().map(|slot| self.slots()[*slot]).collect()
    }

    /// Tells whom a change concerns.
    pub(super) fn tell(&self, wakes: &Wakes) {
        if wakes.is_news {
            self.touch();
        }
        wakes.slots.iter().for_each(|slot| self.scheduler.announce(self.slots()[*slot]));
        if wakes.takes_in {
            self.scheduler.announce(self.lane());
        }
    }

    fn touch(&self) {
        // An assignment that has ended has nothing to commit.
        if let Ok(is_news) = self.offsets.touch(&self.at, self.generation) {
            self.told(is_news);
        }
    }

    /// Lets no new job begin; one of single messages ends before its next message.
    pub(super) fn withdraw(&self) {
        self.interrupt(Interrupt::Withdrawn);
        self.all_lanes().for_each(|lane| self.scheduler.withdraw(lane));
    }

    fn interrupt(&self, interrupt: Interrupt) {
        self.interrupts.fetch_or(interrupt as u8, Ordering::Relaxed);
    }

    fn end_interrupt(&self, interrupt: Interrupt) {
        self.interrupts.fetch_and(!(interrupt as u8), Ordering::Relaxed);
    }

    /// Whether a job of single messages is to end before its next message. Does not block.
    pub(super) fn is_wanted_back(&self) -> bool {
        self.interrupts.load(Ordering::Relaxed) != 0 || self.scheduler.is_quiet()
    }

    /// Goes on from another offset (-2 the first, -1 the end) after the job that runs now. Does not block.
    ///
    /// What is committed next is behind that offset, even if that is less than what was committed before.
    ///
    /// # Errors
    /// [`crate::Error::Fenced`] when the assignment has ended.
    pub fn seek(&self, offset: i64) -> Result<()> {
        self.check_current()?;
        self.go_on(Seek::To(offset));
        Ok(())
    }

    /// Goes on from the first message of a topic that was made again. Does not block.
    pub(super) fn renew(&self) {
        self.go_on(Seek::Renewed);
    }

    /// The member fetches anew from a place of its choice. Does not block.
    pub(super) fn restarted(&self) {
        self.go_on(Seek::Restarted);
    }

    /// The member could not fetch anew: the partition is stuck as before. Does not block.
    pub(super) fn restart_refused(&self, code: Code, text: String) {
        self.go_on(Seek::Refused(code, text));
    }

    fn go_on(&self, seek: Seek) {
        {
            let mut due = self.seek.lock().unwrap_or_else(PoisonError::into_inner);
            *due = Some(seek);
            self.interrupt(Interrupt::Seek);
        }
        self.scheduler.hasten(self.lane());
    }

    /// One past the last message that was pulled; `None` before the first.
    pub(super) fn next_offset(&self) -> Option<i64> {
        self.given.lock().unwrap_or_else(PoisonError::into_inner).next()
    }

    /// The first offset at or after a time, in milliseconds since 1970; -1 for the end. Blocks the calling thread.
    pub fn offset_at(&self, timestamp_ms: i64) -> Result<i64> {
        self.client.offset_at(&self.at, timestamp_ms)
    }

    /// What the group has committed. Blocks the calling thread.
    pub fn committed(&self) -> Result<Option<CommittedOffset>> {
        let committed = self.client.committed(std::slice::from_ref(&self.at))?.pop().flatten();
        Ok(committed.map(|CommittedOffset { offset, leader_epoch, metadata }| {
            let note = metadata.as_deref().and_then(|text| split_metadata(offset, text).0).map(Arc::from);
            CommittedOffset { offset, leader_epoch, metadata: note }
        }))
    }

    /// Gives its messages to nobody until `resume`. Does not block.
    pub fn pause(&self) -> Result<()> {
        self.check_current()?;
        self.interrupt(Interrupt::Paused);
        self.all_lanes().for_each(|lane| self.scheduler.pause(lane));
        Ok(())
    }

    /// Ends a pause. Does not block.
    pub fn resume(&self) -> Result<()> {
        self.check_current()?;
        self.end_interrupt(Interrupt::Paused);
        self.all_lanes().for_each(|lane| self.scheduler.resume(lane));
        Ok(())
    }

    /// Has messages that wait for their back-off tried again now. Does not block.
    pub fn hasten(&self) -> Result<()> {
        self.check_current()?;
        self.scheduler.hasten(self.lane());
        if let Some(lanes) = &self.lanes {
            self.tell(&lanes.hasten());
        }
        Ok(())
    }

    /// Refuses when the assignment has ended, or in another process.
    pub fn check_current(&self) -> Result<()> {
        self.check_process()?;
        self.offsets.check_current(&self.at, self.generation)
    }

    /// The consumer that the partition belongs to.
    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    /// What a transaction is to commit.
    pub(super) fn for_transaction(&self) -> Result<Option<ToCommit>> {
        self.offsets.for_transaction(&self.at, self.generation)
    }

    /// The broker holds this offset now.
    pub(super) fn note_committed(&self, offset: i64) {
        self.offsets.committed(&self.at, offset);
    }

    /// Stores the next offset to read.
    pub(super) fn store(&self, position: Position) -> Result<()> {
        self.told(self.offsets.store(&self.at, self.generation, position)?);
        Ok(())
    }

    /// Stores the next offset to read with a text beside it, which replaces another one at the same offset.
    pub fn annotate(&self, offset: i64, metadata: Option<Arc<str>>) -> Result<()> {
        self.check_process()?;
        // Where messages end in any order, a text stands beside the watermark.
        let offset = self.lanes.as_ref().and_then(|lanes| lanes.offset()).unwrap_or(offset);
        let position = Position { offset, leader_epoch: -1 };
        self.told(self.offsets.annotate(&self.at, self.generation, position, metadata)?);
        Ok(())
    }

    fn told(&self, is_news: bool) {
        if is_news {
            (self.on_stored)();
        }
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
