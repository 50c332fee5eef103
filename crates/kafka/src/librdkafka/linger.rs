//! Decides which partitions of a producer do not linger: those with an awaited message, and all of them while few
//! messages are on their way.
//!
//! Patch 0009 asks for each partition that a broker's thread looks at (`awoke_ends_linger`). An awaited message is
//! counted first; then the partition's broker is woken, and sends what the partition has.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU32, Ordering};

use super::client::context_of;
use super::{Client, EndedLinger, Reported, Topic, ffi};

/// The partition of a message that waits for the first metadata of its topic.
pub(super) const NO_PARTITION: i32 = -1;

/// Partitions share counts. If two that share one have traffic, the one's awaited messages end the other's linger, too.
const COUNTS: usize = 64;

/// A client's awaited messages.
pub(super) struct Linger {
    /// Messages linger only while more than this many have no report; `None` where they always linger.
    crowd: Option<u32>,
    by_partition: [AtomicU32; COUNTS],
    /// Those whose partition is not known yet: no partition lingers.
    anywhere: AtomicU32,
    note_partition: Option<unsafe fn(*const c_void, i32)>,
}

impl Linger {
    pub(super) fn new(crowd: Option<u32>, note_partition: Option<unsafe fn(*const c_void, i32)>) -> Self {
        let by_partition = [const { AtomicU32::new(0) }; COUNTS];
        Self { crowd, by_partition, anywhere: AtomicU32::new(0), note_partition }
    }

    fn count(&self, ended: EndedLinger) -> &AtomicU32 {
        self.by_partition.get(usize::from(ended.0)).unwrap_or(&self.anywhere)
    }

    fn add(&self, topic: *const c_void, partition: i32) -> EndedLinger {
        let awaited = EndedLinger(if partition == NO_PARTITION { COUNTS as u8 } else { index(topic, partition) });
        self.count(awaited).fetch_add(1, Ordering::SeqCst);
        awaited
    }

    /// Returns whether a partition does not linger. `messages` counts those without a report.
    fn ends(&self, topic: *const c_void, partition: i32, messages: impl FnOnce() -> u32) -> bool {
        self.crowd.is_some_and(|crowd| messages() <= crowd)
            || self.by_partition[usize::from(index(topic, partition))].load(Ordering::SeqCst) > 0
            || self.anywhere.load(Ordering::SeqCst) > 0
    }
}

/// Chooses a count: neighbouring partitions of a topic do not share one.
fn index(topic: *const c_void, partition: i32) -> u8 {
    // The addresses of topics differ in these bits.
    let topic = (topic.addr() >> 8).wrapping_mul(0x9E37_79B1) >> 16;
    (topic.wrapping_add(partition as usize) % COUNTS) as u8
}

impl<R: Reported> Topic<R> {
    /// Has a message sent without lingering, with those of its partition that were sent before it. To be given back to
    /// [`Client::linger_again`] when the message is awaited no more. Does not block.
    ///
    /// Linux only: elsewhere the message lingers.
    pub fn end_linger(&self, message: &R) -> EndedLinger {
        let client = self.client();
        let mut partition = message.partition();
        let mut ended = client.linger().add(self.handle().cast(), partition);
        if partition == NO_PARTITION && message.partition() != NO_PARTITION {
            // The partition's broker may have looked before the message was counted.
            client.linger_again(ended);
            partition = message.partition();
            ended = client.linger().add(self.handle().cast(), partition);
        }
        if partition != NO_PARTITION {
            wake(self.handle(), partition);
        }
        ended
    }
}

impl Client {
    /// Lets messages linger again where one was awaited.
    pub fn linger_again(&self, ended: EndedLinger) {
        self.linger().count(ended).fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(target_os = "linux")]
fn wake(topic: *mut ffi::rd_kafka_topic_t, partition: i32) {
    unsafe extern "C" {
        fn awoke_wake_partition(topic: *mut ffi::rd_kafka_topic_t, partition: i32);
    }
    // SAFETY: the topic is alive.
    unsafe { awoke_wake_partition(topic, partition) };
}

#[cfg(not(target_os = "linux"))]
fn wake(_topic: *mut ffi::rd_kafka_topic_t, _partition: i32) {}

/// Tells a message its partition.
///
/// # Safety
/// `message` is the reference to an `R` that librdkafka keeps with the message.
pub(super) unsafe fn note_partition<R: Reported>(message: *const c_void, partition: i32) {
    // SAFETY: the caller's promise; librdkafka's reference keeps it alive.
    unsafe { &*message.cast::<R>() }.set_partition(partition);
}

/// Returns whether a partition does not linger.
///
/// # Safety
/// A thread of this client calls it, for one of its topics.
#[unsafe(no_mangle)]
unsafe extern "C" fn awoke_ends_linger(rk: *mut ffi::rd_kafka_t, topic: *const c_void, partition: i32) -> c_int {
    // SAFETY: the client is alive. The opaque is its context, or null for one that was made to be tried out.
    unsafe {
        let client = ffi::rd_kafka_opaque(rk);
        let messages = || ffi::rd_kafka_outq_len(rk) as u32;
        c_int::from(!client.is_null() && context_of(client).linger.ends(topic, partition, messages))
    }
}

/// Tells a message its partition.
///
/// # Safety
/// The client is alive; `message` is the opaque of one of its messages.
#[unsafe(no_mangle)]
unsafe extern "C" fn awoke_note_partition(rk: *mut ffi::rd_kafka_t, message: *const c_void, partition: i32) {
    // SAFETY: the caller's promise; the function is of the type that the client reports to.
    unsafe {
        let client = ffi::rd_kafka_opaque(rk);
        if client.is_null() || message.is_null() {
            return;
        }
        if let Some(note_partition) = context_of(client).linger.note_partition {
            note_partition(message, partition);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOPIC: *const c_void = std::ptr::without_provenance(0x7f00_1200);

    #[test]
    fn a_partition_does_not_linger_while_a_message_of_it_is_awaited() {
        let linger = Linger::new(None, None);
        assert!(!linger.ends(TOPIC, 3, || 1));
        let (first, second) = (linger.add(TOPIC, 3), linger.add(TOPIC, 3));
        assert!(linger.ends(TOPIC, 3, || 9));
        assert!(!linger.ends(TOPIC, 4, || 9));
        linger.count(first).fetch_sub(1, Ordering::SeqCst);
        assert!(linger.ends(TOPIC, 3, || 9));
        linger.count(EndedLinger::from_number(second.to_number())).fetch_sub(1, Ordering::SeqCst);
        assert!(!linger.ends(TOPIC, 3, || 9));
    }

    #[test]
    fn no_partition_lingers_while_an_awaited_message_has_none() {
        let linger = Linger::new(None, None);
        let awaited = linger.add(TOPIC, NO_PARTITION);
        assert!((0..100).all(|partition| linger.ends(TOPIC, partition, || 1)));
        linger.count(awaited).fetch_sub(1, Ordering::SeqCst);
        assert!(!(0..100).any(|partition| linger.ends(TOPIC, partition, || 1)));
    }

    #[test]
    fn neighbouring_partitions_have_counts_of_their_own() {
        let mut indexes: Vec<_> = (0..COUNTS as i32).map(|partition| index(TOPIC, partition)).collect();
        indexes.sort_unstable();
        indexes.dedup();
        assert_eq!(indexes.len(), COUNTS);
    }

    #[test]
    fn a_crowd_lingers_and_a_few_messages_do_not() {
        let linger = Linger::new(Some(40), None);
        assert!(linger.ends(TOPIC, 0, || 40));
        assert!(!linger.ends(TOPIC, 0, || 41));
    }
}
