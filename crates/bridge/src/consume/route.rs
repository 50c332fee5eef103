//! One topic and the settings of its partitions, as Python gives them.

use std::sync::Arc;

use awoke_engine::consume as engine;
use awoke_engine::rpc::Expiry;
use pyo3::prelude::*;

use crate::consume::Scheduler;
use crate::errors::Result;
use crate::state::Table;
use crate::values::duration;

/// One topic and the settings of its partitions.
#[pyclass(frozen, module = "awoke._native")]
pub struct Route {
    pub inner: engine::Route,
    /// Of a responder's route: skips requests whose deadline has passed.
    expiry: Option<Arc<Expiry>>,
}

#[pymethods]
impl Route {
    #[new]
    #[pyo3(signature = (
        topic, scheduler, *, messages_max, bytes_max, wait_max_s=None, delay_s=None, rate_per_s=None, weight=1,
        tick_every_s=None, start=None, concurrency=None, is_transactional=false, request_clock_skew_s=None,
        turn_max_s=None, batch_time_max_s=None, stores_by_hand=false, jobs_max=None, number=0, partitions=None,
        tables=None
    ))]
    fn new(
        topic: String,
        scheduler: &Scheduler,
        messages_max: usize,
        bytes_max: usize,
        wait_max_s: Option<f64>,
        delay_s: Option<f64>,
        rate_per_s: Option<f64>,
        weight: u32,
        tick_every_s: Option<f64>,
        start: Option<(String, i64)>,
        concurrency: Option<Lanes>,
        is_transactional: bool,
        request_clock_skew_s: Option<f64>,
        turn_max_s: Option<f64>,
        batch_time_max_s: Option<f64>,
        stores_by_hand: bool,
        jobs_max: Option<usize>,
        number: u64,
        partitions: Option<Vec<i32>>,
        tables: Option<Vec<PyRef<'_, Table>>>,
    ) -> Result<Self> {
        let flow = engine::Flow {
            limits: engine::PullLimits { messages_max, bytes_max },
            wait_max: duration(wait_max_s)?,
            turn_max: duration(turn_max_s)?,
            stores_by_hand,
            pace: duration(batch_time_max_s)?.map(|limit| Arc::new(engine::Pace::new(limit))),
            delay: duration(delay_s)?,
            rate: rate_per_s.map(|per_s| Arc::new(engine::RateLimit::new(per_s))),
        };
        let expiry = duration(request_clock_skew_s)?.map(|skew| Arc::new(Expiry::new(skew)));
        let scheduler = Arc::clone(&scheduler.inner);
        let settings = engine::PartitionSettings {
            flow,
            class: scheduler.add_class(weight, jobs_max),
            tick_every: duration(tick_every_s)?,
            concurrency: concurrency.map(|lanes| lanes.settings(expiry.clone())).transpose()?,
            is_transactional,
            route_number: number,
            tables: tables.unwrap_or_default().iter().map(|table| Arc::clone(&table.inner)).collect(),
        };
        let start = start.map(|(word, number)| engine::StartAt::of(&word, number)).transpose()?;
        let partitions = partitions.unwrap_or_default();
        Ok(Self { inner: engine::Route { topic, scheduler, settings, start, partitions }, expiry })
    }

    /// The number of requests that were skipped because their deadline had passed.
    #[getter]
    fn expired(&self) -> u64 {
        self.expiry.as_ref().map_or(0, |expiry| expiry.skipped())
    }
}

/// The work on several messages of a partition at once, as Python gives it: `awoke.declare.concurrency.Lanes`.
#[derive(FromPyObject)]
struct Lanes {
    by: String,
    jobs: usize,
    in_flight: usize,
    commit_gap: usize,
    share: String,
    careful: usize,
}

impl Lanes {
    fn settings(self, expiry: Option<Arc<Expiry>>) -> Result<engine::Concurrency> {
        Ok(engine::Concurrency {
            jobs_max: self.jobs,
            by: self.by.parse()?,
            in_flight_max: self.in_flight,
            commit_gap_max: self.commit_gap,
            share: self.share.parse()?,
            careful_messages: self.careful,
            skip: expiry.map(|expiry| expiry as Arc<dyn engine::SkipPolicy>),
        })
    }
}
