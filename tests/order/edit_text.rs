//! Tests of `edit_text`: text is edited block by block, for any split, and the shown, returned and stored texts
//! are equal.

use advisor_chain::chain::{HoldBack, PendingText};
use advisor_chain::messages::BlockHead;
use advisor_tests::prelude::*;
use futures::stream;
use proptest::prelude::*;

const WORDS: [(&str, &str); 1] = [("sword", "█")];

fn redact(text: &mut PendingText<'_>) {
    text.replace_all(&WORDS);
}

fn redacting() -> impl StreamAdvisor {
    from_fn("redacting", |request: ChatRequest, next: AdvisorChain| async move {
        Ok(next.next_stream(request).await?.edit_text(HoldBack::Bytes(4), redact))
    })
    .with_placement(Placement::new(Phase::ModelCall))
}

/// Reads a stream, and returns the text of each poll, the fold of its chunks and its response.
fn read(mut stream: ChunkStream) -> (Vec<String>, ChunkFold, ChatResponse) {
    let (mut texts, mut fold) = (Vec::new(), ChunkFold::default());
    loop {
        let chunk = stream.next().now_or_never().expect("nothing waits").unwrap().unwrap();
        fold.push(&chunk);
        match chunk {
            Chunk::Delta { delta: BlockDelta::Text(text) | BlockDelta::Reasoning(text), .. } => {
                texts.push(text.into());
            }
            Chunk::Completed(response) => return (texts, fold, response),
            _ => {}
        }
    }
}

fn chunks(chunks: Vec<Chunk>) -> ChunkStream {
    ChunkStream::new(stream::iter(chunks.into_iter().map(Ok).collect::<Vec<_>>()))
}

fn opened(block: BlockId, kind: BlockKind) -> Chunk {
    Chunk::Opened { block, head: BlockHead::new(kind) }
}

fn text(block: BlockId, text: &str) -> Chunk {
    Chunk::Delta { block, delta: BlockDelta::Text(text.into()) }
}

fn closed(block: BlockId, text: &str) -> Chunk {
    Chunk::Closed { block, content: Block::text(text) }
}

