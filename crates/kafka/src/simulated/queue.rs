//! The queues of a client: events, or the fetched messages of one partition.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use awoke_wake::simulation::{self, TaskId};

use super::cluster::{Calls, State};
use super::groups::Listing;
use super::{
    Batch, Client, Code, DescribedTopic, EventKind, FetchError, LogRecord, TopicPartition, TopicPartitionList,
};
use crate::clock::{self, Deadline};
use crate::{Fetched, Result};

/// Called when a queue turns non-empty.
pub(super) type Listener = Arc<dyn Fn() + Send + Sync>;

/// A queue of a client.
pub struct Queue {
    client: Arc<Client>,
    place: Place,
    /// The listener of the queue was set by this reference.
    is_listening: AtomicBool,
}

enum Place {
    Events(usize),
    Messages(TopicPartition),
}

/// The state of a queue of events.
#[derive(Default)]
pub(super) struct EventQueue {
    events: VecDeque<Event>,
    is_interrupted: bool,
    waiting: Vec<TaskId>,
    pub(super) listener: Option<Listener>,
}

/// The messages of one pull.
pub struct Pull {
    /// The messages.
    pub batch: Batch,
    /// True if the queue was seen empty: then the next message is announced.
    pub is_exhausted: bool,
    /// Fetch errors that lay between the messages.
    pub errors: Vec<FetchError>,
}

/// Something that came out of a queue.
pub struct Event {
    pub(super) kind: EventKind,
    pub(super) code: Code,
    pub(super) list: TopicPartitionList,
    /// Of a fetched message.
    record: Option<Arc<LogRecord>>,
    /// Of an error.
    text: Option<String>,
    /// Of an answer about groups.
    pub(super) groups: Option<Listing>,
    /// Of an answer about topics.
    pub(super) topics: Vec<DescribedTopic>,
}

impl Event {
    pub(super) const fn new(kind: EventKind, code: Code, list: TopicPartitionList) -> Self {
        Self { kind, code, list, record: None, text: None, groups: None, topics: Vec::new() }
    }

    pub(super) fn of_record(record: Arc<LogRecord>) -> Self {
        let list = TopicPartitionList::new();
        Self { record: Some(record), ..Self::new(EventKind::Messages, Code::NONE, list) }
    }

    pub(super) fn of_error(code: Code, text: String) -> Self {
        Self { text: Some(text), ..Self::new(EventKind::Error, code, TopicPartitionList::new()) }
    }

    pub(super) fn of_groups(groups: std::result::Result<Listing, Code>) -> Self {
        let code = groups.as_ref().err().copied().unwrap_or(Code::NONE);
        Self { groups: groups.ok(), ..Self::new(EventKind::Groups, code, TopicPartitionList::new()) }
    }

    pub(super) fn of_topics(topics: std::result::Result<Vec<DescribedTopic>, Code>) -> Self {
        let code = topics.as_ref().err().copied().unwrap_or(Code::NONE);
        let topics = topics.unwrap_or_default();
        Self { topics, ..Self::new(EventKind::Topics, code, TopicPartitionList::new()) }
    }

    /// Returns the messages of an event that has fetched ones.
    pub fn fetched(&self) -> Vec<Fetched<'_>> {
        let Some(record) = &self.record else { return Vec::new() };
        let bytes = |value: &Option<Vec<u8>>| value.clone().unwrap_or_default().into();
        let headers = record.headers.iter().map(|(name, value)| (name.into(), bytes(value))).collect();
        vec![Fetched { value: bytes(&record.value), headers }]
    }

    /// Returns its kind.
    pub const fn kind(&self) -> EventKind {
        self.kind
    }

    /// Returns its error code.
    pub const fn code(&self) -> Code {
        self.code
    }

    /// Returns the text of its error.
    pub fn error_text(&self) -> String {
        self.text.clone().unwrap_or_else(|| self.code.description())
    }

    /// Returns a copy of its partitions.
    pub fn partitions(&self) -> TopicPartitionList {
        self.list.clone()
    }
}

