//! Tests of editors that add blocks, replace them by other kinds, and wait: blocks stay well-formed, other blocks
//! do not wait, and the response, the transcript, errors and memory hold what was emitted.

use std::task::{Context, Poll};

use advisor_chain::Turn;
use advisor_chain::chain::ChunkEditor;
use advisor_chain::messages::{BlockHead, Citation, Opaque, ProviderData};
use advisor_tests::editors::{Calling, Judging, verdict};
use advisor_tests::prelude::*;
use advisor_tests::reading::read_stream;
use advisor_tests::tools::{definition, tool};
use proptest::prelude::*;

/// An advisor beside the model with this editor.
fn editing<E: ChunkEditor>(make: impl Fn() -> E + Send + Sync + 'static) -> impl StreamAdvisor {
    from_fn("editing", move |request: ChatRequest, next: AdvisorChain| {
        let editor = make();
        async move { Ok(next.next_stream(request).await?.edit_with(editor)) }
    })
    .with_placement(Placement::new(Phase::ModelCall))
}

/// An answer of a text, a call that ends before what follows, and another text.
fn text_call_text() -> Answer {
    Answer::new()
        .text("I look. ")
        .call("c1", "look", "{}")
        .delta(Delta::from(DeltaKind::BlockEnd).with_block(0))
        .text("Wait.")
        .finish(FinishReason::ToolCalls)
}

/// The messages in short: `go`, `looking (c1)`, `= sunny`.
fn lines(messages: &MessageList) -> Vec<String> {
    let block = |block: &Block| match block.content() {
        BlockContent::ToolCall(call) => format!("({} {})", call.name, call.arguments),
        _ => block.as_text().unwrap_or("?").to_owned(),
    };
    let line = |message: &Message| match message.role() {
        Role::Tool => format!("= {}", message.text()),
        Role::Assistant => message.blocks().iter().map(block).collect(),
        _ => message.text(),
    };
    messages.iter().map(line).collect()
}

/// No chunk waits for a judge but those of the judged call; the round waits, and so do memory and tools.
#[tokio::test]
async fn law_s2_o3_only_judged_call_and_round_end_wait() {
    let (gate, journal) = (Gate::new(), Journal::new());
    let judge = {
        let (gate, journal) = (gate.clone(), journal.clone());
        move |_: ToolCall| {
            let (gate, journal) = (gate.clone(), journal.clone());
            async move {
                journal.record("judge.begin");
                gate.pass().await;
                journal.record("judge.end");
                true
            }
            .boxed()
        }
    };
    let look = {
        let journal = journal.clone();
        let definition = definition("look");
        FnTool::new(definition, move |_: Value| {
            journal.record("tool");
            async { Ok("sunny") }
        })
    };
    let model = ScriptedModel::new([text_call_text(), Answer::from_text("Sunny.")]);
    let client = ChatClient::builder(model)
        .advisor(editing(move || Judging::new(judge.clone())))
        .advisor(ToolCallAdvisor::builder().streaming(ToolCallStreaming::All).build().unwrap())
        .tool(look)
        .build()
        .unwrap();
    let seen = journal.clone();
    let mut turn = client.prompt().user("go").stream().inspect(move |chunk| match chunk.as_ref().unwrap() {
        Chunk::Delta { delta: BlockDelta::Text(text), .. } => seen.record(format!("text {text}")),
        Chunk::Opened { head, .. } if head.kind == BlockKind::ToolCall => seen.record("call"),
        Chunk::RoundCompleted(_) => seen.record("round"),
        _ => {}
    });
    while let Some(Some(_)) = turn.next().now_or_never() {}
    assert_eq!(journal.labels(), ["text I look. ", "judge.begin", "text Wait."]);
    gate.release();
    let response = read_stream(turn).await.outcome.unwrap();
    assert_eq!(journal.labels()[3..], ["judge.end", "call", "round", "tool", "text Sunny."]);
    assert_eq!(lines(&response.transcript), ["go", "I look. (look {})Wait.", "= sunny", "Sunny."]);
}

