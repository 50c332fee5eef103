//! One of librdkafka's queues: events of a client, or the fetched messages of one partition.

use std::ffi::c_void;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::message::awoke_message_bytes;
use super::{
    Batch, Client, Code, EventKind, FetchError, Fetched, TopicPartition, TopicPartitionList, c_string, ffi, text_of,
};
use crate::clock::Deadline;
use crate::events::What;
use crate::{Error, Result};

/// Messages taken from librdkafka at once; a pull that is bounded in bytes looks at the sum after each such step.
const STEP: usize = 256;

/// One of librdkafka's queues.
pub struct Queue {
    native: *mut ffi::rd_kafka_queue_t,
    /// Keeps the handle alive: a queue must not outlive it.
    client: Arc<Client>,
    /// The argument of librdkafka's callback. Dropped after the callback is disabled.
    listener: Mutex<Option<Listener>>,
}

/// Called when a queue turns non-empty. Boxed, so that its address stays the same.
type Listener = Box<dyn Fn() + Send + Sync>;

// SAFETY: librdkafka's queues may be used from any thread.
unsafe impl Send for Queue {}
// SAFETY: as above.
unsafe impl Sync for Queue {}

/// The messages of one pull.
pub struct Pull {
    pub batch: Batch,
    /// True if the queue was seen empty: then librdkafka will announce the next message.
    pub is_exhausted: bool,
    /// Fetch errors that lay between the messages.
    pub errors: Vec<FetchError>,
}

impl Queue {
    fn from_raw(queue: *mut ffi::rd_kafka_queue_t, client: &Arc<Client>) -> Option<Self> {
        (!queue.is_null()).then(|| Self { native: queue, client: Arc::clone(client), listener: Mutex::default() })
    }

    /// A queue of our own.
    pub fn new(client: &Arc<Client>) -> Self {
        // SAFETY: the handle is alive.
        let queue = unsafe { ffi::rd_kafka_queue_new(client.handle()) };
        Self::from_raw(queue, client).expect("librdkafka always makes a queue")
    }

    /// The queue of a producer's delivery reports and of any client's errors.
    pub fn main(client: &Arc<Client>) -> Self {
        // SAFETY: the handle is alive.
        let queue = unsafe { ffi::rd_kafka_queue_get_main(client.handle()) };
        Self::from_raw(queue, client).expect("every client has a main queue")
    }

    /// Returns the queue of a consumer: rebalances, commit results and (unless partitions are taken out of it)
    /// messages. Errors and statistics come to it as well from now on, so that one thread waits for all.
    pub fn consumer(client: &Arc<Client>) -> Result<Self> {
        // SAFETY: the handle is alive.
        Code::of(unsafe { ffi::rd_kafka_poll_set_consumer(client.handle()) }).check("redirect the main queue")?;
        // SAFETY: the handle is alive.
        let queue = unsafe { ffi::rd_kafka_queue_get_consumer(client.handle()) };
        Self::from_raw(queue, client).ok_or(Error::Closed { what: "consumer" })
    }

    /// The fetch queue of one partition, cut off from the consumer's queue.
    ///
    /// To be called before the partition is assigned: the cut then survives the start of fetching.
    pub fn partition(client: &Arc<Client>, at: &TopicPartition) -> Result<Self> {
        let topic = c_string("a topic", &at.topic)?;
        // SAFETY: the handle is alive and copies the topic's name.
        let queue = unsafe { ffi::rd_kafka_queue_get_partition(client.handle(), topic.as_ptr(), at.partition) };
        let queue =
            Self::from_raw(queue, client).ok_or_else(|| Error::kafka(format!("open {at}"), Code::UNKNOWN_TOPIC, ""))?;
        // SAFETY: the queue is alive; forwarding to null stops forwarding.
        unsafe { ffi::rd_kafka_queue_forward(queue.native, std::ptr::null_mut()) };
        Ok(queue)
    }

    /// Waits for the next event; `None` when the deadline passed or `interrupt` was called. Blocks the calling thread.
    ///
    /// Statistics are told on the way: librdkafka calls back for those only where its main queue is polled.
    pub fn poll(&self, deadline: &Deadline) -> Option<Event> {
        loop {
            // SAFETY: the queue is alive; the event becomes ours.
            let event = unsafe { ffi::rd_kafka_queue_poll(self.native, deadline.remaining_ms()) };
            if event.is_null() {
                return None;
            }
            let event = Event(event);
            match event.statistics() {
                Some(json) => self.client.emit(What::Statistics(json)),
                None => return Some(event),
            }
        }
    }

    /// Returns whether nothing is in it now.
    pub fn is_empty(&self) -> bool {
        // SAFETY: the queue is alive.
        unsafe { ffi::rd_kafka_queue_length(self.native) == 0 }
    }

