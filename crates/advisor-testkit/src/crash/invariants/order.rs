use std::collections::HashSet;

use advisor_core::{Chunk, Effect, Message, Role, Text, TurnEnd, TurnId};
use conversation_store::EntryKind;

use crate::StoreFault;
use crate::crash::ran::appended;
use crate::crash::{Happened, Mishap, Over, Place, Ran, TurnRan};

/// Returns the messages of a turn that these events appended, in order.
fn messages<'a>(events: &'a [Happened], turn: &'a TurnId) -> impl Iterator<Item = &'a Message> {
    let entries = events.iter().flat_map(appended).filter(move |entry| entry.turn == *turn);
    entries.filter_map(|entry| entry.kind.as_message())
}

pub(super) fn input_comes_first(ran: &Ran) -> Result<(), String> {
    for turn in &ran.turns {
        let asked = turn.happened.iter().position(|happened| matches!(happened, Happened::Asked { .. }));
        let Some(before) = asked.and_then(|asked| turn.happened.get(..asked)) else { continue };
        if !messages(before, &turn.id).any(|message| message.role() == Role::User) {
            return Err(format!("turn {} asks the model before its input is stored", turn.id));
        }
    }
    Ok(())
}

pub(super) fn answers_precede_tools(ran: &Ran) -> Result<(), String> {
    for turn in &ran.turns {
        for (place, happened) in turn.happened.iter().enumerate() {
            let Happened::ToolStarted { call_id, .. } = happened else { continue };
            let before = turn.happened.get(..place).unwrap_or_default();
            let stored =
                messages(before, &turn.id).flat_map(Message::tool_calls).any(|call| call.id == *call_id);
            if !stored {
                return Err(format!("the tool of call {call_id} starts before the call is stored"));
            }
        }
    }
    Ok(())
}