impl State {
    /// Puts an event into a queue.
    pub(super) fn put_event(&mut self, queue: usize, event: Event, calls: &mut Calls) {
        let was_empty = self.queues[queue].events.is_empty();
        self.queues[queue].events.push_back(event);
        self.note_put(queue, was_empty, calls);
    }

    /// Moves the events of one queue to another one.
    pub(super) fn forward(&mut self, from: usize, to: usize, calls: &mut Calls) {
        let mut events = std::mem::take(&mut self.queues[from].events);
        let was_empty = self.queues[to].events.is_empty() && !events.is_empty();
        self.queues[to].events.append(&mut events);
        self.note_put(to, was_empty, calls);
    }

    /// Notes that something was put into a queue. The listener is called only when it has turned non-empty.
    pub(super) fn note_put(&mut self, queue: usize, was_empty: bool, calls: &mut Calls) {
        let queue = &mut self.queues[queue];
        calls.wakes.append(&mut queue.waiting);
        calls.listeners.extend(queue.listener.clone().filter(|_| was_empty));
    }

    /// Takes the interrupt of a queue. Returns whether there was one.
    pub(super) fn take_interrupt(&mut self, queue: usize) -> bool {
        std::mem::take(&mut self.queues[queue].is_interrupted)
    }

    /// Has the present task woken when something happens in a queue.
    pub(super) fn wait_in(&mut self, queue: usize) {
        let current = simulation::current();
        let waiting = &mut self.queues[queue].waiting;
        if !waiting.contains(&current) {
            waiting.push(current);
        }
    }
}

/// Returns the moment of a deadline.
pub(super) fn moment_of(deadline: &Deadline) -> Option<Instant> {
    deadline.remaining().map(|left| clock::now() + left)
}

impl Queue {
    /// Makes a queue of its own.
    pub fn new(client: &Arc<Client>) -> Self {
        let mut state = client.cluster.state();
        state.queues.push(EventQueue::default());
        Self {
            client: Arc::clone(client),
            place: Place::Events(state.queues.len() - 1),
            is_listening: AtomicBool::new(false),
        }
    }

    /// Returns the queue of a producer's delivery reports.
    pub fn main(client: &Arc<Client>) -> Self {
        Self {
            client: Arc::clone(client),
            place: Place::Events(client.main_queue),
            is_listening: AtomicBool::new(false),
        }
    }

    /// Returns the queue of a consumer.
    ///
    /// # Errors
    /// None.
    pub fn consumer(client: &Arc<Client>) -> Result<Self> {
        Ok(Self::main(client))
    }

    /// Returns the fetch queue of one partition.
    ///
    /// # Errors
    /// None.
    pub fn partition(client: &Arc<Client>, at: &TopicPartition) -> Result<Self> {
        client.cluster.state().clients[client.id].partitions.entry(at.clone()).or_default().has_queue = true;
        Ok(Self {
            client: Arc::clone(client),
            place: Place::Messages(at.clone()),
            is_listening: AtomicBool::new(false),
        })
    }

    pub(super) const fn events(&self) -> usize {
        match self.place {
            Place::Events(queue) => queue,
            Place::Messages(_) => panic!("it is the queue of a partition"),
        }
    }

    /// Waits for the next event; `None` when the deadline passed or `interrupt` was called. Blocks the present task.
    pub fn poll(&self, deadline: &Deadline) -> Option<Event> {
        let (queue, until) = (self.events(), moment_of(deadline));
        simulation::pause();
        loop {
            {
                let mut state = self.client.cluster.state();
                if let Some(event) = state.queues[queue].events.pop_front() {
                    return Some(event);
                }
                if state.take_interrupt(queue) || deadline.has_passed() {
                    let has_messages = state.clients[self.client.id].partitions.values().any(|each| !each.has_queue);
                    drop(state);
                    if has_messages && simulation::random(4) == 0 {
                        simulation::pause(); // Something may come before the task acts on what it has seen.
                    }
                    return None;
                }
                state.wait_in(queue);
            }
            simulation::block(until);
        }
    }