/// A fast model does not keep a judge from working.
#[tokio::test]
async fn ready_chunks_do_not_starve_what_editor_waits_for() {
    let answer = Answer::new().call("c1", "look", "{}").delta(Delta::from(DeltaKind::BlockEnd).with_block(0));
    let answer = (0..100).fold(answer, |answer, _| answer.text("x")).finish(FinishReason::ToolCalls);
    let judge = |_: ToolCall| {
        async {
            tokio::task::yield_now().await;
            true
        }
        .boxed()
    };
    let chain = ChatClient::builder(ScriptedModel::new([answer]))
        .advisor(editing(move || Judging::new(judge)))
        .build()
        .unwrap()
        .chain()
        .clone();
    let stream = chain.next_stream(ChatRequest::new(Message::user("?"))).await.unwrap();
    let texts = stream
        .take_while(|chunk| {
            let is_call = matches!(chunk, Ok(Chunk::Opened { head, .. }) if head.kind == BlockKind::ToolCall);
            std::future::ready(!is_call)
        })
        .filter(|chunk| std::future::ready(chunk.as_ref().unwrap().text().is_some()));
    assert!(texts.count().await < 5);
}

/// Adds a text after each block, and one at the end of each round.
struct Adding(&'static str, Option<BlockId>);

impl ChunkEditor for Adding {
    fn edit(&mut self, chunk: Chunk, out: &mut EditedChunks<'_>) {
        let closed = chunk.block().filter(|_| matches!(chunk, Chunk::Closed { .. }));
        out.push(chunk);
        if let Some(block) = closed {
            out.add(block, Block::text(self.0));
        }
    }

    fn end(&mut self, response: &ChatResponse, out: &mut EditedChunks<'_>) {
        let last = response.blocks().last().map(|(id, _)| id);
        let block = out
            .open(last.unwrap_or_else(|| BlockId::new(response.round(), 0)), BlockHead::new(BlockKind::Text));
        out.push(Chunk::Delta { block, delta: BlockDelta::Text(format!("/{}", self.0).into()) });
        self.1 = Some(block);
    }

    /// Waits once at the end of each round.
    fn poll_pending(&mut self, cx: &mut Context<'_>, out: &mut EditedChunks<'_>) -> Poll<Result<()>> {
        let Some(block) = self.1.take() else { return Poll::Ready(Ok(())) };
        out.close(block);
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

#[tokio::test]
async fn law_s3_ids_of_nested_editors_are_unique() {
    for (answer, count) in [(text_call_text(), 31), (Answer::new().finish(FinishReason::Stop), 7)] {
        let chain = ChatClient::builder(ScriptedModel::new([answer]))
            .advisor(editing(|| Adding("c", None)))
            .advisor(editing(|| Adding("b", None)))
            .advisor(editing(|| Adding("a", None)))
            .build()
            .unwrap()
            .chain()
            .clone();
        let out = read_stream(chain.next_stream(ChatRequest::new(Message::user("?"))).await.unwrap()).await;
        let response = out.response();
        let blocks: Vec<_> = response.blocks().map(|(id, block)| (id, block.clone())).collect();
        assert_eq!(out.fold().blocks(1), blocks);
        assert_eq!(blocks.len(), count);
        assert_ne!(response.finish.reason, FinishReason::Empty);
        assert_eq!(blocks.last().unwrap().1.as_text(), Some("/c"));
    }
}

/// A stream of this answer without a chain.
fn answer(blocks: Vec<Block>, reason: FinishReason) -> ChunkStream {
    ChunkStream::answer(ChatResponse::new(1, Message::assistant_blocks(blocks), reason))
}

/// Does something at the end of the round, and passes everything else.
struct AtEnd<F>(F);

impl<F: FnMut(&ChatResponse, &mut EditedChunks<'_>) + Send + 'static> ChunkEditor for AtEnd<F> {
    fn edit(&mut self, chunk: Chunk, out: &mut EditedChunks<'_>) {
        out.push(chunk);
    }

    fn end(&mut self, response: &ChatResponse, out: &mut EditedChunks<'_>) {
        (self.0)(response, out);
    }
}

fn call(id: &str) -> Block {
    ToolCall::new(id, "look", "{}").into()
}

#[tokio::test]
async fn finish_reason_follows_calls() {
    use FinishReason::{ContentFilter, Empty, Length, Other, Paused, Stop, ToolCalls};
    let deny = || Judging::new(|_| verdict(false));
    for (reason, without_calls) in [
        (ToolCalls, Stop),
        (Stop, Stop),
        (Length, Length),
        (ContentFilter, ContentFilter),
        (Paused, Paused),
        (Other("eos".into()), Other("eos".into())),
    ] {
        let out = read_stream(answer(vec![call("c1")], reason.clone()).edit_with(deny())).await;
        assert_eq!(out.outcome.unwrap().finish.reason, without_calls);
        let one_left = Judging::new(|call: ToolCall| verdict(call.id == "c2"));
        let out = read_stream(answer(vec![call("c1"), call("c2")], reason.clone()).edit_with(one_left)).await;
        assert_eq!(out.outcome.unwrap().finish.reason, reason);
    }
    for (text, reason, with_calls) in [
        ("[look]", Stop, ToolCalls),
        ("[look]", ToolCalls, ToolCalls),
        ("[look]", Other("eos".into()), ToolCalls),
        ("[look]", Length, Length),
        ("[look]", Paused, Paused),
        ("look", Stop, Stop),
        ("look", ToolCalls, ToolCalls),
    ] {
        let out = read_stream(answer(vec![Block::text(text)], reason).edit_with(Calling::default())).await;
        assert_eq!(out.outcome.unwrap().finish.reason, with_calls, "{text}");
    }
    let add = |block: Block| {
        AtEnd(move |_: &ChatResponse, out: &mut EditedChunks<'_>| {
            out.add(BlockId::new(1, 0), block.clone());
        })
    };
    for (block, expected) in [(Block::text("Sorry."), Stop), (call("c1"), ToolCalls)] {
        let out = read_stream(answer(Vec::new(), Empty).edit_with(add(block))).await;
        assert_eq!(out.outcome.unwrap().finish.reason, expected);
    }
}

/// Blocks of every kind pass unchanged, with their provider data and under the handle of the message.
#[tokio::test]
async fn law_s4_unedited_answer_keeps_its_handle() {
    let data = || vec![ProviderData::new("made-up", json!("signature"))];
    let blocks = vec![
        Block::with_data(BlockContent::Reasoning("hm".into()), data()),
        Block::text("text"),
        Block::new(BlockContent::Refusal("no".into())),
        Block::with_data(BlockContent::ToolCall(ToolCall::new("c1", "look", "{}")), data()),
        Block::new(BlockContent::Media(Media::from_url("image/png", "https://example.org/a.png"))),
        Block::new(BlockContent::Citation(Citation::default())),
        Block::with_data(BlockContent::Opaque(Opaque::new("made-up", "thing", json!(1))), data()),
    ];
    let message = Message::assistant_blocks(blocks);
    let stream = || ChunkStream::answer(ChatResponse::new(1, message.clone(), FinishReason::ToolCalls));
    let out = read_stream(stream().edit_with(Judging::new(|_| verdict(true)))).await;
    assert!(out.outcome.unwrap().message().is_same(&message));
    // With a block added, all others are the same.
    let adding = AtEnd(|response: &ChatResponse, out: &mut EditedChunks<'_>| {
        let last = response.blocks().last().unwrap().0;
        out.add(
            last,
            Block::with_data(BlockContent::Text("more".into()), vec![ProviderData::new("x", json!(1))]),
        );
    });
    let response = read_stream(stream().edit_with(adding)).await.outcome.unwrap();
    assert_eq!(&response.message().blocks()[..7], message.blocks());
    assert_eq!(response.message().blocks()[7].provider_data().len(), 1);
}

/// A call gets an id of its own if it has none, or that of another call.
#[tokio::test]
async fn law_t6_added_calls_have_ids_of_their_own() {
    let adding = AtEnd(|_: &ChatResponse, out: &mut EditedChunks<'_>| {
        for id in ["", "c1", "c2", "c2"] {
            out.add(BlockId::new(1, 0), call(id));
        }
        let unnamed = out.open(BlockId::new(1, 0), BlockHead::new(BlockKind::ToolCall));
        out.close(unnamed);
        // Left open, as if it had been cut off.
        out.open(BlockId::new(1, 0), BlockHead::new(BlockKind::ToolCall));
    });
    let response =
        read_stream(answer(vec![call("c1")], FinishReason::Stop).edit_with(adding)).await.outcome.unwrap();
    let calls: Vec<_> = response.tool_calls().map(|(_, call)| call).collect();
    let ids: BTreeSet<_> = calls.iter().map(|call| call.id.as_str()).collect();
    assert_eq!(ids.len(), 7);
    assert!(ids.contains("c1") && ids.contains("c2") && !ids.contains(""), "{ids:?}");
    assert_eq!(
        calls.iter().map(|call| call.complete).collect::<Vec<_>>(),
        [true, true, true, true, true, true, false]
    );
    assert_eq!(calls[5].name, ToolCall::UNNAMED);
}

/// Outside the tool loop nobody runs an added call: it has an error result, or is for the caller.
#[tokio::test]
async fn law_m1_call_added_outside_loop_has_result() {
    let answers = [
        Answer::new().text("[look]").call("c1", "look", "{}").text("[work]").finish(FinishReason::ToolCalls),
        Answer::from_text("Done [work]."),
    ];
    let client = ChatClient::builder(ScriptedModel::new(answers))
        .advisor_in(Phase::Turn, editing(Calling::default))
        .advisor(ToolCallAdvisor::builder().streaming(ToolCallStreaming::All).build().unwrap())
        .tool(tool("look", "sunny"))
        .build()
        .unwrap();
    let response = read_stream(client.prompt().user("go").stream()).await.outcome.unwrap();
    let refused = "= not started: the call was added outside the tool loop";
    assert_eq!(
        lines(&response.transcript),
        ["go", "(look {})(look {})(work {})", refused, "= sunny", refused, "Done (work {})."]
    );
    let messages: Vec<_> = response.transcript.iter().cloned().collect();
    assert_eq!(validate_transcript(&messages[..5]), []);
}

/// Records what becomes final.
#[derive(Default)]
struct Recorded(Mutex<Vec<String>>);

#[async_trait]
impl TurnRecorder for Recorded {
    async fn record(&self, record: &Record) -> Result<()> {
        if matches!(record.step, Step::Answer | Step::Results) {
            self.0.lock().unwrap().extend(lines(&record.messages.clone().into()));
        }
        Ok(())
    }
}

/// An answer that an editor changed is an answer of its turn: if an advisor fails after it, the loop records it.
#[tokio::test]
async fn law_o5_changed_answer_is_final_after_error() {
    changed_answer_is_final(|stream| stream).await;
    // The chain has not told this stream its turn when the editor is added.
    changed_answer_is_final(ChunkStream::new).await;
}

async fn changed_answer_is_final(own: fn(ChunkStream) -> ChunkStream) {
    let loud = from_fn("loud", move |request: ChatRequest, next: AdvisorChain| async move {
        Ok(own(next.next_stream(request).await?).edit_with(|chunk: Chunk, out: &mut EditedChunks<'_>| {
            out.push(match chunk {
                Chunk::Delta { block, delta: BlockDelta::Text(text) } => {
                    Chunk::Delta { block, delta: BlockDelta::Text(text.to_uppercase().into()) }
                }
                other => other,
            });
        }))
    });
    let failing = from_fn("failing", |request: ChatRequest, next: AdvisorChain| async move {
        let fails = |_| async { Err(Error::new(ErrorKind::Advisor, "it failed")) };
        Ok(next.next_stream(request).await?.on_completed(fails))
    });
    let recorded = Arc::new(Recorded::default());
    let recorder = Arc::clone(&recorded);
    let recording = from_fn("recording", move |request: ChatRequest, next: AdvisorChain| {
        request.turn.add_recorder(Arc::<Recorded>::clone(&recorder));
        async move { next.next_stream(request).await }
    });
    let answer = Answer::new().text("look").call("c1", "look", "{}").finish(FinishReason::ToolCalls);
    let client = ChatClient::builder(ScriptedModel::new([answer]))
        .advisor(recording)
        .advisor(ToolCallAdvisor::builder().build().unwrap())
        .advisor_in(Phase::Round, failing)
        .advisor_in(Phase::ModelCall, loud)
        .tool(tool("look", "sunny"))
        .build()
        .unwrap();
    let error = read_stream(client.prompt().user("go").stream()).await.outcome.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Advisor);
    let expected = ["LOOK(look {})", "= not started: an error ended the turn"];
    assert_eq!(*recorded.0.lock().unwrap(), expected);
    assert_eq!(lines(error.history().unwrap())[1..], expected);
}

