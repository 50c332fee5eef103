//! The committed rows of one partition of a table: bytes to bytes, in few blocks of memory.
//!
//! ```text
//! places (a hash table of block and start) ──▶ blocks:  │ length of key, of value, room │ key │ value … │ …
//! ```
//!
//! A row is 12 bytes of lengths, its key, and room for its value; a value that fits into the room replaces the former
//! one there. What is replaced otherwise, or deleted, leaves a gap. When the gaps are more than a quarter of all, the
//! block with the largest is emptied: its rows go behind the last one. So memory stays near the bytes of the rows, and
//! no change takes longer than the rows of one block.

use std::hash::{BuildHasher, RandomState};

use hashbrown::HashTable;

/// The size of a block; a row that is larger has one of its own.
const BLOCK: usize = 1 << 20;
const HEADER: usize = 12;

/// Where a row is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Place {
    block: u32,
    start: u32,
}

#[derive(Default)]
struct Block {
    bytes: Vec<u8>,
    /// The bytes of rows that are no more.
    gaps: usize,
}

/// The committed rows of one partition of a table.
#[derive(Default)]
pub struct Rows {
    places: HashTable<Place>,
    hasher: RandomState,
    blocks: Vec<Block>,
    /// Blocks that hold nothing, to be used again.
    free: Vec<u32>,
    /// The block that new rows go to.
    last: u32,
    /// The bytes of all keys and values.
    size: usize,
    gaps: usize,
    /// Where `sweep` goes on.
    hand: Place,
}

/// A row as it stands in its block.
struct Row<'a> {
    key: &'a [u8],
    value: &'a [u8],
    /// The bytes that it takes, with header and room.
    taken: usize,
}

fn number(bytes: &[u8], at: usize) -> usize {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]) as usize
}

impl Block {
    fn row(&self, start: usize) -> Row<'_> {
        let (key, value, room) =
            (number(&self.bytes, start), number(&self.bytes, start + 4), number(&self.bytes, start + 8));
        let of_key = start + HEADER;
        let of_value = of_key + key;
        Row {
            key: &self.bytes[of_key..of_value],
            value: &self.bytes[of_value..of_value + value],
            taken: HEADER + key + room,
        }
    }
}

impl Rows {
    /// Returns how many rows there are.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Returns the bytes of all keys and values.
    pub const fn size_bytes(&self) -> usize {
        self.size
    }

    /// Returns the memory that the rows take, gaps and places included.
    pub fn memory_bytes(&self) -> usize {
        let blocks: usize = self.blocks.iter().map(|block| block.bytes.capacity()).sum();
        blocks + self.places.allocation_size()
    }

    /// Returns the value of a key.
    pub fn get(&self, key: &[u8]) -> Option<&[u8]> {
        let place = self.places.find(self.hasher.hash_one(key), |place| self.row(*place).key == key)?;
        Some(self.row(*place).value)
    }

    /// Gives a key this value; `None` deletes its row.
    ///
    /// # Panics
    /// A key or a value of 4 GiB, which no record can have.
    pub fn set(&mut self, key: &[u8], value: Option<&[u8]>) {
        let hash = self.hasher.hash_one(key);
        let found = self.places.find(hash, |place| self.row(*place).key == key).copied();
        match (found, value) {
            (None, None) => return,
            (None, Some(value)) => {
                let place = self.append(key, value);
                let (blocks, hasher) = (&self.blocks, &self.hasher);
                self.places.insert_unique(hash, place, |place| hasher.hash_one(row(blocks, *place).key));
            }
            (Some(place), Some(value)) if self.replace(place, value) => return,
            (Some(before), Some(value)) => {
                self.leave(before);
                let place = self.append(key, value);
                if let Some(known) = self.places.find_mut(hash, |known| *known == before) {
                    *known = place;
                }
            }
            (Some(before), None) => {
                if let Ok(entry) = self.places.find_entry(hash, |known| *known == before) {
                    entry.remove();
                }
                self.leave(before);
            }
        }
        self.close_gaps();
    }

