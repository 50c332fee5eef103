//! One cell of the table: a number of threads for a number of seconds, and their cost.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

/// The time from an append to the next one, of every 16th. The appending threads call `note`, in order.
#[derive(Default)]
pub struct Gaps {
    before_ns: u64,
    found_ns: Vec<u64>,
}

const EVERY: u64 = 16;

impl Gaps {
    #[inline]
    pub fn note(&mut self, index: u64) {
        match index % EVERY {
            0 => self.before_ns = awoke_wake::clock::monotonic_ns(),
            1 if self.found_ns.len() < 1 << 20 => {
                self.found_ns.push(awoke_wake::clock::monotonic_ns() - self.before_ns);
            }
            _ => (),
        }
    }

    pub fn p99_us(mut self) -> f64 {
        self.found_ns.sort_unstable();
        let place = self.found_ns.len() * 99 / 100;
        self.found_ns.get(place).map_or(f64::NAN, |ns| *ns as f64 / 1e3)
    }
}

/// The cost of a cell.
pub struct Measured {
    pub per_s: f64,
    pub switches_per_append: f64,
    pub cpu_us_per_append: f64,
}

/// Runs threads that call `append` with the next index in a loop, with a pause between two calls.
pub fn measure<A: Fn(u64) + Send + Sync + 'static>(
    producers: u64,
    think_ms: u64,
    seconds: f64,
    append: &Arc<A>,
) -> Measured {
    let (next, over) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let start = Arc::new(Barrier::new(producers as usize + 1));
    let threads: Vec<_> = (0..producers)
        .map(|_| {
            let (next, over, start, append) =
                (Arc::clone(&next), Arc::clone(&over), Arc::clone(&start), Arc::clone(append));
            let serve = move || {
                start.wait();
                while !over.load(Ordering::Relaxed) {
                    append(next.fetch_add(1, Ordering::Relaxed));
                    if think_ms > 0 {
                        std::thread::sleep(Duration::from_millis(think_ms));
                    }
                }
            };
            std::thread::Builder::new().stack_size(64 << 10).spawn(serve).expect("a thread")
        })
        .collect();
    start.wait();
    let (before, began) = (usage(), Instant::now());
    let first = next.load(Ordering::Relaxed);
    std::thread::sleep(Duration::from_secs_f64(seconds));
    let (after, took) = (usage(), began.elapsed());
    let appended = (next.load(Ordering::Relaxed) - first).max(1) as f64;
    over.store(true, Ordering::Relaxed);
    threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
    Measured {
        per_s: appended / took.as_secs_f64(),
        switches_per_append: (after.0 - before.0) as f64 / appended,
        cpu_us_per_append: (after.1 - before.1) as f64 / appended,
    }
}

/// Returns the context switches and the microseconds of processor time of this process.
fn usage() -> (i64, i64) {
    // SAFETY: zero is a valid value of the struct's numbers, which the call fills in.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &raw mut usage);
        usage
    };
    let us = |time: libc::timeval| time.tv_sec * 1_000_000 + time.tv_usec;
    (usage.ru_nvcsw + usage.ru_nivcsw, us(usage.ru_utime) + us(usage.ru_stime))
}
