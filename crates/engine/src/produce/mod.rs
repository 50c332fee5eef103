//! The way of a record to the broker, and of the broker's answer back.
//!
//! `producer` takes a record in, over a `connection`, whose budget (`wake`) bounds the messages that wait. The sender
//! gets a `delivery_handle`, and `delivery_reports` serves the answers. A `transaction` makes many messages visible at
//! once.

mod connection;
mod deliveries;
mod delivery_handle;
mod delivery_reports;
mod idle;
mod outputs;
mod producer;
mod record;
mod reorder_buffer;
mod topics;
mod transaction;

pub use crate::kafka::{Delivery, Record, Variant};
pub use awoke_wake::Budget;
pub use connection::ProducerCounters;
pub use deliveries::Deliveries;
pub(crate) use deliveries::are_delivered;
pub use delivery_handle::{DeliveryHandle, Report, Waiting};
pub use delivery_reports::Reports;
use idle::Idle;
pub use producer::{Producer, ProducerOptions};
pub use record::OwnedRecord;
pub use reorder_buffer::{Added, ReorderBuffer, Turn};
pub use transaction::Transaction;
