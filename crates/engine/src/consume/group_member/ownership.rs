//! Whether each partition of the member's topics has an owner in its group, and whether the group is this app's alone.
//!
//! In a cooperative rebalance a member gives partitions up, and joins again: they get their new owners in the rebalance
//! that follows. A static member that ends in between, and comes back under its name, is given what it had, and no
//! member begins that rebalance. Therefore:
//! 1. A static member that ends waits for the rebalance that follows its revocation.
//! 2. One that was killed cannot wait. So a static member compares, a heartbeat after its first assignment, what the
//!    members own with what the topics have. If a partition has no owner, it joins again, and the group divides all.
//! 3. Whatever the cause: when an assignment has stood for a session time-out, every member compares, because any
//!    partition may be one without an owner. The owner of the group's first partition that has one tells: partitions
//!    without an owner are an event, and known until they have one. Where the coordinator divides the partitions
//!    (KIP-848), only this comparison is made.
//!
//! The answer also tells of members of another app, which then takes a part of the messages away:
//! 1. A member of awoke has the name of its app in its `client.id`. Another name in the group is another app.
//! 2. Two apps may have one name. The topics that a member reads are not told, only those of which it has partitions.
//!    Topics of other members that this one does not read are another app's, or another version's: a rolling update
//!    changes the assignment again and again, so they count after `max.poll.interval.ms` without a change. In that time
//!    each member that lives takes part in a rebalance. A pattern may match a topic in one process earlier than in
//!    another, by less.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::thread::Member;
use crate::Result;
use crate::clock::{self, Deadline};
use crate::events::What;
use crate::kafka::{ClientConfig, DescribedTopic, EventKind, Owner, QueueEvent, TopicPartition};

/// The time that brokers have for an answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// After a revocation come the assignment of the same rebalance, and that of the rebalance which follows it.
const AFTER_REVOCATION: u8 = 2;

/// The beginning of the `client.id` of a member that has the name of its app there.
const NAMED: &str = "awoke-";

/// Members of another app in the group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Strangers {
    /// The names of the other apps.
    pub apps: BTreeSet<String>,
    /// Topics of other members that this app does not read.
    pub topics: BTreeSet<String>,
}

impl Strangers {
    /// Returns whether there are any.
    pub fn are_some(&self) -> bool {
        !self.apps.is_empty() || !self.topics.is_empty()
    }
}

/// What a member knows of the owners in its group, and when it asks.
pub(super) struct Ownership {
    /// It is a static member, and the members divide the partitions.
    is_static: bool,
    /// Only members divide partitions in two rebalances, of which the second may be missing.
    is_classic: bool,
    client_id: String,
    /// The time within which each member takes part in a rebalance.
    settled: Duration,
    /// When the assignment changed last, in real time.
    changed: Instant,
    session: Duration,
    heartbeat: Duration,
    /// Assignments that are still to come after a revocation.
    to_come: u8,
    /// When the owners are to be asked for, in real time.
    due: Option<Instant>,
    /// The answer to the first question, while the second one is under way.
    owned: Option<BTreeSet<TopicPartition>>,
    has_compared: bool,
}

impl Ownership {
    /// Returns `None` for a group that does not divide any partitions.
    pub(super) fn of(config: &ClientConfig, is_fixed: bool) -> Result<Option<Self>> {
        if is_fixed {
            return Ok(None);
        }
        let duration = |name| config.effective_number(name).map(Duration::from_millis);
        let is_classic = config.get("group.protocol").is_none_or(|protocol| protocol == "classic");
        Ok(Some(Self {
            is_static: is_classic && config.get("group.instance.id").is_some(),
            is_classic,
            client_id: config.get("client.id").unwrap_or_default().to_owned(),
            settled: duration("max.poll.interval.ms")?,
            changed: clock::real_now(),
            session: duration("session.timeout.ms")?,
            heartbeat: duration("heartbeat.interval.ms")?,
            to_come: 0,
            due: None,
            owned: None,
            has_compared: false,
        }))
    }

    /// Returns when to ask.
    pub(super) const fn due(&self) -> Option<Instant> {
        self.due
    }

    pub(super) fn note_assigned(&mut self) {
        self.to_come = self.to_come.saturating_sub(1);
        self.note_changed();
    }

    pub(super) fn note_revoked(&mut self, is_lost: bool) {
        if !self.is_classic {
            // No assignment has to follow.
            return self.note_changed();
        }
        self.to_come = if is_lost { 0 } else { AFTER_REVOCATION };
        (self.owned, self.due) = (None, None);
    }

    fn note_changed(&mut self) {
        self.owned = None;
        self.changed = clock::real_now();
        self.ask_later();
    }

    /// Returns whether partitions that the member gave up have no new owner yet, and get none if it ends.
    const fn is_to_join(&self) -> bool {
        self.is_static && self.to_come > 0
    }

    /// Returns whether the member may have come back to what it had been assigned before.
    const fn is_early(&self) -> bool {
        self.is_static && !self.has_compared
    }