/// Equal changes of one answer are one message, so that memory stores it once.
#[tokio::test]
async fn equal_changes_of_an_answer_share_a_handle() {
    let turn = Turn::new(TurnId::random());
    let message = Message::assistant("I [look].");
    // An advisor of its own kind: the chain, not the request, gives its stream the turn.
    let original = message.clone();
    let own = from_fn("own", move |_: ChatRequest, _: AdvisorChain| {
        let answer = ChatResponse::new(1, original.clone(), FinishReason::Stop);
        async move { Ok(ChunkStream::answer(answer)) }
    });
    let client = ChatClient::builder(ScriptedModel::new([]))
        // The outer editor, as well, knows the turn.
        .advisor(editing(|| {
            AtEnd(|_: &ChatResponse, out: &mut EditedChunks<'_>| {
                out.add(BlockId::new(1, 0), Block::text("!"));
            })
        }))
        .advisor(editing(|| AtEnd(|_: &ChatResponse, _: &mut EditedChunks<'_>| {})))
        .advisor_in(Phase::ModelCall, own)
        .build()
        .unwrap();
    let edited = async || {
        let request = ChatRequest { turn: Arc::clone(&turn), ..ChatRequest::new(Message::user("?")) };
        client.chain().next_call(request).await.unwrap().message().clone()
    };
    let [once, again] = [edited().await, edited().await];
    assert!(once.is_same(&again));
    assert!(!turn.has_answer(&once), "the original is no answer of this turn");
}

/// An editor may fail: the partial answer is what was emitted.
#[tokio::test]
async fn law_s4_error_of_editor_holds_what_was_emitted() {
    struct Failing(bool);
    impl ChunkEditor for Failing {
        fn edit(&mut self, chunk: Chunk, out: &mut EditedChunks<'_>) {
            self.0 |= matches!(&chunk, Chunk::Opened { head, .. } if head.kind == BlockKind::ToolCall);
            if !self.0 {
                out.push(chunk);
            }
        }

        fn poll_pending(&mut self, _: &mut Context<'_>, out: &mut EditedChunks<'_>) -> Poll<Result<()>> {
            if self.0 {
                out.add(BlockId::new(1, 0), Block::text("Sorry."));
                let of_judge = ChatResponse::new(7, Message::assistant("of the judge"), FinishReason::Stop);
                let error = Error::new(ErrorKind::Advisor, "the judge failed").or_partial(of_judge);
                return Poll::Ready(Err(error));
            }
            Poll::Ready(Ok(()))
        }
    }
    let out = read_stream(
        answer(vec![Block::text("I look."), call("c1")], FinishReason::Stop).edit_with(Failing(false)),
    )
    .await;
    let error = out.error();
    assert!(error.emitted());
    assert_eq!(out.fold().text(1), "I look.Sorry.");
    assert_eq!(
        (error.kind(), error.partial().unwrap().text().as_str()),
        (ErrorKind::Advisor, "I look.Sorry.")
    );
}

/// An error of the model does not wait for the editor; what is held back is left out of its partial answer.
#[tokio::test]
async fn law_s4_broken_answer_leaves_out_held_blocks() {
    let model = ScriptedModel::new([Answer::new()
        .text("I look.")
        .call("c1", "look", "{}")
        .error(Error::new(ErrorKind::Connection, "the connection broke"))]);
    let never = || Judging::new(|_| std::future::pending().boxed());
    let chain = ChatClient::builder(model).advisor(editing(never)).build().unwrap().chain().clone();
    let out = read_stream(chain.next_stream(ChatRequest::new(Message::user("?"))).await.unwrap()).await;
    let error = out.error();
    let partial = error.partial().unwrap();
    assert_eq!((error.kind(), partial.tool_calls().count()), (ErrorKind::Connection, 0));
    assert_eq!(partial.text(), out.fold().text(1));
}

/// An editor may end the answer: nothing more is read, and what was emitted is the answer.
#[tokio::test]
async fn editor_ends_the_answer() {
    struct Ending;
    impl ChunkEditor for Ending {
        fn edit(&mut self, chunk: Chunk, out: &mut EditedChunks<'_>) {
            if matches!(&chunk, Chunk::Opened { head, .. } if head.kind == BlockKind::ToolCall) {
                out.add(BlockId::new(chunk.round(), 0), Block::text("No."));
                out.end_answer(FinishReason::ContentFilter);
                out.add(BlockId::new(chunk.round(), 0), Block::text("And after the end?"));
                return out.end_answer(FinishReason::Stop);
            }
            out.push(chunk);
        }
    }
    let model = ScriptedModel::new([Answer::new().text("I look. ").call("c1", "look", "{}").hang()]);
    let client = ChatClient::builder(model.clone())
        .advisor(editing(|| Ending))
        .advisor(ToolCallAdvisor::builder().build().unwrap())
        .tool(tool("look", "sunny"))
        .build()
        .unwrap();
    let out = read_stream(client.prompt().user("go").stream()).await;
    let response = out.outcome.unwrap();
    assert_eq!(response.finish.reason, FinishReason::ContentFilter);
    assert_eq!((response.text().as_str(), model.calls()), ("I look. No.", 1));
    assert_eq!(lines(&response.transcript), ["go", "I look. No."]);
    // At the end of the round, too.
    let ends = AtEnd(|_: &ChatResponse, out: &mut EditedChunks<'_>| out.end_answer(FinishReason::Refusal));
    let response = read_stream(answer(vec![Block::text("Hm.")], FinishReason::Stop).edit_with(ends))
        .await
        .outcome
        .unwrap();
    assert_eq!((response.text().as_str(), &response.finish.reason), ("Hm.", &FinishReason::Refusal));
}

/// A call that is open when an editor ends the answer is incomplete, also if the model has completed it, and whenever the
/// editor decides. A text is as the model closed it.
#[tokio::test]
async fn call_open_at_end_of_answer_is_incomplete() {
    /// Holds back the ends of all blocks, and ends the answer when the model has made a call.
    struct Stopping {
        at_end: bool,
        has_call: bool,
    }
    impl ChunkEditor for Stopping {
        fn edit(&mut self, chunk: Chunk, out: &mut EditedChunks<'_>) {
            match &chunk {
                Chunk::Closed { content, .. } => self.has_call |= content.as_tool_call().is_some(),
                _ => out.push(chunk),
            }
        }

        fn poll_pending(&mut self, _cx: &mut Context<'_>, out: &mut EditedChunks<'_>) -> Poll<Result<()>> {
            if self.has_call && !self.at_end {
                out.end_answer(FinishReason::Stop);
            }
            Poll::Ready(Ok(()))
        }

        fn end(&mut self, _response: &ChatResponse, out: &mut EditedChunks<'_>) {
            out.end_answer(FinishReason::Stop);
        }
    }
    let signed =
        Block::with_data(BlockContent::Text("I look.".into()), vec![ProviderData::new("p", json!("signed"))]);
    for at_end in [true, false] {
        let blocks = vec![signed.clone(), call("c1")];
        let stopping = Stopping { at_end, has_call: false };
        let out = read_stream(answer(blocks, FinishReason::ToolCalls).edit_with(stopping)).await;
        let response = out.outcome.unwrap();
        let blocks = response.message().blocks();
        assert_eq!((&blocks[0], response.finish.reason.clone()), (&signed, FinishReason::Stop));
        assert!(!blocks[1].as_tool_call().unwrap().complete, "decided at the end: {at_end}");
    }
}

/// An editor may fail while it edits: what it emitted by then is the partial answer, and no tool runs.
#[tokio::test]
async fn law_s1_s4_failing_editor_ends_after_its_output() {
    struct Failing;
    impl ChunkEditor for Failing {
        fn edit(&mut self, chunk: Chunk, out: &mut EditedChunks<'_>) {
            let closed = chunk.block().filter(|_| matches!(&chunk, Chunk::Closed { .. }));
            out.push(chunk);
            if let Some(block) = closed.filter(|block| block.position() == 1) {
                out.add(block, Block::text("Sorry."));
                out.fail(Error::new(ErrorKind::Advisor, "it failed"));
                out.add(block, Block::text("And after the failure?"));
                out.fail(Error::new(ErrorKind::Timeout, "it failed again"));
                out.end_answer(FinishReason::Stop);
            }
        }
    }
    let runs = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&runs);
    let definition = definition("look");
    let look = FnTool::new(definition, move |_: Value| {
        *counted.lock().unwrap() += 1;
        async { Ok("sunny") }
    });
    let model = ScriptedModel::new([text_call_text()]);
    let client = ChatClient::builder(model.clone())
        .advisor(editing(|| Failing))
        .advisor(ToolCallAdvisor::builder().streaming(ToolCallStreaming::All).build().unwrap())
        .tool(look)
        .build()
        .unwrap();
    let out = read_stream(client.prompt().user("go").stream()).await;
    let error = out.error();
    assert_eq!((error.kind(), error.emitted()), (ErrorKind::Advisor, true));
    let shown: Vec<_> = out.fold().blocks(1).into_iter().map(|(_, block)| block).collect();
    assert_eq!(error.partial().unwrap().message().blocks(), shown);
    assert_eq!(out.fold().text(1), "I look. Sorry.");
    assert_eq!((*runs.lock().unwrap(), model.calls()), (0, 1));
    // At the end of the round, too.
    let fails = AtEnd(|_: &ChatResponse, out: &mut EditedChunks<'_>| {
        out.fail(Error::new(ErrorKind::Advisor, "it failed"));
    });
    let error = read_stream(answer(vec![Block::text("Hm.")], FinishReason::Stop).edit_with(fails))
        .await
        .outcome
        .unwrap_err();
    assert_eq!(error.partial().unwrap().text(), "Hm.");
}

#[tokio::test]
async fn law_r1_added_blocks_are_bounded() {
    let endless = AtEnd(|_: &ChatResponse, out: &mut EditedChunks<'_>| {
        for _ in 0..1 << 16 {
            out.add(BlockId::new(1, 0), Block::text("!"));
        }
    });
    let mut stream = answer(Vec::new(), FinishReason::Stop).edit_with(endless);
    let error = loop {
        if let Err(error) = stream.next().await.unwrap() {
            break error;
        }
    };
    assert_eq!(error.kind(), ErrorKind::TooLarge);
}

