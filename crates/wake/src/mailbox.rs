//! Items from any thread for one receiver, which is notified once for a batch and not once for each item.
//!
//! The receiver waits on the notifier (an event loop watches its descriptor, a thread selects on it) and then takes all
//! items. Only an item for an empty mailbox notifies, so a burst of a thousand costs one wake-up. The notifier is reset
//! *before* the items are taken. An item that comes between the two notifies again, so none stays without a
//! notification.
//!
//! A sender may also ask the receiver to serve a queue: the receiver serves it before it takes the items, and takes
//! those that come of it, too.

use std::collections::VecDeque;
use std::sync::Weak;

use crate::clock::Deadline;
use crate::counters::Counter;
use crate::sync::{Mutex, lock};
use crate::{Error, Result, Served};

/// Wakes a receiver.
pub trait Notifier: Send + Sync {
    /// Wakes the receiver, now or when it waits next.
    fn notify(&self);
    /// Clears the notification.
    fn reset(&self);
}

/// Items from any thread for one receiver.
#[derive(Debug)]
pub struct Mailbox<T, B> {
    inside: Mutex<Inside<T>>,
    notifier: B,
    /// The most items held. At this number the oldest is dropped for a new one.
    capacity: usize,
    dropped: Counter,
}

#[derive(Debug)]
struct Inside<T> {
    items: VecDeque<T>,
    /// The queues that the receiver is asked to serve.
    to_serve: Vec<Weak<dyn Served>>,
    /// The receiver serves queues, and takes what comes meanwhile without a notification.
    is_serving: bool,
}

impl<T> Inside<T> {
    fn is_empty(&self) -> bool {
        self.items.is_empty() && self.to_serve.is_empty()
    }
}

impl<T, B: Notifier> Mailbox<T, B> {
    /// Makes a mailbox for items whose number the senders bound (one for each waiting handle).
    pub fn new(notifier: B) -> Self {
        Self::bounded(notifier, usize::MAX)
    }

    /// Makes a mailbox of at most `capacity` items. If the receiver is late, the oldest are dropped and counted.
    pub fn bounded(notifier: B, capacity: usize) -> Self {
        let inside = Inside { items: VecDeque::new(), to_serve: Vec::new(), is_serving: false };
        Self { inside: Mutex::new(inside), notifier, capacity, dropped: Counter::default() }
    }

    /// Adds an item. Never waits for the receiver.
    pub fn post(&self, item: T) {
        let mut inside = lock(&self.inside);
        let is_first = inside.is_empty() && !inside.is_serving;
        if inside.items.len() == self.capacity {
            inside.items.pop_front();
            self.dropped.increment();
        }
        inside.items.push_back(item);
        drop(inside);
        if is_first {
            self.notifier.notify();
        }
    }

    /// Asks the receiver to serve a queue before it takes its items next. Never waits for the receiver.
    pub fn ask_to_serve(&self, queue: Weak<dyn Served>) {
        let mut inside = lock(&self.inside);
        // While the receiver serves, it may have left this queue behind already.
        let is_first = inside.is_empty() || inside.is_serving;
        if !inside.to_serve.iter().any(|each| each.ptr_eq(&queue)) {
            inside.to_serve.push(queue);
        }
        drop(inside);
        if is_first {
            self.notifier.notify();
        }
    }

    /// Takes all items, oldest first. Never waits for a sender. Before that it serves the queues that it was asked to.
    pub fn drain(&self) -> Vec<T> {
        self.notifier.reset();
        let mut inside = lock(&self.inside);
        if !inside.to_serve.is_empty() {
            let to_serve = std::mem::take(&mut inside.to_serve);
            inside.is_serving = true;
            drop(inside);
            to_serve.iter().filter_map(Weak::upgrade).for_each(|queue| queue.serve_now());
            inside = lock(&self.inside);
            inside.is_serving = false;
        }
        std::mem::take(&mut inside.items).into()
    }

    /// Drops all items, without a system call if there are none. The notifier may still notify of the dropped ones.
    /// Never waits for a sender.
    pub fn discard(&self) {
        if !lock(&self.inside).items.is_empty() {
            self.drain();
        }
    }

    /// Returns the number of items that were dropped because the receiver was late.
    pub fn dropped(&self) -> u64 {
        self.dropped.get()
    }

    /// Returns the notifier, for the receiver to wait on.
    pub const fn notifier(&self) -> &B {
        &self.notifier
    }
}

/// The mailbox of an event loop, or of a thread that waits on a descriptor: the numbers by which it knows what is done.
pub type Tokens = Mailbox<u64, EventFd>;

