//! Things that several tests need: random numbers that can be repeated, and a consumer without a broker.

use std::sync::Arc;

use crate::events::event_box;
use crate::kafka::{Client, ClientConfig, ClientOptions, Kind};

/// Makes a consumer that has no broker.
pub(super) fn consumer() -> Arc<Client> {
    let mut config = ClientConfig::new();
    config.set("group.id", "test").set("bootstrap.servers", "127.0.0.1:1").set("enable.auto.commit", "false");
    // A commit without a coordinator is kept for as long as a session, and the client does not end before it.
    config.set("session.timeout.ms", "300").set("heartbeat.interval.ms", "100");
    let events = event_box().expect("a descriptor");
    Client::new(Kind::Consumer, "test", &config, events, ClientOptions::default()).expect("the settings are right")
}

/// A random number generator with a seed (xorshift).
pub(super) struct Random(u64);

impl Random {
    pub(super) const fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// Returns a number below `limit`, which is at least 1.
    pub(super) const fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % limit
    }
}
