//! A model of the leader and its followers.

use std::cell::Cell;
use std::sync::Arc;

use loom::thread;

use crate::clock::Deadline;
use crate::model::check;
use crate::{Completion, Leadership, Parker, Place, ServingWait, Waker};

/// A wait for one of several answers, which the leader takes out of one queue.
struct Wait {
    leadership: Arc<Leadership>,
    answers: [Arc<Completion<()>>; 2],
    number: usize,
    place: Cell<Place>,
}

impl ServingWait for Wait {
    fn step(&self, _deadline: &Deadline) -> bool {
        self.place.set(self.leadership.current(self.place.get()));
        if !self.is_follower() && !self.answers[self.number].is_done() {
            // Each step brings one answer, the first one first.
            let next = self.answers.iter().find(|answer| !answer.is_done());
            next.map(|answer| answer.complete(()));
        }
        self.answers[self.number].is_done()
    }

    fn is_follower(&self) -> bool {
        self.place.get() != Place::Leader
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        self.leadership.leave(self.place.get());
    }
}

#[test]
fn the_leadership_is_never_lost_while_a_thread_waits() {
    check(|| {
        let leadership = Arc::new(Leadership::default());
        let answers = [Arc::new(Completion::default()), Arc::new(Completion::default())];
        let waiting: Vec<_> = (0..2)
            .map(|number| {
                let (leadership, answers) = (Arc::clone(&leadership), answers.clone());
                thread::spawn(move || {
                    let parker = Arc::new(Parker::default());
                    let waker = Waker::Parker(Arc::clone(&parker));
                    if !answers[number].register(waker.clone()) {
                        return;
                    }
                    let place = Cell::new(leadership.join(waker));
                    let wait = Wait { leadership, answers, number, place };
                    assert!(wait.wait(&parker, &Deadline::NEVER, &Deadline::NEVER));
                })
            })
            .collect();
        waiting.into_iter().for_each(|each| each.join().expect("no panic"));
        assert!(!leadership.is_led());
        assert!(answers.iter().all(|answer| answer.is_done()));
    });
}