#[test]
fn law_s2_no_more_is_held_back_than_is_declared() {
    let block = BlockId::new(1, 0);
    let of = |hold_back| {
        let answer = ChatResponse::new(1, Message::assistant("aébc"), FinishReason::Stop);
        let edited = chunks(vec![
            opened(block, BlockKind::Text),
            text(block, "aé"),
            text(block, "b"),
            text(block, "c"),
            closed(block, "aébc"),
            Chunk::Completed(answer),
        ])
        // An editor that never decides.
        .edit_text(hold_back, |_: &mut PendingText<'_>| {});
        read(edited).0
    };
    assert_eq!(of(HoldBack::Bytes(0)), ["aé", "b", "c"]);
    assert_eq!(of(HoldBack::Bytes(1)), ["aé", "b", "c"], "a character is not cut");
    assert_eq!(of(HoldBack::Bytes(2)), ["a", "é", "bc"]);
    assert_eq!(of(HoldBack::Bytes(99)), ["aébc"]);
    assert_eq!(of(HoldBack::Block), ["aébc"]);
}

#[test]
fn edited_reasoning_keeps_provider_data_only_if_unchanged() {
    let block = |text: &str| {
        Block::with_data(
            BlockContent::Reasoning(text.into()),
            vec![advisor_chain::messages::ProviderData::new("made-up", json!("signature"))],
        )
    };
    let message = Message::assistant_blocks(vec![block("a sword"), block("a shield")]);
    let answer = ChatResponse::new(1, message, FinishReason::Stop);
    let (texts, _, response) = read(ChunkStream::answer(answer).edit_text(HoldBack::Bytes(4), redact));
    assert_eq!(texts, ["a █", "a shield"]);
    let data: Vec<_> = response.blocks().map(|(_, block)| block.provider_data().len()).collect();
    assert_eq!(data, [0, 1]);
}

/// Ends the answer at the word, with a text in its place.
fn end_at_sword(text: &mut PendingText<'_>) {
    if let Some(at) = text.find("sword") {
        text.pass(at);
        text.end_answer(FinishReason::ContentFilter, Some(Block::text("No.")));
    }
}

/// An answer that ends inside a text has what was shown before, a last block, and its reason; nothing follows.
#[test]
fn law_s3_s4_answer_ends_inside_a_text() {
    let other = BlockId::new(1, 1);
    for (pieces, shown) in [
        (&["I hold the sw", "ord now", " more"][..], vec!["I hold th", "e ", "No."]),
        (&["sw", "ord now"], vec!["No."]),
        (&["no s", "word"], vec!["no ", "No."]),
    ] {
        for hold_back in [HoldBack::Bytes(4), HoldBack::Block] {
            let block = BlockId::new(1, 0);
            let whole = pieces.concat();
            let blocks = vec![Block::text(whole.as_str()), Block::text("after")];
            let answer = ChatResponse::new(1, Message::assistant_blocks(blocks), FinishReason::Stop);
            let pieces = pieces.iter().map(|piece| text(block, piece));
            let sent = [opened(block, BlockKind::Text)].into_iter().chain(pieces).chain([
                closed(block, &whole),
                opened(other, BlockKind::Text),
                text(other, "after"),
                closed(other, "after"),
                Chunk::Completed(answer),
            ]);
            let stream = chunks(sent.collect()).edit_text(hold_back, end_at_sword);
            let (texts, fold, response) = read(stream);
            if hold_back != HoldBack::Block {
                assert_eq!(texts, shown);
            }
            assert_eq!(texts.concat(), shown.concat());
            assert_eq!(response.text(), shown.concat());
            assert_eq!(fold.text(1), shown.concat());
            assert_eq!(response.finish.reason, FinishReason::ContentFilter);
            assert_eq!(fold.clone().close_open(), [], "all blocks are closed");
        }
    }
}

proptest! {
    #[test]
    fn law_s4_s5_shown_text_is_independent_of_chunking(
        pieces in prop::collection::vec("[sword é]{0,6}", 1..12),
        hold_back in prop_oneof![(4..9_usize).prop_map(HoldBack::Bytes), Just(HoldBack::Block)],
    ) {
        let whole = pieces.concat();
        let answer = pieces.iter().fold(Answer::new(), |answer, piece| answer.text(piece.as_str()));
        let model = ScriptedModel::new([answer.finish(FinishReason::Stop)]);
        let editing = from_fn("editing", move |request: ChatRequest, next: AdvisorChain| async move {
            Ok(next.next_stream(request).await?.edit_text(hold_back, redact))
        });
        let chain = ChatClient::builder(model).advisor(editing).build().unwrap().chain().clone();
        let request = ChatRequest::new(Message::user("?"));
        let stream = chain.next_stream(request).now_or_never().unwrap().unwrap();
        let (texts, fold, response) = read(stream);
        prop_assert_eq!(texts.concat(), whole.replace("sword", "█"));
        prop_assert_eq!(response.text(), texts.concat());
        prop_assert_eq!(fold.text(response.round()), texts.concat());
    }
}

/// Inside memory, the shown and the stored text are equal, also for a turn that is dropped at any point.
#[tokio::test]
async fn law_k3_s4_dropped_turn_remembers_shown_edited_text() {
    for cut in 0..12 {
        let look = ToolDefinition::new("look", "Looks.", json!({"type": "object"}));
        let first = Answer::new().text("a sw").text("ord").call("c1", "look", "{}");
        let second = Answer::new().text("swo").text("rd, s").text("word").text("s!");
        let model = ScriptedModel::new([
            first.finish(FinishReason::ToolCalls),
            second.finish(FinishReason::Stop),
            Answer::from_text("Go on."),
        ]);
        let memory = ChatMemoryAdvisor::new(InMemoryStore::new());
        let client = ChatClient::builder(model.clone())
            .advisor(ToolCallAdvisor::builder().streaming(ToolCallStreaming::TextOnly).build().unwrap())
            .advisor(memory.clone())
            .advisor(redacting())
            .tool(FnTool::new(look, |_: Value| async { Ok("a sword") }))
            .build()
            .unwrap();
        let mut turn = client.prompt().user("go").conversation("c").stream();
        let (mut shown, mut ended) = (String::new(), false);
        for _ in 0..cut {
            let Some(chunk) = turn.next().await else { break };
            let chunk = chunk.unwrap();
            shown.push_str(chunk.text().unwrap_or_default());
            ended = chunk.completed().is_some();
        }
        drop(turn);
        let transcript = memory.transcript(&ConversationKey::new("c").unwrap()).await.unwrap();
        assert_eq!(validate_transcript(&transcript), []);
        let answers = transcript.iter().filter(|message| !message.blocks().is_empty());
        let remembered: String = answers.map(Message::text).collect();
        eprintln!("{cut}: {shown:?} {remembered:?}");
        assert!(!remembered.contains("sword"));
        assert!(remembered.starts_with(&shown), "{shown:?} {remembered:?}");
        assert_eq!(ended, remembered == "a ██, █s!", "it says so where it was cut: {remembered:?}");
        client.prompt().user("and").conversation("c").call().await.unwrap();
    }
}
