//! A fault stops a turn at each of its await points, or makes an operation fail there. A second fault follows in
//! the next turn, or in the same one. Then every invariant of the testkit must hold, and the last turn must work.
//!
//! Faults are injected at every single point in every mode, with memory inside the loop and outside it. All pairs
//! of points are tested in the mode `TextOnly`, in both places of memory. Short turns are tested with every fault;
//! long ones with the faults that the second turn can distinguish, mostly before a dropped second turn. Each test
//! prints and asserts its number of cases. A case is a scenario with its faults and their points. Turns without a
//! fault, or without the second one yet, are not counted.

use std::collections::HashMap;
use std::io::Write as _;
use std::time::Instant;

use advisor_chain::memory::repair;
use advisor_chain::tools::PendingCall;
use advisor_conformance::crash::{
    AwaitPoint, CrashDriver, Event, Fault, Injection, LeasePoints, Leaves, Operation, Scenario, TurnRun,
    with_leases,
};
use advisor_tests::prelude::*;

/// The cases that each test has at least. Together they are more than 100,000 pairs.
const SINGLES: usize = 8_000;
const SHORT_PAIRS: usize = 18_000;
const LONG_PAIRS: usize = 25_000;
const PAIRS_IN_A_TURN: usize = 7_000;
const _: () = assert!(2 * (SHORT_PAIRS + LONG_PAIRS + PAIRS_IN_A_TURN) >= 100_000);

const DROP: Fault = Fault::Drop(OnDrop::KeepPartial);
/// A drop, after which the process continues, and a kill, which ends it.
const DROP_OR_KILL: [Fault; 2] = [DROP, Fault::Kill];

fn driver(scenario: Scenario, memory: Phase, mode: ToolCallStreaming) -> CrashDriver {
    CrashDriver::new(scenario, InMemoryStore::new(), move |leaves: &Leaves| {
        let tool_loop = leaves.tool_loop().streaming(mode).build()?;
        leaves.client().advisor(tool_loop).advisor_in(memory, leaves.memory()).build()
    })
}

fn in_text_only(scenario: Scenario, memory: Phase) -> CrashDriver {
    driver(scenario, memory, ToolCallStreaming::TextOnly)
}

/// Prints the number of cases of a test, and checks that it is at least `at_least`.
fn tell(what: &str, memory: Phase, cases: usize, at_least: usize, start: Instant) {
    let _ =
        writeln!(std::io::stderr(), "{what}, memory in {memory:?}: {cases} cases in {:?}", start.elapsed());
    assert!(cases >= at_least, "{what}: only {cases} cases");
}

async fn every_point(memory: Phase) {
    let (start, mut cases) = (Instant::now(), 0);
    for scenario in Scenario::ALL {
        for mode in MODES {
            cases += driver(scenario, memory, mode).every_point(&Fault::ALL).await;
        }
    }
    tell("every point in every mode", memory, cases, SINGLES, start);
}

#[tokio::test]
async fn law_k2_k3_k4_m6_t4_every_point_with_memory_inside() {
    every_point(Phase::Round).await;
}

#[tokio::test]
async fn law_k2_k3_k4_m6_t4_every_point_with_memory_outside() {
    every_point(Phase::Turn).await;
}

async fn short_pairs(memory: Phase) {
    let start = Instant::now();
    let cases = in_text_only(Scenario::PLAIN, memory).every_pair_of_points(&Fault::ALL, &Fault::ALL).await;
    tell("every point of two short turns", memory, cases, SHORT_PAIRS, start);
}

#[tokio::test]
async fn law_k4_m6_point_pairs_of_short_turns_memory_inside() {
    short_pairs(Phase::Round).await;
}

#[tokio::test]
async fn law_k4_m6_point_pairs_of_short_turns_memory_outside() {
    short_pairs(Phase::Turn).await;
}

async fn long_pairs(memory: Phase) {
    let (start, mut cases) = (Instant::now(), 0);
    let faults: Vec<_> =
        DROP_OR_KILL.into_iter().chain(Fault::ALL.into_iter().filter(|fault| !fault.is_stop())).collect();
    for (scenario, first) in [
        (Scenario::ROUNDS, faults.as_slice()),
        (Scenario::DIRECT, &faults),
        (Scenario::LIMIT, &DROP_OR_KILL),
        (Scenario::FAILURES, &DROP_OR_KILL),
    ] {
        let mut driver = in_text_only(scenario, memory).followed_by(Scenario::PLAIN);
        cases += driver.every_pair_of_points(first, &[DROP]).await;
    }
    for scenario in [Scenario::ROUND, Scenario::ONCE] {
        let mut driver = in_text_only(scenario, memory);
        cases += driver.every_pair_of_points(&DROP_OR_KILL, &DROP_OR_KILL).await;
    }
    tell("every point of a long turn and of the next one", memory, cases, LONG_PAIRS, start);
}

