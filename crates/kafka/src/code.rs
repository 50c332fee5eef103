//! librdkafka's error codes as a number: brokers newer than our headers may send codes that no enum of ours knows.

/// An error code of librdkafka (negative) or of the Kafka protocol (positive); 0 is no error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Code(pub i32);

impl Code {
    /// No error.
    pub const NONE: Self = Self(0);
    /// The broker can't be reached, or closed the connection.
    pub const TRANSPORT: Self = Self(-195);
    /// No message was acknowledged within `delivery.timeout.ms`.
    pub const MESSAGE_TIMED_OUT: Self = Self(-192);
    /// The client, or what a record waited in, is being destroyed.
    pub const DESTROYED: Self = Self(-197);
    /// The topic has no such partition.
    pub const UNKNOWN_PARTITION: Self = Self(-190);
    /// A compressed batch that can't be, or must not be, decompressed.
    pub const BAD_COMPRESSION: Self = Self(-198);
    /// The end of a partition, for now.
    pub const PARTITION_EOF: Self = Self(-191);
    /// No broker can be reached.
    pub const ALL_BROKERS_DOWN: Self = Self(-187);
    /// The brokers refuse the login.
    pub const AUTHENTICATION: Self = Self(-169);
    /// TLS failed.
    pub const SSL: Self = Self(-181);
    /// Taken out of the queue before it was sent.
    pub const PURGED: Self = Self(-152);
    /// Taken back while it was on its way.
    pub const PURGED_IN_FLIGHT: Self = Self(-151);
    /// A local time-out.
    pub const TIMED_OUT: Self = Self(-185);
    /// librdkafka's own queue is full.
    pub const QUEUE_FULL: Self = Self(-184);
    /// The partitions were taken away without a revocation.
    pub const ASSIGNMENT_LOST: Self = Self(-142);
    /// A call that the client's state does not allow.
    pub const STATE: Self = Self(-172);
    /// A transaction of which a message failed.
    pub const INCONSISTENT: Self = Self(-149);
    /// The client can't go on; ask it for the cause.
    pub const FATAL: Self = Self(-150);
    /// A commit of a generation that the group has left behind; the member is about to learn the next one.
    pub const ILLEGAL_GENERATION: Self = Self(22);
    /// Nothing to commit.
    pub const NO_OFFSET: Self = Self(-168);
    /// librdkafka's "give the partitions to the consumer".
    pub const ASSIGN_PARTITIONS: Self = Self(-175);
    /// librdkafka's "take the partitions back".
    pub const REVOKE_PARTITIONS: Self = Self(-174);
    /// A report without an offset, which claims that the message is there already: it may be missing.
    pub const DUPLICATE_SEQUENCE: Self = Self(46);
    /// Larger than the broker or librdkafka allows.
    pub const MESSAGE_TOO_LARGE: Self = Self(10);
    /// The batch of the record is larger than a segment of its topic.
    pub const BATCH_TOO_LARGE: Self = Self(18);
    /// The content does not match its checksum. Brokers before 2.4 also refuse a record without a key for a compacted
    /// topic with it.
    pub const CORRUPT_MESSAGE: Self = Self(2);
    /// The topic does not take such a record.
    pub const INVALID_RECORD: Self = Self(87);
    /// A policy of the brokers forbids it.
    pub const POLICY_VIOLATION: Self = Self(44);
    /// librdkafka can't do this with such an argument.
    pub const INVALID_ARGUMENT: Self = Self(-186);
    /// No such topic or partition.
    pub const UNKNOWN_TOPIC: Self = Self(3);
    /// The same, as librdkafka says it of its own.
    pub const UNKNOWN_TOPIC_LOCALLY: Self = Self(-188);
    /// It is no name of a topic.
    pub const INVALID_TOPIC: Self = Self(17);
    /// The client may not do this with the topic.
    pub const TOPIC_AUTHORIZATION: Self = Self(29);
    /// The client may not do this with the group.
    pub const GROUP_AUTHORIZATION: Self = Self(30);
    /// The client may not do this with the cluster.
    pub const CLUSTER_AUTHORIZATION: Self = Self(31);
    /// The client may not use the transactional id.
    pub const TRANSACTIONAL_ID_AUTHORIZATION: Self = Self(53);
    /// Another producer has the transactional id: librdkafka's word for the two that follow.
    pub const FENCED: Self = Self(-144);
    /// A request of an epoch of the producer that is over.
    pub const INVALID_PRODUCER_EPOCH: Self = Self(47);
    /// Another producer has the transactional id.
    pub const PRODUCER_FENCED: Self = Self(90);
    /// The transaction is in no state for this request.
    pub const INVALID_TXN_STATE: Self = Self(48);
    /// A broker gave up on the request.
    pub const REQUEST_TIMED_OUT: Self = Self(7);
    /// The coordinator of the group, or of the transactional id, is not there.
    pub const COORDINATOR_NOT_AVAILABLE: Self = Self(15);
    /// A transaction that has not ended holds the committed offset up.
    pub const UNSTABLE_OFFSET_COMMIT: Self = Self(88);
    /// There is no offset to begin at, and `auto.offset.reset` is `error`.
    pub const AUTO_OFFSET_RESET: Self = Self(-140);

    /// A record that was refused with one of these would be refused again, however often it is sent. Python reads the
    /// list from the bridge.
    pub const REFUSED_FOR_GOOD: [Self; 10] = [
        Self::UNKNOWN_TOPIC,
        Self::MESSAGE_TOO_LARGE,
        Self::INVALID_TOPIC,
        Self::BATCH_TOO_LARGE,
        Self::TOPIC_AUTHORIZATION,
        Self::POLICY_VIOLATION,
        Self::INVALID_RECORD,
        Self::UNKNOWN_TOPIC_LOCALLY,
        Self::UNKNOWN_PARTITION,
        Self::INVALID_ARGUMENT,
    ];

