//! Requests whose deadline has passed: consuming skips them, so that a backlog costs no job and no decoding.

use std::ffi::CStr;
use std::time::Duration;

use crate::consume::SkipPolicy;
use crate::counters::Counter;
use crate::kafka::Loose;

/// `protocol::DEADLINE`, as it is looked up in a record that has not been decoded.
const HEADER: &CStr = c"rpc-deadline-ms";

/// Skips requests whose deadline has passed, and counts them. A request without a deadline is never skipped here.
#[derive(Debug)]
pub struct Expiry {
    clock_skew_ms: u64,
    skipped: Counter,
}

impl Expiry {
    /// A request expires `clock_skew` after its deadline: callers' clocks may be behind.
    pub fn new(clock_skew: Duration) -> Self {
        let clock_skew_ms = u64::try_from(clock_skew.as_millis()).unwrap_or(u64::MAX);
        Self { clock_skew_ms, skipped: Counter::default() }
    }

    /// Returns how many requests were skipped. Does not block.
    pub fn skipped(&self) -> u64 {
        self.skipped.get()
    }

    /// Returns whether a deadline, as its header has it, has passed. Malformed ones are left to admission.
    fn has_passed(&self, deadline: Option<&[u8]>, now_ms: u64) -> bool {
        let deadline_ms = deadline.and_then(|text| std::str::from_utf8(text).ok()?.parse::<u64>().ok());
        deadline_ms.is_some_and(|deadline_ms| deadline_ms.saturating_add(self.clock_skew_ms) < now_ms)
    }
}

impl SkipPolicy for Expiry {
    fn skips(&self, message: &Loose, now_ms: u64) -> bool {
        let is_skipped = self.has_passed(message.header(HEADER), now_ms);
        self.skipped.add(u64::from(is_skipped));
        is_skipped
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;
    use crate::rpc::protocol;

    #[test]
    fn the_header_is_the_protocols() {
        assert_eq!(HEADER.to_str(), Ok(protocol::DEADLINE));
    }

    #[test]
    fn a_request_expires_one_clock_skew_after_its_deadline() {
        let expiry = Expiry::new(Duration::from_millis(50));
        assert!(!expiry.has_passed(Some(b"1000"), 1_000));
        assert!(!expiry.has_passed(Some(b"1000"), 1_050), "the callers' clocks may be behind");
        assert!(expiry.has_passed(Some(b"1000"), 1_051));
    }

    #[test]
    fn a_request_without_a_readable_deadline_is_left_to_admission() {
        let expiry = Expiry::new(Duration::ZERO);
        for deadline in [None, Some(&b""[..]), Some(b"-1"), Some(b"soon"), Some(b"\xff"), Some(&[b'9'; 30])] {
            assert!(!expiry.has_passed(deadline, u64::MAX));
        }
    }
}
