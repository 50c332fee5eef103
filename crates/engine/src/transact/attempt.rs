//! One try of a transaction: send the records, add the offsets, commit.

use std::collections::HashMap;
use std::sync::Arc;

use super::entry::TransactionEntry;
use crate::clock::Deadline;
use crate::consume::ToCommit;
use crate::events::What;
use crate::kafka::{Code, CommittedOffset, GroupMetadata, Position, TopicPartition, positions_list};
use crate::produce::{DeliveryHandle, OwnedRecord, Producer, Transaction, are_delivered};
use crate::{Error, Result};

/// The number of records that are given to librdkafka at once.
const TOGETHER: usize = 256;

/// The reason why a transaction was not committed.
pub(super) enum AbortReason {
    /// The broker refused records of the entries at these indexes.
    Refused(HashMap<usize, Error>),
    /// It is to be tried again. If its commit is in doubt, the next try looks it up first.
    Retry,
    /// More messages are done beyond a partition's first one that is not than a commit's metadata can hold. It has to
    /// wait for that message.
    MetadataFull,
    /// It can never be committed.
    Fatal(Error),
}

type Outcome<T = ()> = std::result::Result<T, AbortReason>;

/// The offset that is to be committed for one partition.
#[derive(Clone)]
struct PartitionOffset {
    at: TopicPartition,
    position: Position,
    metadata: Option<Arc<str>>,
    /// True if its position or metadata differ from what the broker held before.
    is_new: bool,
}

/// The tries of one transaction.
pub(super) struct Attempt<'a> {
    producer: &'a Arc<Producer>,
    /// The offsets of a commit in doubt.
    in_doubt: Option<Vec<PartitionOffset>>,
}

impl<'a> Attempt<'a> {
    pub(super) const fn new(producer: &'a Arc<Producer>) -> Self {
        Self { producer, in_doubt: None }
    }

    /// Tries once. Blocks until the transaction has ended, in one way or another.
    pub(super) fn run(&mut self, entries: &mut [TransactionEntry]) -> Outcome {
        let deadline = Deadline::after(Some(self.producer.transaction_timeout()));
        let transaction = self.producer.begin(&deadline).map_err(|error| self.reason(&error))?;
        if self.was_committed(entries)? {
            return Ok(());
        }
        self.send(&transaction, entries, &deadline)?;
        // The identity first: a partition that is assigned after this was assigned under that generation.
        let group = GroupMetadata::of(entries[0].partition.client()).ok_or(AbortReason::Retry)?;
        for entry in entries.iter_mut() {
            if !entry.record_offset() {
                return Err(AbortReason::Retry); // The next try leaves it out.
            }
        }
        let offsets = offsets_of(entries)?;
        if offsets.is_empty() && entries.iter().all(|entry| entry.records.is_empty()) {
            return Ok(());
        }
        let list = positions_list(offsets.iter().map(|each| (&each.at, each.position, each.metadata.as_deref())));
        let sent = list.and_then(|list| transaction.send_offsets(&list, &group, &deadline));
        sent.map_err(|error| self.reason(&error))?;
        self.commit(&transaction, entries, offsets)
    }

    fn commit(
        &mut self,
        transaction: &Transaction,
        entries: &[TransactionEntry],
        offsets: Vec<PartitionOffset>,
    ) -> Outcome {
        match transaction.commit(&Deadline::after(Some(self.producer.transaction_timeout()))) {
            Ok(()) => {
                note_committed(entries, &offsets);
                Ok(())
            }
            Err(error) if self.is_in_doubt(&error) => {
                self.in_doubt = Some(offsets);
                Err(AbortReason::Retry)
            }
            Err(error) => Err(self.reason(&error)),
        }
    }

    /// Returns whether only the group's offsets can tell if the commit succeeded. After a fencing of a producer that is
    /// alone, the broker may have committed before it discarded the id.
    fn is_in_doubt(&self, error: &Error) -> bool {
        match error {
            Error::InDoubt { .. } => true,
            Error::ProducerFenced { .. } => self.producer.is_alone(),
            _ => false,
        }
    }

    /// Returns whether a commit that was in doubt has succeeded. The begin of the present transaction has ended that
    /// one.
    fn was_committed(&mut self, entries: &[TransactionEntry]) -> Outcome<bool> {
        let Some(offsets) = self.in_doubt.as_deref() else { return Ok(false) };
        let was_committed = are_committed(entries, offsets).ok_or(AbortReason::Retry)?;
        if was_committed {
            note_committed(entries, offsets);
        } else {
            self.in_doubt = None;
        }
        Ok(was_committed)
    }

