//! Checks of order: input first, answers before tools, results before requests, end last.

use std::collections::HashSet;

use advisor_core::{CallKey, Chunk, Effect, Message, Role, Text, TurnEnd, TurnId};
use conversation_store::{EntryKind, NewEntry};

use super::broken_if;
use crate::crash::case_run::appended;
use crate::crash::{AwaitPoint, CaseRun, Event, Fault, Outcome, TurnRun};
use advisor_testkit::StoreFault;

/// Returns the messages of a turn that these events appended, in order.
fn messages<'a>(
    events: impl IntoIterator<Item = &'a Event>,
    turn: &'a TurnId,
) -> impl Iterator<Item = &'a Message> {
    let entries = events.into_iter().flat_map(appended).filter(move |entry| entry.turn == *turn);
    entries.filter_map(|entry| entry.kind.as_message())
}

pub(super) fn input_comes_first(run: &CaseRun) -> Result<(), String> {
    for turn in &run.turns {
        let asked = turn.events.iter().position(|event| matches!(event, Event::Asked { .. }));
        let Some(before) = asked.and_then(|asked| turn.events.get(..asked)) else { continue };
        broken_if(
            !messages(before, &turn.id).any(|message| matches!(message.role(), Role::User | Role::Tool)),
            || format!("turn {} asks the model before its input is stored", turn.id),
        )?;
    }
    Ok(())
}

pub(super) fn answers_precede_tools(run: &CaseRun) -> Result<(), String> {
    for (turn, started) in run.turns.iter().enumerate() {
        for (place, event) in started.events.iter().enumerate() {
            let Event::ToolStarted { key, call_id, .. } = event else { continue };
            // An approved call is of a turn before.
            let earlier = run.turns.iter().take(turn).flat_map(|turn| &turn.events);
            let before = earlier.chain(started.events.get(..place).unwrap_or_default());
            let stored =
                messages(before, &key.turn).flat_map(Message::tool_calls).any(|call| call.id == *call_id);
            broken_if(!stored, || format!("the tool of call {call_id} starts before the call is stored"))?;
        }
    }
    Ok(())
}

pub(super) fn results_precede_requests(run: &CaseRun) -> Result<(), String> {
    for turn in &run.turns {
        for (place, event) in turn.events.iter().enumerate() {
            let Event::Asked { round, .. } = event else { continue };
            let before = turn.events.get(..place).unwrap_or_default();
            let called: HashSet<&Text> =
                messages(before, &turn.id).flat_map(Message::tool_calls).map(|call| &call.id).collect();
            let answered: HashSet<&Text> = messages(before, &turn.id)
                .filter_map(Message::tool_result)
                .map(|result| &result.call_id)
                .collect();
            if let Some(open) = called.difference(&answered).next() {
                return Err(format!("request {round} is sent before the result of call {open} is stored"));
            }
        }
    }
    Ok(())
}

pub(super) fn failures_end_the_turn(run: &CaseRun) -> Result<(), String> {
    for turn in &run.turns {
        for (place, event) in turn.events.iter().enumerate() {
            let after = turn.events.get(place + 1..).unwrap_or_default();
            match event {
                Event::Injected { await_point, fault, .. } if ends_the_turn(*await_point, *fault) => {
                    nothing_follows(turn, after)?;
                }
                Event::AnswerFailed { round } => failed_is_no_answer(*round, after)?,
                _ => {}
            }
        }
    }
    Ok(())
}

fn nothing_follows(turn: &TurnRun, after: &[Event]) -> Result<(), String> {
    let goes_on = |event: &Event| matches!(event, Event::ToolStarted { .. } | Event::Asked { .. });
    broken_if(after.iter().any(goes_on), || {
        "a tool starts or the model is asked after the turn has failed".into()
    })?;
    broken_if(turn.outcome == Outcome::Completed && !is_at_the_end(after), || {
        "the turn completes although it has failed".into()
    })
}

/// Checks that neither the loop nor the turn uses a failed answer, until an advisor inside the loop retries or
/// answers.
fn failed_is_no_answer(round: u32, after: &[Event]) -> Result<(), String> {
    let mut ended = false;
    for event in after {
        let goes_on = match event {
            Event::Asked { .. } => return Ok(()),
            // An advisor outside the loop runs the whole loop again.
            Event::LoopStarted if ended => return Ok(()),
            Event::LoopEnded => {
                ended = true;
                continue;
            }
            Event::RoundEnded(response) if response.round() != round => return Ok(()),
            Event::RoundEnded(_) => "the loop receives it as complete",
            Event::RoundStarted => "the loop begins another round",
            Event::ToolStarted { .. } => "a tool starts",
            Event::Delivered(Chunk::Completed(_)) => "the turn completes",
            _ => continue,
        };
        return Err(format!("{goes_on} after the answer of round {round} has failed"));
    }
    Ok(())
}

