//! Calls to the brokers that are neither produce nor consume: topics, offsets, metadata.
//!
//! An answer arrives on the client's main queue, which one thread of ours serves:
//! 1. wait for the next event;
//! 2. turn it into an outcome and complete the call that asked;
//! 3. end when the admin is closed, after every call has been answered or failed.

use std::ffi::c_char;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::admin_calls::{Call, Calls, Pending};
use super::{
    Client, ClientConfig, ClientOptions, Code, Kind, Metadata, Position, Queue, QueueEvent, TopicPartition,
    TopicPartitionList, c_string, ffi, text_of,
};
use crate::clock::Deadline;
use crate::events::EventBox;
use crate::{Error, Result};

/// So often a client that no broker has let in looks whether all refuse it.
const SLICE: Duration = Duration::from_millis(250);

/// A topic to create.
#[derive(Clone, Debug)]
pub struct NewTopic {
    /// Its name.
    pub name: String,
    /// The number of partitions; -1 for the broker's default.
    pub partitions: i32,
    /// On how many brokers each; -1 for the broker's default.
    pub replicas: i32,
    /// Topic settings by name.
    pub config: Vec<(String, String)>,
}

/// One partition's offset in an answer.
#[derive(Clone, Debug)]
pub struct GroupOffset {
    /// The partition.
    pub at: TopicPartition,
    /// The offset; negative when there is none.
    pub offset: i64,
    /// Why there is none.
    pub error: Option<Code>,
}

/// Which offset of a partition.
#[derive(Clone, Copy, Debug)]
pub enum OffsetAt {
    /// The first that is still there.
    Earliest,
    /// One past the last.
    Latest,
    /// The first at or after this time in milliseconds since 1970.
    Time(i64),
}

/// The outcome of an admin call.
#[derive(Clone, Debug)]
pub enum AdminOutcome {
    /// Topics created or deleted: name, and the error of each that was not.
    Topics(Vec<(String, Option<(Code, String)>)>),
    /// Offsets.
    Offsets(Vec<GroupOffset>),
}

