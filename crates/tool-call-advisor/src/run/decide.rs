use std::collections::HashMap;

use advisor_core::{ChatResponse, FinishReason, Limit, Text, ToolCall};

use crate::{OnCallLimit, ToolLimits};

/// The action of the loop after a round.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Decision {
    /// The answer ends the turn.
    Finish,
    /// The answer ends the turn with client-side calls.
    ClientSide,
    /// The provider paused and wants to be asked again, without results.
    AskAgain,
    /// No call may run because the answer was cut off or stopped; the turn ends for that reason.
    Veto(FinishReason),
    /// No further round is allowed, so no call runs; the turn ends.
    Stop(Limit),
    /// The calls run, except those with a limit at their position.
    Run(Vec<Option<Limit>>),
}

/// The side that runs the calls of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Runner {
    /// The loop, all of them.
    Loop,
    /// The caller, since the loop may not run one of them.
    Caller,
}

/// Rounds and calls of the turn so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Counts {
    pub(super) rounds: u32,
    pub(super) calls: u32,
    pub(super) per_tool: HashMap<Text, u32>,
}

impl Counts {
    pub(super) fn note_call(&mut self, tool: &Text) {
        self.calls = self.calls.saturating_add(1);
        let count = self.per_tool.entry(tool.clone()).or_default();
        *count = count.saturating_add(1);
    }
}

/// Decides the action of the loop after a round. The result depends on the arguments only.
///
/// Tools run because complete calls exist, for any other finish reason. A cut-off or filtered answer vetoes them.
pub(super) fn decide(
    response: &ChatResponse,
    runner: Runner,
    out_of_time: Option<Limit>,
    counts: &Counts,
    limits: &ToolLimits,
) -> Decision {
    let reason = &response.finish().reason;
    let mut calls = response.tool_calls().map(|(_, call)| call).peekable();
    let may_ask_again = match limits.rounds {
        Some(rounds) if counts.rounds >= rounds => Some(Limit::Rounds(rounds)),
        _ => out_of_time,
    };
    if calls.peek().is_none() {
        return match (reason, may_ask_again) {
            (FinishReason::Paused, None) => Decision::AskAgain,
            (FinishReason::Paused, Some(limit)) => Decision::Stop(limit),
            _ => Decision::Finish,
        };
    }
    if reason.vetoes_calls() {
        return Decision::Veto(reason.clone());
    }
    if runner == Runner::Caller {
        return Decision::ClientSide;
    }
    if let Some(limit) = may_ask_again {
        return Decision::Stop(limit);
    }
    let mut counts = counts.clone();
    Decision::Run(calls.map(|call| admit(call, &mut counts, limits)).collect())
}

/// Counts a call, or returns the limit that denies it.
fn admit(call: &ToolCall, counts: &mut Counts, limits: &ToolLimits) -> Option<Limit> {
    if let Some(limit) = limits.calls.filter(|limit| counts.calls >= *limit) {
        return Some(Limit::Calls(limit));
    }
    let of_this = counts.per_tool.get(&call.name).copied().unwrap_or_default();
    if let Some(limit) = limits.calls_of(&call.name).filter(|limit| of_this >= *limit) {
        return Some(Limit::CallsPerTool { tool: call.name.clone(), limit });
    }
    counts.note_call(&call.name);
    None
}

/// Returns the limit that ends the turn after a batch with these denied calls, if one does.
pub(super) fn ending_limit<'a>(
    mut denied: impl Iterator<Item = &'a Limit>,
    limits: &ToolLimits,
) -> Option<Limit> {
    denied.next().filter(|_| limits.on_call_limit == OnCallLimit::EndTurn).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use advisor_core::{Block, Message};

    fn response(calls: &[&str], reason: FinishReason) -> ChatResponse {
        let blocks = calls.iter().map(|name| Block::from(ToolCall::new(*name, *name, "{}"))).collect();
        ChatResponse::new(1, Message::assistant_blocks(blocks), reason)
    }

    #[test]
    fn decisions_follow_the_table() {
        use FinishReason::{ContentFilter, Length, Other, Paused, Stop, ToolCalls};
        use Runner::{Caller, Loop};
        let limits = ToolLimits::default().with_rounds(3).with_calls(4).with_calls_per_tool(2);
        let fresh = Counts { rounds: 1, ..Counts::default() };
        let last = Counts { rounds: 3, ..Counts::default() };
        let mut used = Counts { rounds: 2, ..Counts::default() };
        used.note_call(&"f".into());
        let per_tool = |tool: &str| Some(Limit::CallsPerTool { tool: tool.into(), limit: 2 });
        let table = [
            ("an answer", response(&[], Stop), Loop, &fresh, Decision::Finish),
            ("a tool finish without a call", response(&[], ToolCalls), Loop, &fresh, Decision::Finish),
            ("a pause", response(&[], Paused), Loop, &fresh, Decision::AskAgain),
            (
                "a pause in the last round",
                response(&[], Paused),
                Loop,
                &last,
                Decision::Stop(Limit::Rounds(3)),
            ),
            ("calls", response(&["f", "g"], ToolCalls), Loop, &fresh, Decision::Run(vec![None, None])),
            ("calls under stop", response(&["f"], Stop), Loop, &fresh, Decision::Run(vec![None])),
            (
                "calls under an unknown reason",
                response(&["f"], Other("eos".into())),
                Loop,
                &fresh,
                Decision::Run(vec![None]),
            ),
            ("a cut answer", response(&["f"], Length), Loop, &fresh, Decision::Veto(Length)),
            (
                "a filtered answer",
                response(&["f"], ContentFilter),
                Loop,
                &fresh,
                Decision::Veto(ContentFilter),
            ),
            ("not ours", response(&["f"], ToolCalls), Caller, &fresh, Decision::ClientSide),
            ("no round left", response(&["f"], ToolCalls), Loop, &last, Decision::Stop(Limit::Rounds(3))),
            (
                "a tool's bound",
                response(&["f", "f", "g"], ToolCalls),
                Loop,
                &used,
                Decision::Run(vec![None, per_tool("f"), None]),
            ),
            (
                "the bound on calls",
                response(&["a", "b", "c", "d"], ToolCalls),
                Loop,
                &used,
                Decision::Run(vec![None, None, None, Some(Limit::Calls(4))]),
            ),
        ];
        for (what, response, runner, counts, expected) in table {
            assert_eq!(decide(&response, runner, None, counts, &limits), expected, "{what}");
        }
        let out_of_time = decide(&response(&["f"], ToolCalls), Loop, Some(Limit::Time(5)), &fresh, &limits);
        assert_eq!(out_of_time, Decision::Stop(Limit::Time(5)));
    }
}
