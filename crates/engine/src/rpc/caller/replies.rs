//! Reads the caller's partition of the reply topic, ends calls at their deadlines, and finds out when no reply can
//! come.
//!
//! A caller reads its partition from the offset that was the end before the first call: no reply can be missed, and
//! no group is joined. A thread that waits for a reply serves the queue if no other thread does, and so takes its
//! own reply without a change of threads. It leads; the other waiting threads follow, and when it has its reply,
//! the first of them becomes the leader. While a task of an event loop waits, the loop serves the queue
//! (`LoopService`).
//!
//! The thread `awoke-replies`:
//! 1. Wait until a reply comes while no thread leads and no loop serves it in time, or something is due.
//! 2. Serve the queue, if no thread leads.
//! 3. End calls whose deadline has passed. Look up the responders' group if calls have waited long. End all calls
//!    if the broker of the
//!    reply partition is gone.
//! 4. End when the caller is closed.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use super::call::{Call, Failure};
use super::calls::Calls;
use super::waiting::serves_for;
use crate::clock::{self, Activity, Deadline, Due, Timed};
use crate::events::{EventBox, What};
use crate::fork_guard::Birthplace;
use crate::kafka::{
    Client, ClientConfig, ClientOptions, Code, EventKind, Kind, PartitionInfo, Position, Presence, Queue, QueueEvent,
    TopicPartition, TopicPartitionList,
};
use crate::wake::{Leadership, Listener, LoopService, Parker, Place, Served, Tokens, Waker};
use crate::{Error, Result};

/// The interval at which the end of a partition without a leader is looked up.
const LEADER_RETRY_INTERVAL: Duration = Duration::from_millis(100);
/// Time for the lookup of a partition's leader while a broker is unreachable.
const LEADER_TIMEOUT: Duration = Duration::from_secs(1);

/// Time for the lookup of the responders' group.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(5);

/// Records that a thread serves after its own reply has come.
const SERVED_FOR_OTHERS_MAX: usize = 64;

/// In place of a call's number: the wait of a task ends. No call has it.
const WAIT_OF_LOOP: u64 = 0;

/// The caller's partition of the reply topic.
pub(super) struct Replies {
    client: Arc<Client>,
    queue: Queue,
    at: TopicPartition,
    /// The caller's part of the ids of its calls.
    caller: u64,
    pub(super) calls: Arc<Calls>,
    /// The responders' group.
    group: String,
    pub(super) serving: Arc<Serving>,
    state: Mutex<State>,
    is_closing: AtomicBool,
}

/// The threads that serve the queue. The queue's listener has a part in it.
#[derive(Default)]
pub(super) struct Serving {
    /// The thread that serves the queue. Its lock is taken under the queue's; no librdkafka function is called
    /// under it.
    pub(super) leadership: Leadership,
    /// The parking place of the thread `awoke-replies`.
    parker: Parker,
    /// The event loop that serves the queue while its tasks wait.
    of_loop: LoopService,
}

impl Serving {
    /// Wakes the thread `awoke-replies` if no thread leads. Called by the client's threads, under the queue's lock.
    fn on_non_empty(&self) {
        if !self.leadership.is_led() {
            self.wake();
        }
    }

    /// Has the event loop or the thread `awoke-replies` serve the queue.
    fn wake(&self) {
        if self.of_loop.tell() {
            self.parker.unpark();
        }
    }
}

#[derive(Default)]
struct State {
    /// When the thread wakes by itself.
    armed: Option<Instant>,
    /// When the group lookup that is under way began.
    lookup_began: Option<Instant>,
    /// When the last group lookup began, if it found no member.
    absent: Option<Instant>,
    /// `true` if any reply has come.
    has_answered: bool,
    /// Brokers that could not be reached since the last reply.
    suspects: BTreeSet<i32>,
    is_in_trouble: bool,
    /// The broker that led the partition when last heard.
    leader: i32,
}

impl std::fmt::Debug for Replies {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Replies({})", self.at)
    }
}

/// The names of caller and service.
pub(super) struct Names {
    pub(super) caller: u64,
    pub(super) group: String,
    pub(super) calls_topic: String,
    pub(super) replies_topic: String,
}

