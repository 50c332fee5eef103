//! Weights and limits of classes.

use super::*;

#[test]
fn classes_get_jobs_by_their_weight() {
    let scheduler = TestScheduler::default();
    let (heavy, light) = (scheduler.add_class(3, None), scheduler.add_class(1, None));
    for (owner, class) in [("heavy", heavy), ("heavy", heavy), ("light", light), ("light", light)] {
        let unit = scheduler.open(owner, UnitOptions { class, ..UnitOptions::default() });
        scheduler.announce(unit);
    }
    let mut heavies = 0;
    for _ in 0..40 {
        let Some(Next::Messages(id, owner, _)) = scheduler.try_next() else { panic!("units are ready") };
        heavies += usize::from(owner == "heavy");
        scheduler.finish(id, Outcome::MaybeMore);
    }
    assert_eq!(heavies, 30);
}

/// Units of one class with this limit, all of which have messages.
fn limited(scheduler: &TestScheduler, jobs_max: usize, count: usize) -> Vec<UnitId> {
    let class = scheduler.add_class(1, Some(jobs_max));
    let open = |_| scheduler.open("unit", UnitOptions { class, ..UnitOptions::default() });
    let ids: Vec<_> = (0..count).map(open).collect();
    ids.iter().for_each(|id| scheduler.announce(*id));
    ids
}

#[test]
fn no_more_jobs_of_a_class_run_than_its_limit() {
    let scheduler = TestScheduler::default();
    limited(&scheduler, 2, 3);
    scheduler.announce(scheduler.open("other", UnitOptions::default()));
    let mut begun = Vec::new();
    while let Some(Next::Messages(id, owner, _)) = scheduler.try_next() {
        begun.push((id, owner));
    }
    let owners: Vec<_> = begun.iter().map(|(_, owner)| *owner).collect();
    assert_eq!(owners.iter().filter(|owner| **owner == "unit").count(), 2);
    assert!(owners.contains(&"other"), "another class is not held up");
    let (first, _) = begun.into_iter().find(|(_, owner)| *owner == "unit").expect("two run");
    scheduler.finish(first, Outcome::Exhausted);
    assert!(matches!(scheduler.try_next(), Some(Next::Messages(..))), "the third takes its place");
    assert!(scheduler.try_next().is_none());
}

#[test]
fn a_hook_does_not_wait_for_the_jobs_of_a_full_class() {
    let scheduler = TestScheduler::default();
    let ids = limited(&scheduler, 1, 3);
    assert!(matches!(scheduler.try_next(), Some(Next::Messages(..))));
    scheduler.post_hook(ids[2], "revoked");
    assert!(matches!(scheduler.try_next(), Some(Next::Hook(id, _, "revoked")) if id == ids[2]));
    scheduler.finish(ids[2], Outcome::Exhausted);
    assert!(scheduler.try_next().is_none(), "its messages wait");
    scheduler.finish(ids[0], Outcome::Exhausted);
    assert!(matches!(scheduler.try_next(), Some(Next::Messages(id, ..)) if id == ids[1]));
}

#[test]
fn hooks_that_follow_one_another_do_not_free_the_place_of_a_job() {
    let scheduler = TestScheduler::default();
    let class = scheduler.add_class(1, Some(1));
    let unit = scheduler.open("unit", UnitOptions { class, ..UnitOptions::default() });
    scheduler.announce(unit);
    scheduler.post_hook(unit, "first");
    scheduler.post_hook(unit, "second");
    for _ in 0..2 {
        assert!(matches!(scheduler.try_next(), Some(Next::Hook(..))));
        scheduler.finish(unit, Outcome::MaybeMore);
    }
    assert!(matches!(scheduler.try_next(), Some(Next::Messages(_, "unit", _))));
    scheduler.announce(scheduler.open("other", UnitOptions { class, ..UnitOptions::default() }));
    assert!(scheduler.try_next().is_none(), "one runs, however often its unit was ready");
}

