//! Models of the scheduler: loom tries every interleaving of the threads below.
//!
//! Run by `make test` as `cargo test -p awoke-engine --features model --lib models`. A lost wake-up shows as a deadlock,
//! which loom reports. A model has no time: "the deadline passes" is a thread of its own.

use std::sync::Arc;

use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;

use super::{LaneOptions, Next, Outcome, Scheduler};
use crate::clock::Deadline;
use crate::sync::{Mutex, lock};
use crate::wake::Parker;

type Lanes = Scheduler<&'static str, &'static str>;

/// Every interleaving with at most this many forced switches: beyond three, no bug of this kind has been seen to hide.
fn check(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

/// A deadline, and the thread that makes it pass.
fn time(parker: &Arc<Parker>) -> (Deadline, thread::JoinHandle<()>) {
    let passed = Arc::new(AtomicBool::new(false));
    let clock = thread::spawn({
        let (parker, passed) = (Arc::clone(parker), Arc::clone(&passed));
        move || {
            passed.store(true, Ordering::SeqCst);
            parker.look_at_the_clock();
        }
    });
    (Deadline::flag(passed), clock)
}

#[test]
fn a_lane_reaches_a_waiting_worker() {
    check(|| {
        let lanes = Arc::new(Lanes::default());
        let lane = lanes.open("lane", LaneOptions::default());
        let other = Arc::clone(&lanes);
        let announcer = thread::spawn(move || other.announce(lane));
        assert!(matches!(lanes.next_on(&Arc::default(), &Deadline::NEVER), Next::Messages(..)));
        announcer.join().expect("no panic");
    });
}

#[test]
fn what_is_announced_during_a_job_is_not_lost() {
    check(|| {
        let lanes = Arc::new(Lanes::default());
        let lane = lanes.open("lane", LaneOptions::default());
        lanes.announce(lane);
        let other = Arc::clone(&lanes);
        let announcer = thread::spawn(move || other.announce(lane));
        // The announcement comes before, during or after the first job; in the first case one job sees both.
        assert!(matches!(lanes.next_on(&Arc::default(), &Deadline::NEVER), Next::Messages(..)));
        let had_come = lanes.try_next().is_none();
        lanes.finish(lane, Outcome::Exhausted);
        announcer.join().expect("no panic");
        assert!(had_come);
        if let Some(next) = lanes.try_next() {
            assert!(matches!(next, Next::Messages(..)));
        }
    });
}

#[test]
fn two_workers_get_two_lanes_and_one_wake_up_each() {
    check(|| {
        let lanes = Arc::new(Lanes::default());
        let ids = [lanes.open("one", LaneOptions::default()), lanes.open("other", LaneOptions::default())];
        let other = Arc::clone(&lanes);
        let announcer = thread::spawn(move || ids.into_iter().for_each(|id| other.announce(id)));
        let other = Arc::clone(&lanes);
        let worker =
            thread::spawn(move || matches!(other.next_on(&Arc::default(), &Deadline::NEVER), Next::Messages(..)));
        assert!(matches!(lanes.next_on(&Arc::default(), &Deadline::NEVER), Next::Messages(..)));
        assert!(worker.join().expect("no panic"));
        announcer.join().expect("no panic");
        assert!(lanes.counters().job_wakes.get() <= 2);
        assert_eq!(lanes.counters().clock_wakes.get(), 0);
    });
}

#[test]
fn a_limit_loses_no_lane_and_is_kept() {
    check(|| {
        let lanes = Arc::new(Lanes::default());
        let class = lanes.add_class(1, Some(1));
        let options = || LaneOptions { class, ..LaneOptions::default() };
        let ids = [lanes.open("one", options()), lanes.open("other", options())];
        let is_running = Arc::new(AtomicBool::new(false));
        let work = |lanes: &Lanes, is_running: &AtomicBool| {
            let Next::Messages(id, ..) = lanes.next_on(&Arc::default(), &Deadline::NEVER) else { return false };
            assert!(!is_running.swap(true, Ordering::SeqCst), "one at a time");
            is_running.store(false, Ordering::SeqCst);
            lanes.finish(id, Outcome::Exhausted);
            true
        };
        let worker = thread::spawn({
            let (lanes, is_running) = (Arc::clone(&lanes), Arc::clone(&is_running));
            move || work(&lanes, &is_running)
        });
        ids.into_iter().for_each(|id| lanes.announce(id));
        assert!(work(&lanes, &is_running));
        assert!(worker.join().expect("no panic"));
    });
}

#[test]
fn a_time_out_against_a_hand_over_keeps_the_lane() {
    check(|| {
        let lanes = Arc::new(Lanes::default());
        let lane = lanes.open("lane", LaneOptions::default());
        let parker = Arc::new(Parker::default());
        let (deadline, clock) = time(&parker);
        let other = Arc::clone(&lanes);
        let announcer = thread::spawn(move || other.announce(lane));
        let got_it = matches!(lanes.next_on(&parker, &deadline), Next::Messages(..));
        announcer.join().expect("no panic");
        clock.join().expect("no panic");
        // Whoever did not get it leaves it for the next to come.
        assert_eq!(got_it, lanes.try_next().is_none());
    });
}

#[test]
fn closing_ends_every_wait() {
    check(|| {
        let lanes = Arc::new(Lanes::default());
        let workers: Vec<_> = (0..2)
            .map(|_| {
                let lanes = Arc::clone(&lanes);
                thread::spawn(move || matches!(lanes.next_on(&Arc::default(), &Deadline::NEVER), Next::Closed))
            })
            .collect();
        lanes.close();
        workers.into_iter().for_each(|worker| assert!(worker.join().expect("no panic")));
    });
}

#[test]
fn a_lane_is_released_when_its_job_and_its_hook_are_done() {
    check(|| {
        let lanes = Arc::new(Lanes::default());
        let lane = lanes.open("lane", LaneOptions::default());
        lanes.announce(lane);
        let other = Arc::clone(&lanes);
        let worker = thread::spawn(move || {
            while let Next::Messages(id, ..) | Next::Hook(id, _, _) = other.next_on(&Arc::default(), &Deadline::NEVER) {
                other.finish(id, Outcome::Exhausted);
            }
        });
        lanes.withdraw(lane);
        assert!(lanes.wait_released(lane, &Arc::default(), &Deadline::NEVER));
        lanes.post_hook(lane, "revoked");
        assert!(lanes.wait_released(lane, &Arc::default(), &Deadline::NEVER));
        lanes.close();
        worker.join().expect("no panic");
    });
}

#[test]
fn a_dismissed_worker_leaves_no_lane_behind() {
    check(|| {
        let lanes = Arc::new(Lanes::default());
        let lane = lanes.open("lane", LaneOptions::default());
        let workers: Vec<_> = (0..2)
            .map(|_| {
                let lanes = Arc::clone(&lanes);
                thread::spawn(move || {
                    let mut jobs = 0;
                    while let Next::Messages(id, ..) = lanes.next_on(&Arc::default(), &Deadline::NEVER) {
                        jobs += 1;
                        lanes.finish(id, Outcome::Exhausted);
                        lanes.dismiss(1); // The last job done, the other worker is to end, too.
                    }
                    jobs
                })
            })
            .collect();
        lanes.announce(lane);
        lanes.dismiss(1);
        let jobs: usize = workers.into_iter().map(|worker| worker.join().expect("no panic")).sum();
        assert_eq!(jobs, 1);
    });
}

#[test]
fn a_hold_that_ends_against_a_wait_for_release_is_noticed() {
    check(|| {
        let lanes = Arc::new(Lanes::default());
        let lane = lanes.open("lane", LaneOptions::default());
        lanes.hold(lane);
        let other = Arc::clone(&lanes);
        let letting_go = thread::spawn(move || other.let_go(lane));
        assert!(lanes.wait_released(lane, &Arc::default(), &Deadline::NEVER));
        letting_go.join().expect("no panic");
    });
}
