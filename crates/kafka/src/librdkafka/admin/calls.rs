//! The calls of an admin client that have no answer yet.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::super::AccessFailure;
use super::AdminOutcome;
use crate::wake::Completion;
use crate::{Error, Result};

pub(crate) type Call = Completion<Result<AdminOutcome>>;

/// A call that has no answer yet.
pub(crate) struct Pending {
    pub(crate) call: Arc<Call>,
    /// The operation with its objects: "create topic orders".
    pub(crate) operation: String,
    pub(crate) unreachable: String,
}

/// The calls that have no answer yet, by the number that librdkafka carries for each.
#[derive(Default)]
pub(crate) struct Calls(Mutex<Table>);

#[derive(Default)]
struct Table {
    last: usize,
    pending: HashMap<usize, Pending>,
    /// True once no thread serves answers.
    is_closed: bool,
}

impl Calls {
    /// The call's number, never 0.
    pub(crate) fn add(&self, pending: Pending) -> usize {
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        table.last += 1;
        let number = table.last;
        if table.is_closed {
            drop(table);
            pending.call.complete(Err(Error::Closed { what: "admin" }));
        } else {
            table.pending.insert(number, pending);
        }
        number
    }

    pub(crate) fn take(&self, number: usize) -> Option<Pending> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pending.remove(&number)
    }

    pub(crate) fn are_answered(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pending.is_empty()
    }

    /// Fails every call that has no answer yet.
    pub(crate) fn deny_all(&self, failure: &AccessFailure) {
        let pending = std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner).pending);
        for Pending { call, operation, .. } in pending.into_values() {
            call.complete(Err(Error::kafka(operation, failure.code, failure.text.clone())));
        }
    }

    /// Fails every call that has no answer, now and later.
    pub(crate) fn fail_all(&self) {
        let pending = {
            let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            table.is_closed = true;
            std::mem::take(&mut table.pending)
        };
        pending.into_values().for_each(|pending| {
            pending.call.complete(Err(Error::Closed { what: "admin" }));
        });
    }
}
