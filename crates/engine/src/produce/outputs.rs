//! Finds the partitions of a producer to which nothing can be written: messages wait, and none is acknowledged.
//!
//! A producer is not told of such a partition: its leader may be away, silent, or without enough replicas, and the
//! client tries for minutes. So the report thread looks at what has no answer, `LOOK_AFTER` after a message was sent,
//! and again as long as messages are sent or wait. A partition that has acknowledged nothing for `BLOCKED_AFTER` since
//! a look found messages for it is an event. It is well again with the next message that is delivered, which its report
//! tells, or when no message waits for it any more. A message that fails is no acknowledgement: a transaction fails
//! every ten seconds, and gets a new connection each time, so this outlives connections.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::clock;
use crate::events::What;
use crate::kafka::{TopicPartition, Unanswered};

/// Most elections are over by then, as are restarts of brokers.
const BLOCKED_AFTER: Duration = Duration::from_secs(10);
/// The time between two looks.
const LOOK_AFTER: Duration = Duration::from_secs(5);
/// After this number of looks that find no message for a partition, it is not watched any more. The messages of an
/// attempt may have failed, and the next attempt comes after a back-off.
const IDLE_LOOKS: u32 = 6;

/// The partitions that are watched, of all producers of the process: delivery reports look further only where there are
/// some.
static WATCHED: AtomicUsize = AtomicUsize::new(0);

/// Returns whether some producer of the process watches a partition.
pub(super) fn are_some_watched() -> bool {
    WATCHED.load(Ordering::Relaxed) > 0
}

/// A partition of which a look has found messages without an answer, and which has acknowledged none since.
#[derive(Debug)]
struct Watched {
    since: Instant,
    /// The number of looks since one found a message for it.
    idle_looks: u32,
    is_told: bool,
}

/// The partitions of a producer that may not be written to.
#[derive(Debug, Default)]
pub(super) struct Outputs {
    is_armed: AtomicBool,
    watched: Mutex<BTreeMap<TopicPartition, Watched>>,
}

impl Outputs {
    fn watched(&self) -> MutexGuard<'_, BTreeMap<TopicPartition, Watched>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a message was sent. Returns whether the report thread has to set a time to look.
    pub(super) fn arm(&self) -> bool {
        !self.is_armed.load(Ordering::Relaxed) && !self.is_armed.swap(true, Ordering::SeqCst)
    }

    /// Returns when to look next; `due` is the time that was set before.
    pub(super) fn due(&self, due: Option<Instant>) -> Option<Instant> {
        let is_armed = self.is_armed.load(Ordering::SeqCst);
        due.or_else(|| clock::real_now().checked_add(LOOK_AFTER).filter(|_| is_armed))
    }

    /// Looks at what has no answer, and returns what there is to tell.
    pub(super) fn look(&self, unanswered: impl FnOnce() -> Vec<Unanswered>) -> Vec<What> {
        // First: a message that is sent from here on has a time set again.
        self.is_armed.store(false, Ordering::SeqCst);
        let told = self.compare(&unanswered(), clock::real_now());
        if !self.watched().is_empty() {
            self.is_armed.store(true, Ordering::SeqCst);
        }
        told
    }

    fn compare(&self, unanswered: &[Unanswered], now: Instant) -> Vec<What> {
        let mut told = Vec::new();
        let mut watched = self.watched();
        watched.values_mut().for_each(|each| each.idle_looks += 1);
        for found in unanswered {
            let each = watched.entry(found.at.clone()).or_insert_with(|| {
                WATCHED.fetch_add(1, Ordering::Relaxed);
                Watched { since: now, idle_looks: 0, is_told: false }
            });
            each.idle_looks = 0;
            let time = now.saturating_duration_since(each.since);
            if time >= BLOCKED_AFTER && !std::mem::replace(&mut each.is_told, true) {
                told.push(blocked(found, time));
            }
        }
        let idle = watched.extract_if(.., |_, each| each.idle_looks >= IDLE_LOOKS);
        told.extend(idle.filter_map(|(at, each)| end_watch(at, &each, "no message waits for it any more")));
        told
    }

    /// Notes that a message was delivered. Returns what there is to tell.
    pub(super) fn note_delivered(&self, topic: &Arc<str>, partition: i32) -> Vec<What> {
        let places = [partition, -1].map(|partition| TopicPartition::new(Arc::clone(topic), partition));
        let mut watched = self.watched();
        let found = places.into_iter().filter_map(|at| watched.remove_entry(&at));
        found.filter_map(|(at, each)| end_watch(at, &each, "a message was acknowledged")).collect()
    }

    /// Ends the watch: the producer is closed. Returns what there is to tell.
    pub(super) fn end(&self) -> Vec<What> {
        let watched = std::mem::take(&mut *self.watched());
        watched.into_iter().filter_map(|(at, each)| end_watch(at, &each, "its producer is closed")).collect()
    }
}

impl Drop for Outputs {
    fn drop(&mut self) {
        self.end();
    }
}

