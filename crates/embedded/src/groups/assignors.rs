//! The assignors of a broker: they say which member of a group of the new protocol (KIP-848) gets which partitions.

use std::collections::{BTreeMap, BTreeSet};

use uuid::Uuid;

/// Partitions by the ids of their topics.
pub(crate) type Assignment = BTreeMap<Uuid, BTreeSet<i32>>;

/// An assignor, by the name that members ask for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Assignor {
    /// The partitions are spread evenly, and stay where they are as far as that allows.
    #[default]
    Uniform,
    /// The partitions of each topic are cut into ranges, in the order of the members.
    Range,
}

impl Assignor {
    pub fn of(name: &str) -> Option<Self> {
        match name {
            "uniform" => Some(Self::Uniform),
            "range" => Some(Self::Range),
            _ => None,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Range => "range",
        }
    }
}

/// A member, as an assignor sees it.
#[derive(Debug)]
pub(crate) struct Subscriber {
    pub member_id: String,
    pub instance_id: Option<String>,
    pub topics: BTreeSet<Uuid>,
    /// The partitions that it was meant to have before.
    pub before: Assignment,
}

/// Distributes the partitions of the topics over the members that subscribe to them.
pub(crate) fn assign(
    assignor: Assignor,
    subscribers: &[Subscriber],
    counts: &BTreeMap<Uuid, i32>,
) -> BTreeMap<String, Assignment> {
    let assigned = match assignor {
        Assignor::Uniform => uniform(subscribers, counts),
        Assignor::Range => range(subscribers, counts),
    };
    subscribers.iter().map(|each| each.member_id.clone()).zip(assigned).collect()
}

fn uniform(subscribers: &[Subscriber], counts: &BTreeMap<Uuid, i32>) -> Vec<Assignment> {
    let mut shares = Shares { assigned: vec![Assignment::new(); subscribers.len()], sizes: vec![0; subscribers.len()] };
    let mut free: BTreeSet<(Uuid, i32)> =
        counts.iter().flat_map(|(topic, count)| (0..*count).map(|index| (*topic, index))).collect();
    for (index, subscriber) in subscribers.iter().enumerate() {
        let before = subscriber.before.iter().filter(|(topic, _)| subscriber.topics.contains(topic));
        for partition in before.flat_map(|(topic, partitions)| partitions.iter().map(|each| (*topic, *each))) {
            if free.remove(&partition) {
                shares.give(index, partition);
            }
        }
    }
    for partition in free {
        let wanting = (0..subscribers.len()).filter(|index| subscribers[*index].topics.contains(&partition.0));
        if let Some(index) = wanting.min_by_key(|index| shares.sizes[*index]) {
            shares.give(index, partition);
        }
    }
    while let Some((from, to, partition)) = shares.unfair(subscribers) {
        shares.take(from, partition);
        shares.give(to, partition);
    }
    shares.assigned
}

struct Shares {
    assigned: Vec<Assignment>,
    sizes: Vec<usize>,
}

impl Shares {
    fn give(&mut self, index: usize, (topic, partition): (Uuid, i32)) {
        self.assigned[index].entry(topic).or_default().insert(partition);
        self.sizes[index] += 1;
    }

    fn take(&mut self, index: usize, (topic, partition): (Uuid, i32)) {
        if let Some(partitions) = self.assigned[index].get_mut(&topic) {
            partitions.remove(&partition);
            if partitions.is_empty() {
                self.assigned[index].remove(&topic);
            }
        }
        self.sizes[index] -= 1;
    }

    /// Finds a partition that a member with at least two more than another could give it.
    fn unfair(&self, subscribers: &[Subscriber]) -> Option<(usize, usize, (Uuid, i32))> {
        let mut by_size: Vec<usize> = (0..subscribers.len()).collect();
        by_size.sort_by_key(|index| self.sizes[*index]);
        for from in by_size.iter().rev() {
            for to in by_size.iter().take_while(|to| self.sizes[**to] + 1 < self.sizes[*from]) {
                let wanted = |(topic, _): &(&Uuid, _)| subscribers[*to].topics.contains(topic);
                if let Some((topic, partitions)) = self.assigned[*from].iter().find(wanted) {
                    return partitions.last().map(|partition| (*from, *to, (*topic, *partition)));
                }
            }
        }
        None
    }
}

