//! One simulated world: a cluster, a topic for each kind of route, members, workers, faults.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use awoke_engine::consume::{
    Concurrency, Flow, GroupMember, GroupSettings, LaneBy, Pace, PartitionQueue, PartitionScheduler, PartitionSettings,
    PullLimits, Route, Share,
};
use awoke_engine::events::{EventBox, event_box};
use awoke_engine::kafka::{ClientConfig, Cluster, Faults, TOO_LARGE, TopicPartition};
use awoke_engine::state::Table;
use awoke_engine::wake::simulation::{pass_time, random, spawn, trace};

use crate::chaos;
use crate::checks::{Checks, Handled, Order};
use crate::process::Process;
use crate::results::{ACTS, changelog_of, output_of};
use crate::transactions::Transactions;

/// After this time everything is done, or never will be. It is less than a third of `max.poll.interval.ms`, at which a
/// member comes up by itself and so hides a lost wake-up.
const DRAINED_WITHIN: Duration = Duration::from_mins(1);

/// The longest wait of a revocation for its jobs, in some seeds. No job takes that time: none is overdue. A revocation
/// that misses the end of its last job is not over when everything has to be done.
pub const PATIENT: Duration = Duration::from_mins(10);

/// The form in which user code gets the messages of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    Singles,
    Batches,
    Outputs,
    ExactlyOnce,
}

/// The properties of one route.
#[derive(Clone)]
struct RouteKind {
    topic: String,
    style: Style,
    order: Order,
    settings: PartitionSettings,
    /// Its jobs write rows of a table.
    has_table: bool,
}

/// One simulated world.
pub struct World {
    pub cluster: Arc<Cluster>,
    pub checks: Arc<Checks>,
    routes: Vec<RouteKind>,
    /// Members read the topic of the last route only when a pattern has matched it.
    is_last_late: AtomicBool,
    pub partitions: Vec<TopicPartition>,
    /// Partitions that are assigned to some member.
    open: Mutex<Vec<Arc<PartitionQueue>>>,
    /// Partitions that were paused: resumed at the end, and no other, which would be a wake-up for all.
    paused: Mutex<Vec<Arc<PartitionQueue>>>,
    /// One in this number of calls of handlers fails; 0 for none.
    fails_one_in: AtomicU64,
    seeks: AtomicBool,
    /// Messages whose result the broker has refused: a dead letter takes its place.
    refused: Mutex<BTreeSet<u64>>,
    /// The number of the next act.
    next_act: AtomicU64,
    /// No other process can have a transactional id.
    pub is_alone: bool,
    group: GroupSettings,
    config: ClientConfig,
    /// Members come back under their names, and their groups wait for them.
    pub has_static_members: bool,
    /// The brokers tell the ids of topics.
    pub has_ids: bool,
    pub events: Arc<EventBox>,
}

impl World {
    fn new() -> Arc<Self> {
        let cluster = Cluster::install();
        let checks = Checks::new(&cluster);
        let mut partitions = Vec::new();
        let routes: Vec<_> = (0..=random(2)).map(route).collect();
        for route in &routes {
            let count = 1 + random(3) as i32;
            cluster.create(&route.topic, count);
            if route.style == Style::ExactlyOnce {
                cluster.create(&output_of(&route.topic).topic, 1);
                if route.has_table {
                    cluster.create(&changelog_of(&route.topic), count);
                }
                checks.note_exactly_once(&route.topic, route.order, route.has_table.then_some(count));
            }
            partitions.extend((0..count).map(|partition| TopicPartition::new(route.topic.as_str(), partition)));
        }
        let mut config = ClientConfig::new();
        config.set("group.id", "group");
        if random(3) == 0 {
            config.set("partition.assignment.strategy", "range");
        }
        let has_ids = random(4) > 0;
        if !has_ids {
            cluster.leave_ids_out();
        }
        let has_static_members = random(2) == 0;
        if has_static_members {
            // In some seeds no member compares the owners after a session: a static member that is back has to.
            config.set("session.timeout.ms", ["45000", "300000"][random(2) as usize]);
        }
        let group = GroupSettings {
            commit_interval: Duration::from_millis([0, 5, 500][random(3) as usize]),
            revoke_timeout: if random(2) == 0 { PATIENT } else { Duration::from_millis(500 + random(3_000)) },
            fetch_memory_bytes: 1 << 20,
            partitions_total: partitions.len(),
        };
        let rate = |all: &[u64]| all[random(all.len() as u64) as usize];
        cluster.set_faults(Faults {
            request: rate(&[0, 20, 5]),
            answer: rate(&[0, 20, 5]),
            produce: rate(&[0, 0, 20]),
            report: 0,
            unconfirmed: rate(&[0, 0, 20]),
            step_us: rate(&[10, 5_000, 100_000]),
        });
        Arc::new(Self {
            cluster,
            checks,
            is_last_late: AtomicBool::new(routes.len() > 1 && random(2) == 0),
            routes,
            partitions,
            open: Mutex::default(),
            paused: Mutex::default(),
            fails_one_in: AtomicU64::new(rate(&[0, 10, 3])),
            seeks: AtomicBool::new(random(4) == 0),
            refused: Mutex::default(),
            next_act: AtomicU64::new(ACTS),
            is_alone: random(2) == 0,
            group,
            config,
            has_static_members,
            has_ids,
            events: event_box().expect("a descriptor"),
        })
    }

