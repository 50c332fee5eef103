//! Tells a handle that it woke up in another process: after a fork its threads are gone, and using it would hang.
//!
//! A handler of `pthread_atfork` counts the forks of which this process is the child; a handle remembers the count at its
//! birth. The check is one relaxed load, cheap enough for every call, where `getpid` would be a system call.

use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::{Error, Result};

/// Forks of which this process is the child. Written in the child before any of its code runs, so relaxed is enough.
static FORKS: AtomicU32 = AtomicU32::new(0);
static INSTALL: Once = Once::new();

extern "C" fn count_fork() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// The process in which something was made: small, for what there are many of.
#[derive(Clone, Copy, Debug)]
pub struct Birthplace {
    forks: u32,
    pid: u32,
}

impl Birthplace {
    /// This process.
    pub fn here() -> Self {
        INSTALL.call_once(|| {
            // SAFETY: the handler only adds to an atomic, which is allowed between fork and exec.
            unsafe { libc::pthread_atfork(None, None, Some(count_fork)) };
        });
        Self { forks: FORKS.load(Ordering::Relaxed), pid: std::process::id() }
    }

    /// Whether it was another process than this.
    pub fn is_foreign(self) -> bool {
        FORKS.load(Ordering::Relaxed) != self.forks
    }

    /// Refuses use in another process; to be called before any lock of the handle is taken.
    pub fn check(self, what: &'static str) -> Result<()> {
        if self.is_foreign() { Err(Error::Forked { what, pid: self.pid }) } else { Ok(()) }
    }
}

/// Remembers the process in which a handle was made.
#[derive(Debug)]
pub struct ForkGuard {
    birthplace: Birthplace,
    what: &'static str,
}

impl ForkGuard {
    /// A guard for a handle of this kind, made in this process.
    pub fn new(what: &'static str) -> Self {
        Self { birthplace: Birthplace::here(), what }
    }

    /// Where the handle was made.
    pub const fn birthplace(&self) -> Birthplace {
        self.birthplace
    }

    /// Whether this is another process than the handle's own.
    pub fn is_foreign(&self) -> bool {
        self.birthplace.is_foreign()
    }

    /// Refuses use in another process; to be called before any lock of the handle is taken.
    pub fn check(&self) -> Result<()> {
        self.birthplace.check(self.what)
    }
}
