//! Tests of a turn before its first poll, when it is dropped, and when another task cancels it.

use std::task::Poll;

use advisor_core::{Advisor, OnDrop, Spawner};
use advisor_tests::prelude::*;
use futures::future::BoxFuture;
use futures::poll;

/// Registers a recorder that writes to the journal, as a memory would.
struct Recording(Journal);

struct Recorder(Journal);

#[async_trait]
impl TurnRecorder for Recorder {
    async fn record(&self, record: &Record) -> Result<()> {
        self.0.record(match &record.step {
            Step::End(end) => format!("recorded {end:?}"),
            step => format!("recorded {step:?}"),
        });
        Ok(())
    }

    fn dropped(&self, _round: u32, end: &TurnEnd) -> Option<BoxFuture<'static, ()>> {
        self.0.record(format!("dropped {end:?}"));
        let journal = self.0.clone();
        Some(async move { journal.record("left work ran") }.boxed())
    }
}

struct Inside(Journal);

impl Drop for Inside {
    fn drop(&mut self) {
        self.0.record("inside stopped");
    }
}

impl AdvisorInfo for Recording {
    fn name(&self) -> &str {
        "recording"
    }
}

#[async_trait]
impl Advisor for Recording {
    type State = Inside;

    async fn before(&self, request: ChatRequest) -> Result<(ChatRequest, Inside)> {
        self.0.record("before");
        request.turn.add_recorder(Arc::new(Recorder(self.0.clone())));
        Ok((request, Inside(self.0.clone())))
    }

    async fn after(&self, state: Inside, _response: &ChatResponse) -> Result<()> {
        self.0.record("after");
        std::mem::forget(state);
        Ok(())
    }
}

fn turn(answer: Answer) -> (TurnStream, ScriptedModel, Journal) {
    let journal = Journal::new();
    let model = ScriptedModel::new([answer]).with_journal(&journal);
    let chain = ChatClient::builder(model.clone())
        .advisor_in(Phase::Turn, Recording(journal.clone()))
        .build()
        .unwrap()
        .chain()
        .clone();
    (chain.stream(ChatRequest::new(Message::user("?"))), model, journal)
}

fn half_told(gate: &Gate) -> Answer {
    Answer::new().text("Hel").text("lo").gate(gate).text(" there").finish(FinishReason::Stop)
}

/// Reads until the model waits.
async fn read_half(turn: &mut TurnStream, gate: &Gate) {
    while let Poll::Ready(item) = poll!(turn.next()) {
        item.unwrap().unwrap();
    }
    assert!(gate.is_reached());
}

#[tokio::test]
async fn law_k1_nothing_happens_before_the_first_poll() {
    let (turn, model, journal) = turn(Answer::from_text("hi"));
    let handle = turn.handle();
    drop(turn);
    assert_eq!(model.calls(), 0);
    assert_eq!(journal.labels(), Vec::<String>::new());
    handle.settled().await;
}

#[tokio::test]
async fn law_k1_misconfigured_prompt_fails_only_at_first_poll() {
    let client = ChatClient::builder(ScriptedModel::new([])).build().unwrap();
    let mut turn = client.prompt().user("?").conversation("").stream();
    let error = turn.next().await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Configuration);
    assert!(turn.next().await.is_none());
    let empty = client.prompt().call().await.unwrap_err();
    assert_eq!(empty.kind(), ErrorKind::Configuration);
}

#[tokio::test]
async fn law_k2_drop_stops_work_before_recorders_learn_of_it() {
    let gate = Gate::new();
    let (mut turn, _model, journal) = turn(half_told(&gate));
    read_half(&mut turn, &gate).await;
    let handle = turn.handle();
    drop(turn);
    journal
        .assert_order(&["before", "model.ask r1", "model.drop r1", "inside stopped", "dropped Interrupted*"]);
    let told = journal.labels().into_iter().find(|label| label.starts_with("dropped")).unwrap();
    assert!(told.contains("partial: \"Hello\""), "{told}");
    assert_eq!(journal.count("left work ran"), 0, "nothing is spawned without a spawner");
    handle.settled().await;
}

#[tokio::test]
async fn drop_with_spawner_runs_remaining_work_then_settles() {
    let gate = Gate::new();
    let (turn, _model, journal) = turn(half_told(&gate));
    let mut turn = turn.with_spawner(Spawner::tokio(tokio::runtime::Handle::current()));
    read_half(&mut turn, &gate).await;
    let handle = turn.handle();
    drop(turn);
    handle.settled().await;
    assert_eq!(journal.count("left work ran"), 1);
}

#[tokio::test]
async fn turn_set_to_finish_continues_without_its_reader() {
    let gate = Gate::new();
    let (turn, _model, journal) = turn(half_told(&gate));
    let mut turn =
        turn.with_on_drop(OnDrop::FinishTurn).with_spawner(Spawner::tokio(tokio::runtime::Handle::current()));
    read_half(&mut turn, &gate).await;
    let handle = turn.handle();
    drop(turn);
    assert_eq!(journal.count("after"), 0);
    gate.release();
    handle.settled().await;
    journal.assert_order(&["model.end r1", "after"]);
    assert_eq!(journal.count("dropped*"), 0);
}

