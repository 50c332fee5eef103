//! Brokers inside the process: librdkafka's mock cluster, for trying and testing.
//!
//! The real protocol over loopback TCP, groups included, in memory only, at most 5 MB or 100,000 messages a partition.

use std::sync::Arc;

use super::{Client, ClientConfig, ClientOptions, Code, Kind, c_string, ffi, text_of};
use crate::events::EventBox;
use crate::{Error, Result};

/// Brokers inside the process. They stop when it is dropped.
pub struct MockCluster {
    cluster: *mut ffi::rd_kafka_mock_cluster_t,
    bootstrap_servers: String,
    /// The handle whose threads run the brokers; outlives the cluster.
    client: Arc<Client>,
}

// SAFETY: librdkafka serialises the calls on its own thread.
unsafe impl Send for MockCluster {}
// SAFETY: as above.
unsafe impl Sync for MockCluster {}

impl MockCluster {
    /// Starts that many brokers on free loopback ports.
    pub fn start(brokers: i32, events: Arc<EventBox>) -> Result<Self> {
        let mut config = ClientConfig::new();
        config.set("client.id", "awoke-embedded");
        let client = Client::new(Kind::Producer, "embedded cluster", &config, events, ClientOptions::default())?;
        // SAFETY: the handle is alive; the cluster is ours to destroy.
        let cluster = unsafe { ffi::rd_kafka_mock_cluster_new(client.handle(), brokers) };
        if cluster.is_null() {
            return Err(Error::Invalid { reason: format!("an embedded cluster of {brokers} brokers could not start") });
        }
        // SAFETY: the cluster is alive; the string is its own.
        let bootstrap_servers = unsafe {
            ffi::rd_kafka_mock_group_initial_rebalance_delay_ms(cluster, 0);
            text_of(ffi::rd_kafka_mock_cluster_bootstraps(cluster))
        };
        Ok(Self { cluster, bootstrap_servers, client })
    }

    /// Where the brokers listen, as `bootstrap.servers` takes it.
    pub fn bootstrap_servers(&self) -> &str {
        &self.bootstrap_servers
    }

    /// Creates a topic.
    pub fn create_topic(&self, topic: &str, partitions: i32, replicas: i32) -> Result<()> {
        self.client.check_process()?;
        let name = c_string("a topic", topic)?;
        // SAFETY: the cluster is alive and copies the name.
        let code = unsafe { ffi::rd_kafka_mock_topic_create(self.cluster, name.as_ptr(), partitions, replicas) };
        Code::of(code).check(format!("create topic {topic}"))
    }

    /// Makes a broker refuse connections, or accept them again.
    pub fn set_broker_up(&self, broker: i32, is_up: bool) -> Result<()> {
        self.client.check_process()?;
        // SAFETY: the cluster is alive.
        let code = unsafe {
            if is_up {
                ffi::rd_kafka_mock_broker_set_up(self.cluster, broker)
            } else {
                ffi::rd_kafka_mock_broker_set_down(self.cluster, broker)
            }
        };
        Code::of(code).check(format!("set broker {broker}"))
    }

    /// Makes a broker answer this much later.
    pub fn set_round_trip(&self, broker: i32, round_trip_ms: i32) -> Result<()> {
        self.client.check_process()?;
        // SAFETY: the cluster is alive.
        let code = unsafe { ffi::rd_kafka_mock_broker_set_rtt(self.cluster, broker, round_trip_ms) };
        Code::of(code).check(format!("slow broker {broker} down"))
    }

    /// Answers the next requests of a kind, by Kafka's number for it, with these errors.
    pub fn fail_requests(&self, api_key: i16, codes: &[i32]) -> Result<()> {
        self.client.check_process()?;
        // SAFETY: the cluster is alive and copies the codes, which C reads as integers.
        unsafe {
            let (errors, total) = (codes.as_ptr().cast(), codes.len());
            ffi::rd_kafka_mock_push_request_errors_array(self.cluster, api_key, total, errors);
        }
        Ok(())
    }
}

impl Drop for MockCluster {
    fn drop(&mut self) {
        if self.client.check_process().is_ok() {
            // SAFETY: the cluster is ours and its handle still alive.
            unsafe { ffi::rd_kafka_mock_cluster_destroy(self.cluster) };
        }
    }
}
