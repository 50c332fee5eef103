//! Looks up whether a group has members, which partitions its own members have, and topics, without waiting for the
//! answer.
//!
//! To describe a group ends the process when the connection to its coordinator breaks meanwhile (librdkafka 2.12.1;
//! pull request 5397 is open), where patch 0002 is not linked. So a caller lists all groups, and a member is told of
//! its own group on Linux only.

use std::ffi::{CString, c_char};
use std::time::Duration;

use super::{
    Client, Code, DescribedTopic, Owner, Position, Presence, Queue, QueueEvent, TopicId, TopicPartition,
    TopicPartitionList, c_string, ffi, text_of,
};
use crate::Result;

type Operation = ffi::rd_kafka_admin_op_t;

unsafe extern "C" {
    /// Patch 0015.
    fn awoke_join_again(rk: *mut ffi::rd_kafka_t);
}

/// The options of a request; freed when dropped.
struct Options(*mut ffi::rd_kafka_AdminOptions_t);

impl Options {
    fn new(client: &Client, operation: Operation, timeout: Duration) -> Self {
        let timeout_ms = i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX);
        let mut reason = [0 as c_char; 128];
        // SAFETY: the handle is alive; the options are ours.
        unsafe {
            let options = ffi::rd_kafka_AdminOptions_new(client.handle(), operation);
            ffi::rd_kafka_AdminOptions_set_request_timeout(options, timeout_ms, reason.as_mut_ptr(), reason.len());
            Self(options)
        }
    }
}

impl Drop for Options {
    fn drop(&mut self) {
        // SAFETY: the options are ours.
        unsafe { ffi::rd_kafka_AdminOptions_destroy(self.0) };
    }
}

impl Client {
    /// Asks for all groups; the answer comes to the queue. Does not block.
    pub fn ask_for_groups(&self, queue: &Queue, timeout: Duration) -> Result<()> {
        self.check_process()?;
        let options = Options::new(self, Operation::RD_KAFKA_ADMIN_OP_LISTCONSUMERGROUPS, timeout);
        // SAFETY: handle, queue and options are alive.
        unsafe { ffi::rd_kafka_ListConsumerGroups(self.handle(), options.0, queue.as_ptr()) };
        Ok(())
    }

    /// Asks for the partitions that the members of the member's own group have; the answer comes to the queue, on Linux
    /// only. Does not block.
    pub fn ask_for_owned(&self, queue: &Queue, timeout: Duration) -> Result<()> {
        self.check_process()?;
        if cfg!(not(target_os = "linux")) {
            return Ok(());
        }
        let options = Options::new(self, Operation::RD_KAFKA_ADMIN_OP_DESCRIBECONSUMERGROUPS, timeout);
        let group = c_string("a group", &self.name())?;
        let mut groups = [group.as_ptr()];
        // SAFETY: handle, queue and options are alive; librdkafka copies the name.
        unsafe {
            ffi::rd_kafka_DescribeConsumerGroups(self.handle(), groups.as_mut_ptr(), 1, options.0, queue.as_ptr());
        }
        Ok(())
    }

    /// Asks for topics; the answer comes to the queue. Does not block.
    pub fn ask_for_topics(&self, topics: &[String], queue: &Queue, timeout: Duration) -> Result<()> {
        self.check_process()?;
        let options = Options::new(self, Operation::RD_KAFKA_ADMIN_OP_DESCRIBETOPICS, timeout);
        let names = topics.iter().map(|topic| c_string("a topic", topic)).collect::<Result<Vec<CString>>>()?;
        let mut pointers: Vec<_> = names.iter().map(|name| name.as_ptr()).collect();
        // SAFETY: handle, queue and options are alive; librdkafka copies the names; the collection is ours.
        unsafe {
            let collection = ffi::rd_kafka_TopicCollection_of_topic_names(pointers.as_mut_ptr(), pointers.len());
            ffi::rd_kafka_DescribeTopics(self.handle(), collection, options.0, queue.as_ptr());
            ffi::rd_kafka_TopicCollection_destroy(collection);
        }
        Ok(())
    }

