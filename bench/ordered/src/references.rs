//! The designs that the sequencer is compared with: one condition for all, and one for each stripe of indexes.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex};

use crate::cell::Gaps;

/// Entry `i` waits for `i - 1`; every append wakes all waiting threads.
pub struct OneCondition {
    appended: Mutex<(u64, Gaps)>,
    changed: Condvar,
}

impl OneCondition {
    pub fn new() -> Self {
        Self { appended: Mutex::new((0, Gaps::default())), changed: Condvar::new() }
    }

    pub fn append(&self, index: u64) {
        let mut appended = self.appended.lock().expect("no panic");
        while appended.0 != index {
            appended = self.changed.wait(appended).expect("no panic");
        }
        appended.1.note(index);
        appended.0 += 1;
        drop(appended);
        self.changed.notify_all();
    }

    pub fn gaps(self) -> Gaps {
        self.appended.into_inner().expect("no panic").1
    }
}

/// The design of Apache `IoTDB`'s log manager: entry `i` waits on the condition `(i - 1) mod k`, and appending `i`
/// wakes `i mod k`.
pub struct Striped {
    appended: AtomicU64,
    gaps: Mutex<Gaps>,
    stripes: Box<[(Mutex<()>, Condvar)]>,
}

impl Striped {
    pub fn new(conditions: u64) -> Self {
        let stripes = (0..conditions).map(|_| (Mutex::new(()), Condvar::new())).collect();
        Self { appended: AtomicU64::new(0), gaps: Mutex::default(), stripes }
    }

    fn stripe(&self, index: u64) -> &(Mutex<()>, Condvar) {
        &self.stripes[(index % self.stripes.len() as u64) as usize]
    }

    pub fn append(&self, index: u64) {
        if index > 0 && self.appended.load(Ordering::Acquire) != index {
            let (lock, changed) = self.stripe(index - 1);
            let mut held = lock.lock().expect("no panic");
            // Under the stripe's lock, which the waking thread takes: no wake-up is lost.
            while self.appended.load(Ordering::Acquire) != index {
                held = changed.wait(held).expect("no panic");
            }
        }
        self.gaps.lock().expect("no panic").note(index);
        self.appended.store(index + 1, Ordering::Release);
        let (lock, changed) = self.stripe(index);
        drop(lock.lock().expect("no panic"));
        changed.notify_all();
    }

    pub fn gaps(self) -> Gaps {
        self.gaps.into_inner().expect("no panic")
    }
}
