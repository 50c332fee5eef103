//! Items from any thread for one receiver, which is notified once for a batch and not once for each item.
//!
//! The receiver waits on the notifier (an event loop watches its descriptor, a thread selects on it) and then takes all
//! items. Only an item for an empty mailbox notifies, so a burst of a thousand costs one wake-up. The notifier is reset
//! *before* the items are taken. An item that comes between the two notifies again, so none stays without a
//! notification.

use std::collections::VecDeque;

use crate::clock::Deadline;
use crate::counters::Counter;
use crate::sync::{Mutex, lock};
use crate::{Error, Result};

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
    items: Mutex<VecDeque<T>>,
    notifier: B,
    /// The most items held. At this number the oldest is dropped for a new one.
    capacity: usize,
    dropped: Counter,
}

impl<T, B: Notifier> Mailbox<T, B> {
    /// Makes a mailbox for items whose number the senders bound (one for each waiting handle).
    pub fn new(notifier: B) -> Self {
        Self::bounded(notifier, usize::MAX)
    }

    /// Makes a mailbox of at most `capacity` items. If the receiver is late, the oldest are dropped and counted.
    pub fn bounded(notifier: B, capacity: usize) -> Self {
        Self { items: Mutex::new(VecDeque::new()), notifier, capacity, dropped: Counter::default() }
    }

    /// Adds an item. Never waits for the receiver.
    pub fn post(&self, item: T) {
        let mut items = lock(&self.items);
        let was_empty = items.is_empty();
        if items.len() == self.capacity {
            items.pop_front();
            self.dropped.increment();
        }
        items.push_back(item);
        drop(items);
        if was_empty {
            self.notifier.notify();
        }
    }

    /// Takes all items, oldest first. Never waits for a sender.
    pub fn drain(&self) -> Vec<T> {
        self.notifier.reset();
        std::mem::take(&mut *lock(&self.items)).into()
    }

    /// Drops all items, without a system call if there are none. The notifier may still notify of the dropped ones.
    /// Never waits for a sender.
    pub fn discard(&self) {
        if !lock(&self.items).is_empty() {
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

    #[test]
    fn a_full_box_loses_the_oldest_and_counts_it() {
        let mailbox = Mailbox::bounded(Count::default(), 2);
        (0..5).for_each(|item| mailbox.post(item));
        assert_eq!(mailbox.drain(), [3, 4]);
        assert_eq!(mailbox.dropped(), 3);
    }
}
