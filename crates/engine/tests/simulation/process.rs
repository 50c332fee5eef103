//! One process: a member of the group, its workers, and its transactions.

use std::sync::Arc;
use std::time::Duration;

use awoke_engine::consume::{GroupMember, PartitionScheduler};
use awoke_engine::wake::simulation::{random, spawn, trace};

use crate::handlers::work;
use crate::transactions::Transactions;
use crate::world::{PATIENT, World};

/// A member of the group, and its workers.
pub struct Process {
    pub member: Arc<GroupMember>,
    scheduler: Arc<PartitionScheduler>,
    number: usize,
    transactions: Arc<Transactions>,
}

impl Process {
    pub fn start(world: &Arc<World>, number: usize) -> Self {
        let scheduler = Arc::new(PartitionScheduler::default());
        let transactions = Arc::new(Transactions::new(world.tables()));
        if world.has_transactions() {
            transactions.start(world, number);
        }
        for _ in 0..=random(3) {
            let (world, scheduler, transactions) =
                (Arc::clone(world), Arc::clone(&scheduler), Arc::clone(&transactions));
            spawn("worker", move || work(&world, &scheduler, &transactions));
        }
        let member = world.join(&scheduler, &transactions, number);
        Self { member, scheduler, number, transactions }
    }

    pub const fn scheduler(&self) -> &Arc<PartitionScheduler> {
        &self.scheduler
    }

    pub const fn transactions(&self) -> &Arc<Transactions> {
        &self.transactions
    }

    pub fn end(self) {
        let is_closed = self.member.close(Some(Duration::from_secs(5))).expect("this process");
        assert!(is_closed, "the member's thread did not end");
        assert_eq!(self.scheduler.stats().running, 0, "a unit is left over");
        self.scheduler.close();
        self.transactions.close();
    }

    /// Leaves the group, and joins it again.
    pub fn restart(&mut self, world: &World) {
        self.restart_after(world, || ());
    }

    /// Does the same, with something that happens meanwhile.
    pub fn restart_after(&mut self, world: &World, meanwhile: impl FnOnce()) {
        trace(|| "the member leaves, and joins again".to_owned());
        let timeout = if world.is_patient() { PATIENT } else { Duration::from_millis(random(4_000)) };
        let left = world.cluster.left_unowned("group");
        drop(self.member.close(Some(timeout)));
        let has_left = world.cluster.left_unowned("group") > left;
        assert!(!(world.is_patient() && has_left), "a static member left partitions without an owner");
        world.forget_closed();
        meanwhile();
        if world.has_transactions() && (self.transactions.is_fenced() || random(2) == 0) {
            self.transactions.close();
            self.transactions.start(world, self.number);
        }
        self.member = world.join(&self.scheduler, &self.transactions, self.number);
    }

    /// Starts again if another producer has taken the transactional id.
    pub fn restart_if_fenced(&mut self, world: &World) {
        if self.transactions.is_fenced() {
            self.restart(world);
        }
    }

    /// Starts again if another producer may have taken the transactional id: no job may be left that is told so.
    pub fn restart_if_not_alone(&mut self, world: &World) {
        if world.has_transactions() && !world.is_alone {
            self.transactions.note_fenced();
            self.restart(world);
        }
    }
}
