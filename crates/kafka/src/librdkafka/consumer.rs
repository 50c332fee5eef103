//! The calls of a consumer that change its subscription, its assignment or its group's offsets.

use super::{Client, Code, Queue, TopicPartitionList, ffi, text_of};
use crate::{Error, Result};

impl Client {
    /// Subscribes to topics, and joins the group. Does not block.
    pub fn subscribe(&self, topics: &[String]) -> Result<()> {
        let list = TopicPartitionList::of_topics(topics)?;
        // SAFETY: handle and list are alive; librdkafka copies the list.
        let code = Code::of(unsafe { ffi::rd_kafka_subscribe(self.handle(), list.as_ptr()) });
        code.check(format!("subscribe to {}", topics.join(", ")))
    }

    /// Ends the subscription. Does not block.
    pub fn unsubscribe(&self) {
        // SAFETY: the handle is alive.
        unsafe { ffi::rd_kafka_unsubscribe(self.handle()) };
    }

    /// Returns whether the present revocation is of partitions that the group has given to others already.
    pub fn is_assignment_lost(&self) -> bool {
        // SAFETY: the handle is alive.
        unsafe { ffi::rd_kafka_assignment_lost(self.handle()) != 0 }
    }

    /// Returns whether the group rebalances cooperatively: each rebalance names only the partitions that change.
    pub fn is_cooperative(&self) -> bool {
        // SAFETY: the handle is alive; the string is a constant.
        let protocol = unsafe { text_of(ffi::rd_kafka_rebalance_protocol(self.handle())) };
        protocol == "COOPERATIVE"
    }

    /// Assigns partitions: these beside the present ones in a cooperative group, these in place of them in an eager
    /// one. Each is read from the offset beside it.
    pub fn assign(&self, list: &TopicPartitionList) -> Result<()> {
        if self.is_cooperative() {
            // SAFETY: handle and list are alive; librdkafka copies the list; the error is ours.
            unsafe { check_native("assign", ffi::rd_kafka_incremental_assign(self.handle(), list.as_ptr())) }
        } else {
            self.set_assignment(list).check("assign")
        }
    }

    /// Takes these partitions back in a cooperative group, all in an eager one.
    pub fn unassign(&self, list: &TopicPartitionList) -> Result<()> {
        if self.is_cooperative() && !list.is_empty() {
            // SAFETY: handle and list are alive; librdkafka copies the list; the error is ours.
            unsafe { check_native("unassign", ffi::rd_kafka_incremental_unassign(self.handle(), list.as_ptr())) }
        } else {
            self.clear_assignment().check("unassign")
        }
    }

    /// Assigns these partitions in place of all others. Each is read from the offset beside it.
    pub fn set_assignment(&self, list: &TopicPartitionList) -> Code {
        // SAFETY: handle and list are alive; librdkafka copies the list.
        Code::of(unsafe { ffi::rd_kafka_assign(self.handle(), list.as_ptr()) })
    }

    /// Takes all partitions back, and stops fetching.
    pub fn clear_assignment(&self) -> Code {
        // SAFETY: the handle is alive; a null list takes all partitions back.
        Code::of(unsafe { ffi::rd_kafka_assign(self.handle(), std::ptr::null()) })
    }

    /// Commits the offsets of a list; the answer comes to the queue as [`crate::EventKind::Commit`], unless the code
    /// is an error. Does not block.
    pub fn commit(&self, list: &TopicPartitionList, answer_to: &Queue) -> Code {
        let (handle, nothing) = (self.handle(), std::ptr::null_mut());
        // SAFETY: handle, list and queue are alive; librdkafka copies the list.
        Code::of(unsafe { ffi::rd_kafka_commit_queue(handle, list.as_ptr(), answer_to.as_ptr(), None, nothing) })
    }

    /// Begins to leave the group; its last rebalance comes to this queue. Returns `false` after a fatal error: there is
    /// no group to leave. Does not block.
    pub fn begin_close(&self, closing: &Queue) -> bool {
        // SAFETY: handle and queue are alive; the error, if any, is ours to destroy.
        unsafe { check_native("close", ffi::rd_kafka_consumer_close_queue(self.handle(), closing.as_ptr())) }.is_ok()
    }

    /// Returns whether the consumer has left its group.
    pub fn is_closed(&self) -> bool {
        // SAFETY: the handle is alive.
        unsafe { ffi::rd_kafka_consumer_closed(self.handle()) != 0 }
    }
}

/// # Safety
/// `error` is null or an error that is ours to destroy.
unsafe fn check_native(operation: &str, error: *mut ffi::rd_kafka_error_t) -> Result<()> {
    if error.is_null() {
        return Ok(());
    }
    // SAFETY: the caller's promise.
    unsafe {
        let code = Code::of(ffi::rd_kafka_error_code(error));
        let text = text_of(ffi::rd_kafka_error_string(error));
        ffi::rd_kafka_error_destroy(error);
        Err(Error::kafka(operation, code, text))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Arc, mpsc};
    use std::time::Duration;

    use super::*;
    use crate::clock::Deadline;
    use crate::events::event_box;
    use crate::{ClientConfig, ClientOptions, Kind};

    const WITHIN: Duration = Duration::from_secs(30);

    fn consumer() -> Arc<Client> {
        let mut config = ClientConfig::new();
        config.set("group.id", "closed").set("bootstrap.servers", "127.0.0.1:1").set("log_level", "0");
        let events = event_box().expect("a box");
        Client::new(Kind::Consumer, "test", &config, events, ClientOptions::default()).expect("a client")
    }

    /// librdkafka (2.12.1) drops a call that it finds after the group's end: see patch 0007. Threads call all the time,
    /// so that some call lies there at the end.
    #[test]
    fn a_call_while_the_consumer_closes_is_answered() {
        for _ in 0..20 {
            let (client, is_over) = (consumer(), Arc::new(AtomicBool::new(false)));
            let (ended, ends) = mpsc::channel();
            for _ in 0..4 {
                let (client, is_over, ended) = (Arc::clone(&client), Arc::clone(&is_over), ended.clone());
                std::thread::spawn(move || {
                    while !is_over.load(Ordering::Relaxed) {
                        client.is_cooperative();
                    }
                    drop(client);
                    ended.send(()).expect("the test waits");
                });
            }
            let closing = Queue::new(&client);
            assert!(client.begin_close(&closing));
            while !client.is_closed() {
                drop(closing.poll(&Deadline::after(Some(Duration::from_millis(100)))));
            }
            is_over.store(true, Ordering::Relaxed);
            (0..4).for_each(|_| ends.recv_timeout(WITHIN).expect("the call of each thread returns"));
        }
    }
}
