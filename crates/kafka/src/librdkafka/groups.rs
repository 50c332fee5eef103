//! Looks up whether a group has members, without waiting for the answer.
//!
//! All groups are listed: to describe one would be less, but librdkafka (2.12.1; pull request 5397 is open) ends the
//! process when the connection to the group's coordinator breaks while it is asked.

use std::ffi::c_char;
use std::time::Duration;

use super::{Client, Code, Presence, Queue, QueueEvent, ffi, text_of};
use crate::Result;

impl Client {
    /// Asks for all groups; the answer comes to the queue. Does not block.
    pub fn ask_for_groups(&self, queue: &Queue, timeout: Duration) -> Result<()> {
        self.check_process()?;
        let timeout_ms = i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX);
        let mut reason = [0 as c_char; 128];
        // SAFETY: handle, queue and options are alive.
        unsafe {
            let operation = ffi::rd_kafka_admin_op_t::RD_KAFKA_ADMIN_OP_LISTCONSUMERGROUPS;
            let options = ffi::rd_kafka_AdminOptions_new(self.handle(), operation);
            ffi::rd_kafka_AdminOptions_set_request_timeout(options, timeout_ms, reason.as_mut_ptr(), reason.len());
            ffi::rd_kafka_ListConsumerGroups(self.handle(), options, queue.as_ptr());
            ffi::rd_kafka_AdminOptions_destroy(options);
        }
        Ok(())
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
}
