//! The contract of a relay, for each implementation.

use advisor_core::{ConversationKey, TurnId};
use advisor_server::{Appended, Begun, RunBatch, RunEnd, RunState, TurnRelay, TurnRun};

use super::in_memory::InMemoryRelay;

pub(crate) fn run_of(tenant: &str, conversation: &str, turn: &str, kept: usize) -> TurnRun {
    let key = ConversationKey::in_tenant(tenant, conversation).unwrap();
    TurnRun::new(key, TurnId::new(turn).unwrap(), format!("input of {turn}"), kept)
}

pub(crate) fn batch(first: u64, items: &[&str]) -> RunBatch {
    let mut batch = RunBatch::default();
    (batch.first, batch.items) = (first, items.iter().map(|item| (*item).to_owned()).collect());
    batch
}

pub(crate) fn last(first: u64, items: &[&str]) -> RunBatch {
    let mut batch = batch(first, items);
    batch.end = Some(RunEnd::Final);
    batch
}

/// Returns the numbers and items of a page, and the state.
pub(crate) async fn page(relay: &impl TurnRelay, run: &TurnRun, from: u64) -> (Vec<(u64, String)>, RunState) {
    let page = relay.read(&run.conversation, &run.turn, from).await.unwrap().unwrap();
    (page.items, page.state)
}

/// Returns the turns that run in the conversation of a run.
async fn running(relay: &impl TurnRelay, run: &TurnRun) -> Vec<String> {
    let running = relay.running(&run.conversation).await.unwrap();
    running.iter().map(ToString::to_string).collect()
}

fn items(items: &[(u64, &str)]) -> Vec<(u64, String)> {
    items.iter().map(|(number, item)| (*number, (*item).to_owned())).collect()
}

/// Runs the clauses that need no passing of time.
pub(crate) async fn keeps_the_contract(relay: &impl TurnRelay) {
    items_are_read_from_any_number(relay).await;
    repeated_calls_have_no_further_effect(relay).await;
    items_may_be_many_and_large(relay).await;
    ended_turn_stays(relay).await;
    void_turn_begins_again(relay).await;
    running_turns_are_in_the_order_of_their_begin(relay).await;
    stop_reaches_the_owner(relay).await;
    ids_of_any_characters_are_kept_apart(relay).await;
    forgotten_turns_are_lost(relay).await;
    released_turn_begins_again(relay).await;
}

async fn items_are_read_from_any_number(relay: &impl TurnRelay) {
    let run = run_of("a", "read", "t", 3);
    assert_eq!(relay.read(&run.conversation, &run.turn, 0).await.unwrap(), None);
    assert_eq!(relay.append(&run, &batch(0, &["0"])).await.unwrap(), Appended::Lost, "it has not begun");
    assert_eq!(relay.begin(&run).await.unwrap(), Begun::Owned);
    assert_eq!(page(relay, &run, 0).await, (items(&[]), RunState::Running));
    assert_eq!(relay.append(&run, &batch(0, &["0", "1"])).await.unwrap(), Appended::Running);
    assert_eq!(relay.append(&run, &batch(2, &[])).await.unwrap(), Appended::Running);
    assert_eq!(page(relay, &run, 0).await.0, items(&[(0, "0"), (1, "1")]));
    assert_eq!(page(relay, &run, 1).await.0, items(&[(1, "1")]));
    assert_eq!(page(relay, &run, 2).await.0, items(&[]));
    assert_eq!(page(relay, &run, u64::MAX).await.0, items(&[]));
    assert_eq!(relay.append(&run, &batch(2, &["2", "3"])).await.unwrap(), Appended::Running);
    assert_eq!(page(relay, &run, 0).await.0, items(&[(1, "1"), (2, "2"), (3, "3")]), "three are kept");
    // A gap is visible, also at ten digits.
    assert_eq!(relay.append(&run, &batch(5_000_000_000, &["x"])).await.unwrap(), Appended::Running);
    assert_eq!(page(relay, &run, 4).await.0, items(&[(5_000_000_000, "x")]));
}

