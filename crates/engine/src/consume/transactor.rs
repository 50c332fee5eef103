//! What came of messages, and their offsets, in one transaction: exactly once from topic to topic.
//!
//! User code runs outside of any transaction; what it wants to send is kept as a *contribution* until its job is through. The
//! transactor's thread takes the contributions that are there, of whatever partitions, and carries them out together:
//! 1. begin; send all records; wait for their reports. Records that the broker refuses fail their own contribution alone.
//! 2. settle: each job says how far it is done. The offsets are now those to commit.
//! 3. add the offsets, with who this member is in its group just now: brokers refuse one that the group has left behind.
//! 4. commit, and tell the contributors.
//!
//! A transaction that fails for no contribution's fault is aborted and carried out again from what is kept: no user code runs
//! twice for it. One whose commit is in doubt is looked up: the next begin has the broker end it, and then the group's committed
//! offsets say whether it was committed. Contributions whose partition was taken away meanwhile are dropped: whoever has it now
//! does the messages again.
//!
//! While one transaction commits, jobs go on and contributions gather for the next, so that there are as many transactions as
//! the broker can commit and each is as large as the load makes it. Under load they take turns on two producers: a broker goes on
//! writing a transaction's markers after it has said that it is committed, and lets the same producer wait for that (librdkafka
//! asks again after 20 ms), but not another one.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::PartitionQueue;
use super::offsets::ToCommit;
use crate::clock::Deadline;
use crate::events::EventBox;
use crate::kafka::{ClientConfig, Code, CommittedOffset, GroupMetadata, Position, TopicPartition, positions_list};
use crate::produce::{DeliveryHandle, OwnedRecord, Producer, ProducerOptions, Transaction};
use crate::wake::{Completion, Parker};
use crate::{Error, Result};

/// How transactions are cut.
#[derive(Clone, Copy, Debug)]
pub struct TransactionLimits {
    /// Transactions that follow one another begin at least this far apart; a lone one begins at once.
    pub interval: Duration,
    /// A transaction takes in no further contribution when it has so many records.
    pub records_max: usize,
}

/// After this long the markers of a transaction have been written, as a rule.
const MARKERS_WITHIN: Duration = Duration::from_millis(50);

/// The shortest and the longest wait before a transaction that failed is carried out again.
const BACK_OFF: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(5));

/// What a contributor is told.
pub type Committed = Completion<Result<()>>;

/// What is to be committed of one partition.
#[derive(Clone)]
struct Placed {
    at: TopicPartition,
    position: Position,
    /// The text beside it.
    metadata: Option<Arc<str>>,
    /// Whether records go with it: then position or text are not what they were before.
    has_records: bool,
}

/// What came of a job.
pub struct Contribution {
    partition: Arc<PartitionQueue>,
    records: Vec<OwnedRecord>,
    /// Says how far the job is done; called when all records have been acknowledged, until it has succeeded.
    settle: Box<dyn Fn() -> Result<()> + Send>,
    is_settled: bool,
    /// Why it can't be settled: its job has ended, or its partition was taken away.
    void: Option<Error>,
    /// To be carried out by itself: it, or another one, had a record that the broker refused.
    is_alone: bool,
    committed: Arc<Committed>,
}

impl Contribution {
    /// Records to send, and what says how far the job of this partition is done with them.
    pub fn new(
        partition: Arc<PartitionQueue>,
        records: Vec<OwnedRecord>,
        settle: Box<dyn Fn() -> Result<()> + Send>,
    ) -> Self {
        let committed = Arc::default();
        Self { partition, records, settle, is_settled: false, void: None, is_alone: false, committed }
    }

    fn fail(&self, error: Error) {
        self.committed.complete(Err(error));
    }
}

