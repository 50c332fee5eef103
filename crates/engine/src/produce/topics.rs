//! The topics that a connection sends to, and how records are handed to the client.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use super::delivery_handle::Destination;
use super::{DeliveryHandle, Reports};
use crate::fork_guard::Birthplace;
use crate::kafka::{self, Client, Code, Record, Refused, Variant};
use crate::{Error, Result};

/// The topics that a connection sends to; each is made on first use.
pub(super) struct Topics {
    known: RwLock<BTreeMap<String, Topic>>,
    client: Arc<Client>,
    reports: Arc<Reports>,
    answer_timeout: Option<Duration>,
}

impl Topics {
    pub(super) fn new(client: Arc<Client>, reports: Arc<Reports>, answer_timeout: Option<Duration>) -> Self {
        Self { known: RwLock::default(), client, reports, answer_timeout }
    }

    /// Calls `send` with the topic.
    ///
    /// # Errors
    /// [`Error::Config`]: it was sent to with other settings before. [`Error::Invalid`]: it is no name of a topic.
    pub(super) fn with<T>(&self, name: &str, variant: Option<&Variant>, send: impl FnOnce(&Topic) -> T) -> Result<T> {
        let id = Variant::id_of(variant);
        {
            let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
            if let Some(topic) = known.get(name) {
                return topic.of_variant(id).map(send);
            }
        }
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if !known.contains_key(name) {
            known.insert(name.to_owned(), self.make(name, variant)?);
        }
        known[name].of_variant(id).map(send)
    }

    /// Frees all topics.
    pub(super) fn clear(&self) {
        self.known.write().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn make(&self, name: &str, variant: Option<&Variant>) -> Result<Topic> {
        let sender = Arc::new(kafka::Topic::open(&self.client, name, variant)?);
        let destination = Arc::new(Destination {
            topic: name.into(),
            sender: Arc::downgrade(&sender),
            reports: Arc::downgrade(&self.reports),
            refused: Mutex::default(),
            answer_timeout: self.answer_timeout,
        });
        Ok(Topic { variant: Variant::id_of(variant), destination, sender, birthplace: self.client.birthplace() })
    }
}

/// A topic that a connection sends to.
pub(super) struct Topic {
    /// The variant of its settings; 0 for the producer's own.
    variant: u32,
    destination: Arc<Destination>,
    sender: Arc<kafka::Topic<DeliveryHandle>>,
    birthplace: Birthplace,
}

impl Topic {
    fn of_variant(&self, id: u32) -> Result<&Self> {
        if self.variant == id {
            return Ok(self);
        }
        let reason = format!(
            "topic {:?} was sent to under other settings before: librdkafka keeps one set for a topic and a connection",
            self.destination.topic
        );
        Err(Error::Config { property: "variant".into(), reason })
    }

    /// Gives a record to the client, which copies it.
    pub(super) fn send(
        &self,
        record: &Record<'_>,
        size_bytes: usize,
    ) -> std::result::Result<Arc<DeliveryHandle>, Code> {
        let handle = self.handle(size_bytes);
        self.sender.send(record, Arc::clone(&handle))?;
        Ok(handle)
    }

    /// Gives records to the client in one call, which copies them. Returns those that it refused: see
    /// [`kafka::Topic::send_many`].
    pub(super) fn send_many(&self, records: &[Record<'_>], sent: &mut Vec<Arc<DeliveryHandle>>) -> Option<Refused> {
        let before = sent.len();
        sent.extend(records.iter().map(|record| self.handle(record.size_bytes())));
        let refused = self.sender.send_many(records, &sent[before..])?;
        sent.truncate(before + refused.first);
        Some(refused)
    }

    fn handle(&self, size_bytes: usize) -> Arc<DeliveryHandle> {
        Arc::new(DeliveryHandle::new(Arc::clone(&self.destination), size_bytes, self.birthplace))
    }
}
