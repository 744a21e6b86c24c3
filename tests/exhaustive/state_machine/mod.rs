//! Runs a state machine over memory: any operations on a conversation, in any order, keep the laws.
//!
//! Two processes share a store. They submit turns, also earlier ones again; they drop, kill or suspend them at
//! any step; they fork and restart. The store fails. The conversation is deleted, started again, or moved.
//! `operation.rs` has the operations, and `reference.rs` the expected state. `check.rs` compares them after
//! every operation, and `steps.rs` counts the places at which a turn can be stopped. Everything runs in one
//! task, on a paused clock. Model and tools answer the same messages in the same way, so a case always has the
//! same result. A failed case is shrunk, and its seed is printed; `PROPTEST_RNG_SEED` repeats it, and
//! `PROPTEST_CASES` sets the number of cases.

#![allow(clippy::future_not_send, reason = "a case runs in one task, on one thread")]

mod answers;
mod check;
mod defects;
mod leaves;
mod operation;
mod reading;
mod reference;
mod shown;
mod steps;
mod submit;
mod words;
mod world;

use std::io::Write as _;
use std::time::Instant;

use advisor_tests::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestCaseError, TestError, TestRunner};

use operation::{Case, any_case};
use world::Broken;

/// The default number of cases; `PROPTEST_CASES` overrides it.
const CASES: u32 = 200;
/// The factor by which fewer cases run with a file.
const TIMES_FEWER: u32 = 20;

/// In one task, on a paused clock.
fn in_runtime<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.unwrap().block_on(work)
}

fn in_memory(case: &Case) -> Result<(), Broken> {
    let store = InMemoryStore::new();
    let store = if case.setup.leases { store.with_leases() } else { store };
    in_runtime(world::run(case, Arc::new(store)))
}

fn in_a_file(case: &Case) -> Result<(), Broken> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("conversations.sqlite");
    in_runtime(async {
        let store = SqliteStore::open(path).await.unwrap();
        world::run(case, Arc::new(store)).await
    })
}

fn try_cases(
    what: &str,
    times_fewer: u32,
    leases: bool,
    longest: usize,
    run: fn(&Case) -> Result<(), Broken>,
) {
    let given = std::env::var_os("PROPTEST_CASES").map(|_| Config::default().cases);
    let all = given.unwrap_or(CASES);
    let cases = all.div_ceil(times_fewer);
    let seed = match Config::default().rng_seed {
        RngSeed::Fixed(seed) => seed,
        RngSeed::Random => any_seed(),
    };
    let config =
        Config { cases, rng_seed: RngSeed::Fixed(seed), failure_persistence: None, ..Config::default() };
    let started = Instant::now();
    let tried = TestRunner::new(config)
        .run(&any_case(leases, longest), |case| run(&case).map_err(TestCaseError::fail));
    match tried {
        Err(TestError::Fail(reason, case)) => {
            panic!("{what}, PROPTEST_RNG_SEED={seed} PROPTEST_CASES={all}: {reason}\n{case}")
        }
        tried => tried.unwrap(),
    }
    let took = started.elapsed();
    let _ = writeln!(std::io::stderr(), "{what}: {cases} cases, PROPTEST_RNG_SEED={seed}; {took:?}");
}

/// A seed that differs from run to run.
fn any_seed() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one("seed")
}

#[test]
fn law_m1_m2_m3_m5_m6_o6_t1_t5_k3_k4_whatever_is_done_to_a_conversation_in_memory() {
    try_cases("in memory", 1, true, 14, in_memory);
}

#[test]
fn law_m1_m2_m3_m5_m6_o6_t1_t5_k3_k4_all_operations_on_file_conversation() {
    try_cases("in a file", TIMES_FEWER, false, 10, in_a_file);
}