    /// Asks where partitions end; the answer comes to the queue. Does not block.
    pub fn ask_for_ends(&self, partitions: &[TopicPartition], queue: &Queue, timeout: Duration) -> Result<()> {
        self.check_process()?;
        let options = Options::new(self, Operation::RD_KAFKA_ADMIN_OP_LISTOFFSETS, timeout);
        let latest = ffi::rd_kafka_OffsetSpec_t::RD_KAFKA_OFFSET_SPEC_LATEST as i64;
        let mut list = TopicPartitionList::new();
        for at in partitions {
            list.add(at, Some(Position { offset: latest, leader_epoch: -1 }))?;
        }
        // SAFETY: handle, list, queue and options are alive; librdkafka copies the list.
        unsafe { ffi::rd_kafka_ListOffsets(self.handle(), list.as_ptr(), options.0, queue.as_ptr()) };
        Ok(())
    }

    /// Has a member of a cooperative group join it again, with its partitions: the group divides them anew. Does not
    /// block, and does nothing in a rebalance.
    pub fn join_again(&self) {
        // SAFETY: the handle is alive.
        unsafe { awoke_join_again(self.handle()) };
    }
}

impl QueueEvent {
    /// Reads the answer to `ask_for_groups`.
    pub fn presence_of(&self, group: &str) -> Presence {
        if self.code() != Code::NONE {
            return Presence::Unknown;
        }
        // SAFETY: the event is an answer of this kind; each array has the length that was written, and lives as long.
        unsafe {
            let result = ffi::rd_kafka_event_ListConsumerGroups_result(self.as_ptr());
            if result.is_null() {
                return Presence::Unknown;
            }
            let (mut count, mut errors) = (0, 0);
            let listings = ffi::rd_kafka_ListConsumerGroups_result_valid(result, &raw mut count);
            ffi::rd_kafka_ListConsumerGroups_result_errors(result, &raw mut errors);
            for index in 0..count {
                let listing = *listings.add(index);
                if text_of(ffi::rd_kafka_ConsumerGroupListing_group_id(listing)) == group {
                    let state = ffi::rd_kafka_ConsumerGroupListing_state(listing);
                    let without_members = [
                        ffi::rd_kafka_consumer_group_state_t::RD_KAFKA_CONSUMER_GROUP_STATE_EMPTY,
                        ffi::rd_kafka_consumer_group_state_t::RD_KAFKA_CONSUMER_GROUP_STATE_DEAD,
                    ];
                    let is_empty = without_members.iter().any(|each| *each as i32 == state);
                    return if is_empty { Presence::Empty } else { Presence::Present };
                }
            }
            if errors > 0 { Presence::Unknown } else { Presence::Unlisted }
        }
    }

    /// Reads the answer to `ask_for_owned`; `None` in a rebalance, or where it is not known.
    pub fn owned(&self) -> Option<Vec<Owner>> {
        if self.code() != Code::NONE {
            return None;
        }
        // SAFETY: the event is an answer of this kind; each array has the length that was written, and lives as long.
        unsafe {
            let result = ffi::rd_kafka_event_DescribeConsumerGroups_result(self.as_ptr());
            if result.is_null() {
                return None;
            }
            let mut count = 0;
            let groups = ffi::rd_kafka_DescribeConsumerGroups_result_groups(result, &raw mut count);
            let group = (count > 0).then(|| *groups)?;
            let error = ffi::rd_kafka_ConsumerGroupDescription_error(group);
            let stable = ffi::rd_kafka_consumer_group_state_t::RD_KAFKA_CONSUMER_GROUP_STATE_STABLE as i32;
            if (!error.is_null() && Code::of(ffi::rd_kafka_error_code(error)) != Code::NONE)
                || ffi::rd_kafka_ConsumerGroupDescription_state(group) != stable
            {
                return None;
            }
            let members = 0..ffi::rd_kafka_ConsumerGroupDescription_member_count(group);
            let of_member = |index| {
                let member = ffi::rd_kafka_ConsumerGroupDescription_member(group, index);
                let assignment = ffi::rd_kafka_MemberDescription_assignment(member);
                let list = TopicPartitionList::copy_of(ffi::rd_kafka_MemberAssignment_partitions(assignment));
                let client_id = text_of(ffi::rd_kafka_MemberDescription_client_id(member));
                Owner { client_id, partitions: list.partitions() }
            };
            Some(members.map(of_member).collect())
        }
    }