    /// Returns whether it is for the owner of these partitions to tell what the answer to the first question shows: of
    /// all members the owner of the first partition that has one, or each of them if none has.
    fn is_to_tell(&self, own: &[TopicPartition]) -> bool {
        self.owned.as_ref().and_then(BTreeSet::first).is_none_or(|first| own.contains(first))
    }

    fn ask_later(&mut self) {
        let time = if self.is_early() { self.heartbeat } else { self.session };
        self.due = clock::real_now().checked_add(time);
    }

    /// Returns the members of another app among the owners. `topics` are those that this one reads.
    fn strangers(&self, owners: &[Owner], topics: &[String]) -> Strangers {
        let name_of = |client_id: &str| client_id.strip_prefix(NAMED).map(str::to_owned);
        let mut strangers = Strangers::default();
        if let Some(mine) = name_of(&self.client_id) {
            strangers.apps = owners.iter().filter_map(|owner| name_of(&owner.client_id)).collect();
            strangers.apps.remove(&mine);
        }
        if clock::real_since(self.changed) >= self.settled {
            let owned = owners.iter().flat_map(|owner| &owner.partitions).map(|at| at.topic.to_string());
            strangers.topics = owned.filter(|topic| !topics.contains(topic)).collect();
        }
        strangers
    }

    /// Asks once more when topics of other members count, if there may be some.
    fn ask_when_settled(&mut self) {
        self.due = self.changed.checked_add(self.settled).filter(|at| *at > clock::real_now());
    }

    /// Returns the partitions of these topics that no member owns; `None` when that is not known.
    fn unowned(&mut self, topics: &[DescribedTopic]) -> Option<Vec<TopicPartition>> {
        let owned = self.owned.take()?;
        if topics.is_empty() {
            return None;
        }
        let all = topics.iter().flat_map(|topic| {
            let name: Arc<str> = topic.name.as_str().into();
            (0..topic.partitions).map(move |partition| TopicPartition::new(Arc::clone(&name), partition))
        });
        Some(all.filter(|at| !owned.contains(at)).collect())
    }
}

impl Member {
    /// Asks for the owners when that is due. Does not block.
    pub(super) fn ask_for_owned(&mut self) {
        let Some(ownership) = &mut self.ownership else { return };
        if ownership.due.is_none_or(|due| due > clock::real_now()) {
            return;
        }
        ownership.due = None;
        self.report(self.shared.client.ask_for_owned(&self.shared.queue, ANSWER_WITHIN));
    }

    /// Takes the answer to the first question, and asks the second.
    pub(super) fn note_owned(&mut self, event: &QueueEvent) {
        let Some(ownership) = &mut self.ownership else { return };
        if ownership.due.is_some() || ownership.to_come > 0 {
            return; // Another assignment has come meanwhile, or is about to.
        }
        match event.owned() {
            None => ownership.ask_later(),
            Some(owners) => {
                let topics = self.assignment.topics();
                let strangers = ownership.strangers(&owners, &topics);
                if !ownership.is_early() && self.shared.meet(&strangers) {
                    let (apps, topics) = (strangers.apps.into_iter().collect(), strangers.topics.into_iter().collect());
                    self.shared.client.emit(What::Shared { apps, topics });
                }
                ownership.owned = Some(owners.into_iter().flat_map(|owner| owner.partitions).collect());
                self.report(self.shared.client.ask_for_topics(&topics, &self.shared.queue, ANSWER_WITHIN));
            }
        }
    }

    /// Takes the answer to the second question, and compares.
    pub(super) fn note_topics(&mut self, event: &QueueEvent) {
        let Some(ownership) = &mut self.ownership else { return };
        if ownership.owned.is_none() {
            return;
        }
        let is_to_tell = ownership.is_to_tell(&self.assignment.partitions());
        let Some(mut unowned) = ownership.unowned(&event.topics()) else {
            return ownership.ask_later();
        };
        let is_early = ownership.is_early();
        ownership.has_compared = true;
        if is_early {
            ownership.ask_later();
            if !unowned.is_empty() {
                self.shared.client.join_again();
            }
            return;
        }
        if !is_to_tell {
            unowned.clear();
        }
        ownership.ask_when_settled();
        let is_new = self.shared.unowned() != unowned;
        self.shared.set_unowned(unowned.clone());
        if is_new && !unowned.is_empty() {
            self.shared.client.emit(What::Unowned(unowned));
            self.shared.client.join_again();
        }
    }