impl Replies {
    /// Makes the client, looks up the end of a partition, and begins to fetch from there. Also returns the number
    /// of partitions of the topic of requests. Blocks the calling thread.
    pub(super) fn new(
        config: &ClientConfig,
        events: Arc<EventBox>,
        names: Names,
        calls: Arc<Calls>,
        deadline: &Deadline,
    ) -> Result<(Arc<Self>, usize)> {
        let mut native = config.clone();
        native
            .set_default("group.id", "awoke-caller") // librdkafka requires a name; no group is joined.
            .set_default("fetch.error.backoff.ms", "50")
            .set("auto.offset.reset", "latest")
            .set("enable.auto.commit", "false")
            .set("enable.auto.offset.store", "false");
        let options = ClientOptions::default().with_errors();
        let client = Client::new(Kind::Consumer, "caller", &native, events, options)?;
        let queue = Queue::consumer(&client)?;
        // Before the first fetch: later lookups wait behind it on the same connection.
        let calls_partitions = partitions_of(&client, &names.calls_topic, deadline)?.len();
        let partitions = partitions_of(&client, &names.replies_topic, deadline)?;
        let chosen = &partitions[(names.caller % partitions.len() as u64) as usize];
        let at = TopicPartition::new(names.replies_topic.as_str(), chosen.partition);
        let offset = end_of(&client, &queue, &at, deadline)?;
        let mut list = TopicPartitionList::new();
        list.add(&at, Some(Position { offset, leader_epoch: -1 }))?;
        client.set_assignment(&list).check(format!("read replies from {at}"))?;
        let replies = Arc::new(Self {
            client,
            queue,
            at,
            caller: names.caller,
            calls,
            group: names.group,
            serving: Arc::default(),
            state: Mutex::new(State { leader: chosen.leader, ..State::default() }),
            is_closing: AtomicBool::new(false),
        });
        clock::register(&replies);
        let serving = Arc::clone(&replies.serving);
        replies.queue.on_non_empty(move || serving.on_non_empty());
        // Records that came before the listener would keep the queue from turning non-empty again.
        if !replies.queue.is_empty() {
            replies.serving.parker.unpark();
        }
        Ok((replies, calls_partitions))
    }

    pub(super) const fn at(&self) -> &TopicPartition {
        &self.at
    }

