//! The fetched messages of one assigned partition, still in librdkafka's own bounded queue.
//!
//! There is no second queue: librdkafka calls back when its queue turns non-empty, the scheduler notes it, and a worker
//! pulls its batch straight from there. Messages that a handler could not process stay here until their time has come.
//!
//! `pull` is what a worker finds here, `seek` where reading goes on, `faults` why messages do not come, `offsets` what
//! is stored.

mod faults;
mod offsets;
mod pull;
mod seek;
#[cfg(all(test, not(feature = "model")))]
mod tests;

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicI64, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use super::fetch_history::FetchHistory;
use super::finished::bytes_of_rows;
use super::flow::Flow;
use super::lanes::{Concurrency, GIVE_ON_AFTER, LaneWork, Lanes, Notifications};
use super::offsets::Offsets;
use super::open_partitions::OpenPartitions;
use super::scheduler::{ClassId, UnitId, UnitOptions};
use super::shared_job::SharedLanes;
use super::{Hook, PartitionScheduler, Turn};
use crate::Result;
use crate::kafka::{Batch, Client, Queue, TopicPartition, TopicPartitionList};
use crate::state::{Table, TablePartition};
use crate::wake::Completion;
use seek::{Seek, Start};

/// Messages that are kept: to be tried again, or because the route's flow does not allow them yet.
#[derive(Debug)]
pub(super) struct Parked {
    pub(super) batch: Arc<Batch>,
    /// The index of the first message that is not done.
    pub(super) first: usize,
    /// The number of tries of that message.
    pub(super) attempts: u32,
}

/// The messages that a partition keeps between two jobs.
#[derive(Debug)]
enum Buffered {
    Parked(Parked),
    /// A batch that waits for more messages, until then at the latest.
    Filling(Batch, Instant),
}

/// The find of a worker.
pub(super) enum Found {
    /// Messages from `first` of `parked` to before `end`. If not exhausted, there may be more after them.
    Messages { parked: Parked, end: usize, is_exhausted: bool },
    /// Nothing.
    Nothing { is_exhausted: bool },
    /// Nothing before this moment.
    NotBefore(Instant),
    /// Nothing until more messages come, or this moment.
    Until(Instant),
    /// The partition has no more messages for now, and its owner asked for this.
    End,
    /// Messages went to their lanes: these slots have something to do.
    Admitted { slots: Vec<UnitId>, is_exhausted: bool },
    /// Messages whose lanes the route has to name.
    Unassigned { batch: Arc<Batch>, is_exhausted: bool },
    /// A job of lanes.
    Lanes(LaneWork),
}

/// The owner of a scheduler's unit: a partition, or a job slot of a partition with lanes.
#[derive(Clone)]
pub struct UnitOwner {
    pub(super) partition: Arc<PartitionQueue>,
    /// `None` for the partition itself: its hooks, and the admission of its messages.
    pub(super) slot: Option<usize>,
}

/// The settings of one route's partitions.
#[derive(Clone, Debug, Default)]
pub struct PartitionSettings {
    /// The limits on messages.
    pub flow: Flow,
    /// The class whose weight the partitions count for.
    pub class: ClassId,
    /// The interval of the hook `tick`; `None` for never.
    pub tick_every: Option<Duration>,
    /// The work on several messages of a partition at once; `None` for one job at a time.
    pub concurrency: Option<Concurrency>,
    /// True if offsets are committed in transactions only, with the records that go with them.
    pub is_transactional: bool,
    /// The number of the route among those of the process.
    pub route_number: u64,
    /// The tables whose rows its jobs read and write.
    pub tables: Vec<Arc<Table>>,
}

/// The fetched messages of one assigned partition.
pub struct PartitionQueue {
    at: TopicPartition,
    generation: u64,
    route_number: u64,
    flow: Flow,
    queue: Queue,
    scheduler: Arc<PartitionScheduler>,
    unit: OnceLock<UnitId>,
    /// The lanes of a route with several jobs of a partition at once, and the units of its job slots.
    lanes: Option<Arc<Lanes>>,
    slot_units: OnceLock<Box<[UnitId]>>,
    buffered: Mutex<Option<Buffered>>,
    /// Where to go on; executed by the next worker that has the partition.
    seek: Mutex<Option<Seek>>,
    start: Start,
    /// For asking librdkafka for its position; kept, because it is asked after nearly each pull.
    position_list: Mutex<TopicPartitionList>,
    /// Used only by the worker that has the partition.
    history: Mutex<FetchHistory>,
    /// The end was reached after messages that come first. Used only by the worker that has the partition.
    is_end_due: AtomicBool,
    /// The offset after trailing control records that is not stored yet; -1 for none.
    end: AtomicI64,
    /// The leader epoch of that control record.
    end_epoch: AtomicI32,
    /// Why a job of single messages has to end before its next message: bits of `Interrupt`.
    interrupts: AtomicU8,
    /// Completed when no job is begun any more, because the partition is given back.
    withdrawn: Arc<Completion<()>>,
    is_stuck: AtomicBool,
    /// An error has moved librdkafka's position, and no message has come since.
    is_position_wrong: AtomicBool,
    is_transactional: bool,
    /// The offset that the broker holds, and the text beside it, as far as they are known.
    held: Mutex<Option<(i64, Option<Arc<str>>)>>,
    /// The tables of the route, each with its partition.
    tables: Vec<(Arc<Table>, Arc<TablePartition>)>,
    context: PartitionContext,
}