    /// Reads the answer to `ask_for_topics`. Topics of which the broker does not tell are left out.
    pub fn topics(&self) -> Vec<DescribedTopic> {
        if self.code() != Code::NONE {
            return Vec::new();
        }
        // SAFETY: the event is an answer of this kind; each array has the length that was written, and lives as long.
        unsafe {
            let result = ffi::rd_kafka_event_DescribeTopics_result(self.as_ptr());
            if result.is_null() {
                return Vec::new();
            }
            let mut count = 0;
            let topics = ffi::rd_kafka_DescribeTopics_result_topics(result, &raw mut count);
            (0..count).filter_map(|index| described(*topics.add(index))).collect()
        }
    }
}

impl QueueEvent {
    /// Reads the answer to `ask_for_ends`: the end of each log, and its leader epoch. Partitions of which no leader
    /// tells are left out.
    pub fn ends(&self) -> Vec<(TopicPartition, Position)> {
        if self.code() != Code::NONE {
            return Vec::new();
        }
        // SAFETY: the event is an answer of this kind; each array has the length that was written, and lives as long.
        unsafe {
            let result = ffi::rd_kafka_event_ListOffsets_result(self.as_ptr());
            if result.is_null() {
                return Vec::new();
            }
            let mut count = 0;
            let infos = ffi::rd_kafka_ListOffsets_result_infos(result, &raw mut count);
            let end_of = |index| {
                let entry = ffi::rd_kafka_ListOffsetsResultInfo_topic_partition(*infos.add(index));
                let leader_epoch = ffi::rd_kafka_topic_partition_get_leader_epoch(entry);
                let at = TopicPartition::new(text_of((*entry).topic), (*entry).partition);
                let position = Position { offset: (*entry).offset, leader_epoch };
                // Read as a number: see `ffi`.
                let code = Code((&raw const (*entry).err).cast::<i32>().read());
                (code == Code::NONE).then_some((at, position))
            };
            (0..count).filter_map(end_of).collect()
        }
    }
}

/// # Safety
/// `topic` belongs to an answer of librdkafka's that is alive.
unsafe fn described(topic: *const ffi::rd_kafka_TopicDescription_t) -> Option<DescribedTopic> {
    // SAFETY: the caller's promise.
    unsafe {
        let error = ffi::rd_kafka_TopicDescription_error(topic);
        if !error.is_null() && Code::of(ffi::rd_kafka_error_code(error)) != Code::NONE {
            return None;
        }
        let mut count = 0;
        ffi::rd_kafka_TopicDescription_partitions(topic, &raw mut count);
        let id = ffi::rd_kafka_TopicDescription_topic_id(topic);
        let is_known = !id.is_null()
            && (ffi::rd_kafka_Uuid_most_significant_bits(id), ffi::rd_kafka_Uuid_least_significant_bits(id)) != (0, 0);
        Some(DescribedTopic {
            name: text_of(ffi::rd_kafka_TopicDescription_name(topic)),
            id: is_known.then(|| TopicId(text_of(ffi::rd_kafka_Uuid_base64str(id)).into())),
            partitions: i32::try_from(count).unwrap_or(i32::MAX),
        })
    }
}
