//! Tests of the scheduler. Waiting threads are real; `stats` tells when they wait.

mod classes;
mod rest;
mod timers;

use super::*;

type TestScheduler = Scheduler<&'static str, &'static str>;

fn soon() -> Deadline {
    Deadline::after(Some(Duration::from_secs(10)))
}

fn owner_of(next: &Next<&'static str, &'static str>) -> &'static str {
    match next {
        Next::Messages(_, owner, _) | Next::Hook(_, owner, _) => owner,
        Next::Closed => "closed",
        Next::TimedOut => "timed out",
    }
}

fn wait_until_idle(scheduler: &TestScheduler, workers: usize) {
    while scheduler.stats().idle < workers {
        std::thread::yield_now();
    }
}

#[test]
fn units_take_turns() {
    let scheduler = TestScheduler::default();
    let (one, other) = (scheduler.open("one", UnitOptions::default()), scheduler.open("other", UnitOptions::default()));
    scheduler.announce(one);
    scheduler.announce(other);
    let mut seen = Vec::new();
    for _ in 0..4 {
        let Some(Next::Messages(id, owner, _)) = scheduler.try_next() else { panic!("two units are ready") };
        seen.push(owner);
        scheduler.finish(id, Outcome::MaybeMore);
    }
    assert_eq!(seen, ["one", "other", "one", "other"]);
}

#[test]
fn a_running_unit_is_given_to_no_other_worker() {
    let scheduler = TestScheduler::default();
    let unit = scheduler.open("unit", UnitOptions::default());
    scheduler.announce(unit);
    assert!(matches!(scheduler.try_next(), Some(Next::Messages(..))));
    scheduler.announce(unit);
    assert!(scheduler.try_next().is_none());
    scheduler.finish(unit, Outcome::Exhausted);
    assert!(matches!(scheduler.try_next(), Some(Next::Messages(..))));
}

#[test]
fn hooks_run_before_messages_and_after_withdrawal() {
    let scheduler = TestScheduler::default();
    let unit = scheduler.open("unit", UnitOptions::default());
    scheduler.announce(unit);
    scheduler.post_hook(unit, "assigned");
    assert!(matches!(scheduler.try_next(), Some(Next::Hook(_, _, "assigned"))));
    scheduler.withdraw(unit);
    scheduler.finish(unit, Outcome::Exhausted);
    assert!(scheduler.try_next().is_none());
    scheduler.post_hook(unit, "revoked");
    assert!(matches!(scheduler.try_next(), Some(Next::Hook(_, _, "revoked"))));
}

#[test]
fn a_held_unit_begins_when_it_is_released_or_withdrawn() {
    let scheduler = TestScheduler::default();
    let [released, withdrawn] = ["released", "withdrawn"].map(|name| {
        let unit = scheduler.open(name, UnitOptions::default());
        scheduler.hold(unit);
        scheduler.post_hook(unit, "assigned");
        scheduler.announce(unit);
        unit
    });
    assert!(scheduler.try_next().is_none());
    scheduler.release(released);
    assert!(matches!(scheduler.try_next(), Some(Next::Hook(_, "released", "assigned"))));
    scheduler.finish(released, Outcome::MaybeMore);
    assert!(matches!(scheduler.try_next(), Some(Next::Messages(_, "released", _))));
    scheduler.withdraw(withdrawn);
    assert!(matches!(scheduler.try_next(), Some(Next::Hook(_, "withdrawn", "assigned"))));
    scheduler.finish(withdrawn, Outcome::MaybeMore);
    assert!(scheduler.try_next().is_none());
}

#[test]
fn a_waiting_worker_is_woken_once_for_each_job() {
    let scheduler = Arc::new(TestScheduler::default());
    let unit = scheduler.open("unit", UnitOptions::default());
    let worker = std::thread::spawn({
        let scheduler = Arc::clone(&scheduler);
        move || {
            let mut jobs = 0;
            while let Next::Messages(id, ..) = scheduler.next(&soon()) {
                jobs += 1;
                scheduler.finish(id, Outcome::Exhausted);
            }
            jobs
        }
    });
    for _ in 0..100 {
        wait_until_idle(&scheduler, 1);
        scheduler.announce(unit);
    }
    wait_until_idle(&scheduler, 1);
    scheduler.close();
    assert_eq!(worker.join().expect("no panic"), 100);
    assert_eq!(scheduler.counters().job_wakes.get(), 100);
    assert_eq!(scheduler.counters().clock_wakes.get(), 0);
}

