//! The client of simulations: the interface of the real client, before a cluster inside the process.
//!
//! The cluster does one thing at a time (`Cluster::step`): it fetches messages, answers a commit, assigns partitions.
//! The seed of the simulation decides which, and what fails. Code of this module keeps no lock while a task waits.

use crate::Code;
use crate::seam::{
    AccessFailure, CommittedOffset, Delivery, DescribedTopic, EndTxns, EndedLinger, EventKind, Failure, FetchError,
    Kind, Limit, Metadata, OnRenewed, Owner, PartitionInfo, Position, Presence, Refused, Reported, TimestampKind,
    TopicId, TopicInfo, TopicPartition, Unanswered, Unread,
};

mod client;
mod cluster;
mod config;
mod consumer;
mod group;
mod groups;
mod log;
mod lookup;
mod message;
mod metadata;
mod partition_list;
mod producer;
mod queue;
mod sender;
#[path = "../seam/statement.rs"]
mod statement;
mod transactions;

pub use client::{Client, ClientOptions};
pub use cluster::{Cluster, Faults};
pub use config::{ClientConfig, FetchMemory, Variant, batch_max, why_unread};
pub use log::{Headers, LogRecord};
pub use message::{Batch, Loose, MessageRef};
pub use partition_list::TopicPartitionList;
pub use queue::{Event as QueueEvent, Queue};
pub use sender::{Record, TOO_LARGE, Topic, partition_of_key};
pub use statement::positions_list;
pub use transactions::GroupMetadata;
