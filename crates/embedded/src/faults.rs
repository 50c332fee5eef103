//! Faults that a test asks for: requests that are refused, answers that are lost, partitions that are taken from
//! members, and a log that is cut short.
//!
//! Each completes when it has happened, so that a test can wait for it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use awoke_wake::{Completion, Error};
use kafka_protocol::ResponseError;

use crate::cluster::Cluster;
use crate::fetch;
use crate::groups::withdrawals::{self, Kind};

/// More codes than Kafka has errors.
const CODES_MAX: i16 = 500;

/// Completes when a fault has happened.
pub type Happened = Arc<Completion<()>>;

/// The requests that are refused: how many, and by which error. Errors have Kafka's names, as in
/// `NOT_ENOUGH_REPLICAS`.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// The topic, or the group.
    pub name: String,
    /// The name of the error.
    pub error: String,
    /// The number of refusals.
    pub times: u32,
}

/// A partition: its topic and its number.
type Place = (String, i32);

/// A fault, as a test asks for it.
#[derive(Clone, Debug)]
pub enum Fault {
    /// The next batches for a topic are refused.
    RefuseProduce(Refusal),
    /// The next request of a kind, by Kafka's number for it, is refused.
    RefuseRequest(i16, String),
    /// The next answers to a fetch of a partition of a topic are errors.
    RefuseFetch(Refusal),
    /// The next commits of a group's offsets are refused, also those of transactions.
    RefuseCommit(Refusal),
    /// This number of batches for a topic is written, and the connection is closed instead of an answer.
    LoseAcknowledgement(String, u32),
    /// The next commit of a transaction finds it aborted, and its producer fenced: its time was over. An id that ends
    /// with a dot is the prefix of ids.
    AbortTransaction(String),
    /// A partition is revoked from the member of a group that has it, in a rebalance, and may be assigned again.
    Revoke(String, Place),
    /// The member of a group that has a partition is removed, as if its session were over.
    Lose(String, Place),
    /// The batches from an offset on are gone, as after an unclean election of a leader.
    Truncate(Place, i64),
    /// A broker refuses connections, or accepts them again.
    SetBrokerUp(i32, bool),
    /// A broker answers this much later, in ms.
    SetRoundTrip(i32, i32),
}

impl Fault {
    /// Returns a fault by its kind, with the names and the numbers that it is about.
    ///
    /// # Errors
    /// [`Error::Invalid`] for another kind, or other names and numbers than this kind has.
    pub fn of(kind: &str, names: &[String], numbers: &[i64]) -> Result<Self, Error> {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let refusal = |name: &str, error: &str, times: i64| Refusal {
            name: name.to_owned(),
            error: error.to_owned(),
            times: u32::try_from(times).unwrap_or(1),
        };
        let number = |number: i64| i32::try_from(number).unwrap_or(-1);
        let place = |topic: &str, partition: i64| (topic.to_owned(), number(partition));
        Ok(match (kind, &names[..], numbers) {
            ("refuse_produce", [topic, error], [times]) => Self::RefuseProduce(refusal(topic, error, *times)),
            ("refuse_fetch", [topic, error], [times]) => Self::RefuseFetch(refusal(topic, error, *times)),
            ("refuse_commit", [group, error], [times]) => Self::RefuseCommit(refusal(group, error, *times)),
            ("refuse_request", [error], [key]) => Self::RefuseRequest(*key as i16, (*error).to_owned()),
            ("lose_acknowledgement", [topic], [times]) => {
                Self::LoseAcknowledgement((*topic).to_owned(), u32::try_from(*times).unwrap_or(1))
            }
            ("abort_transaction", [id], []) => Self::AbortTransaction((*id).to_owned()),
            ("revoke", [group, topic], [index]) => Self::Revoke((*group).to_owned(), place(topic, *index)),
            ("lose", [group, topic], [index]) => Self::Lose((*group).to_owned(), place(topic, *index)),
            ("set_broker_up", [], [broker, is_up]) => Self::SetBrokerUp(number(*broker), *is_up != 0),
            ("set_round_trip", [], [broker, ms]) => Self::SetRoundTrip(number(*broker), number(*ms)),
            ("truncate", [topic], [index, offset]) => Self::Truncate(place(topic, *index), *offset),
            _ => return Err(Error::Invalid { reason: format!("there is no fault {kind} {names:?} {numbers:?}") }),
        })
    }
}

