//! The faults and the commands that come from outside.

use std::sync::Arc;
use std::time::Duration;

use awoke_engine::wake::simulation::{pass_time, random, trace};

use crate::process::Process;
use crate::transactions;
use crate::world::World;

/// Makes some trouble, at random times.
pub fn run(world: &Arc<World>, processes: &mut [Process]) {
    // Without ids, a truncated log is read again from its beginning: completed messages run again.
    // A seek of user code to an offset that a truncation removed skips messages, as it says.
    let (restarts, truncates) = (random(2) == 0, random(4) == 0 && !world.seeks() && world.has_ids);
    // Transactions tell by committed offsets what became of a commit in doubt: those of another log tell nothing.
    let recreates = processes.len() == 1 && !world.has_transactions() && !world.seeks();
    for _ in 0..random(20) {
        pass_time(Duration::from_micros(random(400_000)));
        processes.iter_mut().for_each(|process| process.restart_if_fenced(world));
        let process = random(processes.len() as u64) as usize;
        match random(15) {
            0..3 => world.cluster.rebalance("group"),
            3 => {
                world.cluster.lose("group", process);
                if random(2) == 0 {
                    world.appear(processes);
                }
            }
            4 if restarts && recreates && random(2) == 0 => {
                processes[process].restart_after(world, || recreate(world));
            }
            4 if restarts => processes[process].restart(world),
            5 => drop(processes[process].member.commit()),
            6 if truncates => truncate(world),
            7 => fetch_again(world),
            8 => mark(world),
            9 => world.cluster.fence(),
            10 => world.appear(processes),
            11 | 12 => act(world, processes),
            _ => command(world),
        }
    }
}

fn truncate(world: &World) {
    let at = &world.partitions[random(world.partitions.len() as u64) as usize];
    let end = random(world.cluster.end(at) as u64 + 1) as i64;
    trace(|| format!("truncate {at} to {end}"));
    world.checks.note_rewound(at, true);
    world.cluster.truncate(at, end);
}

/// Makes a topic again that no member reads now.
fn recreate(world: &World) {
    let topic = Arc::clone(&world.partitions[random(world.partitions.len() as u64) as usize].topic);
    trace(|| format!("make {topic} again"));
    for at in world.partitions.iter().filter(|at| at.topic == topic) {
        world.checks.note_rewound(at, true);
    }
    world.cluster.recreate(&topic);
}

fn fetch_again(world: &World) {
    let at = &world.partitions[random(world.partitions.len() as u64) as usize];
    trace(|| format!("fetch {at} again"));
    world.cluster.fetch_again(at, 1 + random(10) as i64);
}

/// Has a process send and write something that no message has caused.
fn act(world: &Arc<World>, processes: &[Process]) {
    let Some(partition) = world.any_open() else { return };
    for process in processes {
        transactions::act(world, &partition, process.transactions());
    }
}

fn mark(world: &World) {
    let at = &world.partitions[random(world.partitions.len() as u64) as usize];
    world.cluster.append_marker(at);
}

/// A command of user code. One of an assignment that has ended is refused.
fn command(world: &World) {
    let Some(partition) = world.any_open() else { return };
    trace(|| format!("a command for {partition:?}"));
    match random(5) {
        0 => world.pause(&partition),
        1 | 2 => drop(partition.resume()),
        3 => drop(partition.clear_backoff()),
        _ if world.seeks() => world.seek(&partition),
        _ => (),
    }
}