async fn repeated_calls_have_no_further_effect(relay: &impl TurnRelay) {
    let run = run_of("a", "repeated", "t", 9);
    for _ in 0..2 {
        assert_eq!(relay.begin(&run).await.unwrap(), Begun::Owned);
        assert_eq!(relay.append(&run, &batch(0, &["0", "1"])).await.unwrap(), Appended::Running);
    }
    // One that overlaps, as after a lost answer.
    assert_eq!(relay.append(&run, &last(1, &["1", "2"])).await.unwrap(), Appended::Running);
    assert_eq!(relay.append(&run, &last(1, &["1", "2"])).await.unwrap(), Appended::Running);
    assert_eq!(page(relay, &run, 0).await, (items(&[(0, "0"), (1, "1"), (2, "2")]), RunState::Ended));
    // One that was late.
    assert_eq!(relay.append(&run, &batch(0, &["0", "1"])).await.unwrap(), Appended::Running);
    assert_eq!(page(relay, &run, 3).await, (items(&[]), RunState::Ended));
    assert_eq!(running(relay, &run).await, [""; 0]);
}

async fn items_may_be_many_and_large(relay: &impl TurnRelay) {
    let run = run_of("a", "large", "t", usize::MAX);
    relay.begin(&run).await.unwrap();
    let (large, count) = ("x".repeat(1 << 20), 3);
    for number in 0..count {
        relay.append(&run, &batch(number, &[&large])).await.unwrap();
    }
    for number in 0..count {
        let (items, _) = page(relay, &run, number).await;
        let numbers: Vec<u64> = items.iter().map(|(number, _)| *number).collect();
        assert_eq!(numbers, [number], "a page has bounded bytes, and at least one item");
    }
    let small = vec!["s"; 600];
    relay.append(&run, &batch(count, &small)).await.unwrap();
    let (items, _) = page(relay, &run, count).await;
    assert!((100..600).contains(&items.len()), "{} items", items.len());
    assert!(items.iter().map(|(number, _)| *number).eq((count..).take(items.len())));
}

async fn ended_turn_stays(relay: &impl TurnRelay) {
    let (run, other) = (run_of("a", "ended", "t", 9), run_of("a", "ended", "t", 9));
    assert_ne!(run.id, other.id);
    assert_eq!(relay.begin(&run).await.unwrap(), Begun::Owned);
    let elsewhere = Begun::Elsewhere { input: run.input.clone() };
    assert_eq!(relay.begin(&other).await.unwrap(), elsewhere, "it runs");
    relay.append(&run, &last(0, &["0"])).await.unwrap();
    assert_eq!(relay.begin(&other).await.unwrap(), elsewhere, "it has ended");
    assert_eq!(relay.append(&other, &batch(0, &["x"])).await.unwrap(), Appended::Lost);
    assert_eq!(page(relay, &run, 0).await, (items(&[(0, "0")]), RunState::Ended));
}

async fn void_turn_begins_again(relay: &impl TurnRelay) {
    let (run, other) = (run_of("a", "void", "t", 9), run_of("a", "void", "t", 9));
    assert_eq!(relay.begin(&run).await.unwrap(), Begun::Owned);
    let mut end = last(0, &["0"]);
    end.end = Some(RunEnd::Void);
    assert_eq!(relay.append(&run, &end).await.unwrap(), Appended::Running);
    assert_eq!(page(relay, &run, 0).await, (items(&[(0, "0")]), RunState::Ended));
    assert_eq!(relay.begin(&other).await.unwrap(), Begun::Owned);
    assert_eq!(page(relay, &other, 0).await, (items(&[]), RunState::Running));
    assert_eq!(running(relay, &other).await, [other.turn.as_str()]);
    assert_eq!(relay.append(&run, &batch(1, &["1"])).await.unwrap(), Appended::Lost);
    assert_eq!(relay.append(&other, &last(0, &["0"])).await.unwrap(), Appended::Running);
}

