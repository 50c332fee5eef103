//! Remote calls over Kafka, in both roles.
//!
//! `caller` makes calls: it sends requests, reads replies, and ends each call by its deadline at the latest.
//! `responder` receives requests and decides what happens to each. `protocol` and `signature` are what both sides
//! agree on. Methods are user code and run in Python.

mod caller;
#[cfg(all(test, not(feature = "model")))]
mod hostile;
pub mod protocol;
mod responder;
mod signature;

pub use caller::{Call, CallCounters, Caller, CallerOptions, Failure, Next, Request, Waiting, Wanted};
pub use protocol::{CallId, Reply, ReplyKind, RequestHead, Times};
pub use responder::{
    Admission, AdmissionOptions, Admitted, Answer, Arrival, CallRef, Credit, Expiry, IncomingCall, InvalidRequest,
    LentRecord, MethodRules, NotBegun, NotExecuted, Received, RejectReason, RequestRecord, Service, Stage, Step,
    Ticket,
};
pub use signature::SigningKey;
