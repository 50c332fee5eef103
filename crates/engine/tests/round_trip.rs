//! The engine without Python: messages go out, come back through a group, and their offsets are committed.
#![cfg(not(feature = "model"))]

mod support;

use std::sync::Arc;
use std::time::Duration;

use awoke_engine::Error;
use awoke_engine::clock::Deadline;
use awoke_engine::consume::{
    GroupMember, GroupSettings, Job, JobEnd, PartitionScheduler, PartitionSettings, Route, Work,
};
use awoke_engine::kafka::{Admin, AdminOutcome, AdminRequest};
use awoke_engine::produce::{DeliveryHandle, Producer, ProducerOptions, Record};
use awoke_engine::wake::Completion;
use support::{Cluster, WITHIN, events};

const MESSAGES: usize = 1_000;

fn produce(cluster: &Cluster, topic: &str) -> Vec<Arc<DeliveryHandle>> {
    let producer = Producer::new(&cluster.config(), ProducerOptions::default(), events()).expect("a producer");
    let record =
        Record { value: Some(b"value"), key: Some(b"key"), headers: &[("h", Some(b"1"))], ..Record::default() };
    let send = |_| producer.produce(topic, &record, &Deadline::after(Some(WITHIN))).expect("queued");
    let handles: Vec<_> = (0..MESSAGES).map(send).collect();
    assert!(DeliveryHandle::wait_all(&handles, Some(WITHIN)));
    assert_eq!(producer.close(Some(WITHIN)).expect("closed"), 0);
    handles
}

fn join(cluster: &Cluster, topic: &str, scheduler: &Arc<PartitionScheduler>) -> GroupMember {
    let mut config = cluster.config();
    config.set("group.id", "round-trip");
    let route = Route {
        topic: topic.into(),
        scheduler: Arc::clone(scheduler),
        settings: PartitionSettings::default(),
        start: None,
        partitions: Vec::new(),
    };
    let settings = GroupSettings {
        commit_interval: Duration::from_secs(5),
        revoke_timeout: WITHIN,
        fetch_memory_bytes: 64 << 20,
        partitions_total: 4,
    };
    GroupMember::join(&config, vec![route], settings, None, events()).expect("joined")
}

/// Works until the scheduler closes; the offsets seen, in order.
fn work(scheduler: &PartitionScheduler, mut on_job: impl FnMut(usize)) -> Vec<i64> {
    let mut seen = Vec::new();
    loop {
        match scheduler.next_work(&Deadline::after(Some(WITHIN))) {
            Work::Hook(hook) => hook.finish(),
            Work::Job(mut job) => {
                seen.extend(job.batch().iter().map(|message| {
                    assert_eq!(message.value(), Some(&b"value"[..]));
                    assert_eq!(message.headers(), [("h".into(), Some(&b"1"[..]))]);
                    message.offset()
                }));
                job.complete().expect("not fenced");
                on_job(seen.len());
            }
            Work::AssignLanes(_) => panic!("the route has no lanes"),
            Work::Closed => return seen,
            Work::EndOfPartition(_) => (),
            Work::TimedOut => panic!("only {} messages came", seen.len()),
        }
    }
}

fn messages_go_around(cluster: &Cluster) {
    cluster.create_topic("around", 1);
    let handles = produce(cluster, "around");
    let last = handles[MESSAGES - 1].result().expect("answered").expect("delivered");
    assert_eq!(last.offset, MESSAGES as i64 - 1);
    let scheduler = Arc::new(PartitionScheduler::default());
    let member = Arc::new(join(cluster, "around", &scheduler));
    let (sender, all_seen) = std::sync::mpsc::channel();
    let worker = std::thread::spawn({
        let scheduler = Arc::clone(&scheduler);
        move || {
            work(&scheduler, |seen| {
                if seen == MESSAGES {
                    sender.send(()).expect("the test waits");
                }
            })
        }
    });
    all_seen.recv_timeout(WITHIN).expect("all messages come");
    let commit = member.commit().expect("asked for");
    commit.wait(&Deadline::after(Some(WITHIN))).expect("answered").expect("committed");
    member.close(Some(WITHIN)).expect("closed");
    scheduler.close();
    let seen = worker.join().expect("the worker does not panic");
    assert_eq!(seen, (0..MESSAGES as i64).collect::<Vec<_>>());
    assert!(matches!(member.commit(), Err(Error::Closed { .. })));
}

