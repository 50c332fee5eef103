//! Commits the stored offsets: at an interval, without waiting, and in time before a partition is given back.
//!
//! Only the group member's thread uses it. One commit is under way at a time, so that a late answer cannot overtake a
//! newer one. A lone offset is committed at once; the interval only delays those that follow.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::offsets::Offsets;
use crate::clock;
use crate::events::What;
use crate::kafka::{Client, Code, CommittedOffset, Position, Queue, QueueEvent, TopicPartition, TopicPartitionList};
use crate::wake::Completion;
use crate::{Error, Result};

/// A commit with a waiting caller.
pub(super) type Commit = Completion<Result<()>>;

/// When the next commit is due. The member's thread changes it; other threads may ask.
pub(super) struct CommitTimes {
    offsets: Arc<Offsets>,
    interval: Duration,
    /// When the last commit began, and whether it is under way.
    last: Mutex<(Option<Instant>, bool)>,
}

impl CommitTimes {
    pub(super) fn new(offsets: Arc<Offsets>, interval: Duration) -> Arc<Self> {
        Arc::new(Self { offsets, interval, last: Mutex::default() })
    }

    fn last(&self) -> MutexGuard<'_, (Option<Instant>, bool)> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether a commit is under way.
    pub(super) fn is_under_way(&self) -> bool {
        self.last().1
    }

    /// Returns when the next commit has to begin; `None` when there is nothing to commit or one is under way.
    pub(super) fn due(&self) -> Option<Instant> {
        let (began, is_under_way) = *self.last();
        if is_under_way || !self.offsets.is_dirty() {
            return None;
        }
        Some(began.map_or_else(clock::now, |last| last + self.interval))
    }

    fn begin(&self) {
        self.last().0 = Some(clock::now());
    }

    fn set_under_way(&self, is_under_way: bool) {
        self.last().1 = is_under_way;
    }
}

/// Commits the stored offsets.
pub(super) struct Committer {
    client: Arc<Client>,
    /// The queue for the answers.
    queue: Arc<Queue>,
    offsets: Arc<Offsets>,
    times: Arc<CommitTimes>,
    /// Offsets that the broker holds already, and is to hold for longer: they go with the next commit.
    held: Vec<(TopicPartition, CommittedOffset)>,
    /// True where no group has given the partitions: then an unknown topic is refused for good.
    is_fixed: bool,
    /// The callers that wait for the commit that is under way, and for the next one.
    waiting: Vec<Arc<Commit>>,
    waiting_for_next: Vec<Arc<Commit>>,
}

impl Committer {
    pub(super) fn new(
        client: Arc<Client>,
        queue: Arc<Queue>,
        offsets: Arc<Offsets>,
        times: Arc<CommitTimes>,
        is_fixed: bool,
    ) -> Self {
        Self {
            client,
            queue,
            offsets,
            times,
            held: Vec::new(),
            is_fixed,
            waiting: Vec::new(),
            waiting_for_next: Vec::new(),
        }
    }

    /// Returns whether a commit is under way.
    pub(super) fn is_under_way(&self) -> bool {
        self.times.is_under_way()
    }

    /// Returns when the next commit has to begin; `None` when there is nothing to commit or one is under way.
    pub(super) fn due(&self) -> Option<Instant> {
        self.times.due()
    }

    /// Commits the stored offsets, and completes `commit` with the broker's answer.
    pub(super) fn request(&mut self, commit: Arc<Commit>) {
        self.waiting_for_next.push(commit);
        if !self.is_under_way() {
            self.begin();
        }
    }

    /// Commits all stored offsets again, and of partitions without one those that the broker holds: it forgets the
    /// offsets of a group without members a while after their last commit.
    pub(super) fn renew(&mut self, held: impl IntoIterator<Item = (TopicPartition, CommittedOffset)>) {
        self.offsets.renew();
        self.held = held.into_iter().filter(|(at, _)| !self.offsets.has_stored(at)).collect();
        self.begin();
    }

    /// Sends the stored offsets; the answer comes to the queue.
    pub(super) fn begin(&mut self) {
        if self.is_under_way() {
            return;
        }
        self.waiting = std::mem::take(&mut self.waiting_for_next);
        let mut dirty = self.offsets.take_dirty();
        dirty.extend(self.held.drain(..).map(|(at, CommittedOffset { offset, leader_epoch, metadata })| {
            (at, Position { offset, leader_epoch }, metadata)
        }));
        if dirty.is_empty() {
            self.answer(&Ok(()));
            return;
        }
        self.times.begin();
        let mut list = TopicPartitionList::new();
        for (at, position, metadata) in &dirty {
            if list.add(at, Some(*position)).is_err() {
                return; // Impossible: the topic came from librdkafka.
            }
            if let Some(metadata) = metadata {
                list.set_metadata(metadata);
            }
        }
        let code = self.client.commit(&list, &self.queue);
        if code == Code::NONE {
            self.times.set_under_way(true);
        } else {
            self.failed(list.partitions(), code);
        }
    }

