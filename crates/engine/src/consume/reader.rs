//! Reads partitions without a group: nothing is committed, nobody else is asked.
//!
//! It stands on the same partition queues and the same scheduler as a group member; whoever calls `next` is the worker.

use std::sync::Arc;
use std::time::Duration;

use super::group_member::renewal;
use super::offsets::Offsets;
use super::open_partitions::OpenPartitions;
use super::partition_queue::{LaneSettings, PartitionQueue, Surroundings};
use super::{PartitionScheduler, StartAt, Work};
use crate::clock::Deadline;
use crate::events::EventBox;
use crate::kafka::{Batch, Client, ClientConfig, Code, Kind, Position, Queue, TopicPartition, TopicPartitionList, ffi};
use crate::wake::{Bell, EventFd};
use crate::{Error, Result};

/// What a reader found.
pub enum Read {
    /// Messages of one partition.
    Batch(Arc<Batch>),
    /// This partition has no more messages for now; said once each time its end is reached.
    EndOfPartition(TopicPartition),
    /// The reader was closed.
    Closed,
}

/// Reads partitions without a group.
pub struct Reader {
    scheduler: Arc<PartitionScheduler>,
    partitions: Vec<Arc<PartitionQueue>>,
    queue: Queue,
    siblings: Arc<OpenPartitions>,
    client: Arc<Client>,
}

impl Reader {
    /// Begins to fetch these partitions.
    pub fn new(
        config: &ClientConfig,
        starts: &[(TopicPartition, StartAt)],
        settings: &LaneSettings,
        events: Arc<EventBox>,
    ) -> Result<Self> {
        let mut native = config.clone();
        native
            .set_default("group.id", "awoke-reader") // librdkafka wants a name; no group is joined under it.
            .set_default("auto.offset.reset", "earliest")
            .set("enable.auto.commit", "false")
            .set("enable.auto.offset.store", "false")
            .set("enable.partition.eof", "true");
        let client = Client::new(Kind::Consumer, "reader", &native, events, None, |_| ())?;
        // SAFETY: the handle is alive.
        Code::of(unsafe { ffi::rd_kafka_poll_set_consumer(client.handle()) }).check("redirect the main queue")?;
        let queue = Queue::consumer(&client).ok_or(Error::Closed { what: "reader" })?;
        let scheduler = Arc::new(PartitionScheduler::default());
        let siblings = Arc::<OpenPartitions>::default();
        client.on_topic_renewed(renewal(&siblings));
        let surroundings = Surroundings {
            client: Arc::clone(&client),
            offsets: Arc::new(Offsets::default()),
            on_stored: Arc::new(|| ()),
            siblings: Arc::clone(&siblings),
            tells_end: true,
        };
        let mut reader = Self { scheduler, partitions: Vec::new(), queue, siblings, client };
        let mut list = TopicPartitionList::new();
        for (generation, (at, start)) in (1..).zip(starts) {
            let partition =
                PartitionQueue::open(at.clone(), generation, settings, &reader.scheduler, surroundings.clone())?;
            reader.partitions.push(partition);
            let offset = start.offset(&reader.client, at)?;
            list.add(at, Some(Position { offset, leader_epoch: -1 }))?;
        }
        // SAFETY: handle and list are alive; librdkafka copies the list.
        Code::of(unsafe { ffi::rd_kafka_assign(reader.client.handle(), list.as_ptr()) }).check("assign")?;
        Ok(reader)
    }

    /// What there is to read now; when there is nothing, the bell rings as soon as there is. Does not block.
    ///
    /// # Errors
    /// [`Error::Kafka`]: the client may not read a partition, and there is nothing of others.
    pub fn next_or_ring(&self, bell: &Arc<EventFd>) -> Result<Option<Read>> {
        self.client.check_process()?;
        // Errors and statistics of the client wait in its queue for a moment like this.
        while self.queue.poll(&Deadline::after(Some(Duration::ZERO))).is_some() {}
        let bell: Arc<dyn Bell> = Arc::<EventFd>::clone(bell);
        loop {
            match self.scheduler.next_work_or_ring(&bell).0 {
                Some(Work::Job(mut job)) => {
                    let batch = Arc::clone(job.batch());
                    job.complete()?;
                    return Ok(Some(Read::Batch(batch)));
                }
                Some(Work::EndOfPartition(partition)) => {
                    return Ok(Some(Read::EndOfPartition(partition.topic_partition().clone())));
                }
                Some(Work::Closed) => return Ok(Some(Read::Closed)),
                Some(Work::Hook(hook)) => hook.finish(),
                Some(Work::Sort(_)) => (), // A reader has no lanes.
                Some(Work::TimedOut) | None => return self.check_allowed().map(|()| None),
            }
        }
    }

    /// # Errors
    /// [`Error::Kafka`]: a partition's messages do not come because the client may not read them.
    fn check_allowed(&self) -> Result<()> {
        let denied = self.siblings.all_stuck().into_iter().find(|stuck| stuck.code == Code::TOPIC_AUTHORIZATION);
        denied.map_or(Ok(()), |stuck| {
            Err(Error::kafka(
                format!("read {}", stuck.at),
                stuck.code,
                "not allowed; an ACL must allow READ on the topic",
            ))
        })
    }

    /// Rings whoever waits, and gives nothing from now on. Does not block.
    pub fn close(&self) {
        self.scheduler.close();
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.scheduler.close();
        if self.client.check_process().is_ok() {
            self.partitions.iter().for_each(|partition| partition.close());
            // SAFETY: the handle is alive; a null list stops fetching.
            unsafe { ffi::rd_kafka_assign(self.client.handle(), std::ptr::null()) };
        }
    }
}