/// An answer that came without a turn has round 0.
#[tokio::test]
async fn law_s4_round_zero_is_edited_like_others() {
    let out = read_stream(ChunkStream::answer("I [look].").edit_with(Calling::default())).await;
    assert_eq!(lines(&vec![out.outcome.unwrap().message().clone()].into()), ["I (look {})."]);
}

/// What an arbitrary editor does with a chunk.
#[derive(Debug, Clone, Copy)]
enum Act {
    Pass,
    Hold,
    LetOut,
    Open(usize),
    Extend(usize),
    Close(usize),
    Replace,
    Wait,
}

struct Arbitrary {
    acts: Vec<Act>,
    at: usize,
    held: Vec<Chunk>,
    known: Vec<BlockId>,
    waits: bool,
}

impl Arbitrary {
    fn new(acts: Vec<Act>) -> Self {
        Self { acts, at: 0, held: Vec::new(), known: vec![BlockId::new(1, 0)], waits: false }
    }

    fn act(&mut self, chunk: Option<Chunk>, out: &mut EditedChunks<'_>) {
        self.known.extend(chunk.as_ref().and_then(Chunk::block));
        let of = |index: usize, known: &[BlockId]| known[index % known.len()];
        let act = self.acts[self.at % self.acts.len()];
        self.at += 1;
        match act {
            Act::Hold => return self.held.extend(chunk),
            Act::LetOut => self.held.drain(..).for_each(|chunk| out.push(chunk)),
            Act::Open(index) => {
                let kinds = [BlockKind::Text, BlockKind::ToolCall, BlockKind::Media, BlockKind::Reasoning];
                let block = out.open(of(index, &self.known), BlockHead::new(kinds[index % kinds.len()]));
                self.known.push(block);
            }
            Act::Extend(index) => {
                let delta = [BlockDelta::Text, BlockDelta::Arguments][index % 2]("x".into());
                out.push(Chunk::Delta { block: of(index, &self.known), delta });
            }
            Act::Close(index) => out.close(of(index, &self.known)),
            Act::Replace => {
                if let Some(Chunk::Opened { block, .. }) = chunk {
                    return out.push(Chunk::Opened { block, head: BlockHead::new(BlockKind::Text) });
                }
            }
            Act::Wait => self.waits = true,
            Act::Pass => {}
        }
        chunk.into_iter().for_each(|chunk| out.push(chunk));
    }
}

