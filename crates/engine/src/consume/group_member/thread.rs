//! The group member's thread.
//!
//! Partitions that no group assigns are opened first, and committed again once an hour: brokers forget the offsets of a
//! group without members. Its loop:
//! 1. execute requests: a commit, a restart, the close;
//! 2. begin a commit that is due, and ask for the owners of all partitions when that is due;
//! 3. wait for librdkafka: a rebalance, a commit's answer, an error, or an interrupt. The wait ends at the next commit,
//!    and at the latest after a third of `max.poll.interval.ms`. A worker that pulls from a partition restarts the poll
//!    clock, which this wait had suspended; coming up suspends it again, however long handlers run.
//! 4. on a rebalance give partitions back (jobs end, offsets are committed, hooks run) or open new ones.

use std::cell::Cell;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::shared::{Request, Shared};
use super::{GroupSettings, ownership::Ownership, starts::LOOKUP_AGAIN};
use crate::clock::{self, Deadline};
use crate::consume::assignment::Assignment;
use crate::consume::committer::Committer;
use crate::consume::open_partitions::{OpenPartitions, unavailable_topic};
use crate::consume::partition_queue::PartitionContext;
use crate::consume::restore::{OnRestored, Restore};
use crate::consume::route::Route;
use crate::events::{EventBox, What};
use crate::kafka::{ClientConfig, Code, CommittedOffset, EventKind, FetchMemory, QueueEvent, TopicId, TopicPartition};
use crate::{Error, Result};

/// The offsets of partitions that no group assigns are committed again after this time. Brokers keep them for
/// `offsets.retention.minutes` (7 days) after their last commit.
const RENEW_AFTER: Duration = Duration::from_hours(1);

/// The state of the group member's thread.
pub(super) struct Member {
    pub(super) shared: Arc<Shared>,
    pub(super) assignment: Assignment,
    pub(super) committer: Committer,
    pub(super) settings: GroupSettings,
    poll_interval: Duration,
    /// The partitions that no group assigns, with the offsets that the broker held at the start; renewed at that time.
    pub(super) fixed: Option<(HashMap<TopicPartition, CommittedOffset>, Instant)>,
    /// `None` where librdkafka's own settings bound it.
    pub(super) fetch_memory: Option<FetchMemory>,
    /// The ids of the topics of the partitions that are about to be opened.
    pub(super) topic_ids: Cell<HashMap<String, TopicId>>,
    /// `None` where no member has to compare.
    pub(super) ownership: Option<Ownership>,
    /// Rebalances that came during another one.
    pub(super) deferred: VecDeque<QueueEvent>,
    /// The properties of the consumers that restore tables, and where their events go.
    pub(super) config: ClientConfig,
    events: Arc<EventBox>,
    /// The restores that go on, each of one assignment.
    restores: Vec<Restore>,
}

impl Member {
    pub(super) fn new(
        shared: &Arc<Shared>,
        routes: Vec<Route>,
        settings: GroupSettings,
        poll_interval: Duration,
        (fetch_memory, ownership): (Option<FetchMemory>, Option<Ownership>),
        (config, events): (&ClientConfig, Arc<EventBox>),
    ) -> Self {
        let queue = Arc::clone(&shared.queue);
        let context = PartitionContext {
            client: Arc::clone(&shared.client),
            offsets: Arc::clone(&shared.offsets),
            // Once per commit, not once per job: only the store that finds all offsets committed calls.
            wake_owner: Arc::new(move || queue.interrupt()),
            open_partitions: Arc::clone(&shared.open_partitions),
            tells_end: false,
        };
        let (client, queue) = (Arc::clone(&shared.client), Arc::clone(&shared.queue));
        let is_fixed = routes.iter().any(|route| !route.partitions.is_empty());
        Self {
            shared: Arc::clone(shared),
            assignment: Assignment::new(routes, context),
            committer: Committer::new(
                client,
                queue,
                Arc::clone(&shared.offsets),
                Arc::clone(&shared.commits),
                is_fixed,
            ),
            settings,
            fixed: is_fixed.then(|| (HashMap::new(), clock::real_now())),
            poll_interval,
            fetch_memory,
            topic_ids: Cell::default(),
            ownership,
            deferred: VecDeque::new(),
            config: config.clone(),
            events,
            restores: Vec::new(),
        }
    }

    /// Runs the loop until a close was requested.
    pub(super) fn run(mut self) {
        let fixed = self.assignment.fixed();
        if !fixed.is_empty() {
            self.accept(&fixed);
        }
        loop {
            self.shared.note_came_up();
            if let Some(deadline) = self.execute_requests() {
                self.leave(&deadline);
                break;
            }
            self.renew();
            self.ask_for_owned();
            if self.committer.due().is_some_and(|due| due <= clock::now()) {
                self.committer.begin();
            }
            let event = self.next_event();
            if let Some(event) = event {
                self.handle(&event);
            }
        }
        self.shared.close_requests();
        self.committer.abandon();
        self.restores.drain(..).for_each(Restore::end);
    }

