//! Walks over the bytes of an Avro value before a decoder of Python's reads them, and refuses what would kill it.
//!
//! A decoder recurses as deep as the value is nested, makes an object of each item of an array, also of one that takes
//! no bytes, and works on the digits of a decimal in quadratic time. So a message of a few kilobytes ends the process,
//! or holds the GIL for minutes. The walk makes no objects, and bounds what it counts.

/// Containers in containers, as a list whose records refer to the next one has them.
const DEPTH_MAX: u32 = 256;
/// Values that may take no bytes, in any message, and more for each byte that it has.
const SPARE_VALUES: usize = 16_384;
const VALUES_PER_BYTE: usize = 4;
/// The bytes of a number: more than 64 bits do not fit.
const NUMBER_BYTES_MAX: usize = 10;

/// A type of a schema. Types name others by their places, so that a type may contain itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Type {
    /// Takes this many bytes.
    Fixed(usize),
    /// An integer, or an enum's symbol.
    Number,
    /// A length and that many bytes, at most these.
    Bytes(usize),
    /// The values of its fields.
    Record(Vec<usize>),
    /// The place of a branch, and its value.
    Union(Vec<usize>),
    /// Blocks of items.
    Array(usize),
    /// Blocks of keys and values.
    Map(usize),
}

/// The reason to refuse a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// The bytes end within the value.
    Ends,
    /// A length, a count or a place in a union that no value has.
    Wrong,
    /// More containers in one another than `DEPTH_MAX`.
    Deep,
    /// More values than its bytes may hold.
    Many,
    /// A part that is longer than its type may be.
    Long,
}

impl std::fmt::Display for Refused {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Ends => write!(to, "the bytes end within the record"),
            Self::Wrong => write!(to, "the bytes are not of this schema"),
            Self::Deep => write!(to, "the value is nested more than {DEPTH_MAX} levels deep"),
            Self::Many => write!(to, "the value has far more parts than bytes"),
            Self::Long => write!(to, "the value has a decimal of more digits than are read"),
        }
    }
}

/// The types of one schema; the value is of the first.
#[derive(Debug)]
pub struct AvroWalk {
    types: Vec<Type>,
}

impl AvroWalk {
    /// Returns `None` if a type names one that is not there, or if there is none.
    pub fn new(types: Vec<Type>) -> Option<Self> {
        let is_there = |place: &usize| *place < types.len();
        let is_whole = types.iter().all(|each| match each {
            Type::Record(places) | Type::Union(places) => places.iter().all(is_there),
            Type::Array(place) | Type::Map(place) => is_there(place),
            Type::Fixed(_) | Type::Number | Type::Bytes(_) => true,
        });
        (is_whole && !types.is_empty()).then_some(Self { types })
    }

    /// Checks a value.
    ///
    /// # Errors
    /// The first reason to refuse it.
    pub fn check(&self, data: &[u8]) -> Result<(), Refused> {
        let values_left = SPARE_VALUES + data.len() * VALUES_PER_BYTE;
        Walk { types: &self.types, rest: data, values_left }.value(0, 0)
    }
}

struct Walk<'a> {
    types: &'a [Type],
    rest: &'a [u8],
    values_left: usize,
}

