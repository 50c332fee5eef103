//! The brokers without their sockets: a request and the time go in, answers come out, some of them later.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::marker::PhantomData;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use kafka_protocol::ResponseError;
use kafka_protocol::messages::{ApiKey, ResponseHeader};
use kafka_protocol::protocol::{Encodable, HeaderVersion};

use crate::faults::Faults;
use crate::fetch;
use crate::groups::{GroupTimer, Groups};
use crate::topics::{Partition, Topics};
use crate::transactions::{self, Transactions};

/// The host that brokers tell their clients.
pub(crate) const HOST: &str = "127.0.0.1";

/// The time of a request, by both clocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    pub at: Instant,
    /// Milliseconds since 1970.
    pub wall_ms: i64,
}

/// A broker, as clients see it.
#[derive(Debug)]
pub(crate) struct Broker {
    pub id: i32,
    pub port: u16,
    pub is_up: bool,
    /// The delay of its answers.
    pub round_trip: Duration,
}

/// The request that is being answered, and where it came from.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    /// The request's number in this cluster.
    pub ticket: u64,
    /// The broker that it was sent to.
    pub broker: i32,
    pub key: i16,
    pub version: i16,
    pub correlation: i32,
    pub client_id: String,
    /// The address of the client.
    pub host: String,
}

impl Caller {
    /// Returns what answers this request later.
    pub fn reply<A>(&self) -> Reply<A> {
        let Self { ticket, broker, key, version, correlation, .. } = *self;
        Reply { ticket, broker, key, version, correlation, kind: PhantomData }
    }
}

/// An answer that is still owed.
#[derive(Debug)]
pub(crate) struct Reply<A> {
    ticket: u64,
    broker: i32,
    key: i16,
    pub version: i16,
    correlation: i32,
    kind: PhantomData<fn(A)>,
}

/// The answer to a request, or its absence.
pub(crate) enum Answer<A> {
    Now(A),
    /// The [`Reply`] was kept and is used when something happens.
    Later,
    /// The client expects no answer.
    Never,
    /// The connection is closed instead.
    HangUp,
}

/// An outgoing answer, or its absence, for the connection that asked.
#[derive(Debug)]
pub(crate) enum Outgoing {
    Answer(Bytes),
    /// The request has no answer, and the next may follow.
    Nothing,
    /// The answer leaves later, and the next request may follow.
    OnItsWay,
    HangUp,
}

/// Something that is due at an instant. What it was for may be over by then, so each looks first.
#[derive(Debug)]
pub(crate) enum Timer {
    /// A fetch has waited long enough.
    Fetch(u64),
    /// An answer leaves a slow broker.
    Send(u64, Bytes),
    /// The transaction of an id has taken its time-out.
    Transaction(String, u64),
    /// Something of a group.
    Group(GroupTimer),
}

/// All brokers of a cluster and what they share.
pub(crate) struct Cluster {
    pub id: String,
    pub brokers: Vec<Broker>,
    pub topics: Topics,
    pub fetches: fetch::Waiting,
    pub groups: Groups,
    /// The settings of brokers that were set.
    pub settings: BTreeMap<String, String>,
    pub transactions: Transactions,
    pub now: Moment,
    pub faults: Faults,
    timers: BTreeMap<(Instant, u64), Timer>,
    timers_set: u64,
    outbox: Vec<(u64, Outgoing)>,
}

impl Cluster {
    /// Makes a cluster of the brokers that listen on these ports. Their ids count from 1.
    pub fn new(ports: &[u16], now: Moment) -> Self {
        let broker = |(index, port): (usize, &u16)| Broker {
            id: index as i32 + 1,
            port: *port,
            is_up: true,
            round_trip: Duration::ZERO,
        };
        Self {
            id: format!("embedded-{:016x}", RandomState::new().hash_one(0)),
            brokers: ports.iter().enumerate().map(broker).collect(),
            topics: Topics::new(),
            fetches: fetch::Waiting::default(),
            groups: Groups::default(),
            settings: BTreeMap::new(),
            transactions: Transactions::default(),
            now,
            faults: Faults::default(),
            timers: BTreeMap::new(),
            timers_set: 0,
            outbox: Vec::new(),
        }
    }

    /// Returns when the next thing is due.
    pub fn due(&self) -> Option<Instant> {
        self.timers.first_key_value().map(|((at, _), _)| *at)
    }

    /// Does what is due by now.
    pub fn advance(&mut self, now: Moment) {
        self.now = now;
        while let Some(entry) = self.timers.first_entry().filter(|entry| entry.key().0 <= now.at) {
            match entry.remove() {
                Timer::Fetch(id) => fetch::end(self, id),
                Timer::Transaction(id, serial) => transactions::time_out(self, &id, serial),
                Timer::Group(timer) => timer.fire(self),
                Timer::Send(ticket, answer) => self.outbox.push((ticket, Outgoing::Answer(answer))),
            }
        }
    }

    /// Takes what is to be sent, by the numbers of the requests.
    pub fn take_outgoing(&mut self) -> Vec<(u64, Outgoing)> {
        std::mem::take(&mut self.outbox)
    }

