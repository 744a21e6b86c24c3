//! Tests of `stream_validator`.

use super::*;
use advisor_core::{
    BlockContent, BlockDelta, BlockHead, Delta, FinishReason, Media, Message, MessageAggregator,
    NotStartedReason, ToolCall, ToolCallDelta, ToolResult,
};

fn a() -> BlockId {
    BlockId::new(1, 0)
}

fn text(block: BlockId, text: &str) -> Vec<Chunk> {
    Chunk::from_block(block, &Block::text(text)).collect()
}

fn completed(blocks: &[&str]) -> Chunk {
    let blocks = blocks.iter().map(|text| Block::text(*text)).collect();
    Chunk::Completed(ChatResponse::new(1, Message::assistant_blocks(blocks), FinishReason::Stop))
}

/// The violation of each chunk that breaks a rule, then that of the end.
fn violations(chunks: &[Chunk]) -> Vec<StreamViolation> {
    let mut validator = StreamValidator::new();
    let mut violations: Vec<_> = chunks.iter().filter_map(|chunk| validator.push(chunk).err()).collect();
    violations.extend(validator.finish().err());
    violations
}

#[test]
fn law_s3_answers_of_the_aggregator_are_valid() {
    let call = |index: i64, id: &str| {
        [
            Delta::tool_call(ToolCallDelta::start(index, id, "look")),
            Delta::tool_call(ToolCallDelta::arguments(index, "{\"a\":")),
            Delta::tool_call(ToolCallDelta::arguments(index, "1}")),
        ]
    };
    let mut deltas = vec![Delta::reasoning("hm"), Delta::text("Let "), Delta::text("me look.")];
    deltas.extend(call(0, "c1").into_iter().chain(call(1, "c2")));
    deltas.extend([Delta::text("Wait."), Delta::finish(FinishReason::ToolCalls)]);
    let (mut aggregator, mut chunks) = (MessageAggregator::new(1), Default::default());
    deltas.into_iter().for_each(|delta| aggregator.push(delta, &mut chunks).unwrap());
    let response = aggregator.finish(&mut chunks).unwrap();
    chunks.push_back(Chunk::Completed(response));
    assert_eq!(violations(chunks.make_contiguous()), []);
}

#[test]
fn law_s3_rounds_and_restarts_are_valid() {
    let mut chunks = text(a(), "void");
    chunks.pop();
    chunks.push(Chunk::AttemptRestarted { round: 1 });
    chunks.extend(text(BlockId::new(2, 0), "Let me look."));
    let of = |round, text: &str| ChatResponse::new(round, Message::assistant(text), FinishReason::Stop);
    chunks.push(Chunk::RoundCompleted(of(2, "Let me look.")));
    chunks.extend(text(BlockId::new(3, 0), "Sunny."));
    chunks.push(Chunk::Completed(of(3, "Sunny.")));
    assert_eq!(violations(&chunks), []);
    // a() response may have blocks that were not shown.
    assert_eq!(violations(&[completed(&["not shown"])]), []);
}

