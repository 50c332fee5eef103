//! A lane: the messages of one key that are under way, in order.

use std::collections::VecDeque;

/// The messages that wait in a lane. Most lanes have one, which needs no memory of its own.
pub(super) struct Waiting<M> {
    first: Option<M>,
    /// Empty if there is no first.
    more: VecDeque<M>,
}

impl<M> Waiting<M> {
    /// Adds a message behind the others.
    pub(super) fn push(&mut self, message: M) {
        match self.first {
            None => self.first = Some(message),
            Some(_) => self.more.push_back(message),
        }
    }

    /// Returns the number of messages.
    pub(super) fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.more.len()
    }

    /// Takes all messages, in order.
    pub(super) fn take(&mut self) -> impl Iterator<Item = M> {
        self.first.take().into_iter().chain(self.more.drain(..))
    }

    /// Returns the messages, in order.
    pub(super) fn into_messages(self) -> impl Iterator<Item = M> {
        self.first.into_iter().chain(self.more)
    }
}

/// A lane of a partition.
pub(super) struct Lane<M> {
    pub(super) waiting: Waiting<M>,
    /// A job leases it, or messages of it wait to be tried again.
    pub(super) is_leased: bool,
}

impl<M> Default for Lane<M> {
    fn default() -> Self {
        Self { waiting: Waiting { first: None, more: VecDeque::new() }, is_leased: false }
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;

    #[test]
    fn messages_are_taken_in_the_order_in_which_they_came() {
        let mut waiting = Lane::default().waiting;
        for _ in 0..2 {
            (0..3).for_each(|number| waiting.push(number));
            assert_eq!(waiting.len(), 3);
            assert_eq!(waiting.take().collect::<Vec<_>>(), [0, 1, 2]);
            assert_eq!(waiting.len(), 0);
        }
        (0..3).for_each(|number| waiting.push(number));
        assert_eq!(waiting.into_messages().collect::<Vec<_>>(), [0, 1, 2]);
    }
}