    /// Returns whether nothing is in it now.
    pub fn is_empty(&self) -> bool {
        let (queue, state) = (self.events(), self.client.cluster.state());
        let client = &state.clients[self.client.id];
        state.queues[queue].events.is_empty() && (queue != client.main_queue || client.reports.is_empty())
    }

    /// Makes the `poll` that is under way, or the next one, return at once.
    pub fn interrupt(&self) {
        let waiting = {
            let mut state = self.client.cluster.state();
            let queue = &mut state.queues[self.events()];
            queue.is_interrupted = true;
            std::mem::take(&mut queue.waiting)
        };
        waiting.into_iter().for_each(simulation::wake);
    }

    /// Has `listener` called when the queue turns non-empty.
    pub fn on_non_empty<F: Fn() + Send + Sync + 'static>(&self, listener: F) {
        self.is_listening.store(true, Ordering::Relaxed);
        self.listen(Some(Arc::new(listener)));
    }

    /// Ends the calls of the listener. One that another reference has set stays.
    pub fn stop_listening(&self) {
        if self.is_listening.swap(false, Ordering::Relaxed) {
            self.listen(None);
        }
    }

    fn listen(&self, listener: Option<Listener>) {
        let mut state = self.client.cluster.state();
        let earlier = match &self.place {
            Place::Events(queue) => std::mem::replace(&mut state.queues[*queue].listener, listener),
            Place::Messages(at) => {
                let partition = state.clients[self.client.id].partitions.entry(at.clone()).or_default();
                std::mem::replace(&mut partition.listener, listener)
            }
        };
        drop(state);
        drop(earlier);
    }

    /// Takes the messages that are there, up to both limits. Other tasks may run in the middle of it.
    pub fn pull(&self, at: &TopicPartition, messages_max: usize, bytes_max: usize) -> Pull {
        let half = if messages_max > 1 && simulation::random(4) == 0 { messages_max / 2 } else { messages_max };
        let mut taken = Vec::new();
        let mut is_exhausted = self.take(&mut taken, half, bytes_max);
        if half < messages_max && !is_exhausted {
            simulation::pause();
            is_exhausted = self.take(&mut taken, messages_max, bytes_max);
        }
        self.client.cluster.wake();
        Pull { batch: Batch::new(at.clone(), taken), is_exhausted, errors: self.take_end() }
    }

    /// Takes the end of what is committed, if it came.
    fn take_end(&self) -> Vec<FetchError> {
        let Place::Messages(at) = &self.place else { return Vec::new() };
        let mut state = self.client.cluster.state();
        let partition = state.clients[self.client.id].partitions.get_mut(at);
        let has_ended = partition.is_some_and(|partition| std::mem::take(&mut partition.has_ended));
        let end = FetchError { code: Code::PARTITION_EOF, text: String::new(), offset: -1 };
        has_ended.then_some(end).into_iter().collect()
    }

    /// Returns whether the queue was seen empty.
    fn take(&self, taken: &mut Vec<Arc<super::LogRecord>>, messages_max: usize, bytes_max: usize) -> bool {
        let Place::Messages(at) = &self.place else { return true };
        let mut state = self.client.cluster.state();
        let Some(partition) = state.clients[self.client.id].partitions.get_mut(at) else { return true };
        let mut bytes = 0;
        while taken.len() < messages_max && bytes < bytes_max {
            let Some(record) = partition.take() else { return true };
            bytes += record.value.as_ref().map_or(0, Vec::len);
            taken.push(record);
        }
        false
    }

    /// Drops the content of the queue.
    pub fn discard(&self, _at: &TopicPartition) {
        let Place::Messages(at) = &self.place else { return };
        if let Some(partition) = self.client.cluster.state().clients[self.client.id].partitions.get_mut(at) {
            partition.messages.clear();
        }
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.stop_listening();
    }
}