    /// Returns all rows, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.places.iter().map(|place| self.row(*place)).map(|row| (row.key, row.value))
    }

    /// Looks at the next rows, in the order in which they stand, and deletes those of whose values `is_old` says so.
    /// After the last row comes the first.
    pub(super) fn sweep(&mut self, looks: usize, is_old: impl Fn(&[u8]) -> bool) {
        for _ in 0..looks {
            let here = self.hand;
            let Some(block) = self.blocks.get(here.block as usize) else {
                self.hand = Place::default();
                continue;
            };
            if here.start as usize >= block.bytes.len() {
                self.hand = Place { block: here.block + 1, start: 0 };
                continue;
            }
            let row = block.row(here.start as usize);
            self.hand.start += row.taken as u32;
            if is_old(row.value)
                && let Ok(entry) = self.places.find_entry(self.hasher.hash_one(row.key), |known| *known == here)
            {
                entry.remove();
                self.leave(here);
            }
        }
        self.close_gaps();
    }

    fn close_gaps(&mut self) {
        if self.gaps > BLOCK + self.size / 4 {
            self.empty_one();
        }
    }

    fn row(&self, place: Place) -> Row<'_> {
        row(&self.blocks, place)
    }

    /// Replaces a value where it stands. Returns `false` if there is no room.
    fn replace(&mut self, place: Place, value: &[u8]) -> bool {
        let bytes = &mut self.blocks[place.block as usize].bytes;
        let start = place.start as usize;
        let (of_key, before, room) = (number(bytes, start), number(bytes, start + 4), number(bytes, start + 8));
        if value.len() > room {
            return false;
        }
        bytes[start + 4..start + 8].copy_from_slice(&(value.len() as u32).to_le_bytes());
        let of_value = start + HEADER + of_key;
        bytes[of_value..of_value + value.len()].copy_from_slice(value);
        self.size = self.size - before + value.len();
        true
    }

    /// Writes a row behind the last one.
    fn append(&mut self, key: &[u8], value: &[u8]) -> Place {
        // Numbers as text get longer, one figure at a time.
        let room = value.len().next_multiple_of(8);
        let taken = HEADER + key.len() + room;
        if self.blocks.is_empty() || self.blocks[self.last as usize].bytes.len() + taken > BLOCK {
            self.last = self.free.pop().unwrap_or(self.blocks.len() as u32);
            if self.last as usize == self.blocks.len() {
                self.blocks.push(Block::default());
            }
        }
        let bytes = &mut self.blocks[self.last as usize].bytes;
        let start = bytes.len();
        if start + taken > bytes.capacity() {
            // Doubled, but not beyond a block.
            let capacity = (2 * bytes.capacity()).min(BLOCK).max(start + taken);
            bytes.reserve_exact(capacity - start);
        }
        for length in [key.len(), value.len(), room] {
            bytes.extend_from_slice(&u32::try_from(length).expect("less than 4 GiB").to_le_bytes());
        }
        bytes.extend_from_slice(key);
        bytes.extend_from_slice(value);
        bytes.resize(start + taken, 0);
        self.size += key.len() + value.len();
        Place { block: self.last, start: start as u32 }
    }

    /// Notes that a row is no more.
    fn leave(&mut self, place: Place) {
        let Row { key, value, taken } = self.row(place);
        let size = key.len() + value.len();
        self.blocks[place.block as usize].gaps += taken;
        self.gaps += taken;
        self.size -= size;
    }

    /// Moves the rows of the block with the largest gaps behind the last one, and frees its memory.
    fn empty_one(&mut self) {
        let of_gaps = |(_, block): &(usize, &Block)| block.gaps;
        let Some((index, _)) = self.blocks.iter().enumerate().max_by_key(of_gaps) else { return };
        let block = std::mem::take(&mut self.blocks[index]);
        self.gaps -= block.gaps;
        self.free.push(index as u32);
        if self.hand.block as usize == index {
            self.hand = Place { block: self.hand.block + 1, start: 0 };
        }
        if self.last as usize == index {
            self.last = self.free.pop().expect("pushed just now");
        }
        let mut start = 0;
        while start < block.bytes.len() {
            let Row { key, value, taken } = block.row(start);
            let here = Place { block: index as u32, start: start as u32 };
            let hash = self.hasher.hash_one(key);
            if self.places.find(hash, |place| *place == here).is_some() {
                self.size -= key.len() + value.len();
                let place = self.append(key, value);
                if let Some(known) = self.places.find_mut(hash, |known| *known == here) {
                    *known = place;
                }
            }
            start += taken;
        }
    }
}