    fn kind(&self, partition: &PartitionQueue) -> &RouteKind {
        &self.routes[partition.route_number() as usize]
    }

    pub fn style(&self, partition: &PartitionQueue) -> Style {
        self.kind(partition).style
    }

    pub fn order(&self, partition: &PartitionQueue) -> Order {
        self.kind(partition).order
    }

    /// Decides whether a call of a handler fails.
    pub fn fails(&self) -> bool {
        let number = self.fails_one_in.load(Ordering::Relaxed);
        number > 0 && random(number) == 0
    }

    /// Returns whether partitions are given back only when all of their jobs have ended.
    pub fn is_patient(&self) -> bool {
        self.group.revoke_timeout == PATIENT
    }

    pub fn seeks(&self) -> bool {
        self.seeks.load(Ordering::Relaxed)
    }

    /// Seeks to an offset that was reached.
    pub fn seek(&self, partition: &PartitionQueue) {
        let at = partition.topic_partition();
        let reached = self.cluster.committed("group", at).map_or(0, |committed| committed.offset) as u64;
        let offset = if random(8) == 0 { -2 } else { random(reached + 1) as i64 };
        self.checks.note_rewound(at, false);
        let sought = partition.seek(offset);
        trace(|| format!("seek {at} to {offset}: {sought:?}"));
    }

    fn open(&self) -> MutexGuard<'_, Vec<Arc<PartitionQueue>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn add(&self, partition: &Arc<PartitionQueue>) {
        self.open().push(Arc::clone(partition));
    }

    pub fn remove(&self, partition: &Arc<PartitionQueue>) {
        self.open().retain(|each| !Arc::ptr_eq(each, partition));
    }

    pub fn pause(&self, partition: &Arc<PartitionQueue>) {
        if partition.pause().is_ok() {
            self.paused.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(partition));
        }
    }

    /// Forgets the partitions that were given back.
    pub fn forget_closed(&self) {
        self.open().retain(|partition| partition.check_current().is_ok());
    }

    pub fn has_transactions(&self) -> bool {
        self.routes.iter().any(|route| route.style == Style::ExactlyOnce)
    }

    fn refused(&self) -> MutexGuard<'_, BTreeSet<u64>> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the result of a message. The broker refuses one in 16, until a dead letter takes its place.
    pub fn result_of(&self, id: u64) -> Vec<u8> {
        let is_refused = id % 16 == 7 && !self.refused().contains(&id);
        if is_refused { TOO_LARGE.to_vec() } else { id.to_le_bytes().to_vec() }
    }

    /// The broker has refused the result of one of these messages.
    pub fn note_refused(&self, messages: &[Handled]) {
        trace(|| format!("a result is refused: {messages:?}"));
        self.refused().extend(messages.iter().map(|message| message.id));
    }

    /// Returns a partition that is assigned to some member.
    pub fn any_open(&self) -> Option<Arc<PartitionQueue>> {
        let open = self.open();
        open.get(random(open.len() as u64) as usize).map(Arc::clone)
    }

    /// Returns a number for something that no message causes.
    pub fn next_act(&self) -> u64 {
        self.next_act.fetch_add(1, Ordering::Relaxed)
    }

    /// Makes the tables of one process.
    pub fn tables(&self) -> BTreeMap<String, Arc<Table>> {
        let with_table = self.routes.iter().filter(|route| route.has_table);
        let table = |topic: &str| Arc::new(Table::new(topic.to_owned(), &changelog_of(topic), false, None));
        with_table.map(|route| (route.topic.clone(), table(&route.topic))).collect()
    }

    /// Has a member join.
    pub fn join(
        &self,
        scheduler: &Arc<PartitionScheduler>,
        transactions: &Transactions,
        number: usize,
    ) -> Arc<GroupMember> {
        let known = self.routes.len() - usize::from(self.is_last_late.load(Ordering::Relaxed));
        let routes = (0..known).map(|number| self.route(number, scheduler, transactions)).collect();
        let mut config = self.config.clone();
        if self.has_static_members {
            config.set("group.instance.id", format!("member{number}"));
        }
        let batcher = transactions.weak();
        let member = GroupMember::join(&config, routes, self.group, batcher, Arc::clone(&self.events));
        Arc::new(member.expect("the settings are right"))
    }

    fn route(&self, number: usize, scheduler: &Arc<PartitionScheduler>, transactions: &Transactions) -> Route {
        let kind = &self.routes[number];
        Route {
            topic: kind.topic.clone(),
            scheduler: Arc::clone(scheduler),
            settings: PartitionSettings {
                route_number: number as u64,
                tables: transactions.tables.get(&kind.topic).cloned().into_iter().collect(),
                ..kind.settings.clone()
            },
            start: None,
            partitions: Vec::new(),
        }
    }

    /// Has the pattern of a route match its topic, which all members then read, too.
    pub fn appear(&self, processes: &[Process]) {
        if self.is_last_late.swap(false, Ordering::Relaxed) {
            trace(|| "a topic appears".to_owned());
            for process in processes {
                let route = self.route(self.routes.len() - 1, process.scheduler(), process.transactions());
                process.member.read(route).expect("the member is open");
            }
        }
    }

    /// Appends messages, at random times.
    fn produce(&self) {
        for id in 0..10 + random(60) {
            let at = &self.partitions[random(self.partitions.len() as u64) as usize];
            let key = (random(8) > 0).then(|| format!("k{}", random(5)).into_bytes());
            self.cluster.append(at, key, id.to_le_bytes().to_vec());
            if random(6) == 0 {
                pass_time(Duration::from_micros(random(200_000)));
            }
        }
    }

    /// Ends all faults.
    fn heal(&self) {
        trace(|| "all faults end".to_owned());
        self.cluster.set_faults(Faults { step_us: 100, ..Faults::default() });
        self.fails_one_in.store(0, Ordering::Relaxed);
        self.seeks.store(false, Ordering::Relaxed);
        for partition in self.paused.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            drop(partition.resume());
        }
    }

    /// Waits until all is done.
    fn drain(&self, processes: &mut [Process]) {
        let mut missing = None;
        for _ in 0..DRAINED_WITHIN.as_secs() * 2 {
            processes.iter_mut().for_each(|process| process.restart_if_fenced(self));
            missing = self.checks.missing(&self.partitions);
            if missing.is_none() {
                return;
            }
            pass_time(Duration::from_millis(500));
        }
        panic!("messages are stuck: {}", missing.unwrap_or_default());
    }
}

