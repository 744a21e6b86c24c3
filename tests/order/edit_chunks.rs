//! Tests of `edit_chunks`: for any editor, the output is well-formed, and all reports of it are equal.

use std::collections::VecDeque;

use advisor_chain::messages::{BlockHead, Citation, Opaque};
use advisor_tests::prelude::*;
use futures::stream;

use crate::checked::{Out, read};

type Edit = fn(Chunk, &mut VecDeque<Chunk>);

fn loudly(chunk: Chunk, out: &mut VecDeque<Chunk>) {
    out.push_back(match chunk {
        Chunk::Delta { block, delta: BlockDelta::Text(text) } => {
            Chunk::Delta { block, delta: BlockDelta::Text(text.to_uppercase().into()) }
        }
        other => other,
    });
}

fn without_calls(chunk: Chunk, out: &mut VecDeque<Chunk>) {
    if !matches!(&chunk, Chunk::Opened { head, .. } if head.kind == BlockKind::ToolCall) {
        out.push_back(chunk);
    }
}

fn editing(edit: Edit) -> impl StreamAdvisor {
    from_fn("editing", move |request: ChatRequest, next: AdvisorChain| async move {
        Ok(next.next_stream(request).await?.edit_chunks(edit))
    })
}

/// A client with these answers, the editor outside the tool loop.
fn client(
    edit: Edit,
    mode: ToolCallStreaming,
    answers: impl IntoIterator<Item = Answer>,
) -> ChatClientBuilder {
    let look = ToolDefinition::new("look", "Looks.", json!({"type": "object"}));
    ChatClient::builder(ScriptedModel::new(answers))
        .advisor(editing(edit))
        .advisor(ToolCallAdvisor::builder().streaming(mode).build().unwrap())
        .tool(FnTool::new(look, |_: Value| async { Ok("sunny") }))
}

async fn ask(client: ChatClientBuilder) -> Out {
    read(client.build().unwrap().prompt().user("go").stream()).await
}

fn calling() -> Answer {
    Answer::new().text("looking").call("c1", "look", "{}").finish(FinishReason::ToolCalls)
}

/// The messages in short: `go`, `looking (c1)`, `= sunny`.
fn lines(messages: &MessageList) -> Vec<String> {
    let line = |message: &Message| match message.role() {
        Role::Tool => format!("= {}", message.text()),
        _ => message.tool_calls().fold(message.text(), |line, call| format!("{line} ({})", call.id)),
    };
    messages.iter().map(line).collect()
}

#[tokio::test]
async fn law_s4_transcript_equals_edited_output() {
    use ToolCallStreaming::{All, FinalAnswerOnly, TextOnly};
    for (mode, edit, expected) in [
        (TextOnly, loudly as Edit, &["go", "LOOKING (c1)", "= sunny", "DONE"][..]),
        (All, loudly, &["go", "LOOKING (c1)", "= sunny", "DONE"]),
        // The editor never saw the first round.
        (FinalAnswerOnly, loudly, &["go", "looking (c1)", "= sunny", "DONE"]),
        // Nor did it see calls; where it does and leaves them out, their results would answer nothing.
        (TextOnly, without_calls, &["go", "looking (c1)", "= sunny", "done"]),
        (All, without_calls, &["go", "looking", "done"]),
        (TextOnly, |_, _| {}, &["go", " (c1)", "= sunny"]),
        (All, |_, _| {}, &["go"]),
    ] {
        let out = ask(client(edit, mode, [calling(), Answer::from_text("done")])).await;
        let response = out.outcome.unwrap();
        assert_eq!(lines(response.transcript()), expected, "{mode:?}");
        let messages: Vec<_> = response.transcript().iter().collect();
        for round in out.rounds.iter().filter(|round| !round.message().is_empty_answer()) {
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
    assert_eq!(lines(error.history().unwrap()), ["go", "LOOKING (c1)", "= sunny"]);

    let unchanged: Edit = |chunk, out| out.push_back(chunk);
    let error = ask(client(unchanged, ToolCallStreaming::TextOnly, answers())).await.outcome.unwrap_err();
    assert_eq!(error.partial().unwrap().text(), "half");
    assert_eq!(lines(error.history().unwrap()), ["go", "looking (c1)", "= sunny"]);

    let error = ask(client(loudly, ToolCallStreaming::FinalAnswerOnly, answers())).await.outcome.unwrap_err();
    assert_eq!(error.partial().unwrap().text(), "half", "nobody saw it");
    assert_eq!(lines(error.history().unwrap()), ["go", "looking (c1)", "= sunny"]);
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
            &["go", "LOOKING (c1)", "= not started: an error ended the turn"][..],
        ),
        (|step| *step == Step::Results, &["go", "LOOKING (c1)", "= sunny"]),
    ] {
        let forgetful = from_fn("forgetful", move |request: ChatRequest, next: AdvisorChain| async move {
            request.turn.add_recorder(Arc::new(Forgetful(forgets)));
            next.next_stream(request).await
        });
        let client = client(loudly, ToolCallStreaming::TextOnly, [calling()]).advisor(forgetful);
        let error = ask(client).await.outcome.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotPersisted);
        assert_eq!(error.partial().unwrap().text(), "LOOKING");
        assert_eq!(lines(error.history().unwrap()), history);
        let partial = error.partial().unwrap().message();
        assert!(error.history().unwrap().iter().any(|message| message.is_same(partial)));
    }
}

