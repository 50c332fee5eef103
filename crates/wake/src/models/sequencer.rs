//! Models of the sequencer.

use std::sync::Arc;

use loom::thread;

use crate::clock::Deadline;
use crate::model::{check, time};
use crate::sync::{Mutex, lock};
use crate::{Parker, Sequencer, Sink};

/// Entries as they were appended.
type Log = Arc<Mutex<Vec<u64>>>;

fn sequencer(capacity: usize) -> (Arc<Sequencer<u64, impl Sink<u64>>>, Log) {
    let log: Log = Arc::default();
    let sink = {
        let log = Arc::clone(&log);
        move |index, entry| {
            assert_eq!(index, entry);
            lock(&log).push(entry);
        }
    };
    (Arc::new(Sequencer::new(capacity, sink)), log)
}

#[test]
fn entries_in_any_order_take_effect_in_order() {
    check(|| {
        let (entries, log) = sequencer(4);
        let others: Vec<_> = [1, 2]
            .map(|index| {
                let entries = Arc::clone(&entries);
                thread::spawn(move || {
                    entries.take(index, &Deadline::NEVER).expect("room").claim_run(index);
                })
            })
            .into();
        entries.take(0, &Deadline::NEVER).expect("room").claim_run(0);
        others.into_iter().for_each(|other| other.join().expect("no panic"));
        assert_eq!(*lock(&log), [0, 1, 2]);
        assert_eq!(entries.appended(), 3);
    });
}

#[test]
fn a_thread_that_waits_for_its_entry_is_woken() {
    check(|| {
        let (entries, log) = sequencer(4);
        let other = Arc::clone(&entries);
        let waiting = thread::spawn(move || {
            let permit = other.take(1, &Deadline::NEVER).expect("room");
            permit.append(1, &Deadline::NEVER).expect("appended");
        });
        entries.take(0, &Deadline::NEVER).expect("room").claim_run(0);
        waiting.join().expect("no panic");
        assert_eq!(*lock(&log), [0, 1]);
    });
}

#[test]
fn a_time_out_against_a_run_appends_the_entry_or_gives_it_back() {
    check(|| {
        let (entries, log) = sequencer(4);
        let parker = Arc::new(Parker::default());
        let (deadline, clock) = time(&parker);
        let other = Arc::clone(&entries);
        let waiting = thread::spawn(move || {
            let ticket = other.take(1, &Deadline::NEVER).expect("room").deposit(1);
            match other.wait_on(&parker, 2, &deadline) {
                Ok(()) => None,
                Err(_) => ticket.cancel(),
            }
        });
        entries.take(0, &Deadline::NEVER).expect("room").claim_run(0);
        let given_back = waiting.join().expect("no panic");
        clock.join().expect("no panic");
        assert_eq!(entries.appended(), 2);
        assert_eq!(*lock(&log), if given_back.is_some() { vec![0] } else { vec![0, 1] });
    });
}

#[test]
fn a_void_index_blocks_no_later_entry() {
    check(|| {
        let (entries, log) = sequencer(4);
        let other = Arc::clone(&entries);
        let giving_up = thread::spawn(move || drop(other.take(0, &Deadline::NEVER).expect("room")));
        let other = Arc::clone(&entries);
        let leaving = thread::spawn(move || other.take(1, &Deadline::NEVER).expect("room").claim_run(1));
        entries.wait_for(2, &Deadline::NEVER).expect("open");
        giving_up.join().expect("no panic");
        leaving.join().expect("no panic");
        assert_eq!(*lock(&log), [1]);
    });
}

#[test]
fn a_full_ring_lets_the_next_in_when_the_first_is_out() {
    check(|| {
        let (entries, log) = sequencer(1);
        let other = Arc::clone(&entries);
        let waiting = thread::spawn(move || {
            other.take(1, &Deadline::NEVER).expect("room").claim_run(1);
        });
        entries.take(0, &Deadline::NEVER).expect("room").claim_run(0);
        entries.take(2, &Deadline::NEVER).expect("room").claim_run(2);
        waiting.join().expect("no panic");
        assert_eq!(*lock(&log), [0, 1, 2]);
    });
}

#[test]
fn a_time_out_of_a_claim_against_new_room_leaves_no_gap() {
    check(|| {
        let (entries, _log) = sequencer(1);
        let first = entries.claim(&Deadline::NEVER).expect("room");
        let parker = Arc::new(Parker::default());
        let (deadline, clock) = time(&parker);
        let other = Arc::clone(&entries);
        let giving_up = thread::spawn(move || drop(other.claim_on(Some(parker), &deadline)));
        first.claim_run(0);
        giving_up.join().expect("no panic");
        clock.join().expect("no panic");
        assert_eq!(entries.appended(), 2);
    });
}

#[test]
fn closing_a_sequencer_ends_every_wait() {
    check(|| {
        let (entries, _log) = sequencer(1);
        let waiting: Vec<_> = [0, 1]
            .map(|what| {
                let entries = Arc::clone(&entries);
                thread::spawn(move || match what {
                    0 => entries.wait_for(1, &Deadline::NEVER).is_err(),
                    _ => entries.take(1, &Deadline::NEVER).is_err(),
                })
            })
            .into();
        entries.close();
        waiting.into_iter().for_each(|each| assert!(each.join().expect("no panic")));
    });
}
