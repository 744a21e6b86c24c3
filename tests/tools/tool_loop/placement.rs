//! Tests of advisors around and inside the loop: their requests, their order, and their rights.

use std::sync::{Arc, Mutex};

use advisor_chain::tools::LoopHooks;
use advisor_chain::{
    AdvisorChain, ChatClient, ChatRequest, ChatResponse, ChunkStream, FinishReason, Message, Phase,
    Placement, Result, StreamAdvisor, ToolCallAdvisor, async_trait, from_fn,
};
use advisor_testkit::{Answer, Journal, ScriptedModel};

use crate::tool_loop::support::{Stages, Watch, client, read, tool, transcript_lines};

fn two_rounds() -> ScriptedModel {
    ScriptedModel::new([Answer::from_calls([("c1", "look", "{}")]), Answer::from_text("Done.")])
}

/// Journals when it is asked and when the answer inside it is complete.
fn named(name: &'static str, phase: Phase, journal: &Journal) -> impl StreamAdvisor {
    let journal = journal.clone();
    from_fn(name, move |request: ChatRequest, next: AdvisorChain| {
        let journal = journal.clone();
        async move {
            journal.record(format!("{name} before"));
            Ok(next.next_stream(request).await?.on_completed(move |response| async move {
                journal.record(format!("{name} after {}", response.round()));
                Ok(response)
            }))
        }
    })
    .with_placement(Placement::new(phase))
}

/// U-08: equal places keep the order in which they were added, inside the loop as outside, in every
/// round. SimpleLogger: an advisor outside logs once per turn, one inside once per round.
#[tokio::test]
async fn equal_places_keep_their_order_in_every_round() {
    let journal = Journal::new();
    let client = client(&two_rounds(), ToolCallAdvisor::new())
        .advisor(named("a", Phase::Turn, &journal))
        .advisor(named("c", Phase::Round, &journal))
        .advisor(named("b", Phase::Turn, &journal))
        .advisor(named("d", Phase::Round, &journal))
        .tool(tool("look", "sunny"))
        .build()
        .unwrap();
    read(client.prompt().user("go").stream()).await;
    let turn = [
        "a before", "b before", "c before", "d before", "d after 1", "c after 1", "c before", "d before",
        "d after 2", "c after 2", "b after 2", "a after 2",
    ];
    assert_eq!(journal.labels(), turn);
}

/// CH-11 to CH-14: an advisor receives the rest of the chain, in order; the last advisor receives only the
/// model.
#[tokio::test]
async fn ch_11_next_is_rest_of_chain() {
    let rests = Arc::new(Mutex::new(Vec::new()));
    let looking = |name: &'static str| {
        let rests = Arc::clone(&rests);
        from_fn(name, move |request: ChatRequest, next: AdvisorChain| {
            let names: Vec<_> = next.explain().entries.into_iter().map(|entry| entry.name).collect();
            rests.lock().unwrap().push(names.join(" "));
            async move { next.next_stream(request).await }
        })
    };
    let client = ChatClient::builder(ScriptedModel::new([Answer::from_text("Hi.")]))
        .advisor(looking("first"))
        .advisor(looking("middle"))
        .advisor(looking("last"));
    let client = client.build().unwrap();
    client.prompt().user("go").call().await.unwrap();
    assert_eq!(*rests.lock().unwrap(), ["middle last", "last", ""]);
    assert_eq!(client.explain().entries.len(), 3, "CH-14: the chain is as it was");
}

/// CH-18, CH-19: a chain taken as a builder has all advisors, and adding to it does not change the chain.
#[tokio::test]
async fn ch_18_derived_chain_leaves_original_unchanged() {
    let journal = Journal::new();
    let chain = AdvisorChain::builder(ScriptedModel::new([Answer::from_text("a"), Answer::from_text("b")]))
        .advisor(named("first", Phase::Turn, &journal))
        .build()
        .unwrap();
    let longer = chain.to_builder().advisor(named("second", Phase::Turn, &journal)).build().unwrap();
    longer.next_call(ChatRequest::new(Message::user("go"))).await.unwrap();
    assert_eq!(journal.labels(), ["first before", "second before", "second after 1", "first after 1"]);
    chain.next_call(ChatRequest::new(Message::user("go"))).await.unwrap();
    assert_eq!(journal.labels()[4..], ["first before", "first after 1"]);
}

/// The entries that advisors leave for one another in the turn.
#[derive(Clone, Debug, Default, PartialEq)]
struct Entries(Vec<String>);

fn leaving(name: &'static str, phase: Phase) -> impl StreamAdvisor {
    from_fn(name, move |request: ChatRequest, next: AdvisorChain| async move {
        let turn = Arc::clone(&request.turn);
        let leave = move |turn: &advisor_chain::Turn, what: &str| {
            turn.extensions().update(|entries: &mut Entries| entries.0.push(format!("{name} {what}")));
        };
        leave(&turn, "before");
        Ok(next.next_stream(request).await?.on_completed(move |response: ChatResponse| async move {
            leave(&turn, "after");
            Ok(response)
        }))
    })
    .with_placement(Placement::new(phase))
}

