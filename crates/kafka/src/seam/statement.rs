//! The engine's demands on its Kafka client, signature by signature. Compiled once as a part of each client: one that
//! lacks a function, or has it with other types, does not compile.
//!
//! Not here is what only librdkafka has: administration, tokens, lent bytes, versions. Only the bridge asks for those.

#![allow(clippy::type_complexity)] // A signature is to be read as it is.

use std::borrow::Cow;
use std::ffi::CStr;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use super::{
    Batch, Client, ClientConfig, ClientOptions, FetchMemory, GroupMetadata, Loose, MessageRef, Queue, QueueEvent,
    Record, Topic, TopicPartitionList, Variant, batch_max, partition_of_key, queue::Pull, why_unread,
};
use crate::clock::Deadline;
use crate::events::{EventBox, What};
use crate::fork_guard::Birthplace;
use crate::seam::{
    AccessFailure, CommittedOffset, Delivery, DescribedTopic, EndTxns, EndedLinger, EventKind, Failure, FetchError,
    Fetched, Kind, Limit, Metadata, OnRenewed, Owner, Position, Presence, Refused, Reported, TimestampKind,
    TopicPartition, Unanswered, Unread,
};
use crate::{Code, Result};

type Called<T = ()> = std::result::Result<T, Failure>;
type Bytes<'a> = Option<&'a [u8]>;

/// A message that takes reports.
struct Message;

impl Reported for Message {
    fn report(self: Arc<Self>, _report: std::result::Result<Delivery, Code>) -> bool {
        false
    }
}

// Settings.
const _: fn() -> ClientConfig = ClientConfig::new;
const _: for<'a> fn(&'a mut ClientConfig, &'static str, String) -> &'a mut ClientConfig = ClientConfig::set;
const _: for<'a> fn(&'a mut ClientConfig, &str, &str) -> &'a mut ClientConfig = ClientConfig::set_default;
const _: for<'a> fn(&'a mut ClientConfig, &str) -> &'a mut ClientConfig = ClientConfig::remove;
const _: for<'a> fn(&'a ClientConfig, &str) -> Option<&'a str> = ClientConfig::get;
const _: fn(&ClientConfig, &str) -> Result<u64> = ClientConfig::effective_number;
const _: fn(&ClientConfig, &str) -> Result<String> = ClientConfig::effective;
const _: fn(&ClientConfig, &[(&str, &str)]) -> Result<()> = ClientConfig::refuse;
const _: fn() -> ClientOptions = ClientOptions::default;
const _: fn(ClientOptions) -> ClientOptions = ClientOptions::with_reports_to::<Message>;
const _: fn(ClientOptions) -> ClientOptions = ClientOptions::with_group_events;
const _: fn(ClientOptions) -> ClientOptions = ClientOptions::with_errors;
const _: fn(ClientOptions, Arc<EndTxns>) -> ClientOptions = ClientOptions::with_counts;
const _: fn(ClientOptions, u32) -> ClientOptions = ClientOptions::with_crowd;

