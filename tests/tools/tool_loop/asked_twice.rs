//! Tests of an advisor around the loop that calls it twice in one turn: the turn's result equals the stored
//! one.

use advisor_tests::prelude::*;

use crate::tool_loop::support::*;

/// Makes the second request of the first one and the first answer.
type Again = fn(ChatRequest, &ChatResponse) -> ChatRequest;

/// Reads the first answer to its end, then sends the request that `again` makes of it.
fn twice(again: Again) -> impl StreamAdvisor {
    from_fn("twice", move |request: ChatRequest, next: AdvisorChain| async move {
        let first = next.next_call(request.clone()).await?;
        next.next_stream(again(request, &first)).await
    })
    .with_placement(Placement::new(Phase::Turn))
}

const HOW: [(&str, Again); 4] = [
    ("the same messages", |request, first| {
        request.with_message(first.message().clone()).with_message(Message::user("Sure?"))
    }),
    // A message is known by its identity: a copy is one more, for memory as for the turn.
    ("a copy", |request, first| {
        request.with_message(Message::assistant(first.text())).with_message(Message::user("Sure?"))
    }),
    ("the question again", |request, first| {
        request.with_message(first.message().clone()).with_message(Message::user("How is it?"))
    }),
    ("for this request only", |request, first| {
        let shown = Message::assistant(first.text()).ephemeral();
        request.with_message(shown).with_message(Message::user("Sure?").ephemeral())
    }),
];

fn model() -> ScriptedModel {
    ScriptedModel::new([
        Answer::from_calls([("c1", "look", "{}")]),
        Answer::from_text("Fine."),
        Answer::from_calls([("c2", "look", "{}")]),
        Answer::from_text("Yes."),
        Answer::from_text("Bye."),
        Answer::from_text("Bye, bye."),
    ])
}

/// A client with memory in one of three places, from the outside in.
fn client(model: &ScriptedModel, memory: ChatMemoryAdvisor, place: usize, again: Again) -> ChatClient {
    let builder = ChatClient::builder(model.clone()).tool(tool("look", "sunny"));
    let builder = match place {
        0 => builder.advisor_in(Phase::Turn, memory).advisor(twice(again)),
        1 => builder.advisor(twice(again)).advisor_in(Phase::Turn, memory),
        _ => builder.advisor(twice(again)).advisor_in(Phase::Round, memory),
    };
    builder.advisor(ToolCallAdvisor::new()).build().unwrap()
}

#[tokio::test]
async fn transcript_of_turn_asking_twice_equals_memory() {
    for place in 0..3 {
        for (how, again) in HOW {
            let (case, model) = (format!("{how}, memory at {place}"), model());
            let memory = ChatMemoryAdvisor::new(InMemoryStore::new());
            let client = client(&model, memory.clone(), place, again);
            let key = ConversationKey::new("c").unwrap();
            let prompt = client.prompt().user("How is it?").conversation("c");
            let response = prompt.turn(TurnId::new("one").unwrap()).call().await.unwrap();
            let told = transcript_lines(&response.transcript);
            let asked: &[&str] = match how {
                "for this request only" => &[],
                "a copy" => &["assistant: Fine.", "user: Sure?"],
                "the question again" => &["user: How is it?"],
                _ => &["user: Sure?"],
            };
            let first = ["user: How is it?", "call c1 look {}", "result c1: sunny", "assistant: Fine."];
            let second = ["call c2 look {}", "result c2: sunny", "assistant: Yes."];
            assert_eq!(told, [&first[..], asked, &second[..]].concat(), "{case}");
            assert_valid(&response.transcript);
            let kept = memory.transcript(&key).await.unwrap();
            assert_eq!(transcript_lines(&kept), told, "{case}");
            // The next turn begins anew, and has nothing of this one in its transcript.
            let next = client.prompt().user("Thanks.").conversation("c").call().await.unwrap();
            let kept = memory.transcript(&key).await.unwrap();
            let all = [told, transcript_lines(&next.transcript)].concat();
            assert_eq!(transcript_lines(&kept), all, "{case}");
        }
    }
}

/// The first loop is dropped while its tool runs.
#[tokio::test]
async fn law_t1_turn_repeated_during_tools_reports_interrupted_calls() {
    let hurry = || {
        from_fn("hurry", |request: ChatRequest, next: AdvisorChain| async move {
            let mut first = next.next_stream(request.clone()).await?;
            while let Some(chunk) = first.next().await {
                if matches!(chunk?, Chunk::Tool(_)) {
                    break;
                }
            }
            drop(first);
            next.next_stream(request).await
        })
    };
    for place in PLACES {
        let memory = ChatMemoryAdvisor::new(InMemoryStore::new());
        let slow = FnTool::new(definition("slow"), |_: Value| std::future::pending::<Result<&str, _>>());
        let model =
            ScriptedModel::new([Answer::from_calls([("c1", "slow", "{}")]), Answer::from_text("Done.")]);
        let client = ChatClient::builder(model)
            .advisor(ToolCallAdvisor::builder().tool_events(true).build().unwrap())
            .advisor_in(Phase::Turn, hurry())
            .advisor_in(place, memory.clone())
            .tool(slow)
            .build()
            .unwrap();
        let response = client.prompt().user("go").conversation("c").call().await.unwrap();
        assert_valid(&response.transcript);
        let remembered = memory.transcript(&ConversationKey::new("c").unwrap()).await.unwrap();
        assert_eq!(transcript_lines(&response.transcript), transcript_lines(&remembered), "{place}");
    }
}
