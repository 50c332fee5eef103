//! A member of a consumer group: the thread that talks to the group, and the handle by which others talk to the thread.
//!
//! The thread's loop:
//! 1. carry out what others asked for: a commit, the close;
//! 2. begin a commit that is due;
//! 3. wait for librdkafka: a rebalance, a commit's answer, an error, or an interruption. The wait ends at the next
//!    commit, and at the latest after a third of `max.poll.interval.ms`: a worker that pulls from a partition restarts
//!    the poll clock that this wait had suspended, and coming up suspends it again, however long handlers run.
//! 4. on a rebalance give partitions back (jobs end, offsets are committed, hooks run) or open new ones.
//!
//! No librdkafka callback runs user code, and this thread never does.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::assignment::Assignment;
use super::committer::{Commit, Committer};
use super::offsets::{Offsets, Progress};
use super::open_partitions::{OpenPartitions, WayOn, unavailable_topic};
use super::partition_queue::Surroundings;
use super::route::Route;
use super::{Hook, StartAt, Stuck, Trail, Transactor};
use crate::clock::{Deadline, monotonic_ns};
use crate::events::{EventBox, What};
use crate::kafka::{
    Client, ClientConfig, Code, CommittedOffset, FetchMemory, Kind, OnRenewed, Position, Queue, QueueEvent,
    TopicPartition, TopicPartitionList, ffi,
};
#[cfg(target_os = "linux")]
use crate::wake::{ClockSteps, OnStep};
use crate::wake::{Completion, Parker};
use crate::{Error, Result};

/// How a member behaves.
#[derive(Clone, Copy, Debug)]
pub struct GroupSettings {
    /// Commits that follow one another are at least this far apart.
    pub commit_interval: Duration,
    /// How long running jobs and hooks may hold up a revocation.
    pub revoke_timeout: Duration,
    /// The most memory that fetched messages may take which no worker has pulled, about.
    pub fetch_memory_bytes: usize,
    /// How many partitions the topics of the routes have in all; the member may hold fewer.
    pub partitions_total: usize,
}

/// Settings that belong to awoke: it stores an offset after its job's result, and commits by itself.
const OWN_SETTINGS: [(&str, &str); 4] = [
    ("enable.auto.commit", "belongs to awoke, which commits an offset after its job's result"),
    ("enable.auto.offset.store", "belongs to awoke, which stores an offset after its job's result"),
    ("auto.commit.interval.ms", "belongs to awoke; its own setting is commit_interval_s"),
    ("enable.partition.eof", "belongs to awoke"),
];

/// How often a commit that has to go out now is tried.
const COMMIT_TRIES: usize = 3;

/// How long brokers are asked where to begin: twice the default time-out of a transaction, which may hold that up.
const LOOKUP_WITHIN: Duration = Duration::from_mins(2);

/// How long they may take for committed offsets, at first and at most. A member that is closed waits so long, too: librdkafka goes on asking
/// while a transaction holds an offset up.
const LOOKUP_PATIENCE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(4));

/// How much longer than its deadline a close may take: the last commit and the request to leave have a little time of their own.
const CLOSE_GRACE: Duration = Duration::from_secs(10);

/// librdkafka's `RD_KAFKA_OFFSET_INVALID`: begin where the group has committed.
const NO_OFFSET: i64 = -1001;

/// After so long they are asked again: they tell nobody when a transaction has ended. librdkafka has asked several times by then.
const LOOKUP_AGAIN: Duration = Duration::from_millis(100);

/// A member of a consumer group.
pub struct GroupMember {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// Completed when the thread has ended.
    ended: Arc<Completion<()>>,
    /// Ends with the member.
    #[cfg(target_os = "linux")]
    _clock_steps: ClockSteps,
}

/// Says that the thread has ended, also when it panicked.
struct Ending(Arc<Completion<()>>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.complete(());
    }
}

