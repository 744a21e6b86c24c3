//! The laws of one answer, and its comparison with the expected outcome.

use std::collections::{BTreeMap, BTreeSet};

use advisor_core::{Block, BlockDelta, BlockId, BlockKind, ChatResponse, Chunk, ErrorKind, FinishReason};
use serde_json::Value;

use super::expected::{Expected, ExpectedBlock, ExpectedEnd};
use crate::run::Run;

/// Checks an answer against the laws and against its parts.
pub(super) fn assert_lawful(run: &Run, expected: &Expected) {
    assert_eq!(run.violation(), None, "laws S1, S3, S4");
    assert_shows(&run.chunks, expected);
    match (&run.end, &expected.end) {
        (Ok(response), ExpectedEnd::Completed(reason)) => {
            assert_ids_are_known(&run.chunks, response);
            assert_answers(response, expected, reason);
        }
        (Err(error), ExpectedEnd::Truncated) => {
            assert_eq!(error.kind(), ErrorKind::Truncated, "an answer without an end is truncated");
        }
        (Err(error), ExpectedEnd::Failed) => {
            assert!(matches!(error.kind(), ErrorKind::Provider { .. }), "the server failed: {error:?}");
        }
        (Err(error), ExpectedEnd::Malformed) => {
            assert!(matches!(error.kind(), ErrorKind::Protocol { .. }), "malformed: {error:?}");
        }
        (end, expected) => panic!("the answer ends with {end:?}, and should end with {expected:?}"),
    }
    if let Err(error) = &run.end {
        assert_partial(error.partial(), expected);
    }
}

/// The id of a call is known when its block opens, and does not change.
fn assert_ids_are_known(chunks: &[Chunk], response: &ChatResponse) {
    for chunk in chunks {
        if let Chunk::Opened { block, head } = chunk
            && let Some(call) = &head.call
        {
            let answered = response.tool_calls().find(|(id, _)| id == block).map(|(_, call)| &call.id);
            assert_eq!(Some(&call.call_id), answered, "the id of a call when its block opens");
        }
    }
}

/// Compares the shown pieces with the parts.
fn assert_shows(chunks: &[Chunk], expected: &Expected) {
    let shown = shown(chunks);
    for (at, block) in expected.blocks.iter().enumerate() {
        match (block, shown.get(at)) {
            (ExpectedBlock::Text(kind, pieces), Some((shown, deltas))) => {
                assert_eq!((shown, deltas), (kind, pieces), "block {at} shows other pieces");
            }
            (ExpectedBlock::Call { complete: true, .. }, Some((kind, _))) => {
                assert_eq!(*kind, BlockKind::ToolCall, "block {at} is a call");
            }
            // How much of a call is shown before its end is up to the format.
            (ExpectedBlock::Call { .. }, _) => {}
            (block, None) => panic!("{block:?} is not shown"),
        }
    }
    assert!(shown.len() <= expected.blocks.len(), "more is shown than was sent: {shown:?}");
}

/// Returns the kind of each text and call block, in order, with its deltas.
fn shown(chunks: &[Chunk]) -> Vec<(BlockKind, Vec<String>)> {
    let mut blocks: BTreeMap<BlockId, (BlockKind, Vec<String>)> = BTreeMap::new();
    for chunk in chunks {
        match chunk {
            Chunk::Opened { block, head } => {
                blocks.insert(*block, (head.kind, Vec::new()));
            }
            Chunk::Delta { block, delta } => {
                let text = match delta {
                    BlockDelta::Text(text)
                    | BlockDelta::Reasoning(text)
                    | BlockDelta::Refusal(text)
                    | BlockDelta::Arguments(text) => text.to_string(),
                    _ => String::new(),
                };
                blocks.entry(*block).and_modify(|(_, deltas)| deltas.push(text));
            }
            _ => {}
        }
    }
    blocks.into_values().filter(|(kind, _)| is_compared(*kind)).collect()
}

/// Checks whether blocks of this kind are compared. Others, such as opaque ones, are up to the format.
fn is_compared(kind: BlockKind) -> bool {
    matches!(kind, BlockKind::Text | BlockKind::Reasoning | BlockKind::Refusal | BlockKind::ToolCall)
}

/// Compares a complete response with the parts.
fn assert_answers(response: &ChatResponse, expected: &Expected, reason: &FinishReason) {
    let blocks: Vec<&Block> =
        response.blocks().map(|(_, block)| block).filter(|block| is_compared(block.kind())).collect();
    assert_eq!(blocks.len(), expected.blocks.len(), "the blocks of the response: {blocks:?}");
    for (block, expected) in blocks.iter().zip(&expected.blocks) {
        assert_is(block, expected);
    }
    assert_ids_differ(response);
    let finish = &response.finish.reason;
    // Many formats have no separate reason for an answer that calls tools.
    let is_right = finish == reason
        || (expected.has_calls() && matches!(finish, FinishReason::Stop | FinishReason::ToolCalls));
    assert!(is_right, "the finish reason is {finish:?}, and should be {reason:?}");
    if let Some(usage) = &expected.usage {
        let mut counted = response.usage.unwrap_or_default();
        // A total may be reported or left out.
        counted.total_tokens = usage.total_tokens.and(counted.total_tokens);
        assert_eq!(counted, *usage, "the token counts");
    }
}

/// Law T6: a call has its own name and its own arguments.
fn assert_is(block: &Block, expected: &ExpectedBlock) {
    match (expected, block.as_tool_call()) {
        (ExpectedBlock::Text(kind, pieces), None) => {
            assert_eq!(block.content().text_of(*kind), Some(pieces.concat().as_str()), "{block:?}");
        }
        (ExpectedBlock::Call { name, arguments, complete }, Some(call)) => {
            assert_eq!((call.name.as_str(), call.complete), (name.as_str(), *complete), "law T6: {call:?}");
            let arguments: Value = serde_json::from_str(arguments).expect("the arguments of a call are JSON");
            assert_eq!(call.parsed_arguments().ok(), Some(arguments), "law T6: {call:?}");
        }
        (expected, _) => panic!("{block:?} should be {expected:?}"),
    }
}

fn assert_ids_differ(response: &ChatResponse) {
    let mut ids = BTreeSet::new();
    for (_, call) in response.tool_calls() {
        assert!(
            !call.id.is_empty() && ids.insert(call.id.clone()),
            "law T6: {:?} is no id of its own",
            call.id
        );
    }
}

/// Checks the partial answer of an error: it has the text and no call to run. A call that the server ended before
/// it failed is complete; the reason of a partial answer forbids to run it.
fn assert_partial(partial: Option<&ChatResponse>, expected: &Expected) {
    let text = partial.map(ChatResponse::text).unwrap_or_default();
    assert_eq!(text, expected.text(), "an error keeps the text so far");
    let Some(partial) = partial else { return };
    for (_, call) in partial.tool_calls() {
        let may_run = call.complete && !partial.finish.reason.vetoes_calls();
        assert!(!may_run, "no tool of an answer that failed may run: {call:?}");
    }
}
