//! Virtual time: it belongs to the process, so these tests have a process of their own, and one lock.

#![cfg(not(feature = "model"))]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use awoke_wake::clock::{self, Activity, Deadline, Due, Timed};
use awoke_wake::{Awaited, Recurrence, Signal};

const HOUR: Duration = Duration::from_hours(1);
const SOON: Duration = Duration::from_secs(10);

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn turn() -> MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Gives the clock back, whatever happens.
struct Taken;

impl Drop for Taken {
    fn drop(&mut self) {
        clock::release();
    }
}

/// Has the clock while `test` runs.
fn with_the_clock(test: impl FnOnce()) {
    let _turn = turn();
    have_the_clock(test);
}

fn have_the_clock(test: impl FnOnce()) {
    assert!(clock::take());
    let _taken = Taken;
    test();
}

#[test]
fn the_clock_stands_still_until_it_is_moved() {
    with_the_clock(|| {
        let (now, now_ns, wall) = (clock::now(), clock::now_ns(), clock::wall());
        assert_eq!((clock::now(), clock::now_ns(), clock::wall()), (now, now_ns, wall));
        clock::move_to(now + HOUR);
        assert_eq!(clock::now(), now + HOUR);
        assert_eq!(clock::now_ns(), now_ns + 3_600_000_000_000);
        assert_eq!(clock::wall(), wall + HOUR);
        clock::move_to(now);
        assert_eq!(clock::now(), now + HOUR, "it never goes back");
    });
}

#[test]
fn the_clock_is_taken_once_and_goes_on_from_where_it_stood() {
    let mut moved = Instant::now();
    with_the_clock(|| {
        assert!(!clock::take(), "it is taken");
        moved = clock::now() + HOUR;
        clock::move_to(moved);
    });
    assert!(!clock::is_virtual());
    assert!(clock::now() >= moved);
    assert!(clock::since(moved) < HOUR);
    assert!(Deadline::at(moved).has_passed());
    with_the_clock(|| assert!(clock::now() >= moved));
}

#[test]
fn no_time_ends_a_wait_for_the_clock_while_it_stands_still() {
    with_the_clock(|| {
        let deadline = Deadline::at(clock::now() + Duration::from_nanos(1));
        assert_eq!((deadline.remaining(), deadline.has_passed(), deadline.remaining_ms()), (None, false, -1));
        assert!(deadline.or_within(Some(SOON)).remaining().is_some_and(|left| left <= SOON));
        clock::move_to(clock::now() + Duration::from_nanos(1));
        assert_eq!((deadline.remaining(), deadline.has_passed()), (Some(Duration::ZERO), true));
        assert!(Deadline::after(Some(Duration::ZERO)).has_passed(), "real time goes on");
    });
}

#[test]
fn a_wait_ends_at_its_moment_and_not_before() {
    with_the_clock(|| {
        let signal = Signal::new();
        let (now, (tell, told)) = (clock::now(), mpsc::channel());
        let wait = signal.begin_wait(Some(HOUR), Recurrence::Once, false);
        let waiting = thread::spawn(move || {
            wait.block(&Deadline::NEVER);
            tell.send((clock::now(), wait.is_set())).expect("received");
        });
        assert_eq!(clock::next_due().once, Some(now + HOUR));
        clock::move_to(now + HOUR / 2);
        assert!(told.try_recv().is_err());
        clock::move_to(now + HOUR);
        assert_eq!(told.recv_timeout(SOON), Ok((now + HOUR, false)));
        waiting.join().expect("no panic");
        assert_eq!(clock::next_due(), Due::default());
    });
}

#[test]
fn a_wait_that_began_before_is_woken_when_the_clock_is_taken_and_when_it_is_given_back() {
    let _turn = turn();
    let signal = Signal::new();
    let wait = signal.begin_wait(Some(HOUR), Recurrence::Again, false);
    let blocked = thread::spawn({
        let wait = Arc::clone(&wait);
        move || wait.block(&Deadline::NEVER)
    });
    have_the_clock(|| {
        let due = clock::next_due().recurring.expect("it waits");
        clock::move_to(due.checked_sub(Duration::from_millis(1)).expect("it is late enough"));
    });
    // What is left of its time passes at the pace of real time.
    blocked.join().expect("no panic");
    assert!(wait.is_over() && !wait.is_set());
}

/// A part that works until it is told.
#[derive(Default)]
struct Part {
    running: AtomicUsize,
    waiting: AtomicUsize,
}

impl Timed for Part {
    fn name(&self) -> String {
        "part".into()
    }

    fn due(&self) -> Due {
        Due::default()
    }

    fn activity(&self) -> Activity {
        let (running, waiting) = (self.running.load(Ordering::SeqCst), self.waiting.load(Ordering::SeqCst));
        Activity { is_busy: false, running, waiting }
    }

    fn look(&self) {}
}

#[test]
fn a_thread_waits_until_all_parts_are_at_rest() {
    with_the_clock(|| {
        let part = Arc::new(Part::default());
        clock::register(&part);
        assert!(clock::settle(SOON, 0).is_empty());
        part.running.store(2, Ordering::SeqCst);
        part.waiting.store(1, Ordering::SeqCst);
        assert_eq!(clock::settle(Duration::ZERO, 0), ["part"]);
        assert_eq!(clock::running(), 1, "the other one waits for the clock");
        assert!(clock::settle(Duration::ZERO, 1).is_empty(), "it may go on");
        let settling = thread::spawn(|| clock::settle(SOON, 0));
        part.running.store(1, Ordering::SeqCst);
        clock::changed();
        assert!(settling.join().expect("no panic").is_empty(), "the job that runs waits for the clock");
    });
}

#[test]
fn a_thread_that_the_clock_has_woken_is_busy_until_it_waits_again_or_leaves() {
    with_the_clock(|| {
        let signal = Signal::new();
        signal.stay_awake();
        assert_eq!(clock::settle(Duration::ZERO, 0).len(), 1);
        let wait = signal.begin_wait(Some(HOUR), Recurrence::Again, false);
        assert!(clock::settle(Duration::ZERO, 0).is_empty());
        signal.stay_awake();
        signal.leave();
        drop(wait);
        assert!(clock::settle(Duration::ZERO, 0).is_empty());
    });
}
