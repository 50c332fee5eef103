//! Exactly once: what a reader of committed messages sees of the results of one partition, at each commit.

use std::collections::{BTreeMap, BTreeSet};

use awoke_engine::consume::finished_beyond;
use awoke_engine::kafka::{Cluster, CommittedOffset, LogRecord, TopicPartition};

use crate::checks::{Order, id_of};

/// Returns where the results of a topic go.
pub fn output_of(topic: &str) -> TopicPartition {
    TopicPartition::new(format!("{topic}-results"), 0)
}

/// Returns the changelog of the table of a topic's route.
pub fn changelog_of(topic: &str) -> String {
    format!("{topic}-rows")
}

/// Checks that the rows of a partition are what its messages with visible results have written.
pub fn check_rows(cluster: &Cluster, at: &TopicPartition, order: Order) {
    let messages = cluster.records(at);
    let lanes: BTreeMap<_, _> = messages
        .iter()
        .map(|each| (id_of(each.value.as_deref().unwrap_or_default()), order.lane(each.key.as_deref())))
        .collect();
    let mut expected = BTreeMap::<Vec<u8>, Vec<u8>>::new();
    for id in visible(cluster, &at.topic) {
        if let Some(Some(lane)) = lanes.get(&id) {
            expected.entry(lane.clone()).or_default().extend(id.to_le_bytes());
        }
    }
    let changes = cluster.records(&TopicPartition::new(changelog_of(&at.topic), at.partition));
    let row = |record: &LogRecord| (record.key.clone().unwrap_or_default(), record.value.clone().unwrap_or_default());
    let rows: BTreeMap<_, _> = changes.iter().map(|record| row(record)).collect();
    assert_eq!(rows, expected, "the rows of {at} are not what its messages have written");
}

/// Returns the numbers of the messages whose results are visible, in the order in which they are read.
pub fn visible(cluster: &Cluster, topic: &str) -> Vec<u64> {
    let records = cluster.records(&output_of(topic));
    records.iter().map(|record| id_of(record.value.as_deref().unwrap_or_default())).collect()
}

/// Checks the results of a partition against what its group has committed.
pub fn check(cluster: &Cluster, at: &TopicPartition, order: Order, committed: &CommittedOffset) {
    let messages = cluster.records(at);
    let by_id: BTreeMap<_, _> =
        messages.iter().map(|each| (id_of(each.value.as_deref().unwrap_or_default()), each)).collect();
    let (mut seen, mut last) = (BTreeSet::new(), BTreeMap::new());
    for id in visible(cluster, &at.topic) {
        let Some(message) = by_id.get(&id) else { continue };
        assert!(seen.insert(id), "a result is visible twice: {at} {}", message.offset);
        if let Some(lane) = order.lane(message.key.as_deref()) {
            let before = last.insert(lane, message.offset).unwrap_or(-1);
            assert!(before < message.offset, "results are out of order: {at} {} after {before}", message.offset);
        }
    }
    let finished = finished_beyond(committed.offset, committed.metadata.as_deref().unwrap_or_default());
    for (id, message) in by_id {
        let is_committed =
            message.offset < committed.offset || finished.iter().any(|range| range.contains(&message.offset));
        let is_visible = seen.contains(&id);
        assert_eq!(
            is_committed, is_visible,
            "an offset is committed without its result, or not with it: {at} {}, {committed:?}",
            message.offset
        );
    }
}