#[tokio::test]
async fn cancelled_turn_records_end_before_typed_error() {
    let gate = Gate::new();
    let (mut turn, _model, journal) = turn(half_told(&gate));
    read_half(&mut turn, &gate).await;
    let handle = turn.handle();
    handle.cancel(OnDrop::KeepPartial);
    let error = turn.next().await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    assert!(error.emitted());
    assert!(turn.next().await.is_none());
    journal.assert_order(&["model.drop r1", "inside stopped", "recorded Interrupted*"]);
    assert_eq!(journal.count("dropped*"), 0);
    handle.settled().await;
    handle.cancel(OnDrop::Rollback);
    assert_eq!(journal.count("recorded*"), 1, "a turn that has ended stays as it is");
}

#[tokio::test]
async fn turn_set_to_finish_without_spawner_is_closed() {
    for cancelled in [false, true] {
        let gate = Gate::new();
        let (turn, _model, journal) = turn(half_told(&gate));
        let mut turn = turn.with_on_drop(OnDrop::FinishTurn);
        read_half(&mut turn, &gate).await;
        if cancelled {
            turn.handle().cancel(OnDrop::FinishTurn);
            assert_eq!(turn.next().await.unwrap().unwrap_err().kind(), ErrorKind::Cancelled);
        }
        drop(turn);
        journal.assert_count("*Interrupted*Hello*", 1);
    }
}

#[tokio::test]
async fn a_cancellation_wakes_a_turn_that_waits() {
    let gate = Gate::new();
    let (mut turn, _model, _journal) = turn(half_told(&gate));
    let handle = turn.handle();
    let reader = async {
        let mut last = None;
        while let Some(item) = turn.next().await {
            last = Some(item);
        }
        last.unwrap().unwrap_err().kind()
    };
    let canceller = async {
        gate.reached().await;
        handle.cancel(OnDrop::KeepPartial);
    };
    let (kind, ()) = tokio::join!(reader, canceller);
    assert_eq!(kind, ErrorKind::Cancelled);
}

#[tokio::test]
async fn cancelled_turn_dropped_while_ending_keeps_requested_end() {
    struct Slow(Gate);
    #[async_trait]
    impl TurnRecorder for Slow {
        async fn record(&self, _: &Record) -> Result<()> {
            self.0.pass().await;
            Ok(())
        }
    }
    let gate = Gate::new();
    let slow = Gate::new();
    let (mut turn, _model, journal) = turn(half_told(&gate));
    turn.turn().add_recorder(Arc::new(Slow(slow.clone())));
    read_half(&mut turn, &gate).await;
    turn.handle().cancel(OnDrop::Rollback);
    assert!(poll!(turn.next()).is_pending(), "the end is being recorded");
    drop(turn);
    assert_eq!(journal.count("dropped RolledBack"), 1);
    assert_eq!(journal.count("*Interrupted*"), 0);
}

#[tokio::test]
async fn law_r2_a_turn_that_has_ended_holds_nothing_alive() {
    let journal = Journal::new();
    let in_chain = journal.clone();
    let holding = from_fn("holding", move |request, next: AdvisorChain| {
        let held = Inside(in_chain.clone());
        async move {
            Ok(next.next_stream(request).await?.inspect_chunks(move |_| {
                let _ = &held;
            }))
        }
    });
    let model = ScriptedModel::new([Answer::from_text("hi")]);
    let chain = ChatClient::builder(model).advisor(holding).build().unwrap().chain().clone();
    let mut turn = chain.stream(ChatRequest::new(Message::user("?")));
    while turn.next().await.unwrap().unwrap().completed().is_none() {}
    assert_eq!(journal.count("inside stopped"), 1, "it is gone while the turn is still there");
    assert!(futures::stream::FusedStream::is_terminated(&turn));
    assert!(turn.handle().settled().now_or_never().is_some());
}

/// As in a loop around `select!`: the future of `next` is made and dropped again and again.
#[tokio::test]
async fn reader_dropping_next_repeatedly_loses_no_chunk() {
    let pieces: Vec<_> = (0..50).map(|number| format!("{number} ")).collect();
    let answer = pieces
        .iter()
        .fold(Answer::new(), |answer, piece| answer.text(piece.as_str()).wait(tokio::task::yield_now()));
    let (mut turn, _model, journal) = turn(answer.finish(FinishReason::Stop));
    let (mut text, mut given_up, mut completed) = (String::new(), 0, 0);
    loop {
        // The other branch is ready as soon as there is nothing to read.
        let item = tokio::select! {
            biased;
            item = turn.next() => item,
            () = std::future::ready(()) => {
                given_up += 1;
                tokio::task::yield_now().await;
                continue;
            }
        };
        let Some(item) = item else { break };
        let chunk = item.unwrap();
        text.push_str(chunk.text().unwrap_or_default());
        completed += usize::from(chunk.completed().is_some());
    }
    assert!(given_up >= 50, "{given_up}");
    assert_eq!((text, completed), (pieces.concat(), 1));
    journal.assert_count("after", 1);
    journal.assert_count("recorded*", 1);
}
