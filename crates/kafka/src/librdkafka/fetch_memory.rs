//! Bounds the memory of fetched messages that wait in a consumer's queues, for all its partitions together.
//!
//! librdkafka bounds each queue of a partition by itself (`queued.max.messages.kbytes`, 64 MB): the memory grows with
//! the partitions. It reads that bound before each fetch, so that the bound may change while the client runs, but it
//! has no function to change it. This file does it in librdkafka's own configuration: patch 0012 says where.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicI64, Ordering};

use super::{Client, ClientConfig, ffi};

/// A smaller message counts as this many bytes: librdkafka (2.12.1) takes about 320 for each besides its own. Counting
/// all of them would leave too few messages in a queue of small ones, and throughput falls to a third.
const MESSAGE_BYTES_MIN: usize = 64;
/// Fewer messages than this of one partition make too many fetches.
const MESSAGES_MIN: usize = 100;
/// Part of the memory that a single response of a broker may take.
const RESPONSE_SHARE: usize = 4;
/// librdkafka's default for what one response holds of one partition.
const PARTITION_FETCH_MAX: usize = 1024 * 1024;
/// A broker sends a batch that is larger than what is asked of its partition only as the first of a response: with many
/// partitions and large batches, a response has one batch. Producers fill batches of 16 KB (Java) or more.
const PARTITION_FETCH_MIN: usize = 128 * 1024;
/// librdkafka's default for what one response holds in all.
const FETCH_MAX: usize = 50 * 1024 * 1024;
/// A response must be able to hold the largest message that librdkafka sends by default.
const FETCH_MIN: usize = 1_000_000;
/// After this long librdkafka looks again whether a full queue has room; its default is a second, in which a small
/// queue runs empty.
const FULL_QUEUE_BACKOFF_MS: &str = "20";
/// If the user sets one of these, awoke changes none of the bounds.
const OWN: [&str; 2] = ["queued.max.messages.kbytes", "queued.min.messages"];

/// The bound for the fetched messages of one consumer.
pub struct FetchMemory {
    bytes: usize,
    bounds: Bounds,
}

/// librdkafka's two numbers, in the configuration of the client, which this keeps alive.
struct Bounds {
    messages: *const AtomicI32,
    bytes: *const AtomicI64,
    _client: Arc<Client>,
}

unsafe extern "C" {
    fn awoke_fetch_bounds(rk: *mut ffi::rd_kafka_t, messages: *mut *const AtomicI32, bytes: *mut *const AtomicI64);
}

// SAFETY: both places are read and written atomically only, and live as long as the client.
unsafe impl Send for Bounds {}
// SAFETY: as above.
unsafe impl Sync for Bounds {}

/// The bounds of one partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Share {
    messages: usize,
    kilobytes: usize,
}

impl Share {
    /// Of this memory, a quarter is for responses that are being read, and each queue may exceed its share by one of
    /// them.
    fn of(bytes: usize, partitions: usize) -> Self {
        let queue = (bytes - bytes / RESPONSE_SHARE) / partitions.max(1);
        let messages = (queue / MESSAGE_BYTES_MIN).clamp(MESSAGES_MIN, 100_000);
        Self { messages, kilobytes: (queue / 1_000).clamp(1, 2_000_000) }
    }
}

impl FetchMemory {
    /// Bounds the fetched messages of a client that is to be made of this configuration, for this many partitions.
    ///
    /// Returns `None`, and changes nothing, where the configuration sets one of librdkafka's own bounds.
    pub fn configure(config: &mut ClientConfig, bytes: usize, partitions: usize) -> Option<usize> {
        if OWN.iter().any(|property| config.get(property).is_some()) {
            return None;
        }
        let share = Share::of(bytes, partitions);
        let response = (bytes / RESPONSE_SHARE).clamp(FETCH_MIN, FETCH_MAX);
        let of_partition = (response / partitions.max(1)).clamp(PARTITION_FETCH_MIN, PARTITION_FETCH_MAX);
        config
            .set("queued.min.messages", share.messages.to_string())
            .set("queued.max.messages.kbytes", share.kilobytes.to_string())
            .set_default("fetch.queue.backoff.ms", FULL_QUEUE_BACKOFF_MS);
        if config.get("fetch.max.bytes").is_none() && config.get("message.max.bytes").is_none() {
            config.set("fetch.max.bytes", response.to_string());
        }
        if config.get("max.partition.fetch.bytes").is_none() && config.get("fetch.message.max.bytes").is_none() {
            config.set("max.partition.fetch.bytes", of_partition.to_string());
        }
        Some(bytes)
    }

