//! The answers of the model, and checks of the messages that it is sent (laws M1 and M2).

use advisor_chain::memory::{INTERRUPTED, repair};
use advisor_testkit::ReceivedPrompt;
use advisor_tests::prelude::*;

use crate::state_machine::leaves::Leaves;
use crate::state_machine::operation::Script;
use crate::state_machine::words::of_messages;
use crate::state_machine::world::{elsewhere, key};

const LEFT_OUT: &str = "[steps of this turn are left out here]";
const MESSAGE_LEFT_OUT: &str = "[this message is left out here: there is no room for it]";

/// Returns the user message of a turn: it names the conversation, the turn and the script of the model.
pub(crate) fn words_of_user(conversation: &str, number: usize, script: Script) -> String {
    format!("{conversation} {number} {script:?}")
}

fn script_of(said: &str) -> Script {
    let scripts = [Script::Plain, Script::Tools, Script::Direct, Script::Fails, Script::Breaks];
    let named = |script: &Script| said.ends_with(&format!("{script:?}"));
    scripts.into_iter().find(named).unwrap_or(Script::Plain)
}

impl Leaves {
    /// Returns the answer of the model, which depends only on the messages. It passes a step before each piece.
    pub(crate) fn answer(&self, prompt: &ReceivedPrompt, window: Window) -> Answer {
        self.seen.asked.fetch_add(1, Ordering::Relaxed);
        let sent: Vec<Message> = prompt.messages.iter().cloned().collect();
        let defects = validate_transcript(&sent);
        if !defects.is_empty() {
            self.seen.note(format!("M1: the model was sent {}: {defects:?}", of_messages(&sent)));
        }
        let last = sent.iter().rposition(|message| message.role() == Role::User).unwrap_or_default();
        let said = sent.get(last).map(Message::text).unwrap_or_default();
        let with_calls = sent.iter().skip(last).filter(|message| message.tool_calls().next().is_some());
        let rounds = with_calls.count();
        let begun = self.step(self.compared(prompt.turn.clone(), sent, &said, window));
        let call = |answer, id, tool| self.step(answer).call(id, tool, "{}");
        let two = |answer, one, other| {
            self.step(call(call(answer, "1", one), "2", other)).finish(FinishReason::ToolCalls)
        };
        match (script_of(&said), rounds) {
            (Script::Tools, 0 | 1) => two(begun.text("Wait. "), "charge", "look"),
            (Script::Direct, 0) => two(begun, "direct", "direct"),
            (Script::Fails, 0) => two(begun, "fails", "look"),
            (Script::Breaks, _) => self.step(begun.text("So f")).error(broken()),
            _ => self.step(self.step(begun.text("Done: ")).text(said)).finish(FinishReason::Stop),
        }
    }

    fn step(&self, answer: Answer) -> Answer {
        let steps = self.steps.clone();
        answer.wait(async move { steps.pass().await })
    }

    /// Returns an answer that begins by comparing the sent messages with the transcript of the log: law M2.
    fn compared(&self, turn: TurnId, sent: Vec<Message>, said: &str, window: Window) -> Answer {
        if !self.seen.alone.load(Ordering::Relaxed) {
            return Answer::new();
        }
        let leaves = self.clone();
        let key = if said.starts_with('d') { elsewhere() } else { key() };
        Answer::new().wait(async move {
            let log = leaves.store.load(&key, ReadRange::All).await.unwrap().entries;
            let told = told_to(&turn, log);
            let view = sent.iter().skip_while(|message| message.role() == Role::System).cloned();
            let view: Vec<_> = view.collect();
            let is_view = if window == Window::All { told == view } else { is_window_of(&told, &view) };
            if !is_view || view.is_empty() {
                let (sent, told) = (of_messages(&view), of_messages(&told));
                leaves.seen.note(format!("M2: the model was sent {sent}, and the log tells {told}"));
            }
        })
    }
}

/// Returns whether the sent messages are the running turn after messages of earlier turns, in their order.
fn is_window_of(told: &[Message], sent: &[Message]) -> bool {
    let asked = told.iter().rposition(|message| message.role() == Role::User).unwrap_or_default();
    let (past, running) = told.split_at(asked);
    let Some(earlier) = sent.strip_suffix(running) else { return false };
    let stands_in = |message: &&Message| [LEFT_OUT, MESSAGE_LEFT_OUT].contains(&message.text().as_str());
    let mut past = past.iter();
    earlier.iter().filter(|message| !stands_in(message)).all(|sent| past.any(|message| message == sent))
}

/// Returns the transcript of a log up to its last turn, which is running.
fn told_to(turn: &TurnId, log: Vec<Entry>) -> Vec<Message> {
    // A turn that goes on after an end is asked without what had been shown by then.
    let is_own_end = |entry: &Entry| entry.turn == *turn && matches!(entry.kind, EntryKind::TurnEnded(_));
    let log: Vec<_> = log.into_iter().filter(|entry| !is_own_end(entry)).collect();
    let mut told = repair(&log);
    if told.last().is_some_and(|last| last.text() == INTERRUPTED) {
        told.pop();
    }
    told
}

fn broken() -> Error {
    Error::new(ErrorKind::Connection, "the test wants it so")
}
