//! Tests of advisors around and inside the loop: their requests, their order, and their rights.

use advisor_tests::prelude::*;

use crate::tool_loop::support::*;

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

/// A client taken as a builder has all advisors, and adding to it does not change the client.
#[tokio::test]
async fn derived_client_leaves_original_unchanged() {
    let journal = Journal::new();
    let client = ChatClient::builder(ScriptedModel::new([Answer::from_text("a"), Answer::from_text("b")]))
        .advisor(named("first", Phase::Turn, &journal))
        .build()
        .unwrap();
    let longer = client.to_builder().advisor(named("second", Phase::Turn, &journal)).build().unwrap();
    longer.prompt().user("go").call().await.unwrap();
    assert_eq!(journal.labels(), ["first before", "second before", "second after 1", "first after 1"]);
    client.prompt().user("go").call().await.unwrap();
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

/// All advisors see facts of the turn. The inner advisor's `before` runs last, and so does
/// the outer one's `after`. Entries of round 1 still exist in round 2.
#[tokio::test]
async fn turn_data_is_shared_across_rounds() {
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