    /// Makes the `poll` that is under way, or the next one, return at once.
    pub fn interrupt(&self) {
        // SAFETY: the queue is alive.
        unsafe { ffi::rd_kafka_queue_yield(self.native) };
    }

    /// Has `listener` called when the queue turns non-empty. A listener from before is replaced.
    ///
    /// A thread of librdkafka's calls it, under the queue's lock. It must not block, call the client, or own the queue:
    /// the queue would be dropped under its own lock.
    pub fn on_non_empty<F: Fn() + Send + Sync + 'static>(&self, listener: F) {
        let listener = Box::new(listener);
        let opaque = (&raw const *listener).cast_mut().cast();
        let mut place = self.lock_listener();
        // SAFETY: the queue is alive, and the listener stays in its box until the callback is replaced or disabled;
        // when either returns, no call of the earlier one is under way.
        unsafe { ffi::rd_kafka_queue_cb_event_enable(self.native, Some(call_listener::<F>), opaque) };
        let earlier = place.replace(listener);
        drop(place);
        drop(earlier);
    }

    /// Ends the calls of the listener; when this returns, none is under way (librdkafka calls under the lock that this
    /// takes).
    pub fn stop_listening(&self) {
        let mut place = self.lock_listener();
        if place.is_none() {
            return; // The client's queue may have got a listener by another reference meanwhile.
        }
        // SAFETY: the queue is alive; a null callback disables.
        unsafe { ffi::rd_kafka_queue_cb_event_enable(self.native, None, std::ptr::null_mut()) };
        let earlier = place.take();
        drop(place);
        drop(earlier);
    }

    fn lock_listener(&self) -> MutexGuard<'_, Option<Listener>> {
        self.listener.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes what is there, up to both limits (one step past the limit in bytes). Does not wait.
    pub fn pull(&self, at: &TopicPartition, messages_max: usize, bytes_max: usize) -> Pull {
        let mut taken: Vec<*mut ffi::rd_kafka_message_t> = Vec::with_capacity(messages_max.min(STEP));
        let (mut bytes, mut is_exhausted) = (0, false);
        while taken.len() < messages_max && bytes < bytes_max && !is_exhausted {
            let wanted = STEP.min(messages_max - taken.len());
            let before = taken.len();
            taken.reserve(wanted);
            // SAFETY: there is room for `wanted` pointers behind the ones taken; librdkafka writes as many as it
            // returns.
            unsafe {
                let place = taken.as_mut_ptr().add(before);
                let got = ffi::rd_kafka_consume_batch_queue(self.native, 0, place, wanted).max(0) as usize;
                taken.set_len(before + got);
                is_exhausted = got < wanted;
                bytes += taken[before..].iter().map(|message| awoke_message_bytes(*message)).sum::<usize>();
            }
        }
        // SAFETY: the messages were handed to us by the client that the batch keeps alive.
        let (batch, errors) = unsafe { Batch::from_raw(at.clone(), taken, Arc::clone(&self.client)) };
        Pull { batch, is_exhausted, errors }
    }

    /// Drops the content of the queue, which is outdated. Does not wait.
    pub fn discard(&self, at: &TopicPartition) {
        while !self.pull(at, STEP, usize::MAX).is_exhausted {}
    }

    /// Returns librdkafka's queue.
    pub(crate) const fn as_ptr(&self) -> *mut ffi::rd_kafka_queue_t {
        self.native
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        if self.client.check_process().is_ok() {
            // The client may keep the queue for longer than this reference, with its callback.
            self.stop_listening();
            // SAFETY: the queue reference is ours and the handle still alive.
            unsafe { ffi::rd_kafka_queue_destroy(self.native) };
        }
    }
}

/// librdkafka's callback: the queue has turned non-empty.
///
/// # Safety
/// `opaque` points to an `F`.
unsafe extern "C" fn call_listener<F: Fn()>(_rk: *mut ffi::rd_kafka_t, opaque: *mut c_void) {
    // SAFETY: the listener lives until the callback has been disabled.
    let listener = unsafe { &*opaque.cast::<F>() };
    listener();
}

/// Something that came out of a queue.
pub struct Event(*mut ffi::rd_kafka_event_t);

// SAFETY: an event is not tied to a thread.
unsafe impl Send for Event {}

impl Event {
    /// librdkafka's measurements, as JSON; `None` for another event.
    fn statistics(&self) -> Option<String> {
        // SAFETY: the event is ours; its text lives as long as it.
        (self.number() == ffi::RD_KAFKA_EVENT_STATS).then(|| unsafe { text_of(ffi::rd_kafka_event_stats(self.0)) })
    }

