//! Tests of closures as editors: whatever one does, the output is well-formed, and all reports of it are equal.

use advisor_chain::messages::{BlockHead, Citation, Opaque};
use advisor_tests::lines::short;
use advisor_tests::prelude::*;
use advisor_tests::reading::{Run, read_stream};
use advisor_tests::tools::tool;
use futures::stream;

type Edit = fn(Chunk, &mut EditedChunks<'_>);

fn loudly(chunk: Chunk, out: &mut EditedChunks<'_>) {
    out.push(match chunk {
        Chunk::Delta { block, delta: BlockDelta::Text(text) } => {
            Chunk::Delta { block, delta: BlockDelta::Text(text.to_uppercase().into()) }
        }
        other => other,
    });
}

fn without_calls(chunk: Chunk, out: &mut EditedChunks<'_>) {
    if !matches!(&chunk, Chunk::Opened { head, .. } if head.kind == BlockKind::ToolCall) {
        out.push(chunk);
    }
}

fn never_close(chunk: Chunk, out: &mut EditedChunks<'_>) {
    if !is_closed(&chunk) {
        out.push(chunk);
    }
}

fn editing(edit: Edit) -> impl StreamAdvisor {
    from_fn("editing", move |request: ChatRequest, next: AdvisorChain| async move {
        Ok(next.next_stream(request).await?.edit_with(edit))
    })
}

/// A client with these answers, the editor outside the tool loop.
fn client(
    edit: Edit,
    mode: ToolCallStreaming,
    answers: impl IntoIterator<Item = Answer>,
) -> ChatClientBuilder {
    ChatClient::builder(ScriptedModel::new(answers))
        .advisor(editing(edit))
        .advisor(ToolCallAdvisor::builder().streaming(mode).build().unwrap())
        .tool(tool("look", "sunny"))
}

async fn ask(client: ChatClientBuilder) -> Run {
    read_stream(client.build().unwrap().prompt().user("go").stream()).await
}

fn calling() -> Answer {
    Answer::new().text("looking").call("c1", "look", "{}").finish(FinishReason::ToolCalls)
}

#[tokio::test]
async fn law_s4_transcript_equals_edited_output() {
    use ToolCallStreaming::{All, FinalAnswerOnly, TextOnly};
    for (mode, edit, expected) in [
        (TextOnly, loudly as Edit, &["go", "LOOKING(look)", "= sunny", "DONE"][..]),
        (All, loudly, &["go", "LOOKING(look)", "= sunny", "DONE"]),
        // The editor never saw the first round.
        (FinalAnswerOnly, loudly, &["go", "looking(look)", "= sunny", "DONE"]),
        // Nor did it see calls; where it does and leaves them out, their results would answer nothing.
        (TextOnly, without_calls, &["go", "looking(look)", "= sunny", "done"]),
        (All, without_calls, &["go", "looking", "done"]),
        (TextOnly, |_, _| {}, &["go", "(look)", "= sunny"]),
        (All, |_, _| {}, &["go"]),
    ] {
        let out = ask(client(edit, mode, [calling(), Answer::from_text("done")])).await;
        let response = out.response();
        assert_eq!(short(&response.transcript), expected, "{mode:?}");
        let messages: Vec<_> = response.transcript.iter().collect();
        for round in out.rounds().filter(|round| !round.message().is_empty_answer()) {
            assert!(
                messages.iter().any(|message| message.is_same(round.message())),
                "{mode:?}: the same twice"
            );
        }
    }
}

#[tokio::test]
async fn law_s4_broken_answer_and_history_hold_editor_output() {
    let broken = || Error::new(ErrorKind::Connection, "the connection broke");
    let answers = || [calling(), Answer::new().text("hal").text("f").error(broken())];
    let error = ask(client(loudly, ToolCallStreaming::TextOnly, answers())).await.outcome.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Connection);
    assert!(error.emitted());
    assert_eq!(error.partial().unwrap().text(), "HALF");
    assert_eq!(short(error.history().unwrap()), ["go", "LOOKING(look)", "= sunny"]);

    let unchanged: Edit = |chunk, out| out.push(chunk);
    let error = ask(client(unchanged, ToolCallStreaming::TextOnly, answers())).await.outcome.unwrap_err();
    assert_eq!(error.partial().unwrap().text(), "half");
    assert_eq!(short(error.history().unwrap()), ["go", "looking(look)", "= sunny"]);

    let error = ask(client(loudly, ToolCallStreaming::FinalAnswerOnly, answers())).await.outcome.unwrap_err();
    assert_eq!(error.partial().unwrap().text(), "half", "nobody saw it");
    assert_eq!(short(error.history().unwrap()), ["go", "looking(look)", "= sunny"]);
}

