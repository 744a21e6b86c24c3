//! `FallbackModel` and `AdvisorChain::with_model`: another model answers in the same round, under the same
//! promise.

use advisor_chain::ChatOptions;
use advisor_chain::chain::FallbackModel;
use advisor_chain::messages::{BlockHead, ToolEvent};
use advisor_tests::prelude::*;
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

struct Setting {
    client: ChatClient,
    memory: ChatMemoryAdvisor,
    journal: Journal,
}

impl Setting {
    fn new(model: impl ChatModel, mode: ToolCallStreaming, remembers: Phase) -> Self {
        let (journal, memory) = (Journal::new(), ChatMemoryAdvisor::new(InMemoryStore::new()));
        let look = ToolDefinition::new("look", "Looks.", json!({"type": "object"}));
        let in_tool = journal.clone();
        let client = ChatClient::builder(model)
            .advisor(ToolCallAdvisor::builder().streaming(mode).build().unwrap())
            .advisor_in(remembers, memory.clone())
            .tool(FnTool::new(look, move |_: Value| {
                in_tool.record("tool");
                async { Ok("sunny") }
            }))
            .build()
            .unwrap();
        Self { client, memory, journal }
    }

    /// Reads a turn to its end. Returns the fold of its chunks, the number of restarts, and its text.
    async fn ask(&self) -> Result<(ChunkFold, usize, String)> {
        let mut turn = self.client.prompt().user("go").conversation("c").stream();
        let (mut shown, mut restarts) = (ChunkFold::new(), 0);
        loop {
            let chunk = turn.next().await.expect("a turn ends with `Completed` or an error")?;
            shown.push(&chunk);
            restarts += usize::from(matches!(chunk, Chunk::AttemptRestarted { .. }));
            if let Chunk::Completed(response) = chunk {
                let text = response.text();
                assert!(shown.text(response.round()).ends_with(&text));
                return Ok((shown, restarts, text));
            }
        }
    }

    async fn remembered(&self) -> Vec<String> {
        let transcript = self.memory.transcript(&ConversationKey::new("c").unwrap()).await.unwrap();
        assert_eq!(validate_transcript(&transcript), [], "{transcript:?}");
        transcript.iter().map(Message::text).collect()
    }
}

#[tokio::test]
async fn next_model_is_asked_if_nothing_was_shown() {
    for broken in [Answer::refused(down()), Answer::new().error(down())] {
        let first = ScriptedModel::new([broken]);
        let second = ScriptedModel::new([Answer::refused(failed(ErrorKind::Connection))]);
        let third = ScriptedModel::new([Answer::from_text("Here.")]);
        let model =
            FallbackModel::new(first.clone()).with_fallback(second.clone()).with_fallback(third.clone());
        let setting = Setting::new(model, ToolCallStreaming::TextOnly, Phase::Round);
        let (_, restarts, text) = setting.ask().await.unwrap();
        assert_eq!((restarts, text.as_str()), (0, "Here."));
        assert_eq!([first.calls(), second.calls(), third.calls()], [1, 1, 1]);
        assert_eq!(setting.remembered().await, ["go", "Here."]);
    }
}

#[tokio::test]
async fn after_output_the_error_is_passed_on() {
    let first = ScriptedModel::new([Answer::new().text("He").error(down())]);
    let second = ScriptedModel::new([Answer::from_text("Here.")]);
    let model = FallbackModel::new(first).with_fallback(second.clone());
    let error = Setting::new(model, ToolCallStreaming::TextOnly, Phase::Round).ask().await.unwrap_err();
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
    let delta = |delta| Chunk::Delta { block, delta };
    let call = ToolCall::new("c", "look", "{}");
    let kinds = [BlockKind::Text, BlockKind::Reasoning, BlockKind::Refusal, BlockKind::Media];
    let kinds = kinds.into_iter().chain([BlockKind::Citation, BlockKind::ToolCall, BlockKind::Opaque]);
    let others = [
        delta(BlockDelta::Reasoning("Hm.".into())),
        delta(BlockDelta::Refusal("No.".into())),
        delta(BlockDelta::Arguments("{".into())),
        delta(BlockDelta::Media(Box::new(Media::from_url("image/png", "https://e.com/a")))),
        Chunk::Closed { block, content: Block::from(call.clone()) },
        Chunk::Tool(Box::new(ToolEvent::new(
            block,
            call.id.clone(),
            call.name,
            ToolEventKind::Started { arguments: "{}".into() },
        ))),
        Chunk::Usage { round: 1, usage: Box::default() },
        Chunk::RoundCompleted(ChatResponse::new(1, Message::assistant(""), FinishReason::Stop)),
    ];
    for first in kinds.map(opened).chain(others) {
        let second = ScriptedModel::new([Answer::from_text("Here.")]);
        let model = FallbackModel::new(ShowsAndFails(first.clone())).with_fallback(second.clone());
        let mut stream = model.stream(ChatRequest::new(Message::user("go"))).await.unwrap();
        assert_eq!(stream.next().await.unwrap().unwrap(), first);
        assert_eq!(stream.next().await.unwrap().unwrap_err().kind(), down().kind(), "{first:?}");
        assert!(second.calls() == 0 && stream.next().await.is_none(), "{first:?}");
    }
}

