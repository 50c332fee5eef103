//! The client of simulations: the interface of the real client, before a cluster inside the process.
//!
//! The cluster does one thing at a time (`Cluster::step`): it fetches messages, answers a commit, assigns partitions.
//! The seed of the simulation decides which, and what fails. Code of this module keeps no lock while a task waits.

use crate::{Code, Position, TopicPartition};

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
mod transactions;

pub use client::{AccessFailure, Client, ClientOptions, Kind, OnRenewed};
pub use cluster::{Cluster, Faults};
pub use config::{ClientConfig, FetchMemory, Unread, Variant, batch_max, why_unread};
pub use groups::Presence;
pub use log::{Headers, LogRecord};
pub use lookup::CommittedOffset;
pub use message::{Batch, FetchError, Loose, MessageRef, TimestampKind};
pub use metadata::{BrokerInfo, Metadata, PartitionInfo, TopicInfo};
pub use partition_list::TopicPartitionList;
pub use queue::{Event as QueueEvent, EventKind, Queue};
pub use sender::{Delivery, EndedLinger, Record, Refused, Reported, TOO_LARGE, Topic, partition_of_key};
pub use transactions::{EndTxnCounts, EndTxns, Failure, GroupMetadata, Limit, positions_list};