/// How far a partition has come.
#[derive(Clone, Debug)]
pub struct PartitionState {
    /// Which.
    pub at: TopicPartition,
    /// The next offset to commit.
    pub stored: Option<i64>,
    /// What the broker holds, as far as it is known.
    pub committed: Option<i64>,
    /// The next offset to be done: what is stored, or else where reading began, or is to begin.
    pub position: Option<i64>,
    /// One past the last message, as the last fetch saw it.
    pub end_seen: Option<i64>,
    /// How far the first message that is not done is behind; `None` when all are, or one job at a time runs.
    pub trail: Option<Trail>,
}

/// What the thread and its handle share.
struct Shared {
    client: Arc<Client>,
    queue: Arc<Queue>,
    requests: Mutex<VecDeque<Request>>,
    /// Where the thread waits for jobs to end, or to ask again; unparked to make it look at the two below.
    parker: Arc<Parker>,
    is_hurried: AtomicBool,
    /// Nothing more is to be begun.
    is_closing: AtomicBool,
    is_closed: AtomicBool,
    offsets: Arc<Offsets>,
    open_partitions: Arc<OpenPartitions>,
    /// The most bytes of one partition's queue; 0 where it is unknown.
    fetch_queue_bytes: AtomicU64,
    /// Whether a partition of which the group has committed nothing is read from its end, unless its route says otherwise.
    begins_at_end: bool,
    /// When the thread came up last, in nanoseconds of the monotonic clock.
    came_up_ns: AtomicU64,
}

enum Request {
    Commit(Arc<Commit>),
    /// Fetch a partition anew, from its first message.
    Restart(TopicPartition),
    /// Give everything back by then, and leave the group.
    Close(Deadline),
}

impl GroupMember {
    /// Joins the group of the configuration's `group.id` and starts the member's thread. The transactor commits offsets of
    /// transactional routes that no message goes with.
    pub fn join(
        config: &ClientConfig,
        routes: Vec<Route>,
        settings: GroupSettings,
        transactor: Option<Weak<Transactor>>,
        events: Arc<EventBox>,
    ) -> Result<Self> {
        config.refuse(&OWN_SETTINGS)?;
        let group = config.get("group.id").unwrap_or_default().to_owned();
        if group.is_empty() {
            return Err(Error::Config { property: "group.id".into(), reason: "is missing".into() });
        }
        let mut native = config.clone();
        native.set("enable.auto.commit", "false").set("enable.auto.offset.store", "false");
        native.set_default("auto.offset.reset", "earliest");
        if native.get("group.protocol").is_none_or(|protocol| protocol == "classic") {
            native.set_default("partition.assignment.strategy", "cooperative-sticky");
        }
        let fetch_memory = FetchMemory::configure(&mut native, settings.fetch_memory_bytes, settings.partitions_total);
        let poll_interval = Duration::from_millis(native.effective_number("max.poll.interval.ms")?);
        let client = Client::new(Kind::Consumer, "group member", &native, events, None, |conf| {
            let mask = ffi::RD_KAFKA_EVENT_REBALANCE | ffi::RD_KAFKA_EVENT_OFFSET_COMMIT;
            // SAFETY: the configuration is valid while the client is being made.
            unsafe { ffi::rd_kafka_conf_set_events(conf, mask) };
        })?;
        let fetch_memory = fetch_memory.map(|bytes| FetchMemory::of(&client, bytes, settings.partitions_total));
        let topics: Vec<_> = routes.iter().map(|route| route.topic.clone()).collect();
        let begins_at_end = matches!(native.get("auto.offset.reset"), Some("latest" | "largest" | "end"));
        let shared = Arc::new(Shared::new(client, begins_at_end)?);
        if let Some(transactor) = transactor {
            shared.open_partitions.use_transactor(transactor);
        }
        let member = Member::new(&shared, routes, settings, poll_interval, fetch_memory);
        shared.client.on_topic_renewed(renewal(&shared.open_partitions));
        subscribe(&shared.client, &topics)?;
        let ended = Arc::<Completion<()>>::default();
        let thread = std::thread::Builder::new()
            .name(format!("awoke-member-{group}").chars().take(15).collect())
            .spawn({
                let ended = Arc::clone(&ended);
                move || {
                    let _ending = Ending(ended);
                    member.run();
                }
            })
            .map_err(|error| Error::System { operation: "start the member's thread", detail: error.to_string() })?;
        Ok(Self {
            #[cfg(target_os = "linux")]
            _clock_steps: ClockSteps::watch(on_clock_step(&shared))?,
            shared,
            thread: Mutex::new(Some(thread)),
            ended,
        })
    }

