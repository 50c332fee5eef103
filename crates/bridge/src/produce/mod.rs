//! The engine's `produce` for Python: messages to send, producers, delivery handles, transactions.

mod delivery_handle;
mod producer;
mod record;
mod transaction;

pub use delivery_handle::{DeliveryHandle, first_undelivered, flush_now, wait_all};
pub use producer::{Producer, Variant};
pub use record::{Outgoing, header_list, header_views};
pub use transaction::Transaction;
