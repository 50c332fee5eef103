//! The way of a record to the broker and of the broker's answer back.
//!
//! `producer` takes it in, `room` bounds how many wait, `delivery_handle` is what its sender holds, `delivery_reports`
//! serves the answers.

mod delivery_handle;
mod delivery_reports;
mod producer;
mod room;

pub use delivery_handle::{Delivery, DeliveryHandle, Report, Waiting};
pub use delivery_reports::Reports;
pub use producer::{Producer, ProducerCounters, Record};
pub use room::Room;