    /// Commits what is stored now; the completion has the broker's answer.
    pub fn commit(&self) -> Result<Arc<Commit>> {
        self.shared.client.check_process()?;
        let commit = Arc::new(Commit::default());
        self.shared.request(Request::Commit(Arc::clone(&commit)))?;
        Ok(commit)
    }

    /// Gives everything back in order and leaves the group: running jobs end, offsets are committed, hooks run.
    ///
    /// Blocks the calling thread until the member's thread has ended, `CLOSE_GRACE` past `timeout` at the most: `false` when it had
    /// not ended then, because a call of librdkafka's did not return. The thread is left to itself. Closing again waits for nothing.
    pub fn close(&self, timeout: Option<Duration>) -> Result<bool> {
        self.shared.client.check_process()?;
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(thread) = thread else { return Ok(true) };
        self.shared.is_closing.store(true, Ordering::Release);
        self.shared.parker.unpark();
        self.shared.request(Request::Close(Deadline::after(timeout)))?;
        let has_ended = || thread.is_finished() || self.ended.wait(&Deadline::after(timeout.map(with_grace))).is_some();
        if !has_ended() {
            let text = "its thread did not end: a call of librdkafka's does not return".into();
            self.shared.client.emit(What::Error { code: Code::TIMED_OUT, text, fatal: false });
            return Ok(false);
        }
        // A panic of the thread has been printed; there is nothing left to save.
        drop(thread.join());
        Ok(true)
    }

    /// Lets a stuck partition go on, from its first message or behind the batch that is not read; `false` when it is not stuck, or there is
    /// no such way. Does not block.
    ///
    /// # Errors
    /// [`Error::Closed`]: the member is closed.
    pub fn resume(&self, at: &TopicPartition) -> Result<bool> {
        self.shared.client.check_process()?;
        match self.shared.open_partitions.way_on(at) {
            None => return Ok(false),
            Some(WayOn::FirstMessage) => self.shared.request(Request::Restart(at.clone()))?,
            Some(WayOn::Beyond(partition, offset)) => partition.seek(offset)?,
        }
        Ok(true)
    }

    /// Partitions, and topics, whose messages do not come any more. Does not block.
    pub fn stuck(&self) -> Vec<Stuck> {
        self.shared.open_partitions.all_stuck()
    }

    /// Makes a revocation or a close that waits for jobs wait no longer. Does not block.
    pub fn hurry(&self) {
        self.shared.is_hurried.store(true, Ordering::Release);
        self.shared.parker.unpark();
    }

    /// The partitions that are assigned now. Does not block.
    pub fn partitions(&self) -> Vec<PartitionState> {
        let all = self.shared.offsets.all().into_iter();
        all.map(|Progress { at, stored, committed, begun, trail }| {
            let seen = self.shared.client.offsets_seen(&at);
            let start = seen.as_ref().map(|seen| if self.shared.begins_at_end { seen.end } else { seen.start });
            let position = stored.or(committed).or(begun).or(start);
            PartitionState { at, stored, committed, position, end_seen: seen.map(|seen| seen.end), trail }
        })
        .collect()
    }

    /// How long ago the member's thread came up last; at most about a third of `max.poll.interval.ms`, but in a rebalance, which waits for
    /// jobs.
    pub fn poll_age(&self) -> Duration {
        Duration::from_nanos(monotonic_ns().saturating_sub(self.shared.came_up_ns.load(Ordering::Relaxed)))
    }

    /// The most bytes that are fetched ahead of each partition that is held; `None` where librdkafka's own settings say it. Does
    /// not block.
    pub fn fetch_queue_bytes(&self) -> Option<u64> {
        Some(self.shared.fetch_queue_bytes.load(Ordering::Relaxed)).filter(|bytes| *bytes > 0)
    }