/// A notifier that `select` can wait for: Linux's eventfd, a pipe elsewhere.
#[derive(Debug)]
pub struct EventFd {
    read: i32,
    write: i32,
}

impl EventFd {
    /// Makes a notifier that has not been notified.
    ///
    /// # Errors
    /// [`Error::System`] when the process has no descriptor left.
    #[cfg(target_os = "linux")]
    pub fn new() -> Result<Self> {
        // SAFETY: takes no pointers; the descriptor it returns is owned by the value made here.
        let fd = unsafe { libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC) };
        if fd < 0 { Err(Error::last_system("eventfd")) } else { Ok(Self { read: fd, write: fd }) }
    }

    /// Makes a notifier that has not been notified.
    ///
    /// # Errors
    /// [`Error::System`] when the process has no descriptor left.
    #[cfg(not(target_os = "linux"))]
    pub fn new() -> Result<Self> {
        let mut ends = [0; 2];
        // SAFETY: `ends` has room for the two descriptors, which the value made here owns.
        if unsafe { libc::pipe(ends.as_mut_ptr()) } < 0 {
            return Err(Error::last_system("pipe"));
        }
        for end in ends {
            // SAFETY: both are descriptors that pipe() just returned.
            unsafe {
                libc::fcntl(end, libc::F_SETFL, libc::O_NONBLOCK);
                libc::fcntl(end, libc::F_SETFD, libc::FD_CLOEXEC);
            }
        }
        Ok(Self { read: ends[0], write: ends[1] })
    }

    /// Returns the descriptor that becomes readable when it is notified.
    pub const fn descriptor(&self) -> i32 {
        self.read
    }

    /// Waits for a notification, a signal, or the deadline. Blocks the calling thread.
    pub fn wait(&self, deadline: &Deadline) {
        let mut poll = libc::pollfd { fd: self.read, events: libc::POLLIN, revents: 0 };
        // SAFETY: one pollfd on our stack.
        unsafe { libc::poll(&raw mut poll, 1, deadline.remaining_ms()) };
    }
}

impl Notifier for EventFd {
    fn notify(&self) {
        let one = 1u64.to_ne_bytes();
        // SAFETY: writes eight bytes that live on the stack. A full counter or pipe is readable, too.
        unsafe { libc::write(self.write, one.as_ptr().cast(), one.len()) };
    }

    fn reset(&self) {
        let mut count = [0u8; 64];
        // SAFETY: reads into a buffer on the stack; the descriptor does not block.
        unsafe { libc::read(self.read, count.as_mut_ptr().cast(), count.len()) };
    }
}

impl Drop for EventFd {
    fn drop(&mut self) {
        // SAFETY: the value owns its descriptors, and is not used any more.
        unsafe {
            libc::close(self.read);
            if self.write != self.read {
                libc::close(self.write);
            }
        }
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[derive(Default)]
    struct Count(Counter);

    impl Notifier for Count {
        fn notify(&self) {
            self.0.increment();
        }
        fn reset(&self) {}
    }

    #[test]
    fn a_burst_notifies_once() {
        let mailbox = Mailbox::new(Count::default());
        (0..1000).for_each(|item| mailbox.post(item));
        assert_eq!(mailbox.notifier().0.get(), 1);
        assert_eq!(mailbox.drain().len(), 1000);
        mailbox.post(0);
        assert_eq!(mailbox.notifier().0.get(), 2);
    }

    /// Posts to the mailbox when it is served.
    struct Posting(Arc<Mailbox<u64, Count>>);

    impl Served for Posting {
        fn serve_now(&self) {
            self.0.post(7);
        }
    }

    #[test]
    fn items_of_a_queue_that_the_receiver_serves_notify_no_second_time() {
        let mailbox = Arc::new(Mailbox::new(Count::default()));
        let queue: Arc<dyn Served> = Arc::new(Posting(Arc::clone(&mailbox)));
        mailbox.ask_to_serve(Arc::downgrade(&queue));
        assert_eq!(mailbox.drain(), [7]);
        assert_eq!(mailbox.notifier().0.get(), 1);
        assert!(mailbox.drain().is_empty(), "it is asked for once");
    }

    #[test]
    fn a_full_box_loses_the_oldest_and_counts_it() {
        let mailbox = Mailbox::bounded(Count::default(), 2);
        (0..5).for_each(|item| mailbox.post(item));
        assert_eq!(mailbox.drain(), [3, 4]);
        assert_eq!(mailbox.dropped(), 3);
    }
}