    /// Sends all records and waits for their reports.
    fn send(&self, transaction: &Transaction, entries: &[TransactionEntry], deadline: &Deadline) -> Outcome {
        let mut refused = HashMap::new();
        let sent = self.produce(transaction, entries, deadline, &mut refused)?;
        transaction.flush(deadline.remaining()).map_err(|error| self.reason(&error))?;
        entries.iter().zip(&sent).for_each(|(entry, handles)| entry.note_sent(handles));
        let mut is_complete = true;
        for (index, handles) in sent.iter().enumerate().filter(|(_, handles)| !are_delivered(handles)) {
            for handle in handles {
                match handle.result() {
                    Some(Ok(_)) => (),
                    Some(Err(error)) if is_of_record(&error) => drop(refused.insert(index, error)),
                    Some(Err(_)) | None => is_complete = false,
                }
            }
        }
        // An error drops the transaction, which aborts it.
        match (refused.is_empty(), is_complete) {
            (true, true) => Ok(()),
            (true, false) => Err(AbortReason::Retry),
            (false, _) => Err(AbortReason::Refused(refused)),
        }
    }

    /// Produces all records. Returns the handles of each entry; adds the entries with a refused record to `refused`.
    fn produce(
        &self,
        transaction: &Transaction,
        entries: &[TransactionEntry],
        deadline: &Deadline,
        refused: &mut HashMap<usize, Error>,
    ) -> Outcome<Vec<Vec<Arc<DeliveryHandle>>>> {
        let mut all = Vec::with_capacity(entries.len());
        for (index, entry) in entries.iter().enumerate() {
            let mut sent = Vec::with_capacity(entry.records.len());
            match produce_entry(transaction, &entry.records, deadline, &mut sent) {
                Ok(()) => (),
                Err(error) if is_of_record(&error) => drop(refused.insert(index, error)),
                Err(error) => return Err(self.reason(&error)),
            }
            all.push(sent);
        }
        Ok(all)
    }

    /// Classifies an error that is not of a record.
    fn reason(&self, error: &Error) -> AbortReason {
        abort_reason(error, self.producer.is_alone())
    }
}

/// Produces the records of one entry, several at once.
fn produce_entry(
    transaction: &Transaction,
    records: &[OwnedRecord],
    deadline: &Deadline,
    sent: &mut Vec<Arc<DeliveryHandle>>,
) -> Result<()> {
    for run in records.chunk_by(|one, next| one.topic == next.topic) {
        for part in run.chunks(TOGETHER) {
            OwnedRecord::with_all(part, |records| transaction.produce_many(&part[0].topic, records, deadline, sent))?;
        }
    }
    Ok(())
}

/// Returns the offsets to commit, each partition once.
fn offsets_of(entries: &[TransactionEntry]) -> Outcome<Vec<PartitionOffset>> {
    let mut offsets: Vec<PartitionOffset> = Vec::new();
    for entry in entries {
        let at = entry.partition.topic_partition();
        if offsets.iter().any(|known| known.at == *at) {
            continue;
        }
        let to_commit = entry.to_commit().map_err(|_| AbortReason::Retry)?;
        let Some(to_commit) = to_commit else { continue };
        if !to_commit.is_whole {
            return Err(AbortReason::MetadataFull);
        }
        let is_new = !entry.partition.is_held(&to_commit);
        let ToCommit { position, metadata, .. } = to_commit;
        offsets.push(PartitionOffset { at: at.clone(), position, metadata, is_new });
    }
    Ok(offsets)
}

fn note_committed(entries: &[TransactionEntry], offsets: &[PartitionOffset]) {
    // First: the rows that belong to an offset are there when it is seen.
    entries.iter().for_each(TransactionEntry::commit_rows);
    for offset in offsets {
        if let Some(entry) = entries.iter().find(|entry| *entry.partition.topic_partition() == offset.at) {
            entry.partition.note_committed(offset.position.offset, offset.metadata.clone());
        }
    }
    if let Some(entry) = entries.first() {
        let committed = offsets.iter().map(|offset| (offset.at.clone(), offset.position.offset)).collect();
        entry.partition.client().emit(What::Committed(committed));
    }
}