/// Cannot record this step.
struct Forgetful(fn(&Step) -> bool);

#[async_trait]
impl TurnRecorder for Forgetful {
    async fn record(&self, record: &Record) -> Result<()> {
        if self.0(&record.step) {
            return Err(Error::new(ErrorKind::NotPersisted, "the store is gone"));
        }
        Ok(())
    }
}

/// The answer that was shown becomes final only with the error: its round is never said to have ended.
#[tokio::test]
async fn law_s4_unpersisted_answer_holds_editor_output() {
    for (forgets, history) in [
        (
            (|step| *step == Step::Answer) as fn(&Step) -> bool,
            &["go", "LOOKING(look)", "= not started: an error ended the turn"][..],
        ),
        (|step| *step == Step::Results, &["go", "LOOKING(look)", "= sunny"]),
    ] {
        let forgetful = from_fn("forgetful", move |request: ChatRequest, next: AdvisorChain| async move {
            request.turn.add_recorder(Arc::new(Forgetful(forgets)));
            next.next_stream(request).await
        });
        let client = client(loudly, ToolCallStreaming::TextOnly, [calling()]).advisor(forgetful);
        let error = ask(client).await.outcome.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotPersisted);
        assert_eq!(error.partial().unwrap().text(), "LOOKING");
        assert_eq!(short(error.history().unwrap()), history);
        let partial = error.partial().unwrap().message();
        assert!(error.history().unwrap().iter().any(|message| message.is_same(partial)));
    }
}

fn text(block: BlockId, text: &'static str) -> Chunk {
    Chunk::Delta { block, delta: BlockDelta::Text(text.into()) }
}

/// Tests ways in which an editor can break blocks, over a round with a call and one without.
#[tokio::test]
async fn law_s3_whatever_an_editor_does_blocks_stay_well_formed() {
    let table: [(&str, Edit, [&str; 2]); 6] = [
        ("never closes", never_close, ["looking", "done"]),
        (
            "opens again what has closed",
            |chunk, out| {
                let block = chunk.block();
                out.push(chunk.clone());
                if let (true, Some(block)) = (is_closed(&chunk), block) {
                    out.push(Chunk::Opened { block, head: BlockHead::new(BlockKind::Text) });
                    out.push(text(block, "again"));
                }
            },
            ["looking", "done"],
        ),
        (
            "closes too early",
            |chunk, out| {
                out.push(chunk.clone());
                if let Chunk::Opened { block, .. } = chunk {
                    out.push(Chunk::Closed { block, content: Block::text("nothing yet") });
                }
            },
            ["", ""],
        ),
        (
            "closes what has not opened",
            |chunk, out| {
                if let Chunk::Opened { block, .. } = &chunk {
                    out.push(text(*block, "early"));
                    out.push(Chunk::Closed { block: *block, content: Block::text("early") });
                }
                out.push(chunk);
            },
            ["looking", "done"],
        ),
        (
            "ends the round by itself, and twice",
            |chunk, out| {
                if is_closed(&chunk) {
                    out.push(Chunk::RoundCompleted(early_end(chunk.round())));
                    out.push(Chunk::Completed(early_end(chunk.round())));
                }
                if matches!(chunk, Chunk::RoundCompleted(_)) {
                    out.push(chunk.clone());
                }
                out.push(chunk);
            },
            ["looking", "done"],
        ),
        (
            "goes on after the round",
            |chunk, out| {
                let ended = matches!(chunk, Chunk::RoundCompleted(_)).then(|| BlockId::new(chunk.round(), 0));
                never_close(chunk, out);
                if let Some(block) = ended {
                    out.push(text(block, "late"));
                    Chunk::from_block(block, &Block::text("late")).for_each(|chunk| out.push(chunk));
                }
            },
            ["looking", "done"],
        ),
    ];
    for (what, edit, texts) in table {
        eprintln!("{what}");
        for mode in MODES {
            let out = ask(client(edit, mode, [calling(), Answer::from_text("done")])).await;
            let response = out.response();
            assert_eq!(response.text(), texts[1], "{what}, {mode:?}");
            let first = if mode == ToolCallStreaming::FinalAnswerOnly { "" } else { texts[0] };
            assert_eq!(
                [out.fold().text(1).as_str(), &out.fold().text(2)],
                [first, texts[1]],
                "{what}, {mode:?}"
            );
        }
    }
}

fn early_end(round: u32) -> ChatResponse {
    ChatResponse::new(round, Message::assistant("early"), FinishReason::Stop)
}

