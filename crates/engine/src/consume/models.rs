//! Models of the scheduler: loom tries every interleaving of the threads below.
//!
//! Run by `make models`. A lost wake-up shows as a deadlock, which loom reports.

use std::sync::Arc;

use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;

use super::{Next, Outcome, Scheduler, UnitOptions};
use crate::clock::Deadline;
use crate::wake::Parker;
use crate::wake::model::{check, time};

type TestScheduler = Scheduler<&'static str, &'static str>;

#[test]
fn a_unit_reaches_a_waiting_worker() {
    check(|| {
        let scheduler = Arc::new(TestScheduler::default());
        let unit = scheduler.open("unit", UnitOptions::default());
        let other = Arc::clone(&scheduler);
        let announcer = thread::spawn(move || other.announce(unit));
        assert!(matches!(scheduler.next_on(&Arc::default(), &Deadline::NEVER), Next::Messages(..)));
        announcer.join().expect("no panic");
    });
}

#[test]
fn what_is_announced_during_a_job_is_not_lost() {
    check(|| {
        let scheduler = Arc::new(TestScheduler::default());
        let unit = scheduler.open("unit", UnitOptions::default());
        scheduler.announce(unit);
        let other = Arc::clone(&scheduler);
        let announcer = thread::spawn(move || other.announce(unit));
        // The announcement comes before, during or after the first job; in the first case one job sees both.
        assert!(matches!(scheduler.next_on(&Arc::default(), &Deadline::NEVER), Next::Messages(..)));
        let had_come = scheduler.try_next().is_none();
        scheduler.finish(unit, Outcome::Exhausted);
        announcer.join().expect("no panic");
        assert!(had_come);
        if let Some(next) = scheduler.try_next() {
            assert!(matches!(next, Next::Messages(..)));
        }
    });
}

#[test]
fn two_workers_get_two_units_and_one_wake_up_each() {
    check(|| {
        let scheduler = Arc::new(TestScheduler::default());
        let ids = [scheduler.open("one", UnitOptions::default()), scheduler.open("other", UnitOptions::default())];
        let other = Arc::clone(&scheduler);
        let announcer = thread::spawn(move || ids.into_iter().for_each(|id| other.announce(id)));
        let other = Arc::clone(&scheduler);
        let worker =
            thread::spawn(move || matches!(other.next_on(&Arc::default(), &Deadline::NEVER), Next::Messages(..)));
        assert!(matches!(scheduler.next_on(&Arc::default(), &Deadline::NEVER), Next::Messages(..)));
        assert!(worker.join().expect("no panic"));
        announcer.join().expect("no panic");
        assert!(scheduler.counters().job_wakes.get() <= 2);
        assert_eq!(scheduler.counters().clock_wakes.get(), 0);
    });
}

#[test]
fn a_limit_loses_no_unit_and_is_kept() {
    check(|| {
        let scheduler = Arc::new(TestScheduler::default());
        let class = scheduler.add_class(1, Some(1));
        let options = || UnitOptions { class, ..UnitOptions::default() };
        let ids = [scheduler.open("one", options()), scheduler.open("other", options())];
        let is_running = Arc::new(AtomicBool::new(false));
        let work = |scheduler: &TestScheduler, is_running: &AtomicBool| {
            let Next::Messages(id, ..) = scheduler.next_on(&Arc::default(), &Deadline::NEVER) else { return false };
            assert!(!is_running.swap(true, Ordering::SeqCst), "one at a time");
            is_running.store(false, Ordering::SeqCst);
            scheduler.finish(id, Outcome::Exhausted);
            true
        };
        let worker = thread::spawn({
            let (scheduler, is_running) = (Arc::clone(&scheduler), Arc::clone(&is_running));
            move || work(&scheduler, &is_running)
        });
        ids.into_iter().for_each(|id| scheduler.announce(id));
        assert!(work(&scheduler, &is_running));
        assert!(worker.join().expect("no panic"));
    });
}

#[test]
fn a_time_out_against_a_hand_over_keeps_the_lane() {
    check(|| {
        let scheduler = Arc::new(TestScheduler::default());
        let unit = scheduler.open("unit", UnitOptions::default());
        let parker = Arc::new(Parker::default());
        let (deadline, clock) = time(&parker);
        let other = Arc::clone(&scheduler);
        let announcer = thread::spawn(move || other.announce(unit));
        let got_it = matches!(scheduler.next_on(&parker, &deadline), Next::Messages(..));
        announcer.join().expect("no panic");
        clock.join().expect("no panic");
        // A worker that did not get it leaves it to the next one.
        assert_eq!(got_it, scheduler.try_next().is_none());
    });
}

#[test]
fn closing_ends_every_wait() {
    check(|| {
        let scheduler = Arc::new(TestScheduler::default());
        let workers: Vec<_> = (0..2)
            .map(|_| {
                let scheduler = Arc::clone(&scheduler);
                thread::spawn(move || matches!(scheduler.next_on(&Arc::default(), &Deadline::NEVER), Next::Closed))
            })
            .collect();
        scheduler.close();
        workers.into_iter().for_each(|worker| assert!(worker.join().expect("no panic")));
    });
}

#[test]
fn a_unit_is_released_when_its_job_and_its_hook_are_done() {
    check(|| {
        let scheduler = Arc::new(TestScheduler::default());
        let unit = scheduler.open("unit", UnitOptions::default());
        scheduler.announce(unit);
        let other = Arc::clone(&scheduler);
        let worker = thread::spawn(move || {
            while let Next::Messages(id, ..) | Next::Hook(id, _, _) = other.next_on(&Arc::default(), &Deadline::NEVER) {
                other.finish(id, Outcome::Exhausted);
            }
        });
        scheduler.withdraw(unit);
        assert!(scheduler.wait_released(unit, &Arc::default(), &Deadline::NEVER));
        scheduler.post_hook(unit, "revoked");
        assert!(scheduler.wait_released(unit, &Arc::default(), &Deadline::NEVER));
        scheduler.close();
        worker.join().expect("no panic");
    });
}

#[test]
fn a_dismissed_worker_leaves_no_unit_behind() {
    check(|| {
        let scheduler = Arc::new(TestScheduler::default());
        let unit = scheduler.open("unit", UnitOptions::default());
        let workers: Vec<_> = (0..2)
            .map(|_| {
                let scheduler = Arc::clone(&scheduler);
                thread::spawn(move || {
                    let mut jobs = 0;
                    while let Next::Messages(id, ..) = scheduler.next_on(&Arc::default(), &Deadline::NEVER) {
                        jobs += 1;
                        scheduler.finish(id, Outcome::Exhausted);
                        scheduler.dismiss(1); // The last job done, the other worker is to end, too.
                    }
                    jobs
                })
            })
            .collect();
        scheduler.announce(unit);
        scheduler.dismiss(1);
        let jobs: usize = workers.into_iter().map(|worker| worker.join().expect("no panic")).sum();
        assert_eq!(jobs, 1);
    });
}

#[test]
fn an_operation_that_ends_during_a_wait_for_release_is_noticed() {
    check(|| {
        let scheduler = Arc::new(TestScheduler::default());
        let unit = scheduler.open("unit", UnitOptions::default());
        scheduler.add_pending(unit);
        let other = Arc::clone(&scheduler);
        let ending = thread::spawn(move || other.end_pending(unit));
        assert!(scheduler.wait_released(unit, &Arc::default(), &Deadline::NEVER));
        ending.join().expect("no panic");
    });
}
