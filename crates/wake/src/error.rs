//! Errors of the waiting primitives.

use std::fmt;
use std::time::Duration;

/// Results of the waiting primitives.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of a waiting primitive.
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
    /// A budget had no room within the given time.
    BudgetExhausted {
        /// The time for which the caller waited.
        waited: Duration,
        /// The number of messages that hold the budget.
        messages: usize,
        /// Their size in bytes.
        bytes: usize,
    },
    /// No answer came within the given time; the operation may still take effect.
    TimedOut {
        /// The operation, with its object.
        operation: String,
        /// The time for which the caller waited.
        waited: Duration,
    },
    /// The sink of a sequencer has failed, so the sequencer has: the progress of its last run is unknown.
    Poisoned {
        /// All entries before this one were appended.
        index: u64,
    },
    /// An argument is invalid; nothing was done.
    Invalid {
        /// The reason.
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
            Self::BudgetExhausted { waited, messages, bytes } => write!(
                f,
                "the budget is exhausted ({messages} messages, {bytes} bytes) and had no room within {:.3} s",
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

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;

    #[test]
    fn a_message_names_the_object_and_the_numbers() {
        let waited = Duration::from_millis(1500);
        let texts = [
            (Error::Closed { what: "sequencer" }, "this sequencer is closed"),
            (
                Error::BudgetExhausted { waited, messages: 2, bytes: 20 },
                "(2 messages, 20 bytes) and had no room within 1.500 s",
            ),
            (
                Error::TimedOut { operation: "wait for entry 3".into(), waited },
                "wait for entry 3: no answer within 1.500 s",
            ),
            (Error::Poisoned { index: 7 }, "at entry 7"),
            (Error::Forked { what: "producer", pid: 12 }, "this producer was made in process 12"),
            (Error::Invalid { reason: "entry 1 has been there before".into() }, "entry 1 has been there before"),
        ];
        for (error, part) in texts {
            assert!(error.to_string().contains(part), "{error}");
        }
    }
}
