//! The way of a record to the broker and of the broker's answer back.
//!
//! `producer` takes it in, over a `connection` whose `room` bounds how many wait; `delivery_handle` is what its sender holds,
//! `delivery_reports` serves the answers; `transaction` makes many one.

mod connection;
mod delivery_handle;
mod delivery_reports;
mod idle;
mod producer;
mod record;
mod topics;
mod transaction;

pub use awoke_wake::Room;
pub use connection::ProducerCounters;
pub use delivery_handle::{Delivery, DeliveryHandle, Report, Waiting};
pub use delivery_reports::Reports;
use idle::Idle;
pub use producer::{Producer, ProducerOptions};
pub use record::{OwnedRecord, Record, Variant};
pub use transaction::Transaction;