/// Carries contributions out; closed once.
pub struct Transactor {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

struct Shared {
    /// Their transactional ids differ, so that they do not fence each other.
    producers: [Arc<Producer>; 2],
    limits: TransactionLimits,
    waiting: Mutex<VecDeque<Contribution>>,
    parker: Parker,
    is_closing: AtomicBool,
}

/// Why a transaction did not take place.
enum Trouble {
    /// The broker refused records of these contributions.
    Refused(HashMap<usize, Error>),
    /// It is to be carried out again.
    Again,
    /// So it is, when it has been found out that it was not committed.
    InDoubt,
    /// More is done beyond a partition's first message that is not than a commit can say: it has to wait for that one.
    Crowded,
    /// It never will.
    Hopeless(Error),
}

impl Transactor {
    /// Makes the producer and starts the thread. Nobody else may have the transactional id, if `is_alone`.
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
            limits,
            waiting: Mutex::default(),
            parker: Parker::default(),
            is_closing: AtomicBool::new(false),
        });
        let thread = std::thread::Builder::new()
            .name("awoke-transact".into())
            .spawn({
                let shared = Arc::clone(&shared);
                move || shared.run()
            })
            .map_err(|error| Error::System { operation: "start the transactor's thread", detail: error.to_string() })?;
        Ok(Self { shared, thread: Mutex::new(Some(thread)) })
    }

    /// Has a contribution carried out. Does not block; what is returned says when it is committed.
    ///
    /// Its errors: [`Error::Kafka`] and [`Error::MessageTooLarge`] where a record of its own was refused; [`Error::Fenced`] when its
    /// partition was taken away; [`Error::ProducerFenced`]; [`Error::Closed`]. Nothing of it was committed then.
    pub fn submit(&self, contribution: Contribution) -> Result<Arc<Committed>> {
        let committed = Arc::clone(&contribution.committed);
        let mut waiting = self.shared.waiting();
        // Under the lock, so that the thread can't leave between the look and the contribution.
        if self.shared.is_closing.load(Ordering::Acquire) {
            return Err(Error::Closed { what: "transactor" });
        }
        waiting.push_back(contribution);
        drop(waiting);
        self.shared.parker.unpark();
        Ok(committed)
    }

    /// Ends: what has not been committed is not. Blocks until the thread has ended. Closing again does nothing.
    pub fn close(&self) -> Result<()> {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(thread) = thread else { return Ok(()) };
        {
            let _waiting = self.shared.waiting();
            self.shared.is_closing.store(true, Ordering::Release);
        }
        self.shared.parker.unpark();
        self.shared.producers.iter().for_each(|producer| producer.give_up());
        // A panic of the thread has been printed; there is nothing left to save.
        drop(thread.join());
        self.shared.producers.iter().try_for_each(|producer| producer.close(Some(Duration::ZERO)).map(drop))
    }
}

impl Drop for Transactor {
    fn drop(&mut self) {
        if self.shared.producers[0].check_process().is_ok() {
            drop(self.close());
        }
    }
}

impl Shared {
    fn waiting(&self) -> std::sync::MutexGuard<'_, VecDeque<Contribution>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::Acquire)
    }

    fn run(&self) {
        // Before there is anything to send: it takes a while. What fails here fails, or not, when there is.
        for producer in &self.producers {
            drop(producer.prepare(&Deadline::after(Some(producer.transaction_timeout()))));
        }
        let (mut next, mut turn, mut ended) = (Instant::now(), 0, None::<Instant>);
        while !self.is_closing() {
            self.wait_until(next);
            let contributions = self.take();
            if contributions.is_empty() {
                self.parker.park_until(&Deadline::NEVER);
                continue;
            }
            next = Instant::now() + self.limits.interval;
            turn = if ended.is_some_and(|ended| ended.elapsed() < MARKERS_WITHIN) { 1 - turn } else { 0 };
            self.carry_out(&self.producers[turn], contributions);
            ended = Some(Instant::now());
        }
        for contribution in self.waiting().drain(..) {
            contribution.fail(Error::Closed { what: "transactor" });
        }
    }

    /// Waits for this moment, or the end.
    fn wait_until(&self, moment: Instant) {
        while Instant::now() < moment && !self.is_closing() {
            self.parker.park_until(&Deadline::at(moment));
        }
    }

    /// What the next transaction is made of: what is there, up to the limit.
    fn take(&self) -> Vec<Contribution> {
        let mut waiting = self.waiting();
        let (mut taken, mut records) = (Vec::new(), 0);
        while let Some(contribution) = waiting.front() {
            let is_alone = contribution.is_alone;
            if !taken.is_empty() && (is_alone || records >= self.limits.records_max) {
                break;
            }
            records += contribution.records.len();
            taken.extend(waiting.pop_front());
            if is_alone {
                break;
            }
        }
        taken
    }

    /// Carries contributions out until they are committed, refused, or nobody's concern any more.
    fn carry_out(&self, producer: &Arc<Producer>, mut contributions: Vec<Contribution>) {
        let mut back_off = BACK_OFF.0;
        let mut in_doubt = None;
        loop {
            contributions.retain(|each| {
                let concern = each.void.clone().map_or_else(|| each.partition.check_current(), Err);
                concern.map_err(|error| each.fail(error)).is_ok()
            });
            if contributions.is_empty() {
                return;
            }
            match try_once(producer, &mut contributions, &mut in_doubt) {
                Ok(()) => {
                    contributions.iter().for_each(|each| {
                        each.committed.complete(Ok(()));
                    });
                    return;
                }
                Err(Trouble::Hopeless(error)) => {
                    contributions.iter().for_each(|each| each.fail(error.clone()));
                    return;
                }
                Err(Trouble::Refused(refused)) => contributions = self.sort_out(contributions, refused),
                Err(Trouble::Crowded) => {
                    self.parker.park_until(&Deadline::after(Some(back_off)));
                    contributions.extend(self.take());
                }
                Err(Trouble::Again | Trouble::InDoubt) => {
                    self.wait_until(Instant::now() + back_off);
                    back_off = BACK_OFF.1.min(back_off * 2);
                }
            }
            if self.is_closing() {
                contributions.iter().for_each(|each| each.fail(Error::Closed { what: "transactor" }));
                return;
            }
        }
    }

    /// Fails a contribution whose record was refused; where several were, each is tried by itself, because a refusal may take its
    /// neighbours along. Returns those to go on with.
    fn sort_out(&self, contributions: Vec<Contribution>, mut refused: HashMap<usize, Error>) -> Vec<Contribution> {
        let is_certain = contributions.len() == 1;
        let mut rest = Vec::new();
        let mut alone = Vec::new();
        for (index, mut each) in contributions.into_iter().enumerate() {
            match refused.remove(&index) {
                None => rest.push(each),
                // What is settled can't be taken back: it goes on until the broker takes it, or the partition goes.
                Some(_) if each.is_settled => rest.push(each),
                Some(error) if is_certain => each.fail(error),
                Some(_) => {
                    each.is_alone = true;
                    alone.push(each);
                }
            }
        }
        let mut waiting = self.waiting();
        alone.into_iter().rev().for_each(|each| waiting.push_front(each));
        rest
    }
}

