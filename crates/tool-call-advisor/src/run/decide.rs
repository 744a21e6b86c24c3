//! `decide` and `Counts`: the pure decision after a round.

use std::collections::HashMap;

use advisor_core::{ChatResponse, FinishReason, Limit, Text, ToolCall};

use crate::ToolLimits;
use crate::not_started::NotStarted;
use crate::plan::Fate;
use crate::run::same_calls::{Fingerprint, SameCalls};

/// The action of the loop after a round.
#[derive(Debug)]
pub(super) enum AfterRound {
    /// The answer ends the turn.
    Finish,
    /// The answer ends the turn, and all its calls are left to the caller.
    LeavePending,
    /// The provider paused and wants to be asked again, without results.
    AskAgain,
    /// No call may run because the answer was cut off or stopped; the turn ends for that reason.
    Veto(FinishReason),
    /// No further round is allowed, so no call runs; the turn ends.
    Stop(Limit),
    /// The calls have these fates, in their order. One of them at least is not pending.
    Run(Vec<Fate>),
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
    pub(crate) fn admit_decided(&mut self, call: &ToolCall, limits: &ToolLimits) -> Fate {
        let fingerprint = limits.same_calls.map(|_| Fingerprint::from_call(call));
        let fate = admit((call, fingerprint), &mut Vec::new(), self, limits);
        if matches!(fate, Fate::Admitted) {
            self.note_call(&call.name);
            self.decided = self.decided.saturating_add(1);
            fingerprint.into_iter().for_each(|call| self.same.note(call, None));
        }
        fate
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
) -> AfterRound {
    let reason = &response.finish.reason;
    let mut calls = response.tool_calls().map(|(_, call)| call).peekable();
    let may_ask_again = match limits.rounds {
        Some(rounds) if counts.rounds >= rounds => Some(Limit::Rounds(rounds)),
        _ => reached.cloned(),
    };
    if calls.peek().is_none() {
        return match (reason, may_ask_again) {
            (FinishReason::Paused, None) => AfterRound::AskAgain,
            (FinishReason::Paused, Some(limit)) => AfterRound::Stop(limit),
            _ => AfterRound::Finish,
        };
    }
    if reason.vetoes_calls() {
        return AfterRound::Veto(reason.clone());
    }
    if weighed.iter().all(|call| call.runner == Runner::Caller) {
        return AfterRound::LeavePending;
    }
    // With a pending call, the turn ends behind this round, so the limit of rounds denies nothing.
    let is_last = weighed.iter().any(|call| call.runner == Runner::Caller);
    if let Some(limit) = may_ask_again.filter(|_| !is_last) {
        return AfterRound::Stop(limit);
    }
    let mut admitted = Vec::new();
    let fate = |(call, weighed): (_, &Weighed)| match (weighed.runner, reached) {
        (Runner::Caller, _) => Fate::Pending,
        (Runner::Loop, Some(limit)) => denied(limit.clone()),
        (Runner::Loop, None) => admit((call, weighed.fingerprint), &mut admitted, counts, limits),
    };
    AfterRound::Run(calls.zip(weighed).map(fate).collect())
}

/// Admits a call, unless a limit denies it. `admitted` holds the earlier calls of its round.
fn admit<'a>(
    (call, fingerprint): (&'a ToolCall, Option<Fingerprint>),
    admitted: &mut Vec<(&'a ToolCall, Option<Fingerprint>)>,
    counts: &Counts,
    limits: &ToolLimits,
) -> Fate {
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
        return denied(Limit::Calls(limit));
    }
    if let Some(limit) = limits.calls_of(tool).filter(|limit| of_tool() >= *limit) {
        return denied(Limit::CallsPerTool { tool: tool.clone(), limit });
    }
    let limit = fingerprint.zip(limits.same_calls);
    if let Some((fingerprint, limit)) = limit.filter(|(fingerprint, limit)| same(*fingerprint) >= *limit) {
        let reached = Limit::SameCall { tool: tool.clone(), limit };
        let was_told = counts.same.was_told(fingerprint);
        return if was_told { denied(reached) } else { Fate::NotStarted(NotStarted::Repeated(reached)) };
    }
    admitted.push((call, fingerprint));
    Fate::Admitted
}

fn denied(limit: Limit) -> Fate {
    Fate::NotStarted(NotStarted::Limit(limit))
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

    fn assert_same(decided: &AfterRound, expected: &AfterRound, what: &str) {
        assert_eq!(format!("{decided:?}"), format!("{expected:?}"), "{what}");
    }

    #[test]
    fn decisions_follow_the_table() {
        use FinishReason::{ContentFilter, Length, Other, Paused, Stop, ToolCalls};
        use Runner::{Caller, Loop};
        let limits =
            ToolLimits { rounds: Some(3), calls: Some(4), calls_per_tool: Some(2), ..ToolLimits::default() };
        let fresh = Counts { rounds: 1, ..Counts::default() };
        let last = Counts { rounds: 3, ..Counts::default() };
        let mut used = Counts { rounds: 2, ..Counts::default() };
        used.note_call(&"f".into());
        let per_tool = |tool: &str| denied(Limit::CallsPerTool { tool: tool.into(), limit: 2 });
        let runs = |calls: usize| AfterRound::Run((0..calls).map(|_| Fate::Admitted).collect());
        let stop = || AfterRound::Stop(Limit::Rounds(3));
        let table = [
            ("an answer", response(&[], Stop), Loop, &fresh, AfterRound::Finish),
            ("a tool finish without a call", response(&[], ToolCalls), Loop, &fresh, AfterRound::Finish),
            ("a pause", response(&[], Paused), Loop, &fresh, AfterRound::AskAgain),
            ("a pause in the last round", response(&[], Paused), Loop, &last, stop()),
            ("calls", response(&["f", "g"], ToolCalls), Loop, &fresh, runs(2)),
            ("calls under stop", response(&["f"], Stop), Loop, &fresh, runs(1)),
            ("calls under an unknown reason", response(&["f"], Other("eos".into())), Loop, &fresh, runs(1)),
            ("a cut answer", response(&["f"], Length), Loop, &fresh, AfterRound::Veto(Length)),
            (
                "a filtered answer",
                response(&["f"], ContentFilter),
                Loop,
                &fresh,
                AfterRound::Veto(ContentFilter),
            ),
            ("not ours", response(&["f"], ToolCalls), Caller, &fresh, AfterRound::LeavePending),
            ("no round left", response(&["f"], ToolCalls), Loop, &last, stop()),
            (
                "a tool's bound",
                response(&["f", "f", "g"], ToolCalls),
                Loop,
                &used,
                AfterRound::Run(vec![Fate::Admitted, per_tool("f"), Fate::Admitted]),
            ),
            (
                "the bound on calls",
                response(&["a", "b", "c", "d"], ToolCalls),
                Loop,
                &used,
                AfterRound::Run(vec![
                    Fate::Admitted,
                    Fate::Admitted,
                    Fate::Admitted,
                    denied(Limit::Calls(4)),
                ]),
            ),
        ];
        for (what, response, runner, counts, expected) in table {
            let weighed = weighed(&response, runner);
            assert_same(&decide(&response, &weighed, None, counts, &limits), &expected, what);
        }
        let asked = response(&["f"], ToolCalls);
        let out_of_time = decide(&asked, &weighed(&asked, Loop), Some(&Limit::Time(5)), &fresh, &limits);
        assert_same(&out_of_time, &AfterRound::Stop(Limit::Time(5)), "out of time");
    }

    #[test]
    fn equal_calls_are_denied_beyond_their_limit() {
        let limits = ToolLimits { same_calls: Some(2), ..ToolLimits::default() };
        let run = |arguments: &[&str], counts: &mut Counts| {
            let blocks = arguments.iter().map(|arguments| Block::from(ToolCall::new("c", "f", *arguments)));
            let answer =
                ChatResponse::new(1, Message::assistant_blocks(blocks.collect()), FinishReason::ToolCalls);
            let weighed = weighed(&answer, Runner::Loop);
            let decision = decide(&answer, &weighed, None, counts, &limits);
            let AfterRound::Run(fates) = decision else { panic!("{decision:?}") };
            for (call, fate) in weighed.iter().zip(&fates) {
                match (fate, call.fingerprint) {
                    (Fate::Admitted, Some(call)) => counts.same.note(call, None),
                    (Fate::NotStarted(NotStarted::Repeated(_)), Some(call)) => counts.same.tell(call),
                    _ => {}
                }
            }
            let shown = |fate: &Fate| match fate {
                Fate::Admitted => "runs",
                Fate::NotStarted(NotStarted::Repeated(_)) => "told",
                Fate::NotStarted(NotStarted::Limit(Limit::SameCall { .. })) => "ends",
                _ => "other",
            };
            fates.iter().map(shown).collect::<Vec<_>>().join(" ")
        };
        let mut counts = Counts { rounds: 1, ..Counts::default() };
        assert_eq!(run(&["{\"a\":1}"], &mut counts), "runs");
        let second = run(&["{ \"a\": 1 }", "{\"a\":1}", "{\"a\":2}"], &mut counts);
        assert_eq!(second, "runs told runs", "also in one round");
        assert_eq!(run(&["{\"a\":1}"], &mut counts), "ends");
    }

    #[test]
    fn pending_calls_leave_the_others_to_the_loop() {
        let limits = ToolLimits { rounds: Some(1), calls_per_tool: Some(1), ..ToolLimits::default() };
        let last = Counts { rounds: 1, ..Counts::default() };
        let asked = response(&["f", "g", "f"], FinishReason::ToolCalls);
        let mut weighed = weighed(&asked, Runner::Loop);
        weighed[1].runner = Runner::Caller;
        let second = denied(Limit::CallsPerTool { tool: "f".into(), limit: 1 });
        let run = AfterRound::Run(vec![Fate::Admitted, Fate::Pending, second]);
        assert_same(&decide(&asked, &weighed, None, &last, &limits), &run, "the last round");
        let late = || denied(Limit::Time(5));
        let run = AfterRound::Run(vec![late(), Fate::Pending, late()]);
        assert_same(&decide(&asked, &weighed, Some(&Limit::Time(5)), &last, &limits), &run, "out of time");
    }
}
