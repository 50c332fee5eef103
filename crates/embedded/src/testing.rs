//! A client without a socket, for the tests of this crate: encodes requests, and decodes the answers that the cluster
//! puts out.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use bytes::{Buf, Bytes, BytesMut};
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_protocol::messages::{FetchRequest, RequestHeader, ResponseHeader, TopicName};
use kafka_protocol::protocol::{Decodable, Encodable, HeaderVersion, Request, StrBytes};
use kafka_protocol::records::{
    Compression, Record, RecordBatchDecoder, RecordBatchEncoder, RecordEncodeOptions, TimestampType,
};

use crate::cluster::{Cluster, Moment, Outgoing};
use crate::requests::{self, Origin};

/// A cluster at a time that only the test changes.
pub(crate) struct Driven {
    pub cluster: Cluster,
    tickets: u64,
    answers: BTreeMap<u64, Outgoing>,
}

impl Driven {
    /// Makes a cluster of that many brokers, with a topic `orders` of two partitions.
    pub fn new(brokers: u16) -> Self {
        let now = Moment { at: Instant::now(), wall_ms: 1_700_000_000_000 };
        let ports: Vec<u16> = (0..brokers).map(|index| 9000 + index).collect();
        let mut cluster = Cluster::new(&ports, now);
        let replicas = cluster.spread(0, 2, 1);
        cluster.topics.create("orders", replicas, BTreeMap::new());
        Self { cluster, tickets: 0, answers: BTreeMap::new() }
    }

    /// Sends a request to broker 1 and returns its number.
    pub fn send<Q: Request>(&mut self, version: i16, request: &Q) -> u64 {
        self.send_to(1, version, request)
    }

    /// Sends a request to a broker and returns its number.
    pub fn send_to<Q: Request>(&mut self, broker: i32, version: i16, request: &Q) -> u64 {
        self.tickets += 1;
        let origin = Origin { ticket: self.tickets, broker, host: "127.0.0.1" };
        requests::handle(&mut self.cluster, &origin, encoded(version, request));
        self.gather();
        self.tickets
    }

    /// Lets time pass.
    pub fn pass(&mut self, time: Duration) {
        let Moment { at, wall_ms } = self.cluster.now;
        self.cluster.advance(Moment { at: at + time, wall_ms: wall_ms + time.as_millis() as i64 });
        self.gather();
    }

    /// Takes the answer to a request, if there is one by now.
    pub fn answer<Q: Request>(&mut self, ticket: u64, version: i16) -> Option<Q::Response> {
        match self.answers.remove(&ticket)? {
            Outgoing::Answer(mut bytes) => Some(decoded::<Q>(&mut bytes, version)),
            other => panic!("no answer but {other:?}"),
        }
    }

    /// Sends a request to broker 1 and returns its answer, which must come at once.
    pub fn ask<Q: Request>(&mut self, version: i16, request: &Q) -> Q::Response {
        let ticket = self.send(version, request);
        self.answer::<Q>(ticket, version).expect("an answer at once")
    }

    /// Returns whether the connection of a request was closed.
    pub fn hung_up(&mut self, ticket: u64) -> bool {
        matches!(self.answers.remove(&ticket), Some(Outgoing::HangUp))
    }

    fn gather(&mut self) {
        let outgoing = self.cluster.take_outgoing().into_iter();
        self.answers.extend(outgoing.filter(|(_, each)| !matches!(each, Outgoing::OnItsWay)));
    }
}

/// Encodes a request with its header, as a client does.
pub(crate) fn encoded<Q: Request>(version: i16, request: &Q) -> Bytes {
    let header = RequestHeader::default()
        .with_request_api_key(Q::KEY)
        .with_request_api_version(version)
        .with_correlation_id(7)
        .with_client_id(Some(StrBytes::from_static_str("tests")));
    let mut bytes = BytesMut::new();
    header.encode(&mut bytes, Q::header_version(version)).expect("a header");
    request.encode(&mut bytes, version).expect("a request of this version");
    bytes.freeze()
}

/// Makes a fetch of partition 0 of `orders` from an offset.
pub(crate) fn fetch_request(offset: i64, max_wait_ms: i32) -> FetchRequest {
    let partition = FetchPartition::default()
        .with_partition(0)
        .with_fetch_offset(offset)
        .with_current_leader_epoch(-1)
        .with_partition_max_bytes(1_000_000);
    let name = TopicName(StrBytes::from_static_str("orders"));
    let topic = FetchTopic::default().with_topic(name).with_partitions(vec![partition]);
    FetchRequest::default()
        .with_max_wait_ms(max_wait_ms)
        .with_min_bytes(1)
        .with_max_bytes(1_000_000)
        .with_topics(vec![topic])
}

fn decoded<Q: Request>(bytes: &mut Bytes, version: i16) -> Q::Response {
    assert_eq!(bytes.get_u32() as usize, bytes.len());
    let header = ResponseHeader::decode(bytes, Q::Response::header_version(version)).expect("a header");
    assert_eq!(header.correlation_id, 7);
    let response = Q::Response::decode(bytes, version).expect("an answer of this version");
    assert!(bytes.is_empty(), "bytes are left behind the answer");
    response
}

/// A message that a test produces: its value and its timestamp.
pub(crate) type Written = (&'static str, i64);

/// The producer of a batch: its id, its epoch, and the sequence of the batch's first message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct By {
    pub id: i64,
    pub epoch: i16,
    pub sequence: i32,
    pub in_transaction: bool,
}

/// A producer that does not number its batches.
pub(crate) const NOT_NUMBERED: By = By { id: -1, epoch: -1, sequence: -1, in_transaction: false };

/// Encodes a batch of messages without keys as a client does.
pub(crate) fn batch(by: By, messages: &[Written]) -> Bytes {
    batch_with_key(by, None, messages)
}

/// Encodes a batch whose messages have this key.
pub(crate) fn batch_with_key(by: By, key: Option<&'static str>, messages: &[Written]) -> Bytes {
    let key = key.map(|key| Bytes::from_static(key.as_bytes()));
    let numbered = messages.iter().zip(0..);
    let records: Vec<Record> =
        numbered.map(|(message, at)| Record { key: key.clone(), ..record(by, *message, at) }).collect();
    let options = RecordEncodeOptions { version: 2, compression: Compression::None };
    let mut bytes = BytesMut::new();
    RecordBatchEncoder::encode(&mut bytes, &records, &options).expect("a batch");
    bytes.freeze()
}

fn record(by: By, (value, timestamp): Written, at: i32) -> Record {
    Record {
        transactional: by.in_transaction,
        control: false,
        delete_horizon: false,
        partition_leader_epoch: -1,
        producer_id: by.id,
        producer_epoch: by.epoch,
        timestamp_type: TimestampType::Creation,
        offset: i64::from(at),
        // The encoder makes one batch of records whose sequences follow each other.
        sequence: by.sequence + at,
        timestamp,
        key: None,
        value: Some(Bytes::from_static(value.as_bytes())),
        headers: kafka_protocol::indexmap::IndexMap::new(),
    }
}

/// Returns the values and the offsets of the messages in what was fetched; a marker of a transaction has no value.
pub(crate) fn messages(records: &Bytes) -> Vec<(i64, Option<String>)> {
    let mut left = records.clone();
    let sets = RecordBatchDecoder::decode_all(&mut left).expect("whole batches");
    let text = |record: Record| {
        let value = record.value.filter(|_| !record.control);
        (record.offset, value.map(|value| String::from_utf8_lossy(&value).into_owned()))
    };
    sets.into_iter().flat_map(|set| set.records).map(text).collect()
}
