//! Models of a queue that an event loop serves, with the queue's thread beside it.

use std::sync::{Arc, Weak};
use std::time::Instant;

use loom::thread;

use super::waiting::Gong;
use crate::clock::Deadline;
use crate::loop_service::LATE;
use crate::model::check;
use crate::sync::{Mutex, lock};
use crate::{Leadership, LoopService, Mailbox, Parker, Place, Served};

const TOKEN: u64 = 7;

type Tokens = Mailbox<u64, Gong>;

/// A queue as the client's: it tells when it turns non-empty.
#[derive(Default)]
struct Queue {
    answers: Mutex<u32>,
    service: LoopService<Gong>,
    leadership: Leadership,
    parker: Parker,
    served: Mutex<u32>,
    waiter: Mutex<Option<Arc<Tokens>>>,
}

impl Queue {
    fn push(&self) {
        let mut answers = lock(&self.answers);
        *answers += 1;
        if *answers == 1 && !self.leadership.is_led() {
            self.tell();
        }
    }

    fn tell(&self) {
        if self.service.tell() {
            self.parker.unpark();
        }
    }

    fn has_answers(&self) -> bool {
        *lock(&self.answers) > 0
    }

    fn serve(&self) {
        let answers = std::mem::take(&mut *lock(&self.answers));
        *lock(&self.served) += answers;
        if answers > 0
            && let Some(mailbox) = lock(&self.waiter).take()
        {
            mailbox.post(TOKEN);
        }
    }

    /// The queue's thread, until it has served once. Time passes as soon as it waits for it.
    fn run(&self) {
        let (mut serve_at, mut now) = (None, Instant::now());
        self.parker.park_until(&Deadline::NEVER);
        while self.service.is_early(&mut serve_at, now) {
            now += LATE;
        }
        self.serve_if_free();
    }

    fn serve_if_free(&self) {
        if self.leadership.try_take() {
            self.serve();
            if self.leadership.leave(Place::Leader) && self.has_answers() {
                self.tell();
            }
        }
    }
}

impl Served for Queue {
    fn serve_now(&self) {
        self.service.note_served();
        self.serve_if_free();
    }
}

fn waiting() -> (Arc<Queue>, Arc<Tokens>) {
    let (queue, mailbox) = (Arc::new(Queue::default()), Arc::new(Mailbox::new(Gong::default())));
    *lock(&queue.waiter) = Some(Arc::clone(&mailbox));
    let served: Weak<Queue> = Arc::downgrade(&queue);
    queue.service.begin(&mailbox, served);
    (queue, mailbox)
}

fn push(queue: &Arc<Queue>) -> thread::JoinHandle<()> {
    let queue = Arc::clone(queue);
    thread::spawn(move || queue.push())
}

#[test]
fn a_loop_gets_its_answer_whichever_thread_serves() {
    check(|| {
        let (queue, mailbox) = waiting();
        let of_queue = thread::spawn({
            let queue = Arc::clone(&queue);
            move || queue.run()
        });
        let pusher = push(&queue);
        loop {
            mailbox.notifier().wait();
            if mailbox.drain() == [TOKEN] {
                break;
            }
        }
        pusher.join().expect("no panic");
        of_queue.join().expect("no panic");
        assert_eq!(*lock(&queue.served), 1);
    });
}

#[test]
fn the_thread_serves_for_a_loop_that_is_busy() {
    check(|| {
        let (queue, _mailbox) = waiting();
        let pusher = push(&queue);
        queue.run();
        pusher.join().expect("no panic");
        assert_eq!(*lock(&queue.served), 1);
    });
}

#[test]
fn the_thread_serves_for_a_trusted_loop_that_becomes_busy() {
    check(|| {
        let (queue, mailbox) = waiting();
        queue.push();
        mailbox.notifier().wait();
        mailbox.drain();
        queue.run(); // The loop was in time: the next watch is longer.
        let pusher = push(&queue);
        queue.run();
        pusher.join().expect("no panic");
        assert_eq!(*lock(&queue.served), 2);
    });
}

#[test]
fn an_answer_that_comes_between_two_waits_is_served() {
    check(|| {
        let (queue, mailbox) = waiting();
        queue.push();
        mailbox.notifier().wait();
        mailbox.drain();
        let of_queue = thread::spawn({
            let queue = Arc::clone(&queue);
            move || queue.run()
        });
        let pusher = push(&queue);
        if queue.service.end() && queue.has_answers() {
            queue.tell();
        }
        pusher.join().expect("no panic");
        of_queue.join().expect("no panic");
        // The thread may have ended a watch before it came; then it was woken again.
        if queue.has_answers() {
            queue.run();
        }
        assert_eq!(*lock(&queue.served), 2);
    });
}

#[test]
fn an_answer_that_comes_as_the_last_wait_ends_is_served() {
    check(|| {
        let (queue, _mailbox) = waiting();
        let pusher = push(&queue);
        let ender = thread::spawn({
            let queue = Arc::clone(&queue);
            move || {
                if queue.service.end() && queue.has_answers() {
                    queue.tell();
                }
            }
        });
        queue.run();
        pusher.join().expect("no panic");
        ender.join().expect("no panic");
        assert_eq!(*lock(&queue.served), 1);
    });
}

#[test]
fn two_answers_are_served_by_a_loop_and_the_thread() {
    check(|| {
        let (queue, mailbox) = waiting();
        let of_queue = thread::spawn({
            let queue = Arc::clone(&queue);
            move || queue.run()
        });
        queue.push();
        mailbox.notifier().wait();
        let tokens = mailbox.drain().len();
        queue.push();
        of_queue.join().expect("no panic");
        // The thread has served what came before it woke; the loop was told of the rest.
        if queue.has_answers() {
            mailbox.notifier().wait();
            assert_eq!(tokens + mailbox.drain().len(), 1);
        }
        assert_eq!(*lock(&queue.served), 2);
    });
}
