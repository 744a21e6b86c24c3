//! `FallbackModel` and `AdvisorChain::with_model`: another model answers in the same round, under the same
//! promise.

use advisor_chain::chain::FallbackModel;
use advisor_chain::messages::BlockHead;
use advisor_tests::prelude::*;
use advisor_tests::reading::{Run, read_stream};
use advisor_tests::scene::Scene;
use advisor_tests::tools::tool;
use futures::stream;

fn failed(kind: ErrorKind) -> Error {
    Error::new(kind, "the model failed")
}

fn down() -> Error {
    failed(ErrorKind::Provider { status: Some(503) })
}

fn calling() -> Answer {
    Answer::new().text("let me see").call("c1", "look", "{}").finish(FinishReason::ToolCalls)
}

/// A chain of this model.
fn scene(model: impl ChatModel, mode: ToolCallStreaming, remembers: Phase) -> Scene {
    Scene::new([]).in_mode(mode).remembering(remembers).with(|client| client.model(model))
}

/// Reads a turn to its end.
async fn ask(model: impl ChatModel) -> Run {
    read_stream(scene(model, ToolCallStreaming::TextOnly, Phase::Round).turn("go")).await
}

/// The number of restarts that a reader has seen.
fn restarts(run: &Run) -> usize {
    run.chunks.iter().filter(|chunk| matches!(chunk, Chunk::AttemptRestarted { .. })).count()
}

#[tokio::test]
async fn next_model_is_asked_if_nothing_was_shown() {
    let unknown = Answer::refused(failed(ErrorKind::NotFound));
    for broken in [Answer::refused(down()), Answer::new().error(down()), unknown] {
        let first = ScriptedModel::new([broken]);
        let second = ScriptedModel::new([Answer::refused(failed(ErrorKind::Connection))]);
        let third = ScriptedModel::new([Answer::from_text("Here.")]);
        let model =
            FallbackModel::new(first.clone()).with_fallback(second.clone()).with_fallback(third.clone());
        let scene = scene(model, ToolCallStreaming::TextOnly, Phase::Round);
        let run = read_stream(scene.turn("go")).await;
        assert_eq!((restarts(&run), run.response().text().as_str()), (0, "Here."));
        assert_eq!([first.calls(), second.calls(), third.calls()], [1, 1, 1]);
        assert_eq!(scene.remembered().await, ["go", "Here."]);
    }
}

#[tokio::test]
async fn after_output_the_error_is_passed_on() {
    let first = ScriptedModel::new([Answer::new().text("He").error(down())]);
    let second = ScriptedModel::new([Answer::from_text("Here.")]);
    let model = FallbackModel::new(first).with_fallback(second.clone());
    let run = ask(model).await;
    let error = run.error();
    assert_eq!((error.kind(), error.emitted()), (down().kind(), true));
    assert_eq!(error.partial().unwrap().text(), "He");
    assert_eq!(second.calls(), 0);
}

/// A model whose answer is one chunk, and fails.
#[derive(Clone)]
struct ShowsAndFails(Chunk);

#[async_trait]
impl ChatModel for ShowsAndFails {
    async fn stream(&self, _: ChatRequest) -> Result<ChunkStream> {
        Ok(ChunkStream::new(stream::iter([Ok(self.0.clone()), Err(down())])))
    }
}

/// Whatever the first chunk is, no other attempt follows it: the reader has it.
#[tokio::test]
async fn a_first_chunk_of_any_kind_counts_as_shown() {
    let block = BlockId::new(1, 0);
    let opened = |kind| Chunk::Opened { block, head: BlockHead::new(kind) };
    let firsts = [
        opened(BlockKind::Text),
        opened(BlockKind::ToolCall),
        Chunk::Delta { block, delta: BlockDelta::Arguments("{".into()) },
        Chunk::Closed { block, content: ToolCall::new("c", "look", "{}").into() },
        Chunk::Usage { round: 1, usage: Box::default() },
        Chunk::RoundCompleted(ChatResponse::new(1, Message::assistant(""), FinishReason::Stop)),
    ];
    for first in firsts {
        let second = ScriptedModel::new([Answer::from_text("Here.")]);
        let model = FallbackModel::new(ShowsAndFails(first.clone())).with_fallback(second.clone());
        let mut stream = model.stream(ChatRequest::new(Message::user("go"))).await.unwrap();
        assert_eq!(stream.next().await.unwrap().unwrap(), first);
        assert_eq!(stream.next().await.unwrap().unwrap_err().kind(), down().kind(), "{first:?}");
        assert!(second.calls() == 0 && stream.next().await.is_none(), "{first:?}");
    }
}

#[tokio::test]
async fn error_not_caused_by_model_is_passed_on() {
    for kind in
        [ErrorKind::InvalidHistory, ErrorKind::InvalidRequest, ErrorKind::Configuration, ErrorKind::Cancelled]
    {
        let second = ScriptedModel::new([]);
        let model = FallbackModel::new(ScriptedModel::new([Answer::refused(failed(kind))]))
            .with_fallback(second.clone());
        let run = ask(model).await;
        let error = run.error();
        assert_eq!((error.kind(), second.calls()), (kind, 0));
    }
}