    /// The process that the caller belongs to.
    pub(super) fn birthplace(&self) -> Birthplace {
        self.client.birthplace()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the thread at this moment at the latest.
    pub(super) fn arm(&self, moment: Instant) {
        let mut state = self.state();
        if state.armed.is_none_or(|armed| moment < armed) {
            state.armed = Some(moment);
            drop(state);
            self.serving.parker.unpark();
        }
    }

    /// The thread.
    pub(super) fn run(&self) {
        let mut loop_until = None;
        while !self.is_closing.load(Ordering::Acquire) {
            let armed = self.state().armed;
            self.serving.parker.park_until(&Deadline::NEVER.or_earlier(armed).or_real(loop_until));
            let is_early = self.serving.of_loop.is_early(&mut loop_until, clock::real_now());
            if !is_early {
                self.serve_if_free();
            }
            if !self.disarm() && is_early {
                clock::changed();
                continue;
            }
            let due = self.calls.run_due(clock::now());
            if let Some(next) = due.next {
                self.arm_at_latest(next);
            }
            clock::changed();
            let is_doubtful = due.needs_lookup || self.state().is_in_trouble;
            let is_broken = is_doubtful && self.is_partition_unreachable();
            if due.needs_lookup && !is_broken {
                self.look_up_group();
            }
        }
    }

    /// Forgets a moment that has come, before `run_due`: a call that is added after it arms again. Returns whether
    /// there is something to do. A moment that has not come stays: the next call needs no wake-up then.
    fn disarm(&self) -> bool {
        let mut state = self.state();
        let has_come = state.armed.take_if(|moment| *moment <= clock::now()).is_some();
        has_come || state.is_in_trouble
    }

    fn arm_at_latest(&self, moment: Instant) {
        let mut state = self.state();
        state.armed = Some(state.armed.map_or(moment, |armed| armed.min(moment)));
    }

    /// Serves the records that are there, if no thread leads.
    fn serve_if_free(&self) {
        if self.serving.leadership.try_take() {
            self.serve(None, &Deadline::after(Some(Duration::ZERO)));
            self.leave(Place::Leader);
        }
    }

    /// Serves the queue until it is empty, waiting for the first record. When the thread's own call is ready, it
    /// serves a bounded number of records more. Blocks the calling thread, which leads.
    pub(super) fn serve(&self, mine: Option<&Call>, deadline: &Deadline) {
        let mut next = self.queue.poll(deadline);
        let mut for_others = SERVED_FOR_OTHERS_MAX;
        while let Some(event) = next {
            self.handle(&event);
            if mine.is_some_and(Call::is_ready) {
                for_others -= 1;
                if for_others == 0 {
                    return;
                }
            }
            next = self.queue.poll(&Deadline::after(Some(Duration::ZERO)));
        }
    }

    fn handle(&self, event: &QueueEvent) {
        match event.kind() {
            EventKind::Messages => {
                let fetched = event.fetched();
                if fetched.is_empty() {
                    return;
                }
                for each in fetched {
                    self.calls.deliver(self.caller, &each);
                }
                let mut state = self.state();
                state.suspects.clear();
                (state.absent, state.has_answered) = (None, true);
            }
            EventKind::Groups => self.on_presence(event),
            EventKind::Error => {
                let (code, text) = (event.code(), event.error_text());
                if let Some(broker) = broker_of(&text) {
                    let mut state = self.state();
                    state.suspects.insert(broker);
                    state.is_in_trouble = true;
                    drop(state);
                    self.serving.parker.unpark();
                }
                self.client.emit(What::Error { code, text, fatal: code == Code::FATAL });
            }
            EventKind::Rebalance | EventKind::Commit | EventKind::Owned | EventKind::Topics | EventKind::Other => (),
        }
    }

    /// Looks up the responders' group, unless a lookup is under way.
    fn look_up_group(&self) {
        if self.group.is_empty() {
            return; // The caller was made with `checks_group=False`.
        }
        let now = clock::now();
        let mut state = self.state();
        // A lookup without an answer counts as ended after twice its time.
        if state.lookup_began.is_some_and(|began| now < began + 2 * LOOKUP_TIMEOUT) {
            return;
        }
        state.lookup_began = Some(now);
        drop(state);
        if let Err(error) = self.client.ask_for_groups(&self.queue, LOOKUP_TIMEOUT) {
            self.client.emit(What::Error { code: error.code(), text: error.to_string(), fatal: false });
        }
    }

    /// Ends calls that were open during two lookups without a member: a responder that has just started joins
    /// meanwhile.
    fn on_presence(&self, event: &QueueEvent) {
        let mut state = self.state();
        let Some(began) = state.lookup_began.take() else { return };
        let is_absent = match event.presence_of(&self.group) {
            Presence::Empty => true,
            // A group that has answered exists: brokers do not list it to this client, which may not see it.
            Presence::Unlisted => !state.has_answered,
            Presence::Present | Presence::Unknown => false,
        };
        if !is_absent {
            state.absent = None;
            return;
        }
        let before = state.absent.replace(began);
        drop(state);
        if let Some(before) = before {
            let text = format!("group {:?}, which should answer, has no member", self.group);
            self.calls.fail_unanswered(before, &Failure::NobodyThere(text));
        }
    }

    /// Returns whether the broker that leads the partition can't be reached; all calls end then. Blocks the calling
    /// thread.
    fn is_partition_unreachable(&self) -> bool {
        let (suspects, known) = {
            let mut state = self.state();
            state.is_in_trouble = false;
            (state.suspects.clone(), state.leader)
        };
        if suspects.is_empty() {
            return false;
        }
        let now = clock::now();
        let leader = self.leader().unwrap_or(known);
        self.state().leader = leader;
        let is_broken = leader < 0 || suspects.contains(&leader);
        if is_broken {
            let text = format!("the broker that leads {} can't be reached, so no reply can come", self.at);
            self.calls.fail_unanswered(now, &Failure::Unavailable(text));
        } else {
            self.state().suspects.clear();
        }
        is_broken
    }

    /// Returns the broker that leads the partition now, -1 for none; `None` if no broker answers.
    fn leader(&self) -> Option<i32> {
        let deadline = Deadline::after(Some(LEADER_TIMEOUT));
        let metadata = self.client.metadata(Some(&self.at.topic), &deadline).ok()?;
        let topic = metadata.topics.into_iter().next()?;
        topic.partitions.iter().find(|each| each.partition == self.at.partition).map(|each| each.leader)
    }

    pub(super) fn leave(&self, place: Place) {
        if self.serving.leadership.leave(place) {
            self.wake_if_needed();
        }
    }

    fn wake_if_needed(&self) {
        if !self.queue.is_empty() {
            self.serving.wake();
        }
    }

    /// Ends the thread's loop. Does not wait for it.
    pub(super) fn close(&self) {
        self.queue.stop_listening();
        self.is_closing.store(true, Ordering::Release);
        self.serving.parker.unpark();
        self.queue.interrupt();
    }

    /// Has a token posted to the mailbox of an event loop when the next part of a call is there. The loop serves the
    /// queue until then. Returns `false` if it is there. Does not block.
    pub(super) fn await_on_loop(self: &Arc<Self>, call: &Call, mailbox: &Arc<Tokens>, token: u64) -> bool {
        if !call.register(Waker::Mailbox { mailbox: Arc::clone(mailbox), token }) {
            return false;
        }
        let replies: Weak<Self> = Arc::downgrade(self);
        self.serving.of_loop.begin(mailbox, replies);
        let listener = Waker::Listener { listener: Arc::<Self>::clone(self), token: WAIT_OF_LOOP };
        if !call.register(listener) {
            self.tell(WAIT_OF_LOOP);
        }
        true
    }
}

impl Served for Replies {
    fn serve_now(&self) {
        self.serving.of_loop.note_served();
        self.serve_if_free();
    }
}

impl Timed for Replies {
    fn name(&self) -> String {
        format!("the caller that reads {}", self.at)
    }

