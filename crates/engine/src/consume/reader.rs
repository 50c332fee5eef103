//! Reads partitions without a group: nothing is committed.
//!
//! It uses the same partition queues and the same scheduler as a group member; the thread that calls `next` is the
//! worker.

use std::sync::Arc;
use std::time::Duration;

use super::group_member::renewal;
use super::offsets::Offsets;
use super::open_partitions::OpenPartitions;
use super::partition_queue::{PartitionContext, PartitionQueue, PartitionSettings};
use super::{PartitionScheduler, StartAt, Work};
use crate::clock::Deadline;
use crate::events::{EventBox, What};
use crate::kafka::{
    Batch, Client, ClientConfig, ClientOptions, Code, Kind, Position, Queue, TopicPartition, TopicPartitionList,
};
use crate::wake::{EventFd, Notifier};
use crate::{Error, Result};

/// The result of a read.
pub enum Read {
    /// Messages of one partition.
    Batch(Arc<Batch>),
    /// This partition has no more messages for now; returned once each time its end is reached.
    EndOfPartition(TopicPartition),
    /// The reader was closed.
    Closed,
}

/// Reads partitions without a group.
pub struct Reader {
    scheduler: Arc<PartitionScheduler>,
    partitions: Vec<Arc<PartitionQueue>>,
    queue: Queue,
    open_partitions: Arc<OpenPartitions>,
    client: Arc<Client>,
}

impl Reader {
    /// Begins to fetch these partitions, each from its start.
    ///
    /// # Errors
    /// [`Error::Config`]: librdkafka refuses a property. [`Error::Kafka`]: a start by time could not be looked up.
    pub fn new(
        config: &ClientConfig,
        starts: &[(TopicPartition, StartAt)],
        settings: &PartitionSettings,
        events: Arc<EventBox>,
    ) -> Result<Self> {
        let mut native = config.clone();
        native
            .set_default("group.id", "awoke-reader") // librdkafka wants a name; no group is joined under it.
            .set_default("auto.offset.reset", "earliest")
            .set("enable.auto.commit", "false")
            .set("enable.auto.offset.store", "false")
            .set("enable.partition.eof", "true");
        let client = Client::new(Kind::Consumer, "reader", &native, events, ClientOptions::default())?;
        let queue = Queue::consumer(&client)?;
        let scheduler = Arc::new(PartitionScheduler::default());
        let open_partitions = Arc::<OpenPartitions>::default();
        client.on_topic_renewed(renewal(&open_partitions));
        let context = PartitionContext {
            client: Arc::clone(&client),
            offsets: Arc::new(Offsets::default()),
            wake_owner: Arc::new(|| ()),
            open_partitions: Arc::clone(&open_partitions),
            tells_end: true,
        };
        let mut reader = Self { scheduler, partitions: Vec::new(), queue, open_partitions, client };
        let mut list = TopicPartitionList::new();
        for (generation, (at, start)) in (1..).zip(starts) {
            let partition = PartitionQueue::open(at.clone(), generation, settings, &reader.scheduler, context.clone())?;
            reader.partitions.push(partition);
            let offset = start.offset(&reader.client, at)?;
            list.add(at, Some(Position { offset, leader_epoch: -1 }))?;
        }
        reader.client.set_assignment(&list).check("assign")?;
        Ok(reader)
    }

    /// Returns what there is to read now; when there is nothing, the notifier is notified as soon as there is. Does not
    /// block.
    ///
    /// # Errors
    /// [`Error::Kafka`]: the client may not read a partition, and there is nothing of others.
    pub fn next_or_notify(&self, notifier: &Arc<EventFd>) -> Result<Option<Read>> {
        self.client.check_process()?;
        // Errors and statistics of the client wait in its queue for a moment like this.
        while self.queue.poll(&Deadline::after(Some(Duration::ZERO))).is_some() {}
        let notifier: Arc<dyn Notifier> = Arc::<EventFd>::clone(notifier);
        loop {
            match self.scheduler.next_work_or_notify(&notifier).0 {
                None => return self.check_allowed().map(|()| None),
                Some(work) => {
                    if let Some(read) = self.read_of(work)? {
                        return Ok(Some(read));
                    }
                }
            }
        }
    }

    /// Returns what work is to the caller of the reader; `None` if it is nothing.
    fn read_of(&self, work: Work) -> Result<Option<Read>> {
        Ok(match work {
            Work::Job(mut job) => {
                let batch = Arc::clone(job.batch());
                job.complete()?;
                Some(Read::Batch(batch))
            }
            Work::EndOfPartition(partition) => Some(Read::EndOfPartition(partition.topic_partition().clone())),
            Work::Closed => Some(Read::Closed),
            Work::Hook(hook) => {
                hook.finish();
                None
            }
            Work::AssignLanes(_) => None, // A reader has no lanes.
            Work::TimedOut => self.check_allowed().map(|()| None)?,
        })
    }

    /// Returns what there is to read next; `None` at the deadline. Blocks the calling thread until there is something,
    /// or the reader is closed.
    ///
    /// # Errors
    /// [`Error::Kafka`]: the client may not read a partition.
    pub(super) fn next(&self, deadline: &Deadline) -> Result<Option<Read>> {
        loop {
            let read = self.read_of(self.scheduler.next_work_of_reader(deadline))?;
            if read.is_some() || deadline.has_passed() {
                return Ok(read);
            }
        }
    }

    /// One past the last record of a partition that was read, control records included. Does not block.
    pub(super) fn position(&self, at: &TopicPartition) -> Option<i64> {
        let mut list = TopicPartitionList::of(std::slice::from_ref(at)).ok()?;
        self.client.position(&mut list).map(|position| position.offset)
    }

    /// Puts an event of the reader's client into its event box.
    pub(super) fn emit(&self, what: What) {
        self.client.emit(what);
    }

    /// One past the last message of a partition, as the last fetch saw it; `None` before. Does not block.
    #[must_use]
    pub fn end_seen(&self, at: &TopicPartition) -> Option<i64> {
        self.client.offsets_seen(at).map(|seen| seen.end)
    }

    /// # Errors
    /// [`Error::Kafka`]: a partition's messages do not come because the client may not read them.
    fn check_allowed(&self) -> Result<()> {
        let denied = self.open_partitions.all_stuck().into_iter().find(|stuck| stuck.code == Code::TOPIC_AUTHORIZATION);
        denied.map_or(Ok(()), |stuck| {
            Err(Error::kafka(
                format!("read {}", stuck.at),
                stuck.code,
                "not allowed; an ACL must allow READ on the topic",
            ))
        })
    }

    /// Notifies the waiting thread, and returns no more messages. Does not block.
    pub fn close(&self) {
        self.scheduler.close();
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.scheduler.close();
        if self.client.check_process().is_ok() {
            self.partitions.iter().for_each(|partition| partition.close());
            self.client.clear_assignment();
        }
    }
}
