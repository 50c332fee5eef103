//! The queues of ready units: one for each class, which has a weight, and may have a limit of jobs that run at once.
//!
//! Within a class the units run in the order in which they became ready. Of the classes that may begin a job, the one
//! with the least *pass* comes next (stride scheduling, Waldspurger and Weihl 1995): a job advances its class's pass by
//! a stride that is inverse to the weight.

use std::collections::{HashMap, VecDeque};

use super::unit::UnitId;

/// A number for a class of units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassId(usize);

impl ClassId {
    /// The class of weight 1 and without a limit; hooks of classes with a limit use its queue, too.
    pub(super) const DEFAULT: Self = Self(0);
}

/// Units that share a weight and a limit.
#[derive(Debug)]
struct Class {
    /// Units with something to do and no worker; each is in one queue at most, once.
    ready: VecDeque<UnitId>,
    /// The distance by which one job advances the pass.
    stride: u64,
    pass: u64,
    /// Jobs of the class that run; counted only where there is a limit.
    running: usize,
    /// The most that may run.
    jobs_max: usize,
}

/// The stride of a class of weight 1.
const STRIDE: u64 = 1 << 20;

impl Class {
    fn new(weight: u32, jobs_max: usize) -> Self {
        let stride = STRIDE / u64::from(weight.clamp(1, 1 << 20));
        Self { ready: VecDeque::new(), stride, pass: 0, running: 0, jobs_max }
    }

    const fn is_full(&self) -> bool {
        self.running >= self.jobs_max
    }

    fn may_begin(&self) -> bool {
        !self.ready.is_empty() && !self.is_full()
    }
}

/// The queues of ready units.
#[derive(Debug)]
pub(super) struct Classes {
    /// Never empty: the first is `ClassId::DEFAULT`.
    all: Vec<Class>,
    /// The pass of the class that was served last: a class that was empty goes on from here.
    pass: u64,
    /// The class of each job that runs and counts towards a limit.
    running: HashMap<UnitId, ClassId>,
}

impl Default for Classes {
    fn default() -> Self {
        Self { all: vec![Class::new(1, usize::MAX)], pass: 0, running: HashMap::new() }
    }
}

impl Classes {
    pub(super) fn add(&mut self, weight: u32, jobs_max: Option<usize>) -> ClassId {
        self.all.push(Class::new(weight, jobs_max.map_or(usize::MAX, |most| most.max(1))));
        ClassId(self.all.len() - 1)
    }

    /// Returns whether a unit is ready that may begin.
    pub(super) fn has_ready(&self) -> bool {
        self.all.iter().any(Class::may_begin)
    }

    /// Returns how many units are ready.
    pub(super) fn ready(&self) -> usize {
        self.all.iter().map(|class| class.ready.len()).sum()
    }

    /// Takes the first unit of the class with the least pass. Where there is a limit, the unit counts until `end`.
    pub(super) fn pop(&mut self) -> Option<UnitId> {
        let may_begin = self.all.iter().enumerate().filter(|(_, class)| class.may_begin());
        let (index, _) = may_begin.min_by_key(|(_, class)| class.pass)?;
        let class = &mut self.all[index];
        self.pass = class.pass;
        class.pass += class.stride;
        let id = class.ready.pop_front()?;
        self.begin(ClassId(index), id);
        Some(id)
    }

    /// Puts a unit at the end of a class's queue.
    pub(super) fn push(&mut self, class: ClassId, id: UnitId) {
        let class = &mut self.all[class.0];
        if class.ready.is_empty() {
            // A class that had nothing to do does not make up for the time.
            class.pass = class.pass.max(self.pass);
        }
        class.ready.push_back(id);
    }

    /// Takes a unit out of a class's queue.
    pub(super) fn remove(&mut self, class: ClassId, id: UnitId) {
        self.all[class.0].ready.retain(|each| *each != id);
    }

    /// Returns whether a class has a limit.
    pub(super) fn is_limited(&self, class: ClassId) -> bool {
        self.all[class.0].jobs_max != usize::MAX
    }

    /// Counts a job that is to begin, where there is a limit. Returns `false` when the limit is reached.
    pub(super) fn begin(&mut self, class: ClassId, id: UnitId) -> bool {
        if !self.is_limited(class) || self.running.contains_key(&id) {
            return true;
        }
        let counted = &mut self.all[class.0];
        if counted.is_full() {
            return false;
        }
        counted.running += 1;
        self.running.insert(id, class);
        true
    }

    /// Ends a job, if it counts. Returns whether a ready unit may begin because of that.
    pub(super) fn end(&mut self, id: UnitId) -> bool {
        let Some(ClassId(index)) = self.running.remove(&id) else { return false };
        self.all[index].running -= 1;
        self.all[index].may_begin()
    }
}
