//! A thread of awoke's own, which its owner joins.

#[cfg(not(feature = "simulated"))]
use std::thread::JoinHandle;

use crate::fork_guard::Birthplace;
#[cfg(feature = "simulated")]
use crate::simulation::JoinHandle;
use crate::{Error, Result};

/// A running thread. Dropped without `join`, it runs on by itself.
///
/// In a forked child the thread does not exist, and pthread may crash when it is asked about it. The handle is
/// forgotten there.
pub struct OwnThread {
    /// `None` when it was joined.
    handle: Option<JoinHandle<()>>,
    birthplace: Birthplace,
}

impl OwnThread {
    /// Starts a thread with this name, of which Linux shows 15 bytes. `operation` names it in the error.
    ///
    /// # Errors
    /// [`Error::System`]: the system has no thread to give.
    pub fn start(name: &str, operation: &'static str, run: impl FnOnce() + Send + 'static) -> Result<Self> {
        let handle = spawn(name, run).map_err(|error| Error::System { operation, detail: error.to_string() })?;
        Ok(Self { handle: Some(handle), birthplace: Birthplace::here() })
    }

    /// Returns whether the calling thread is this one.
    pub fn is_current(&self) -> bool {
        self.handle.as_ref().is_some_and(is_current)
    }

    /// Returns whether its function has returned. Does not block.
    pub fn is_finished(&self) -> bool {
        self.handle.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Waits for its end. Blocks; does nothing in a forked child. A panic of it has been printed.
    pub fn join(mut self) {
        if let Some(handle) = self.handle.take_if(|_| !self.birthplace.is_foreign()) {
            drop(handle.join());
        }
    }
}

// A simulation does not fork.
#[cfg(not(feature = "simulated"))]
impl Drop for OwnThread {
    fn drop(&mut self) {
        if self.birthplace.is_foreign() {
            std::mem::forget(self.handle.take());
        }
    }
}

#[cfg(not(feature = "simulated"))]
fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> std::io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name(name.into()).spawn(run)
}

#[cfg(not(feature = "simulated"))]
fn is_current(thread: &JoinHandle<()>) -> bool {
    thread.thread().id() == std::thread::current().id()
}

/// In a simulation a thread is a task.
#[cfg(feature = "simulated")]
#[allow(clippy::unnecessary_wraps)]
fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> std::io::Result<JoinHandle<()>> {
    Ok(crate::simulation::spawn(name, run))
}

#[cfg(feature = "simulated")]
fn is_current(thread: &JoinHandle<()>) -> bool {
    thread.is_current()
}

#[cfg(all(test, not(any(feature = "model", feature = "simulated"))))]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn it_is_joined_when_its_function_has_returned() {
        let (sender, receiver) = channel();
        let thread =
            OwnThread::start("test", "start it", move || receiver.recv().expect("the test sends")).expect("ok");
        assert!(!thread.is_finished());
        assert!(!thread.is_current());
        sender.send(()).expect("it receives");
        thread.join();
    }

    #[test]
    fn in_a_forked_child_it_is_forgotten() {
        let (sender, receiver) = channel::<()>();
        let thread = OwnThread::start("test", "start it", move || {
            let _ = receiver.recv();
        })
        .expect("ok");
        // SAFETY: the child drops the handle and leaves; it takes no lock of another thread's.
        let child = unsafe { libc::fork() };
        if child == 0 {
            drop(thread);
            // SAFETY: it does not return.
            unsafe { libc::_exit(0) };
        }
        let mut status = 0;
        // SAFETY: it writes the status of the child that was made above.
        unsafe { libc::waitpid(child, &raw mut status, 0) };
        assert_eq!(status, 0);
        drop(sender);
        thread.join();
    }
}
