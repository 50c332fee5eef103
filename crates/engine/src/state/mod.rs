//! What an app remembers: tables of rows, whose changes are records of a job's transaction.
//!
//! `rows` are the committed ones of a partition, `writes` those of a job, and `table` puts both together. `restore` in
//! `consume` reads the changelog of a partition before its first message.

mod rows;
mod table;
mod writes;

pub use table::{Table, TablePartition};
pub use writes::{Writes, Written};
