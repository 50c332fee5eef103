//! The cluster's description of its topics.

use std::time::Duration;

use awoke_wake::simulation;

use super::cluster::{Cluster, Reply};
use super::{Client, Code, Metadata, PartitionInfo, TopicInfo};
use crate::clock::Deadline;
use crate::{Error, Result};

impl Cluster {
    /// The broker that leads all partitions.
    pub const LEADER: i32 = 1;
}

impl Client {
    /// Describes one topic. Blocks the present task; without an answer, until the deadline.
    ///
    /// # Errors
    /// [`Error::Kafka`]: the broker does not answer.
    pub fn metadata(&self, topic: Option<&str>, deadline: &Deadline) -> Result<Metadata> {
        if self.cluster.reply() != Reply::Done {
            simulation::pass_time(deadline.remaining().unwrap_or(Duration::from_secs(1)));
            return Err(Error::kafka("describe a topic", Code::TIMED_OUT, ""));
        }
        simulation::pause();
        let (name, leader) = (topic.unwrap_or_default(), Cluster::LEADER);
        let state = self.cluster.state();
        let partitions = state.logs.keys().filter(|at| *at.topic == *name).map(|at| PartitionInfo {
            partition: at.partition,
            leader,
            replicas: vec![leader],
            in_sync: vec![leader],
        });
        let topic = TopicInfo { name: name.to_owned(), error: None, partitions: partitions.collect() };
        Ok(Metadata { brokers: Vec::new(), topics: vec![topic] })
    }
}
