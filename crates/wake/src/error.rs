//! Errors of the waiting primitives.

use std::fmt;
use std::time::Duration;

/// Results of the waiting primitives.
pub type Result<T> = std::result::Result<T, Error>;

/// Everything that can go wrong in a primitive.
#[derive(Clone, Debug)]
pub enum Error {
    /// The handle was made before a fork and is used in the child.
    Forked {
        /// The kind of handle.
        what: &'static str,
        /// The process that made it.
        pid: u32,
    },
    /// The handle has been closed.
    Closed {
        /// The kind of handle.
        what: &'static str,
    },
    /// A budget had nothing left within the time given.
    QueueFull {
        /// How long the caller waited.
        waited: Duration,
        /// Messages that hold the budget.
        messages: usize,
        /// Their bytes.
        bytes: usize,
    },
    /// No answer within the time given; the operation may still take effect.
    TimedOut {
        /// The operation, with its object.
        operation: String,
        /// How long the caller waited.
        waited: Duration,
    },
    /// The sink of a sequencer has failed, and with it the sequencer: how far its last run came is unknown.
    Poisoned {
        /// All entries before this one were appended.
        index: u64,
    },
    /// An argument that makes no sense; nothing was done.
    Invalid {
        /// What is wrong with it.
        reason: String,
    },
    /// The operating system refused a call.
    System {
        /// The call.
        operation: &'static str,
        /// The system's error text.
        detail: String,
    },
}

impl Error {
    /// Returns the last error of the operating system, for this call.
    pub fn last_system(operation: &'static str) -> Self {
        Self::System { operation, detail: std::io::Error::last_os_error().to_string() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Forked { what, pid } => write!(
                f,
                "this {what} was made in process {pid}, whose threads did not come along into process {}; \
                 make a new one after the fork",
                std::process::id()
            ),
            Self::Closed { what } => write!(f, "this {what} is closed"),
            Self::QueueFull { waited, messages, bytes } => write!(
                f,
                "the queue is full ({messages} messages, {bytes} bytes) and had no room within {:.3} s",
                waited.as_secs_f64()
            ),
            Self::TimedOut { operation, waited } => {
                write!(f, "{operation}: no answer within {:.3} s; it may still take effect", waited.as_secs_f64())
            }
            Self::Poisoned { index } => {
                write!(f, "the sequencer is broken: its sink failed at entry {index} or one of those behind it")
            }
            Self::Invalid { reason } => f.write_str(reason),
            Self::System { operation, detail } => write!(f, "{operation}: {detail}"),
        }
    }
}

impl std::error::Error for Error {}
