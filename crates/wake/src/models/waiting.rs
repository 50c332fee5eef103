//! Models of completions, latches, mailboxes and budgets.

use std::sync::Arc;

use loom::thread;

use crate::clock::Deadline;
use crate::model::{check, time};
use crate::sync::{Condvar, Mutex, lock};
use crate::{Awaited, Budget, Completion, Latch, Mailbox, Notifier, Parker, Recurrence, Signal};

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
fn of_two_results_a_completion_keeps_the_first() {
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

/// A notifier that one thread waits for.
#[derive(Default)]
pub struct Gong {
    rang: Mutex<bool>,
    sound: Condvar,
}

impl Gong {
    pub fn wait(&self) {
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
        let mailbox = Arc::new(Mailbox::new(Gong::default()));
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
fn setting_a_signal_ends_a_wait() {
    check(|| {
        let signal = Signal::new();
        let wait = signal.begin_wait(None, Recurrence::Once, false);
        let waiting = thread::spawn(move || wait.block(&Deadline::NEVER));
        signal.set();
        waiting.join().expect("no panic");
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
