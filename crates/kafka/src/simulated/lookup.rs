//! Questions about offsets that a consumer asks the brokers.

use std::time::Duration;

use awoke_wake::simulation;

use super::cluster::Reply;
use super::{Client, CommittedOffset, Position, TopicPartition, TopicPartitionList};
use crate::clock::Deadline;
use crate::{Code, Error, Result};

impl Client {
    /// Returns the offsets that the client's group has committed for these partitions.
    ///
    /// # Errors
    /// [`Error::Kafka`]: a transaction holds one up, or the broker does not answer.
    pub fn committed(&self, partitions: &[TopicPartition]) -> Result<Vec<Option<CommittedOffset>>> {
        self.committed_within(partitions, Duration::from_secs(10))
    }

    /// As `committed`, in this time.
    ///
    /// # Errors
    /// As of `committed`.
    pub fn committed_within(
        &self,
        partitions: &[TopicPartition],
        timeout: Duration,
    ) -> Result<Vec<Option<CommittedOffset>>> {
        let failed = |code| Error::kafka("look up committed offsets", code, "");
        if self.cluster.reply() != Reply::Done {
            simulation::pass_time(timeout);
            return Err(failed(Code::TIMED_OUT));
        }
        simulation::pause();
        let state = self.cluster.state();
        let group = self.group();
        if partitions.iter().any(|at| state.transactions.holds_up(group, at)) {
            drop(state);
            simulation::pass_time(timeout);
            return Err(failed(Code::UNSTABLE_OFFSET_COMMIT));
        }
        Ok(partitions.iter().map(|at| state.committed.get(&(group.to_owned(), at.clone())).cloned()).collect())
    }

    /// Returns the first offset at or after a time: no simulation asks.
    ///
    /// # Errors
    /// None.
    pub fn offset_at(&self, _at: &TopicPartition, _timestamp_ms: i64) -> Result<i64> {
        Ok(-1)
    }

    /// Returns one past the last message of a partition.
    ///
    /// # Errors
    /// [`Error::Kafka`]: the broker does not answer.
    pub fn end_offset(&self, at: &TopicPartition, _deadline: &Deadline) -> Result<i64> {
        if self.cluster.reply() != Reply::Done {
            return Err(Error::kafka("look up the end", Code::TRANSPORT, ""));
        }
        simulation::pause();
        Ok(self.cluster.state().logs.get(at).map_or(0, super::log::Log::end))
    }

    /// Returns the offsets of a partition as the last fetch saw them.
    pub fn offsets_seen(&self, at: &TopicPartition) -> Option<std::ops::Range<i64>> {
        self.cluster.state().logs.get(at).map(|log| 0..log.end())
    }

    /// Returns one past the last record that was pulled from the partition of this list, control records included.
    pub fn position(&self, of: &mut TopicPartitionList) -> Option<Position> {
        let at = &of.0.first()?.at;
        self.cluster.state().clients[self.id].partitions.get(at)?.position
    }

    /// Lets fetching of an assigned partition go on from an offset. `false`: fetching has not begun, or has ended.
    pub fn seek(&self, at: &TopicPartition, position: Position) -> bool {
        let mut state = self.cluster.state();
        let offset = state.logs.get(at).map_or(0, |log| log.resolve(position));
        let Some(partition) = state.clients[self.id].partitions.get_mut(at).filter(|each| each.is_fetching) else {
            return false;
        };
        simulation::trace(|| format!("seek {at} to {position:?}: {offset}"));
        partition.seek(offset);
        drop(state);
        self.cluster.wake();
        true
    }
}
