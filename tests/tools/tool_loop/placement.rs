//! Tests of advisors around and inside the loop: their requests, their order, and their rights.

use advisor_tests::prelude::*;

use crate::tool_loop::support::*;

fn two_rounds() -> ScriptedModel {
    ScriptedModel::new([Answer::from_calls([("c1", "look", "{}")]), Answer::from_text("Done.")])
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