/// Returns the next job of a scheduler.
fn next_job(scheduler: &PartitionScheduler) -> Job {
    loop {
        match scheduler.next_work(&Deadline::after(Some(WITHIN))) {
            Work::Job(job) => return job,
            Work::Hook(hook) => hook.finish(),
            Work::AssignLanes(_) | Work::EndOfPartition(_) => (),
            Work::Closed | Work::TimedOut => panic!("no job came"),
        }
    }
}

#[test]
fn a_job_ends_as_decided_when_its_completion_is_done() {
    let cluster = Cluster::embedded();
    cluster.create_topic("ends", 1);
    produce(&cluster, "ends");
    let scheduler = Arc::new(PartitionScheduler::default());
    let member = join(&cluster, "ends", &scheduler);

    let (job, answered) = (next_job(&scheduler), Completion::default());
    Job::end_when_done(Some(job), &answered, || JobEnd::Retry(Duration::ZERO));
    answered.complete(());
    let again = next_job(&scheduler);
    assert_eq!((again.first_offset(), again.attempt()), (0, 2));

    let messages = again.batch().len() as i64;
    Job::end_when_done(Some(again), &answered, || JobEnd::Complete); // It is done already.
    assert_eq!(member.partitions()[0].stored, Some(messages));
    member.stop_waiting(); // No worker runs the last hook.
    member.close(Some(WITHIN)).expect("closed");
}

#[test]
fn messages_go_around_on_embedded_brokers() {
    messages_go_around(&Cluster::embedded());
}

#[test]
fn messages_go_around_on_apache_kafka_and_their_offsets_are_committed() {
    let cluster = Cluster::real();
    messages_go_around(&cluster);
    let admin = Admin::new(&cluster.config(), events()).expect("an admin");
    let call = admin.request(&AdminRequest::GroupOffsets("round-trip".to_owned()), WITHIN).expect("sent");
    match call.wait(&Deadline::after(Some(WITHIN))).expect("answered").expect("answered well") {
        AdminOutcome::Offsets(offsets) => {
            assert_eq!(offsets.iter().map(|found| found.2).collect::<Vec<_>>(), [MESSAGES as i64]);
        }
        _ => unreachable!("offsets were asked for"),
    }
}

/// librdkafka (2.12.1) ends the process there: see patch 0004.
#[test]
fn an_admin_request_that_the_broker_does_not_know_fails() {
    let cluster = Cluster::embedded();
    let mut config = cluster.config();
    config.set("api.version.request", "false").set("broker.version.fallback", "0.9.0");
    let admin = Admin::new(&config, events()).expect("an admin");
    let deadline = Deadline::after(Some(WITHIN));
    for _ in 0..3 {
        let request = AdminRequest::DeleteGroups(vec!["group".to_owned()]);
        match admin.request(&request, WITHIN).expect("sent").wait(&deadline).expect("answered").expect("answered well")
        {
            AdminOutcome::Entries(groups) => {
                let refusal = groups[0].1.as_ref().expect("refused");
                assert_eq!(refusal.1, "_UNSUPPORTED_FEATURE");
            }
            _ => unreachable!("a group was to be deleted"),
        }
        let request = AdminRequest::DeleteGroupOffsets(("group".to_owned(), vec![("orders".to_owned(), 0)]));
        let answer = admin.request(&request, WITHIN).expect("sent").wait(&deadline).expect("answered");
        assert!(answer.is_err_and(|error| error.to_string().contains("_UNSUPPORTED_FEATURE")));
    }
}
