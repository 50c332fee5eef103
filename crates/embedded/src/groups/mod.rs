//! temporary
use kafka_protocol::ResponseError;
use std::collections::HashMap;
pub(crate) mod assignors;
pub(crate) mod consumer;
pub(crate) mod describe_consumer;
pub(crate) mod heartbeat;
pub(crate) mod reconciliation;
use consumer::ConsumerGroup;
#[derive(Debug)]
pub(crate) enum GroupTimer {
    ConsumerSession { group: String, member: String },
    Revocation { group: String, member: String, epoch: i32 },
}
#[derive(Default)]
pub(crate) struct Groups {
    all: HashMap<String, ConsumerGroup>,
}
impl Groups {
    pub fn consumer(&self, name: &str) -> Option<&ConsumerGroup> {
        self.all.get(name)
    }
    pub fn consumer_mut(&mut self, name: &str, creates: bool) -> Result<&mut ConsumerGroup, ResponseError> {
        if creates {
            Ok(self.all.entry(name.to_owned()).or_default())
        } else {
            self.all.get_mut(name).ok_or(ResponseError::GroupIdNotFound)
        }
    }
}
