//! Tests without a broker: no message comes, and librdkafka takes no seek.

use std::sync::atomic::AtomicUsize;

use super::*;
use crate::Error;
use crate::consume::lanes::{LaneBy, Share};
use crate::consume::testing::consumer;
use crate::kafka::{Code, CommittedOffset};

/// A partition, its context, and how often its owner was woken.
struct Fixture {
    partition: Arc<PartitionQueue>,
    offsets: Arc<Offsets>,
    open_partitions: Arc<OpenPartitions>,
    wakes: Arc<AtomicUsize>,
}

fn open(settings: &PartitionSettings) -> Fixture {
    let (offsets, open_partitions, wakes) = (Arc::<Offsets>::default(), Arc::default(), Arc::<AtomicUsize>::default());
    let counter = Arc::clone(&wakes);
    let context = PartitionContext {
        client: consumer(),
        offsets: Arc::clone(&offsets),
        open_partitions: Arc::clone(&open_partitions),
        wake_owner: Arc::new(move || {
            counter.fetch_add(1, Ordering::Relaxed);
        }),
        tells_end: false,
    };
    let at = TopicPartition::new("orders", 3);
    let partition = PartitionQueue::open(at, 1, settings, &Arc::default(), context).expect("a valid topic");
    Fixture { partition, offsets, open_partitions, wakes }
}

fn with_lanes() -> PartitionSettings {
    let concurrency = Concurrency {
        jobs_max: 4,
        by: LaneBy::Key,
        in_flight_max: 100,
        commit_gap_max: 100,
        share: Share::OneLane,
        careful_messages: 10,
        skip: None,
    };
    PartitionSettings { concurrency: Some(concurrency), ..PartitionSettings::default() }
}

fn stored(fixture: &Fixture) -> Option<i64> {
    fixture.partition.stored_and_committed().0
}

fn position(offset: i64) -> crate::kafka::Position {
    crate::kafka::Position { offset, leader_epoch: -1 }
}

fn committed(offset: i64, metadata: Option<&str>) -> CommittedOffset {
    CommittedOffset { offset, leader_epoch: 2, metadata: metadata.map(Arc::from) }
}

#[test]
fn a_seek_drops_the_stored_offset_and_waits_until_librdkafka_takes_it() {
    let fixture = open(&PartitionSettings::default());
    fixture.partition.store(position(10)).expect("assigned");
    fixture.partition.seek(4).expect("assigned");
    assert!(fixture.partition.is_interrupted(), "a running job ends before its next message");
    assert!(matches!(fixture.partition.find(None), Found::NotBefore(_)));
    assert!(!fixture.partition.is_interrupted());
    assert_eq!(stored(&fixture), Some(4));
    assert_eq!((fixture.partition.sought_offset(), fixture.partition.resume_offset()), (Some(4), Some(4)));
    assert!(!fixture.partition.start(), "it is tried again");
}

#[test]
fn a_seek_is_committed_before_any_message_is_done() {
    for settings in [PartitionSettings::default(), with_lanes()] {
        let fixture = open(&settings);
        fixture.partition.seek(4).expect("assigned");
        let before = fixture.wakes.load(Ordering::Relaxed);
        fixture.partition.find(None);
        assert!(fixture.wakes.load(Ordering::Relaxed) > before);
        let at = fixture.partition.topic_partition().clone();
        assert_eq!(fixture.offsets.take_dirty(), [(at, position(4), None)]);
        assert_eq!(stored(&fixture), Some(4));
    }
}

#[test]
fn a_log_that_went_back_is_read_from_its_first_message_of_that_leader_epoch() {
    let fixture = open(&PartitionSettings::default());
    let first = crate::kafka::Position { offset: 7, leader_epoch: 4 };
    fixture.partition.rewind_to(first);
    fixture.partition.find(None);
    let at = fixture.partition.topic_partition().clone();
    assert_eq!(fixture.offsets.take_dirty(), [(at, first, None)]);
    assert_eq!(fixture.partition.sought_offset(), Some(7));
}

#[test]
fn a_seek_in_a_stuck_partition_leaves_it_stuck_until_it_is_fetched_again() {
    let fixture = open(&PartitionSettings::default());
    let at = fixture.partition.topic_partition().clone();
    fixture.partition.note_stuck(Code::AUTO_OFFSET_RESET, "no offset".into(), None);
    fixture.partition.seek(4).expect("assigned");
    fixture.partition.find(None);
    assert!(fixture.open_partitions.has_fetching_ended(&at));
    fixture.partition.note_fetched_again(4);
    assert!(fixture.partition.start(), "nothing is left to seek");
    assert!(fixture.open_partitions.all_stuck().is_empty());
}

#[test]
fn a_later_seek_is_not_lost_when_the_partition_is_fetched_again_for_an_earlier_one() {
    let fixture = open(&PartitionSettings::default());
    for offset in [4, 7] {
        fixture.partition.seek(offset).expect("assigned");
        fixture.partition.find(None);
    }
    fixture.partition.note_fetched_again(4);
    assert_eq!(fixture.partition.sought_offset(), Some(7));
}

#[test]
fn the_owner_is_woken_once_for_offsets_until_they_are_taken() {
    let fixture = open(&PartitionSettings::default());
    (1..4).for_each(|offset| fixture.partition.store(position(offset)).expect("assigned"));
    assert_eq!(fixture.wakes.load(Ordering::Relaxed), 1);
    fixture.offsets.take_dirty();
    fixture.partition.store(position(9)).expect("assigned");
    assert_eq!(fixture.wakes.load(Ordering::Relaxed), 2);
}

#[test]
fn a_partition_that_was_closed_is_fenced() {
    let fixture = open(&PartitionSettings::default());
    fixture.partition.close();
    assert!(fixture.partition.is_interrupted());
    assert!(matches!(fixture.partition.store(position(1)), Err(Error::Fenced { .. })));
    assert!(matches!(fixture.partition.seek(1), Err(Error::Fenced { .. })));
    assert!(matches!(fixture.partition.pause(), Err(Error::Fenced { .. })));
}

#[test]
fn a_pause_ends_a_job_of_single_messages_and_resume_ends_the_pause() {
    let fixture = open(&PartitionSettings::default());
    fixture.partition.pause().expect("assigned");
    assert!(fixture.partition.is_interrupted());
    fixture.partition.resume().expect("assigned");
    assert!(!fixture.partition.is_interrupted());
}

#[test]
fn reading_goes_on_after_the_groups_commit() {
    let fixture = open(&PartitionSettings::default());
    fixture.partition.resume_from(&committed(42, None));
    assert_eq!(fixture.partition.stored_and_committed(), (None, Some(42)));
    assert_eq!(fixture.partition.resume_offset(), Some(42));
    assert!(!fixture.partition.start(), "a broker has to compare the leader epochs");
}

#[test]
fn after_a_crash_a_partition_with_lanes_admits_one_message_at_a_time() {
    let fixture = open(&with_lanes());
    let lanes = fixture.partition.lanes().expect("the route has lanes");
    assert_eq!(lanes.capacity(), 100);
    fixture.partition.resume_from(&committed(42, Some("awoke:began=1")));
    assert_eq!(lanes.capacity(), 1);
    assert_eq!(fixture.partition.all_units().count(), 5, "one of its own, and one for each job slot");
}