    /// Has something done at an instant.
    pub fn remind(&mut self, at: Instant, timer: Timer) {
        self.timers_set += 1;
        self.timers.insert((at, self.timers_set), timer);
    }

    /// Answers a request that was kept.
    pub fn answer<A: Encodable + HeaderVersion>(&mut self, reply: &Reply<A>, answer: &A) {
        let header = ResponseHeader::default().with_correlation_id(reply.correlation);
        let mut bytes = BytesMut::with_capacity(64);
        bytes.extend_from_slice(&[0; 4]);
        let encoded = header
            .encode(&mut bytes, A::header_version(reply.version))
            .and_then(|()| answer.encode(&mut bytes, reply.version));
        if let Err(error) = encoded {
            // A defect of this crate: shown, as a test would otherwise only see a broken connection.
            let kind = ApiKey::try_from(reply.key);
            eprintln!(
                "awoke: an embedded broker can't write its answer to {kind:?} version {}: {error}",
                reply.version
            );
            return self.outbox.push((reply.ticket, Outgoing::HangUp));
        }
        let length = (bytes.len() - 4) as u32;
        bytes[..4].copy_from_slice(&length.to_be_bytes());
        let delay = self.broker(reply.broker).map_or(Duration::ZERO, |broker| broker.round_trip);
        if delay.is_zero() {
            self.outbox.push((reply.ticket, Outgoing::Answer(bytes.freeze())));
        } else {
            self.outbox.push((reply.ticket, Outgoing::OnItsWay));
            self.remind(self.now.at + delay, Timer::Send(reply.ticket, bytes.freeze()));
        }
    }

    /// Settles a request by its answer.
    pub fn settle<A: Encodable + HeaderVersion>(&mut self, caller: &Caller, answer: &Answer<A>) {
        match answer {
            Answer::Now(answer) => self.answer(&caller.reply(), answer),
            Answer::Later => {}
            Answer::Never => self.outbox.push((caller.ticket, Outgoing::Nothing)),
            Answer::HangUp => self.hang_up(caller),
        }
    }

    /// Closes the connection of a request.
    pub fn hang_up(&mut self, caller: &Caller) {
        self.outbox.push((caller.ticket, Outgoing::HangUp));
    }

    /// Returns a broker by its id.
    pub fn broker(&self, id: i32) -> Option<&Broker> {
        self.brokers.iter().find(|broker| broker.id == id)
    }

    /// Returns the ids of the brokers that are up.
    pub fn up(&self) -> Vec<i32> {
        self.brokers.iter().filter(|broker| broker.is_up).map(|broker| broker.id).collect()
    }

    /// Stops a broker or starts it again; its partitions and its groups move to others.
    pub fn set_up(&mut self, id: i32, is_up: bool) {
        let Some(broker) = self.brokers.iter_mut().find(|broker| broker.id == id) else { return };
        broker.is_up = is_up;
        let up = self.up();
        self.topics.elect(|broker| up.contains(&broker));
    }

    /// Returns the broker that coordinates a group or a transactional id: always the same while it is up.
    pub fn coordinator(&self, key: &str) -> Option<i32> {
        let up = self.up();
        let sum = key.bytes().fold(0_usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(usize::from(byte)));
        up.get(sum.checked_rem(up.len())?).copied()
    }

    /// Checks that the asked broker coordinates a group or a transactional id.
    ///
    /// # Errors
    /// `NotCoordinator`.
    pub fn check_coordinator(&self, caller: &Caller, key: &str) -> Result<(), ResponseError> {
        if self.coordinator(key) == Some(caller.broker) { Ok(()) } else { Err(ResponseError::NotCoordinator) }
    }

    /// Returns a partition that the asked broker leads. A client's epoch of the leader is compared; -1 is none.
    ///
    /// # Errors
    /// `UnknownTopicOrPartition`, `NotLeaderOrFollower`, `FencedLeaderEpoch`, `UnknownLeaderEpoch`.
    pub fn led(
        &mut self,
        caller: &Caller,
        topic: &str,
        index: i32,
        epoch: i32,
    ) -> Result<&mut Partition, ResponseError> {
        let partition = self.topics.partition_mut(topic, index)?;
        if partition.leader != Some(caller.broker) {
            Err(ResponseError::NotLeaderOrFollower)
        } else if epoch >= 0 && epoch < partition.leader_epoch {
            Err(ResponseError::FencedLeaderEpoch)
        } else if epoch > partition.leader_epoch {
            Err(ResponseError::UnknownLeaderEpoch)
        } else {
            Ok(partition)
        }
    }

    /// Takes the error that a test wants this request to be answered with.
    pub fn fault(&mut self, caller: &Caller) -> Option<ResponseError> {
        self.faults.of_kind(caller.key)
    }

    /// Spreads the replicas of new partitions over the brokers, the first of partition 0 on the first broker.
    pub fn spread(&self, first: usize, partitions: usize, replicas: usize) -> Vec<Vec<i32>> {
        let brokers = self.brokers.len();
        let of = |index: usize| (0..replicas).map(|each| self.brokers[(index + each) % brokers].id).collect();
        (first..first + partitions).map(of).collect()
    }
}