    /// The error that made the member unusable, if one did.
    pub fn fatal_error(&self) -> Option<(Code, String)> {
        self.shared.client.check_process().ok()?;
        self.shared.client.fatal_error()
    }
}

impl Drop for GroupMember {
    fn drop(&mut self) {
        if self.shared.client.check_process().is_ok() {
            self.hurry();
            drop(self.close(Some(Duration::ZERO)));
        }
    }
}

impl Shared {
    /// Whether there is no use in finding out where to begin.
    fn is_ending(&self) -> bool {
        self.is_hurried.load(Ordering::Acquire) || self.is_closing.load(Ordering::Acquire)
    }

    fn new(client: Arc<Client>, begins_at_end: bool) -> Result<Self> {
        // Errors and statistics come to the same queue as rebalances, so that one thread waits for all.
        // SAFETY: the handle is alive.
        Code::of(unsafe { ffi::rd_kafka_poll_set_consumer(client.handle()) }).check("redirect the main queue")?;
        let queue = Queue::consumer(&client).ok_or(Error::Closed { what: "group member" })?;
        Ok(Self {
            client,
            queue: Arc::new(queue),
            requests: Mutex::default(),
            parker: Arc::default(),
            is_hurried: AtomicBool::new(false),
            is_closing: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
            offsets: Arc::default(),
            open_partitions: Arc::default(),
            fetch_queue_bytes: AtomicU64::new(0),
            begins_at_end,
            came_up_ns: AtomicU64::new(monotonic_ns()),
        })
    }

    fn request(&self, request: Request) -> Result<()> {
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        // Under the lock, so that the thread can't leave between the look and the request.
        if self.is_closed.load(Ordering::Acquire) {
            return Err(Error::Closed { what: "group member" });
        }
        requests.push_back(request);
        drop(requests);
        self.queue.interrupt();
        Ok(())
    }
}

fn subscribe(client: &Client, topics: &[String]) -> Result<()> {
    let list = TopicPartitionList::of_topics(topics)?;
    // SAFETY: handle and list are alive; librdkafka copies the list.
    let code = Code::of(unsafe { ffi::rd_kafka_subscribe(client.handle(), list.as_ptr()) });
    code.check(format!("subscribe to {}", topics.join(", ")))
}

/// The member's thread.
struct Member {
    shared: Arc<Shared>,
    assignment: Assignment,
    offsets: Arc<Offsets>,
    committer: Committer,
    settings: GroupSettings,
    poll_interval: Duration,
    /// `None` where the settings bound it in librdkafka's own way.
    fetch_memory: Option<FetchMemory>,
    /// Rebalances that came while one was being carried out.
    deferred: VecDeque<QueueEvent>,
}

impl Member {
    fn new(
        shared: &Arc<Shared>,
        routes: Vec<Route>,
        settings: GroupSettings,
        poll_interval: Duration,
        fetch_memory: Option<FetchMemory>,
    ) -> Self {
        let offsets = Arc::clone(&shared.offsets);
        let on_stored: Arc<dyn Fn() + Send + Sync> = {
            let queue = Arc::clone(&shared.queue);
            // Once per commit, not once per job: only the store that finds everything clean calls.
            Arc::new(move || queue.interrupt())
        };
        let surroundings = Surroundings {
            client: Arc::clone(&shared.client),
            offsets: Arc::clone(&offsets),
            on_stored,
            siblings: Arc::clone(&shared.open_partitions),
            tells_end: false,
        };
        let committer = Committer::new(
            Arc::clone(&shared.client),
            Arc::clone(&shared.queue),
            Arc::clone(&offsets),
            settings.commit_interval,
        );
        Self {
            shared: Arc::clone(shared),
            assignment: Assignment::new(routes, surroundings),
            offsets,
            committer,
            settings,
            poll_interval,
            fetch_memory,
            deferred: VecDeque::new(),
        }
    }

