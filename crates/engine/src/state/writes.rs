//! The rows that one job has written and that are not committed yet.
//!
//! Each write keeps the offset of the message whose handler made it: a job that fails commits the messages before the
//! one that failed, and with them what they wrote, and nothing else.

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

    /// Returns what the messages up to this offset have written, each key once; `None`: all messages.
    pub fn until(mut self, offset: Option<i64>) -> Vec<Written> {
        let last = offset.unwrap_or(i64::MAX);
        let mut written = Vec::with_capacity(self.latest.len());
        for (key, latest) in self.latest {
            let mut next = Some(latest);
            while let Some(index) = next {
                let write = &mut self.all[index];
                if write.offset <= last {
                    written.push((key, write.value.take()));
                    break;
                }
                next = write.before;
            }
        }
        written
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;

    fn until(writes: Writes, offset: Option<i64>) -> Vec<(Vec<u8>, Option<Vec<u8>>)> {
        let mut written: Vec<_> =
            writes.until(offset).into_iter().map(|(key, value)| (key.into(), value.map(Into::into))).collect();
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
        assert_eq!(until(writes(), None), [(b"a".to_vec(), None), (b"b".to_vec(), Some(b"3".to_vec()))]);
    }

    #[test]
    fn what_a_failed_message_wrote_is_not_committed() {
        assert_eq!(
            until(writes(), Some(6)),
            [(b"a".to_vec(), Some(b"2".to_vec())), (b"b".to_vec(), Some(b"3".to_vec()))]
        );
        assert_eq!(until(writes(), Some(5)), [(b"a".to_vec(), Some(b"2".to_vec()))]);
        assert_eq!(until(writes(), Some(4)), []);
    }
}