fn route(number: u64) -> RouteKind {
    let style = [Style::Singles, Style::Batches, Style::Outputs, Style::ExactlyOnce][random(4) as usize];
    let concurrency = (random(3) > 0).then(|| concurrency(style));
    let order = match &concurrency {
        None => Order::All,
        Some(Concurrency { by: LaneBy::Nothing, .. }) => Order::None,
        Some(_) => Order::PerKey,
    };
    let flow = Flow {
        limits: PullLimits { messages_max: 1 + random(20) as usize, bytes_max: 1 << 20 },
        wait_max: (random(4) == 0).then(|| Duration::from_millis(random(200))),
        turn_max: (random(2) == 0).then(|| Duration::from_millis(random(20))),
        stores_by_hand: false,
        pace: (random(4) == 0).then(|| Arc::new(Pace::new(Duration::from_millis(20)))),
        delay: (random(6) == 0).then(|| Duration::from_millis(random(300))),
        rate: None,
    };
    let tick_every = (random(4) == 0).then(|| Duration::from_millis(100 + random(400)));
    let is_transactional = style == Style::ExactlyOnce;
    let settings =
        PartitionSettings { flow, concurrency, tick_every, is_transactional, ..PartitionSettings::default() };
    let has_table = is_transactional && order != Order::None && random(2) == 0;
    RouteKind { topic: format!("topic{number}"), style, order, settings, has_table }
}

fn concurrency(style: Style) -> Concurrency {
    let share = match style {
        Style::Singles | Style::Outputs => [Share::OneLane, Share::WhileShort][random(2) as usize],
        Style::Batches => Share::Even,
        Style::ExactlyOnce => Share::OneLane,
    };
    Concurrency {
        jobs_max: 1 + random(4) as usize,
        by: [LaneBy::Key, LaneBy::Key, LaneBy::Nothing, LaneBy::Route][random(4) as usize],
        in_flight_max: 1 + random(30) as usize,
        commit_gap_max: 5 + random(60) as usize,
        share,
        careful_messages: 0,
        skip: None,
    }
}

/// Lives through one seed: the first task of a simulation.
pub fn live() {
    let world = World::new();
    let cluster = Arc::clone(&world.cluster);
    spawn("cluster", move || cluster.run());
    let mut processes: Vec<_> = (0..=random(2) as usize).map(|number| Process::start(&world, number)).collect();
    let producing = spawn("producer", {
        let world = Arc::clone(&world);
        move || world.produce()
    });
    chaos::run(&world, &mut processes);
    producing.join().expect("a panic ends the simulation");
    world.appear(&processes);
    world.heal();
    processes.iter_mut().for_each(|process| process.restart_if_not_alone(&world));
    world.drain(&mut processes);
    processes.into_iter().for_each(Process::end);
    world.cluster.close();
}
