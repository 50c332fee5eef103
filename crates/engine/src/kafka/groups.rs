//! Whether a group has members that work on a topic, asked without waiting for the answer.

use std::ffi::c_char;
use std::sync::Arc;
use std::time::Duration;

use rdkafka_sys as ffi;

use super::{Client, Code, Queue, QueueEvent, TopicPartitionList, c_string};
use crate::Result;

/// What the brokers say of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Presence {
    /// It has members that work on the topic, or are about to.
    Present,
    /// Nobody works on it.
    Absent,
    /// They did not say, for this reason.
    Unknown(String),
}

const GROUP_ID_NOT_FOUND: Code = Code(69);

impl Client {
    /// Asks about a group; the answer comes to the queue. Does not block.
    pub(crate) fn ask_for_group(&self, group: &str, queue: &Queue, timeout: Duration) -> Result<()> {
        self.check_process()?;
        let name = c_string("a group", group)?;
        let timeout_ms = i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX);
        let mut reason = [0 as c_char; 128];
        let mut names = [name.as_ptr()];
        // SAFETY: handle, queue and options are alive; librdkafka copies the name.
        unsafe {
            let operation = ffi::rd_kafka_admin_op_t::RD_KAFKA_ADMIN_OP_DESCRIBECONSUMERGROUPS;
            let options = ffi::rd_kafka_AdminOptions_new(self.handle(), operation);
            ffi::rd_kafka_AdminOptions_set_request_timeout(options, timeout_ms, reason.as_mut_ptr(), reason.len());
            ffi::rd_kafka_DescribeConsumerGroups(self.handle(), names.as_mut_ptr(), 1, options, queue.as_ptr());
            ffi::rd_kafka_AdminOptions_destroy(options);
        }
        Ok(())
    }
}

impl Presence {
    /// Reads the answer to `ask_for_group`: who works on this topic.
    pub(crate) fn of(event: &QueueEvent, topic: &Arc<str>) -> Self {
        if event.code() != Code::NONE {
            return Self::Unknown(event.error_text());
        }
        // SAFETY: the event is an answer of this kind, and what it holds lives as long.
        unsafe {
            let result = ffi::rd_kafka_event_DescribeConsumerGroups_result(event.as_ptr());
            let mut count = 0;
            let groups = if result.is_null() {
                std::ptr::null_mut()
            } else {
                ffi::rd_kafka_DescribeConsumerGroups_result_groups(result, &raw mut count)
            };
            if groups.is_null() || count == 0 {
                return Self::Unknown("no answer".to_owned());
            }
            let group = *groups;
            let error = ffi::rd_kafka_ConsumerGroupDescription_error(group);
            let code = if error.is_null() { Code::NONE } else { Code::of(ffi::rd_kafka_error_code(error)) };
            if code == GROUP_ID_NOT_FOUND {
                return Self::Absent;
            }
            if code != Code::NONE {
                return Self::Unknown(code.name());
            }
            let members = ffi::rd_kafka_ConsumerGroupDescription_member_count(group);
            let is_stable = ffi::rd_kafka_ConsumerGroupDescription_state(group)
                == ffi::rd_kafka_consumer_group_state_t::RD_KAFKA_CONSUMER_GROUP_STATE_STABLE;
            let works_on_it = (0..members).any(|member| {
                let member = ffi::rd_kafka_ConsumerGroupDescription_member(group, member);
                let assignment = ffi::rd_kafka_MemberDescription_assignment(member);
                let partitions = ffi::rd_kafka_MemberAssignment_partitions(assignment);
                let entries = TopicPartitionList::copy_of(partitions).entries();
                entries.iter().any(|(at, _, _)| at.topic == *topic)
            });
            if members == 0 || (is_stable && !works_on_it) { Self::Absent } else { Self::Present }
        }
    }
}