/// Returns whether these are the group's committed offsets; `None` when that is not known. Blocks.
fn are_committed(entries: &[TransactionEntry], offsets: &[PartitionOffset]) -> Option<bool> {
    // Only partitions tell that are assigned before and after the look-up: the next owner of another one may have
    // processed the same messages, and committed the same offset. If there is none with a new offset, the transaction
    // is repeated: no records go with it, or those of messages that were sought and processed again.
    let telling: Vec<_> = offsets.iter().filter(|offset| offset.is_new && is_assigned(entries, &offset.at)).collect();
    let partitions: Vec<_> = telling.iter().map(|offset| offset.at.clone()).collect();
    if partitions.is_empty() {
        return Some(false);
    }
    let found = entries.first()?.partition.client().committed(&partitions).ok()?;
    let is_there = |offset: &PartitionOffset, found: CommittedOffset| {
        found.offset == offset.position.offset && found.metadata.as_deref() == offset.metadata.as_deref()
    };
    let mut answers = telling.into_iter().zip(found).filter(|(offset, _)| is_assigned(entries, &offset.at));
    answers.next().map(|(offset, found)| found.is_some_and(|found| is_there(offset, found)))
}

fn is_assigned(entries: &[TransactionEntry], at: &TopicPartition) -> bool {
    entries.iter().any(|entry| entry.partition.topic_partition() == at && entry.check().is_ok())
}

/// Returns whether the record itself may be at fault.
///
/// A transaction is repeated for as long as it takes, and a refusal of the record would come each time. So one that may
/// be for good ends the entry, even where the same record might be accepted later: the route's retries go on then, and
/// they are bounded. librdkafka has tried a corrupt message again by itself before it reports one.
fn is_of_record(error: &Error) -> bool {
    match error {
        Error::MessageTooLarge { .. } | Error::Invalid { .. } | Error::Config { .. } => true,
        Error::Kafka { code, .. } => code.is_refused_for_good() || *code == Code::CORRUPT_MESSAGE,
        _ => false,
    }
}

fn abort_reason(error: &Error, is_alone: bool) -> AbortReason {
    match error {
        // The process slept longer than its transaction may last: no other process can have the id.
        Error::ProducerFenced { .. } if is_alone => AbortReason::Retry,
        // Only a person can change a missing permission.
        Error::ProducerFenced { .. }
        | Error::Closed { .. }
        | Error::Forked { .. }
        | Error::Config { .. }
        | Error::Kafka { code: Code::TRANSACTIONAL_ID_AUTHORIZATION | Code::GROUP_AUTHORIZATION, .. } => {
            AbortReason::Fatal(error.clone())
        }
        _ => AbortReason::Retry,
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;

    fn kafka(code: Code) -> Error {
        Error::kafka("produce to orders", code, "")
    }

    fn fenced() -> Error {
        Error::ProducerFenced { code: Code::PRODUCER_FENCED, detail: String::new() }
    }

    #[test]
    fn only_a_producer_that_is_alone_survives_a_fencing() {
        assert!(matches!(abort_reason(&fenced(), true), AbortReason::Retry));
        assert!(matches!(abort_reason(&fenced(), false), AbortReason::Fatal(Error::ProducerFenced { .. })));
    }

    #[test]
    fn a_missing_permission_is_fatal_and_a_slow_broker_is_not() {
        for code in [Code::TRANSACTIONAL_ID_AUTHORIZATION, Code::GROUP_AUTHORIZATION] {
            assert!(matches!(abort_reason(&kafka(code), true), AbortReason::Fatal(_)), "{code:?}");
        }
        assert!(matches!(abort_reason(&kafka(Code::REQUEST_TIMED_OUT), true), AbortReason::Retry));
    }

    #[test]
    fn a_record_that_is_refused_for_good_or_corrupt_is_at_fault_itself() {
        let too_large = Error::MessageTooLarge { topic: "orders".into(), size_bytes: 9, detail: String::new() };
        assert!(is_of_record(&too_large) && is_of_record(&kafka(Code::CORRUPT_MESSAGE)));
        assert!(Code::REFUSED_FOR_GOOD.into_iter().all(|code| is_of_record(&kafka(code))));
        assert!(!is_of_record(&kafka(Code::REQUEST_TIMED_OUT)) && !is_of_record(&fenced()));
    }
}
