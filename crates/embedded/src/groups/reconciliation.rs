//! The steps of a member from the partitions that it has to those that it is meant to have (KIP-848).
//!
//! A member first gives up what others are meant to have, says so by a heartbeat, and then gets what others have given
//! up. Kafka's `CurrentAssignmentBuilder`.

use crate::groups::assignors::Assignment;

/// Where a member is on its way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Step {
    /// It has all that it is meant to have at its epoch.
    #[default]
    Stable,
    /// It is still to give partitions up.
    Unrevoked,
    /// It waits for partitions that others have.
    Unreleased,
}

/// The partitions of a member.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    pub step: Step,
    pub epoch: i32,
    pub previous_epoch: i32,
    pub assigned: Assignment,
    /// The partitions that it is to give up and has not yet.
    pub revoking: Assignment,
}

/// Returns the next progress of a member.
///
/// `owned` is what the member said that it has, if it said so. `is_free` tells whether no other member has a partition.
pub(crate) fn advance(
    now: &Progress,
    target_epoch: i32,
    target: &Assignment,
    owned: Option<&Assignment>,
    is_free: impl Fn(&(uuid::Uuid, i32)) -> bool,
) -> Progress {
    match now.step {
        Step::Stable if now.epoch == target_epoch => return now.clone(),
        Step::Unrevoked if owned.is_none_or(|owned| overlap(owned, &now.revoking)) => return now.clone(),
        _ => {}
    }
    let mut assigned = intersection(&now.assigned, target);
    let revoking = difference(&now.assigned, &assigned);
    if !revoking.is_empty() && owned.is_none_or(|owned| overlap(owned, &revoking)) {
        let previous_epoch = now.previous_epoch;
        return Progress { step: Step::Unrevoked, epoch: now.epoch, previous_epoch, assigned, revoking };
    }
    let mut step = Step::Stable;
    for partition in partitions(&difference(target, &assigned)) {
        if is_free(&partition) {
            assigned.entry(partition.0).or_default().insert(partition.1);
        } else {
            step = Step::Unreleased;
        }
    }
    let previous_epoch = if target_epoch == now.epoch { now.previous_epoch } else { now.epoch };
    Progress { step, epoch: target_epoch, previous_epoch, assigned, revoking: Assignment::new() }
}

/// Returns each partition of an assignment.
pub(crate) fn partitions(assignment: &Assignment) -> impl Iterator<Item = (uuid::Uuid, i32)> {
    assignment.iter().flat_map(|(topic, partitions)| partitions.iter().map(|partition| (*topic, *partition)))
}

/// Returns whether each partition of one assignment is in another.
pub(crate) fn is_within(part: &Assignment, whole: &Assignment) -> bool {
    partitions(part).all(|(topic, partition)| whole.get(&topic).is_some_and(|each| each.contains(&partition)))
}

fn overlap(one: &Assignment, other: &Assignment) -> bool {
    partitions(one).any(|(topic, partition)| other.get(&topic).is_some_and(|each| each.contains(&partition)))
}

fn intersection(one: &Assignment, other: &Assignment) -> Assignment {
    keep(one, |topic, partition| other.get(topic).is_some_and(|each| each.contains(partition)))
}

fn difference(one: &Assignment, other: &Assignment) -> Assignment {
    keep(one, |topic, partition| !other.get(topic).is_some_and(|each| each.contains(partition)))
}

fn keep(assignment: &Assignment, is_kept: impl Fn(&uuid::Uuid, &i32) -> bool) -> Assignment {
    let kept = assignment.iter().map(|(topic, partitions)| {
        (*topic, partitions.iter().copied().filter(|partition| is_kept(topic, partition)).collect::<_>())
    });
    kept.filter(|(_, partitions): &(_, std::collections::BTreeSet<i32>)| !partitions.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    const A: Uuid = Uuid::from_u128(1);

    fn of<const N: usize>(partitions: [i32; N]) -> Assignment {
        if N == 0 { Assignment::new() } else { [(A, partitions.into())].into() }
    }

    #[test]
    fn a_new_member_gets_what_is_free_and_waits_for_the_rest() {
        let waiting = advance(&Progress::default(), 2, &of([0, 1]), Some(&of([])), |(_, index)| *index == 0);
        assert_eq!((waiting.step, waiting.epoch, &waiting.assigned), (Step::Unreleased, 2, &of([0])));
        let still = advance(&waiting, 2, &of([0, 1]), None, |(_, index)| *index == 0);
        assert_eq!(still, Progress { previous_epoch: 0, ..waiting.clone() });
        let whole = advance(&waiting, 2, &of([0, 1]), None, |_| true);
        assert_eq!((whole.step, whole.assigned), (Step::Stable, of([0, 1])));
    }

    #[test]
    fn a_member_keeps_its_epoch_until_it_has_given_up_what_it_must() {
        let had = Progress { epoch: 1, assigned: of([0, 1]), ..Progress::default() };
        let told = advance(&had, 2, &of([0]), Some(&of([0, 1])), |_| true);
        assert_eq!((told.step, told.epoch, &told.assigned, &told.revoking), (Step::Unrevoked, 1, &of([0]), &of([1])));
        assert_eq!(advance(&told, 2, &of([0]), None, |_| true), told);
        assert_eq!(advance(&told, 2, &of([0]), Some(&of([0, 1])), |_| true), told);
        let done = advance(&told, 2, &of([0]), Some(&of([0])), |_| true);
        assert_eq!((done.step, done.epoch, done.previous_epoch, done.revoking), (Step::Stable, 2, 1, of([])));
    }

    #[test]
    fn a_member_that_has_given_up_already_goes_on_at_once() {
        let had = Progress { epoch: 1, assigned: of([0, 1]), ..Progress::default() };
        let done = advance(&had, 2, &of([0]), Some(&of([0])), |_| true);
        assert_eq!((done.step, done.epoch, done.assigned), (Step::Stable, 2, of([0])));
    }

    #[test]
    fn a_stable_member_of_the_newest_epoch_stays_as_it_is() {
        let had = Progress { epoch: 2, assigned: of([0]), ..Progress::default() };
        assert_eq!(advance(&had, 2, &of([0, 1]), None, |_| true), had);
    }
}