fn text(block: BlockId, text: &'static str) -> Chunk {
    Chunk::Delta { block, delta: BlockDelta::Text(text.into()) }
}

/// Tests every way in which an editor can break blocks, over a round with a call and one without.
#[tokio::test]
async fn law_s3_whatever_an_editor_does_blocks_stay_well_formed() {
    let table: [(&str, Edit, [&str; 2]); 13] = [
        (
            "never closes",
            |chunk, out| out.extend(Some(chunk).filter(|chunk| !is_closed(chunk))),
            ["looking", "done"],
        ),
        (
            "closes twice",
            |chunk, out| {
                out.extend(Some(chunk.clone()).filter(is_closed));
                out.push_back(chunk);
            },
            ["looking", "done"],
        ),
        (
            "opens twice",
            |chunk, out| {
                out.extend(Some(chunk.clone()).filter(|chunk| matches!(chunk, Chunk::Opened { .. })));
                out.push_back(chunk);
            },
            ["looking", "done"],
        ),
        (
            "opens again what has closed",
            |chunk, out| {
                let block = chunk.block();
                out.push_back(chunk.clone());
                if let (true, Some(block)) = (is_closed(&chunk), block) {
                    out.push_back(Chunk::Opened { block, head: BlockHead::new(BlockKind::Text) });
                    out.push_back(text(block, "again"));
                }
            },
            ["looking", "done"],
        ),
        (
            "goes on with what has closed",
            |chunk, out| {
                out.push_back(chunk.clone());
                if let Chunk::Closed { block, .. } = chunk {
                    out.push_back(text(block, "and on"));
                }
            },
            ["looking", "done"],
        ),
        (
            "closes too early",
            |chunk, out| {
                out.push_back(chunk.clone());
                if let Chunk::Opened { block, .. } = chunk {
                    out.push_back(Chunk::Closed { block, content: Block::text("nothing yet") });
                }
            },
            ["", ""],
        ),
        (
            "closes what has not opened",
            |chunk, out| {
                if let Chunk::Opened { block, .. } = &chunk {
                    out.push_back(text(*block, "early"));
                    out.push_back(Chunk::Closed { block: *block, content: Block::text("early") });
                }
                out.push_back(chunk);
            },
            ["looking", "done"],
        ),
        (
            "adds blocks of its own",
            |chunk, out| {
                if let Chunk::Closed { block, .. } = &chunk {
                    let own = BlockId::new(block.round, block.position() + 40);
                    out.extend(Chunk::from_block(own, &Block::text("by the way")));
                }
                out.push_back(chunk);
            },
            ["looking", "done"],
        ),
        (
            "puts text into whatever block closes",
            |chunk, out| {
                if let Chunk::Closed { block, content } = &chunk
                    && content.kind() != BlockKind::Text
                {
                    out.push_back(text(*block, "by the way"));
                }
                out.push_back(chunk);
            },
            ["looking", "done"],
        ),
        (
            "ends the answer by itself",
            |chunk, out| {
                out.extend(is_closed(&chunk).then(|| early_end(chunk.round())));
                out.push_back(chunk);
            },
            ["looking", "done"],
        ),
        (
            "ends the round by itself, and twice",
            |chunk, out| {
                out.extend(
                    is_closed(&chunk)
                        .then(|| early_end(chunk.round()))
                        .and_then(|chunk| chunk.completed().cloned().map(Chunk::RoundCompleted)),
                );
                out.extend(matches!(chunk, Chunk::RoundCompleted(_)).then(|| chunk.clone()));
                out.push_back(chunk);
            },
            ["looking", "done"],
        ),
        (
            "opens after the round",
            |chunk, out| {
                let ended = matches!(chunk, Chunk::RoundCompleted(_)).then(|| BlockId::new(chunk.round(), 0));
                out.extend(Some(chunk).filter(|chunk| !matches!(chunk, Chunk::Opened { .. })));
                out.extend(
                    ended.into_iter().flat_map(|block| Chunk::from_block(block, &Block::text("late"))),
                );
            },
            ["", ""],
        ),
        (
            "goes on after the round",
            |chunk, out| {
                let ended = matches!(chunk, Chunk::RoundCompleted(_)).then(|| BlockId::new(chunk.round(), 0));
                out.extend(Some(chunk).filter(|chunk| !is_closed(chunk)));
                if let Some(block) = ended {
                    out.push_back(text(block, "late"));
                    out.extend(Chunk::from_block(block, &Block::text("late")));
                }
            },
            ["looking", "done"],
        ),
    ];
    for (what, edit, texts) in table {
        eprintln!("{what}");
        for mode in [ToolCallStreaming::All, ToolCallStreaming::TextOnly, ToolCallStreaming::FinalAnswerOnly]
        {
            let out = ask(client(edit, mode, [calling(), Answer::from_text("done")])).await;
            let response = out.outcome.unwrap();
            assert_eq!(response.text(), texts[1], "{what}, {mode:?}");
            let first = if mode == ToolCallStreaming::FinalAnswerOnly { "" } else { texts[0] };
            assert_eq!([out.fold.text(1).as_str(), &out.fold.text(2)], [first, texts[1]], "{what}, {mode:?}");
        }
    }
}