/// Why a job of single messages has to end before its next message.
#[derive(Clone, Copy)]
#[repr(u8)]
enum Interrupt {
    Withdrawn = 1,
    Paused = 2,
    Seek = 4,
}

/// The things that a partition queue gets from its owner, a group member or a reader.
#[derive(Clone)]
pub(super) struct PartitionContext {
    pub(super) client: Arc<Client>,
    pub(super) offsets: Arc<Offsets>,
    pub(super) open_partitions: Arc<OpenPartitions>,
    /// Wakes the owner's thread: there is something to commit, or reading has to begin somewhere else.
    pub(super) wake_owner: Arc<dyn Fn() + Send + Sync>,
    /// True if `Found::End` is wanted. Otherwise the end moves the stored offset beyond control records.
    pub(super) tells_end: bool,
}

impl PartitionQueue {
    /// Takes the partition's queue out of the consumer's and opens its units; to be called before the partition is
    /// assigned.
    pub(super) fn open(
        at: TopicPartition,
        generation: u64,
        settings: &PartitionSettings,
        scheduler: &Arc<PartitionScheduler>,
        context: PartitionContext,
    ) -> Result<Arc<Self>> {
        let queue = Queue::partition(&context.client, &at)?;
        let position_list = TopicPartitionList::of(std::slice::from_ref(&at))?;
        let taken = bytes_of_rows(settings.tables.len());
        let new_lanes = |concurrency| Arc::new(Lanes::new(at.clone(), concurrency, Arc::clone(&context.client), taken));
        let lanes = settings.concurrency.clone().map(new_lanes);
        context.offsets.open(&at, generation, lanes.clone(), settings.is_transactional);
        let number = at.partition;
        let partition = Arc::new(Self {
            at,
            generation,
            route_number: settings.route_number,
            flow: settings.flow.clone(),
            queue,
            scheduler: Arc::clone(scheduler),
            unit: OnceLock::new(),
            lanes,
            slot_units: OnceLock::new(),
            buffered: Mutex::default(),
            seek: Mutex::default(),
            start: Start::default(),
            position_list: Mutex::new(position_list),
            history: Mutex::default(),
            is_end_due: AtomicBool::new(false),
            end: AtomicI64::new(-1),
            end_epoch: AtomicI32::new(-1),
            interrupts: AtomicU8::new(0),
            withdrawn: Arc::default(),
            is_stuck: AtomicBool::new(false),
            is_position_wrong: AtomicBool::new(false),
            is_transactional: settings.is_transactional,
            held: Mutex::default(),
            tables: settings.tables.iter().map(|table| (Arc::clone(table), table.open_partition(number))).collect(),
            context,
        });
        partition.open_units(settings);
        if !partition.tables.is_empty() {
            partition.scheduler.hold(partition.unit());
        }
        partition.listen();
        partition.context.open_partitions.add(&partition);
        Ok(partition)
    }

    fn open_units(self: &Arc<Self>, settings: &PartitionSettings) {
        let owner = |slot| UnitOwner { partition: Arc::clone(self), slot };
        let class = settings.class;
        let tick = settings.tick_every.map(|every| (every, Hook::Tick));
        let is_limited = self.lanes.is_none();
        let unit = self.scheduler.open(owner(None), UnitOptions { class, is_limited, tick });
        self.unit.set(unit).expect("set once, here");
        let slots = self.lanes.as_ref().map_or(0, |lanes| lanes.settings().jobs_max);
        let open = |slot| self.scheduler.open(owner(Some(slot)), UnitOptions { class, is_limited: true, tick: None });
        self.slot_units.set((0..slots).map(open).collect()).expect("set once, here");
    }