fn range(subscribers: &[Subscriber], counts: &BTreeMap<Uuid, i32>) -> Vec<Assignment> {
    let mut assigned = vec![Assignment::new(); subscribers.len()];
    let mut order: Vec<usize> = (0..subscribers.len()).collect();
    order.sort_by_key(|index| {
        let Subscriber { member_id, instance_id, .. } = &subscribers[*index];
        (instance_id.is_none(), instance_id.clone(), member_id.clone())
    });
    for (topic, count) in counts {
        let wanting: Vec<usize> =
            order.iter().copied().filter(|index| subscribers[*index].topics.contains(topic)).collect();
        let Ok(members) = i32::try_from(wanting.len()) else { continue };
        let mut next = 0;
        for (index, place) in wanting.into_iter().zip(0..) {
            let share = count / members + i32::from(place < count % members);
            if share > 0 {
                assigned[index].insert(*topic, (next..next + share).collect());
            }
            next += share;
        }
    }
    assigned
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Uuid = Uuid::from_u128(1);
    const B: Uuid = Uuid::from_u128(2);

    fn subscriber(id: &str, topics: &[Uuid], before: Assignment) -> Subscriber {
        let topics = topics.iter().copied().collect();
        Subscriber { member_id: id.into(), instance_id: None, topics, before }
    }

    fn sizes(assigned: &BTreeMap<String, Assignment>) -> Vec<usize> {
        assigned.values().map(|each| each.values().map(BTreeSet::len).sum()).collect()
    }

    #[test]
    fn uniform_is_even_and_moves_no_more_than_it_must() {
        let counts = BTreeMap::from([(A, 4), (B, 3)]);
        let alone = assign(Assignor::Uniform, &[subscriber("a", &[A, B], Assignment::new())], &counts);
        assert_eq!(sizes(&alone), [7]);
        let members = [subscriber("a", &[A, B], alone["a"].clone()), subscriber("b", &[A, B], Assignment::new())];
        let both = assign(Assignor::Uniform, &members, &counts);
        assert_eq!(sizes(&both), [4, 3]);
        assert!(both["a"].iter().all(|(topic, kept)| kept.is_subset(&alone["a"][topic])));
        let again = [subscriber("a", &[A, B], both["a"].clone()), subscriber("b", &[A, B], both["b"].clone())];
        assert_eq!(assign(Assignor::Uniform, &again, &counts), both);
    }

    #[test]
    fn uniform_gives_only_what_a_member_subscribes_to() {
        let counts = BTreeMap::from([(A, 6), (B, 2)]);
        let members = [subscriber("a", &[A], Assignment::new()), subscriber("b", &[A, B], Assignment::new())];
        let assigned = assign(Assignor::Uniform, &members, &counts);
        assert_eq!(sizes(&assigned), [4, 4]);
        assert!(!assigned["a"].contains_key(&B));
        let unread = assign(Assignor::Uniform, &[subscriber("a", &[A], Assignment::new())], &BTreeMap::from([(B, 2)]));
        assert_eq!(sizes(&unread), [0]);
    }

    #[test]
    fn range_cuts_each_topic_in_the_order_of_the_members() {
        let counts = BTreeMap::from([(A, 3), (B, 1)]);
        let mut members = [subscriber("a", &[A, B], Assignment::new()), subscriber("b", &[A, B], Assignment::new())];
        let assigned = assign(Assignor::Range, &members, &counts);
        assert_eq!(assigned["a"], BTreeMap::from([(A, [0, 1].into()), (B, [0].into())]));
        assert_eq!(assigned["b"], BTreeMap::from([(A, [2].into())]));
        members[1].instance_id = Some("first".into());
        let assigned = assign(Assignor::Range, &members, &counts);
        assert_eq!(assigned["b"], BTreeMap::from([(A, [0, 1].into()), (B, [0].into())]));
    }
}
