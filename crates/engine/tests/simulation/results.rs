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

/// The numbers of acts that no message has caused are behind those of all messages.
pub const ACTS: u64 = 1 << 40;

/// Returns the key of the row that an act writes.
pub fn row_of_act(id: u64) -> Vec<u8> {
    [b"act".as_slice(), &id.to_le_bytes()].concat()
}

/// Returns the acts whose rows are committed in the changelog of a partition.
pub fn acts(cluster: &Cluster, at: &TopicPartition) -> Vec<u64> {
    let changes = cluster.records(&TopicPartition::new(changelog_of(&at.topic), at.partition));
    changes.iter().filter_map(|each| each.key.as_deref()?.strip_prefix(b"act")).map(id_of).collect()
}

/// Checks that each act is visible once, and its row with it.
pub fn check_acts(cluster: &Cluster, topic: &str, partitions: i32) {
    let mut seen: Vec<_> = visible(cluster, topic).into_iter().filter(|id| (ACTS..u64::MAX).contains(id)).collect();
    seen.sort_unstable();
    let of = |number| acts(cluster, &TopicPartition::new(topic, number));
    let mut rows: Vec<_> = (0..partitions).flat_map(of).collect();
    rows.sort_unstable();
    assert_eq!(seen, rows, "an act is visible without its row, or not with it: {topic}");
    assert!(seen.windows(2).all(|two| two[0] < two[1]), "an act is visible twice: {topic} {seen:?}");
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
    let of_messages = changes.iter().filter(|each| !each.key.as_deref().is_some_and(|key| key.starts_with(b"act")));
    let rows: BTreeMap<_, _> = of_messages.map(|each| row(each)).collect();
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