    /// Has librdkafka announce messages to the scheduler.
    fn listen(&self) {
        let (scheduler, unit) = (Arc::clone(&self.scheduler), self.unit());
        self.queue.on_non_empty(move || scheduler.announce(unit));
        // Messages that an earlier assignment left in the queue would keep it from ever turning non-empty again, and so
        // from being announced. They are discarded after the listener is set, so that all later ones are announced.
        self.queue.discard(&self.at);
    }

    /// Disconnects the partition from librdkafka and from the scheduler: nothing is announced, handed out or stored any
    /// more.
    pub(super) fn close(&self) {
        self.interrupt(Interrupt::Withdrawn);
        self.withdrawn.complete(());
        self.context.open_partitions.remove(self);
        self.queue.stop_listening();
        self.context.offsets.close(&self.at, self.generation);
        self.tables.iter().for_each(|(table, partition)| table.close_partition(partition));
        self.all_units().for_each(|unit| self.scheduler.close_unit(unit));
        if let Some(lanes) = &self.lanes {
            lanes.reset();
        }
        self.buffer(None);
    }

    /// Returns whether several of its jobs may run at the same time.
    pub const fn has_lanes(&self) -> bool {
        self.lanes.is_some()
    }

    /// Returns the partition of a table that the route names. Does not block.
    pub fn table(&self, table: &Arc<Table>) -> Option<&Arc<TablePartition>> {
        self.tables.iter().find(|(known, _)| Arc::ptr_eq(known, table)).map(|(_, partition)| partition)
    }

    /// Returns the partitions of the route's tables.
    pub(super) fn tables(&self) -> impl Iterator<Item = &Arc<TablePartition>> {
        self.tables.iter().map(|(_, partition)| partition)
    }

    /// Begins with hooks and jobs, if the rows of all tables are there.
    pub(super) fn note_restored(&self) {
        if self.tables().all(|table| table.is_restored()) {
            self.scheduler.release(self.unit());
        }
    }

    /// Notes how long a batch took, where batches are bounded by that.
    pub(super) fn note_pace(&self, messages: usize, took: Duration) {
        if let Some(pace) = &self.flow.pace {
            pace.note(messages, took);
        }
    }

    /// Begins the turn of a job of single messages.
    pub(super) fn turn(self: &Arc<Self>) -> Turn {
        Turn::new(self, self.flow.turn_max)
    }

    /// Returns the topic and the partition.
    pub const fn topic_partition(&self) -> &TopicPartition {
        &self.at
    }

    /// Returns the number of the assignment, among all of the process.
    pub const fn generation(&self) -> u64 {
        self.generation
    }

    /// Returns the number of the route.
    pub const fn route_number(&self) -> u64 {
        self.route_number
    }

    /// Returns the next offset to pull, as far as it is known, and whether messages are kept back: for a moment, by a
    /// pause, or because as many as allowed are under way. Does not block.
    pub(super) fn pulled(&self) -> (Option<i64>, bool) {
        let has_buffered = self.buffered.lock().unwrap_or_else(PoisonError::into_inner).is_some();
        (self.history().next(), has_buffered || !self.queue.is_empty())
    }

    /// Refuses use in another process than the group member's.
    pub(super) fn check_process(&self) -> Result<()> {
        self.context.client.check_process()
    }

    /// Refuses when the assignment has ended, or in another process.
    ///
    /// # Errors
    /// [`crate::Error::Fenced`], [`crate::Error::Forked`].
    pub fn check_current(&self) -> Result<()> {
        self.check_process()?;
        self.context.offsets.check_current(&self.at, self.generation)
    }

    /// Refuses as `check_current`, and when the partition was lost: it is another member's, though it is given back
    /// only when its jobs have ended.
    pub(crate) fn check_not_lost(&self) -> Result<()> {
        self.check_current()?;
        if self.context.client.is_assignment_lost() {
            return Err(crate::Error::Fenced { topic: self.at.topic.to_string(), partition: self.at.partition });
        }
        Ok(())
    }

    /// Returns the consumer that the partition belongs to.
    pub(crate) fn client(&self) -> &Client {
        &self.context.client
    }

    pub(super) const fn scheduler(&self) -> &Arc<PartitionScheduler> {
        &self.scheduler
    }

    pub(super) fn unit(&self) -> UnitId {
        *self.unit.get().expect("set when the partition was opened")
    }

    fn slot_units(&self) -> &[UnitId] {
        self.slot_units.get().expect("set when the partition was opened")
    }

    /// Returns the partition's own unit, and those of its job slots.
    pub(super) fn all_units(&self) -> impl Iterator<Item = UnitId> {
        std::iter::once(self.unit()).chain(self.slot_units().iter().copied())
    }

    /// Returns the lanes of a route with several jobs of a partition at once.
    pub(super) const fn lanes(&self) -> Option<&Arc<Lanes>> {
        self.lanes.as_ref()
    }