/// The requests that a rule is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Of {
    /// Batches for a topic.
    Produce,
    /// Acknowledgements of batches for a topic.
    Acknowledgement,
    /// Fetches from a topic.
    Fetch,
    /// Commits of a group.
    Commit,
    /// Commits of the transactions of a transactional id.
    EndTransaction,
}

#[derive(Debug)]
struct Rule {
    of: Of,
    /// The topic, the group or the transactional id.
    name: String,
    error: ResponseError,
    left: u32,
    happened: Happened,
}

impl Rule {
    fn is_for(&self, of: Of, name: &str) -> bool {
        let is_prefix = of == Of::EndTransaction && self.name.ends_with('.');
        self.of == of && (self.name == name || (is_prefix && name.starts_with(&self.name)))
    }
}

/// The faults that are still to happen.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    by_key: BTreeMap<i16, VecDeque<(ResponseError, Happened)>>,
    rules: Vec<Rule>,
}

impl Faults {
    /// Refuses the next request of a kind.
    pub fn refuse(&mut self, key: i16, error: ResponseError) -> Happened {
        let happened = Happened::default();
        self.by_key.entry(key).or_default().push_back((error, Arc::clone(&happened)));
        happened
    }

    /// Takes the error for a request of a kind.
    pub fn of_kind(&mut self, key: i16) -> Option<ResponseError> {
        let (error, happened) = self.by_key.get_mut(&key)?.pop_front()?;
        happened.complete(());
        Some(error)
    }

    /// Returns whether a rule is for these requests.
    pub fn is_due(&self, of: Of, name: &str) -> bool {
        self.rules.iter().any(|rule| rule.is_for(of, name))
    }

    /// Takes the error for a request about a topic, a group or a transactional id.
    pub fn take(&mut self, of: Of, name: &str) -> Option<ResponseError> {
        let at = self.rules.iter().position(|rule| rule.is_for(of, name))?;
        let rule = &mut self.rules[at];
        let error = rule.error;
        rule.left -= 1;
        if rule.left == 0 {
            self.rules.remove(at).happened.complete(());
        }
        Some(error)
    }

    fn add(&mut self, of: Of, name: String, error: ResponseError, times: u32) -> Happened {
        let happened = Happened::default();
        self.rules.push(Rule { of, name, error, left: times.max(1), happened: Arc::clone(&happened) });
        happened
    }
}

/// Has a fault happen: at once, or to the requests that it is for.
///
/// # Errors
/// A text: the error, the group or the partition does not exist.
pub(crate) fn inject(cluster: &mut Cluster, fault: Fault) -> Result<Happened, String> {
    match fault {
        Fault::RefuseProduce(Refusal { name, error, times }) => {
            check_topic(cluster, &name)?;
            Ok(cluster.faults.add(Of::Produce, name, error_of(&error)?, times))
        }
        Fault::RefuseRequest(key, error) => Ok(cluster.faults.refuse(key, error_of(&error)?)),
        Fault::RefuseFetch(refusal) => refuse_fetch(cluster, refusal),
        Fault::RefuseCommit(Refusal { name, error, times }) => {
            Ok(cluster.faults.add(Of::Commit, name, error_of(&error)?, times))
        }
        Fault::LoseAcknowledgement(topic, times) => {
            check_topic(cluster, &topic)?;
            Ok(cluster.faults.add(Of::Acknowledgement, topic, ResponseError::NetworkException, times))
        }
        Fault::AbortTransaction(id) => Ok(cluster.faults.add(Of::EndTransaction, id, ResponseError::ProducerFenced, 1)),
        Fault::Revoke(group, place) => withdraw(cluster, &group, Kind::Revoke, place),
        Fault::Lose(group, place) => withdraw(cluster, &group, Kind::Lose, place),
        Fault::Truncate(place, offset) => truncate(cluster, &place, offset),
        Fault::SetBrokerUp(..) | Fault::SetRoundTrip(..) => Err("the brokers have no sockets".to_owned()),
    }
}

