//! The macros `crash_points_of_store!`, `crash_points_of_advisor!`, `crash_points_of_chain!`, and the functions
//! behind them.

use std::sync::Arc;
use std::time::Duration;

use advisor_core::{ChatClient, OnDrop, Phase, Result, StreamAdvisor, Tool, ToolSet};
use chat_memory_advisor::{ChatMemoryAdvisor, OnBusy};
use conversation_store::{ConversationStore, InMemoryStore};

use super::{
    AwaitPoint, CrashDriver, Event, Fault, Invariant, LeasePoints, Leaves, Operation, Scenario, TurnRun,
    with_leases,
};
use advisor_testkit::StoreFault;

/// The faults for a store. A store cannot distinguish how a turn is stopped, so a drop and a kill represent
/// all stops.
const AT_A_STORE: [Fault; 5] = [
    DROP,
    Fault::Kill,
    Fault::Store(StoreFault::Unavailable),
    Fault::Store(StoreFault::Conflict),
    Fault::Store(StoreFault::AnswerLost),
];

const DROP: Fault = Fault::Drop(OnDrop::KeepPartial);

/// The duration of a lease if the clock may be the real one. After a kill, the next turn waits this long.
const LEASE: Duration = Duration::from_millis(100);

/// Injects faults at every point of turns that are remembered in this store, and at every pair of points of
/// the shortest turn. If the store supports leases, the points of the shortest turn are also tested with
/// leases. Returns the number of cases.
///
/// # Panics
/// If an invariant does not hold.
pub async fn every_point_of_store(store: impl ConversationStore, scenario: Scenario) -> usize {
    let store: Arc<dyn ConversationStore> = Arc::new(store);
    let has_leases = store.leases().is_some() && is_shortest(scenario);
    let make = |leaves: &Leaves| {
        leaves.client().advisor(leaves.memory()).advisor(leaves.tool_loop().build()?).build()
    };
    let mut driver = CrashDriver::new(scenario, Arc::clone(&store), make);
    let mut cases = inject(&mut driver, scenario, &AT_A_STORE).await;
    if has_leases {
        let make = |leaves: &Leaves| {
            let memory = ChatMemoryAdvisor::new(with_leases(leaves.store.clone(), LeasePoints::Given));
            let memory = memory.with_on_busy(OnBusy::Queue).with_lease_ttl(LEASE);
            leaves.client().advisor(memory).advisor(leaves.tool_loop().build()?).build()
        };
        let mut driver = CrashDriver::new(scenario, store, make);
        let await_points = driver.await_points().await;
        assert!(
            await_points.contains(&AwaitPoint::After(Operation::Acquire)),
            "the store supports leases, but granted none: {await_points:?}"
        );
        cases += driver.every_point(&AT_A_STORE).await;
    }
    cases
}

/// Injects faults at every point of turns that run through the advisors that `make` creates, one for each
/// process of a case. The turns run with a memory inside the tool loop, and with one outside it. Of the
/// shortest turn, every pair of points is tested. The invariants in `without` are not checked;
/// [`crash_points_of_advisor!`](crate::crash_points_of_advisor) lists which advisor breaks which. Returns the
/// number of cases.
///
/// # Panics
/// If an invariant does not hold.
pub async fn every_point_of_advisor<A: StreamAdvisor>(
    make: impl Fn() -> A + Clone + Send + Sync + 'static,
    scenario: Scenario,
    without: &[Invariant],
) -> usize {
    let mut cases = 0;
    for memory in [Phase::Round, Phase::Turn] {
        let make = make.clone();
        let make = move |leaves: &Leaves| {
            let client = leaves.client().advisor(make()).advisor(leaves.tool_loop().build()?);
            client.advisor_in(memory, leaves.memory()).build()
        };
        let mut driver = driver_without(without, scenario, make);
        let await_points = driver.await_points().await;
        let can_happen =
            |fault: &Fault| await_points.iter().any(|await_point| fault.can_happen_at(*await_point));
        let faults: Vec<_> = Fault::ALL.into_iter().filter(can_happen).collect();
        cases += inject(&mut driver, scenario, &faults).await;
    }
    cases
}