    /// Takes hold of the bounds of a client that was made so.
    pub fn of(client: &Arc<Client>, bytes: usize) -> Self {
        Self { bytes, bounds: Bounds::of(client) }
    }

    /// Divides the memory among this many partitions from now on. Does not block. Returns the bytes of each.
    pub fn share_among(&self, partitions: usize) -> Option<usize> {
        let Share { messages, kilobytes } = Share::of(self.bytes, partitions);
        self.bounds.set(messages as i32, kilobytes as i64 * 1_000);
        Some(kilobytes * 1_000)
    }
}

impl Bounds {
    fn of(client: &Arc<Client>) -> Self {
        let (mut messages, mut bytes) = (std::ptr::null(), std::ptr::null());
        // SAFETY: the handle is alive. The numbers are an `int` and an `int64_t`, which are aligned; no other code
        // writes them while the client lives.
        unsafe { awoke_fetch_bounds(client.handle(), &raw mut messages, &raw mut bytes) };
        Self { messages, bytes, _client: Arc::clone(client) }
    }

    fn set(&self, messages: i32, bytes: i64) {
        // SAFETY: both lie in the configuration of a client that is alive. librdkafka's threads read each with one
        // load, whenever they decide whether to fetch; any value that was written is a bound.
        unsafe {
            (*self.messages).store(messages, Ordering::Relaxed);
            (*self.bytes).store(bytes, Ordering::Relaxed);
        }
    }

    #[cfg(test)]
    fn get(&self) -> (i32, i64) {
        // SAFETY: as for `set`.
        unsafe { ((*self.messages).load(Ordering::Relaxed), (*self.bytes).load(Ordering::Relaxed)) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::text_of;
    use super::*;
    use crate::events::event_box;
    use crate::{ClientOptions, Kind};

    fn consumer(bytes: usize, partitions: usize) -> (Arc<Client>, FetchMemory) {
        let mut config = ClientConfig::new();
        config.set("group.id", "memory").set("bootstrap.servers", "127.0.0.1:1").set("log_level", "0");
        let bytes = FetchMemory::configure(&mut config, bytes, partitions).expect("not set by the user");
        let events = event_box().expect("a box");
        let client = Client::new(Kind::Consumer, "test", &config, events, ClientOptions::default()).expect("a client");
        let memory = FetchMemory::of(&client, bytes);
        (client, memory)
    }

    /// Returns what librdkafka says is the least number of messages in a queue.
    fn told(client: &Client) -> String {
        let mut text = [0; 64];
        let mut size = text.len();
        // SAFETY: the client is alive; librdkafka writes at most `size` bytes and ends them with a zero.
        unsafe {
            let conf = ffi::rd_kafka_conf(client.handle());
            let found = ffi::rd_kafka_conf_get(conf, c"queued.min.messages".as_ptr(), text.as_mut_ptr(), &raw mut size);
            assert_eq!(found, ffi::rd_kafka_conf_res_t::RD_KAFKA_CONF_OK);
            text_of(text.as_ptr())
        }
    }

    #[test]
    fn the_bound_of_each_partition_follows_their_number() {
        let (client, memory) = consumer(64 << 20, 16);
        assert_eq!(memory.bounds.get(), (49_152, 3_145_000), "as the client was made");
        assert_eq!(memory.share_among(1), Some(50_331_000));
        assert_eq!(memory.bounds.get(), (100_000, 50_331_000));
        assert_eq!(told(&client), "100000");
        assert_eq!(memory.share_among(200), Some(251_000));
        assert_eq!(memory.bounds.get(), (3_932, 251_000));
        assert_eq!(told(&client), "3932");
    }

    #[test]
    fn a_response_holds_batches_of_each_partition_however_many_there_are() {
        let asked = |partitions| {
            let mut config = ClientConfig::new();
            FetchMemory::configure(&mut config, 64 << 20, partitions).expect("not set by the user");
            config.get("max.partition.fetch.bytes").map(str::to_owned)
        };
        assert_eq!(asked(1).as_deref(), Some("1048576"));
        assert_eq!(asked(64).as_deref(), Some("262144"));
        assert_eq!(asked(1_000).as_deref(), Some("131072"));
    }

    #[test]
    fn a_bound_of_the_users_stays() {
        let mut config = ClientConfig::new();
        config.set("queued.max.messages.kbytes", "1000");
        assert_eq!(FetchMemory::configure(&mut config, 64 << 20, 8), None);
        assert_eq!(config.get("fetch.queue.backoff.ms"), None);
    }
}