async fn running_turns_are_in_the_order_of_their_begin(relay: &impl TurnRelay) {
    let (one, other) = (run_of("a", "running", "one", 9), run_of("a", "running", "other", 9));
    assert_eq!(running(relay, &one).await, [""; 0]);
    relay.begin(&one).await.unwrap();
    assert_eq!(running(relay, &one).await, [one.turn.as_str()]);
    relay.begin(&other).await.unwrap();
    relay.append(&one, &batch(0, &["0"])).await.unwrap();
    let both = ["one", "other"];
    assert_eq!(running(relay, &one).await, both);
    relay.append(&other, &last(0, &["0"])).await.unwrap();
    assert_eq!(running(relay, &one).await, [one.turn.as_str()], "it still runs");
    relay.append(&one, &batch(1, &["1"])).await.unwrap();
    assert_eq!(running(relay, &one).await, [one.turn.as_str()]);
    relay.append(&one, &last(2, &[])).await.unwrap();
    assert_eq!(running(relay, &one).await, [""; 0]);
}

async fn stop_reaches_the_owner(relay: &impl TurnRelay) {
    let run = run_of("a", "stop", "t", 9);
    relay.stop(&run.conversation, &run.turn).await.unwrap();
    assert_eq!(relay.begin(&run).await.unwrap(), Begun::Owned);
    assert_eq!(
        relay.append(&run, &batch(0, &["0"])).await.unwrap(),
        Appended::Running,
        "the stop came before"
    );
    relay.stop(&run.conversation, &run.turn).await.unwrap();
    assert_eq!(relay.append(&run, &batch(1, &[])).await.unwrap(), Appended::StopRequested);
}

async fn ids_of_any_characters_are_kept_apart(relay: &impl TurnRelay) {
    let ids = [
        ("a", "b"),
        ("b", "a"),
        ("a/b", "c"),
        ("a", "b/c"),
        ("{a}", "b"),
        ("}", "{"),
        ("%", "25"),
        ("a", "é"),
    ];
    for (tenant, conversation) in ids {
        let run = run_of(tenant, conversation, "t", 9);
        assert_eq!(relay.begin(&run).await.unwrap(), Begun::Owned, "{tenant} {conversation}");
        relay.append(&run, &batch(0, &[tenant])).await.unwrap();
    }
    for (tenant, conversation) in ids {
        let run = run_of(tenant, conversation, "t", 9);
        assert_eq!(page(relay, &run, 0).await.0, items(&[(0, tenant)]));
        assert_eq!(running(relay, &run).await, [run.turn.as_str()]);
    }
}

async fn released_turn_begins_again(relay: &impl TurnRelay) {
    let (run, other) = (run_of("a", "released", "t", 9), run_of("a", "released", "t", 9));
    relay.release(&run).await.unwrap();
    assert_eq!(relay.begin(&run).await.unwrap(), Begun::Owned);
    relay.release(&other).await.unwrap();
    assert_eq!(running(relay, &run).await, [run.turn.as_str()], "another run stays");
    relay.release(&run).await.unwrap();
    assert_eq!(relay.read(&run.conversation, &run.turn, 0).await.unwrap(), None);
    assert_eq!(running(relay, &run).await, [""; 0]);
    assert_eq!(relay.append(&run, &batch(0, &["0"])).await.unwrap(), Appended::Lost);
    assert_eq!(relay.begin(&other).await.unwrap(), Begun::Owned);
}

async fn forgotten_turns_are_lost(relay: &impl TurnRelay) {
    let (ended, run) = (run_of("a", "gone", "t1", 9), run_of("a", "gone", "t2", 9));
    relay.forget(&run.conversation).await.unwrap();
    for run in [&ended, &run] {
        relay.begin(run).await.unwrap();
        relay.append(run, &batch(0, &["0"])).await.unwrap();
    }
    relay.append(&ended, &last(1, &["1"])).await.unwrap();
    relay.forget(&run.conversation).await.unwrap();
    for run in [&ended, &run] {
        assert_eq!(relay.read(&run.conversation, &run.turn, 0).await.unwrap(), None);
        assert_eq!(relay.append(run, &batch(1, &["1"])).await.unwrap(), Appended::Lost);
    }
    assert_eq!(running(relay, &run).await, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn memory_keeps_the_contract() {
    keeps_the_contract(&InMemoryRelay::new()).await;
}
