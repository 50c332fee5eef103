//! Tests of the sequencer, with real threads; `models` tries the interleavings.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Sequencer, Sink};
use crate::clock::Deadline;
use crate::{Awaited, Error, Waker};

type Log = Arc<std::sync::Mutex<Vec<u64>>>;

fn collecting(capacity: usize) -> (Sequencer<u64, impl Sink<u64>>, Log) {
    let log = Log::default();
    let sink = {
        let log = Arc::clone(&log);
        move |index, entry| {
            assert_eq!(index, entry);
            log.lock().expect("no panic").push(entry);
        }
    };
    (Sequencer::new(capacity, sink), log)
}

fn seen(log: &Log) -> Vec<u64> {
    log.lock().expect("no panic").clone()
}

fn now() -> Deadline {
    Deadline::after(Some(Duration::ZERO))
}

fn soon() -> Deadline {
    Deadline::after(Some(Duration::from_secs(10)))
}

#[test]
fn the_thread_that_fills_the_gap_appends_all_later_entries() {
    let (sequencer, log) = collecting(8);
    for index in (1..8).rev() {
        assert!(sequencer.take(index, &now()).expect("room").claim_run(index).is_empty());
    }
    assert!(seen(&log).is_empty());
    assert_eq!(sequencer.take(0, &now()).expect("room").claim_run(0), 0..8);
    assert_eq!(seen(&log), (0..8).collect::<Vec<_>>());
    assert_eq!(sequencer.appended(), 8);
}

#[test]
fn an_index_can_be_taken_once() {
    let (sequencer, _log) = collecting(4);
    let permit = sequencer.take(0, &now()).expect("room");
    assert!(matches!(sequencer.take(0, &now()), Err(Error::Invalid { .. })));
    permit.deposit(0);
    assert!(matches!(sequencer.take(0, &now()), Err(Error::Invalid { .. })));
}

#[test]
fn a_dropped_permit_leaves_no_gap() {
    let (sequencer, log) = collecting(4);
    let first = sequencer.claim(&now()).expect("room");
    sequencer.claim(&now()).expect("room").deposit(1);
    drop(first);
    assert_eq!(seen(&log), [1]);
    assert_eq!(sequencer.appended(), 2);
}

#[test]
fn a_full_sequencer_has_room_for_an_index_once_enough_entries_were_appended() {
    let (sequencer, _log) = collecting(2);
    assert!(sequencer.room_for(1).is_none());
    let room = sequencer.room_for(2).expect("full");
    assert!(!room.is_ready());
    assert!(matches!(room.check(Instant::now()), Err(Error::TimedOut { .. })));
    sequencer.take(0, &now()).expect("room").deposit(0);
    assert!(room.is_ready() && room.check(Instant::now()).is_ok());
}

#[test]
fn room_is_by_index() {
    let (sequencer, _log) = collecting(2);
    sequencer.take(1, &now()).expect("room").deposit(1);
    assert!(matches!(sequencer.take(2, &now()), Err(Error::TimedOut { .. })));
    sequencer.take(0, &now()).expect("the missing one has room").deposit(0);
    sequencer.take(2, &now()).expect("room again").deposit(2);
    assert_eq!(sequencer.appended(), 3);
}

#[test]
fn a_claim_that_times_out_leaves_no_gap() {
    let (sequencer, log) = collecting(1);
    let first = sequencer.claim(&now()).expect("room");
    assert!(sequencer.try_claim().expect("open").is_none());
    assert!(matches!(sequencer.claim(&now()), Err(Error::TimedOut { .. })));
    first.deposit(0);
    assert_eq!(sequencer.appended(), 2);
    let third = sequencer.claim(&now()).expect("room");
    assert_eq!(third.index(), 2);
    third.deposit(2);
    assert_eq!(seen(&log), [0, 2]);
}

#[test]
fn a_timed_out_append_returns_the_entry_and_voids_the_index() {
    let (sequencer, log) = collecting(4);
    let second = sequencer.take(1, &now()).expect("room");
    let (error, entry) = second.append(1, &now()).expect_err("the first is missing");
    assert!(matches!(&error, Error::TimedOut { operation, .. } if operation.contains("entry 0 has been missing")));
    assert_eq!(entry, Some(1));
    sequencer.take(0, &now()).expect("room").deposit(0);
    assert_eq!(seen(&log), [0]);
    assert_eq!(sequencer.appended(), 2);
}

#[test]
fn the_missing_index_is_reported() {
    let (sequencer, _log) = collecting(8);
    assert_eq!(sequencer.missing(), None);
    sequencer.take(0, &now()).expect("room").deposit(0);
    assert_eq!(sequencer.missing(), None);
    sequencer.take(3, &now()).expect("room").deposit(3);
    let missing = sequencer.missing().expect("1 is missing");
    assert_eq!(missing.index, 1);
    sequencer.take(1, &now()).expect("room").deposit(1);
    assert_eq!(sequencer.missing().map(|missing| missing.index), Some(2));
    sequencer.take(2, &now()).expect("room").void();
    assert_eq!(sequencer.missing(), None);
}

