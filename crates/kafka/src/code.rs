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
    /// No such topic or partition.
    pub const UNKNOWN_TOPIC: Self = Self(3);
    /// The client may not do this with the topic.
    pub const TOPIC_AUTHORIZATION: Self = Self(29);
    /// There is no offset to begin at, and `auto.offset.reset` is `error`.
    pub const AUTO_OFFSET_RESET: Self = Self(-140);

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
    ///
    /// The list is that of `awoke.errors.PERMANENT_CODES`.
    pub const fn is_refused_for_good(self) -> bool {
        matches!(self.0, 3 | 10 | 17 | 18 | 29 | 44 | 87 | -188 | -190 | -186)
    }

    /// Returns whether another producer of the same transactional id has taken over, or the broker thinks so.
    pub const fn is_fenced(self) -> bool {
        matches!(self.0, -144 | 47 | 90) // _FENCED, INVALID_PRODUCER_EPOCH, PRODUCER_FENCED
    }

    /// Returns whether the brokers do not allow it: the topic, the group, the cluster, the transactional id.
    pub const fn is_denied(self) -> bool {
        matches!(self.0, 29 | 30 | 31 | 53)
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
    fn a_request_to_a_broker_that_left_is_made_again() {
        let left = (-200..0).map(Code).find(|code| code.name() == "_DESTROY_BROKER");
        assert!(left.is_some_and(Code::is_retriable));
    }
}