#[tokio::test]
async fn unknown_model_falls_back_to_next_one() {
    let first = ScriptedModel::new([Answer::refused(failed(ErrorKind::NotFound))]);
    let model = FallbackModel::new(first).with_fallback(ScriptedModel::new([Answer::from_text("Here.")]));
    let (_, _, text) = Setting::new(model, ToolCallStreaming::TextOnly, Phase::Round).ask().await.unwrap();
    assert_eq!(text, "Here.");
}

#[tokio::test]
async fn error_not_caused_by_model_is_passed_on() {
    for kind in
        [ErrorKind::InvalidHistory, ErrorKind::InvalidRequest, ErrorKind::Configuration, ErrorKind::Cancelled]
    {
        let second = ScriptedModel::new([]);
        let model = FallbackModel::new(ScriptedModel::new([Answer::refused(failed(kind))]))
            .with_fallback(second.clone());
        let error = Setting::new(model, ToolCallStreaming::TextOnly, Phase::Round).ask().await.unwrap_err();
        assert_eq!((error.kind(), second.calls()), (kind, 0));
    }
}

#[tokio::test]
async fn the_error_of_the_last_model_is_returned() {
    let models = [ErrorKind::Connection, ErrorKind::Timeout, ErrorKind::Authentication]
        .map(|kind| ScriptedModel::new([Answer::refused(failed(kind))]));
    let [first, second, third] = models;
    let model = FallbackModel::new(first).with_fallback(second).with_fallback(third);
    let error = Setting::new(model, ToolCallStreaming::TextOnly, Phase::Round).ask().await.unwrap_err();
    assert_eq!((error.kind(), error.emitted()), (ErrorKind::Authentication, false));
}

/// Shown content of the first attempt is void: no response, memory or fold contains it.
#[tokio::test]
async fn law_s4_k3_restart_after_output_voids_shown_chunks() {
    for mode in [ToolCallStreaming::TextOnly, ToolCallStreaming::FinalAnswerOnly, ToolCallStreaming::All] {
        for remembers in [Phase::Round, Phase::Turn] {
            eprintln!("{mode:?} {remembers}");
            let first = ScriptedModel::new([
                Answer::new().text("void").call("c0", "look", "{\"a\":").error(down()),
                Answer::new().text("void as well").error(down()),
            ]);
            let second = ScriptedModel::new([calling(), Answer::from_text("Done.")]);
            let model = FallbackModel::new(first).with_fallback(second).with_restart_after_output();
            let setting = Setting::new(model, mode, remembers);
            let (shown, restarts, text) = setting.ask().await.unwrap();
            assert_eq!((restarts, text.as_str()), (2, "Done."));
            let before = if mode == ToolCallStreaming::FinalAnswerOnly { "" } else { "let me see" };
            assert_eq!((shown.text(1).as_str(), shown.text(2).as_str()), (before, "Done."));
            setting.journal.assert_count("tool", 1);
            assert_eq!(setting.remembered().await, ["go", "let me see", "sunny", "Done."]);
        }
    }
}

#[tokio::test]
async fn law_k2_k3_turn_dropped_after_restart_remembers_second_attempt() {
    let first = ScriptedModel::new([Answer::new().text("void").error(down())]);
    let second = ScriptedModel::new([Answer::new().text("He").hang()]);
    let model = FallbackModel::new(first).with_fallback(second).with_restart_after_output();
    let setting = Setting::new(model, ToolCallStreaming::TextOnly, Phase::Round);
    let mut turn = setting.client.prompt().user("go").conversation("c").stream();
    while turn.next().await.unwrap().unwrap().text() != Some("He") {}
    drop(turn);
    let remembered = setting.remembered().await;
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
    let look = ToolDefinition::new("look", "Looks.", json!({"type": "object"}));
    let client = ChatClient::builder(small.clone())
        .advisor(ToolCallAdvisor::new())
        .advisor(routing)
        .advisor(counting)
        .tool(FnTool::new(look, |_: Value| async { Ok("sunny") }))
        .build()
        .unwrap();
    assert_eq!(client.prompt().user("go").call().await.unwrap().text(), "Done.");
    assert_eq!((small.calls(), large.calls()), (0, 2));
    assert_eq!(journal.labels(), ["inner r1", "inner r2"]);
}
