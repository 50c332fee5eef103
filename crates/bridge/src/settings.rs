//! The settings of an app that reach the engine, as one object of Python's.

use awoke_engine::consume as engine;
use awoke_engine::transact::TransactionLimits;
use pyo3::prelude::*;

use crate::errors::Result;
use crate::values::seconds;

/// `awoke.settings.EngineSettings`: validated in Python, read by the names of its attributes.
#[derive(FromPyObject)]
pub struct EngineSettings {
    commit_interval_s: f64,
    revoke_timeout_s: f64,
    fetch_memory_bytes: usize,
    partitions_total: usize,
    transaction_interval_s: f64,
    transaction_records_max: usize,
}

impl EngineSettings {
    /// Returns the part that a group member needs.
    pub fn group(self) -> Result<engine::GroupSettings> {
        Ok(engine::GroupSettings {
            commit_interval: seconds(self.commit_interval_s)?,
            revoke_timeout: seconds(self.revoke_timeout_s)?,
            fetch_memory_bytes: self.fetch_memory_bytes,
            partitions_total: self.partitions_total,
        })
    }

    /// Returns the part that the transactions of `exactly_once` routes need.
    pub fn transactions(self) -> Result<TransactionLimits> {
        let interval = seconds(self.transaction_interval_s)?;
        Ok(TransactionLimits { interval, records_max: self.transaction_records_max })
    }
}