    fn run(mut self) {
        loop {
            self.shared.came_up_ns.store(monotonic_ns(), Ordering::Relaxed);
            if let Some(deadline) = self.carry_out_requests() {
                self.leave(&deadline);
                break;
            }
            if self.committer.due().is_some_and(|due| due <= Instant::now()) {
                self.committer.begin();
            }
            let event = self.next_event();
            if let Some(event) = event {
                self.handle(&event);
            }
        }
        let mut requests = self.shared.requests.lock().unwrap_or_else(PoisonError::into_inner);
        self.shared.is_closed.store(true, Ordering::Release);
        for request in requests.drain(..) {
            if let Request::Commit(commit) = request {
                commit.complete(Err(Error::Closed { what: "group member" }));
            }
        }
        drop(requests);
        self.committer.abandon();
    }

    /// Returns the deadline of a close, if one was asked for.
    fn carry_out_requests(&mut self) -> Option<Deadline> {
        loop {
            let request = self.shared.requests.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
            match request? {
                Request::Commit(commit) => self.committer.request(commit),
                Request::Restart(at) => self.restart(&at),
                Request::Close(deadline) => return Some(deadline),
            }
        }
    }

    fn next_event(&mut self) -> Option<QueueEvent> {
        if let Some(deferred) = self.deferred.pop_front() {
            return Some(deferred);
        }
        let until = self.wait_until();
        self.shared.queue.poll(&until)
    }

    fn wait_until(&self) -> Deadline {
        // Partitions that were revoked just now keep others from being fetched for a moment.
        let is_unfinished = self.assignment.start() | self.shared.open_partitions.learn_leaders(&self.shared.client);
        let again = is_unfinished.then(|| Instant::now() + LOOKUP_AGAIN);
        Deadline::after(Some(self.poll_interval / 3)).or_earlier(self.committer.due()).or_earlier(again)
    }

    fn handle(&mut self, event: &QueueEvent) {
        match event.kind() {
            ffi::RD_KAFKA_EVENT_REBALANCE => self.rebalance(event),
            ffi::RD_KAFKA_EVENT_OFFSET_COMMIT => self.committer.on_answer(event),
            ffi::RD_KAFKA_EVENT_ERROR => {
                // librdkafka gives a fatal error its cause's code here.
                let fatal = self.shared.client.fatal_error().is_some();
                let (code, text) = (event.code(), event.error_text());
                self.note_topic(code, &text);
                self.shared.client.emit(What::Error { code, text, fatal });
            }
            _ => (),
        }
    }

    /// Notes a topic that is subscribed and can't be read.
    fn note_topic(&self, code: Code, text: &str) {
        let Some(at) = unavailable_topic(text).filter(|_| OpenPartitions::is_final(code)) else { return };
        if self.shared.open_partitions.note_stuck(&at, code, text, None) {
            self.shared.client.emit(What::Stuck { at, code, text: text.to_owned() });
        }
    }

    fn rebalance(&mut self, event: &QueueEvent) {
        let list = event.partitions();
        let partitions = list.partitions();
        if event.code() == Code::ASSIGN_PARTITIONS {
            self.accept(&partitions);
        } else if is_lost(&self.shared.client) {
            self.give_back(&partitions, Hook::Lost, &Deadline::after(Some(self.settings.revoke_timeout)));
            self.unassign(&list);
            self.shared.client.emit(What::Lost(partitions));
        } else {
            self.give_back(&partitions, Hook::Revoked, &Deadline::after(Some(self.settings.revoke_timeout)));
            self.unassign(&list);
            self.shared.client.emit(What::Revoked(partitions));
        }
    }

