//! Questions over Kafka: who asks, what was asked and not answered, and where answers come in.
//!
//! `caller` asks, `calls` knows what has no answer yet, `replies` brings answers, `call` is what whoever asked holds. At the other end
//! `intake` decides what becomes of a call that comes: `turnstile` knows how many run and which is next, `results` what was executed
//! before. Who answers is user code, and so Python's; `protocol` and `signature` are what both sides agree on.

mod arrival;
mod call;
mod caller;
mod calls;
#[cfg(all(test, not(feature = "model")))]
mod hostile;
mod intake;
#[cfg(all(test, feature = "model"))]
mod models;
mod numbers;
pub mod protocol;
mod remembered;
mod replies;
mod reply_sent;
mod results;
mod rules;
mod signature;
mod turnstile;

pub use arrival::{Arrival, Received, Unwanted};
pub use call::{Call, Failure, Next, Wanted};
pub use caller::{Caller, CallerOptions, Request};
pub use calls::CallCounters;
pub use intake::{Entered, Intake, Refusal, Ticket};
pub use protocol::{CallId, Reply, ReplyKind, RequestHead, Times};
pub use replies::Waiting;
pub use reply_sent::ReplySent;
pub use results::Answer;
pub use rules::{IntakeOptions, MethodRules};
pub use signature::SigningKey;