    /// The brokers do not allow it. Python reads the list from the bridge.
    pub const DENIED: [Self; 4] = [
        Self::TOPIC_AUTHORIZATION,
        Self::GROUP_AUTHORIZATION,
        Self::CLUSTER_AUTHORIZATION,
        Self::TRANSACTIONAL_ID_AUTHORIZATION,
    ];

    /// The code of a librdkafka result.
    pub const fn of(code: std::ffi::c_int) -> Self {
        Self(code)
    }

    /// The constant's name without its prefix: `_TRANSPORT`, `UNKNOWN_TOPIC_OR_PART`.
    ///
    /// The number, where no client is built in.
    pub fn name(self) -> String {
        #[cfg(feature = "librdkafka")]
        return crate::librdkafka::name_of(self);
        #[cfg(not(feature = "librdkafka"))]
        self.0.to_string()
    }

    /// A sentence for people.
    pub fn description(self) -> String {
        #[cfg(feature = "librdkafka")]
        return crate::librdkafka::description_of(self);
        #[cfg(not(feature = "librdkafka"))]
        format!("error {}", self.0)
    }

    /// Returns whether the same request may work a moment later.
    ///
    /// The list is the Kafka protocol's own ("Error codes", column Retriable), with librdkafka's local codes for the
    /// same, and that of a message which is possibly not there.
    pub const fn is_retriable(self) -> bool {
        matches!(
            self.0,
            // Local ones: transport, time-outs, brokers down, queue full, coordinator, timed out in queue, and a
            // request to a broker that left the cluster meanwhile.
            -195 | -192 | -187 | -185 | -184 | -180 | -166 | -137
                | 3 | 5..=7 | 9 | 13..=16 | 19..=20 | 27 | 41 | 46 | 51 | 56 | 60 | 71 | 72 | 75 | 84 | 88 | 91
        )
    }

    /// Returns whether a record that was refused with this code would be refused again: topic or partition do not
    /// exist, too large, not allowed, invalid.
    pub fn is_refused_for_good(self) -> bool {
        Self::REFUSED_FOR_GOOD.contains(&self)
    }

    /// Returns whether another producer of the same transactional id has taken over, or the broker thinks so.
    pub const fn is_fenced(self) -> bool {
        matches!(self, Self::FENCED | Self::INVALID_PRODUCER_EPOCH | Self::PRODUCER_FENCED)
    }

    /// Returns whether the brokers do not allow it: the topic, the group, the cluster, the transactional id.
    pub fn is_denied(self) -> bool {
        Self::DENIED.contains(&self)
    }

    /// `Ok` for no error, else this code as an error of `operation`.
    pub fn check(self, operation: impl Into<String>) -> crate::Result<()> {
        if self == Self::NONE { Ok(()) } else { Err(crate::Error::kafka(operation, self, "")) }
    }
}

#[cfg(all(test, feature = "librdkafka"))]
mod tests {
    use super::*;

    #[test]
    fn codes_have_names_and_unknown_ones_do_no_harm() {
        assert_eq!(Code::TRANSPORT.name(), "_TRANSPORT");
        assert_eq!(Code::UNKNOWN_TOPIC.name(), "UNKNOWN_TOPIC_OR_PART");
        assert!(!Code(31_999).description().is_empty());
    }

    #[test]
    fn the_names_of_lists_are_those_of_librdkafka() {
        let names = |codes: &[Code]| codes.iter().map(|code| code.name()).collect::<Vec<_>>().join(" ");
        assert_eq!(
            names(&Code::REFUSED_FOR_GOOD),
            "UNKNOWN_TOPIC_OR_PART MSG_SIZE_TOO_LARGE TOPIC_EXCEPTION RECORD_LIST_TOO_LARGE TOPIC_AUTHORIZATION_FAILED \
             POLICY_VIOLATION INVALID_RECORD _UNKNOWN_TOPIC _UNKNOWN_PARTITION _INVALID_ARG"
        );
        assert_eq!(
            names(&Code::DENIED),
            "TOPIC_AUTHORIZATION_FAILED GROUP_AUTHORIZATION_FAILED CLUSTER_AUTHORIZATION_FAILED \
             TRANSACTIONAL_ID_AUTHORIZATION_FAILED"
        );
        let others = [Code::CORRUPT_MESSAGE, Code::FENCED, Code::INVALID_PRODUCER_EPOCH, Code::PRODUCER_FENCED];
        assert_eq!(names(&others), "INVALID_MSG _FENCED INVALID_PRODUCER_EPOCH PRODUCER_FENCED");
        let others = [Code::INVALID_TXN_STATE, Code::COORDINATOR_NOT_AVAILABLE, Code::UNSTABLE_OFFSET_COMMIT];
        assert_eq!(names(&others), "INVALID_TXN_STATE COORDINATOR_NOT_AVAILABLE UNSTABLE_OFFSET_COMMIT");
        assert_eq!(names(&[Code::DUPLICATE_SEQUENCE]), "DUPLICATE_SEQUENCE_NUMBER");
    }

    #[test]
    fn a_request_to_a_broker_that_left_is_made_again() {
        let left = (-200..0).map(Code).find(|code| code.name() == "_DESTROY_BROKER");
        assert!(left.is_some_and(Code::is_retriable));
    }
}
