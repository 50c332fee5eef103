//! The rows that one job has written and that are not committed yet.
//!
//! Each write keeps the offset of the message whose handler made it: a job that fails commits the messages before the
//! one that failed, and with them what they wrote. What the failed one wrote is forgotten.

use std::collections::HashMap;

/// A row as it is written: a key, and its value, or `None` for a row that is deleted.
pub type Written = (Box<[u8]>, Option<Box<[u8]>>);

struct Write {
    offset: i64,
    value: Option<Box<[u8]>>,
    /// The write of the same key before.
    before: Option<usize>,
}

/// The rows that one job has written in one table.
#[derive(Default)]
pub struct Writes {
    all: Vec<Write>,
    latest: HashMap<Box<[u8]>, usize>,
    size: usize,
}

impl Writes {
    /// Returns what was written for a key: a value, or that its row is deleted. `None`: nothing.
    pub fn get(&self, key: &[u8]) -> Option<Option<&[u8]>> {
        self.latest.get(key).map(|latest| self.all[*latest].value.as_deref())
    }

    /// Writes a row for the message of this offset; a value of `None` deletes it.
    pub fn set(&mut self, offset: i64, key: &[u8], value: Option<&[u8]>) {
        let value = value.map(Box::from);
        self.size += value.as_deref().map_or(0, <[u8]>::len);
        let Some(latest) = self.latest.get_mut(key) else {
            self.size += key.len();
            self.latest.insert(key.into(), self.all.len());
            return self.all.push(Write { offset, value, before: None });
        };
        let write = &mut self.all[*latest];
        if write.offset == offset {
            self.size -= write.value.as_deref().map_or(0, <[u8]>::len);
            write.value = value;
            return;
        }
        let before = Some(std::mem::replace(latest, self.all.len()));
        self.all.push(Write { offset, value, before });
    }

    /// Returns the bytes of keys and values that are kept.
    pub const fn size_bytes(&self) -> usize {
        self.size
    }

    /// Returns the keys that were written, each with what it was given last.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], Option<&[u8]>)> {
        self.latest.iter().map(|(key, latest)| (&**key, self.all[*latest].value.as_deref()))
    }

    /// Forgets what the message of this offset has written, the last one that wrote anything. Messages of several lanes
    /// do not come in the order of their offsets.
    pub fn forget(&mut self, offset: i64) {
        let kept = self.all.iter().rposition(|write| write.offset != offset).map_or(0, |last| last + 1);
        let all = &self.all;
        self.latest.retain(|_, latest| {
            while *latest >= kept {
                let Some(before) = all[*latest].before else { return false };
                *latest = before;
            }
            true
        });
        self.all.truncate(kept);
    }

    /// Returns what was written, each key once.
    pub fn into_written(mut self) -> Vec<Written> {
        self.latest.into_iter().map(|(key, latest)| (key, self.all[latest].value.take())).collect()
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;

    fn written(writes: Writes) -> Vec<(Vec<u8>, Option<Vec<u8>>)> {
        let mut written: Vec<_> =
            writes.into_written().into_iter().map(|(key, value)| (key.into(), value.map(Into::into))).collect();
        written.sort();
        written
    }

    fn writes() -> Writes {
        let mut writes = Writes::default();
        writes.set(5, b"a", Some(b"1"));
        writes.set(5, b"a", Some(b"2"));
        writes.set(6, b"b", Some(b"3"));
        writes.set(7, b"a", None);
        writes
    }

    #[test]
    fn a_job_reads_what_it_wrote_last() {
        let writes = writes();
        assert_eq!(writes.get(b"a"), Some(None));
        assert_eq!(writes.get(b"b"), Some(Some(&b"3"[..])));
        assert_eq!(writes.get(b"c"), None);
        assert_eq!(writes.size_bytes(), 4);
    }

    #[test]
    fn each_key_is_committed_once() {
        assert_eq!(written(writes()), [(b"a".to_vec(), None), (b"b".to_vec(), Some(b"3".to_vec()))]);
    }

    #[test]
    fn what_a_failed_message_wrote_is_not_committed() {
        let (a, b) = ((b"a".to_vec(), Some(b"2".to_vec())), (b"b".to_vec(), Some(b"3".to_vec())));
        let mut writes = writes();
        writes.forget(7);
        assert_eq!(writes.get(b"a"), Some(Some(&b"2"[..])));
        writes.forget(7);
        let mut others = Writes::default();
        others.set(9, b"a", Some(b"2"));
        others.set(4, b"b", Some(b"3")); // Of another lane: its offset is lower.
        others.set(6, b"b", Some(b"4"));
        others.set(6, b"c", Some(b"5"));
        others.forget(6);
        assert_eq!((written(writes), written(others)), (vec![a.clone(), b.clone()], vec![a, b]));
    }
}