    /// Returns its kind.
    pub fn kind(&self) -> EventKind {
        match self.number() {
            ffi::RD_KAFKA_EVENT_REBALANCE => EventKind::Rebalance,
            ffi::RD_KAFKA_EVENT_OFFSET_COMMIT => EventKind::Commit,
            ffi::RD_KAFKA_EVENT_FETCH => EventKind::Messages,
            ffi::RD_KAFKA_EVENT_LISTCONSUMERGROUPS_RESULT => EventKind::Groups,
            ffi::RD_KAFKA_EVENT_DESCRIBECONSUMERGROUPS_RESULT => EventKind::Owned,
            ffi::RD_KAFKA_EVENT_DESCRIBETOPICS_RESULT => EventKind::Topics,
            ffi::RD_KAFKA_EVENT_ERROR => EventKind::Error,
            _ => EventKind::Other,
        }
    }

    /// Returns its kind, as `RD_KAFKA_EVENT_…` numbers it.
    pub(crate) fn number(&self) -> i32 {
        // SAFETY: the event is ours.
        unsafe { ffi::rd_kafka_event_type(self.0) }
    }

    /// Returns its error code.
    pub fn code(&self) -> Code {
        // SAFETY: the event is ours.
        Code::of(unsafe { ffi::rd_kafka_event_error(self.0) })
    }

    /// Returns the text of its error.
    pub fn error_text(&self) -> String {
        // SAFETY: the event is ours and its text lives as long.
        unsafe { text_of(ffi::rd_kafka_event_error_string(self.0)) }
    }

    /// Returns a copy of its partitions.
    pub fn partitions(&self) -> TopicPartitionList {
        // SAFETY: the list belongs to the event; we keep a copy.
        unsafe { TopicPartitionList::copy_of(ffi::rd_kafka_event_topic_partition_list(self.0)) }
    }

    /// The messages of an event that holds fetched ones; what could not be fetched is left out.
    pub fn fetched(&self) -> Vec<Fetched<'_>> {
        let mut found = Vec::new();
        // SAFETY: the event is ours, and its messages live as long; null after the last.
        unsafe {
            while let Some(message) = ffi::rd_kafka_event_message_next(self.0).as_ref() {
                if (&raw const message.err).cast::<i32>().read() == Code::NONE.0 {
                    found.push(Fetched::of(message));
                }
            }
        }
        found
    }

    /// Returns the pointer that was given with the request.
    pub(crate) fn opaque(&self) -> *mut c_void {
        // SAFETY: the event is ours.
        unsafe { ffi::rd_kafka_event_opaque(self.0) }
    }

    /// Returns librdkafka's event.
    pub(crate) const fn as_ptr(&self) -> *mut ffi::rd_kafka_event_t {
        self.0
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: the event is ours.
        unsafe { ffi::rd_kafka_event_destroy(self.0) };
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;
    use crate::events::event_box;
    use crate::{ClientConfig, ClientOptions, Kind};

    fn client() -> Arc<Client> {
        let mut config = ClientConfig::new();
        config.set("group.id", "queue").set("bootstrap.servers", "127.0.0.1:1").set("log_level", "0");
        let events = event_box().expect("a box");
        Client::new(Kind::Consumer, "test", &config, events, ClientOptions::default()).expect("a client")
    }

    #[test]
    fn a_listener_is_called_when_an_event_comes() {
        let client = client();
        let queue = Queue::new(&client);
        let (called, calls) = mpsc::channel();
        queue.on_non_empty(move || called.send(()).expect("the test waits"));
        client.ask_for_groups(&queue, Duration::from_millis(10)).expect("this process");
        calls.recv_timeout(Duration::from_secs(30)).expect("the answer that no broker has come");
        let event = queue.poll(&Deadline::after(Some(Duration::ZERO))).expect("it is there");
        assert_eq!(event.kind(), EventKind::Groups);
    }

    #[test]
    fn a_listener_is_dropped_when_it_is_replaced_ended_or_left() {
        let client = client();
        let queue = Queue::new(&client);
        let listeners = [Arc::new(()), Arc::new(()), Arc::new(())];
        let listen = |index: usize| {
            let kept = Arc::clone(&listeners[index]);
            queue.on_non_empty(move || drop(Arc::clone(&kept)));
        };
        let counts = || listeners.each_ref().map(Arc::strong_count);
        listen(0);
        listen(1);
        assert_eq!(counts(), [1, 2, 1]);
        queue.stop_listening();
        assert_eq!(counts(), [1, 1, 1]);
        listen(2);
        assert_eq!(counts(), [1, 1, 2]);
        drop(queue);
        assert_eq!(listeners.map(|each| Arc::strong_count(&each)), [1, 1, 1]);
    }
}
