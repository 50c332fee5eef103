//! Looks up whether a group has members, which partitions they own, and topics; and the broker that a caller needs.

use std::collections::BTreeMap;
use std::time::Duration;

use super::cluster::{Calls, Cluster, State, one_in};
use super::queue::Event;
use super::{
    Client, Code, DescribedTopic, EventKind, Owner, Position, Presence, Queue, QueueEvent, TopicId, TopicPartition,
    TopicPartitionList,
};
use crate::Result;

/// The groups that the brokers know, each with whether it has members.
pub(super) type Listing = BTreeMap<String, bool>;

/// What a client asks.
pub(super) enum Question {
    Groups,
    Owned,
    Topics(Vec<String>),
    Ends(Vec<TopicPartition>),
}

impl Client {
    /// Asks for all groups; the answer comes to the queue.
    ///
    /// # Errors
    /// None.
    pub fn ask_for_groups(&self, queue: &Queue, _timeout: Duration) -> Result<()> {
        self.ask(Question::Groups, queue);
        Ok(())
    }

    /// Asks for the partitions that the members of its group have; the answer comes to the queue.
    ///
    /// # Errors
    /// None.
    pub fn ask_for_owned(&self, queue: &Queue, _timeout: Duration) -> Result<()> {
        self.ask(Question::Owned, queue);
        Ok(())
    }

    /// Asks for topics; the answer comes to the queue.
    ///
    /// # Errors
    /// None.
    pub fn ask_for_topics(&self, topics: &[String], queue: &Queue, _timeout: Duration) -> Result<()> {
        self.ask(Question::Topics(topics.to_vec()), queue);
        Ok(())
    }

    /// Asks where partitions end; the answer comes to the queue.
    ///
    /// # Errors
    /// None.
    pub fn ask_for_ends(&self, partitions: &[TopicPartition], queue: &Queue, _timeout: Duration) -> Result<()> {
        self.ask(Question::Ends(partitions.to_vec()), queue);
        Ok(())
    }

    fn ask(&self, question: Question, queue: &Queue) {
        self.cluster.state().clients[self.id].questions.push_back((question, queue.events()));
        self.cluster.wake();
    }

    /// Has the group divide its partitions anew, unless a rebalance is under way.
    pub fn join_again(&self) {
        let mut state = self.cluster.state();
        let client = &state.clients[self.id];
        if !client.is_rebalancing && client.to_come == 0 && client.is_cooperative && !client.is_closing {
            state.divide(self.group());
        }
        drop(state);
        self.cluster.wake();
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

    /// Reads the answer to `ask_for_owned`.
    pub fn owned(&self) -> Option<Vec<Owner>> {
        let owner = |partitions| vec![Owner { client_id: "simulated".into(), partitions }];
        (self.code() == Code::NONE).then(|| owner(self.partitions().partitions()))
    }

    /// Reads the answer to `ask_for_topics`.
    pub fn topics(&self) -> Vec<DescribedTopic> {
        self.topics.clone()
    }

    /// Reads the answer to `ask_for_ends`.
    pub fn ends(&self) -> Vec<(TopicPartition, Position)> {
        let is_told = self.code() == Code::NONE;
        let entries = self.list.0.iter().filter(|_| is_told);
        entries.map(|entry| (entry.at.clone(), entry.position)).collect()
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
    /// Answers the oldest question of a client.
    pub(super) fn answer_question(&mut self, id: usize, calls: &mut Calls) {
        let Some((question, queue)) = self.clients[id].questions.pop_front() else { return };
        let fails = one_in(self.faults.request) || one_in(self.faults.answer);
        let event = match question {
            Question::Groups => self.listing(id, fails),
            Question::Owned => {
                let owned = self.groups.get(&self.clients[id].group).map(super::group::Group::owned);
                let list = TopicPartitionList::of(&owned.unwrap_or_default()).unwrap_or_default();
                Event::new(EventKind::Owned, if fails { Code::TIMED_OUT } else { Code::NONE }, list)
            }
            Question::Topics(topics) => {
                let topics = topics.iter().map(|topic| self.describe(topic)).collect();
                Event::of_topics(if fails { Err(Code::TIMED_OUT) } else { Ok(topics) })
            }
            Question::Ends(partitions) => {
                let mut list = TopicPartitionList::new();
                for at in partitions {
                    let end = self.logs.get(&at).map(|log| Position { offset: log.end(), leader_epoch: log.epoch() });
                    list.add(&at, end).unwrap_or_default();
                }
                Event::new(EventKind::Other, if fails { Code::TIMED_OUT } else { Code::NONE }, list)
            }
        };
        self.put_event(queue, event, calls);
    }

    fn describe(&self, topic: &str) -> DescribedTopic {
        let partitions = self.logs.keys().filter(|at| &*at.topic == topic).count() as i32;
        let id = format!("{topic}-{}", self.recreated.get(topic).copied().unwrap_or_default());
        let id = (!self.is_without_ids).then(|| TopicId(id.into()));
        DescribedTopic { name: topic.to_owned(), id, partitions }
    }

    fn listing(&self, id: usize, fails: bool) -> Event {
        let listing = self.groups.iter().map(|(name, group)| (name.clone(), group.has_members())).collect();
        let answer = if fails { Err(Code::TIMED_OUT) } else { Ok(listing) };
        awoke_wake::simulation::trace(|| format!("client {id} is told of groups: {answer:?}"));
        Event::of_groups(answer)
    }
}
