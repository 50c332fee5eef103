//! Looks up whether a group has members; and the broker that a caller needs.

use std::collections::BTreeMap;
use std::time::Duration;

use super::cluster::{Calls, Cluster, State, one_in};
use super::queue::Event;
use super::{Client, Code, Presence, Queue, QueueEvent};
use crate::Result;

/// The groups that the brokers know, each with whether it has members.
pub(super) type Listing = BTreeMap<String, bool>;

impl Client {
    /// Asks for all groups; the answer comes to the queue.
    ///
    /// # Errors
    /// None.
    pub fn ask_for_groups(&self, queue: &Queue, _timeout: Duration) -> Result<()> {
        self.cluster.state().clients[self.id].questions.push_back(queue.events());
        self.cluster.wake();
        Ok(())
    }
}

impl QueueEvent {
    /// Reads the answer to `ask_for_groups`.
    pub fn presence_of(&self, group: &str) -> Presence {
        let Some(groups) = &self.groups else { return Presence::Unknown };
        match groups.get(group) {
            None => Presence::Unlisted,
            Some(true) => Presence::Present,
            Some(false) => Presence::Empty,
        }
    }
}

impl Cluster {
    /// Returns whether a group has members.
    pub fn has_members(&self, group: &str) -> bool {
        self.state().groups.get(group).is_some_and(super::group::Group::has_members)
    }

    /// Has each consumer told that it has lost its connection to a broker. [`Self::LEADER`] leads all partitions.
    pub fn disconnect(&self, broker: i32) {
        let mut calls = Calls::default();
        let mut state = self.state();
        let is_reading = |client: &super::client::ClientState| client.partitions.values().any(|each| !each.has_queue);
        let queues = state.clients.iter().filter(|client| is_reading(client)).map(|client| client.main_queue);
        for queue in queues.collect::<Vec<_>>() {
            let text = format!("broker:9092/{broker}: Disconnected");
            state.put_event(queue, Event::of_error(Code::TRANSPORT, text), &mut calls);
        }
        drop(state);
        self.announce(calls);
    }
}

impl State {
    /// Answers the oldest question about groups of a client.
    pub(super) fn answer_groups(&mut self, id: usize, calls: &mut Calls) {
        let Some(queue) = self.clients[id].questions.pop_front() else { return };
        let fails = one_in(self.faults.request) || one_in(self.faults.answer);
        let listing = self.groups.iter().map(|(name, group)| (name.clone(), group.has_members())).collect();
        let answer = if fails { Err(Code::TIMED_OUT) } else { Ok(listing) };
        awoke_wake::simulation::trace(|| format!("client {id} is told of groups: {answer:?}"));
        self.put_event(queue, Event::of_groups(answer), calls);
    }
}