#[tokio::test]
async fn the_error_of_the_last_model_is_returned() {
    let models = [ErrorKind::Connection, ErrorKind::Timeout, ErrorKind::Authentication]
        .map(|kind| ScriptedModel::new([Answer::refused(failed(kind))]));
    let [first, second, third] = models;
    let model = FallbackModel::new(first).with_fallback(second).with_fallback(third);
    let run = ask(model).await;
    let error = run.error();
    assert_eq!((error.kind(), error.emitted()), (ErrorKind::Authentication, false));
}

/// Shown content of the first attempt is void: no response, memory or fold contains it.
#[tokio::test]
async fn law_s4_k3_restart_after_output_voids_shown_chunks() {
    for mode in MODES {
        for remembers in PLACES {
            eprintln!("{mode:?} {remembers}");
            let first = ScriptedModel::new([
                Answer::new().text("void").call("c0", "look", "{\"a\":").error(down()),
                Answer::new().text("void as well").error(down()),
            ]);
            let second = ScriptedModel::new([calling(), Answer::from_text("Done.")]);
            let model = FallbackModel::new(first).with_fallback(second).with_restart_after_output();
            let scene = scene(model, mode, remembers);
            let run = read_stream(scene.turn("go")).await;
            let shown = run.fold();
            assert_eq!((restarts(&run), run.response().text().as_str()), (2, "Done."));
            let before = if mode == ToolCallStreaming::FinalAnswerOnly { "" } else { "let me see" };
            assert_eq!((shown.text(1).as_str(), shown.text(2).as_str()), (before, "Done."));
            scene.journal.assert_count("tool look", 1);
            assert_eq!(scene.remembered().await, ["go", "let me see(look)", "= sunny", "Done."]);
        }
    }
}

#[tokio::test]
async fn law_k2_k3_turn_dropped_after_restart_remembers_second_attempt() {
    let first = ScriptedModel::new([Answer::new().text("void").error(down())]);
    let second = ScriptedModel::new([Answer::new().text("He").hang()]);
    let model = FallbackModel::new(first).with_fallback(second).with_restart_after_output();
    let scene = scene(model, ToolCallStreaming::TextOnly, Phase::Round);
    let mut turn = scene.turn("go");
    while turn.next().await.unwrap().unwrap().text() != Some("He") {}
    drop(turn);
    let remembered = scene.remembered().await;
    assert!(remembered[1].starts_with("He") && !remembered.concat().contains("void"), "{remembered:?}");
}

#[tokio::test]
async fn a_models_name_is_meant_for_the_first() {
    let first = ScriptedModel::new([Answer::refused(down())]);
    let second = ScriptedModel::new([Answer::from_text("Here.")]);
    let model = FallbackModel::new(first.clone()).with_fallback(second.clone());
    let client = ChatClient::builder(model).build().unwrap();
    let options =
        ChatOptions { temperature: Some(0.5), model: Some("large".into()), ..ChatOptions::default() };
    client.prompt().user("go").options(options.clone()).call().await.unwrap();
    assert_eq!(first.prompts()[0].options.model.as_deref(), Some("large"));
    assert_eq!(second.prompts()[0].options, ChatOptions { temperature: Some(0.5), ..ChatOptions::default() });
}

/// The rest of the chain also wraps the other model, and its rounds have separate numbers.
#[tokio::test]
async fn advisor_asks_other_model_through_rest_of_chain() {
    let (small, large) =
        (ScriptedModel::new([]), ScriptedModel::new([calling(), Answer::from_text("Done.")]));
    let journal = Journal::new();
    let inner = journal.clone();
    let counting = from_fn("counting", move |request: ChatRequest, next: AdvisorChain| {
        let inner = inner.clone();
        async move {
            let answer = next.next_stream(request).await?;
            Ok(answer.on_completed(move |response| async move {
                inner.record(format!("inner r{}", response.round()));
                Ok(response)
            }))
        }
    })
    .with_placement(Placement::new(Phase::ModelCall));
    let other = large.clone();
    let routing = from_fn("routing", move |request: ChatRequest, next: AdvisorChain| {
        let next = next.with_model(other.clone());
        async move { next.next_stream(request).await }
    });
    let client = ChatClient::builder(small.clone())
        .advisor(ToolCallAdvisor::new())
        .advisor(routing)
        .advisor(counting)
        .tool(tool("look", "sunny"))
        .build()
        .unwrap();
    assert_eq!(client.prompt().user("go").call().await.unwrap().text(), "Done.");
    assert_eq!((small.calls(), large.calls()), (0, 2));
    assert_eq!(journal.labels(), ["inner r1", "inner r2"]);
}
