//! Back-offs, ticks and other moments, and the event loops that wait for them.

use super::*;

#[derive(Default)]
struct Rings(Counter);

impl Notifier for Rings {
    fn notify(&self) {
        self.0.increment();
    }
    fn reset(&self) {}
}

#[test]
fn a_unit_in_a_back_off_comes_back_to_a_waiting_worker_by_itself() {
    let scheduler = TestScheduler::default();
    let unit = scheduler.open("unit", UnitOptions::default());
    scheduler.announce(unit);
    assert_eq!(owner_of(&scheduler.next(&soon())), "unit");
    let moment = Instant::now() + Duration::from_millis(20);
    scheduler.finish(unit, Outcome::NotBefore(moment));
    scheduler.announce(unit);
    assert!(scheduler.try_next().is_none());
    assert_eq!(owner_of(&scheduler.next(&soon())), "unit");
    assert!(Instant::now() >= moment);
}

#[test]
fn units_that_are_due_together_go_to_as_many_workers() {
    let scheduler = Arc::new(TestScheduler::default());
    let moment = Instant::now() + Duration::from_millis(50);
    for owner in ["one", "other"] {
        let unit = scheduler.open(owner, UnitOptions::default());
        scheduler.announce(unit);
        assert_eq!(owner_of(&scheduler.next(&soon())), owner);
        scheduler.finish(unit, Outcome::NotBefore(moment));
    }
    let workers: Vec<_> = (0..2)
        .map(|_| {
            let scheduler = Arc::clone(&scheduler);
            // Neither worker gives its unit back: each must get one of its own.
            std::thread::spawn(move || owner_of(&scheduler.next(&soon())))
        })
        .collect();
    let mut seen: Vec<_> = workers.into_iter().map(|worker| worker.join().expect("no panic")).collect();
    seen.sort_unstable();
    assert_eq!(seen, ["one", "other"]);
}

#[test]
fn a_unit_that_waits_for_more_begins_when_more_comes_or_its_time_is_over() {
    let scheduler = TestScheduler::default();
    let unit = scheduler.open("unit", UnitOptions::default());
    let moment = || Instant::now() + Duration::from_millis(20);
    scheduler.announce(unit);
    assert_eq!(owner_of(&scheduler.next(&soon())), "unit");
    scheduler.finish(unit, Outcome::Until(moment()));
    assert!(scheduler.try_next().is_none());
    scheduler.announce(unit);
    assert!(matches!(scheduler.try_next(), Some(Next::Messages(..))));
    let until = moment();
    scheduler.finish(unit, Outcome::Until(until));
    assert_eq!(owner_of(&scheduler.next(&soon())), "unit");
    scheduler.finish(unit, Outcome::Exhausted);
}

#[test]
fn a_tick_comes_again_and_again_until_the_unit_is_withdrawn() {
    let scheduler = TestScheduler::default();
    let tick = Some((Duration::from_millis(5), "tick"));
    let unit = scheduler.open("unit", UnitOptions { tick, ..UnitOptions::default() });
    for _ in 0..3 {
        assert!(matches!(scheduler.next(&soon()), Next::Hook(_, "unit", "tick")));
        scheduler.finish(unit, Outcome::Exhausted);
    }
    scheduler.withdraw(unit);
    assert!(matches!(scheduler.next(&Deadline::after(Some(Duration::from_millis(30)))), Next::TimedOut));
}

#[test]
fn a_unit_is_checked_when_its_moment_has_come() {
    let scheduler = TestScheduler::default();
    let unit = scheduler.open("unit", UnitOptions::default());
    let moment = Instant::now() + Duration::from_millis(10);
    scheduler.wake_at(unit, moment);
    assert!(matches!(scheduler.next(&soon()), Next::Messages(_, "unit", _)));
    assert!(Instant::now() >= moment);
}

#[test]
fn an_event_loop_that_waits_is_notified_of_a_new_first_alarm() {
    let scheduler = TestScheduler::default();
    let rings = Arc::new(Rings::default());
    let notifier: Arc<dyn Notifier> = Arc::clone(&rings) as _;
    let one = scheduler.open("one", UnitOptions::default());
    scheduler.announce(one);
    assert!(scheduler.next_or_notify(&notifier).0.is_some());
    assert_eq!(scheduler.next_or_notify(&notifier).1, None, "nothing to wait for");
    let moment = Instant::now() + Duration::from_mins(1);
    scheduler.finish(one, Outcome::NotBefore(moment));
    assert_eq!(rings.0.get(), 1);
    assert_eq!(scheduler.next_or_notify(&notifier).1, Some(moment));
}

#[test]
fn a_notifier_is_notified_once() {
    let scheduler = TestScheduler::default();
    let rings = Arc::new(Rings::default());
    let notifier: Arc<dyn Notifier> = Arc::clone(&rings) as _;
    let (one, other) = (scheduler.open("one", UnitOptions::default()), scheduler.open("other", UnitOptions::default()));
    assert!(scheduler.next_or_notify(&notifier).0.is_none());
    scheduler.announce(one);
    scheduler.announce(other);
    assert_eq!(rings.0.get(), 1);
    assert!(scheduler.next_or_notify(&notifier).0.is_some());
    assert!(scheduler.next_or_notify(&notifier).0.is_some());
    assert!(scheduler.next_or_notify(&notifier).0.is_none());
}