    /// Reads the changelogs of the tables of partitions that were opened; their hooks and jobs begin afterwards.
    pub(super) fn restore_tables(&mut self, partitions: &[TopicPartition]) {
        let opened: Vec<_> = partitions.iter().filter_map(|at| self.assignment.get(at).map(Arc::clone)).collect();
        let mut tables: Vec<(_, _, OnRestored)> = Vec::new();
        for partition in &opened {
            for table in partition.tables() {
                let queue = Arc::clone(partition);
                let until = partition.rows_until(table);
                tables.push((Arc::clone(table), until, Box::new(move || queue.note_restored())));
            }
        }
        if tables.is_empty() {
            return;
        }
        match Restore::begin(&self.config, tables, &self.events) {
            Ok(restore) => self.restores.push(restore),
            Err(error) => {
                let (code, text) = (error.code(), format!("a table could not be restored: {error}"));
                self.shared.client.emit(What::Error { code, text, fatal: true });
            }
        }
    }

    /// Ends the restores that are over, or whose partitions were given back.
    pub(super) fn end_restores(&mut self) {
        self.restores.extract_if(.., |restore| restore.is_over()).for_each(Restore::end);
    }

    /// Commits again what the broker would forget.
    fn renew(&mut self) {
        if let Some((held, moment)) =
            self.fixed.as_mut().filter(|(_, moment)| clock::real_since(*moment) >= RENEW_AFTER)
        {
            *moment = clock::real_now();
            self.committer.renew(held.iter().map(|(at, offset)| (at.clone(), offset.clone())));
        }
    }

    /// Executes the requests that wait. Returns the deadline of a close, if one was requested.
    fn execute_requests(&mut self) -> Option<Deadline> {
        loop {
            match self.shared.next_request()? {
                Request::Commit(commit) => self.committer.request(commit),
                Request::Read(route) => self.read(*route),
                Request::Restart(at) => self.restart(&at),
                Request::Close(deadline) => return Some(deadline),
            }
        }
    }

    /// Subscribes to the topic of one more route.
    fn read(&mut self, route: Route) {
        self.shared.add_start(&route);
        self.assignment.add(route);
        self.report(self.shared.client.subscribe(&self.assignment.topics()));
    }

    fn next_event(&mut self) -> Option<QueueEvent> {
        if let Some(deferred) = self.deferred.pop_front() {
            return Some(deferred);
        }
        let until = self.wait_until();
        self.shared.is_working.store(false, Ordering::SeqCst);
        clock::changed();
        let event = self.shared.queue.poll(&until);
        self.shared.is_working.store(true, Ordering::SeqCst);
        event
    }

    fn wait_until(&self) -> Deadline {
        // Partitions that were revoked just now keep others from being fetched for a moment.
        let is_unfinished = self.start_reading() | self.shared.open_partitions.learn_leaders(&self.shared.client);
        let asks = self.ownership.as_ref().and_then(Ownership::due);
        let again = is_unfinished.then_some(LOOKUP_AGAIN);
        Deadline::after(Some(self.poll_interval / 3)).or_within(again).or_real(asks).or_earlier(self.committer.due())
    }

    pub(super) fn handle(&mut self, event: &QueueEvent) {
        match event.kind() {
            EventKind::Rebalance => self.rebalance(event),
            EventKind::Commit => {
                if self.fixed.is_some() {
                    self.note_deleted(event);
                }
                self.committer.on_answer(event);
            }
            EventKind::Error => self.on_error(event),
            EventKind::Owned => self.note_owned(event),
            EventKind::Topics => self.note_topics(event),
            EventKind::Messages | EventKind::Groups | EventKind::Other => (),
        }
    }

    /// Notes the topics of a commit that do not exist any more: no group takes their partitions away.
    fn note_deleted(&self, event: &QueueEvent) {
        for (at, _, code) in event.partitions().entries() {
            let topic = TopicPartition::new(Arc::clone(&at.topic), -1);
            if code != Code::UNKNOWN_TOPIC {
                self.shared.open_partitions.clear_stuck(&topic);
                continue;
            }
            let text = format!("partition {} does not exist any more", at.partition);
            if self.shared.open_partitions.note_stuck(&topic, code, &text, None) {
                self.shared.client.emit(What::Stuck { at: topic, code, text });
            }
        }
    }

    pub(super) fn on_error(&self, event: &QueueEvent) {
        // librdkafka gives a fatal error the code of its cause here.
        let fatal = self.shared.client.fatal_error().is_some();
        let (code, text) = (event.code(), event.error_text());
        self.note_topic(code, &text);
        self.shared.client.emit(What::Error { code, text, fatal });
    }

    /// Notes a topic that is subscribed and cannot be read.
    fn note_topic(&self, code: Code, text: &str) {
        let Some(at) = unavailable_topic(text).filter(|_| OpenPartitions::is_final(code)) else { return };
        if self.shared.open_partitions.note_stuck(&at, code, text, None) {
            self.shared.client.emit(What::Stuck { at, code, text: text.to_owned() });
        }
    }

    pub(super) fn report(&self, result: Result<()>) {
        if let Err(Error::Kafka { code, detail, .. }) = result {
            self.shared.client.emit(What::Error { code, text: detail, fatal: false });
        }
    }
}
