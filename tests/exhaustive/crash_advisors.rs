//! Tests advisors of users with the crash macros: one that asks again, one that stops, a guard, a judge, retrieval, calls in
//! text and fallbacks. None is written for the kit, and all invariants are checked.

use advisor_chain::chain::FallbackModel;
use advisor_chain::messages::Text;
use advisor_chain::retrieval::{
    Document, Embedding, EmbeddingModel, InMemoryVectors, PastTurns, Query, Retrieval,
};
use advisor_chain::stream_policy::{Guard, LetterCase};
use advisor_conformance::crash::{AwaitPoints, Leaves, Scenario, every_point_of_advisor};
use advisor_conformance::{crash_points_of_advisor, crash_points_of_chain};
use advisor_examples::advisors::ask_again;
use advisor_testkit::WordEmbeddings;
use advisor_tests::editors::Calling;
use advisor_tests::prelude::*;

mod one_that_asks_again_in_each_round {
    super::crash_points_of_chain!(|leaves: &super::Leaves| {
        let client = leaves.client().advisor(leaves.tool_loop().build()?).advisor(leaves.memory());
        client.advisor_in(super::Phase::Round, super::ask_again("Sources")).build()
    });
}

/// Ends an answer between two calls.
fn stops() -> impl StreamAdvisor {
    let ends = |chunk: &Chunk| match chunk {
        Chunk::Opened { block, head } => head.kind == BlockKind::ToolCall && block.position() > 1,
        _ => false,
    };
    from_fn("stops", move |request: ChatRequest, next: AdvisorChain| async move {
        let answer = next.next_stream(request).await?;
        Ok(answer.end_when(move |chunk| ends(chunk).then_some(FinishReason::ContentFilter)))
    })
    .with_placement(Placement::new(Phase::ModelCall))
}

mod one_that_stops_between_calls {
    super::crash_points_of_advisor!(super::stops());
}

mod a_guard_with_memory_outside {
    super::crash_points_of_chain!(|leaves: &super::Leaves| {
        let client = leaves
            .client()
            .advisor(super::Guard::for_words(["l done"], super::LetterCase::Exact).on_output());
        let client = client.advisor(leaves.tool_loop().build()?);
        client.advisor_in(super::Phase::Turn, leaves.memory()).build()
    });
}

/// Judges each call, while everything else streams on. `work` may run, others become a text.
fn judges(points: AwaitPoints) -> impl StreamAdvisor {
    BlockPolicy::new(move |pending: PendingBlock| {
        let points = points.clone();
        async move {
            // An await point: the turn also stops while a judge works.
            let is_reached = points.pass("judge").await.is_ok();
            let is_allowed = is_reached && pending.call().is_some_and(|call| call.name == "work");
            Ok(if is_allowed { Verdict::Allow } else { Verdict::deny("") })
        }
    })
}

mod one_that_judges_with_memory_outside {
    super::crash_points_of_chain!(|leaves: &super::Leaves| {
        let client = leaves.client().advisor(super::judges(leaves.points.clone()));
        let client = client.advisor(leaves.tool_loop().build()?);
        client.advisor_in(super::Phase::Turn, leaves.memory()).build()
    });
}

/// Retrieves with a retriever that waits. The final answers name its document, so they have citations.
fn retrieves(points: AwaitPoints) -> Retrieval {
    Retrieval::new(move |query: Query| {
        let points = points.clone();
        async move {
            points.pass("retriever").await?;
            Ok(vec![Document::new("echo", query.text)])
        }
    })
}

/// Replaces a word of each answer by a number in brackets.
fn names_documents() -> ReplaceText {
    ReplaceText::for_words([("all", "[1]")], LetterCase::Ignore)
}

mod one_that_retrieves_with_memory_outside {
    super::crash_points_of_chain!(|leaves: &super::Leaves| {
        let client = leaves.client().advisor(super::retrieves(leaves.points.clone()));
        let client = client.advisor(super::names_documents()).advisor(leaves.tool_loop().build()?);
        client.advisor_in(super::Phase::Turn, leaves.memory()).build()
    });
}

/// An embedding model that waits.
struct Waiting(AwaitPoints);

#[async_trait]
impl EmbeddingModel for Waiting {
    async fn embed(&self, texts: &[Text]) -> Result<Vec<Embedding>> {
        self.0.pass("embeddings").await?;
        WordEmbeddings::new().embed(texts).await
    }
}

mod one_that_remembers_past_turns {
    super::crash_points_of_chain!(|leaves: &super::Leaves| {
        let past =
            super::PastTurns::new(super::Waiting(leaves.points.clone()), super::InMemoryVectors::new());
        let client = leaves.client().advisor(past).advisor(leaves.tool_loop().build()?);
        client.advisor(leaves.memory()).build()
    });
}

/// Makes calls of the words in brackets.
fn calls_in_text() -> impl StreamAdvisor {
    from_fn("calls in text", |request: ChatRequest, next: AdvisorChain| async move {
        Ok(next.next_stream(request).await?.edit_with(Calling::default()))
    })
    .with_placement(Placement::new(Phase::ModelCall))
}

#[tokio::test]
async fn law_k4_m6_every_point_of_turns_with_calls_in_text() {
    let scenario = Scenario::new("calls in text", || {
        let calls = Answer::new().text("I [wo").text("rk] and [once].").finish(FinishReason::Stop);
        vec![calls, Answer::new().text("All ").text("done.").finish(FinishReason::Stop)]
    });
    assert!(every_point_of_advisor(calls_in_text, scenario, &[]).await > 0);
}

/// The leaves' client around a model of one's own.
/// The model, with itself as its fallback.
fn with_fallback(leaves: &Leaves) -> FallbackModel {
    FallbackModel::new(Arc::clone(&leaves.model)).with_fallback(Arc::clone(&leaves.model))
}

fn client_of(model: impl ChatModel, leaves: &Leaves) -> Result<ChatClient> {
    let client = ChatClient::builder(model).tools(&leaves.tools).advisor(leaves.tool_loop().build()?);
    client.advisor(leaves.memory()).build()
}

mod a_fallback_before_output {
    super::crash_points_of_chain!(|leaves: &super::Leaves| {
        let model = super::with_fallback(leaves);
        super::client_of(model, leaves)
    });
}

mod a_fallback_after_output {
    super::crash_points_of_chain!(|leaves: &super::Leaves| {
        let model = super::with_fallback(leaves);
        super::client_of(model.with_restart_after_output(), leaves)
    });
}