    /// Handles the answer of the commit that is under way. Each partition has an answer of its own: one that is refused
    /// does not hold up the others.
    pub(super) fn on_answer(&mut self, event: &QueueEvent) {
        self.times.set_under_way(false);
        let (code, entries) = (event.code(), event.partitions().entries());
        let is_answered = matches!(code, Code::NONE | Code::NO_OFFSET);
        let (committed, refused): (Vec<_>, Vec<_>) =
            entries.into_iter().partition(|(_, _, each)| is_answered && *each == Code::NONE);
        let why = if is_answered { refused.first().map(|(_, _, code)| *code) } else { Some(code) };
        if !committed.is_empty() || why.is_none() {
            self.succeeded(committed.into_iter().map(|(at, offset, _)| (at, offset)).collect());
        }
        match why {
            Some(code) => self.failed(refused.into_iter().map(|(at, _, _)| at).collect(), code),
            None => self.answer(&Ok(())),
        }
        if !self.waiting_for_next.is_empty() {
            self.begin();
        }
    }

    /// Fails the waiting callers, because no answer will come any more.
    pub(super) fn abandon(&mut self) {
        self.times.set_under_way(false);
        self.waiting.append(&mut self.waiting_for_next);
        self.answer(&Err(Error::Closed { what: "group member" }));
    }

    fn succeeded(&self, committed: Vec<(TopicPartition, i64)>) {
        for (at, offset) in &committed {
            self.offsets.committed(at, *offset);
        }
        self.client.emit(What::Committed(committed));
    }

    fn failed(&mut self, partitions: Vec<TopicPartition>, code: Code) {
        // A commit that a rebalance overtook does not void its offsets: the partitions that stay assigned must not lose
        // them. A rebalance takes a deleted topic away; without a group, its commit would be tried for ever.
        let is_gone = self.is_fixed && code == Code::UNKNOWN_TOPIC;
        let will_retry = !is_gone && (code.is_retriable() || code == Code::ILLEGAL_GENERATION);
        if will_retry {
            partitions.iter().for_each(|at| self.offsets.not_committed(at));
        }
        self.client.emit(What::CommitFailed { partitions, code, will_retry });
        self.answer(&Err(Error::kafka(format!("commit offsets of {}", self.client.name()), code, "")));
    }

    fn answer(&mut self, result: &Result<()>) {
        for commit in self.waiting.drain(..) {
            commit.complete(result.clone());
        }
    }
}

/// Without a broker: commits are sent, and never answered.
#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;
    use crate::consume::testing::consumer;
    use crate::kafka::{Position, TopicPartition};

    const INTERVAL: Duration = Duration::from_mins(1);

    fn committer() -> (Committer, Arc<Offsets>) {
        let client = consumer();
        let queue = Arc::new(Queue::consumer(&client).expect("a consumer has a queue"));
        let offsets = Arc::<Offsets>::default();
        let times = CommitTimes::new(Arc::clone(&offsets), INTERVAL);
        (Committer::new(client, queue, Arc::clone(&offsets), times, true), offsets)
    }

    fn store(offsets: &Offsets, offset: i64) {
        let at = TopicPartition::new("orders", 0);
        if offset == 1 {
            offsets.open(&at, 1, None, false);
        }
        offsets.store(&at, 1, Position { offset, leader_epoch: -1 }).expect("assigned");
    }

    #[test]
    fn a_lone_offset_is_due_at_once_and_the_next_one_after_the_interval() {
        let (mut committer, offsets) = committer();
        assert_eq!(committer.due(), None, "there is nothing to commit");
        store(&offsets, 1);
        assert!(committer.due().is_some_and(|due| due <= Instant::now()));
        committer.begin();
        store(&offsets, 2);
        assert_eq!(committer.due(), None, "one is under way");
        committer.abandon();
        assert!(committer.due().is_some_and(|due| due > Instant::now() + INTERVAL / 2));
    }

    #[test]
    fn a_commit_of_nothing_succeeds_at_once() {
        let (mut committer, _) = committer();
        let commit = Arc::<Commit>::default();
        committer.request(Arc::clone(&commit));
        assert_eq!(commit.get().map(|answer| answer.is_ok()), Some(true));
    }

    #[test]
    fn all_offsets_are_committed_again_those_that_are_only_held_too() {
        let (mut committer, offsets) = committer();
        store(&offsets, 1);
        committer.begin();
        committer.abandon();
        assert!(!offsets.is_dirty());
        let (other, held) =
            (TopicPartition::new("orders", 1), |offset| CommittedOffset { offset, leader_epoch: -1, metadata: None });
        offsets.open(&other, 2, None, false);
        committer.times.set_under_way(true);
        committer.renew([(TopicPartition::new("orders", 0), held(0)), (other.clone(), held(7))]);
        assert!(offsets.is_dirty(), "what is stored is committed again");
        assert_eq!(committer.held.iter().map(|(at, _)| at).collect::<Vec<_>>(), [&other], "it has stored nothing");
        committer.times.set_under_way(false);
        committer.begin();
        assert!(committer.held.is_empty() && !offsets.is_dirty());
    }

    #[test]
    fn commits_without_an_answer_fail_when_the_member_ends() {
        let (mut committer, offsets) = committer();
        let (first, second) = (Arc::<Commit>::default(), Arc::<Commit>::default());
        store(&offsets, 1);
        committer.request(Arc::clone(&first));
        committer.request(Arc::clone(&second));
        assert!(committer.is_under_way() && !first.is_done());
        committer.abandon();
        for commit in [first, second] {
            assert!(matches!(commit.get(), Some(Err(Error::Closed { .. }))));
        }
    }
}