/// Injects faults at every point of the turns of a chain, and at every pair of points of the shortest turn.
/// `make` creates the chain from the leaves, once for each process of a case. Returns the number of cases.
///
/// # Panics
/// If an invariant does not hold, or if no point of one of the leaves was passed, so the chain does not use it.
/// The tools may stay unused if they are offered and no complete call reaches the tool loop.
pub async fn every_point_of_chain(
    make: impl Fn(&Leaves) -> Result<ChatClient> + Send + Sync + 'static,
    scenario: Scenario,
    without: &[Invariant],
) -> usize {
    let mut driver = driver_without(without, scenario, make);
    check_leaves(&driver.whole_turn().await, driver.tools(), scenario);
    inject(&mut driver, scenario, &Fault::ALL).await
}

fn driver_without(
    without: &[Invariant],
    scenario: Scenario,
    make: impl Fn(&Leaves) -> Result<ChatClient> + Send + Sync + 'static,
) -> CrashDriver {
    let driver = CrashDriver::new(scenario, InMemoryStore::new(), make);
    without.iter().fold(driver, |driver, invariant| driver.without(*invariant))
}

/// Injects faults at every point, and for the shortest turn at every pair of points, of which the second is a
/// drop.
async fn inject(driver: &mut CrashDriver, scenario: Scenario, faults: &[Fault]) -> usize {
    let points = driver.every_point(faults).await;
    let pairs = match is_shortest(scenario) {
        true => driver.every_pair_of_points(&[DROP, Fault::Kill], &[DROP]).await,
        false => 0,
    };
    points + pairs
}

fn is_shortest(scenario: Scenario) -> bool {
    scenario.name() == Scenario::PLAIN.name()
}

/// Checks that the chain uses the leaves. A chain that is made of other parts is not tested.
fn check_leaves(turn: &TurnRun, tools: &ToolSet, scenario: Scenario) {
    let passed = |is_it: fn(AwaitPoint) -> bool| turn.await_points.iter().copied().any(is_it);
    for (leaf, used) in [
        ("store", passed(AwaitPoint::is_of_store)),
        ("model", passed(|await_point| await_point == AwaitPoint::Model)),
        ("tool_loop()", passed(|await_point| matches!(await_point, AwaitPoint::Hook(_)))),
        ("tools", is_shortest(scenario) || uses_tools(turn, tools)),
    ] {
        assert!(used, "the chain does not use `{leaf}` of its leaves: the turn passes no point of it");
    }
}

/// Checks whether one of the tools ran, or was offered to a model of which no complete call reached the loop.
fn uses_tools(turn: &TurnRun, tools: &ToolSet) -> bool {
    let is_ours = |offered: &Arc<dyn Tool>| {
        tools.iter().any(|tool| std::ptr::addr_eq(Arc::as_ptr(tool), Arc::as_ptr(offered)))
    };
    let (mut offered, mut called) = (false, false);
    for event in &turn.events {
        match event {
            Event::ToolStarted { .. } => return true,
            Event::Asked { tools, .. } => offered |= tools.iter().any(is_ours),
            Event::RoundEnded(answer) if !answer.finish.reason.vetoes_calls() => {
                called |= answer.tool_calls().any(|(_, call)| call.complete);
            }
            _ => {}
        }
    }
    offered && !called
}

/// Injects faults at every await point of turns that are remembered in a store: one test per [`Scenario`].
///
/// The expression creates the store. It may await, and may `return` if there is nothing to test. The crate that
/// uses the macro needs tokio with `macros` and `rt`.
///
/// ```
/// mod crash_points {
///     advisor_conformance::crash_points_of_store!(conversation_store::InMemoryStore::new());
/// }
/// ```
#[macro_export]
macro_rules! crash_points_of_store {
    ($make_store:expr) => {
        $crate::crash_points_tests! { |scenario| {
            let store = $make_store;
            $crate::crash::every_point_of_store(store, scenario).await
        } }
    };
}

