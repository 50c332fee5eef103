//! Administration: topics, settings, leaders, and what brokers say of themselves.

use kafka_protocol::ResponseError;
use kafka_protocol::protocol::StrBytes;

pub(crate) mod acls;
pub(crate) mod brokers;
pub(crate) mod configs;
pub(crate) mod create_topics;
pub(crate) mod settings;
pub(crate) mod topics;

/// An error and the text that tells it, as Kafka words it.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    pub error: ResponseError,
    pub text: Option<String>,
}

impl Refusal {
    pub fn new(error: ResponseError, text: impl Into<String>) -> Self {
        Self { error, text: Some(text.into()) }
    }

    pub fn told(&self) -> Option<StrBytes> {
        self.text.clone().map(StrBytes::from_string)
    }
}

impl From<ResponseError> for Refusal {
    fn from(error: ResponseError) -> Self {
        Self { error, text: None }
    }
}
