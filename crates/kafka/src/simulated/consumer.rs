//! The calls of a consumer that change its subscription, its assignment or its group's offsets.

use std::sync::Arc;

use awoke_wake::simulation;

use super::cluster::{Calls, Reply, State};
use super::queue::Event;
use super::{Client, Code, CommittedOffset, EventKind, Queue, TopicPartitionList};
use crate::Result;

impl Client {
    /// Subscribes, and joins the group. The group assigns partitions later. In a rebalance, and after a lost session,
    /// it waits for the end of that.
    ///
    /// # Errors
    /// None.
    pub fn subscribe(&self, topics: &[String]) -> Result<()> {
        let mut state = self.cluster.state();
        let client = &mut state.clients[self.id];
        client.is_subscribed = true;
        if client.is_rebalancing || client.is_lost || client.is_told_lost {
            client.next_topics = Some(topics.to_vec());
            return Ok(());
        }
        state.join(self.id, self.group(), topics);
        drop(state);
        self.cluster.wake();
        Ok(())
    }

    /// Ends the subscription.
    pub fn unsubscribe(&self) {
        let mut state = self.cluster.state();
        state.clients[self.id].is_subscribed = false;
        state.leave(self.id);
        drop(state);
        self.cluster.wake();
    }

    /// Returns whether the present revocation is of partitions that the group has given to others already.
    pub fn is_assignment_lost(&self) -> bool {
        self.cluster.state().clients[self.id].is_told_lost
    }

    /// Assigns partitions, which are read from the offsets beside them.
    ///
    /// # Errors
    /// None.
    pub fn assign(&self, list: &TopicPartitionList) -> Result<()> {
        if !self.is_cooperative() {
            self.set_assignment(list);
            return Ok(());
        }
        simulation::trace(|| format!("assign {:?}", list.entries()));
        let mut state = self.cluster.state();
        let client = &mut state.clients[self.id];
        for entry in &list.0 {
            client.partitions.entry(entry.at.clone()).or_default().assign(entry.position);
        }
        client.is_rebalancing = false;
        state.apply_subscription(self.id);
        drop(state);
        self.cluster.wake();
        Ok(())
    }

    /// Takes these partitions back in a cooperative group, all in an eager one.
    ///
    /// # Errors
    /// None.
    pub fn unassign(&self, list: &TopicPartitionList) -> Result<()> {
        if !self.is_cooperative() || list.is_empty() {
            self.clear_assignment();
            return Ok(());
        }
        self.give_back(&list.partitions());
        Ok(())
    }

    /// Assigns these partitions in place of all others.
    pub fn set_assignment(&self, list: &TopicPartitionList) -> Code {
        simulation::trace(|| format!("set the assignment {:?}", list.entries()));
        let mut state = self.cluster.state();
        let client = &mut state.clients[self.id];
        client.partitions.values_mut().for_each(super::client::PartitionState::unassign);
        for entry in &list.0 {
            client.partitions.entry(entry.at.clone()).or_default().assign(entry.position);
        }
        client.is_rebalancing = false;
        state.apply_subscription(self.id);
        drop(state);
        self.cluster.wake();
        Code::NONE
    }

    /// Takes all partitions back.
    pub fn clear_assignment(&self) -> Code {
        let assigned = self.cluster.state().clients[self.id].assigned();
        self.give_back(&assigned);
        Code::NONE
    }

    fn give_back(&self, partitions: &[super::TopicPartition]) {
        simulation::trace(|| format!("unassign {partitions:?}"));
        let mut calls = Calls::default();
        let mut state = self.cluster.state();
        // The requests of one connection are answered in their order: no commit comes after the partition was left.
        while !state.clients[self.id].commits.is_empty() {
            state.answer_commit(self.id, &mut calls);
        }
        state.give_back(self.id, partitions);
        drop(state);
        self.cluster.announce(calls);
        self.cluster.wake();
    }

    /// Commits the offsets of a list; the answer comes to the queue.
    pub fn commit(&self, list: &TopicPartitionList, answer_to: &Queue) -> Code {
        simulation::trace(|| format!("commit {:?}", list.entries()));
        self.cluster.state().clients[self.id].commits.push_back((list.clone(), answer_to.events()));
        self.cluster.wake();
        Code::NONE
    }

    /// Begins to leave the group; its last rebalance comes to this queue.
    pub fn begin_close(&self, closing: &Queue) -> bool {
        simulation::trace(|| "begin to leave the group".to_owned());
        let mut calls = Calls::default();
        let mut state = self.cluster.state();
        let client = &mut state.clients[self.id];
        (client.is_closing, client.closing_queue) = (true, Some(closing.events()));
        state.forward(self.main_queue, closing.events(), &mut calls);
        state.leave(self.id);
        drop(state);
        self.cluster.announce(calls);
        self.cluster.wake();
        true
    }

    /// Returns whether the consumer has left its group.
    pub fn is_closed(&self) -> bool {
        self.cluster.state().clients[self.id].is_closed
    }
}

impl State {
    /// Answers the oldest commit of a client.
    pub(super) fn answer_commit(&mut self, id: usize, calls: &mut Calls) {
        let Some((mut list, queue)) = self.clients[id].commits.pop_front() else { return };
        let reply = if super::cluster::one_in(self.faults.request) {
            Reply::Failed
        } else if super::cluster::one_in(self.faults.answer) {
            Reply::Unanswered
        } else {
            Reply::Done
        };
        let is_refused = self.clients[id].is_lost || self.clients[id].is_told_lost;
        let code = match reply {
            _ if is_refused => Code::ILLEGAL_GENERATION,
            Reply::Done => Code::NONE,
            Reply::Unanswered | Reply::Failed => Code::REQUEST_TIMED_OUT,
        };
        if reply != Reply::Failed && !is_refused {
            let group = self.clients[id].group.clone();
            for entry in &list.0 {
                let committed = CommittedOffset {
                    offset: entry.position.offset,
                    leader_epoch: entry.position.leader_epoch,
                    metadata: entry.metadata.as_ref().map(Arc::clone),
                };
                self.committed.insert((group.clone(), entry.at.clone()), committed.clone());
                calls.commits.push((group.clone(), entry.at.clone(), committed));
            }
        }
        list.0.iter_mut().for_each(|entry| entry.code = code);
        self.put_event(queue, Event::new(EventKind::Commit, code, list), calls);
    }
}
