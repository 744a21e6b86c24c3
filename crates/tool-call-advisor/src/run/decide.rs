//! `decide`, `Decision` and `Counts`: the pure decision after a round.

use std::collections::HashMap;

use advisor_core::{ChatResponse, FinishReason, Limit, Text, ToolCall};

use crate::plan::Admission;
use crate::run::same_calls::{Fingerprint, SameCalls};
use crate::{OnCallLimit, ToolLimits};

/// The action of the loop after a round.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Decision {
    /// The answer ends the turn.
    Finish,
    /// The answer ends the turn, and all its calls are client-side.
    ClientSide,
    /// The provider paused and wants to be asked again, without results.
    AskAgain,
    /// No call may run because the answer was cut off or stopped; the turn ends for that reason.
    Veto(FinishReason),
    /// No further round is allowed, so no call runs; the turn ends.
    Stop(Limit),
    /// The calls are treated as the list states, in their order. One of them at least is not client-side.
    Run(Vec<Admission>),
}

/// The side that runs a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Runner {
    Loop,
    Caller,
}

/// What the decision needs to know of a call, beside the call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Weighed {
    pub(super) runner: Runner,
    /// The hash by which it is compared with other calls, if those are limited.
    pub(super) fingerprint: Option<Fingerprint>,
}

/// Rounds and calls of the turn so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counts {
    pub(super) rounds: u32,
    pub(super) calls: u32,
    /// Those of `calls` about which a person has decided. They ran before the first round.
    pub(super) decided: u32,
    pub(super) per_tool: HashMap<Text, u32>,
    pub(super) same: SameCalls,
}

impl Counts {
    /// Admits a call about which a person has decided, unless a limit denies it. Counts an admitted call.
    pub(crate) fn admit_decided(&mut self, call: &ToolCall, limits: &ToolLimits) -> Admission {
        let fingerprint = limits.same_calls_of(&call.name).map(|_| Fingerprint::from_call(call));
        let admission = admit((call, fingerprint), &mut Vec::new(), self, limits);
        if admission == Admission::Admitted {
            self.note_call(&call.name);
            self.decided = self.decided.saturating_add(1);
            fingerprint.into_iter().for_each(|call| self.same.note(call, None));
        }
        admission
    }

    /// Checks whether the loop has run calls, beside the decided ones.
    pub(super) fn has_run(&self) -> bool {
        self.calls > self.decided
    }

    pub(super) fn note_call(&mut self, tool: &Text) {
        self.calls = self.calls.saturating_add(1);
        let count = self.per_tool.entry(tool.clone()).or_default();
        *count = count.saturating_add(1);
    }
}