    fn due(&self) -> Due {
        self.calls.due()
    }

    fn activity(&self) -> Activity {
        let is_busy = self.state().lookup_began.is_some() && self.calls.count() > 0;
        Activity { is_busy, running: 0, waiting: self.calls.waiting_jobs() }
    }

    fn look(&self) {
        self.serving.parker.unpark();
    }
}

impl Listener for Replies {
    /// Ends the poll of the leader whose call is ready, or the wait of a task.
    fn tell(&self, token: u64) {
        if token == WAIT_OF_LOOP {
            // A leader looks at the queue when it leaves.
            if self.serving.of_loop.end() && !self.serving.leadership.is_led() {
                self.wake_if_needed();
            }
            return;
        }
        // Not from the leader's own thread, which notices.
        if !serves_for(token) {
            self.queue.interrupt();
        }
    }
}

impl Drop for Replies {
    fn drop(&mut self) {
        if self.client.check_process().is_ok() {
            self.queue.stop_listening();
            self.client.clear_assignment();
        }
    }
}

/// Returns the end offset of a partition. A new topic may have no leader yet: the lookup is repeated until the
/// deadline.
fn end_of(client: &Client, queue: &Queue, at: &TopicPartition, deadline: &Deadline) -> Result<i64> {
    loop {
        match client.end_offset(at, deadline) {
            Err(error) if error.is_retriable() && !deadline.has_passed() => {
                queue.poll(&deadline.or_within(Some(LEADER_RETRY_INTERVAL)));
            }
            found => return found,
        }
    }
}

/// Returns the partitions of a topic; at least one.
fn partitions_of(client: &Client, topic: &str, deadline: &Deadline) -> Result<Vec<PartitionInfo>> {
    let metadata = client.metadata(Some(topic), deadline)?;
    let partitions = metadata.topics.into_iter().next().map_or_else(Vec::new, |topic| topic.partitions);
    if partitions.is_empty() {
        return Err(Error::kafka(format!("describe topic {topic}"), Code::UNKNOWN_TOPIC, ""));
    }
    Ok(partitions)
}

/// Returns the broker that a librdkafka error is about: its text begins with `host:port/id: `.
fn broker_of(text: &str) -> Option<i32> {
    let (name, _) = text.split_once(": ")?;
    name.rsplit_once('/')?.1.parse().ok()
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;

    #[test]
    fn errors_name_their_broker() {
        assert_eq!(broker_of("127.0.0.1:9092/3: Connect to ipv4#127.0.0.1:9092 failed: refused"), Some(3));
        assert_eq!(broker_of("127.0.0.1:9092/bootstrap: Connect failed"), None);
        assert_eq!(broker_of("2/3 brokers are down"), None);
    }
}