impl Walk<'_> {
    fn value(&mut self, place: usize, depth: u32) -> Result<(), Refused> {
        let types = self.types;
        if depth > DEPTH_MAX {
            return Err(Refused::Deep);
        }
        if !matches!(types[place], Type::Union(_)) {
            self.values_left = self.values_left.checked_sub(1).ok_or(Refused::Many)?;
        }
        match &types[place] {
            Type::Fixed(size) => self.skip(*size),
            Type::Number => self.number().map(drop),
            Type::Bytes(most) => self.bytes(*most),
            Type::Record(fields) => fields.iter().try_for_each(|field| self.value(*field, depth + 1)),
            Type::Union(branches) => {
                let branch = usize::try_from(self.number()?).ok().and_then(|branch| branches.get(branch));
                self.value(*branch.ok_or(Refused::Wrong)?, depth + 1)
            }
            Type::Array(item) => self.blocks(|walk| walk.value(*item, depth + 1)),
            Type::Map(item) => self.blocks(|walk| {
                walk.bytes(usize::MAX)?;
                walk.value(*item, depth + 1)
            }),
        }
    }

    /// Walks over blocks of items up to the empty one. A negative count is followed by the block's bytes.
    fn blocks(&mut self, mut item: impl FnMut(&mut Self) -> Result<(), Refused>) -> Result<(), Refused> {
        loop {
            let count = self.number()?;
            if count == 0 {
                return Ok(());
            }
            if count < 0 {
                self.number()?;
            }
            for _ in 0..count.unsigned_abs() {
                item(self)?;
            }
        }
    }

    fn bytes(&mut self, most: usize) -> Result<(), Refused> {
        let size = usize::try_from(self.number()?).map_err(|_| Refused::Wrong)?;
        if size > most { Err(Refused::Long) } else { self.skip(size) }
    }

    fn skip(&mut self, size: usize) -> Result<(), Refused> {
        self.rest = self.rest.get(size..).ok_or(Refused::Ends)?;
        Ok(())
    }

    /// Reads a number in zigzag, of seven bits in each byte.
    fn number(&mut self) -> Result<i64, Refused> {
        let mut bits = 0u64;
        for (place, byte) in self.rest.iter().take(NUMBER_BYTES_MAX).enumerate() {
            bits |= u64::from(byte & 0x7f) << (7 * place);
            if byte & 0x80 == 0 {
                self.rest = &self.rest[place + 1..];
                return Ok((bits >> 1).cast_signed() ^ -((bits & 1).cast_signed()));
            }
        }
        Err(if self.rest.len() < NUMBER_BYTES_MAX { Refused::Ends } else { Refused::Wrong })
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::fuzzing::cases;

    /// A number as Avro writes it.
    fn number(value: i64) -> Vec<u8> {
        let mut bits = ((value << 1) ^ (value >> 63)).cast_unsigned();
        let mut bytes = Vec::new();
        while bits > 0x7f {
            bytes.push((bits & 0x7f) as u8 | 0x80);
            bits >>= 7;
        }
        bytes.push(bits as u8);
        bytes
    }

    /// A list: a record of a number and of the next one, or null.
    fn list() -> AvroWalk {
        let types = vec![Type::Record(vec![1, 2]), Type::Number, Type::Union(vec![3, 0]), Type::Fixed(0)];
        AvroWalk::new(types).expect("all types are there")
    }

    fn nested(levels: usize) -> Vec<u8> {
        let mut bytes = [number(7), number(1)].concat().repeat(levels);
        bytes.extend([number(7), number(0)].concat());
        bytes
    }

    #[test]
    fn a_list_is_read_down_to_a_depth() {
        assert_eq!(list().check(&nested(0)), Ok(()));
        assert_eq!(list().check(&nested(100)), Ok(()));
        assert_eq!(list().check(&nested(10_000)), Err(Refused::Deep));
        assert_eq!(list().check(&nested(100)[..50]), Err(Refused::Ends));
        assert_eq!(list().check(&[number(7), number(2)].concat()), Err(Refused::Wrong));
        assert_eq!(list().check(&[number(7), number(-1)].concat()), Err(Refused::Wrong), "the last branch of Python's");
    }

    #[test]
    fn items_without_bytes_are_bounded_by_the_bytes() {
        let nulls = AvroWalk::new(vec![Type::Array(1), Type::Fixed(0)]).expect("all types are there");
        assert_eq!(nulls.check(&[number(1_000), number(0)].concat()), Ok(()));
        for count in [1 << 40, i64::MAX, i64::MIN, -(1 << 40)] {
            assert_eq!(nulls.check(&[number(count), number(0), number(0)].concat()), Err(Refused::Many));
        }
        let map = AvroWalk::new(vec![Type::Map(1), Type::Bytes(4)]).expect("all types are there");
        assert_eq!(map.check(b"\x02\x02k\x04ab\0"), Ok(()));
        assert_eq!(map.check(b"\x02\x02k\x0aabcde\0"), Err(Refused::Long));
        assert_eq!(map.check(b"\x02\x01k\x04ab\0"), Err(Refused::Wrong), "a negative length");
    }

    #[test]
    fn a_type_that_is_not_there_is_refused() {
        assert!(AvroWalk::new(vec![]).is_none());
        assert!(AvroWalk::new(vec![Type::Array(1)]).is_none());
        assert!(AvroWalk::new(vec![Type::Record(vec![0, 7])]).is_none());
    }

    proptest! {
        #![proptest_config(cases())]

        #[test]
        fn any_number_goes_there_and_back(value: i64) {
            let bytes = number(value);
            let mut walk = Walk { types: &[], rest: &bytes, values_left: 0 };
            prop_assert_eq!(walk.number(), Ok(value));
            prop_assert!(walk.rest.is_empty());
        }

        #[test]
        fn fuzz_any_bytes_are_walked_over_or_refused(data: Vec<u8>, place in 0usize..6) {
            let types = vec![
                Type::Record(vec![1, 2, 3, 4, 5]),
                Type::Array(0),
                Type::Map(3),
                Type::Union(vec![0, 1, 2, 5]),
                Type::Bytes(8),
                Type::Number,
            ];
            let first = types[place].clone();
            let walk = AvroWalk::new([vec![first], types].concat()).expect("all types are there");
            let _ = walk.check(&data);
        }
    }
}