    /// Waits until the partitions that a static member gave up can get new owners, and gives up what it is asked for
    /// meanwhile. Blocks until the deadline at the longest.
    ///
    /// Not in an eager group, where one rebalance takes all partitions away and divides them: it goes on without a
    /// static member, or waits until that is back.
    pub(super) fn await_rebalance(&mut self, deadline: &Deadline) {
        let until = deadline.or_within(Some(self.settings.revoke_timeout));
        while self.ownership.as_ref().is_some_and(|ownership| ownership.is_static) {
            let is_over = !self.ownership.as_ref().is_some_and(Ownership::is_to_join)
                || !self.shared.client.is_cooperative()
                || self.shared.is_urgent()
                || self.shared.client.fatal_error().is_some();
            let until = if is_over { &Deadline::after(Some(Duration::ZERO)) } else { &until };
            match self.shared.queue.poll(until) {
                Some(event) if event.kind() == EventKind::Rebalance => {
                    self.deferred.push_back(event);
                    self.answer_deferred();
                }
                Some(event) => self.handle(&event),
                None if until.has_passed() => return,
                None => (),
            }
        }
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;

    fn ownership(properties: &[(&'static str, &str)]) -> Option<Ownership> {
        let mut config = ClientConfig::new();
        for (name, value) in properties {
            config.set(*name, *value);
        }
        Ownership::of(&config, false).expect("the settings are right")
    }

    fn topic(partitions: i32) -> DescribedTopic {
        DescribedTopic { name: "orders".into(), id: None, partitions }
    }

    fn at(partition: i32) -> TopicPartition {
        TopicPartition::new("orders", partition)
    }

    #[test]
    fn a_partition_that_no_member_owns_is_found() {
        let mut ownership = ownership(&[]).expect("a classic group");
        ownership.owned = Some([at(0), at(2)].into());
        assert_eq!(ownership.unowned(&[topic(4)]), Some(vec![at(1), at(3)]));
        assert_eq!(ownership.unowned(&[topic(4)]), None, "the answer is used once");
        ownership.owned = Some([at(0)].into());
        assert_eq!(ownership.unowned(&[]), None, "the brokers did not say which there are");
    }

    #[test]
    fn the_owner_of_the_first_partition_that_has_one_tells() {
        let mut ownership = ownership(&[]).expect("a classic group");
        ownership.owned = Some([at(2), at(3), at(5)].into());
        assert!(ownership.is_to_tell(&[at(5), at(2)]), "the first two partitions may be those without an owner");
        assert!(!ownership.is_to_tell(&[at(3)]), "another member tells");
        assert!(!ownership.is_to_tell(&[]), "another member tells");
        ownership.owned = Some(BTreeSet::new());
        assert!(ownership.is_to_tell(&[]), "no member owns a partition");
    }

    #[test]
    fn a_static_member_waits_for_the_rebalance_after_its_revocation() {
        let mut member = ownership(&[("group.instance.id", "one")]).expect("a classic group");
        member.note_revoked(false);
        member.note_assigned();
        assert!(member.is_to_join(), "the assignment is that of the same rebalance");
        member.note_assigned();
        assert!(!member.is_to_join());
        member.note_revoked(true);
        assert!(!member.is_to_join(), "others have what was lost");
        let mut dynamic = ownership(&[]).expect("a classic group");
        dynamic.note_revoked(false);
        assert!(!dynamic.is_to_join(), "the group gives away what a dynamic member had when that leaves");
    }

    #[test]
    fn where_the_coordinator_divides_a_member_compares_and_no_second_rebalance_is_waited_for() {
        let mut member = ownership(&[("group.protocol", "consumer"), ("group.instance.id", "one")]).expect("a group");
        member.note_revoked(false);
        assert!(member.due().is_some(), "no assignment has to follow");
        assert!(!member.is_to_join() && !member.is_early());
        member.owned = Some([at(0)].into());
        assert_eq!(member.unowned(&[topic(2)]), Some(vec![at(1)]));
    }

    fn owner(client_id: &str, topic: &str) -> Owner {
        Owner { client_id: client_id.into(), partitions: vec![TopicPartition::new(topic, 0)] }
    }

    fn strangers(apps: &[&str], topics: &[&str]) -> Strangers {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Strangers { apps: names(apps), topics: names(topics) }
    }

    #[test]
    fn another_app_is_known_by_the_name_in_its_client_id() {
        let owners = [owner("awoke-shop", "orders"), owner("awoke-mailing", "orders"), owner("sarama", "orders")];
        let topics = ["orders".to_owned()];
        let named = ownership(&[("client.id", "awoke-shop")]).expect("a classic group");
        assert_eq!(named.strangers(&owners, &topics), strangers(&["mailing"], &[]));
        let other = ownership(&[("client.id", "pod-7")]).expect("a classic group");
        assert!(!other.strangers(&owners, &topics).are_some(), "a name of the user's may be that of one process");
    }

    #[test]
    fn topics_of_others_count_when_the_assignment_has_settled() {
        let mut member = ownership(&[("max.poll.interval.ms", "60000")]).expect("a classic group");
        let (owners, topics) = ([owner("awoke", "orders"), owner("awoke", "clicks")], ["orders".to_owned()]);
        member.note_assigned();
        assert!(!member.strangers(&owners, &topics).are_some(), "an update changes topics, too");
        member.ask_when_settled();
        assert!(member.due() > clock::real_now().checked_add(Duration::from_secs(50)));
        member.changed = member.changed.checked_sub(Duration::from_mins(1)).expect("the clock has run for so long");
        assert_eq!(member.strangers(&owners, &topics), strangers(&[], &["clicks"]));
        member.ask_when_settled();
        assert_eq!(member.due(), None);
    }
}