/// Injects faults at every await point of turns that run through an advisor: one test per [`Scenario`].
///
/// The expression creates the advisor, once for each process of a case, so that its state in memory is lost
/// with the process. To instrument the advisor's own waits, use [`AwaitPoints::pass`] in a chain of your own,
/// with [`crash_points_of_chain!`](crate::crash_points_of_chain).
///
/// [`Invariant`]s hold for any change of an answer. A cache, and advisors that retry, stop or edit an answer,
/// pass unchanged if they are inside memory. Leave out by name an invariant that the advisor breaks on purpose:
///
/// - An advisor that changes requests, other than by system messages, breaks
///   [`MemoryIsThePrompt`](Invariant::MemoryIsThePrompt).
/// - One that adds a user message also breaks [`RequestsAreValid`](Invariant::RequestsAreValid).
/// - One that changes answers outside memory or outside the loop breaks
///   [`ShownIsRemembered`](Invariant::ShownIsRemembered).
/// - One that answers outside both, such as a guard, also breaks
///   [`TheEndComesLast`](Invariant::TheEndComesLast) and [`TheLastTurnWorks`](Invariant::TheLastTurnWorks),
///   because nothing of its turn is stored.
/// - One that ends a turn with a part of a failed answer breaks
///   [`FailuresEndTheTurn`](Invariant::FailuresEndTheTurn).
/// - One by which a turn of a conversation changes the answers of the next, such as a budget, breaks
///   [`TheLastTurnIsUnchanged`](Invariant::TheLastTurnIsUnchanged).
///
/// ```
/// use advisor_core::{AdvisorChain, ChatRequest, from_fn};
///
/// mod crash_points {
///     use super::*;
///     advisor_conformance::crash_points_of_advisor!(from_fn("hurry", |request: ChatRequest, next: AdvisorChain| async move {
///         next.next_stream(request).await
///     }));
/// }
///
/// mod of_one_that_adds_to_the_request {
///     # use super::*;
///     advisor_conformance::crash_points_of_advisor!(
///         from_fn("date", |request: ChatRequest, next: AdvisorChain| async move {
///             next.next_stream(request).await
///         }),
///         without MemoryIsThePrompt
///     );
/// }
/// ```
///
/// [`Invariant`]: crate::crash::Invariant
/// [`AwaitPoints::pass`]: crate::crash::AwaitPoints::pass
#[macro_export]
macro_rules! crash_points_of_advisor {
    ($make_advisor:expr $(, without $($invariant:ident)+)?) => {
        $crate::crash_points_tests! { |scenario| {
            let without = [$($($crate::crash::Invariant::$invariant),+)?];
            $crate::crash::every_point_of_advisor(|| $make_advisor, scenario, &without).await
        } }
    };
}

/// Injects faults at every await point of the turns of a whole chain: one test per
/// [`Scenario`](crate::crash::Scenario).
///
/// The closure creates the client from the given [`Leaves`](crate::crash::Leaves), once for each process of a
/// case. Create in the closure all state that is lost with the process. The chain needs a memory and a tool
/// loop of the leaves, and fails without. Leave out by name the [`Invariant`]s that the chain breaks on
/// purpose, as with [`crash_points_of_advisor!`](crate::crash_points_of_advisor).
///
/// ```
/// use advisor_core::{AdvisorChain, ChatRequest, Phase, from_fn};
/// use advisor_conformance::crash::Leaves;
///
/// mod crash_points {
///     use super::*;
///     advisor_conformance::crash_points_of_chain!(|leaves: &Leaves| {
///         let points = leaves.points.clone();
///         // An advisor with its own await point.
///         let cache = from_fn("cache", move |request: ChatRequest, next: AdvisorChain| {
///             let points = points.clone();
///             async move {
///                 points.pass("cache").await?;
///                 next.next_stream(request).await
///             }
///         });
///         let client = leaves.client().advisor_in(Phase::ModelCall, cache);
///         client.advisor(leaves.tool_loop().build()?).advisor(leaves.memory()).build()
///     });
/// }
/// ```
///
/// [`Invariant`]: crate::crash::Invariant
#[macro_export]
macro_rules! crash_points_of_chain {
    ($make_client:expr $(, without $($invariant:ident)+)?) => {
        $crate::crash_points_tests! { |scenario| {
            let without = [$($($crate::crash::Invariant::$invariant),+)?];
            $crate::crash::every_point_of_chain($make_client, scenario, &without).await
        } }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! crash_points_tests {
    (|$scenario:ident| $cases:block) => {
        $crate::crash_points_tests! { @tests |$scenario| $cases;
            a_plain_answer PLAIN, a_round_of_two_calls ROUND, three_rounds_of_two_calls ROUNDS,
            return_direct DIRECT, the_last_round LIMIT, tools_that_fail_and_panic FAILURES,
            a_call_that_must_not_run_twice ONCE, a_client_side_call CLIENT_SIDE, approved_calls APPROVED
        }
    };
    (@tests |$scenario:ident| $cases:block; $($test:ident $which:ident),*) => {$(
        #[::tokio::test]
        async fn $test() {
            let $scenario = $crate::crash::Scenario::$which;
            let _: usize = $cases;
        }
    )*};
}