#[test]
fn waiting_for_release_ends_when_the_job_and_the_hooks_are_done() {
    let scheduler = Arc::new(TestScheduler::default());
    let unit = scheduler.open("unit", UnitOptions::default());
    scheduler.announce(unit);
    assert!(matches!(scheduler.try_next(), Some(Next::Messages(..))));
    scheduler.withdraw(unit);
    let worker = std::thread::spawn({
        let scheduler = Arc::clone(&scheduler);
        move || scheduler.finish(unit, Outcome::MaybeMore)
    });
    assert!(scheduler.wait_released(unit, &Arc::default(), &soon()));
    worker.join().expect("no panic");
    assert!(scheduler.try_next().is_none());
}

#[test]
fn no_messages_start_when_quiet_and_all_workers_end_when_closed() {
    let scheduler = Arc::new(TestScheduler::default());
    let unit = scheduler.open("unit", UnitOptions::default());
    scheduler.quiet();
    scheduler.announce(unit);
    assert!(scheduler.try_next().is_none());
    let worker = std::thread::spawn({
        let scheduler = Arc::clone(&scheduler);
        move || owner_of(&scheduler.next(&soon()))
    });
    wait_until_idle(&scheduler, 1);
    scheduler.close();
    assert_eq!(worker.join().expect("no panic"), "closed");
}

#[test]
fn a_paused_unit_keeps_its_messages_and_runs_its_hooks() {
    let scheduler = TestScheduler::default();
    let unit = scheduler.open("unit", UnitOptions::default());
    scheduler.pause(unit);
    scheduler.announce(unit);
    assert!(scheduler.try_next().is_none());
    scheduler.post_hook(unit, "hook");
    assert!(matches!(scheduler.try_next(), Some(Next::Hook(_, _, "hook"))));
    scheduler.finish(unit, Outcome::Exhausted);
    assert!(scheduler.try_next().is_none());
    scheduler.resume(unit);
    assert!(matches!(scheduler.try_next(), Some(Next::Messages(..))));
}

#[test]
fn a_worker_goes_from_one_unit_to_another_and_wakes_no_other_worker() {
    let scheduler = TestScheduler::default();
    let (one, other) = (scheduler.open("one", UnitOptions::default()), scheduler.open("other", UnitOptions::default()));
    scheduler.announce(one);
    assert_eq!(owner_of(&scheduler.try_next().expect("it is ready")), "one");
    assert!(matches!(scheduler.exchange(one, Outcome::Exhausted, other), Some(Next::Messages(_, "other", _))));
    assert!(scheduler.try_next().is_none());
    scheduler.finish(other, Outcome::Exhausted);
    assert_eq!(scheduler.counters().job_wakes.get(), 0);
}

#[test]
fn a_unit_with_a_pending_operation_is_not_released_though_no_worker_runs_it() {
    let scheduler = Arc::new(TestScheduler::default());
    let unit = scheduler.open("unit", UnitOptions::default());
    scheduler.add_pending(unit);
    scheduler.add_pending(unit);
    assert!(!scheduler.wait_released(unit, &Arc::default(), &Deadline::after(Some(Duration::ZERO))));
    let other = std::thread::spawn({
        let scheduler = Arc::clone(&scheduler);
        move || (0..2).for_each(|_| scheduler.end_pending(unit))
    });
    assert!(scheduler.wait_released(unit, &Arc::default(), &soon()));
    other.join().expect("no panic");
}

#[test]
fn dismissed_workers_end_and_the_others_go_on() {
    let scheduler = Arc::new(TestScheduler::default());
    let workers: Vec<_> = (0..3)
        .map(|_| {
            let scheduler = Arc::clone(&scheduler);
            std::thread::spawn(move || owner_of(&scheduler.next(&soon())))
        })
        .collect();
    wait_until_idle(&scheduler, 3);
    scheduler.dismiss(2);
    while scheduler.stats().idle > 1 {
        std::thread::yield_now();
    }
    let unit = scheduler.open("unit", UnitOptions::default());
    scheduler.announce(unit);
    let mut seen: Vec<_> = workers.into_iter().map(|worker| worker.join().expect("no panic")).collect();
    seen.sort_unstable();
    assert_eq!(seen, ["closed", "closed", "unit"]);
}
