//! One topic and how its partitions are worked on, as whoever joins a group says it.

use std::sync::Arc;

use super::{LaneSettings, PartitionScheduler, StartAt};

/// One topic and who works on it.
#[derive(Clone)]
pub struct Route {
    /// The topic.
    pub topic: String,
    /// Whose workers process it.
    pub scheduler: Arc<PartitionScheduler>,
    /// How its partitions are worked on.
    pub lane: LaneSettings,
    /// Where reading begins when the group has committed nothing; `None` leaves it to `auto.offset.reset`.
    pub start: Option<StartAt>,
}
