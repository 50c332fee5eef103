//! The groups: which member has which partition.

use std::collections::BTreeMap;

use awoke_wake::simulation;

use super::EventKind;
use super::cluster::{Calls, Cluster, State};
use super::queue::Event;
use super::{Code, TopicPartition, TopicPartitionList};

/// The members of a group are clients, by their numbers.
#[derive(Default)]
pub(super) struct Group {
    members: Vec<usize>,
    /// The member that is to have each partition.
    target: BTreeMap<TopicPartition, usize>,
    /// The member that has it, or is about to be told so.
    owners: BTreeMap<TopicPartition, usize>,
    /// Partitions that a static member gave up, with its client: others get them when it has joined again.
    given_up: BTreeMap<TopicPartition, usize>,
    /// The clients of static members that have ended and are not back, by their names.
    away: BTreeMap<String, usize>,
    /// How many partitions static members have left without an owner.
    left_unowned: usize,
    /// In an eager group every member gives all partitions back first.
    gives_all_back: bool,
}

impl Group {
    pub(super) const fn has_members(&self) -> bool {
        !self.members.is_empty()
    }

    /// Returns the partitions that a member has, or is about to get.
    pub(super) fn owned(&self) -> Vec<TopicPartition> {
        self.target.keys().filter(|at| !self.given_up.contains_key(*at)).cloned().collect()
    }

    /// Gives a member that is back what it had been assigned last. Returns whether it was away.
    fn restore(&mut self, instance: Option<&String>, id: usize) -> bool {
        let Some(before) = instance.and_then(|name| self.away.remove(name)) else { return false };
        self.target.values_mut().filter(|member| **member == before).for_each(|member| *member = id);
        true
    }

    /// Lets an eager group go on when no member has a partition.
    fn note_given_back(&mut self) {
        self.gives_all_back &= !self.owners.is_empty();
    }
}

/// A change of the assignment of one member.
pub(super) enum Change {
    Assign(Vec<TopicPartition>),
    Revoke(Vec<TopicPartition>),
}

impl Cluster {
    /// Returns how many partitions static members of a group have left without an owner.
    pub fn left_unowned(&self, group: &str) -> usize {
        self.state().groups.get(group).map_or(0, |group| group.left_unowned)
    }

    /// Has a group divide its partitions anew.
    pub fn rebalance(&self, group: &str) {
        self.state().divide(group);
        self.wake();
    }

    /// Ends the session of the member with this number, counted from 0: its partitions are given to others at once.
    pub fn lose(&self, group: &str, number: usize) {
        let mut state = self.state();
        let Some(&id) = state.groups.get(group).and_then(|group| group.members.get(number)) else { return };
        if state.clients[id].is_rebalancing || state.clients[id].is_lost || !state.clients[id].has_assigned() {
            return;
        }
        state.clients[id].is_lost = true;
        state.clients[id].to_come = 0;
        state.clients[id].member_epoch += 1;
        if let Some(group) = state.groups.get_mut(group) {
            group.owners.retain(|_, owner| *owner != id);
            group.given_up.retain(|_, member| *member != id);
            group.note_given_back();
        }
        state.divide(group);
        drop(state);
        self.wake();
    }
}

impl State {
    pub(super) fn join(&mut self, id: usize, group: &str, topics: &[String]) {
        let instance = self.clients[id].instance.clone();
        self.clients[id].topics = topics.to_vec();
        let joined = self.groups.entry(group.to_owned()).or_default();
        let before = instance.as_ref().and_then(|name| joined.away.get(name)).copied();
        let has_changed = before.is_some_and(|before| self.clients[before].topics != topics);
        if !joined.members.contains(&id) {
            joined.members.push(id);
        }
        if joined.restore(instance.as_ref(), id) && !has_changed {
            self.clients[id].to_come = 1; // It is told of its assignment, also of an empty one.
        } else {
            self.divide(group);
        }
    }

    pub(super) fn leave(&mut self, id: usize) {
        let name = self.clients[id].group.clone();
        let Some(group) = self.groups.get_mut(&name) else { return };
        if !group.members.contains(&id) {
            return; // It has left before.
        }
        group.members.retain(|member| *member != id);
        match &self.clients[id].instance {
            // Its session goes on: the group waits for it.
            Some(instance) if self.clients[id].is_cooperative && !group.members.is_empty() => {
                let client = &self.clients[id];
                if !(client.is_rebalancing && client.to_come == 2) {
                    // It knows that it is to give them up.
                    group.left_unowned += group.given_up.values().filter(|member| **member == id).count();
                }
                group.away.insert(instance.clone(), id);
            }
            _ => self.divide(&name),
        }
    }

    pub(super) fn divide(&mut self, name: &str) {
        let Some(group) = self.groups.get_mut(name) else { return };
        group.target.clear();
        group.away.clear();
        let members = &group.members;
        group.given_up.retain(|_, member| members.contains(member));
        for at in self.logs.keys() {
            let reads = |member: &&usize| self.clients[**member].topics.iter().any(|topic| **topic == *at.topic);
            let readers: Vec<_> = members.iter().filter(reads).collect();
            if let Some(member) = readers.get(simulation::random(readers.len().max(1) as u64) as usize) {
                group.target.insert(at.clone(), **member);
            }
        }
        let is_eager = group.members.iter().any(|member| !self.clients[*member].is_cooperative);
        group.gives_all_back = is_eager && !group.owners.is_empty();
    }