/// A client for admin calls.
pub struct Admin {
    client: Arc<Client>,
    queue: Arc<Queue>,
    bootstrap_servers: String,
    calls: Arc<Calls>,
    is_closing: Arc<AtomicBool>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Admin {
    /// Makes the client and starts its thread.
    pub fn new(config: &ClientConfig, events: Arc<EventBox>) -> Result<Self> {
        let client = Client::new(Kind::Admin, "admin", config, events, ClientOptions::default())?;
        let queue = Arc::new(Queue::main(&client));
        let calls = Arc::new(Calls::default());
        let is_closing = Arc::new(AtomicBool::new(false));
        let thread = std::thread::Builder::new()
            .name("awoke-admin".into())
            .spawn({
                let (queue, calls, is_closing) = (Arc::clone(&queue), Arc::clone(&calls), Arc::clone(&is_closing));
                let client = Arc::clone(&client);
                move || serve(&client, &queue, &calls, &is_closing)
            })
            .map_err(|error| Error::System { operation: "start the admin thread", detail: error.to_string() })?;
        let bootstrap_servers = config.get("bootstrap.servers").unwrap_or("(no bootstrap.servers)").to_owned();
        Ok(Self { client, queue, bootstrap_servers, calls, is_closing, thread: Mutex::new(Some(thread)) })
    }

    /// Asks for one topic, or for all. Blocks the calling thread.
    pub fn metadata(&self, topic: Option<&str>, timeout: Duration) -> Result<Metadata> {
        let deadline = Deadline::after(Some(timeout));
        loop {
            // A client that was let in waits for the answer; one that was not looks now and then whether it ever will
            // be.
            let slice = (!self.client.was_let_in()).then(|| Instant::now() + SLICE);
            let (operation, code) = match self.client.metadata(topic, &deadline.or_earlier(slice)) {
                Err(Error::Kafka { operation, code, .. }) if matches!(code, Code::TRANSPORT | Code::TIMED_OUT) => {
                    (operation, code)
                }
                other => return other,
            };
            if let Some(failure) = self.client.access_failure() {
                return Err(Error::kafka(operation, failure.code, failure.text));
            }
            if deadline.has_passed() {
                return Err(Error::kafka(operation, code, self.no_answer_text(timeout)));
            }
        }
    }

    /// Creates topics; the outcome says of each whether it was.
    pub fn create_topics(&self, topics: &[NewTopic], timeout: Duration) -> Result<Arc<Call>> {
        let names = topics.iter().map(|topic| topic.name.as_str()).collect::<Vec<_>>().join(", ");
        self.check_open()?;
        let mut natives = Vec::with_capacity(topics.len());
        for topic in topics {
            match native_topic(topic) {
                Ok(native) => natives.push(native),
                Err(error) => {
                    destroy_topics(&mut natives);
                    return Err(error);
                }
            }
        }
        let call = self.start(ffi::rd_kafka_admin_op_t::RD_KAFKA_ADMIN_OP_CREATETOPICS, &names, timeout, |options| {
            // SAFETY: handle, queue and options are alive; librdkafka copies the topics.
            unsafe {
                ffi::rd_kafka_CreateTopics(
                    self.client.handle(),
                    natives.as_mut_ptr(),
                    natives.len(),
                    options,
                    self.queue.as_ptr(),
                );
            }
        });
        destroy_topics(&mut natives);
        Ok(call)
    }

    /// Deletes topics; the outcome says of each whether it was.
    pub fn delete_topics(&self, topics: &[String], timeout: Duration) -> Result<Arc<Call>> {
        self.check_open()?;
        let names = topics.iter().map(|topic| c_string("a topic", topic)).collect::<Result<Vec<_>>>()?;
        // SAFETY: each is destroyed below.
        let mut natives: Vec<_> =
            names.iter().map(|name| unsafe { ffi::rd_kafka_DeleteTopic_new(name.as_ptr()) }).collect();
        let call = self.start(
            ffi::rd_kafka_admin_op_t::RD_KAFKA_ADMIN_OP_DELETETOPICS,
            &topics.join(", "),
            timeout,
            |options| {
                // SAFETY: as for creating.
                unsafe {
                    ffi::rd_kafka_DeleteTopics(
                        self.client.handle(),
                        natives.as_mut_ptr(),
                        natives.len(),
                        options,
                        self.queue.as_ptr(),
                    );
                }
            },
        );
        // SAFETY: made above, copied by the call.
        unsafe { ffi::rd_kafka_DeleteTopic_destroy_array(natives.as_mut_ptr(), natives.len()) };
        Ok(call)
    }

    /// The offsets that a group has committed, for all its partitions.
    pub fn group_offsets(&self, group: &str, timeout: Duration) -> Result<Arc<Call>> {
        self.check_open()?;
        let name = c_string("a group", group)?;
        let operation = ffi::rd_kafka_admin_op_t::RD_KAFKA_ADMIN_OP_LISTCONSUMERGROUPOFFSETS;
        Ok(self.start(operation, group, timeout, |options| {
            // SAFETY: null partitions mean all; the request is copied by the call and destroyed here.
            unsafe {
                let mut request = ffi::rd_kafka_ListConsumerGroupOffsets_new(name.as_ptr(), std::ptr::null());
                ffi::rd_kafka_ListConsumerGroupOffsets(
                    self.client.handle(),
                    &raw mut request,
                    1,
                    options,
                    self.queue.as_ptr(),
                );
                ffi::rd_kafka_ListConsumerGroupOffsets_destroy(request);
            }
        }))
    }

    /// The earliest, latest or timed offset of partitions.
    pub fn list_offsets(&self, partitions: &[TopicPartition], which: OffsetAt, timeout: Duration) -> Result<Arc<Call>> {
        self.check_open()?;
        let wanted = match which {
            OffsetAt::Earliest => -2,
            OffsetAt::Latest => -1,
            OffsetAt::Time(timestamp_ms) => timestamp_ms,
        };
        let mut list = TopicPartitionList::new();
        for at in partitions {
            list.add(at, Some(Position { offset: wanted, leader_epoch: -1 }))?;
        }
        let operation = ffi::rd_kafka_admin_op_t::RD_KAFKA_ADMIN_OP_LISTOFFSETS;
        let subject = partitions.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        Ok(self.start(operation, &subject, timeout, |options| {
            // SAFETY: handle, list, options and queue are alive; librdkafka copies the list.
            unsafe { ffi::rd_kafka_ListOffsets(self.client.handle(), list.as_ptr(), options, self.queue.as_ptr()) };
        }))
    }

    /// Deletes the records of partitions that lie before an offset; the outcome has the first offset that is still
    /// there of each.
    pub fn delete_records(&self, before: &[(TopicPartition, i64)], timeout: Duration) -> Result<Arc<Call>> {
        self.check_open()?;
        let mut list = TopicPartitionList::new();
        for (at, offset) in before {
            list.add(at, Some(Position { offset: *offset, leader_epoch: -1 }))?;
        }
        let operation = ffi::rd_kafka_admin_op_t::RD_KAFKA_ADMIN_OP_DELETERECORDS;
        let subject = before.iter().map(|(at, _)| at.to_string()).collect::<Vec<_>>().join(", ");
        Ok(self.start(operation, &subject, timeout, |options| {
            // SAFETY: handle, list, options and queue are alive; the request is copied by the call and destroyed here.
            unsafe {
                let mut request = ffi::rd_kafka_DeleteRecords_new(list.as_ptr());
                ffi::rd_kafka_DeleteRecords(self.client.handle(), &raw mut request, 1, options, self.queue.as_ptr());
                ffi::rd_kafka_DeleteRecords_destroy(request);
            }
        }))
    }

    /// Ends the thread. Calls that were not answered fail as closed. Blocks until the thread has ended.
    pub fn close(&self) {
        if self.client.check_process().is_err() {
            return;
        }
        self.is_closing.store(true, Ordering::Release);
        self.queue.interrupt();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // A panic of the thread has been printed; there is nothing left to save.
            drop(thread.join());
        }
        self.calls.fail_all();
    }