/// One transaction. Blocks until it is over, one way or the other.
fn try_once(
    producer: &Arc<Producer>,
    contributions: &mut [Contribution],
    in_doubt: &mut Option<Vec<Placed>>,
) -> std::result::Result<(), Trouble> {
    let limit = producer.transaction_timeout();
    let deadline = Deadline::after(Some(limit));
    let transaction = producer.begin(&deadline).map_err(|error| trouble(producer, &error))?;
    // The transaction in doubt has been ended by the begin of this one.
    if let Some(positions) = in_doubt.as_deref() {
        if was_committed(contributions, positions).ok_or(Trouble::InDoubt)? {
            note_committed(contributions, positions);
            return Ok(());
        }
        *in_doubt = None;
    }
    send(producer, &transaction, contributions, &deadline)?;
    // Who we are first: a partition that is held after this was held under that generation.
    let consumer = contributions[0].partition.client();
    let group = GroupMetadata::of(consumer).ok_or(Trouble::Again)?;
    for each in contributions.iter_mut().filter(|each| !each.is_settled) {
        if let Err(error) = (each.settle)() {
            each.void = Some(error); // It is left out the next time.
            return Err(Trouble::Again);
        }
        each.is_settled = true;
    }
    let positions = positions_of(contributions)?;
    if positions.is_empty() && contributions.iter().all(|each| each.records.is_empty()) {
        return Ok(());
    }
    let list = positions_list(positions.iter().map(|placed| (&placed.at, placed.position, placed.metadata.as_deref())))
        .map_err(|error| trouble(producer, &error))?;
    transaction.send_offsets(&list, &group, &deadline).map_err(|error| trouble(producer, &error))?;
    match transaction.commit(&Deadline::after(Some(limit))) {
        Ok(()) => {
            note_committed(contributions, &positions);
            Ok(())
        }
        Err(Error::InDoubt { .. }) => {
            *in_doubt = Some(positions);
            Err(Trouble::InDoubt)
        }
        // Whether it was committed before the broker gave its id to nobody is for the group's offsets to say.
        Err(Error::ProducerFenced { .. }) if producer.is_alone() => {
            *in_doubt = Some(positions);
            Err(Trouble::InDoubt)
        }
        Err(error) => Err(trouble(producer, &error)),
    }
}