/// Checks whether no part of the turn may recover from this.
fn ends_the_turn(await_point: AwaitPoint, fault: Fault) -> bool {
    match fault {
        Fault::Store(StoreFault::Unavailable) => !await_point.is_of_given_lease(),
        Fault::Fail => matches!(await_point, AwaitPoint::Hook(_)),
        _ => false,
    }
}

/// Checks whether the turn had ended when the fault was injected.
fn is_at_the_end(after: &[Event]) -> bool {
    !after.iter().any(|event| matches!(event, Event::Delivered(_)))
}

pub(super) fn the_end_comes_last(run: &CaseRun) -> Result<(), String> {
    for turn in &run.turns {
        let end = turn.events.iter().position(|event| matches!(event, Event::TurnEnded(_)));
        let (before, after) = turn.events.split_at(end.unwrap_or(turn.events.len()));
        broken_if(after.iter().any(|event| matches!(event, Event::Delivered(_))), || {
            "the turn emits an item after its end".into()
        })?;
        if turn.outcome == Outcome::Stuck {
            let (passed, last) = (turn.await_points.len(), turn.await_points.last());
            return Err(format!("the turn hangs after {passed} points; the last one is: {last:?}"));
        }
        broken_if(turn.outcome == Outcome::Stopped, || {
            "the turn ends with neither `Completed` nor an error".into()
        })?;
        let completed =
            before.iter().position(|event| matches!(event, Event::Delivered(Chunk::Completed(_))));
        let Some(before) = completed.and_then(|completed| before.get(..completed)) else { continue };
        let is_end = |kind: &EntryKind| matches!(kind, EntryKind::TurnEnded(TurnEnd::Completed(_)));
        let ends = before.iter().flat_map(appended).filter(|entry| entry.turn == turn.id);
        broken_if(!ends.map(|entry| &entry.kind).any(is_end), || {
            "`Completed` is emitted before the end is stored".into()
        })?;
    }
    Ok(())
}

pub(super) fn tools_run_once(run: &CaseRun) -> Result<(), String> {
    let (mut started, mut had_effect, mut stored) = (HashSet::new(), HashSet::new(), HashSet::new());
    // Outside the loop, such as after an approval, each call starts by itself.
    let mut in_loop = false;
    for event in run.events() {
        for start in appended(event).iter().filter_map(start) {
            broken_if(in_loop && started.iter().any(|other: &&CallKey| is_same_round(other, start)), || {
                format!("the start of call {start} is stored after a tool of its round has started")
            })?;
            stored.insert(start);
        }
        let (key, first) = match event {
            Event::LoopStarted | Event::LoopEnded | Event::TurnStarted(_) => {
                in_loop = matches!(event, Event::LoopStarted);
                continue;
            }
            Event::ToolStarted { key, effect: Some(Effect::AtMostOnce), .. } if !stored.contains(key) => {
                return Err(format!("call {key} starts before its start is stored"));
            }
            Event::ToolStarted { key, .. } => (key, started.insert(key)),
            Event::ToolEffect(key) => (key, had_effect.insert(key)),
            _ => continue,
        };
        broken_if(!first, || format!("call {key} is run twice"))?;
    }
    Ok(())
}

/// Returns the call whose start an entry stores, if it does.
fn start(entry: &NewEntry) -> Option<&CallKey> {
    match &entry.kind {
        EntryKind::CallStarted(start) => Some(&start.key),
        _ => None,
    }
}

fn is_same_round(one: &CallKey, other: &CallKey) -> bool {
    (&one.turn, one.round) == (&other.turn, other.round)
}

pub(super) fn loops_end_once(run: &CaseRun) -> Result<(), String> {
    for turn in &run.turns {
        let (mut started, mut ended, mut in_turns) = (0, 0, true);
        for event in &turn.events {
            match event {
                Event::LoopStarted => started += 1,
                Event::LoopEnded => ended += 1,
                _ => continue,
            }
            in_turns &= started <= ended + 1;
        }
        // An advisor that runs the whole loop again starts another one after the first has ended. A loop that
        // its advisors refuse to join ends without having started.
        broken_if(!in_turns || started > ended || ended > started.max(1), || {
            format!("the loop starts {started} times and ends {ended} times")
        })?;
    }
    Ok(())
}

pub(super) fn nothing_is_left(run: &CaseRun) -> Result<(), String> {
    let left = run.events().find(|event| matches!(event, Event::Leaked(_) | Event::Late(_)));
    left.map_or(Ok(()), |left| Err(left.to_string()))
}