fn is_closed(chunk: &Chunk) -> bool {
    matches!(chunk, Chunk::Closed { .. })
}

/// Returns a block of every kind.
fn blocks_of_every_kind() -> Vec<Block> {
    vec![
        Block::text("text"),
        Block::new(BlockContent::Reasoning("hm".into())),
        Block::new(BlockContent::Refusal("no".into())),
        Block::from(ToolCall::new("c1", "look", "{}")),
        Block::new(BlockContent::Media(Media::from_url("image/png", "https://example.org/a.png"))),
        Block::new(BlockContent::Citation(Citation::default())),
        Block::new(BlockContent::Opaque(Opaque::new("made-up", "thing", json!(1)))),
    ]
}

/// Nor does a second delta of a block that is one piece come out.
#[tokio::test]
async fn law_s4_delta_extends_only_block_of_same_kind() {
    let blocks = blocks_of_every_kind();
    for content in &blocks {
        for other in &blocks {
            let (one_piece, same) =
                (BlockDelta::from_content(content.content()).unwrap(), content.kind() == other.kind());
            let is_text = matches!(
                content.kind(),
                BlockKind::Text | BlockKind::Reasoning | BlockKind::Refusal | BlockKind::ToolCall
            );
            let delta = BlockDelta::from_content(other.content()).unwrap();
            let answer =
                ChatResponse::new(1, Message::assistant_blocks(vec![content.clone()]), FinishReason::Stop);
            let stream =
                ChunkStream::answer(answer).edit_with(move |chunk: Chunk, out: &mut EditedChunks<'_>| {
                    if let Some(block) = chunk.block().filter(|_| is_closed(&chunk)) {
                        out.push(Chunk::Delta { block, delta: delta.clone() });
                    }
                    out.push(chunk);
                });
            let mut deltas = Vec::new();
            let out = read_stream(stream.inspect(|chunk| {
                if let Ok(Chunk::Delta { delta, .. }) = chunk {
                    deltas.push(delta.clone());
                }
            }))
            .await;
            let expected = if same && is_text { 2 } else { 1 };
            assert_eq!(deltas, vec![one_piece; expected], "{:?} into {:?}", other.kind(), content.kind());
            let shown = out.fold().blocks(1);
            let told: Vec<_> = out.outcome.unwrap().blocks().map(|(id, block)| (id, block.clone())).collect();
            assert_eq!(shown, told);
        }
    }
}

/// A stream of these chunks and the answer of one text at their end.
fn scripted(chunks: Vec<Chunk>, round: u32, text: &str) -> ChunkStream {
    let answer = ChatResponse::new(round, Message::assistant(text), FinishReason::Stop);
    let last = Chunk::from_block(BlockId::new(round, 0), &Block::text(text));
    let chunks = chunks.into_iter().chain(last).chain([Chunk::Completed(answer)]);
    ChunkStream::new(stream::iter(chunks.map(Ok).collect::<Vec<_>>()))
}

#[tokio::test]
async fn law_s3_blocks_left_open_close_before_next_round() {
    // Nobody says that round 1 ended: an advisor asked twice.
    let first: Vec<_> = Chunk::from_block(BlockId::new(1, 0), &Block::text("let me see")).collect();
    let out = read_stream(scripted(first, 2, "done").edit_with(never_close)).await;
    assert_eq!([out.fold().text(1), out.fold().text(2)], ["let me see", "done"]);
    assert_eq!(out.outcome.unwrap().text(), "done");
}

#[tokio::test]
async fn law_s4_void_attempt_does_not_change_the_next() {
    let block = BlockId::new(1, 0);
    let void =
        |head| vec![Chunk::Opened { block, head }, text(block, "vo"), Chunk::AttemptRestarted { round: 1 }];
    let out = read_stream(scripted(void(BlockHead::new(BlockKind::Text)), 1, "done").edit_with(loudly)).await;
    assert_eq!(out.fold().text(1), "DONE");
    assert_eq!(out.outcome.unwrap().text(), "DONE");

    // A block that only the response of the second attempt has stays unchanged, even if the first attempt
    // showed its id.
    let answer = ChatResponse::new(1, Message::assistant("unseen"), FinishReason::Stop);
    let mut chunks = void(BlockHead::new(BlockKind::Text));
    chunks.push(Chunk::Completed(answer));
    let unseen = ChunkStream::new(stream::iter(chunks.into_iter().map(Ok).collect::<Vec<_>>()));
    assert_eq!(read_stream(unseen.edit_with(loudly)).await.outcome.unwrap().text(), "unseen");
}