pub(super) fn results_precede_requests(ran: &Ran) -> Result<(), String> {
    for turn in &ran.turns {
        for (place, happened) in turn.happened.iter().enumerate() {
            let Happened::Asked { round, .. } = happened else { continue };
            let before = turn.happened.get(..place).unwrap_or_default();
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

pub(super) fn failures_end_the_turn(ran: &Ran) -> Result<(), String> {
    for turn in &ran.turns {
        for (place, happened) in turn.happened.iter().enumerate() {
            let after = turn.happened.get(place + 1..).unwrap_or_default();
            match happened {
                Happened::Struck { place, mishap, .. } if ends_the_turn(*place, *mishap) => {
                    nothing_goes_on(turn, after)?;
                }
                Happened::AnswerFailed { round } => failed_is_no_answer(*round, after)?,
                _ => {}
            }
        }
    }
    Ok(())
}

fn nothing_goes_on(turn: &TurnRan, after: &[Happened]) -> Result<(), String> {
    let goes_on =
        |happened: &Happened| matches!(happened, Happened::ToolStarted { .. } | Happened::Asked { .. });
    if after.iter().any(goes_on) {
        return Err("a tool starts or the model is asked after the turn has failed".into());
    }
    if turn.over == Over::Completed && !is_at_the_end(after) {
        return Err("the turn completes although it has failed".into());
    }
    Ok(())
}

/// Checks that neither the loop nor the turn uses a failed answer, until an advisor inside the loop retries or
/// answers.
fn failed_is_no_answer(round: u32, after: &[Happened]) -> Result<(), String> {
    let mut ended = false;
    for happened in after {
        let goes_on = match happened {
            Happened::Asked { .. } => return Ok(()),
            // An advisor outside the loop runs the whole loop again.
            Happened::LoopStarted if ended => return Ok(()),
            Happened::LoopEnded => {
                ended = true;
                continue;
            }
            Happened::RoundEnded(response) if response.round() != round => return Ok(()),
            Happened::RoundEnded(_) => "the loop is given it as a whole one",
            Happened::RoundStarted => "the loop begins another round",
            Happened::ToolStarted { .. } => "a tool starts",
            Happened::Delivered(Chunk::Completed(_)) => "the turn completes",
            _ => continue,
        };
        return Err(format!("{goes_on} after the answer of round {round} has failed"));
    }
    Ok(())
}

/// Checks whether no part of the turn may recover from this.
fn ends_the_turn(place: Place, mishap: Mishap) -> bool {
    match mishap {
        Mishap::Store(StoreFault::Unavailable) => !place.is_of_given_lease(),
        Mishap::Fail => matches!(place, Place::Hook(_)),
        _ => false,
    }
}

/// Checks whether the turn had ended when the mishap happened.
fn is_at_the_end(after: &[Happened]) -> bool {
    !after.iter().any(|happened| matches!(happened, Happened::Delivered(_)))
}

pub(super) fn the_end_comes_last(ran: &Ran) -> Result<(), String> {
    for turn in &ran.turns {
        let over = turn.happened.iter().position(|happened| matches!(happened, Happened::Over(_)));
        let (before, after) = turn.happened.split_at(over.unwrap_or(turn.happened.len()));
        if after.iter().any(|happened| matches!(happened, Happened::Delivered(_))) {
            return Err("something comes out after the end".into());
        }
        if turn.over == Over::Stuck {
            let last = turn.places.last().map(ToString::to_string).unwrap_or_default();
            let passed = turn.places.len();
            return Err(format!("the turn hangs after {passed} points, the last of which is: {last}"));
        }
        if turn.over == Over::Stopped {
            return Err("the turn ends with neither `Completed` nor an error".into());
        }
        let completed =
            before.iter().position(|happened| matches!(happened, Happened::Delivered(Chunk::Completed(_))));
        let Some(before) = completed.and_then(|completed| before.get(..completed)) else { continue };
        let is_end = |kind: &EntryKind| matches!(kind, EntryKind::TurnEnded(TurnEnd::Completed(_)));
        let ends = before.iter().flat_map(appended).filter(|entry| entry.turn == turn.id);
        if !ends.map(|entry| &entry.kind).any(is_end) {
            return Err("`Completed` comes out before the end is stored".into());
        }
    }
    Ok(())
}

pub(super) fn tools_run_once(ran: &Ran) -> Result<(), String> {
    let (mut started, mut had_effect, mut announced) = (HashSet::new(), HashSet::new(), HashSet::new());
    for happened in ran.happened() {
        announced.extend(appended(happened).iter().filter_map(|entry| match &entry.kind {
            EntryKind::CallStarted(start) => Some(&start.key),
            _ => None,
        }));
        let (key, first) = match happened {
            Happened::ToolStarted { key, effect: Some(Effect::AtMostOnce), .. }
                if !announced.contains(key) =>
            {
                return Err(format!("call {key} starts before its start is stored"));
            }
            Happened::ToolStarted { key, .. } => (key, started.insert(key)),
            Happened::ToolEffect(key) => (key, had_effect.insert(key)),
            _ => continue,
        };
        if !first {
            return Err(format!("call {key} is run twice"));
        }
    }
    Ok(())
}

pub(super) fn loops_end_once(ran: &Ran) -> Result<(), String> {
    for turn in &ran.turns {
        let (mut started, mut ended, mut in_turns) = (0, 0, true);
        for happened in &turn.happened {
            match happened {
                Happened::LoopStarted => started += 1,
                Happened::LoopEnded => ended += 1,
                _ => continue,
            }
            in_turns &= started <= ended + 1;
        }
        // An advisor that runs the whole loop again starts another one after the first has ended. A loop that
        // its advisors refuse to join ends without having started.
        if !in_turns || started > ended || ended > started.max(1) {
            return Err(format!("the loop starts {started} times and ends {ended} times"));
        }
    }
    Ok(())
}

pub(super) fn nothing_is_left(ran: &Ran) -> Result<(), String> {
    let left = ran.happened().find(|happened| matches!(happened, Happened::Left(_) | Happened::Late(_)));
    left.map_or(Ok(()), |left| Err(left.to_string()))
}
