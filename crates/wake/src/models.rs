//! Models of the primitives that everything waits with: loom tries every interleaving of the threads below.
//!
//! Run by `make test` as `cargo test -p awoke-wake --features model --lib models`. A lost wake-up shows as a deadlock,
//! which loom reports. A model has no time: "the deadline passes" is a thread of its own.

use std::sync::Arc;

use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;

use crate::clock::Deadline;
use crate::sync::{Condvar, Mutex, lock};
use crate::{Budget, Completion, Latch, Lead, Mailbox, Notifier, Parker, Place, Sequencer, Sink, Waker};

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
fn a_completion_wakes_its_waiter() {
    check(|| {
        let completion = Arc::new(Completion::default());
        let other = Arc::clone(&completion);
        let completer = thread::spawn(move || assert!(other.complete(1)));
        assert_eq!(completion.wait(&Deadline::NEVER), Some(1));
        completer.join().expect("no panic");
    });
}

#[test]
fn a_completion_has_one_result_whoever_comes_first() {
    check(|| {
        let completion = Arc::new(Completion::default());
        let completers: Vec<_> = (1..3)
            .map(|result| {
                let completion = Arc::clone(&completion);
                thread::spawn(move || completion.complete(result))
            })
            .collect();
        let seen = completion.wait(&Deadline::NEVER).expect("a result");
        let first = completers.into_iter().map(|completer| completer.join().expect("no panic"));
        assert_eq!(first.filter(|was_first| *was_first).count(), 1);
        assert_eq!(completion.get(), Some(seen));
    });
}

#[test]
fn a_time_out_against_a_completion_loses_neither() {
    check(|| {
        let completion = Arc::new(Completion::default());
        let parker = Arc::new(Parker::default());
        let (deadline, clock) = time(&parker);
        let other = Arc::clone(&completion);
        let completer = thread::spawn(move || other.complete(1));
        let seen = completion.wait_on(&parker, &deadline);
        assert!(completer.join().expect("no panic"));
        clock.join().expect("no panic");
        assert!(matches!(seen, None | Some(1)));
        assert_eq!(completion.wait(&Deadline::NEVER), Some(1));
    });
}

#[test]
fn a_latch_opens_with_the_last_completion() {
    check(|| {
        let completions = [Arc::new(Completion::default()), Arc::new(Completion::default())];
        let completers = completions.clone().map(|completion| thread::spawn(move || completion.complete(())));
        assert!(Latch::wait_all(completions.iter().map(|completion| &**completion), &Deadline::NEVER));
        assert!(completions.iter().all(|completion| completion.is_done()));
        completers.into_iter().for_each(|completer| assert!(completer.join().expect("no panic")));
    });
}

/// A notifier that one thread can wait for.
struct Gong {
    rang: Mutex<bool>,
    sound: Condvar,
}

impl Gong {
    fn wait(&self) {
        let mut rang = lock(&self.rang);
        while !*rang {
            rang = self.sound.wait(rang).expect("no panic");
        }
    }
}

impl Notifier for Gong {
    fn notify(&self) {
        *lock(&self.rang) = true;
        self.sound.notify_one();
    }
    fn reset(&self) {
        *lock(&self.rang) = false;
    }
}

#[test]
fn a_mailbox_announces_every_item() {
    check(|| {
        let mailbox = Arc::new(Mailbox::new(Gong { rang: Mutex::new(false), sound: Condvar::new() }));
        let senders: Vec<_> = (0..2)
            .map(|item| {
                let mailbox = Arc::clone(&mailbox);
                thread::spawn(move || mailbox.post(item))
            })
            .collect();
        let mut received = 0;
        while received < 2 {
            mailbox.notifier().wait();
            received += mailbox.drain().len();
        }
        senders.into_iter().for_each(|sender| sender.join().expect("no panic"));
    });
}

#[test]
fn a_time_out_during_a_release_keeps_the_count() {
    check(|| {
        let budget = Arc::new(Budget::new(1, 10));
        assert!(budget.try_acquire(1).expect("open"));
        let parker = Arc::new(Parker::default());
        let (deadline, clock) = time(&parker);
        let other = Arc::clone(&budget);
        let leaver = thread::spawn(move || other.release(1, 1));
        let entered = budget.acquire_on(&parker, 2, &deadline).is_ok();
        leaver.join().expect("no panic");
        clock.join().expect("no panic");
        assert_eq!(budget.used(), if entered { (1, 2) } else { (0, 0) });
    });
}

#[test]
fn closing_the_budget_fails_a_waiter() {
    check(|| {
        let budget = Arc::new(Budget::new(1, 10));
        assert!(budget.try_acquire(1).expect("open"));
        let other = Arc::clone(&budget);
        let waiting = thread::spawn(move || other.acquire_on(&Arc::default(), 1, &Deadline::NEVER).is_err());
        budget.close();
        assert!(waiting.join().expect("no panic"));
    });
}

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
fn whoever_waits_for_its_entry_hears_of_it() {
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
fn a_void_index_holds_nobody_up() {
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
fn a_claim_that_gives_up_against_room_leaves_no_gap() {
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

/// Answers that the leader takes out of one queue, and threads that wait for one each.
#[test]
fn the_lead_is_never_lost_while_somebody_waits() {
    check(|| {
        let lead = Arc::new(Lead::default());
        let answers = [Arc::new(Completion::default()), Arc::new(Completion::default())];
        let waiting: Vec<_> = (0..2)
            .map(|number| {
                let (lead, answers) = (Arc::clone(&lead), answers.clone());
                thread::spawn(move || {
                    let parker = Arc::new(Parker::default());
                    let waker = Waker::Parker(Arc::clone(&parker));
                    let mine = &answers[number];
                    if !mine.register(waker.clone()) {
                        return;
                    }
                    let mut place = lead.join(waker);
                    while !mine.is_done() {
                        if place == Place::Leader {
                            // Serving brings the answers one by one; the last comes last.
                            let next = answers.iter().find(|answer| !answer.is_done());
                            next.map(|answer| answer.complete(()));
                        } else {
                            parker.park_until(&Deadline::NEVER);
                            place = lead.look(place);
                        }
                    }
                    lead.leave(place);
                })
            })
            .collect();
        waiting.into_iter().for_each(|each| each.join().expect("no panic"));
        assert!(!lead.is_led());
        assert!(answers.iter().all(|answer| answer.is_done()));
    });
}
