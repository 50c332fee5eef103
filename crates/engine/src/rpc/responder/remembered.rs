//! Values of names, each kept until its own deadline; bounded in number and in bytes, the oldest go first.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;

/// Counted for each name beside its bytes: its places in the table and in the order.
const ENTRY_BYTES: usize = 128;

/// Bounds of what is remembered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) count_max: usize,
    pub(super) bytes_max: usize,
}

/// The first value that each name was given.
#[derive(Debug)]
pub(super) struct Remembered<V> {
    limits: Limits,
    entries: HashMap<Arc<[u8]>, Entry<V>>,
    /// Oldest first, with number and end of each; a name that was forgotten stays until its turn.
    order: VecDeque<(u64, Instant, Arc<[u8]>)>,
    bytes: usize,
    number: u64,
}

#[derive(Debug)]
struct Entry<V> {
    number: u64,
    until: Instant,
    value: V,
}

impl<V: Copy> Remembered<V> {
    pub(super) fn new(limits: Limits) -> Self {
        Self { limits, entries: HashMap::new(), order: VecDeque::new(), bytes: 0, number: 0 }
    }

    /// Returns the value of a name. A name without one is given this value until a moment.
    pub(super) fn first(&mut self, name: &[u8], value: V, now: Instant, until: Instant) -> V {
        if let Some(entry) = self.entries.get(name)
            && entry.until > now
        {
            return entry.value;
        }
        let size = name.len() + ENTRY_BYTES;
        self.shrink(now, size);
        if until <= now || size > self.limits.bytes_max || self.limits.count_max == 0 {
            return value;
        }
        self.number += 1;
        let name: Arc<[u8]> = name.into();
        self.order.push_back((self.number, until, Arc::clone(&name)));
        self.entries.insert(name, Entry { number: self.number, until, value });
        self.bytes += size;
        value
    }

    /// Forgets a name; returns whether it had a value.
    pub(super) fn forget(&mut self, name: &[u8], now: Instant) -> bool {
        self.entries.remove(name).is_some_and(|entry| entry.until > now)
    }

    /// Makes room for an entry of this size.
    fn shrink(&mut self, now: Instant, size: usize) {
        let Limits { count_max, bytes_max } = self.limits;
        while let Some((_, until, _)) = self.order.front() {
            if *until > now && self.order.len() < count_max && self.bytes + size <= bytes_max {
                return;
            }
            let Some((number, _, name)) = self.order.pop_front() else { return };
            self.bytes -= name.len() + ENTRY_BYTES;
            if self.entries.get(&name).is_some_and(|entry| entry.number == number) {
                self.entries.remove(&name);
            }
        }
    }

    /// Returns the bytes of all names.
    #[cfg(all(test, not(feature = "model")))]
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use std::time::Duration;

    use super::*;

    const LIMITS: Limits = Limits { count_max: 10, bytes_max: 4_000 };

    fn name(number: u32) -> [u8; 4] {
        number.to_be_bytes()
    }

    #[test]
    fn a_name_that_was_forgotten_may_get_another_value() {
        let (now, later) = (Instant::now(), Instant::now() + Duration::from_mins(1));
        let mut remembered = Remembered::new(LIMITS);
        assert_eq!(remembered.first(&name(0), 1, now, later), 1);
        assert!(remembered.forget(&name(0), now) && !remembered.forget(&name(0), now));
        assert_eq!(remembered.first(&name(0), 2, now, later), 2);
        for number in 1..LIMITS.count_max as u32 {
            remembered.first(&name(number), 0, now, later);
        }
        assert_eq!(remembered.first(&name(0), 3, now, later), 2, "its older entry in the order does not remove it");
        remembered.first(&name(u32::MAX), 0, now, later);
        assert_eq!(remembered.first(&name(0), 4, now, later), 4, "now it was its turn");
        assert!(remembered.order.len() <= LIMITS.count_max && remembered.entries.len() <= LIMITS.count_max);
    }

    #[test]
    fn bytes_are_bounded() {
        let (now, later) = (Instant::now(), Instant::now() + Duration::from_mins(1));
        let mut remembered = Remembered::new(Limits { count_max: 1_000, bytes_max: 4_000 });
        for number in 0..1_000 {
            let long = [&name(number)[..], &[b'x'; 500]].concat();
            assert_eq!(remembered.first(&long, number, now, later), number);
            assert!(remembered.bytes() <= 4_000);
        }
        remembered.first(&[b'x'; 5_000], 0, now, later);
        let held: usize = remembered.entries.keys().map(|name| name.len()).sum();
        assert!(held <= remembered.bytes() && remembered.entries.len() <= 4_000 / 500);
        assert!(!remembered.forget(&[b'x'; 5_000], now), "too large to be remembered");
    }

    #[test]
    fn a_name_is_forgotten_at_its_moment() {
        let now = Instant::now();
        let (soon, later) = (now + Duration::from_secs(1), now + Duration::from_mins(1));
        let mut remembered = Remembered::new(LIMITS);
        remembered.first(&name(0), 1, now, soon);
        assert_eq!(remembered.first(&name(0), 2, soon, later), 2);
        remembered.first(&name(1), 3, soon, soon + Duration::from_secs(1));
        assert!(!remembered.forget(&name(1), later), "its time is over");
        remembered.first(&name(2), 0, later, later + Duration::from_secs(1));
        assert_eq!(remembered.order.len(), 1, "entries whose time is over make room");
        assert_eq!(remembered.bytes(), 4 + ENTRY_BYTES);
    }
}