/// Decides the action of the loop after a round. The result depends on the arguments only.
///
/// Tools run because complete calls exist, for any other finish reason. A cut-off or filtered answer vetoes them.
/// `weighed` holds the facts about each call, in their order. `reached` is a limit other than that of rounds.
pub(super) fn decide(
    response: &ChatResponse,
    weighed: &[Weighed],
    reached: Option<&Limit>,
    counts: &Counts,
    limits: &ToolLimits,
) -> Decision {
    let reason = &response.finish().reason;
    let mut calls = response.tool_calls().map(|(_, call)| call).peekable();
    let may_ask_again = match limits.rounds {
        Some(rounds) if counts.rounds >= rounds => Some(Limit::Rounds(rounds)),
        _ => reached.cloned(),
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
    if weighed.iter().all(|call| call.runner == Runner::Caller) {
        return Decision::ClientSide;
    }
    // With a client-side call, the turn ends behind this round, so the limit of rounds denies nothing.
    let is_last = weighed.iter().any(|call| call.runner == Runner::Caller);
    if let Some(limit) = may_ask_again.filter(|_| !is_last) {
        return Decision::Stop(limit);
    }
    let mut admitted = Vec::new();
    let admission = |(call, weighed): (_, &Weighed)| match (weighed.runner, reached) {
        (Runner::Caller, _) => Admission::ClientSide,
        (Runner::Loop, Some(limit)) => Admission::Denied(limit.clone()),
        (Runner::Loop, None) => admit((call, weighed.fingerprint), &mut admitted, counts, limits),
    };
    Decision::Run(calls.zip(weighed).map(admission).collect())
}

/// Admits a call, unless a limit denies it. `admitted` holds the earlier calls of its round.
fn admit<'a>(
    (call, fingerprint): (&'a ToolCall, Option<Fingerprint>),
    admitted: &mut Vec<(&'a ToolCall, Option<Fingerprint>)>,
    counts: &Counts,
    limits: &ToolLimits,
) -> Admission {
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let tool = &call.name;
    let all = || counts.calls.saturating_add(number(admitted.len()));
    let of_tool = || {
        let before = counts.per_tool.get(tool).copied().unwrap_or_default();
        before.saturating_add(number(admitted.iter().filter(|(other, _)| other.name == *tool).count()))
    };
    let same = |fingerprint| {
        let in_round = admitted.iter().filter(|(_, other)| *other == Some(fingerprint)).count();
        counts.same.count(fingerprint).saturating_add(number(in_round))
    };
    if let Some(limit) = limits.calls.filter(|limit| all() >= *limit) {
        return Admission::Denied(Limit::Calls(limit));
    }
    if let Some(limit) = limits.calls_of(tool).filter(|limit| of_tool() >= *limit) {
        return Admission::Denied(Limit::CallsPerTool { tool: tool.clone(), limit });
    }
    let limit = fingerprint.zip(limits.same_calls_of(tool));
    if let Some((fingerprint, limit)) = limit.filter(|(fingerprint, limit)| same(*fingerprint) >= *limit) {
        let reached = Limit::SameCall { tool: tool.clone(), limit };
        let was_told = counts.same.was_told(fingerprint);
        return if was_told { Admission::Denied(reached) } else { Admission::Told(reached) };
    }
    admitted.push((call, fingerprint));
    Admission::Admitted
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

    fn weighed(answer: &ChatResponse, runner: Runner) -> Vec<Weighed> {
        let weighed = |(_, call)| Weighed { runner, fingerprint: Some(Fingerprint::from_call(call)) };
        answer.tool_calls().map(weighed).collect()
    }

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
        let per_tool = |tool: &str| Admission::Denied(Limit::CallsPerTool { tool: tool.into(), limit: 2 });
        let admitted = || Admission::Admitted;
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
            (
                "calls",
                response(&["f", "g"], ToolCalls),
                Loop,
                &fresh,
                Decision::Run(vec![admitted(), admitted()]),
            ),
            ("calls under stop", response(&["f"], Stop), Loop, &fresh, Decision::Run(vec![admitted()])),
            (
                "calls under an unknown reason",
                response(&["f"], Other("eos".into())),
                Loop,
                &fresh,
                Decision::Run(vec![admitted()]),
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
                Decision::Run(vec![admitted(), per_tool("f"), admitted()]),
            ),
            (
                "the bound on calls",
                response(&["a", "b", "c", "d"], ToolCalls),
                Loop,
                &used,
                Decision::Run(vec![admitted(), admitted(), admitted(), Admission::Denied(Limit::Calls(4))]),
            ),
        ];
        for (what, response, runner, counts, expected) in table {
            let weighed = weighed(&response, runner);
            assert_eq!(decide(&response, &weighed, None, counts, &limits), expected, "{what}");
        }
        let asked = response(&["f"], ToolCalls);
        let out_of_time = decide(&asked, &weighed(&asked, Loop), Some(&Limit::Time(5)), &fresh, &limits);
        assert_eq!(out_of_time, Decision::Stop(Limit::Time(5)));
    }

    #[test]
    fn equal_calls_are_denied_beyond_their_limit() {
        let limits = ToolLimits::default().with_same_calls(Some(2)).with_same_calls_of("poll", None);
        let run = |arguments: &[&str], counts: &mut Counts| {
            let blocks = arguments.iter().flat_map(|arguments| {
                ["f", "poll"].map(|tool| Block::from(ToolCall::new("c", tool, *arguments)))
            });
            let answer =
                ChatResponse::new(1, Message::assistant_blocks(blocks.collect()), FinishReason::ToolCalls);
            let weighed = weighed(&answer, Runner::Loop);
            let decision = decide(&answer, &weighed, None, counts, &limits);
            let Decision::Run(admissions) = decision else { panic!("{decision:?}") };
            for (call, admission) in weighed.iter().zip(&admissions) {
                match (admission, call.fingerprint) {
                    (Admission::Admitted, Some(call)) => counts.same.note(call, None),
                    (Admission::Told(_), Some(call)) => counts.same.tell(call),
                    _ => {}
                }
            }
            let shown = |admission: &Admission| match admission {
                Admission::Admitted => "runs",
                Admission::Told(Limit::SameCall { .. }) => "told",
                Admission::Denied(Limit::SameCall { .. }) => "ends",
                _ => "other",
            };
            admissions.iter().map(shown).collect::<Vec<_>>().join(" ")
        };
        let mut counts = Counts { rounds: 1, ..Counts::default() };
        assert_eq!(run(&["{\"a\":1}"], &mut counts), "runs runs");
        let second = run(&["{ \"a\": 1 }", "{\"a\":1}", "{\"a\":2}"], &mut counts);
        assert_eq!(second, "runs runs told runs runs runs", "also in one round");
        assert_eq!(run(&["{\"a\":1}"], &mut counts), "ends runs");
    }

    #[test]
    fn client_side_calls_leave_the_others_to_the_loop() {
        let limits = ToolLimits::default().with_rounds(1).with_calls_per_tool(1);
        let last = Counts { rounds: 1, ..Counts::default() };
        let asked = response(&["f", "g", "f"], FinishReason::ToolCalls);
        let mut weighed = weighed(&asked, Runner::Loop);
        weighed[1].runner = Runner::Caller;
        let denied = Admission::Denied(Limit::CallsPerTool { tool: "f".into(), limit: 1 });
        let run = Decision::Run(vec![Admission::Admitted, Admission::ClientSide, denied]);
        assert_eq!(decide(&asked, &weighed, None, &last, &limits), run);
        let late = Admission::Denied(Limit::Time(5));
        let run = Decision::Run(vec![late.clone(), Admission::ClientSide, late]);
        assert_eq!(decide(&asked, &weighed, Some(&Limit::Time(5)), &last, &limits), run);
    }
}
