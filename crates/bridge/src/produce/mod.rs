//! The engine's `produce` for Python: messages to send, producers, delivery handles, transactions.

mod delivery_handle;
mod ordered;
mod producer;
mod record;
mod results;
mod transaction;

pub use delivery_handle::{DeliveryHandle, deliver, flush_now, wait_all};
pub use ordered::{OrderedQueue, OrderedResults};
pub use producer::{Producer, Variant};
pub use record::{Bytes, Outgoing, header_list, header_views, value_bytes};
pub use results::Results;
pub use transaction::Transaction;
