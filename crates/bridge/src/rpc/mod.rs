//! The engine's `rpc` for Python: callers and their calls; `responder` has the calls that a service executes.

mod call;
mod caller;
mod responder;

pub use call::Call;
pub use caller::Caller;
pub use responder::{Admission, CallReplies, IncomingCall, StreamCredit};