// A client, and why it can't go on.
const _: fn(Kind, &'static str, &ClientConfig, Arc<EventBox>, ClientOptions) -> Result<Arc<Client>> = Client::new;
const _: fn(&Client) -> Result<()> = Client::check_process;
const _: fn(&Client) -> Birthplace = Client::birthplace;
const _: fn(&Client) -> Arc<str> = Client::name;
const _: fn(&Client, What) = Client::emit;
const _: fn(&Client, Duration) -> bool = Client::asks_for_brokers;
const _: fn(&Client) -> bool = Client::is_suspect;
const _: Duration = Client::LOOK_AGAIN;
const _: fn(&Client) -> Option<AccessFailure> = Client::access_failure;
const _: fn(&Client) -> Option<AccessFailure> = Client::last_access_failure;
const _: fn(&Client) -> Option<AccessFailure> = Client::denial;
const _: fn(&Client) -> Option<(Code, String)> = Client::fatal_error;

// Questions.
const _: fn(&Client, Option<&str>, &Deadline) -> Result<Metadata> = Client::metadata;
const _: fn(&Client, &[TopicPartition]) -> Result<Vec<Option<CommittedOffset>>> = Client::committed;
const _: fn(&Client, &[TopicPartition], Duration) -> Result<Vec<Option<CommittedOffset>>> = Client::committed_within;
const _: fn(&Client, &TopicPartition, i64) -> Result<i64> = Client::offset_at;
const _: fn(&Client, &TopicPartition, &Deadline) -> Result<i64> = Client::end_offset;
const _: fn(&Client, &TopicPartition) -> Option<Range<i64>> = Client::offsets_seen;
const _: fn(&Client, &Queue, Duration) -> Result<()> = Client::ask_for_groups;
const _: fn(&QueueEvent, &str) -> Presence = QueueEvent::presence_of;
const _: fn(&Client, &Queue, Duration) -> Result<()> = Client::ask_for_owned;
const _: fn(&QueueEvent) -> Option<Vec<Owner>> = QueueEvent::owned;
const _: fn(&Client, &[String], &Queue, Duration) -> Result<()> = Client::ask_for_topics;
const _: fn(&QueueEvent) -> Vec<DescribedTopic> = QueueEvent::topics;
const _: fn(&Client, &[TopicPartition], &Queue, Duration) -> Result<()> = Client::ask_for_ends;
const _: fn(&QueueEvent) -> Vec<(TopicPartition, Position)> = QueueEvent::ends;

// A consumer.
const _: fn(&Client, &[String]) -> Result<()> = Client::subscribe;
const _: fn(&Client) = Client::unsubscribe;
const _: fn(&Client) = Client::join_again;
const _: fn(&Client) -> bool = Client::is_assignment_lost;
const _: fn(&Client) -> bool = Client::is_cooperative;
const _: fn(&Client, &TopicPartitionList) -> Result<()> = Client::assign;
const _: fn(&Client, &TopicPartitionList) -> Result<()> = Client::unassign;
const _: fn(&Client, &TopicPartitionList) -> Code = Client::set_assignment;
const _: fn(&Client) -> Code = Client::clear_assignment;
const _: fn(&Client, &TopicPartitionList, &Queue) -> Code = Client::commit;
const _: fn(&Client, &Queue) -> bool = Client::begin_close;
const _: fn(&Client) -> bool = Client::is_closed;
const _: fn(&Client, &mut TopicPartitionList) -> Option<Position> = Client::position;
const _: fn(&Client, &TopicPartition, Position) -> bool = Client::seek;
const _: fn(&Client, OnRenewed) = Client::on_topic_renewed;
const _: fn(&Client, &str) -> bool = Client::learn_leaders;
const _: fn(&mut ClientConfig, usize, usize) -> Option<usize> = FetchMemory::configure;
const _: fn(&Arc<Client>, usize) -> FetchMemory = FetchMemory::of;
const _: fn(&FetchMemory, usize) -> Option<usize> = FetchMemory::share_among;

// Lists of partitions.
const _: fn() -> TopicPartitionList = TopicPartitionList::new;
const _: fn(&[TopicPartition]) -> Result<TopicPartitionList> = TopicPartitionList::of;
const _: fn(&mut TopicPartitionList, &TopicPartition, Option<Position>) -> Result<()> = TopicPartitionList::add;
const _: fn(&TopicPartitionList) -> Vec<(TopicPartition, i64, Code)> = TopicPartitionList::entries;
const _: fn(&TopicPartitionList) -> Vec<TopicPartition> = TopicPartitionList::partitions;
const _: fn(&TopicPartitionList) -> bool = TopicPartitionList::is_empty;

/// Returns positions, each with the text beside it, as a list of the client's.
///
/// # Errors
/// [`crate::Error::Invalid`]: the name of a topic holds a zero byte.
pub fn positions_list<'a>(
    positions: impl IntoIterator<Item = (&'a TopicPartition, Position, Option<&'a str>)>,
) -> Result<TopicPartitionList> {
    let mut list = TopicPartitionList::new();
    for (at, position, metadata) in positions {
        list.add(at, Some(position))?;
        if let Some(metadata) = metadata {
            list.set_metadata(metadata);
        }
    }
    Ok(list)
}