    /// Gives messages to their lanes. Returns the slots that have something to do now.
    pub(super) fn admit(&self, batch: Batch, lane_numbers: Option<&[u64]>) -> Vec<UnitId> {
        let Some(lanes) = &self.lanes else { return Vec::new() };
        let notifications = lanes.admit(batch, lane_numbers);
        // Messages were skipped, and no job commits them.
        self.commit_without_job(notifications.has_commit);
        self.units_of(&notifications)
    }

    pub(super) fn empty_batch(&self) -> Batch {
        Batch::of_loose(self.at.clone(), [], Arc::clone(&self.context.client))
    }

    fn units_of(&self, notifications: &Notifications) -> Vec<UnitId> {
        notifications.slots.iter().map(|slot| self.slot_units()[*slot]).collect()
    }

    /// Watches a job of several lanes: after a while, other jobs take those that it has not come to.
    pub(super) fn watch_lanes(&self, job: SharedLanes) {
        let moment = job.since + GIVE_ON_AFTER;
        if self.lanes.as_ref().is_some_and(|lanes| lanes.watch(job)) {
            self.scheduler().wake_at(self.unit(), moment);
        }
    }

    /// Takes lanes away from jobs that take too long.
    fn give_lanes_on(&self, lanes: &Lanes) {
        let (again, notifications) = lanes.give_on();
        self.notify(&notifications);
        if let Some(moment) = again {
            self.scheduler().wake_at(self.unit(), moment);
        }
    }

    /// Sends the notifications of a change of the lanes.
    pub(super) fn notify(&self, notifications: &Notifications) {
        if notifications.has_commit {
            self.touch();
        }
        notifications.slots.iter().for_each(|slot| self.scheduler.announce(self.slot_units()[*slot]));
        if notifications.has_capacity {
            self.scheduler.announce(self.unit());
        }
    }

    /// Begins no job from now on; one of single messages ends before its next message.
    pub(super) fn withdraw(&self) {
        self.interrupt(Interrupt::Withdrawn);
        self.withdrawn.complete(());
        self.all_units().for_each(|unit| self.scheduler.withdraw(unit));
    }

    /// Completed when no job is begun any more, because the partition is given back.
    pub(crate) const fn withdrawn(&self) -> &Arc<Completion<()>> {
        &self.withdrawn
    }

    fn interrupt(&self, interrupt: Interrupt) {
        self.interrupts.fetch_or(interrupt as u8, Ordering::Relaxed);
    }

    fn end_interrupt(&self, interrupt: Interrupt) {
        self.interrupts.fetch_and(!(interrupt as u8), Ordering::Relaxed);
    }

    /// Returns whether a job of single messages has to end before its next message. Does not block.
    pub(super) fn is_interrupted(&self) -> bool {
        self.interrupts.load(Ordering::Relaxed) != 0 || self.scheduler.is_quiet()
    }

    /// Begins no job until `resume`. Does not block.
    ///
    /// # Errors
    /// [`crate::Error::Fenced`]: the assignment has ended.
    pub fn pause(&self) -> Result<()> {
        self.check_current()?;
        self.interrupt(Interrupt::Paused);
        self.all_units().for_each(|unit| self.scheduler.pause(unit));
        Ok(())
    }

    /// Ends a pause. Does not block.
    ///
    /// # Errors
    /// [`crate::Error::Fenced`]: the assignment has ended.
    pub fn resume(&self) -> Result<()> {
        self.check_current()?;
        self.end_interrupt(Interrupt::Paused);
        self.all_units().for_each(|unit| self.scheduler.resume(unit));
        Ok(())
    }

    /// Ends the back-off of messages that wait to be tried again. Does not block.
    ///
    /// # Errors
    /// [`crate::Error::Fenced`]: the assignment has ended.
    pub fn clear_backoff(&self) -> Result<()> {
        self.check_current()?;
        self.scheduler.clear_backoff(self.unit());
        if let Some(lanes) = &self.lanes {
            self.notify(&lanes.clear_backoff());
        }
        Ok(())
    }

    fn history(&self) -> MutexGuard<'_, FetchHistory> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn buffer(&self, buffered: Option<Buffered>) {
        // The earlier messages are dropped after the lock is released.
        let _earlier = std::mem::replace(&mut *self.buffered.lock().unwrap_or_else(PoisonError::into_inner), buffered);
    }

    /// Keeps messages for a later job.
    pub(super) fn park(&self, parked: Parked) {
        self.buffer(Some(Buffered::Parked(parked)));
    }
}

impl std::fmt::Debug for PartitionQueue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PartitionQueue({}, generation {})", self.at, self.generation)
    }
}
