//! The exactly-once routes: what their handlers do, and the transactions of a process.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use awoke_engine::Error;
use awoke_engine::clock::Deadline;
use awoke_engine::consume::{Job, PartitionQueue, SharedJob};
use awoke_engine::kafka::ClientConfig;
use awoke_engine::produce::OwnedRecord;
use awoke_engine::state::{Table, TablePartition, Writes, Written};
use awoke_engine::transact::{Committed, TransactionBatcher, TransactionEntry, TransactionLimits};
use awoke_engine::wake::simulation::{random, spawn, trace};

use crate::checks::{Handled, handled};
use crate::handlers::{back_off, take_time};
use crate::results::{acts, output_of, row_of_act};
use crate::world::World;

/// The broker aborts a transaction after this time.
const TIMEOUT_MS: u64 = 10_000;

/// The transactions of one process.
#[derive(Default)]
pub struct Transactions {
    /// The tables of the process, by the topic of their route.
    pub tables: BTreeMap<String, Arc<Table>>,
    batcher: Mutex<Option<Arc<TransactionBatcher>>>,
    /// Another producer has taken the transactional id: the process ends, and starts again.
    is_fenced: AtomicBool,
    /// The acts that are not over.
    acting: Mutex<BTreeSet<u64>>,
}

impl Transactions {
    /// Makes those of a process with these tables; they begin with `start`.
    pub fn new(tables: BTreeMap<String, Arc<Table>>) -> Self {
        Self { tables, ..Self::default() }
    }

    /// Starts the batcher. Where no other process can have the id, it is a new one each time.
    pub fn start(&self, world: &World, process: usize) {
        let is_alone = world.is_alone;
        let id = if is_alone { format!("process{process}-{}", random(1_000_000)) } else { format!("process{process}") };
        let mut config = ClientConfig::new();
        config.set("transactional.id", id).set("transaction.timeout.ms", TIMEOUT_MS.to_string());
        let interval = Duration::from_millis([0, random(100)][random(2) as usize]);
        let limits = TransactionLimits { interval, records_max: 1 + random(50) as usize };
        let batcher =
            TransactionBatcher::new(&config, is_alone, limits, &world.events).expect("the settings are right");
        self.is_fenced.store(false, Ordering::Relaxed);
        *self.batcher.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(batcher));
    }

    /// Ends the batcher. Entries that wait fail: their jobs are tried again.
    pub fn close(&self) {
        let batcher = self.batcher.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(batcher) = batcher {
            batcher.close().expect("this process");
        }
    }

    /// Another producer has taken the transactional id.
    pub fn note_fenced(&self) {
        self.is_fenced.store(true, Ordering::Relaxed);
    }

    pub fn is_fenced(&self) -> bool {
        self.is_fenced.load(Ordering::Relaxed)
    }

    fn batcher(&self) -> Option<Arc<TransactionBatcher>> {
        self.batcher.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the batcher, for offsets that no record goes with.
    pub fn weak(&self) -> Option<Weak<TransactionBatcher>> {
        self.batcher().map(|batcher| Arc::downgrade(&batcher))
    }

    /// Has the results of these messages committed, with the offset behind them. Returns `None` if that can't be now.
    fn submit(
        &self,
        world: &World,
        at: &PartitionQueue,
        job: &SharedJob,
        messages: &[Handled],
    ) -> Option<Arc<Committed>> {
        let topic: Arc<str> = output_of(&at.topic_partition().topic).topic;
        let record =
            |message: &Handled| OwnedRecord::plain(Arc::clone(&topic), Some(world.result_of(message.id)), None);
        let records = messages.iter().map(record).collect();
        let mut entry = TransactionEntry::of_job(job, records, Some(messages.last()?.offset)).ok()?;
        let tables = &self.tables;
        if let Some(table) = tables.get(&*at.topic_partition().topic).and_then(|table| at.table(table)) {
            entry.add_rows(Arc::clone(table), written(table, messages));
        }
        self.batcher()?.submit(entry).ok()
    }
}

/// Returns the rows that messages write: each adds its number to the row of its lane.
fn written(table: &TablePartition, messages: &[Handled]) -> Vec<Written> {
    assert!(table.is_restored(), "a job has begun before its table was restored");
    let mut writes = Writes::default();
    for message in messages {
        let Some(lane) = &message.lane else { continue };
        let of_job = writes.get(lane).map(|row| row.map(<[u8]>::to_vec));
        let committed = || table.get(lane, <[u8]>::to_vec);
        let mut row = of_job.unwrap_or_else(committed).unwrap_or_default();
        row.extend(message.id.to_le_bytes());
        writes.set(message.offset, lane, Some(&row));
    }
    writes.into_written()
}

