//! The responder's side of a call: reads requests, decides which are executed and when, and follows each call to
//! its end.
//!
//! `receive` takes a job of the topic of requests; `request` describes its record. `admission` decides what happens
//! to the call: `limiter` knows how many calls run and which is next, `idempotency` keeps the results of earlier
//! calls, `remembered` keeps ids until their deadlines. `incoming_call` is the call, `stage` its state machine,
//! `ticket` its names, `credit` the flow control of a stream, `settlement` the end of the call's job. `expiry` has
//! consuming skip requests whose deadline has passed. `options` are the settings.

mod admission;
mod credit;
mod expiry;
mod idempotency;
mod incoming_call;
mod limiter;
mod options;
mod receive;
mod remembered;
mod request;
mod settlement;
mod stage;
#[cfg(all(test, not(feature = "model")))]
pub(super) mod testing;
mod ticket;

pub use admission::{Admission, Admitted, CallRef};
pub use credit::Credit;
pub use expiry::Expiry;
pub use idempotency::Answer;
pub use incoming_call::{IncomingCall, NotBegun, NotExecuted, Service};
pub use options::{AdmissionOptions, MethodRules};
pub use receive::{LentRecord, Received};
pub use request::{Arrival, InvalidRequest, RejectReason, RequestRecord};
pub use stage::{Stage, Step};
pub use ticket::Ticket;
