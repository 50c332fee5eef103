//! The names under which admission knows a call.

use std::sync::Arc;

use crate::rpc::protocol::RequestHead;

/// The names under which admission knows a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// The caller and the id that it gave the call.
    pub(super) name: Box<[u8]>,
    pub(super) method: usize,
    pub(super) size_bytes: usize,
    /// `None` if the call may be executed twice.
    pub(super) result_key: Option<Arc<[u8]>>,
}

impl Ticket {
    /// The names of a call of the method with this number. `is_once`: it is not executed twice under one
    /// idempotency key.
    pub(super) fn new(head: &RequestHead<'_>, method: usize, size_bytes: usize, is_once: bool) -> Self {
        let result_key = head.idempotency_key.filter(|_| is_once);
        let result_key = result_key.map(|key| {
            let (caller, method) = (with_length(head.caller), with_length(head.method));
            [&caller[..], &method, key].concat().into()
        });
        Self { name: name_of(head), method, size_bytes, result_key }
    }
}

/// Returns the name of a call. It holds the caller's, so that no other caller's cancellation or credit reaches the
/// call.
pub(super) fn name_of(head: &RequestHead<'_>) -> Box<[u8]> {
    [&with_length(head.caller)[..], head.id].concat().into()
}

/// Returns a name after its length: two names in a row then differ from every other two.
fn with_length(name: &str) -> Vec<u8> {
    [&[u8::try_from(name.len()).unwrap_or(u8::MAX)], name.as_bytes()].concat()
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::super::testing::head;
    use super::*;

    #[test]
    fn no_caller_has_another_callers_idempotency_key() {
        let key = |caller, key| {
            let head = RequestHead { caller, idempotency_key: Some(key), ..head("1") };
            Ticket::new(&head, 0, 1, true).result_key
        };
        assert_ne!(key("a", b"quote\0key"), key("a\0quote", b"key"));
        assert_ne!(key("a", b"\x05quotekey"), key("a\x05quote", b"key"));
    }

    #[test]
    fn a_call_that_may_be_executed_twice_has_no_result_key() {
        let head = RequestHead { idempotency_key: Some(b"key"), ..head("1") };
        assert!(Ticket::new(&head, 0, 1, true).result_key.is_some());
        assert_eq!(Ticket::new(&head, 0, 1, false).result_key, None);
    }
}
