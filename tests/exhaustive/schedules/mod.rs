//! Explores schedules of concurrent turns, writers and lease holders with shuttle.
//!
//! **Explored.** Each turn, writer, holder and canceller is a separate task, on one thread. The scheduler can
//! switch tasks wherever a leaf waits. A store waits before and after each operation, and a lease before and
//! after it is acquired, renewed or released. A model waits before each piece of its answer, and a tool when it
//! starts and before it answers. The scheduler can also switch wherever the library waits, for a lock or for
//! another turn. Each schedule chooses the next task at random. Time is a task, too: it advances a paused clock
//! a little, so that leases expire and timers fire at any point of the others.
//!
//! **Not explored.** Between two such places a task runs without a break. Shuttle does not see interleavings of
//! threads, the memory order of atomics, `dashmap`'s shards and tokio's own locks. The store is the one in
//! memory; the module `processes` tests stores that use their own threads.
//!
//! `ADVISOR_SCHEDULES` is the total number of schedules. A failed schedule prints its seed;
//! `SHUTTLE_RANDOM_SEED=<seed> ADVISOR_SCHEDULES=1` repeats it alone.

mod check;
mod holders;
mod interrupted;
mod leaves;
mod time;
mod turns;
mod twice;
mod writers;

use std::io::Write as _;
use std::time::Instant;

use advisor_tests::prelude::*;
use shuttle::scheduler::RandomScheduler;
use shuttle::{Config, MaxSteps, Runner};

use time::Time;

/// The default number of schedules in total; `ADVISOR_SCHEDULES` overrides it.
const SCHEDULES: usize = 1_000;
/// The number of explorations that share them.
const EXPLORATIONS: usize = 22;

/// Counts successes over all schedules of an exploration. Clones share the count.
#[derive(Clone, Default)]
struct Tally(Arc<AtomicUsize>);

impl Tally {
    fn add(&self, count: usize) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    /// Checks that most attempts succeeded. In a single schedule each may fail for a reason, but not in all of
    /// them.
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