#[test]
fn law_s3_each_broken_rule_is_reported() {
    use StreamViolation::{
        LeftOpen, NotInResponse, NotOpen, OpenedTwice, OtherContent, OtherKind, RoundEnded, Unfinished,
    };
    let opened = |kind| Chunk::Opened { block: a(), head: BlockHead::new(kind) };
    let delta = |delta| Chunk::Delta { block: a(), delta };
    let closed = |content| Chunk::Closed { block: a(), content };
    let hello = || BlockDelta::Text("Hello".into());
    let call = || Block::from(ToolCall::new("c1", "look", "{}"));
    let done = || completed(&["Hello"]);
    let late = || Chunk::Opened { block: BlockId::new(1, 1), head: BlockHead::new(BlockKind::Text) };
    let round =
        || Chunk::RoundCompleted(ChatResponse::new(1, Message::assistant("Hello"), FinishReason::Stop));
    let picture =
        || Block::new(BlockContent::Media(Media::from_url("image/png", "https://example.org/a.png")));
    let next_round = || text(BlockId::new(2, 0), "Hello");
    for (chunks, expected) in [
        (vec![], vec![Unfinished]),
        (
            [vec![opened(BlockKind::Text)], next_round()[..1].to_vec()].concat(),
            vec![LeftOpen(a()), Unfinished],
        ),
        (text(a(), "Hello"), vec![Unfinished]),
        (vec![delta(hello()), done()], vec![NotOpen(a())]),
        (vec![closed(Block::text("")), done()], vec![NotOpen(a())]),
        ([text(a(), "Hello"), vec![delta(hello()), done()]].concat(), vec![NotOpen(a())]),
        ([text(a(), "Hello"), vec![closed(Block::text("Hello")), done()]].concat(), vec![NotOpen(a())]),
        (
            [text(a(), "Hello"), text(a(), "Hello"), vec![done()]].concat(),
            vec![OpenedTwice(a()), NotOpen(a()), NotOpen(a())],
        ),
        (
            vec![opened(BlockKind::Text), delta(BlockDelta::Reasoning("hm".into())), done()],
            vec![OtherKind(a()), LeftOpen(a()), Unfinished],
        ),
        (vec![opened(BlockKind::ToolCall), done()], vec![OtherKind(a())]),
        (vec![opened(BlockKind::Text), closed(call())], vec![OtherKind(a()), Unfinished]),
        (
            vec![opened(BlockKind::Text), delta(hello()), closed(Block::text("Hell"))],
            vec![OtherContent(a()), Unfinished],
        ),
        (vec![opened(BlockKind::Media), closed(picture())], vec![OtherContent(a()), Unfinished]),
        (vec![opened(BlockKind::Text), round()], vec![LeftOpen(a()), Unfinished]),
        ([text(a(), "Hello"), vec![round(), late(), done()]].concat(), vec![RoundEnded(BlockId::new(1, 1))]),
        ([text(a(), "Hello!"), vec![done()]].concat(), vec![NotInResponse(a()), Unfinished]),
        (
            [text(a(), "Hello"), vec![done(), done()], text(a(), "Hello")].concat(),
            vec![StreamViolation::AfterCompletion; 4],
        ),
    ] {
        assert_eq!(violations(&chunks), expected, "{chunks:?}");
    }
}

#[test]
fn law_s4_blocks_have_the_order_of_the_response() {
    let ids = [BlockId::new(1, 0), BlockId::new(1, 1)];
    let shown = [text(ids[0], "a"), text(ids[1], "b")].concat();
    let response = |order: [usize; 2]| {
        let blocks = order.map(|at| (ids[at], Block::text(["a", "b"][at])));
        Chunk::Completed(ChatResponse::from_blocks(1, blocks, FinishReason::Stop))
    };
    assert_eq!(violations(&[shown.clone(), vec![response([0, 1])]].concat()), []);
    let expected = [StreamViolation::NotInResponse(ids[1]), StreamViolation::Unfinished];
    assert_eq!(violations(&[shown, vec![response([1, 0])]].concat()), expected);
}

#[test]
fn law_s3_call_may_close_incomplete() {
    let mut call = ToolCall::new("c1", "look", "{\"a\"");
    call.complete = false;
    let mut chunks: Vec<_> = Chunk::from_block(a(), &Block::from(call.clone())).collect();
    let message = Message::assistant_blocks(vec![call.into()]);
    chunks.push(Chunk::Completed(ChatResponse::new(1, message, FinishReason::Length)));
    assert_eq!(violations(&chunks), []);
}

fn event(kind: ToolEventKind) -> Chunk {
    Chunk::Tool(Box::new(ToolEvent { block: a(), call_id: "c1".into(), name: "look".into(), kind }))
}

#[test]
fn law_t2_call_that_never_started_cannot_finish() {
    let result = ToolResult::new(&ToolCall::new("c1", "look", "{}"), vec!["sunny".into()]);
    let started = event(ToolEventKind::Started { arguments: "{}".into() });
    let progress = event(ToolEventKind::Progress { part: "half".into() });
    let finished = event(ToolEventKind::Finished { result: result.clone() });
    let refused = event(ToolEventKind::NotStarted { reason: NotStartedReason::Denied, result });
    let (twice, idle) = (StreamViolation::StartedTwice(a()), StreamViolation::NotRunning(a()));
    let restart = Chunk::AttemptRestarted { round: 1 };
    let table = [
        (vec![&started, &progress, &progress, &finished], vec![]),
        (vec![&refused], vec![]),
        (vec![&refused, &restart, &started], vec![]),
        (vec![&started, &started], vec![twice]),
        (vec![&started, &refused], vec![twice]),
        (vec![&refused, &refused], vec![twice]),
        (vec![&refused, &finished], vec![idle]),
        (vec![&progress], vec![idle]),
        (vec![&finished], vec![idle]),
        (vec![&started, &finished, &finished], vec![idle]),
        (vec![&started, &finished, &started], vec![twice]),
    ];
    for (chunks, mut expected) in table {
        expected.push(StreamViolation::Unfinished);
        let chunks: Vec<_> = chunks.into_iter().cloned().collect();
        assert_eq!(violations(&chunks), expected, "{chunks:?}");
    }
}