fn early_end(round: u32) -> Chunk {
    Chunk::Completed(ChatResponse::new(round, Message::assistant("early"), FinishReason::Stop))
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

/// Text pushed into the block of a call was shown, and was in no response and no memory.
#[tokio::test]
async fn text_inside_call_block_is_not_shown() {
    let edit: Edit = |chunk, out| {
        if let Chunk::Closed { block, content } = &chunk
            && content.kind() == BlockKind::ToolCall
        {
            out.push_back(text(*block, "and the sword"));
        }
        out.push_back(chunk);
    };
    let answer = Answer::new().call("c1", "look", "{}").text("I hold").finish(FinishReason::ToolCalls);
    let mut shown = String::new();
    let client = client(edit, ToolCallStreaming::All, [answer, Answer::from_text("done")]).build().unwrap();
    let out = read(client.prompt().user("go").stream().inspect(|chunk| {
        shown.push_str(chunk.as_ref().ok().and_then(Chunk::text).unwrap_or_default());
    }))
    .await;
    let told = lines(out.outcome.unwrap().transcript());
    assert_eq!(
        (shown.as_str(), &*told),
        ("I holddone", &["go", "I hold (c1)", "= sunny", "done"].map(String::from)[..])
    );
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
            let stream = ChunkStream::answer(answer).edit_chunks(move |chunk, out| {
                let closed = chunk.block().filter(|_| is_closed(&chunk));
                out.extend(closed.map(|block| Chunk::Delta { block, delta: delta.clone() }));
                out.push_back(chunk);
            });
            let mut deltas = Vec::new();
            let out = read(stream.inspect(|chunk| {
                if let Ok(Chunk::Delta { delta, .. }) = chunk {
                    deltas.push(delta.clone());
                }
            }))
            .await;
            let expected = if same && is_text { 2 } else { 1 };
            assert_eq!(deltas, vec![one_piece; expected], "{:?} into {:?}", other.kind(), content.kind());
            let shown = out.fold.blocks(1);
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
    let never_closes: Edit = |chunk, out| out.extend(Some(chunk).filter(|chunk| !is_closed(chunk)));
    let out = read(scripted(first, 2, "done").edit_chunks(never_closes)).await;
    assert_eq!([out.fold.text(1), out.fold.text(2)], ["let me see", "done"]);
    assert_eq!(out.outcome.unwrap().text(), "done");
}

#[tokio::test]
async fn law_s4_void_attempt_does_not_change_the_next() {
    let block = BlockId::new(1, 0);
    let void =
        |head| vec![Chunk::Opened { block, head }, text(block, "vo"), Chunk::AttemptRestarted { round: 1 }];
    let out = read(scripted(void(BlockHead::new(BlockKind::Text)), 1, "done").edit_chunks(loudly)).await;
    assert_eq!(out.fold.text(1), "DONE");
    assert_eq!(out.outcome.unwrap().text(), "DONE");

    // A block that only the response of the second attempt has stays unchanged, even if the first attempt
    // showed its id.
    let answer = ChatResponse::new(1, Message::assistant("unseen"), FinishReason::Stop);
    let mut chunks = void(BlockHead::new(BlockKind::Text));
    chunks.push(Chunk::Completed(answer));
    let unseen = ChunkStream::new(stream::iter(chunks.into_iter().map(Ok).collect::<Vec<_>>()));
    assert_eq!(read(unseen.edit_chunks(loudly)).await.outcome.unwrap().text(), "unseen");
}