    fn accept(&mut self, partitions: &[TopicPartition]) {
        let found =
            self.committed(partitions).and_then(|committed| Ok((self.with_starts(partitions, &committed)?, committed)));
        let (list, committed) = match found {
            Ok(found) => found,
            Err(_) if self.shared.is_ending() => return,
            // librdkafka finds out by itself, then. Each assignment must be answered.
            Err(_) if !partitions.iter().any(|at| self.assignment.needs_committed(at)) => {
                (TopicPartitionList::of(partitions).unwrap_or_else(|_| TopicPartitionList::new()), HashMap::new())
            }
            Err(error) => {
                // Assigned without it, reading would begin somewhere else: messages lost, or done again.
                let text = format!("could not find out where to begin: {error}");
                self.shared.client.emit(What::Error { code: error.code(), text, fatal: true });
                return;
            }
        };
        if let Err(error) = self.assignment.open(partitions, &committed) {
            self.shared.client.emit(What::Error { code: Code::UNKNOWN_TOPIC, text: error.to_string(), fatal: false });
        }
        for at in partitions {
            self.shared.open_partitions.clear_stuck(&TopicPartition::new(Arc::clone(&at.topic), -1));
        }
        self.share_memory();
        self.report(assign(&self.shared.client, &list));
        self.shared.client.emit(What::Assigned(partitions.to_vec()));
    }

    /// What the group has committed for partitions; nothing of those without a commit.
    fn committed(&self, partitions: &[TopicPartition]) -> Result<HashMap<TopicPartition, CommittedOffset>> {
        if partitions.is_empty() {
            return Ok(HashMap::new());
        }
        let mut patience = LOOKUP_PATIENCE.0;
        let committed = self.insist(|| {
            let answer = self.shared.client.committed_within(partitions, patience);
            patience = LOOKUP_PATIENCE.1.min(patience * 2);
            answer
        })?;
        Ok(partitions.iter().cloned().zip(committed).filter_map(|(at, committed)| Some((at, committed?))).collect())
    }

    /// A list of partitions with the offsets to begin at: the group's committed one, or else what the route says. Where there is
    /// neither, librdkafka begins as `auto.offset.reset` says.
    ///
    /// librdkafka (2.12.1) would ask for the committed ones by itself, but takes one that a transaction holds up for none at all when
    /// the assignment changes meanwhile, and would begin anew.
    fn with_starts(
        &self,
        partitions: &[TopicPartition],
        committed: &HashMap<TopicPartition, CommittedOffset>,
    ) -> Result<TopicPartitionList> {
        let mut with_starts = TopicPartitionList::new();
        for at in partitions {
            let position = match (committed.get(at), self.assignment.start_of(at)) {
                (Some(found), _) => Some(Position { offset: found.offset, leader_epoch: found.leader_epoch }),
                (None, Some(start)) => {
                    let offset = self.insist(|| start.offset(&self.shared.client, at))?;
                    Some(Position { offset, leader_epoch: -1 })
                }
                (None, None) => None,
            };
            with_starts.add(at, position)?;
        }
        Ok(with_starts)
    }

    /// Asks again when the answer was that it may work later. An offset that a transaction holds up is known when that has ended, if
    /// only by its time-out.
    fn insist<T>(&self, mut ask: impl FnMut() -> Result<T>) -> Result<T> {
        let give_up = Instant::now() + LOOKUP_WITHIN;
        loop {
            match ask() {
                Err(error) if error.is_retriable() && Instant::now() < give_up && !self.shared.is_ending() => {
                    self.shared.parker.park_until(&Deadline::after(Some(LOOKUP_AGAIN)));
                }
                answer => return answer,
            }
        }
    }

    /// Fetches a partition anew from its first message: librdkafka seeks in none whose fetching has ended.
    fn restart(&self, at: &TopicPartition) {
        let Some(partition) = self.assignment.get(at) else { return };
        partition.restarted();
        let restarted = self.restart_list(at).and_then(|list| assign(&self.shared.client, &list));
        if let Err(error) = restarted {
            partition.restart_refused(error.code(), format!("could not be read from its first message: {error}"));
        }
    }