fn withdraw(cluster: &mut Cluster, group: &str, kind: Kind, place: Place) -> Result<Happened, String> {
    check_partition(cluster, &place)?;
    withdrawals::begin(cluster, group, kind, place)
}

/// Refuses fetches, among them those that wait for messages.
fn refuse_fetch(cluster: &mut Cluster, refusal: Refusal) -> Result<Happened, String> {
    let Refusal { name: topic, error, times } = refusal;
    let partitions = check_topic(cluster, &topic)?;
    let happened = cluster.faults.add(Of::Fetch, topic.clone(), error_of(&error)?, times);
    (0..partitions).for_each(|index| fetch::wake(cluster, &topic, index));
    Ok(happened)
}

fn truncate(cluster: &mut Cluster, place: &Place, offset: i64) -> Result<Happened, String> {
    check_partition(cluster, place)?;
    if let Ok(partition) = cluster.topics.partition_mut(&place.0, place.1) {
        partition.log.truncate(offset);
        // A new leader was elected: clients that know the old epoch look where it ended.
        partition.leader_epoch += 1;
    }
    fetch::wake(cluster, &place.0, place.1);
    Ok(happened())
}

/// Returns the completion of a fault that has happened.
pub(crate) fn happened() -> Happened {
    let happened = Happened::default();
    happened.complete(());
    happened
}

fn check_topic(cluster: &Cluster, topic: &str) -> Result<i32, String> {
    let found = cluster.topics.get(topic).map(|topic| topic.partitions.len() as i32);
    found.ok_or_else(|| format!("there is no topic {topic:?}"))
}

fn check_partition(cluster: &Cluster, (topic, index): &Place) -> Result<(), String> {
    let count = check_topic(cluster, topic)?;
    let is_known = (0..count).contains(index);
    if is_known { Ok(()) } else { Err(format!("there is no partition {index} of topic {topic:?}: it has {count}")) }
}

/// Returns an error by Kafka's name for it.
fn error_of(name: &str) -> Result<ResponseError, String> {
    let found = (-1..CODES_MAX).filter_map(ResponseError::try_from_code).find(|error| name_of(*error) == name);
    found.ok_or_else(|| format!("Kafka has no error {name:?}: its errors have names like NOT_ENOUGH_REPLICAS"))
}