    fn check_open(&self) -> Result<()> {
        self.client.check_process()?;
        if self.is_closing.load(Ordering::Acquire) { Err(Error::Closed { what: "admin" }) } else { Ok(()) }
    }

    /// Sends a request whose answer completes the call that is returned.
    fn start(
        &self,
        operation: ffi::rd_kafka_admin_op_t,
        subject: &str,
        timeout: Duration,
        send: impl FnOnce(*const ffi::rd_kafka_AdminOptions_t),
    ) -> Arc<Call> {
        let call = Arc::new(Call::default());
        let number = self.calls.add(Pending {
            call: Arc::clone(&call),
            subject: subject.to_owned(),
            unreachable: self.no_answer_text(timeout),
        });
        // Not a pointer: librdkafka only carries the call's number.
        let opaque = std::ptr::without_provenance_mut(number);
        let timeout_ms = i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX).clamp(1, 3_600_000);
        let mut reason = [0 as c_char; 128];
        // SAFETY: the options live until the request is sent.
        unsafe {
            let options = ffi::rd_kafka_AdminOptions_new(self.client.handle(), operation);
            ffi::rd_kafka_AdminOptions_set_request_timeout(options, timeout_ms, reason.as_mut_ptr(), reason.len());
            // Wait until the topic is there and not only until the controller has heard of it; fails where it has no
            // meaning.
            ffi::rd_kafka_AdminOptions_set_operation_timeout(options, timeout_ms, reason.as_mut_ptr(), reason.len());
            ffi::rd_kafka_AdminOptions_set_opaque(options, opaque);
            send(options);
            ffi::rd_kafka_AdminOptions_destroy(options);
        }
        if let Some(failure) = self.client.access_failure() {
            self.calls.deny_all(&failure);
        }
        call
    }

    fn no_answer_text(&self, timeout: Duration) -> String {
        let cause = self.client.last_error();
        let cause = if cause.is_empty() { String::new() } else { format!(" ({cause})") };
        format!("no broker of {} answered within {:.1} s{cause}", self.bootstrap_servers, timeout.as_secs_f64())
    }
}

impl Drop for Admin {
    fn drop(&mut self) {
        self.close();
    }
}

fn serve(client: &Client, queue: &Queue, calls: &Calls, is_closing: &AtomicBool) {
    while !is_closing.load(Ordering::Acquire) {
        let look_again = client.is_suspect() && !calls.are_answered();
        if let Some(event) = queue.poll(&Deadline::after(look_again.then_some(Client::LOOK_AGAIN))) {
            answer(&event, calls);
        }
        if let Some(failure) = client.access_failure() {
            calls.deny_all(&failure);
        }
    }
    // What has been answered already is handed on; `close` fails what is under way.
    let now = Deadline::after(Some(Duration::ZERO));
    while let Some(event) = queue.poll(&now) {
        answer(&event, calls);
    }
}

fn answer(event: &QueueEvent, calls: &Calls) {
    if event.number() < ffi::RD_KAFKA_EVENT_CREATETOPICS_RESULT {
        return;
    }
    let Some(pending) = calls.take(event.opaque().addr()) else { return };
    let outcome = match (event.code(), outcome_of(event)) {
        (Code::NONE, Some((_, outcome))) => Ok(outcome),
        (Code::NONE, None) => return,
        (code, outcome) => {
            let name = outcome.map_or("ask", |(name, _)| name);
            let detail = match code {
                Code::TIMED_OUT | Code::TRANSPORT => pending.unreachable,
                _ => event.error_text(),
            };
            Err(Error::kafka(format!("{name} {}", pending.subject), code, detail))
        }
    };
    pending.call.complete(outcome);
}