    /// What is to be assigned for a restart: the partition alone, or all where an assignment is replaced as a whole.
    fn restart_list(&self, at: &TopicPartition) -> Result<TopicPartitionList> {
        let at_offset = |offset| Some(Position { offset, leader_epoch: -1 });
        let mut list = TopicPartitionList::new();
        list.add(at, at_offset(StartAt::EARLIEST))?;
        if is_cooperative(&self.shared.client) {
            unassign(&self.shared.client, &list)?;
            return Ok(list);
        }
        let mut unread = Vec::new();
        for each in self.assignment.all().filter(|each| each.topic_partition() != at) {
            match each.next_offset() {
                Some(next) => list.add(each.topic_partition(), at_offset(next))?,
                None => unread.push(each.topic_partition().clone()),
            }
        }
        let starts = self.with_starts(&unread, &self.committed(&unread)?)?;
        for (at, offset, _) in starts.entries() {
            list.add(&at, at_offset(offset).filter(|_| offset != NO_OFFSET))?;
        }
        Ok(list)
    }

    fn unassign(&self, list: &TopicPartitionList) {
        self.report(unassign(&self.shared.client, list));
    }

    fn report(&self, result: Result<()>) {
        if let Err(Error::Kafka { code, detail, .. }) = result {
            self.shared.client.emit(What::Error { code, text: detail, fatal: false });
        }
    }

    /// Ends the work on partitions: no new job, running ones end, offsets committed, hook run, offsets committed again.
    fn give_back(&mut self, partitions: &[TopicPartition], hook: Hook, deadline: &Deadline) {
        self.assignment.withdraw(partitions);
        self.wait_released(partitions, deadline);
        if hook != Hook::Lost {
            self.commit_now(deadline);
        }
        self.assignment.post_hook(partitions, hook);
        self.wait_released(partitions, deadline);
        if hook != Hook::Lost {
            self.commit_now(deadline);
        }
        self.assignment.close(partitions);
        self.share_memory();
    }

    /// Divides the memory for fetched messages among the partitions that are held now.
    fn share_memory(&self) {
        let partitions = self.assignment.len();
        let bytes = self.fetch_memory.as_ref().and_then(|memory| memory.share_among(partitions));
        self.shared.fetch_queue_bytes.store(bytes.unwrap_or(0) as u64, Ordering::Relaxed);
    }

    fn wait_released(&self, partitions: &[TopicPartition], deadline: &Deadline) {
        let is_hurried = || self.shared.is_hurried.load(Ordering::Acquire);
        for at in self.assignment.wait_released(partitions, &self.shared.parker, deadline, is_hurried) {
            self.shared.client.emit(What::JobOverdue(at));
        }
    }

    /// Commits what is stored and waits for the answer, at least a second even when jobs used the time up.
    ///
    /// A commit that fails is tried a few times and then left: whoever gets the partition next begins where the last
    /// commit stands.
    fn commit_now(&mut self, deadline: &Deadline) {
        let grace = Deadline::after(Some(Duration::from_secs(1)));
        let until = if deadline.remaining() > grace.remaining() { deadline } else { &grace };
        for _ in 0..COMMIT_TRIES {
            self.committer.begin();
            while self.committer.is_under_way() && !until.has_passed() {
                match self.shared.queue.poll(until) {
                    Some(event) if event.kind() == ffi::RD_KAFKA_EVENT_REBALANCE => self.deferred.push_back(event),
                    Some(event) => self.handle(&event),
                    None => (),
                }
            }
            if !self.offsets.is_dirty() {
                return;
            }
        }
    }

    /// Answers rebalances that came while this member gave its partitions back: librdkafka does not close before.
    fn answer_deferred(&mut self) {
        for event in std::mem::take(&mut self.deferred) {
            if event.code() == Code::ASSIGN_PARTITIONS {
                // What is assigned now is not read any more.
                let nothing = TopicPartitionList::new();
                let accepted = if is_cooperative(&self.shared.client) { assign } else { unassign };
                self.report(accepted(&self.shared.client, &nothing));
            } else {
                self.unassign(&event.partitions());
            }
        }
    }

