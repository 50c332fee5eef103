//! Detects the use of a handle in a forked child: its threads do not exist there, and using it would hang.
//!
//! A handler of `pthread_atfork` counts the forks of which this process is the child. A handle keeps the count of its
//! creation. The check is one relaxed load, cheap enough for every call, where `getpid` would be a system call.

use std::cell::Cell;
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::{Error, Result};

/// Forks of which this process is the child. Written in the child before any of its code runs, so relaxed is enough.
static FORKS: AtomicU32 = AtomicU32::new(0);
static INSTALL: Once = Once::new();

extern "C" fn count_fork() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// The process in which an object was made. It is small, for objects that are numerous.
#[derive(Clone, Copy, Debug)]
pub struct Birthplace {
    forks: u32,
    pid: u32,
}

impl Birthplace {
    /// Returns this process.
    pub fn here() -> Self {
        INSTALL.call_once(|| {
            // SAFETY: the handler only adds to an atomic, which is allowed between fork and exec.
            unsafe { libc::pthread_atfork(None, None, Some(count_fork)) };
        });
        Self { forks: FORKS.load(Ordering::Relaxed), pid: std::process::id() }
    }

    /// Returns whether it was another process than this one.
    pub fn is_foreign(self) -> bool {
        FORKS.load(Ordering::Relaxed) != self.forks
    }

    /// Checks that it is this process; to be called before any lock of the object is taken.
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn check(self, what: &'static str) -> Result<()> {
        if self.is_foreign() { Err(Error::Forked { what, pid: self.pid }) } else { Ok(()) }
    }
}

/// Returns whether the calling thread is the process's first one. Does not block.
pub fn is_first_thread() -> bool {
    thread_local! {
        static FOUND: Cell<Option<(Birthplace, bool)>> = const { Cell::new(None) };
    }
    // Found once for each thread and process: a forked child's only thread is its first, whichever it was before.
    if let Some((_, found)) = FOUND.get().filter(|(process, _)| !process.is_foreign()) {
        return found;
    }
    #[cfg(target_os = "linux")]
    // SAFETY: both calls take nothing and always succeed.
    let found = unsafe { libc::getpid() == libc::gettid() };
    #[cfg(not(target_os = "linux"))]
    // SAFETY: takes nothing and always succeeds.
    let found = unsafe { libc::pthread_main_np() != 0 };
    FOUND.set(Some((Birthplace::here(), found)));
    found
}

/// The process in which a handle was made, and the handle's kind.
#[derive(Debug)]
pub struct ForkGuard {
    birthplace: Birthplace,
    what: &'static str,
}

impl ForkGuard {
    /// Makes a guard for a handle of this kind, made in this process.
    pub fn new(what: &'static str) -> Self {
        Self { birthplace: Birthplace::here(), what }
    }

    /// Returns the process in which the handle was made.
    pub const fn birthplace(&self) -> Birthplace {
        self.birthplace
    }

    /// Returns whether this is another process than the handle's own.
    pub fn is_foreign(&self) -> bool {
        self.birthplace.is_foreign()
    }

    /// Checks that this is the handle's process; to be called before any lock of the handle is taken.
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn check(&self) -> Result<()> {
        self.birthplace.check(self.what)
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;

    #[test]
    fn a_handle_is_usable_in_its_own_process_and_refused_in_a_forked_child() {
        let guard = ForkGuard::new("handle");
        assert!(guard.check().is_ok());
        // SAFETY: the child only reads atomics and its process id, and ends at once.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let is_refused = matches!(guard.check(), Err(Error::Forked { what: "handle", .. }));
            // SAFETY: ends the child without running the test program's handlers.
            unsafe { libc::_exit(i32::from(!is_refused)) };
        }
        let mut status = -1;
        // SAFETY: waits for the child that was made above; the status is on this stack.
        unsafe { libc::waitpid(child, &raw mut status, 0) };
        assert_eq!(status, 0, "the child refuses the handle");
        assert!(!guard.is_foreign());
    }
}