#[tokio::test]
async fn law_k4_m6_point_pairs_of_long_turns_memory_inside() {
    long_pairs(Phase::Round).await;
}

#[tokio::test]
async fn law_k4_m6_point_pairs_of_long_turns_memory_outside() {
    long_pairs(Phase::Turn).await;
}

async fn pairs_in_a_turn(memory: Phase) {
    let (start, mut cases) = (Instant::now(), 0);
    for scenario in [Scenario::DIRECT, Scenario::LIMIT, Scenario::FAILURES] {
        cases += in_text_only(scenario, memory).every_pair_in_a_turn(&Fault::ALL, &[DROP]).await;
    }
    for scenario in [Scenario::PLAIN, Scenario::ROUND] {
        cases += in_text_only(scenario, memory).every_pair_in_a_turn(&Fault::ALL, &Fault::ALL).await;
    }
    tell("every two points of one turn", memory, cases, PAIRS_IN_A_TURN, start);
}

#[tokio::test]
async fn law_k4_m6_point_pairs_of_one_turn_memory_inside() {
    pairs_in_a_turn(Phase::Round).await;
}

#[tokio::test]
async fn law_k4_m6_point_pairs_of_one_turn_memory_outside() {
    pairs_in_a_turn(Phase::Turn).await;
}

/// A store that hands out leases. A killed process keeps its own for a while, for which the next turn waits.
fn driver_with_leases(scenario: Scenario, memory: Phase) -> CrashDriver {
    CrashDriver::new(scenario, InMemoryStore::new().with_leases(), move |leaves: &Leaves| {
        let kept = ChatMemoryAdvisor::new(with_leases(leaves.store.clone(), LeasePoints::All));
        let kept = kept.with_on_busy(OnBusy::Queue);
        leaves.client().advisor(leaves.tool_loop().build()?).advisor_in(memory, kept).build()
    })
}

#[tokio::test(start_paused = true)]
async fn law_k4_m6_every_point_and_pair_of_leased_turns() {
    for memory in PLACES {
        let (start, mut cases) = (Instant::now(), 0);
        for scenario in Scenario::ALL {
            cases += driver_with_leases(scenario, memory).every_point(&Fault::ALL).await;
        }
        let mut slow = driver_with_leases(Scenario::SLOW, memory);
        let await_points = slow.await_points().await;
        assert_eq!(count(&await_points, AwaitPoint::Before(Operation::Renew)), 1, "{await_points:?}");
        cases += slow.every_point(&Fault::ALL).await;
        let plain = || driver_with_leases(Scenario::PLAIN, memory);
        let stops: Vec<_> = Fault::ALL.into_iter().filter(|fault| fault.is_stop()).collect();
        cases += plain().every_pair_of_points(&Fault::ALL, &DROP_OR_KILL).await;
        cases += plain().every_pair_in_a_turn(&Fault::ALL, &stops).await;
        tell("every point with leases", memory, cases, 12_500, start);
    }
}

/// The advisor between loop and memory, if any, or a chain without a loop.
#[derive(Debug, Clone, Copy)]
enum Between {
    NoLoop,
    /// Asks twice in every round and continues with the second answer.
    AsksTwice,
    /// Asks twice in every round and continues with the first answer.
    KeepsTheFirst,
    /// Answers the first round without the model, with a call.
    AnswersFirst,
}

fn driver_with(between: Between, memory: Phase) -> CrashDriver {
    CrashDriver::new(Scenario::ROUND, InMemoryStore::new(), move |leaves: &Leaves| {
        let client = leaves.client();
        let client = match between {
            Between::NoLoop => client,
            Between::AsksTwice => client.advisor_in(Phase::Round, asks_twice()),
            Between::KeepsTheFirst => client.advisor_in(Phase::Round, keeps_the_first()),
            Between::AnswersFirst => client.advisor_in(Phase::Round, answers_first()),
        };
        let client = match between {
            Between::NoLoop => client,
            _ => client.advisor(leaves.tool_loop().build()?),
        };
        client.advisor_in(memory, leaves.memory()).build()
    })
}

fn asks_twice() -> impl StreamAdvisor {
    from_fn("asks-twice", |request: ChatRequest, next: AdvisorChain| async move {
        next.next_call(request.clone()).await?;
        next.next_stream(request).await
    })
}

fn keeps_the_first() -> impl StreamAdvisor {
    from_fn("keeps-the-first", |request: ChatRequest, next: AdvisorChain| async move {
        let first = next.next_call(request.clone()).await?;
        next.next_call(request).await?;
        Ok(ChunkStream::answer(first))
    })
}

fn answers_first() -> impl StreamAdvisor {
    from_fn("answers-first", |request: ChatRequest, next: AdvisorChain| async move {
        let said = request.messages.last().map(Message::role);
        let is_last = request.messages.last().is_some_and(|message| message.text() == "last");
        if said == Some(Role::User) && !is_last {
            let call = Message::assistant_blocks(vec![ToolCall::new("first", "work", "{}").into()]);
            return Ok(request.answer(ChatResponse::new(0, call, FinishReason::ToolCalls)));
        }
        next.next_stream(request).await
    })
}

