//! The properties of a simulated service.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use awoke_engine::consume::{
    Concurrency, Flow, GroupSettings, LaneBy, PartitionScheduler, PartitionSettings, PullLimits, Route, Share,
};
use awoke_engine::events::{EventBox, event_box};
use awoke_engine::kafka::{ClientConfig, Cluster, TopicPartition};
use awoke_engine::rpc::{AdmissionOptions, CallerOptions, Expiry, MethodRules, SigningKey};
use awoke_engine::wake::simulation::random;

pub const GROUP: &str = "group";
pub const CALLS: &str = "shop.rpc.calls";
pub const REPLIES: &str = "shop.rpc.replies";

/// The methods, by their numbers.
pub const QUOTE: usize = 0;
pub const WAIT: usize = 1;
pub const LIST: usize = 2;
pub const NAMES: [&str; 3] = ["quote", "wait", "list"];

/// Most calls of a responder's partition that were received and have not ended.
const IN_FLIGHT: usize = 10_000;

/// The properties of a service.
pub struct Service {
    pub calls: Vec<TopicPartition>,
    pub replies: Vec<TopicPartition>,
    pub options: AdmissionOptions,
    pub methods: Vec<MethodRules>,
    /// The offset of a call is committed before its method begins.
    pub is_at_most_once: bool,
    pub events: Arc<EventBox>,
    pub config: ClientConfig,
    group: GroupSettings,
    looks_up_group: bool,
    /// One in this number of methods fails; 0 for none.
    fails_one_in: AtomicU64,
}

impl Service {
    pub fn random(cluster: &Cluster) -> Self {
        let create = |topic: &str, count: i32| {
            cluster.create(topic, count);
            (0..count).map(|partition| TopicPartition::new(topic, partition)).collect::<Vec<_>>()
        };
        let (calls, replies) = (create(CALLS, 1 + random(3) as i32), create(REPLIES, 1 + random(2) as i32));
        let mut config = ClientConfig::new();
        config.set("group.id", GROUP);
        if random(2) == 0 {
            config.set("partition.assignment.strategy", "cooperative-sticky");
        }
        let method = |number: usize| MethodRules {
            name: NAMES[number].to_owned(),
            is_async: number == WAIT || (number == LIST && random(2) == 0),
            is_stream: number == LIST,
            concurrency: (random(3) == 0).then(|| 1 + random(2) as usize),
            callers: None,
            time_limit: (number != LIST && random(4) == 0).then(|| Duration::from_secs(1)),
        };
        Self {
            options: AdmissionOptions {
                bytes_max: 1_000_000,
                clock_skew_s: 0.0,
                queue_time_share_max: [0.5, 0.9][random(2) as usize],
                timeout_max_s: 1_000.0,
                key: (random(4) == 0).then(|| SigningKey::new(b"secret", CALLS)),
                threads: 1 + random(3) as usize,
                tasks: 1 + random(3) as usize,
                waiting_max: [1, 3, 20][random(3) as usize],
                waiting_bytes_max: 1_000_000,
                results_max: if random(4) == 0 { 0 } else { 10_000 },
                results_bytes_max: 10_000_000,
                results_ttl: Duration::from_hours(1),
            },
            methods: (0..NAMES.len()).map(method).collect(),
            is_at_most_once: random(4) == 0,
            events: event_box().expect("a descriptor"),
            group: GroupSettings {
                commit_interval: Duration::from_millis([0, 5, 500][random(3) as usize]),
                revoke_timeout: Duration::from_millis(500 + random(3_000)),
                fetch_memory_bytes: 1 << 20,
                partitions_total: calls.len(),
            },
            looks_up_group: random(4) > 0,
            fails_one_in: AtomicU64::new([0, 10, 3][random(3) as usize]),
            calls,
            replies,
            config,
        }
    }

    /// Ends the failures of methods.
    pub fn heal(&self) {
        self.fails_one_in.store(0, Ordering::Relaxed);
    }

    /// Decides whether a method fails.
    pub fn fails(&self) -> bool {
        let number = self.fails_one_in.load(Ordering::Relaxed);
        number > 0 && random(number) == 0
    }

    pub const fn group(&self) -> GroupSettings {
        self.group
    }

    /// Returns the route of a responder.
    pub fn route(&self, scheduler: &Arc<PartitionScheduler>) -> Route {
        let limits = PullLimits { messages_max: IN_FLIGHT, bytes_max: self.options.waiting_bytes_max };
        let flow =
            Flow { limits, wait_max: None, turn_max: None, stores_by_hand: false, pace: None, delay: None, rate: None };
        let concurrency = Concurrency {
            jobs_max: self.options.threads + 1,
            by: LaneBy::Key,
            in_flight_max: IN_FLIGHT,
            commit_gap_max: 10 * IN_FLIGHT,
            share: Share::OneLane,
            careful_messages: 0,
            skip: Some(Arc::new(Expiry::new(Duration::ZERO))),
        };
        Route {
            topic: CALLS.to_owned(),
            scheduler: Arc::clone(scheduler),
            settings: PartitionSettings { flow, concurrency: Some(concurrency), ..PartitionSettings::default() },
            start: None,
            partitions: Vec::new(),
        }
    }

    /// Returns the options of a caller with this name.
    pub fn caller(&self, name: &str) -> CallerOptions {
        CallerOptions {
            calls_topic: CALLS.to_owned(),
            replies_topic: REPLIES.to_owned(),
            group: if self.looks_up_group { GROUP.to_owned() } else { String::new() },
            name: name.to_owned(),
            calls_max: 1 + random(6) as usize,
            bytes_max: 1_000_000,
            reply_bytes_max: 1_000,
            key: self.options.key.clone(),
        }
    }
}