// Queues, and what comes out of them.
const _: fn(&Arc<Client>) -> Queue = Queue::new;
const _: fn(&Arc<Client>) -> Queue = Queue::main;
const _: fn(&Arc<Client>) -> Result<Queue> = Queue::consumer;
const _: fn(&Arc<Client>, &TopicPartition) -> Result<Queue> = Queue::partition;
const _: fn(&Queue, &Deadline) -> Option<QueueEvent> = Queue::poll;
const _: fn(&Queue) -> bool = Queue::is_empty;
const _: fn(&Queue) = Queue::interrupt;
const _: fn(&Queue, fn()) = Queue::on_non_empty;
const _: fn(&Queue) = Queue::stop_listening;
const _: fn(&Queue, &TopicPartition, usize, usize) -> Pull = Queue::pull;
const _: fn(Pull) -> (Batch, bool, Vec<FetchError>) = |pull| (pull.batch, pull.is_exhausted, pull.errors);
const _: fn(&Queue, &TopicPartition) = Queue::discard;
const _: fn(&QueueEvent) -> EventKind = QueueEvent::kind;
const _: fn(&QueueEvent) -> Code = QueueEvent::code;
const _: fn(&QueueEvent) -> String = QueueEvent::error_text;
const _: fn(&QueueEvent) -> TopicPartitionList = QueueEvent::partitions;
const _: fn(&QueueEvent) -> Vec<Fetched<'_>> = QueueEvent::fetched;