#[test]
fn a_tick_does_not_wait_for_the_jobs_of_a_full_class() {
    let scheduler = TestScheduler::default();
    let class = scheduler.add_class(1, Some(1));
    let tick = Some((Duration::from_millis(1), "tick"));
    scheduler.announce(scheduler.open("busy", UnitOptions { class, ..UnitOptions::default() }));
    assert!(matches!(scheduler.try_next(), Some(Next::Messages(_, "busy", _))));
    scheduler.announce(scheduler.open("ticking", UnitOptions { class, tick, ..UnitOptions::default() }));
    assert!(matches!(scheduler.next(&soon()), Next::Hook(_, "ticking", "tick")));
}

#[test]
fn a_unit_that_is_closed_while_its_job_runs_counts_until_the_job_ends() {
    let scheduler = TestScheduler::default();
    let ids = limited(&scheduler, 1, 2);
    assert!(matches!(scheduler.try_next(), Some(Next::Messages(..))));
    scheduler.close_unit(ids[0]);
    assert!(scheduler.try_next().is_none(), "it still runs");
    scheduler.finish(ids[0], Outcome::Exhausted);
    assert!(matches!(scheduler.try_next(), Some(Next::Messages(id, ..)) if id == ids[1]));
}

#[test]
fn an_exchange_keeps_the_limit() {
    let scheduler = TestScheduler::default();
    let ids = limited(&scheduler, 1, 1);
    let intake = scheduler.open("intake", UnitOptions::default());
    assert!(matches!(scheduler.try_next(), Some(Next::Messages(..))));
    scheduler.announce(intake);
    assert!(matches!(scheduler.try_next(), Some(Next::Messages(_, "intake", _))));
    let slot = scheduler.open("slot", UnitOptions { class: ClassId::default(), ..UnitOptions::default() });
    assert!(matches!(scheduler.exchange(intake, Outcome::Exhausted, slot), Some(Next::Messages(_, "slot", _))));
    scheduler.announce(ids[0]);
    assert!(scheduler.exchange(slot, Outcome::Exhausted, ids[0]).is_none(), "it runs");
    scheduler.finish(ids[0], Outcome::Exhausted);
    assert!(matches!(scheduler.try_next(), Some(Next::Messages(id, ..)) if id == ids[0]));
}

#[test]
fn with_a_limit_all_units_are_served_and_never_too_many_at_once() {
    use std::sync::atomic::AtomicUsize;
    let scheduler = Arc::new(TestScheduler::default());
    let ids = limited(&scheduler, 2, 8);
    let (running, most, jobs) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                while let Next::Messages(id, ..) = scheduler.next(&soon()) {
                    most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    std::thread::yield_now();
                    running.fetch_sub(1, Ordering::SeqCst);
                    if jobs.fetch_add(1, Ordering::SeqCst) == 20_000 {
                        scheduler.close();
                    }
                    scheduler.finish(id, Outcome::MaybeMore);
                }
            });
        }
        ids.iter().for_each(|id| scheduler.announce(*id));
    });
    assert_eq!(most.into_inner(), 2);
    assert!(jobs.into_inner() > 20_000);
}

#[test]
fn a_class_that_had_nothing_to_do_gets_no_more_than_its_share_afterwards() {
    let scheduler = TestScheduler::default();
    let (one, other) = (scheduler.add_class(1, None), scheduler.add_class(1, None));
    let busy = scheduler.open("busy", UnitOptions { class: one, ..UnitOptions::default() });
    scheduler.announce(busy);
    for _ in 0..100 {
        let Some(Next::Messages(id, ..)) = scheduler.try_next() else { panic!("it is ready") };
        scheduler.finish(id, Outcome::MaybeMore);
    }
    scheduler.announce(scheduler.open("late", UnitOptions { class: other, ..UnitOptions::default() }));
    let mut seen = Vec::new();
    for _ in 0..4 {
        let Some(Next::Messages(id, owner, _)) = scheduler.try_next() else { panic!("two are ready") };
        seen.push(owner);
        scheduler.finish(id, Outcome::MaybeMore);
    }
    assert_eq!(seen.iter().filter(|owner| **owner == "late").count(), 2, "{seen:?}");
}