fn end_watch(at: TopicPartition, watched: &Watched, text: &str) -> Option<What> {
    WATCHED.fetch_sub(1, Ordering::Relaxed);
    watched.is_told.then(|| What::OutputUnblocked { at, text: text.to_owned() })
}

fn blocked(found: &Unanswered, time: Duration) -> What {
    let text = match (found.at.partition, found.leader) {
        (..0, _) => "no broker tells its partitions".to_owned(),
        (_, ..0) => "it has no leader".to_owned(),
        (_, leader) => format!("its leader is broker {leader}, which does not answer or refuses"),
    };
    What::OutputBlocked { at: found.at.clone(), messages: found.waiting, for_s: time.as_secs_f64(), text }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;

    fn found(partition: i32, leader: i32) -> Unanswered {
        Unanswered { at: TopicPartition::new("orders", partition), leader, waiting: 3 }
    }

    /// Looks in steps of five seconds.
    struct Looking {
        outputs: Outputs,
        now: Instant,
    }

    impl Looking {
        fn new() -> Self {
            Self { outputs: Outputs::default(), now: Instant::now() }
        }

        fn look(&mut self, unanswered: &[Unanswered]) -> Vec<String> {
            self.now += LOOK_AFTER;
            shown(self.outputs.compare(unanswered, self.now))
        }

        fn deliver(&self, partition: i32) -> Vec<String> {
            shown(self.outputs.note_delivered(&"orders".into(), partition))
        }
    }

    fn shown(told: Vec<What>) -> Vec<String> {
        let line = |what| match what {
            What::OutputBlocked { at, messages, for_s, text } => {
                format!("{at} blocks {messages} for {for_s} s: {text}")
            }
            What::OutputUnblocked { at, text } => format!("{at} is well: {text}"),
            other => other.name().to_owned(),
        };
        told.into_iter().map(line).collect()
    }

    #[test]
    fn a_partition_that_acknowledges_nothing_is_told_once_and_again_when_it_does() {
        let mut looking = Looking::new();
        let waiting = [found(0, 1), found(2, -1)];
        assert!(looking.look(&waiting).is_empty());
        assert!(looking.look(&waiting).is_empty(), "an election takes a moment");
        assert!(looking.deliver(0).is_empty(), "nothing was told of it");
        assert_eq!(looking.look(&waiting), ["orders[2] blocks 3 for 10 s: it has no leader"]);
        assert!(looking.look(&waiting).is_empty(), "it was told");
        let refuses = "orders[0] blocks 3 for 10 s: its leader is broker 1, which does not answer or refuses";
        assert_eq!(looking.look(&waiting), [refuses]);
        assert_eq!(looking.deliver(2), ["orders[2] is well: a message was acknowledged"]);
        assert!(looking.deliver(2).is_empty());
        assert_eq!(shown(looking.outputs.end()), ["orders[0] is well: its producer is closed"]);
    }

    #[test]
    fn a_message_that_fails_is_no_acknowledgement() {
        let mut looking = Looking::new();
        let told: Vec<_> = [true, false, true]
            .iter()
            .flat_map(|waits| looking.look(&waits.then(|| found(0, -1)).into_iter().collect::<Vec<_>>()))
            .collect();
        assert_eq!(told, ["orders[0] blocks 3 for 10 s: it has no leader"]);
    }

    #[test]
    fn a_partition_for_which_nothing_waits_any_more_is_not_blocked() {
        let mut looking = Looking::new();
        (0..3).for_each(|_| drop(looking.look(&[found(0, 4)])));
        let told: Vec<_> = (0..IDLE_LOOKS).map(|_| looking.look(&[])).collect();
        assert_eq!(told.concat(), ["orders[0] is well: no message waits for it any more"]);
        assert_eq!(told.last().map(Vec::len), Some(1), "the next attempt may come soon");
    }

    #[test]
    fn a_topic_whose_partitions_were_not_known_is_well_with_any_of_them() {
        let mut looking = Looking::new();
        let told: Vec<_> = (0..3).flat_map(|_| looking.look(&[found(-1, -1)])).collect();
        assert_eq!(told, ["orders[-1] blocks 3 for 10 s: no broker tells its partitions"]);
        assert_eq!(looking.deliver(1), ["orders[-1] is well: a message was acknowledged"]);
    }

    #[test]
    fn a_time_to_look_is_set_when_a_message_is_sent_and_as_long_as_some_wait() {
        let outputs = Outputs::default();
        assert_eq!(outputs.due(None), None);
        assert!(outputs.arm() && !outputs.arm(), "the report thread is woken once");
        let due = outputs.due(None);
        assert!(due.is_some() && outputs.due(due) == due);
        assert!(outputs.look(|| vec![found(0, 1)]).is_empty());
        assert!(outputs.due(None).is_some());
        drop(outputs.note_delivered(&"orders".into(), 0));
        assert!(outputs.look(Vec::new).is_empty());
        assert_eq!(outputs.due(None), None);
    }
}