#[test]
fn closing_ends_waits_and_refuses_later_claims() {
    let (sequencer, _log) = collecting(4);
    let sequencer = Arc::new(sequencer);
    let waiter = std::thread::spawn({
        let sequencer = Arc::clone(&sequencer);
        move || sequencer.take(1, &soon()).expect("room").append(1, &soon())
    });
    while sequencer.missing().is_none() {
        std::thread::yield_now();
    }
    sequencer.close();
    let (error, entry) = waiter.join().expect("no panic").expect_err("closed");
    assert!(matches!(error, Error::Closed { .. }));
    assert_eq!(entry, Some(1));
    assert!(matches!(sequencer.claim(&soon()), Err(Error::Closed { .. })));
}

#[test]
fn a_sink_that_panics_poisons_the_sequencer() {
    let sequencer = Arc::new(Sequencer::new(4, |index: u64, _: u64| assert_ne!(index, 1, "broken")));
    let waiter = std::thread::spawn({
        let sequencer = Arc::clone(&sequencer);
        move || sequencer.take(2, &soon()).expect("room").append(2, &soon())
    });
    while sequencer.missing().is_none() {
        std::thread::yield_now();
    }
    sequencer.take(0, &now()).expect("room").deposit(0);
    let filler = std::thread::spawn({
        let sequencer = Arc::clone(&sequencer);
        move || sequencer.take(1, &now()).expect("room").claim_run(1)
    });
    assert!(filler.join().is_err());
    let (error, _entry) = waiter.join().expect("no panic").expect_err("poisoned");
    assert!(matches!(error, Error::Poisoned { index: 1 }), "{error}");
    assert!(matches!(sequencer.take(3, &now()), Err(Error::Poisoned { .. })));
}

#[test]
fn entries_that_were_never_appended_are_dropped_with_the_sequencer() {
    let entry = Arc::new(());
    let sequencer = Sequencer::new(4, |_, _: Arc<()>| ());
    sequencer.take(2, &now()).expect("room").deposit(Arc::clone(&entry));
    assert_eq!(Arc::strong_count(&entry), 2);
    drop(sequencer);
    assert_eq!(Arc::strong_count(&entry), 1);
}

#[test]
fn many_threads_append_in_order_through_a_small_ring() {
    const THREADS: u64 = 16;
    const ENTRIES: u64 = 2_000;
    let (sequencer, log) = collecting(32);
    let sequencer = Arc::new(sequencer);
    let threads: Vec<_> = (0..THREADS)
        .map(|thread| {
            let sequencer = Arc::clone(&sequencer);
            std::thread::spawn(move || {
                for number in 0..ENTRIES {
                    let permit = sequencer.claim(&soon()).expect("room");
                    let index = permit.index();
                    match (thread + number) % 5 {
                        0 => drop(permit),
                        1 | 2 => {
                            permit.claim_run(index);
                        }
                        _ => permit.append(index, &soon()).expect("appended"),
                    }
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
    assert_eq!(sequencer.appended(), THREADS * ENTRIES);
    let log = seen(&log);
    assert_eq!(log.len() as u64, THREADS * ENTRIES * 4 / 5);
    assert!(log.is_sorted());
}

#[test]
fn an_index_beyond_the_last_possible_one_is_refused() {
    let (sequencer, _log) = collecting(4);
    assert!(matches!(sequencer.take(u64::MAX, &now()), Err(Error::Invalid { .. })));
}

#[test]
fn a_cancelled_ticket_returns_the_entry_once_and_an_appended_one_none() {
    let (sequencer, log) = collecting(4);
    let second = sequencer.take(1, &now()).expect("room").deposit(1);
    assert!(!second.is_appended());
    assert_eq!(second.cancel(), Some(1));
    let first = sequencer.take(0, &now()).expect("room").deposit(0);
    assert!(first.is_appended());
    assert_eq!(first.cancel(), None);
    assert_eq!((seen(&log), sequencer.appended()), (vec![0], 2));
}

#[test]
fn a_waker_is_registered_only_while_there_is_something_to_wait_for() {
    let (sequencer, _log) = collecting(4);
    let registration = sequencer.register(1, Waker::Parker(Arc::default())).expect("entry 0 is missing");
    sequencer.unregister(registration);
    sequencer.take(0, &now()).expect("room").deposit(0);
    assert!(sequencer.register(1, Waker::Parker(Arc::default())).is_none());
    sequencer.close();
    assert!(sequencer.register(9, Waker::Parker(Arc::default())).is_none());
}

#[test]
fn a_sink_whose_flush_fails_poisons_the_sequencer() {
    struct Full;
    impl Sink<u64> for Full {
        fn append(&mut self, _index: u64, _entry: u64) {}
        fn flush(&mut self) -> bool {
            false
        }
    }
    let sequencer = Sequencer::new(4, Full);
    sequencer.take(0, &now()).expect("room").deposit(0);
    assert!(matches!(sequencer.check_open(), Err(Error::Poisoned { index: 0 })));
}