#[tokio::test]
async fn law_m4_k4_m6_every_point_with_intermediate_advisor_or_no_loop() {
    for memory in PLACES {
        for between in [Between::NoLoop, Between::AsksTwice, Between::KeepsTheFirst, Between::AnswersFirst] {
            let start = Instant::now();
            let cases = driver_with(between, memory).every_point(&Fault::ALL).await;
            tell(&format!("{between:?}"), memory, cases, 100, start);
        }
    }
}

/// Returns the content of an entry without the id of its turn.
fn nameless(kind: &EntryKind) -> EntryKind {
    match kind {
        EntryKind::CallStarted(CallStart { key, call_id, .. }) => {
            EntryKind::CallStarted(CallStart::new(nameless_key(key), call_id.clone()))
        }
        EntryKind::CallPending(PendingCall { key, definition, .. }) => {
            EntryKind::CallPending(PendingCall { key: nameless_key(key), definition: definition.clone() })
        }
        kind => kind.clone(),
    }
}

fn nameless_key(key: &CallKey) -> CallKey {
    CallKey::new(TurnId::new("t").unwrap(), key.round, key.position)
}

fn kinds(turn: &TurnRun) -> Vec<EntryKind> {
    turn.log.iter().map(|entry| nameless(&entry.kind)).collect()
}

fn count(await_points: &[AwaitPoint], of: AwaitPoint) -> usize {
    await_points.iter().filter(|await_point| **await_point == of).count()
}

#[tokio::test]
async fn law_k2_dropped_turn_leaves_store_state_near_that_point() {
    for memory in PLACES {
        for scenario in Scenario::ALL {
            let mut driver = in_text_only(scenario, memory);
            let whole = driver.run(&[&[]]).await.unwrap().turns.swap_remove(0);
            let appended = |event: &Event| match event {
                Event::Appended { entries, .. } => {
                    Some(entries.iter().map(|entry| nameless(&entry.kind)).collect())
                }
                _ => None,
            };
            let batches: Vec<Vec<EntryKind>> = whole.events.iter().filter_map(appended).collect();
            assert_eq!(batches.concat(), kinds(&whole));
            for point in 0..whole.await_points.len() {
                let injection = Injection::new(point, Fault::Drop(OnDrop::KeepPartial));
                let injected = driver.run(&[&[injection]]).await.unwrap().turns.swap_remove(0);
                // Other work that runs beside the waiting leaf may have passed points, too.
                assert_eq!(
                    injected.await_points[..=point],
                    whole.await_points[..=point],
                    "the same points every time"
                );
                let begun =
                    batches[..count(&injected.await_points, AwaitPoint::Before(Operation::Append))].concat();
                let done =
                    batches[..count(&injected.await_points, AwaitPoint::After(Operation::Append))].concat();
                let log = kinds(&injected);
                assert!(log == begun || log == done, "{scenario:?} {memory:?} {injection:?}: {log:?}");
            }
        }
    }
}

/// Returns the number of each point within its kind. Those of model, tools and reader do not depend on the
/// place of memory.
fn same_everywhere(await_points: &[AwaitPoint]) -> HashMap<(AwaitPoint, usize), usize> {
    let is_shared = |await_point| {
        matches!(
            await_point,
            AwaitPoint::Model
                | AwaitPoint::ModelItem
                | AwaitPoint::ToolStarted
                | AwaitPoint::ToolEnding
                | AwaitPoint::Reader
        )
    };
    let points = await_points.iter().enumerate().filter(|(_, await_point)| is_shared(**await_point));
    points
        .map(|(point, await_point)| ((*await_point, count(&await_points[..point], *await_point)), point))
        .collect()
}

#[tokio::test]
async fn law_m4_same_crash_point_leaves_equal_memory() {
    for mode in MODES {
        for scenario in Scenario::ALL {
            let mut inside = driver(scenario, Phase::Round, mode);
            let mut outside = driver(scenario, Phase::Turn, mode);
            let outer = same_everywhere(&outside.await_points().await);
            let inner = same_everywhere(&inside.await_points().await);
            assert_eq!(inner.len(), outer.len());
            for (await_point, point) in inner {
                for fault in Fault::ALL.into_iter().filter(|fault| fault.can_happen_at(await_point.0)) {
                    let transcript = async |driver: &mut CrashDriver, point| -> Vec<Message> {
                        repair(&driver.run(&[&[Injection::new(point, fault)]]).await.unwrap().log)
                    };
                    let remembered = transcript(&mut inside, point).await;
                    let other = transcript(&mut outside, outer[&await_point]).await;
                    assert_eq!(remembered, other, "{scenario:?} {mode:?} {await_point:?} {fault:?}");
                }
            }
        }
    }
}
