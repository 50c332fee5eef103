//! The group member's thread when its partitions change: it gives some back, and opens others.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::ownership::Ownership;
use super::thread::Member;
use crate::Result;
use crate::clock::Deadline;
use crate::consume::Hook;
use crate::events::What;
use crate::kafka::{Code, EventKind, Queue, QueueEvent, TopicPartition, TopicPartitionList};

/// The number of tries of a commit that has to go out now.
const COMMIT_TRIES: usize = 3;

/// The least time for a commit before partitions are given back, and for the request to leave the group.
const COMMIT_GRACE: Duration = Duration::from_secs(1);
const LEAVE_GRACE: Duration = Duration::from_secs(2);

impl Member {
    pub(super) fn rebalance(&mut self, event: &QueueEvent) {
        let list = event.partitions();
        let partitions = list.partitions();
        if event.code() == Code::ASSIGN_PARTITIONS {
            self.ownership.iter_mut().for_each(Ownership::note_assigned);
            if !self.accept(&partitions) {
                self.report(self.decline());
            }
            return;
        }
        let is_lost = self.shared.client.is_assignment_lost();
        self.ownership.iter_mut().for_each(|ownership| ownership.note_revoked(is_lost));
        let hook = if is_lost { Hook::Lost } else { Hook::Revoked };
        self.give_back(&partitions, hook, &Deadline::after(Some(self.settings.revoke_timeout)));
        self.report(self.shared.client.unassign(&list));
        self.shared.client.emit(if is_lost { What::Lost(partitions) } else { What::Revoked(partitions) });
    }

    /// Opens partitions that the group assigned, or that the routes name. Returns `false`, and opens none, when it
    /// is not known where to begin.
    pub(super) fn accept(&mut self, partitions: &[TopicPartition]) -> bool {
        let Some((list, committed)) = self.starts_of(partitions) else { return false };
        let ids = self.topic_ids.take();
        if let Some((held, _)) = &mut self.fixed {
            held.clone_from(&committed);
        }
        if let Err(error) = self.assignment.open(partitions, &committed) {
            self.shared.client.emit(What::Error { code: Code::UNKNOWN_TOPIC, text: error.to_string(), fatal: false });
        }
        for at in partitions {
            self.shared.offsets.set_topic(at, ids.get(&*at.topic).cloned());
            self.shared.open_partitions.clear_stuck(&TopicPartition::new(Arc::clone(&at.topic), -1));
        }
        self.share_memory();
        self.restore_tables(partitions);
        self.report(self.shared.client.assign(&list));
        self.shared.client.emit(What::Assigned(partitions.to_vec()));
        true
    }

    /// Answers an assignment, and reads none of its partitions: librdkafka does not close before.
    fn decline(&self) -> Result<()> {
        let (client, nothing) = (&self.shared.client, TopicPartitionList::new());
        // Partitions that are assigned now are not read any more in an eager group.
        if client.is_cooperative() { client.assign(&nothing) } else { client.unassign(&nothing) }
    }

    /// Ends the work on partitions: no job begins, running ones end, offsets are committed, the hook runs, offsets are
    /// committed again.
    ///
    /// A partition whose job or hook does not end in time is reported. A hook that is posted too late is not: a commit
    /// without brokers takes all the time there is.
    fn give_back(&mut self, partitions: &[TopicPartition], hook: Hook, deadline: &Deadline) {
        self.assignment.withdraw(partitions);
        self.report_overdue(self.wait_released(partitions, deadline));
        if hook != Hook::Lost {
            self.commit_now(deadline);
        }
        let is_in_time = !deadline.has_passed();
        self.assignment.post_hook(partitions, hook);
        let overdue = self.wait_released(partitions, deadline);
        if is_in_time {
            self.report_overdue(overdue);
        }
        if hook != Hook::Lost {
            self.commit_now(deadline);
        }
        self.assignment.close(partitions);
        self.end_restores();
        self.share_memory();
    }

    /// Divides the memory for fetched messages among the partitions that are assigned now.
    fn share_memory(&self) {
        let partitions = self.assignment.len();
        let bytes = self.fetch_memory.as_ref().and_then(|memory| memory.share_among(partitions));
        self.shared.fetch_queue_bytes.store(bytes.unwrap_or(0) as u64, Ordering::Relaxed);
    }

    fn wait_released(&self, partitions: &[TopicPartition], deadline: &Deadline) -> Vec<TopicPartition> {
        let is_urgent = || self.shared.is_urgent();
        self.assignment.wait_released(partitions, &self.shared.parker, deadline, is_urgent)
    }

    fn report_overdue(&self, partitions: Vec<TopicPartition>) {
        for at in partitions {
            self.shared.client.emit(What::JobOverdue(at));
        }
    }

    /// Commits the stored offsets and waits for the answer, at least `COMMIT_GRACE` even when jobs used the time up.
    ///
    /// A commit that fails is tried a few times and then left: the next owner of the partition begins where the last
    /// commit stands.
    fn commit_now(&mut self, deadline: &Deadline) {
        let grace = Deadline::after(Some(COMMIT_GRACE));
        let until = if deadline.remaining() > grace.remaining() { deadline } else { &grace };
        for _ in 0..COMMIT_TRIES {
            self.committer.begin();
            while self.committer.is_under_way() && !until.has_passed() {
                match self.shared.queue.poll(until) {
                    Some(event) if event.kind() == EventKind::Rebalance => self.deferred.push_back(event),
                    Some(event) => self.handle(&event),
                    None => (),
                }
            }
            if !self.shared.offsets.is_dirty() {
                return;
            }
        }
    }

    /// Answers rebalances that came while this member gave its partitions back: librdkafka does not close before.
    pub(super) fn answer_deferred(&mut self) {
        for event in std::mem::take(&mut self.deferred) {
            let is_assignment = event.code() == Code::ASSIGN_PARTITIONS;
            let is_lost = !is_assignment && self.shared.client.is_assignment_lost();
            if let Some(ownership) = &mut self.ownership {
                if is_assignment { ownership.note_assigned() } else { ownership.note_revoked(is_lost) }
            }
            let answered =
                if is_assignment { self.decline() } else { self.shared.client.unassign(&event.partitions()) };
            self.report(answered);
        }
    }

    /// Gives all partitions back and leaves the group.
    pub(super) fn leave(&mut self, deadline: &Deadline) {
        let partitions = self.assignment.partitions();
        self.give_back(&partitions, Hook::Shutdown, deadline);
        self.answer_deferred();
        self.await_rebalance(deadline);
        let client = Arc::clone(&self.shared.client);
        if partitions.is_empty() && client.is_cooperative() {
            // librdkafka (2.12.1) closes a cooperative member that has no partitions without leaving its group: the
            // others would wait until its session times out. Without a subscription it leaves.
            client.unsubscribe();
        }
        let closing = Queue::new(&client);
        if !client.begin_close(&closing) {
            return;
        }
        // Leaving takes one request; a broker that does not answer is not waited for longer than this.
        let until = Deadline::after(Some(deadline.remaining().unwrap_or_default().max(LEAVE_GRACE)));
        while !client.is_closed() && !until.has_passed() {
            if let Some(event) = closing.poll(&until)
                && event.kind() == EventKind::Rebalance
            {
                self.deferred.push_back(event);
                self.answer_deferred();
            }
        }
    }
}
