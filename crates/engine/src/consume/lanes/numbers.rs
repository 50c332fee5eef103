//! Hashes the numbers of lanes for their table: cheaply, because each message looks its lane up three times.
//!
//! A number is random or an offset, so one multiplication spreads it well enough. The factors are random for each
//! process: a sender of messages can't choose keys whose lanes are in one place of the table.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::LazyLock;

/// Random numbers that others are mixed with; the second is odd.
static FACTORS: LazyLock<(u64, u64)> = LazyLock::new(|| {
    let random = RandomState::new();
    (random.hash_one(0u64), random.hash_one(1u64) | 1)
});

/// Makes the hashers of a table of lanes.
#[derive(Clone, Copy)]
pub(super) struct HashesNumbers {
    factors: (u64, u64),
}

impl Default for HashesNumbers {
    fn default() -> Self {
        Self { factors: *FACTORS }
    }
}

impl BuildHasher for HashesNumbers {
    type Hasher = NumberHasher;

    fn build_hasher(&self) -> NumberHasher {
        NumberHasher { factors: self.factors, hash: 0 }
    }
}

/// Hashes one number.
pub(super) struct NumberHasher {
    factors: (u64, u64),
    hash: u64,
}

impl Hasher for NumberHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, number: u64) {
        let (first, second) = self.factors;
        let product = u128::from(self.hash ^ number ^ first) * u128::from(second);
        self.hash = (product as u64) ^ (product >> 64) as u64;
    }

    fn finish(&self) -> u64 {
        self.hash
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// Returns how many places of a table of 65,536, and how many of the 128 marks in it, these numbers take.
    fn places(numbers: impl Iterator<Item = u64>) -> (usize, usize) {
        let hashes = HashesNumbers::default();
        let found: Vec<u64> = numbers.map(|number| hashes.hash_one(number)).collect();
        let low: HashSet<_> = found.iter().map(|hash| hash & 0xffff).collect();
        let high: HashSet<_> = found.iter().map(|hash| hash >> 57).collect();
        (low.len(), high.len())
    }

    #[test]
    fn offsets_and_numbers_with_equal_ends_are_spread_over_a_table() {
        // Of 10,000 random places of 65,536, 9,280 differ.
        for step in [1, 8, 1 << 16, 1 << 40] {
            let (low, high) = places((0..10_000).map(|number| number * step));
            assert!(low > 8_000 && high > 100, "step {step}: {low} places, {high} marks");
        }
    }

    #[test]
    fn a_number_that_comes_as_bytes_is_hashed_whole() {
        let hash = |bytes: &[u8]| {
            let mut hasher = HashesNumbers::default().build_hasher();
            hasher.write(bytes);
            hasher.finish()
        };
        assert_ne!(hash(b"ab"), hash(b"ba"));
    }
}