/// The answer, with the verb of its operation; `None` for events of another kind.
fn outcome_of(event: &QueueEvent) -> Option<(&'static str, AdminOutcome)> {
    let raw = event.as_ptr();
    // SAFETY: each accessor is called for its own kind of event, and its arrays have the length that it writes.
    unsafe {
        let mut count = 0;
        match event.number() {
            ffi::RD_KAFKA_EVENT_CREATETOPICS_RESULT => {
                let result = ffi::rd_kafka_event_CreateTopics_result(raw);
                let topics = ffi::rd_kafka_CreateTopics_result_topics(result, &raw mut count);
                Some(("create topic", topics_of(topics, count)))
            }
            ffi::RD_KAFKA_EVENT_DELETETOPICS_RESULT => {
                let result = ffi::rd_kafka_event_DeleteTopics_result(raw);
                let topics = ffi::rd_kafka_DeleteTopics_result_topics(result, &raw mut count);
                Some(("delete topic", topics_of(topics, count)))
            }
            ffi::RD_KAFKA_EVENT_LISTCONSUMERGROUPOFFSETS_RESULT => {
                let result = ffi::rd_kafka_event_ListConsumerGroupOffsets_result(raw);
                let groups = ffi::rd_kafka_ListConsumerGroupOffsets_result_groups(result, &raw mut count);
                let offsets = (0..count).flat_map(|index| {
                    let list = ffi::rd_kafka_group_result_partitions(*groups.add(index));
                    offsets_of(&TopicPartitionList::copy_of(list))
                });
                Some(("list offsets of group", AdminOutcome::Offsets(offsets.collect())))
            }
            ffi::RD_KAFKA_EVENT_DELETERECORDS_RESULT => {
                let result = ffi::rd_kafka_event_DeleteRecords_result(raw);
                let list = TopicPartitionList::copy_of(ffi::rd_kafka_DeleteRecords_result_offsets(result));
                Some(("delete records of", AdminOutcome::Offsets(offsets_of(&list))))
            }
            ffi::RD_KAFKA_EVENT_LISTOFFSETS_RESULT => {
                let result = ffi::rd_kafka_event_ListOffsets_result(raw);
                let infos = ffi::rd_kafka_ListOffsets_result_infos(result, &raw mut count);
                let offsets = (0..count).map(|index| {
                    let entry = ffi::rd_kafka_ListOffsetsResultInfo_topic_partition(*infos.add(index));
                    let code = Code((&raw const (*entry).err).cast::<i32>().read());
                    GroupOffset {
                        at: TopicPartition::new(text_of((*entry).topic), (*entry).partition),
                        offset: (*entry).offset,
                        error: (code != Code::NONE).then_some(code),
                    }
                });
                Some(("list offsets of", AdminOutcome::Offsets(offsets.collect())))
            }
            _ => None,
        }
    }
}

/// # Safety
/// `topics` points to `count` results.
unsafe fn topics_of(topics: *mut *const ffi::rd_kafka_topic_result_t, count: usize) -> AdminOutcome {
    let one = |index| {
        // SAFETY: the caller's promise; the strings belong to the result.
        unsafe {
            let topic = *topics.add(index);
            let code = Code::of(ffi::rd_kafka_topic_result_error(topic));
            let error = (code != Code::NONE).then(|| (code, text_of(ffi::rd_kafka_topic_result_error_string(topic))));
            (text_of(ffi::rd_kafka_topic_result_name(topic)), error)
        }
    };
    AdminOutcome::Topics((0..count).map(one).collect())
}

fn offsets_of(list: &TopicPartitionList) -> Vec<GroupOffset> {
    let entries = list.entries().into_iter();
    entries.map(|(at, offset, code)| GroupOffset { at, offset, error: (code != Code::NONE).then_some(code) }).collect()
}

fn native_topic(topic: &NewTopic) -> Result<*mut ffi::rd_kafka_NewTopic_t> {
    let name = c_string("a topic", &topic.name)?;
    let mut reason = [0 as c_char; 256];
    // SAFETY: librdkafka copies the name and writes at most 256 bytes of reason.
    let native = unsafe {
        ffi::rd_kafka_NewTopic_new(name.as_ptr(), topic.partitions, topic.replicas, reason.as_mut_ptr(), reason.len())
    };
    if native.is_null() {
        // SAFETY: the reason ends in zero.
        let reason = unsafe { text_of(reason.as_ptr()) };
        return Err(Error::Invalid { reason: format!("topic {:?}: {reason}", topic.name) });
    }
    for (property, value) in &topic.config {
        let set = c_string("a topic setting", property).and_then(|property| {
            let value = c_string("a topic setting's value", value)?;
            // SAFETY: the topic is ours; librdkafka copies both strings.
            Code::of(unsafe { ffi::rd_kafka_NewTopic_set_config(native, property.as_ptr(), value.as_ptr()) })
                .check(format!("configure topic {}", topic.name))
        });
        if let Err(error) = set {
            destroy_topics(&mut vec![native]);
            return Err(error);
        }
    }
    Ok(native)
}

fn destroy_topics(natives: &mut Vec<*mut ffi::rd_kafka_NewTopic_t>) {
    // SAFETY: each was made by `native_topic` and is destroyed once.
    unsafe { ffi::rd_kafka_NewTopic_destroy_array(natives.as_mut_ptr(), natives.len()) };
    natives.clear();
}