// Fetched messages.
const _: fn(&Batch) -> &TopicPartition = Batch::topic_partition;
const _: fn(&Batch) -> usize = Batch::len;
const _: fn(&Batch) -> bool = Batch::is_empty;
const _: fn(&Batch) -> usize = Batch::size_bytes;
const _: fn(Batch) -> Vec<Loose> = Batch::into_loose;
const _: fn(TopicPartition, Vec<Loose>, Arc<Client>) -> Batch = Batch::of_loose;
const _: fn(&mut Batch, usize) -> Batch = Batch::split_off;
const _: fn(&mut Batch, fn(MessageRef<'_>) -> Option<bool>) = Batch::retain_while;
const _: fn(&mut Batch, Batch) = Batch::append;
const _: fn(&Batch, usize) -> MessageRef<'_> = Batch::message;
const _: for<'a> fn(&'a Batch) -> Option<MessageRef<'a>> = |batch| batch.iter().next();
const _: fn(&Loose) -> i64 = Loose::offset;
const _: fn(&Loose) -> i32 = Loose::leader_epoch;
const _: fn(&Loose) -> Bytes<'_> = Loose::key;
const _: for<'a> fn(&'a Loose, &CStr) -> Bytes<'a> = Loose::header;
const _: fn(MessageRef<'_>) -> i32 = |message| message.partition();
const _: fn(MessageRef<'_>) -> i64 = |message| message.offset();
const _: fn(MessageRef<'_>) -> Bytes<'_> = |message| message.value();
const _: fn(MessageRef<'_>) -> Bytes<'_> = |message| message.key();
const _: fn(MessageRef<'_>) -> usize = |message| message.size_bytes();
const _: fn(MessageRef<'_>) -> (i64, TimestampKind) = |message| message.timestamp();
const _: fn(MessageRef<'_>) -> Vec<(Cow<'_, str>, Bytes<'_>)> = |message| message.headers();
const _: fn(MessageRef<'_>) -> i32 = |message| message.leader_epoch();
const _: fn() -> usize = batch_max;
const _: fn(i64, &str) -> Option<Unread> = why_unread;

// A producer.
const _: for<'a> fn(&'a [u8]) -> Record<'a> = |value| Record { value: Some(value), ..Record::default() };
const _: fn(&Record<'_>) -> usize = |record| record.size_bytes();
const _: fn(&Record<'_>) -> Option<i64> = |record| record.stamp_ms();
const _: fn(Option<&Variant>) -> u32 = Variant::id_of;
const _: fn(&Arc<Client>, &str, Option<&Variant>) -> Result<Topic<Message>> = Topic::open;
const _: fn(&Topic<Message>, &Record<'_>, Arc<Message>) -> std::result::Result<(), Code> = Topic::send;
const _: fn(&Topic<Message>, &[Record<'_>], &[Arc<Message>]) -> Option<Refused> = Topic::send_many;
const _: fn(&Topic<Message>, &Message) -> EndedLinger = Topic::end_linger;
const _: fn(&Client, EndedLinger) = Client::linger_again;
const _: fn(&Client, i32) = Client::serve_reports;
const _: fn(&Client, i32) -> Code = Client::flush;
const _: fn(&Client) -> Vec<Unanswered> = Client::unanswered;
const _: fn(&Client) = Client::purge_queued;
const _: fn(&Client) = Client::purge_all;
const _: fn(&[u8], usize) -> i32 = partition_of_key;

// Transactions.
const _: fn(&Client) -> Option<GroupMetadata> = GroupMetadata::of;
const _: fn(&Client, Limit<'_>) -> Called = Client::init_transactions;
const _: fn(&Client) -> Called = Client::begin_transaction;
const _: fn(&Client, &TopicPartitionList, &GroupMetadata, Limit<'_>) -> Called = Client::send_offsets;
const _: fn(&Client, Limit<'_>) -> Called = Client::commit_transaction;
const _: fn(&Client, Limit<'_>) -> Called = Client::abort_transaction;

// From any thread.
const _: fn() = || {
    fn is_shared<T: Send + Sync>() {}
    is_shared::<Client>();
    is_shared::<Queue>();
    is_shared::<Batch>();
    is_shared::<Topic<Message>>();
    is_shared::<FetchMemory>();
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;

    fn position(offset: i64) -> Position {
        Position { offset, leader_epoch: 3 }
    }

    #[test]
    fn a_list_tells_its_partitions_in_their_order() {
        let (one, other) = (TopicPartition::new("orders", 4), TopicPartition::new("orders", 1));
        let list = positions_list([(&one, position(7), None), (&other, position(9), Some("a text"))]).expect("names");
        assert_eq!(list.partitions(), [one.clone(), other.clone()]);
        assert_eq!(list.entries(), [(one.clone(), 7, Code::NONE), (other, 9, Code::NONE)]);
        assert!(!list.is_empty() && TopicPartitionList::new().is_empty());
        let without_position = TopicPartitionList::of(std::slice::from_ref(&one)).expect("a name");
        assert_eq!(without_position.entries(), [(one, -1001, Code::NONE)]);
    }

    #[test]
    fn the_defaults_of_properties_are_those_of_librdkafka() {
        let config = ClientConfig::new();
        let number = |property| config.effective_number(property).expect("a number");
        assert_eq!(number("max.poll.interval.ms"), 300_000);
        assert_eq!(number("message.max.bytes"), 1_000_000);
        assert_eq!(number("message.timeout.ms"), 300_000);
        assert_eq!(number("queue.buffering.max.kbytes"), 1_048_576);
        assert_eq!(number("queue.buffering.max.messages"), 100_000);
        assert_eq!(number("transaction.timeout.ms"), 60_000);
        assert_eq!(config.effective("enable.idempotence").expect("known"), "false");
    }

    #[test]
    fn a_property_is_set_once_and_refused_by_name() {
        let mut config = ClientConfig::new();
        config.set("linger.ms", "7".to_owned()).set_default("linger.ms", "9").set_default("acks", "1");
        assert_eq!((config.get("linger.ms"), config.get("acks"), config.get("retries")), (Some("7"), Some("1"), None));
        assert!(config.refuse(&[("retries", "ours")]).is_ok());
        let refused = config.refuse(&[("retries", "ours"), ("acks", "awoke sets it")]);
        let Err(Error::Config { property, reason }) = refused else { panic!("{refused:?}") };
        assert_eq!((property.as_str(), reason.as_str()), ("acks", "awoke sets it"));
    }

    #[test]
    fn a_record_counts_all_of_its_bytes() {
        let record = Record {
            value: Some(b"value"),
            key: Some(b"key"),
            headers: &[("h", Some(b"12")), ("i", None)],
            ..Record::default()
        };
        assert_eq!((record.size_bytes(), Record::default().size_bytes()), (12, 0));
    }

    #[test]
    fn a_key_has_one_partition_of_those_that_there_are() {
        for key in [&b"a"[..], b"another key", b""] {
            let partition = partition_of_key(key, 7);
            assert!((0..7).contains(&partition));
            assert_eq!(partition, partition_of_key(key, 7));
        }
    }
}
