//! Calls: callers and the responders of one service, in a simulated world of their own.

mod callers;
mod checks;
mod responder;
mod service;

use std::sync::Arc;
use std::time::Duration;

use awoke_engine::kafka::{Cluster, Faults};
use awoke_engine::wake::simulation::{JoinHandle, check_each_step, pass_time, random, spawn, trace};

use callers::Client;
use checks::Checks;
use responder::Responder;
use service::{GROUP, Service};

/// After this time all calls have ended and all requests are committed, or never will be.
const DRAINED_WITHIN: Duration = Duration::from_mins(2);

/// One simulated world: a service, its callers, its responders.
pub struct World {
    pub cluster: Arc<Cluster>,
    pub checks: Arc<Checks>,
    pub service: Service,
}

impl World {
    fn new() -> Arc<Self> {
        let cluster = Cluster::install();
        let service = Service::random(&cluster);
        let checks = Checks::new(&cluster, &service);
        let rate = |all: &[u64]| all[random(all.len() as u64) as usize];
        cluster.set_faults(Faults {
            request: rate(&[0, 0, 20, 5]),
            answer: rate(&[0, 0, 20, 5]),
            produce: rate(&[0, 0, 20]),
            report: rate(&[0, 0, 20]),
            unconfirmed: rate(&[0, 0, 20]),
            step_us: rate(&[10, 5_000, 100_000]),
        });
        Arc::new(Self { cluster, checks, service })
    }

    /// Ends all faults.
    fn heal(&self) {
        trace(|| "all faults end".to_owned());
        self.cluster.set_faults(Faults { step_us: 100, ..Faults::default() });
        self.service.heal();
    }

    /// Waits until all requests are committed, and no responder has a call.
    fn drain(&self, responders: &[Responder]) {
        let mut missing = None;
        for _ in 0..DRAINED_WITHIN.as_secs() {
            missing = self.checks.missing();
            if missing.is_none() && responders.iter().all(Responder::is_idle) {
                return;
            }
            pass_time(Duration::from_secs(1));
        }
        panic!("requests are stuck: {}", missing.unwrap_or_else(|| "a call was not released".to_owned()));
    }
}

/// Makes some trouble, at random times.
fn make_trouble(world: &Arc<World>, responders: &mut Vec<Responder>, clients: &[Client]) -> Vec<JoinHandle<()>> {
    let (restarts, may_close) = (random(2) == 0, random(3) == 0);
    let mut closing = Vec::new();
    for _ in 0..random(12) {
        pass_time(Duration::from_micros(random(800_000)));
        let place = random(responders.len().max(1) as u64) as usize;
        match random(9) {
            0..2 => world.cluster.rebalance(GROUP),
            2 => world.cluster.lose(GROUP, place),
            3 if restarts && place < responders.len() => responders.remove(place).end(world),
            4 if responders.len() < 3 => responders.push(Responder::start(world)),
            5 => world.checks.note_disconnected(random(2) == 0),
            6 if may_close => closing.extend(clients.first().map(|client| client.close_soon(world))),
            _ => (),
        }
    }
    closing
}

/// Lives through one seed: the first task of a simulation.
pub fn live() {
    let world = World::new();
    check_each_step({
        let checks = Arc::clone(&world.checks);
        move || checks.check()
    });
    spawn("cluster", {
        let cluster = Arc::clone(&world.cluster);
        move || cluster.run()
    });
    let mut responders: Vec<_> = (0..=random(2)).map(|_| Responder::start(&world)).collect();
    let clients: Vec<_> = (0..=random(1)).map(|number| Client::start(&world, number)).collect();
    let closing = make_trouble(&world, &mut responders, &clients);
    world.heal();
    if responders.is_empty() {
        responders.push(Responder::start(&world));
    }
    clients.iter().for_each(Client::join);
    closing.into_iter().for_each(|each| each.join().expect("a panic ends the simulation"));
    world.drain(&responders);
    clients.iter().for_each(|client| client.call_in_peace(&world));
    clients.into_iter().for_each(|client| client.end(&world));
    world.drain(&responders);
    responders.into_iter().for_each(|responder| responder.end(&world));
    world.cluster.close();
}