fn name_of(error: ResponseError) -> String {
    let mut name = String::new();
    for letter in format!("{error:?}").chars() {
        if letter.is_ascii_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.push(letter.to_ascii_uppercase());
    }
    name
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use kafka_protocol::messages::add_partitions_to_txn_request::AddPartitionsToTxnTopic;
    use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
    use kafka_protocol::messages::offset_commit_request::{
        OffsetCommitRequestPartition as Committed, OffsetCommitRequestTopic,
    };
    use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
    use kafka_protocol::messages::{
        AddPartitionsToTxnRequest, EndTxnRequest, FetchRequest, GroupId, InitProducerIdRequest, OffsetCommitRequest,
        ProduceRequest, TopicName, TransactionalId,
    };
    use kafka_protocol::protocol::StrBytes;

    use super::*;
    use crate::testing::{Driven, NOT_NUMBERED, batch, messages};

    fn orders() -> TopicName {
        TopicName(StrBytes::from_static_str("orders"))
    }

    fn produce() -> ProduceRequest {
        let records = batch(NOT_NUMBERED, &[("a", 1)]);
        let data = PartitionProduceData::default().with_index(0).with_records(Some(records));
        let topic = TopicProduceData::default().with_name(orders()).with_partition_data(vec![data]);
        ProduceRequest::default().with_acks(-1).with_topic_data(vec![topic])
    }

    fn produced(driven: &mut Driven) -> i16 {
        driven.ask(9, &produce()).responses[0].partition_responses[0].error_code
    }

    fn refusal(name: &str, error: &str, times: u32) -> Refusal {
        Refusal { name: name.to_owned(), error: error.to_owned(), times }
    }

    fn happens(driven: &mut Driven, fault: Fault) -> Happened {
        inject(&mut driven.cluster, fault).expect("a fault that can happen")
    }

    #[test]
    fn a_fault_is_found_by_its_kind() {
        let of = |kind: &str, names: &[&str], numbers: &[i64]| {
            Fault::of(kind, &names.iter().map(ToString::to_string).collect::<Vec<_>>(), numbers)
        };
        assert!(matches!(of("truncate", &["orders"], &[1, 5]), Ok(Fault::Truncate((_, 1), 5))));
        assert!(matches!(of("lose", &["g", "orders"], &[0]), Ok(Fault::Lose(_, (_, 0)))));
        for wrong in [of("lose", &["orders"], &[0]), of("melt", &[], &[])] {
            assert!(matches!(wrong, Err(Error::Invalid { .. })));
        }
    }

    #[test]
    fn every_error_has_kafkas_name() {
        assert_eq!(error_of("NOT_ENOUGH_REPLICAS"), Ok(ResponseError::NotEnoughReplicas));
        assert_eq!(error_of("UNKNOWN_SERVER_ERROR"), Ok(ResponseError::UnknownServerError));
        assert_eq!(error_of("STALE_MEMBER_EPOCH"), Ok(ResponseError::StaleMemberEpoch));
        for name in ["", "NotEnoughReplicas", "UNKNOWN(1)", "NONE"] {
            assert!(error_of(name).is_err_and(|text| text.contains("NOT_ENOUGH_REPLICAS")), "{name}");
        }
    }

    #[test]
    fn batches_are_refused_as_often_as_asked() {
        let mut driven = Driven::new(1);
        let refused = happens(&mut driven, Fault::RefuseProduce(refusal("orders", "NOT_ENOUGH_REPLICAS", 2)));
        assert_eq!(produced(&mut driven), ResponseError::NotEnoughReplicas.code());
        assert!(!refused.is_done());
        assert_eq!(produced(&mut driven), ResponseError::NotEnoughReplicas.code());
        assert!(refused.is_done());
        assert_eq!(produced(&mut driven), 0);
        assert_eq!(driven.cluster.topics.partition("orders", 0).map(|each| each.log.end()), Ok(1));
    }

    #[test]
    fn a_batch_without_an_acknowledgement_is_written() {
        let mut driven = Driven::new(1);
        let lost = happens(&mut driven, Fault::LoseAcknowledgement("orders".to_owned(), 1));
        let ticket = driven.send(9, &produce());
        assert!(driven.hung_up(ticket) && lost.is_done());
        assert_eq!(driven.cluster.topics.partition("orders", 0).map(|each| each.log.end()), Ok(1));
        assert_eq!(produced(&mut driven), 0);
    }

    fn fetch_from(offset: i64, max_wait_ms: i32) -> FetchRequest {
        let partition = FetchPartition::default()
            .with_fetch_offset(offset)
            .with_current_leader_epoch(-1)
            .with_partition_max_bytes(1_000_000);
        let topic = FetchTopic::default().with_topic(orders()).with_partitions(vec![partition]);
        FetchRequest::default()
            .with_max_wait_ms(max_wait_ms)
            .with_min_bytes(1)
            .with_max_bytes(1_000_000)
            .with_topics(vec![topic])
    }

    #[test]
    fn a_fetch_that_waits_is_refused_at_once() {
        let mut driven = Driven::new(1);
        let waits = driven.send(11, &fetch_from(0, 500));
        assert!(driven.answer::<FetchRequest>(waits, 11).is_none());
        let refused = happens(&mut driven, Fault::RefuseFetch(refusal("orders", "KAFKA_STORAGE_ERROR", 1)));
        driven.pass(Duration::ZERO);
        let answer = driven.answer::<FetchRequest>(waits, 11).expect("an error");
        assert_eq!(answer.responses[0].partitions[0].error_code, ResponseError::KafkaStorageError.code());
        assert!(refused.is_done());
    }

    #[test]
    fn commits_of_a_group_are_refused() {
        let mut driven = Driven::new(1);
        let partition = Committed::default().with_partition_index(0).with_committed_offset(1);
        let topic = OffsetCommitRequestTopic::default().with_name(orders()).with_partitions(vec![partition]);
        let request = OffsetCommitRequest::default()
            .with_group_id(GroupId(StrBytes::from_static_str("g")))
            .with_generation_id_or_member_epoch(-1)
            .with_topics(vec![topic]);
        let committed = |driven: &mut Driven| driven.ask(7, &request).topics[0].partitions[0].error_code;
        let refused = happens(&mut driven, Fault::RefuseCommit(refusal("g", "REQUEST_TIMED_OUT", 1)));
        assert_eq!(committed(&mut driven), ResponseError::RequestTimedOut.code());
        assert!(refused.is_done());
        assert_eq!(committed(&mut driven), 0);
    }

    #[test]
    fn a_transaction_that_is_to_be_committed_is_aborted_and_its_producer_fenced() {
        let mut driven = Driven::new(1);
        let id = TransactionalId(StrBytes::from_static_str("shop.1"));
        let init = InitProducerIdRequest::default()
            .with_transactional_id(Some(id.clone()))
            .with_transaction_timeout_ms(60_000);
        let producer = driven.ask(4, &init);
        let topic = AddPartitionsToTxnTopic::default().with_name(orders()).with_partitions(vec![0]);
        let add = AddPartitionsToTxnRequest::default()
            .with_v3_and_below_transactional_id(id.clone())
            .with_v3_and_below_producer_id(producer.producer_id)
            .with_v3_and_below_producer_epoch(producer.producer_epoch)
            .with_v3_and_below_topics(vec![topic]);
        driven.ask(3, &add);
        let other = happens(&mut driven, Fault::AbortTransaction("shop".to_owned()));
        let aborted = happens(&mut driven, Fault::AbortTransaction("shop.".to_owned()));
        let end = EndTxnRequest::default()
            .with_transactional_id(id)
            .with_producer_id(producer.producer_id)
            .with_producer_epoch(producer.producer_epoch)
            .with_committed(true);
        assert_eq!(driven.ask(3, &end).error_code, ResponseError::ProducerFenced.code());
        assert!(aborted.is_done() && !other.is_done());
        let marker = driven.ask(11, &fetch_from(0, 0)).responses[0].partitions[0].records.clone().expect("records");
        assert_eq!(messages(&marker), [(0, None)]);
    }

    #[test]
    fn a_truncated_log_has_a_new_leader_epoch() {
        let mut driven = Driven::new(1);
        (0..3).for_each(|_| assert_eq!(produced(&mut driven), 0));
        assert!(happens(&mut driven, Fault::Truncate(("orders".to_owned(), 0), 1)).is_done());
        let partition = driven.cluster.topics.partition("orders", 0).expect("it exists");
        assert_eq!((partition.log.end(), partition.leader_epoch), (1, 1));
        assert_eq!(produced(&mut driven), 0);
    }
}
