//! The lines of ready lanes: one for each class, which has a weight, and may have a limit of jobs that run at once.
//!
//! Within a class the line is first come, first served. Of the classes that may begin a job the one comes next that has had the
//! least for its weight (stride scheduling, Waldspurger and Weihl 1995).

use std::collections::{HashMap, VecDeque};

use super::scheduler::LaneId;

/// A number for a class of lanes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassId(usize);

/// Lanes that share a weight and a limit.
#[derive(Debug)]
struct Class {
    /// Lanes with something to do and no worker on it; each at most once.
    ready: VecDeque<LaneId>,
    /// How far one job brings the class: the lighter, the farther.
    stride: u64,
    /// How far it has come.
    stage: u64,
    /// How many of its jobs run; counted where there is a limit.
    running: usize,
    /// The most that may run.
    jobs_max: usize,
}

/// What one job counts for a class of weight 1.
const STRIDE: u64 = 1 << 20;

impl Class {
    fn new(weight: u32, jobs_max: usize) -> Self {
        let stride = STRIDE / u64::from(weight.clamp(1, 1 << 20));
        Self { ready: VecDeque::new(), stride, stage: 0, running: 0, jobs_max }
    }

    const fn is_full(&self) -> bool {
        self.running >= self.jobs_max
    }

    fn may_begin(&self) -> bool {
        !self.ready.is_empty() && !self.is_full()
    }
}

/// The lines of ready lanes.
#[derive(Debug)]
pub(super) struct Classes {
    /// Never empty: the first is for lanes of no particular class, and for hooks of classes with a limit.
    all: Vec<Class>,
    /// How far the class that was served last has come: one that had nothing to do goes on from here.
    stage: u64,
    /// The class of each job that runs and counts for a limit.
    running: HashMap<LaneId, ClassId>,
}

impl Default for Classes {
    fn default() -> Self {
        Self { all: vec![Class::new(1, usize::MAX)], stage: 0, running: HashMap::new() }
    }
}

impl Classes {
    pub(super) fn add(&mut self, weight: u32, jobs_max: Option<usize>) -> ClassId {
        self.all.push(Class::new(weight, jobs_max.map_or(usize::MAX, |most| most.max(1))));
        ClassId(self.all.len() - 1)
    }

    /// Whether a lane is in line that may be begun.
    pub(super) fn has_ready(&self) -> bool {
        self.all.iter().any(Class::may_begin)
    }

    /// How many lanes are in line.
    pub(super) fn ready(&self) -> usize {
        self.all.iter().map(|class| class.ready.len()).sum()
    }

    /// Takes the head of the line of the class that has had the least for its weight. Where there is a limit, it counts until `end`.
    pub(super) fn pop(&mut self) -> Option<LaneId> {
        let may_begin = self.all.iter().enumerate().filter(|(_, class)| class.may_begin());
        let (place, _) = may_begin.min_by_key(|(_, class)| class.stage)?;
        let class = &mut self.all[place];
        self.stage = class.stage;
        class.stage += class.stride;
        let id = class.ready.pop_front()?;
        self.begin(ClassId(place), id);
        Some(id)
    }

    /// Puts a lane at the end of its class's line.
    pub(super) fn push(&mut self, class: ClassId, id: LaneId) {
        let class = &mut self.all[class.0];
        if class.ready.is_empty() {
            // A class that had nothing to do has no claim to what it missed.
            class.stage = class.stage.max(self.stage);
        }
        class.ready.push_back(id);
    }

    /// Takes a lane out of its class's line.
    pub(super) fn remove(&mut self, class: ClassId, id: LaneId) {
        self.all[class.0].ready.retain(|each| *each != id);
    }

    /// Whether a class has a limit.
    pub(super) fn is_limited(&self, class: ClassId) -> bool {
        self.all[class.0].jobs_max != usize::MAX
    }

    /// Counts a job that is to begin, where there is a limit; `false` when as many run as may.
    pub(super) fn begin(&mut self, class: ClassId, id: LaneId) -> bool {
        if !self.is_limited(class) || self.running.contains_key(&id) {
            return true;
        }
        let class_of_it = &mut self.all[class.0];
        if class_of_it.is_full() {
            return false;
        }
        class_of_it.running += 1;
        self.running.insert(id, class);
        true
    }

    /// Ends a job, if it counts; whether a lane in line may be begun because of that.
    pub(super) fn end(&mut self, id: LaneId) -> bool {
        let Some(ClassId(place)) = self.running.remove(&id) else { return false };
        self.all[place].running -= 1;
        self.all[place].may_begin()
    }
}