    /// Returns the change that a client has to be told of.
    pub(super) fn change_of(&self, id: usize) -> Option<Change> {
        let client = &self.clients[id];
        if client.is_rebalancing || client.is_closed || client.group.is_empty() {
            return None;
        }
        if client.is_lost || client.is_closing {
            let assigned = client.assigned();
            return (client.is_lost || !assigned.is_empty()).then_some(Change::Revoke(assigned));
        }
        let group = self.groups.get(&client.group)?;
        let owned = group.owners.iter().filter(|(_, owner)| **owner == id).map(|(at, _)| at);
        let is_to_go = |at: &&TopicPartition| group.gives_all_back || group.target.get(*at) != Some(&id);
        let revoked: Vec<_> = owned.filter(is_to_go).cloned().collect();
        if !revoked.is_empty() {
            return Some(Change::Revoke(revoked));
        }
        if group.gives_all_back {
            return None;
        }
        let is_free = |at: &TopicPartition| {
            !group.owners.contains_key(at) && group.given_up.get(at).is_none_or(|member| *member == id)
        };
        let mine = group.target.iter().filter(|(at, member)| **member == id && is_free(at));
        let assigned: Vec<_> = mine.map(|(at, _)| at.clone()).collect();
        (!assigned.is_empty() || client.to_come > 0).then_some(Change::Assign(assigned))
    }

    /// Tells a client of a change.
    pub(super) fn send_rebalance(&mut self, id: usize, calls: &mut Calls) {
        let Some(change) = self.change_of(id) else { return };
        let client = &mut self.clients[id];
        client.is_rebalancing = true;
        let (code, partitions) = match change {
            Change::Assign(partitions) => {
                if client.to_come == 1
                    && let Some(group) = self.groups.get_mut(&client.group)
                {
                    group.given_up.retain(|_, member| *member != id); // It has joined again.
                }
                client.to_come = client.to_come.saturating_sub(1);
                (Code::ASSIGN_PARTITIONS, partitions)
            }
            Change::Revoke(partitions) => {
                let is_static = client.instance.is_some() && client.is_cooperative && !client.is_closing;
                if is_static
                    && !client.is_lost
                    && let Some(group) = self.groups.get_mut(&client.group)
                {
                    client.to_come = 2;
                    group.given_up.extend(partitions.iter().map(|at| (at.clone(), id)));
                }
                client.is_told_lost = std::mem::take(&mut client.is_lost);
                (Code::REVOKE_PARTITIONS, partitions)
            }
        };
        let queue = client.closing_queue.unwrap_or(client.main_queue);
        if code == Code::ASSIGN_PARTITIONS
            && let Some(group) = self.groups.get_mut(&client.group)
        {
            group.owners.extend(partitions.iter().map(|at| (at.clone(), id)));
        }
        simulation::trace(|| format!("rebalance of client {id}: {} {partitions:?}", code.0));
        let list = TopicPartitionList::of(&partitions).unwrap_or_default();
        self.put_event(queue, Event::new(EventKind::Rebalance, code, list), calls);
    }

    /// Takes partitions that a client has given back.
    pub(super) fn give_back(&mut self, id: usize, partitions: &[TopicPartition]) {
        let client = &mut self.clients[id];
        for at in partitions {
            if let Some(partition) = client.partitions.get_mut(at) {
                partition.unassign();
            }
        }
        (client.is_rebalancing, client.is_told_lost) = (false, false);
        client.member_epoch += 1;
        let Some(group) = self.groups.get_mut(&client.group) else { return };
        let has_all_left = !client.has_assigned();
        group.owners.retain(|at, owner| *owner != id || !(has_all_left || partitions.contains(at)));
        group.note_given_back();
        self.apply_subscription(id);
    }

    /// Applies a subscription that waited for the end of a rebalance.
    pub(super) fn apply_subscription(&mut self, id: usize) {
        let client = &mut self.clients[id];
        if let Some(topics) = client.next_topics.take().filter(|_| !client.is_closing) {
            let group = client.group.clone();
            self.join(id, &group, &topics);
        }
    }

    /// Notes that a client has left its group.
    pub(super) fn end_membership(&mut self, id: usize, calls: &mut Calls) {
        let client = &mut self.clients[id];
        client.is_closed = true;
        client.member_epoch += 1;
        if let Some(group) = self.groups.get_mut(&client.group) {
            group.owners.retain(|_, owner| *owner != id);
            group.note_given_back();
        }
        let queue = self.clients[id].closing_queue.unwrap_or(self.clients[id].main_queue);
        let event = Event::new(EventKind::Other, Code::NONE, TopicPartitionList::new());
        self.put_event(queue, event, calls);
    }
}