/// AV-01, AV-02, U-10: all advisors see facts of the turn. The inner advisor's `before` runs last, and so does
/// the outer one's `after`. Entries of round 1 still exist in round 2.
#[tokio::test]
async fn av_01_turn_data_is_shared_across_rounds() {
    struct Seeing(Arc<Mutex<Vec<usize>>>);
    #[async_trait]
    impl LoopHooks for Seeing {
        async fn before_round(&self, request: ChatRequest, _round: u32) -> Result<ChatRequest> {
            let seen = request.turn.extensions().get::<Entries>().unwrap_or_default().0.len();
            self.0.lock().unwrap().push(seen);
            Ok(request)
        }
    }
    for streamed in [true, false] {
        let seen = Arc::default();
        let advisor = ToolCallAdvisor::builder().hooks(Seeing(Arc::clone(&seen))).build().unwrap();
        let client = client(&two_rounds(), advisor)
            .advisor(leaving("outer", Phase::Turn))
            .advisor(leaving("inner", Phase::Round))
            .tool(tool("look", "sunny"))
            .build()
            .unwrap();
        let turn = client.prompt().user("go").stream();
        let facts = Arc::clone(turn.turn());
        if streamed {
            read(turn).await;
        } else {
            turn.call().await.unwrap();
        }
        let entries = facts.extensions().get::<Entries>().unwrap().0;
        assert_eq!(
            entries,
            ["outer before", "inner before", "inner after", "inner before", "inner after", "outer after"]
        );
        assert_eq!(*seen.lock().unwrap(), [1, 3], "the outer before; then the inner ones of round 1");
    }
}

/// SafeGuard: refuses words in the user message, without calling the inner advisors.
fn guard(phase: Phase) -> impl StreamAdvisor {
    from_fn("guard", |request: ChatRequest, next: AdvisorChain| async move {
        if request.messages.iter().any(|message| message.text().to_lowercase().contains("password")) {
            let refusal = Message::assistant("I do not talk about that.");
            return Ok(request.answer(ChatResponse::new(0, refusal, FinishReason::Stop)));
        }
        next.next_stream(request).await
    })
    .with_placement(Placement::new(phase))
}

/// SafeGuard: a guard passes a request on or answers it, streamed and called, outside the loop and inside it.
/// The case of the letters does not matter.
#[tokio::test]
async fn a_guard_answers_without_the_model() {
    for phase in [Phase::Turn, Phase::Round] {
        let model = ScriptedModel::new([Answer::from_text("Hi."), Answer::from_text("Hi.")]);
        let stages = Stages::default();
        let advisor = ToolCallAdvisor::builder().hooks(Watch(stages.clone())).build().unwrap();
        let client =
            client(&model, advisor).advisor(guard(phase)).tool(tool("look", "sunny")).build().unwrap();
        for (said, answer, calls) in
            [("hello", "Hi.", 1), ("the PASSWORD, please", "I do not talk about that.", 1), ("bye", "Hi.", 2)]
        {
            let run = read(client.prompt().user(said).stream()).await;
            assert_eq!((run.text().as_str(), model.calls()), (answer, calls), "{phase}");
            if calls == 1 && said != "hello" {
                assert_eq!(client.prompt().user(said).call().await.unwrap().text(), answer);
            }
        }
        let loops = if phase == Phase::Turn { 2 } else { 4 };
        stages.journal.assert_count("loop_start", loops);
    }
}

/// StructuredOutputValidation: an advisor inside the loop that asks again until it likes the answer.
/// It is one round of the loop; each pass has its own number, and the attempt that counts is the last.
#[tokio::test]
async fn retrying_advisor_counts_as_one_loop_round() {
    let validating = from_fn("validating", |request: ChatRequest, next: AdvisorChain| async move {
        let first = next.next_call(request.clone()).await?;
        if first.tool_calls().next().is_some() || first.text().starts_with('{') {
            return Ok(ChunkStream::answer(first));
        }
        next.next_stream(request.with_message(Message::user("Answer with JSON.").ephemeral())).await
    })
    .with_placement(Placement::new(Phase::Round));
    let model = ScriptedModel::new([
        Answer::from_calls([("c1", "look", "{}")]),
        Answer::from_text("It is sunny."),
        Answer::from_text("{\"sky\":\"blue\"}"),
    ]);
    let stages = Stages::default();
    let advisor = ToolCallAdvisor::builder().hooks(Watch(stages.clone())).build().unwrap();
    let client = client(&model, advisor).advisor(validating).tool(tool("look", "sunny")).build().unwrap();
    let run = read(client.prompt().user("go").stream()).await;
    assert_eq!((run.response().text().as_str(), run.response().round()), ("{\"sky\":\"blue\"}", 3));
    assert_eq!((model.calls(), stages.outcomes()[0].rounds), (3, 2), "tool rounds are asked once");
    assert_eq!(
        transcript_lines(run.response().transcript()),
        ["user: go", "call c1 look {}", "result c1: sunny", "assistant: {\"sky\":\"blue\"}"]
    );
}

/// A chain that is asked without a root, such as by a test of an advisor, runs the same loop.
#[tokio::test]
async fn chain_without_root_runs_same_loop() {
    let chain = AdvisorChain::builder(two_rounds()).advisor(ToolCallAdvisor::new()).build().unwrap();
    let history = [Message::user("before"), Message::assistant("yes"), Message::user("go")];
    let request = ChatRequest::new(Vec::from(history)).with_tool(tool("look", "sunny"));
    let response = chain.next_call(request.clone()).await.unwrap();
    let lines = transcript_lines(response.transcript());
    assert_eq!(
        lines[..3],
        ["user: before", "assistant: yes", "user: go"],
        "nobody said where the turn began"
    );
    assert_eq!(lines[3..], ["call c1 look {}", "result c1: sunny", "assistant: Done."]);
    assert_eq!(request.messages.len(), 3, "the request is as it was");
}
