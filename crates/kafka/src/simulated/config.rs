//! Settings of a simulated client, and parts of the real client that a simulation does not have.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Client, Unread};
use crate::{Error, Result};

/// Properties of one client.
#[derive(Clone, Debug, Default)]
pub struct ClientConfig {
    properties: BTreeMap<String, String>,
}

/// The values of properties that are not set.
const DEFAULTS: [(&str, &str); 9] = [
    ("enable.idempotence", "false"),
    ("heartbeat.interval.ms", "3000"),
    ("max.poll.interval.ms", "300000"),
    ("message.max.bytes", "1000000"),
    ("message.timeout.ms", "300000"),
    ("queue.buffering.max.kbytes", "1048576"),
    ("queue.buffering.max.messages", "100000"),
    ("session.timeout.ms", "45000"),
    ("transaction.timeout.ms", "60000"),
];

impl ClientConfig {
    /// Makes a configuration without properties.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets a property.
    pub fn set(&mut self, property: impl Into<String>, value: impl Into<String>) -> &mut Self {
        self.properties.insert(property.into(), value.into());
        self
    }

    /// Takes a property back.
    pub fn remove(&mut self, property: &str) -> &mut Self {
        self.properties.remove(property);
        self
    }

    /// Sets a property that the caller has not set.
    pub fn set_default(&mut self, property: &str, value: &str) -> &mut Self {
        self.properties.entry(property.to_owned()).or_insert_with(|| value.to_owned());
        self
    }

    /// Returns the value that was set.
    pub fn get(&self, property: &str) -> Option<&str> {
        self.properties.get(property).map(String::as_str)
    }

    /// Returns the value that holds, as a number.
    ///
    /// # Errors
    /// [`Error::Config`]: it is no number, or the property is not known.
    pub fn effective_number(&self, property: &str) -> Result<u64> {
        let text = self.effective(property)?;
        text.parse().map_err(|_| Error::Config { property: property.to_owned(), reason: "is no number".to_owned() })
    }

    /// Returns the value that holds.
    ///
    /// # Errors
    /// [`Error::Config`]: the property is not known.
    pub fn effective(&self, property: &str) -> Result<String> {
        let default = || DEFAULTS.iter().find(|(name, _)| *name == property).map(|(_, value)| *value);
        let found = self.get(property).or_else(default).map(ToOwned::to_owned);
        found.ok_or_else(|| Error::Config { property: property.to_owned(), reason: "is unknown".to_owned() })
    }

    /// Refuses properties that awoke sets itself.
    ///
    /// # Errors
    /// [`Error::Config`] naming the first of them that was set.
    pub fn refuse(&self, properties: &[(&str, &str)]) -> Result<()> {
        match properties.iter().find(|(property, _)| self.properties.contains_key(*property)) {
            None => Ok(()),
            Some((property, reason)) => {
                Err(Error::Config { property: (*property).to_owned(), reason: (*reason).to_owned() })
            }
        }
    }
}

/// Settings of topics that differ from the producer's: none here.
#[derive(Debug)]
pub struct Variant(u32);

impl Variant {
    /// Returns its number; 0 for none.
    pub fn id_of(variant: Option<&Self>) -> u32 {
        variant.map_or(0, |variant| variant.0)
    }
}

/// The bound for the fetched messages of one consumer: the cluster has its own.
pub struct FetchMemory;

impl FetchMemory {
    /// Changes nothing.
    pub const fn configure(_config: &mut ClientConfig, _bytes: usize, _partitions: usize) -> Option<usize> {
        None
    }

    /// Makes a bound that changes nothing.
    pub const fn of(_client: &Arc<Client>, _bytes: usize) -> Self {
        Self
    }

    /// Changes nothing.
    pub const fn share_among(&self, _partitions: usize) -> Option<usize> {
        None
    }
}

/// Returns the most bytes of a batch that is decompressed.
pub const fn batch_max() -> usize {
    usize::MAX
}

/// Returns why a batch is not read.
pub const fn why_unread(_offset: i64, _error: &str) -> Option<Unread> {
    None
}
