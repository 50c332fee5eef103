//! One topic and the settings of its partitions.

use std::sync::Arc;

use super::{PartitionScheduler, PartitionSettings, StartAt};

/// One topic and the settings of its partitions.
#[derive(Clone)]
pub struct Route {
    /// The topic.
    pub topic: String,
    /// The scheduler of the workers that process it.
    pub scheduler: Arc<PartitionScheduler>,
    /// The settings of its partitions.
    pub settings: PartitionSettings,
    /// Where reading begins when the group has committed nothing; `None` leaves it to `auto.offset.reset`.
    pub start: Option<StartAt>,
    /// The partitions that the member reads without its group assigning them; empty where the group does.
    pub partitions: Vec<i32>,
}
