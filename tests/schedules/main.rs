//! Schedules of turns, writers and holders of leases that run at once, explored with shuttle.
//!
//! **What is explored.** Each turn, writer, holder and canceller is a task of its own, on one thread. A task can be
//! passed over wherever one of its leaves waits: a store before and after each operation, a lease before and after it is
//! asked for, renewed or given back, a model before each piece of its answer, a tool when it starts and before it
//! answers; and wherever the library itself waits, for a lock or for another turn. Which task goes on is chosen at
//! random, anew in each schedule. Time is a task, too: when it is its turn, a paused clock goes on a little, so that
//! leases end and timers fire at any point of the others.
//!
//! **What is not.** Between two such places a task runs without a break: the interleavings of threads, and the memory
//! order of atomics, `dashmap`'s shards and tokio's own locks, are not explored, as shuttle does not see into them. The
//! store is the one in memory; what others do on their own threads is for `tests/processes`.
//!
//! `ADVISOR_SCHEDULES` says how many schedules are tried in all. One that fails prints its seed, and its test tries that
//! one alone with `SHUTTLE_RANDOM_SEED=<seed> ADVISOR_SCHEDULES=1`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod check;
mod holders;
mod interrupted;
mod leaves;
mod time;
mod turns;
mod twice;
mod writers;

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use shuttle::scheduler::RandomScheduler;
use shuttle::{Config, MaxSteps, Runner};

use time::Time;

/// How many schedules are tried in all if `ADVISOR_SCHEDULES` does not say.
const SCHEDULES: usize = 1_000;
/// How many explorations share them.
const EXPLORATIONS: usize = 22;

/// How many things went well, over all schedules of an exploration. Clones count together.
#[derive(Clone, Default)]
struct Tally(Arc<AtomicUsize>);

impl Tally {
    fn add(&self, count: usize) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    /// Most of what could go well must: in a single schedule each may fail for a reason, but not in all of them.
    fn expect(&self, percent: usize, of: usize, what: &str) {
        let count = self.0.load(Ordering::Relaxed);
        assert!(of < 20 || count * 100 >= percent * of, "{what}: only {count} of {of}");
    }
}

/// Tries its share of schedules, and says how many those were. Each is given its own time.
fn explore<F, W>(what: &str, work: F) -> usize
where
    F: Fn(Time) -> W + Send + Sync + 'static,
    W: Future<Output = ()> + Send + 'static,
{
    let given = std::env::var("ADVISOR_SCHEDULES").ok();
    let all = given.map_or(SCHEDULES, |given| given.parse().expect("ADVISOR_SCHEDULES is a number"));
    let mut config = Config::new();
    // Futures of whole chains need more room than shuttle gives its tasks.
    config.stack_size = 1 << 20;
    // A schedule in which something waits for ever ends here, as the clock goes on.
    config.max_steps = MaxSteps::FailAfter(200_000);
    let started = Instant::now();
    let scheduler = RandomScheduler::new(all.div_ceil(EXPLORATIONS));
    let tried = Runner::new(scheduler, config).run(move || {
        let time = Time::paused();
        let _entered = time.enter();
        shuttle::future::block_on(work(time.clone()));
        time.stop();
    });
    let _ = writeln!(std::io::stderr(), "{what}: {tried} schedules; {:?}", started.elapsed());
    tried
}