/// Sends all records and waits for their reports.
fn send(
    producer: &Producer,
    transaction: &Transaction,
    contributions: &[Contribution],
    deadline: &Deadline,
) -> std::result::Result<(), Trouble> {
    let mut sent: Vec<(usize, Arc<DeliveryHandle>)> = Vec::new();
    let mut refused = HashMap::new();
    for (index, each) in contributions.iter().enumerate() {
        for record in &each.records {
            match record.with(|topic, record| transaction.produce(topic, record, deadline)) {
                Ok(handle) => sent.push((index, handle)),
                Err(error) if is_of_record(&error) => {
                    refused.insert(index, error);
                    break;
                }
                Err(error) => return Err(trouble(producer, &error)),
            }
        }
    }
    transaction.flush(deadline.remaining()).map_err(|error| trouble(producer, &error))?;
    let mut is_through = true;
    for (index, handle) in sent {
        match handle.result() {
            Some(Ok(_)) => (),
            Some(Err(error)) if is_of_record(&error) => drop(refused.insert(index, error)),
            Some(Err(_)) | None => is_through = false,
        }
    }
    // What is dropped with the transaction is aborted.
    match (refused.is_empty(), is_through) {
        (true, true) => Ok(()),
        (true, false) => Err(Trouble::Again),
        (false, _) => Err(Trouble::Refused(refused)),
    }
}

/// What is to be committed, each partition once.
fn positions_of(contributions: &[Contribution]) -> std::result::Result<Vec<Placed>, Trouble> {
    let mut positions: Vec<Placed> = Vec::new();
    for each in contributions {
        let at = each.partition.topic_partition();
        let has_records = !each.records.is_empty();
        if let Some(known) = positions.iter_mut().find(|known| known.at == *at) {
            known.has_records |= has_records;
            continue;
        }
        let to_commit = each.partition.for_transaction().map_err(|_| Trouble::Again)?;
        let Some(ToCommit { position, metadata, is_whole }) = to_commit else { continue };
        if !is_whole {
            return Err(Trouble::Crowded);
        }
        positions.push(Placed { at: at.clone(), position, metadata, has_records });
    }
    Ok(positions)
}

fn note_committed(contributions: &[Contribution], positions: &[Placed]) {
    for placed in positions {
        if let Some(each) = contributions.iter().find(|each| *each.partition.topic_partition() == placed.at) {
            each.partition.note_committed(placed.position.offset);
        }
    }
}

/// Whether the group's committed offsets are these; `None` when the broker does not say. Blocks.
fn was_committed(contributions: &[Contribution], positions: &[Placed]) -> Option<bool> {
    // One tells for all: a partition that was taken away meanwhile may stand anywhere, and one without records where it stood before.
    // Where none has any, to do it again is to do the same.
    let telling: Vec<_> = positions.iter().filter(|placed| placed.has_records).collect();
    let asked: Vec<_> = telling.iter().map(|placed| placed.at.clone()).collect();
    if asked.is_empty() {
        return Some(false);
    }
    let found = contributions.first()?.partition.client().committed(&asked).ok()?;
    let is_there = |placed: &Placed, found: CommittedOffset| {
        found.offset == placed.position.offset && found.metadata.as_deref() == placed.metadata.as_deref()
    };
    Some(telling.into_iter().zip(found).any(|(placed, found)| found.is_some_and(|found| is_there(placed, found))))
}

/// Whether the record itself is at fault, and would be again.
fn is_of_record(error: &Error) -> bool {
    match error {
        Error::MessageTooLarge { .. } | Error::Invalid { .. } | Error::Config { .. } => true,
        // Message too large, unknown topic or partition, not authorised, invalid record, policy violation; and librdkafka's own
        // unknown topic and partition, invalid argument.
        Error::Kafka { code, .. } => matches!(code.0, 2 | 3 | 10 | 17 | 29 | 44 | 87 | -188 | -190 | -186),
        _ => false,
    }
}

fn trouble(producer: &Producer, error: &Error) -> Trouble {
    match error {
        // It slept longer than its transaction may last: nobody else can have its id.
        Error::ProducerFenced { .. } if producer.is_alone() => Trouble::Again,
        Error::ProducerFenced { .. } | Error::Closed { .. } | Error::Forked { .. } | Error::Config { .. } => {
            Trouble::Hopeless(error.clone())
        }
        // Not authorised for the transactional id, or for the group: nobody but a person can change that.
        Error::Kafka { code: Code(53 | 30), .. } => Trouble::Hopeless(error.clone()),
        _ => Trouble::Again,
    }
}
