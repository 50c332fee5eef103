//! Workers, and the handlers that they call.

use std::sync::Arc;
use std::time::Duration;

use awoke_engine::clock::Deadline;
use awoke_engine::consume::{Hook, Job, LaneAssignment, PartitionQueue, PartitionScheduler, SharedJob, Step, Work};
use awoke_engine::wake::simulation::{pass_time, pause, random, spawn, trace};

use crate::checks::{Handled, handled};
use crate::transactions::{self, Transactions};
use crate::world::{Style, World};

/// Works until the scheduler is closed.
pub fn work(world: &Arc<World>, scheduler: &PartitionScheduler, transactions: &Arc<Transactions>) {
    loop {
        match scheduler.next_work(&Deadline::NEVER) {
            Work::Hook(hook) => {
                world.note_hook(hook.partition(), hook.hook());
                take_time();
                hook.finish();
            }
            Work::Job(job) => process(world, job, transactions),
            Work::AssignLanes(assignment) => assign_lanes(assignment),
            Work::Closed => return,
            Work::TimedOut | Work::EndOfPartition(_) => panic!("nothing asked for it"),
        }
    }
}

fn assign_lanes(assignment: LaneAssignment) {
    take_time();
    let number = |key: Option<&[u8]>| u64::from(key.and_then(|key| key.last().copied()).unwrap_or(0));
    let numbers: Vec<_> = assignment.batch().iter().map(|message| number(message.key())).collect();
    assignment.finish(Some(&numbers)).expect("the batch is not kept");
}

fn process(world: &Arc<World>, job: Job, transactions: &Arc<Transactions>) {
    let partition = Arc::clone(job.partition().expect("it has not ended"));
    match world.style(&partition) {
        Style::Singles => process_singles(world, &partition, job),
        Style::Batches => process_batch(world, &partition, job),
        Style::Outputs => process_outputs(world, &partition, job),
        Style::ExactlyOnce => transactions::process(world, &partition, job, transactions),
    }
}

/// Runs the other tasks for a moment, or for long.
pub fn take_time() {
    match random(64) {
        0 => pass_time(Duration::from_millis(random(4_000))),
        1..8 => pass_time(Duration::from_micros(random(20_000))),
        8..32 => pause(),
        _ => (),
    }
}

pub fn back_off() -> Duration {
    [Duration::ZERO, Duration::from_millis(5), Duration::from_millis(400)][random(3) as usize]
}

/// As the strategy of a function: one call for each message.
fn process_singles(world: &Arc<World>, partition: &Arc<PartitionQueue>, job: Job) {
    let (batch, first, end) = (Arc::clone(job.batch()), job.first(), job.end());
    let (order, epoch) = (world.order(partition), job.epoch());
    let shared = SharedJob::new(job);
    let turns = shared.turns(None, true).expect("it has not ended");
    let mut done: Vec<Handled> = Vec::new();
    loop {
        match turns.next(end - first) {
            Step::Handle(index) => {
                let message = handled(&batch, std::iter::once(first + index), order);
                let running = world.checks.begin(partition, epoch, &message, order);
                take_time();
                let is_failed = world.fails();
                if !is_failed {
                    world.checks.done(&message[0]);
                    done.extend(message.iter().cloned());
                }
                world.checks.end(running);
                if is_failed {
                    return fail_single(world, partition, &shared, &done, &message[0]);
                }
            }
            Step::Leave(index) => {
                turns.leave_from(batch.message(first + index).offset());
                break;
            }
            Step::End => break,
        }
    }
    drop(batch);
    if let Some(mut job) = shared.take()
        && job.complete().is_ok()
    {
        world.checks.recorded(partition, &done);
    }
}

fn fail_single(
    world: &Arc<World>,
    partition: &Arc<PartitionQueue>,
    shared: &SharedJob,
    done: &[Handled],
    failed: &Handled,
) {
    let Some(mut job) = shared.take() else { return };
    let before = job.count_before(failed.offset);
    if job.done(before).is_ok() {
        world.checks.recorded(partition, done);
    }
    pause();
    if random(3) == 0 {
        // A dead letter: the message is done, those behind it are left to a later job.
        trace(|| format!("skip {}", failed.offset));
        world.checks.done(failed);
        if job.done(job.count_until(failed.offset)).is_ok() {
            world.checks.recorded(partition, std::slice::from_ref(failed));
        }
        return job.release_rest();
    }
    trace(|| format!("retry {}", failed.offset));
    job.retry(back_off(), random(4) > 0);
}

