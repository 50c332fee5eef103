//! A call ends once, and the waiting thread is woken: loom tries every interleaving.

use std::sync::Arc;
use std::time::Duration;

use loom::thread;

use super::call::{Call, Failure, Wanted};
use super::calls::Calls;
use crate::clock::Deadline;
use crate::kafka::{Fetched, TopicPartition};
use crate::rpc::protocol::{CallId, ID, KIND};
use crate::wake::model::check;
use crate::wake::{Parker, Waker};

const ME: u64 = 7;

fn reply(id: CallId) -> Fetched<'static> {
    let headers = vec![(ID.into(), id.to_bytes().to_vec().into()), (KIND.into(), b"reply"[..].into())];
    Fetched { value: b"1"[..].into(), headers }
}

fn new_call() -> Arc<Call> {
    let id = CallId { caller: ME, call: 1 };
    Call::new(id, Wanted::One, Duration::from_mins(1), TopicPartition::new("calls", 0), 1)
}

fn begun(calls: &Calls) -> Arc<Call> {
    assert!(calls.try_acquire(1).expect("open"));
    let call = new_call();
    calls.add(&call).expect("open");
    call
}

#[test]
fn a_reply_against_a_deadline_ends_the_call_once() {
    check(|| {
        let calls = Arc::new(Calls::new(1, 10, 100, None));
        let call = begun(&calls);
        let replier = thread::spawn({
            let (calls, id) = (Arc::clone(&calls), call.id());
            move || calls.deliver(ME, &reply(id))
        });
        let clock = thread::spawn({
            let (calls, call) = (Arc::clone(&calls), Arc::clone(&call));
            move || calls.fail(&call, Failure::DeadlineExceeded)
        });
        let parker = Arc::new(Parker::default());
        if call.register(Waker::Parker(Arc::clone(&parker))) {
            parker.park_until(&Deadline::NEVER);
        }
        assert!(call.has_ended());
        replier.join().expect("no panic");
        let is_expired = clock.join().expect("no panic");
        assert_eq!(calls.counters.expired.get(), u64::from(is_expired));
        assert_eq!(calls.counters.replies.get(), u64::from(!is_expired));
        assert_eq!(calls.count(), 0);
        assert!(calls.try_acquire(10).expect("open"), "its room was given back once");
    });
}

#[test]
fn a_woken_thread_finds_its_call_gone() {
    check(|| {
        let calls = Arc::new(Calls::new(1, 10, 100, None));
        let call = begun(&calls);
        let replier = thread::spawn({
            let (calls, id) = (Arc::clone(&calls), call.id());
            move || calls.deliver(ME, &reply(id))
        });
        let parker = Arc::new(Parker::default());
        if call.register(Waker::Parker(Arc::clone(&parker))) {
            parker.park_until(&Deadline::NEVER);
            assert_eq!((calls.count(), calls.counters.replies.get()), (0, 1));
        }
        replier.join().expect("no panic");
    });
}

#[test]
fn closing_ends_what_is_being_begun() {
    check(|| {
        let calls = Arc::new(Calls::new(1, 10, 100, None));
        let closer = thread::spawn({
            let calls = Arc::clone(&calls);
            move || calls.close()
        });
        if calls.try_acquire(1).unwrap_or(false) {
            let call = new_call();
            let is_begun = calls.add(&call).is_ok();
            closer.join().expect("no panic");
            assert_eq!(call.has_ended(), is_begun, "a call that was added is ended");
        } else {
            closer.join().expect("no panic");
        }
        assert_eq!(calls.count(), 0);
    });
}