fn row(blocks: &[Block], place: Place) -> Row<'_> {
    blocks[place.block as usize].row(place.start as usize)
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    fn assert_same(rows: &Rows, model: &HashMap<Vec<u8>, Vec<u8>>) {
        assert_eq!(rows.len(), model.len());
        assert_eq!(rows.size_bytes(), model.iter().map(|(key, value)| key.len() + value.len()).sum::<usize>());
        let all: HashMap<_, _> = rows.iter().map(|(key, value)| (key.to_vec(), value.to_vec())).collect();
        assert_eq!(&all, model);
        for (key, value) in model {
            assert_eq!(rows.get(key), Some(value.as_slice()));
        }
    }

    proptest! {
        #[test]
        fn rows_are_those_of_a_dictionary(
            changes in prop::collection::vec((0_u8..20, prop::option::of(0_usize..300_000)), 1..200),
        ) {
            let (mut rows, mut model) = (Rows::default(), HashMap::new());
            for (number, (key, length)) in changes.into_iter().enumerate() {
                let key = vec![key; usize::from(key)];
                let value = length.map(|length| vec![number as u8; length]);
                rows.set(&key, value.as_deref());
                match value {
                    Some(value) => drop(model.insert(key, value)),
                    None => drop(model.remove(&key)),
                }
            }
            assert_same(&rows, &model);
        }
    }

    #[test]
    fn a_row_that_is_changed_a_million_times_takes_no_more_memory() {
        let mut rows = Rows::default();
        for number in 0..1_000_000_usize {
            // Values that get longer, so that none finds room.
            let value = vec![b'x'; 8 * (number % 40)];
            rows.set(format!("key {}", number % 1_000).as_bytes(), Some(&value));
        }
        assert_eq!(rows.len(), 1_000);
        assert!(rows.memory_bytes() < 4 * BLOCK, "{}", rows.memory_bytes());
    }

    #[test]
    fn a_sweep_finds_each_row_wherever_it_was_moved() {
        let mut rows = Rows::default();
        for number in 0..200_000_u32 {
            let age = if number % 3 == 0 { b"young" } else { b"ripe!" };
            rows.set(&number.to_le_bytes(), Some(age));
            rows.sweep(2, |value| value == b"ripe!");
        }
        for _ in 0..200_000 {
            rows.sweep(3, |value| value == b"ripe!");
        }
        assert_eq!(rows.len(), 66_667);
        assert!((0..200_000_u32).all(|number| rows.get(&number.to_le_bytes()).is_some() == (number % 3 == 0)));
        assert!(rows.memory_bytes() < 4 * BLOCK + 2 * rows.size_bytes(), "{}", rows.memory_bytes());
    }

    #[test]
    fn memory_is_near_the_bytes_of_the_rows() {
        let mut rows = Rows::default();
        for number in 0..1_000_000_u32 {
            rows.set(format!("key-{number:06}").as_bytes(), Some(&[7; 90]));
        }
        let ratio = rows.memory_bytes() as f64 / rows.size_bytes() as f64;
        assert!(ratio < 1.5, "{ratio}");
    }

    #[test]
    fn a_row_may_be_larger_than_a_block() {
        let mut rows = Rows::default();
        rows.set(b"small", Some(b"1"));
        rows.set(b"large", Some(&vec![1; 3 * BLOCK]));
        rows.set(b"other", Some(b"2"));
        assert_eq!(rows.get(b"large").map(<[u8]>::len), Some(3 * BLOCK));
        rows.set(b"large", None);
        assert_eq!((rows.get(b"small"), rows.get(b"other"), rows.len()), (Some(&b"1"[..]), Some(&b"2"[..]), 2));
        assert!(rows.memory_bytes() < BLOCK, "a block that is empty gives its memory back");
    }
}