/// Has a record and a row committed that no message has caused, as a timer would, if the table of the partition is this
/// process's. When it has succeeded, the process had the partition all the time, and knew each act before it.
pub fn act(world: &Arc<World>, partition: &Arc<PartitionQueue>, transactions: &Arc<Transactions>) {
    let at = partition.topic_partition();
    let Some(table) = transactions.tables.get(&*at.topic).and_then(|table| partition.table(table)) else { return };
    if !table.is_restored() {
        return;
    }
    let acting = || transactions.acting.lock().unwrap_or_else(PoisonError::into_inner);
    let is_known = |id: &u64| acting().contains(id) || table.get(&row_of_act(*id), |_| ()).is_some();
    let unknown: Vec<_> = acts(&world.cluster, at).into_iter().filter(|id| !is_known(id)).collect();
    let id = world.next_act();
    let output = OwnedRecord::plain(output_of(&at.topic).topic, Some(id.to_le_bytes().to_vec()), None);
    let mut entry = TransactionEntry::without_message(Arc::clone(partition), vec![output]);
    entry.add_rows(Arc::clone(table), vec![(row_of_act(id).into(), Some(id.to_le_bytes().into()))]);
    let Some(committed) = transactions.batcher().and_then(|batcher| batcher.submit(entry).ok()) else { return };
    trace(|| format!("act {id} in {at}"));
    acting().insert(id);
    let (world, at, transactions) = (Arc::clone(world), at.clone(), Arc::clone(transactions));
    spawn("acts", move || {
        let result = committed.wait(&Deadline::NEVER).expect("it waits for ever");
        transactions.acting.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
        if result.is_ok() {
            let is_seen = acts(&world.cluster, &at).contains(&id);
            assert!(is_seen, "an act is committed and can't be seen: {at} {id}");
            assert_eq!(unknown, [0_u64; 0], "an owner of {at} does not know acts that were committed before");
        }
    });
}

/// As the strategy of an exactly-once function: the job ends when its results and its offset are committed.
pub fn process(world: &Arc<World>, partition: &Arc<PartitionQueue>, job: Job, transactions: &Arc<Transactions>) {
    let (first, order) = (job.first(), world.order(partition));
    let messages = handled(job.batch(), first..job.end(), order);
    let running = world.checks.begin(partition, job.epoch(), &messages, order);
    take_time();
    let failed = if world.fails() { Some(random(messages.len() as u64) as usize) } else { None };
    let called = &messages[..failed.unwrap_or(messages.len())];
    called.iter().for_each(|message| world.checks.ran(message));
    world.checks.end(running);
    let shared = SharedJob::new(job);
    if failed.is_none() {
        drop(shared.with(|job| job.leave_slot(random(4) > 0)));
    }
    let committed = transactions.submit(world, partition, &shared, called);
    if failed.is_some() {
        // What was done before the failure is committed by itself. If it is not, all of it is tried again.
        drop(committed.map(|committed| committed.wait(&Deadline::NEVER)));
        return retry(&shared, back_off());
    }
    let Some(committed) = committed else { return retry(&shared, Duration::from_millis(5)) };
    let (world, partition, transactions) = (Arc::clone(world), Arc::clone(partition), Arc::clone(transactions));
    spawn("transactions", move || {
        let result = committed.wait(&Deadline::NEVER).expect("it waits for ever");
        end(&world, &partition, &shared, &messages, &result, &transactions);
    });
}

fn end(
    world: &World,
    partition: &PartitionQueue,
    job: &SharedJob,
    messages: &[Handled],
    result: &Result<(), Error>,
    transactions: &Transactions,
) {
    match result {
        Ok(()) => {
            let completed = job.take().map(|mut job| job.complete());
            if matches!(completed, Some(Ok(()))) {
                world.checks.recorded(partition, messages);
            }
        }
        Err(Error::Closed { .. } | Error::Fenced { .. }) => retry(job, Duration::ZERO),
        Err(Error::ProducerFenced { .. }) => {
            trace(|| "the producer is fenced".to_owned());
            transactions.note_fenced();
            retry(job, Duration::from_millis(400));
        }
        Err(_) => {
            world.note_refused(messages);
            retry(job, Duration::ZERO);
        }
    }
}

fn retry(job: &SharedJob, delay: Duration) {
    if let Some(mut job) = job.take() {
        job.retry(delay, true);
    }
}
