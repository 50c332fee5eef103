//! Commits the stored offsets: at an interval, without waiting, and in time before a partition is given back.
//!
//! Only the group member's thread uses it. One commit is under way at a time, so that a late answer cannot overtake a
//! newer one. A lone offset is committed at once; the interval only delays those that follow.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::offsets::Offsets;
use crate::events::What;
use crate::kafka::{Client, Code, Queue, QueueEvent, TopicPartitionList};
use crate::wake::Completion;
use crate::{Error, Result};

/// A commit with a waiting caller.
pub(super) type Commit = Completion<Result<()>>;

/// Commits the stored offsets.
pub(super) struct Committer {
    client: Arc<Client>,
    /// The queue for the answers.
    queue: Arc<Queue>,
    offsets: Arc<Offsets>,
    interval: Duration,
    last_began: Option<Instant>,
    under_way: bool,
    /// The callers that wait for the commit that is under way, and for the next one.
    waiting: Vec<Arc<Commit>>,
    waiting_for_next: Vec<Arc<Commit>>,
}

impl Committer {
    pub(super) fn new(client: Arc<Client>, queue: Arc<Queue>, offsets: Arc<Offsets>, interval: Duration) -> Self {
        Self {
            client,
            queue,
            offsets,
            interval,
            last_began: None,
            under_way: false,
            waiting: Vec::new(),
            waiting_for_next: Vec::new(),
        }
    }

    /// Returns whether a commit is under way.
    pub(super) const fn is_under_way(&self) -> bool {
        self.under_way
    }

    /// Returns when the next commit has to begin; `None` when there is nothing to commit or one is under way.
    pub(super) fn due(&self) -> Option<Instant> {
        if self.under_way || !self.offsets.is_dirty() {
            return None;
        }
        Some(self.last_began.map_or_else(Instant::now, |last| last + self.interval))
    }

    /// Commits the stored offsets, and completes `commit` with the broker's answer.
    pub(super) fn request(&mut self, commit: Arc<Commit>) {
        self.waiting_for_next.push(commit);
        if !self.under_way {
            self.begin();
        }
    }

    /// Sends the stored offsets; the answer comes to the queue.
    pub(super) fn begin(&mut self) {
        if self.under_way {
            return;
        }
        self.waiting = std::mem::take(&mut self.waiting_for_next);
        let dirty = self.offsets.take_dirty();
        if dirty.is_empty() {
            self.answer(&Ok(()));
            return;
        }
        self.last_began = Some(Instant::now());
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
            self.under_way = true;
        } else {
            self.failed(&list, code);
        }
    }

    /// Handles the answer of the commit that is under way.
    pub(super) fn on_answer(&mut self, event: &QueueEvent) {
        self.under_way = false;
        let (code, list) = (event.code(), event.partitions());
        let refused = list.entries().into_iter().map(|(_, _, code)| code).find(|code| *code != Code::NONE);
        match (code, refused) {
            (Code::NONE | Code::NO_OFFSET, None) => self.succeeded(&list),
            (Code::NONE, Some(code)) | (code, _) => self.failed(&list, code),
        }
        if !self.waiting_for_next.is_empty() {
            self.begin();
        }
    }

    /// Fails the waiting callers, because no answer will come any more.
    pub(super) fn abandon(&mut self) {
        self.under_way = false;
        self.waiting.append(&mut self.waiting_for_next);
        self.answer(&Err(Error::Closed { what: "group member" }));
    }

    fn succeeded(&mut self, list: &TopicPartitionList) {
        let committed: Vec<_> = list.entries().into_iter().map(|(at, offset, _)| (at, offset)).collect();
        for (at, offset) in &committed {
            self.offsets.committed(at, *offset);
        }
        self.client.emit(What::Committed(committed));
        self.answer(&Ok(()));
    }

    fn failed(&mut self, list: &TopicPartitionList, code: Code) {
        // A commit that a rebalance overtook does not void its offsets: the partitions that stay assigned must not lose
        // them.
        let will_retry = code.is_retriable() || code == Code::ILLEGAL_GENERATION;
        let partitions = list.partitions();
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
        (Committer::new(client, queue, Arc::clone(&offsets), INTERVAL), offsets)
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
