//! The caller's side of a call: sends requests and ends each call once, with its replies or with a failure.
//!
//! `caller` makes calls under ids from `random_ids`. `calls` holds the calls that have not ended, with their
//! deadlines. `replies` reads the caller's partition of the reply topic; `waiting` is the wait of a thread. `call` is
//! one call: the replies that wait to be taken, and how the call ended. Retries are the application's decision and
//! live in Python.

mod call;
#[allow(clippy::module_inception)] // The file of the type of this name.
mod caller;
mod calls;
#[cfg(all(test, feature = "model"))]
mod models;
#[allow(unsafe_code)] // `getrandom`.
mod random_ids;
mod replies;
mod request;
mod waiting;

pub use call::{Call, Failure, Next, Wanted};
pub use caller::Caller;
pub use calls::CallCounters;
pub use request::{CallerOptions, Request};
pub use waiting::Waiting;
