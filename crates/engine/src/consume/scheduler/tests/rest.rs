//! Tests of the wait for rest.

use super::*;

#[test]
fn a_scheduler_without_work_rests() {
    let scheduler = TestScheduler::default();
    scheduler.open("unit", UnitOptions::default());
    assert!(scheduler.at_rest(0).is_done());
}

#[test]
fn a_ready_and_a_running_unit_do_not_rest() {
    let scheduler = TestScheduler::default();
    let unit = scheduler.open("unit", UnitOptions::default());
    scheduler.announce(unit);
    let rest = scheduler.at_rest(0);
    assert!(!rest.is_done(), "it is ready");
    assert!(scheduler.try_next().is_some());
    assert!(!rest.is_done(), "it runs");
    scheduler.finish(unit, Outcome::MaybeMore);
    assert!(!rest.is_done(), "it is ready again");
    assert!(scheduler.try_next().is_some());
    scheduler.finish(unit, Outcome::Exhausted);
    assert!(rest.is_done());
}

#[test]
fn a_unit_in_a_back_off_rests() {
    let scheduler = TestScheduler::default();
    let unit = scheduler.open("unit", UnitOptions::default());
    scheduler.announce(unit);
    assert!(scheduler.try_next().is_some());
    scheduler.finish(unit, Outcome::NotBefore(Instant::now() + Duration::from_hours(1)));
    assert!(scheduler.at_rest(0).is_done());
}

#[test]
fn the_next_rest_comes_after_another_job() {
    let scheduler = TestScheduler::default();
    let unit = scheduler.open("unit", UnitOptions::default());
    let rest = scheduler.at_rest(1);
    assert!(!rest.is_done(), "no job has begun");
    scheduler.announce(unit);
    assert!(scheduler.try_next().is_some());
    scheduler.finish(unit, Outcome::Exhausted);
    assert!(rest.is_done());
}

#[test]
fn a_pending_operation_does_not_rest() {
    let scheduler = TestScheduler::default();
    let unit = scheduler.open("unit", UnitOptions::default());
    scheduler.add_pending(unit);
    let rest = scheduler.at_rest(0);
    assert!(!rest.is_done());
    scheduler.end_pending(unit);
    assert!(rest.is_done());
}

#[test]
fn a_unit_that_is_paused_while_it_is_ready_rests_when_a_worker_has_looked() {
    let scheduler = TestScheduler::default();
    let unit = scheduler.open("unit", UnitOptions::default());
    scheduler.announce(unit);
    scheduler.pause(unit);
    let rest = scheduler.at_rest(0);
    assert!(scheduler.try_next().is_none());
    assert!(rest.is_done());
}

#[test]
fn a_closed_scheduler_ends_the_wait_with_an_error() {
    let scheduler = TestScheduler::default();
    let rest = scheduler.at_rest(1);
    scheduler.close();
    assert!(matches!(rest.get(), Some(Err(Error::Closed { .. }))));
    assert!(matches!(scheduler.at_rest(0).get(), Some(Err(Error::Closed { .. }))));
}
