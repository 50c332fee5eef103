//! The responder's side: admission, the calls, their records, replies and credit.

mod admission;
mod call_replies;
mod incoming_call;
mod request_record;
mod stream_credit;

pub use admission::Admission;
pub use call_replies::CallReplies;
pub use incoming_call::IncomingCall;
pub use stream_credit::StreamCredit;