/// As the strategy of a consumer class: one call for the batch.
fn process_batch(world: &Arc<World>, partition: &Arc<PartitionQueue>, mut job: Job) {
    if random(8) == 0 {
        job.truncate(1 + random(4) as usize);
    }
    let (first, order) = (job.first(), world.order(partition));
    let messages = handled(job.batch(), first..job.end(), order);
    let running = world.checks.begin(partition, job.epoch(), &messages, order);
    take_time();
    if !world.fails() {
        messages.iter().for_each(|message| world.checks.done(message));
        world.checks.end(running);
        if job.complete().is_ok() {
            world.checks.recorded(partition, &messages);
        }
        return;
    }
    // Some messages were marked as done before the failure.
    let marked = random(messages.len() as u64 + 1) as usize;
    messages[..marked].iter().for_each(|message| world.checks.done(message));
    if job.done(first + marked).is_ok() {
        world.checks.recorded(partition, &messages[..marked]);
    }
    take_time();
    world.checks.end(running);
    match random(3) {
        0 => job.release_rest(),
        1 => drop(job), // The worker died.
        _ => job.retry(back_off(), true),
    }
}

/// As the strategy of a function with an output: the job ends when what it sent is acknowledged.
fn process_outputs(world: &Arc<World>, partition: &Arc<PartitionQueue>, mut job: Job) {
    let (first, order) = (job.first(), world.order(partition));
    let messages = handled(job.batch(), first..job.end(), order);
    let running = world.checks.begin(partition, job.epoch(), &messages, order);
    take_time();
    let failed = if world.fails() { Some(random(messages.len() as u64) as usize) } else { None };
    let called = &messages[..failed.unwrap_or(messages.len())];
    called.iter().for_each(|message| world.checks.ran(message));
    world.checks.end(running);
    if failed.is_none() {
        job.leave_slot(random(4) > 0);
        return acknowledge(world, partition, job, messages, true);
    }
    if let Some(earlier) = job.split_off(first + called.len()) {
        acknowledge(world, partition, earlier, called.to_vec(), false);
    }
    job.retry(back_off(), true);
}

/// Ends a job when its records are acknowledged, or fail.
fn acknowledge(
    world: &Arc<World>,
    partition: &Arc<PartitionQueue>,
    mut job: Job,
    mut messages: Vec<Handled>,
    may_fail: bool,
) {
    let (world, partition, first) = (Arc::clone(world), Arc::clone(partition), job.first());
    // As behind a refused result: each part ends for itself.
    if may_fail
        && random(3) == 0
        && let Some(rest) = job.split_lanes_behind(first + random(messages.len() as u64) as usize)
    {
        let behind = messages.split_off(rest.first() - first);
        acknowledge(&world, &partition, rest, behind, true);
    }
    spawn("acknowledgements", move || {
        take_time();
        if may_fail && world.fails() {
            return job.retry(back_off(), true);
        }
        messages.iter().for_each(|message| world.checks.done(message));
        if job.complete().is_ok() {
            world.checks.recorded(&partition, &messages);
        }
    });
}

impl World {
    /// Keeps the partitions that are assigned, so that others can pause and seek them.
    pub fn note_hook(&self, partition: &Arc<PartitionQueue>, hook: Hook) {
        if hook != Hook::Tick {
            trace(|| format!("hook {hook:?} {partition:?}"));
        }
        match hook {
            Hook::Assigned => {
                self.add(partition);
                if self.seeks() && random(4) == 0 {
                    self.seek(partition);
                }
            }
            Hook::Revoked | Hook::Lost | Hook::Shutdown => {
                if self.is_patient() {
                    self.checks.assert_released(partition);
                }
                self.remove(partition);
            }
            Hook::Tick => (),
        }
    }
}