    fn leave(&mut self, deadline: &Deadline) {
        let partitions = self.assignment.partitions();
        self.give_back(&partitions, Hook::Shutdown, deadline);
        self.answer_deferred();
        if partitions.is_empty() && is_cooperative(&self.shared.client) {
            // librdkafka (2.12.1) closes a cooperative member that holds nothing without leaving its group: the others would
            // wait out its session. To give the subscription up makes it leave.
            // SAFETY: the handle is alive.
            unsafe { ffi::rd_kafka_unsubscribe(self.shared.client.handle()) };
        }
        let closing = Queue::new(&self.shared.client);
        // SAFETY: handle and queue are alive; the error, if any, is ours to destroy.
        unsafe {
            let error = ffi::rd_kafka_consumer_close_queue(self.shared.client.handle(), closing.as_ptr());
            if !error.is_null() {
                ffi::rd_kafka_error_destroy(error); // After a fatal error there is no group to leave.
                return;
            }
        }
        // Leaving is a matter of one request; a broker that does not answer is not waited for longer than this.
        let until = Deadline::after(Some(deadline.remaining().unwrap_or_default().max(Duration::from_secs(2))));
        // SAFETY: the handle is alive.
        while unsafe { ffi::rd_kafka_consumer_closed(self.shared.client.handle()) } == 0 && !until.has_passed() {
            if let Some(event) = closing.poll(&until)
                && event.kind() == ffi::RD_KAFKA_EVENT_REBALANCE
            {
                self.deferred.push_back(event);
                self.answer_deferred();
            }
        }
    }
}

/// Says that the clock was set, and has the member's thread look at what is due.
#[cfg(target_os = "linux")]
fn on_clock_step(shared: &Arc<Shared>) -> OnStep {
    let shared = Arc::clone(shared);
    Box::new(move |by_ns| {
        shared.client.emit(What::ClockStepped { by_ms: by_ns / 1_000_000 });
        shared.queue.interrupt();
    })
}

/// Has the partitions of a topic that was made again begin anew.
pub(super) fn renewal(open: &Arc<OpenPartitions>) -> OnRenewed {
    let open = Arc::downgrade(open);
    Box::new(move |topic| {
        if let Some(open) = open.upgrade() {
            open.renew(topic);
        }
    })
}

fn with_grace(timeout: Duration) -> Duration {
    timeout.saturating_add(CLOSE_GRACE)
}

fn is_lost(client: &Client) -> bool {
    // SAFETY: the handle is alive.
    unsafe { ffi::rd_kafka_assignment_lost(client.handle()) != 0 }
}

fn is_cooperative(client: &Client) -> bool {
    // SAFETY: the handle is alive; the string is a constant.
    let protocol = unsafe { crate::kafka::text_of(ffi::rd_kafka_rebalance_protocol(client.handle())) };
    protocol == "COOPERATIVE"
}

fn assign(client: &Client, list: &TopicPartitionList) -> Result<()> {
    // SAFETY: handle and list are alive; librdkafka copies the list.
    unsafe {
        if is_cooperative(client) {
            check("assign", ffi::rd_kafka_incremental_assign(client.handle(), list.as_ptr()))
        } else {
            Code::of(ffi::rd_kafka_assign(client.handle(), list.as_ptr())).check("assign")
        }
    }
}

fn unassign(client: &Client, list: &TopicPartitionList) -> Result<()> {
    // SAFETY: as above; a null list gives everything back.
    unsafe {
        if is_cooperative(client) && !list.is_empty() {
            check("unassign", ffi::rd_kafka_incremental_unassign(client.handle(), list.as_ptr()))
        } else {
            Code::of(ffi::rd_kafka_assign(client.handle(), std::ptr::null())).check("unassign")
        }
    }
}

/// # Safety
/// `error` is null or an error that is ours to destroy.
unsafe fn check(operation: &str, error: *mut ffi::rd_kafka_error_t) -> Result<()> {
    if error.is_null() {
        return Ok(());
    }
    // SAFETY: the caller's promise.
    unsafe {
        let code = Code::of(ffi::rd_kafka_error_code(error));
        let text = crate::kafka::text_of(ffi::rd_kafka_error_string(error));
        ffi::rd_kafka_error_destroy(error);
        Err(Error::kafka(operation, code, text))
    }
}