impl ChunkEditor for Arbitrary {
    fn edit(&mut self, chunk: Chunk, out: &mut EditedChunks<'_>) {
        self.act(Some(chunk), out);
    }

    fn poll_pending(&mut self, cx: &mut Context<'_>, out: &mut EditedChunks<'_>) -> Poll<Result<()>> {
        if std::mem::take(&mut self.waits) {
            self.act(None, out);
            // It waits once, not for ever.
            self.waits = false;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(Ok(()))
    }

    fn end(&mut self, _: &ChatResponse, out: &mut EditedChunks<'_>) {
        self.act(None, out);
    }
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        4 => Just(Act::Pass),
        1 => Just(Act::Hold),
        1 => Just(Act::LetOut),
        2 => (0..9_usize).prop_map(Act::Open),
        2 => (0..9_usize).prop_map(Act::Extend),
        1 => (0..9_usize).prop_map(Act::Close),
        1 => Just(Act::Replace),
        1 => Just(Act::Wait),
    ];
    prop::collection::vec(act, 1..24)
}

proptest! {
    /// Whatever two editors do, one around the other, their output is well-formed, and the response is what was
    /// emitted.
    #[test]
    fn law_s3_s4_any_editors_agree_with_their_response(inner in acts(), outer in acts()) {
        let blocks = vec![Block::text("a"), call("c1"), Block::new(BlockContent::Reasoning("hm".into())), call("c2")];
        let stream = answer(blocks, FinishReason::ToolCalls);
        let stream = stream.edit_with(Arbitrary::new(inner)).edit_with(Arbitrary::new(outer));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let out = runtime.block_on(read_stream(stream));
        let response = out.response();
        let known: Vec<_> = response.blocks().map(|(id, block)| (id, block.clone())).collect();
        prop_assert_eq!(out.fold().blocks(1), known);
        let calls: Vec<_> = response.tool_calls().map(|(_, call)| call.id.clone()).collect();
        let ids: BTreeSet<_> = calls.iter().collect();
        prop_assert_eq!(ids.len(), calls.len());
    }
}
