//! Checks for any conversation and any window that each request is valid and has the running turn, or its last steps
//! if it is compacted. Only a running turn that is sent in full may exceed the window.
//! Earlier turns are sent if an answer of theirs fits.
//!
//! The input is settings, then a log (`logs.rs`), as in `m6c032uc1r1a.`: the window (`a` all, `m` messages, `t` turns, `k`
//! tens of tokens) and its size; the policy for a turn that is too large (`s` send, `r` refuse, `c` compact); whether memory
//! is outside the loop (0, 1); the number of rounds with calls, and of calls in each round, less one.
#![no_main]

use advisor_core::{
    ChatClient, ConversationKey, ErrorKind, FinishReason, Message, MessageList, Phase, Role, ToolDefinition,
};
use advisor_fuzz::{Script, log, wait_for};
use advisor_testkit::validate_transcript;
use advisor_testkit::{Answer, ScriptedModel};
use chat_memory_advisor::{ApproximateTokens, ChatMemoryAdvisor, OnOverflow, TokenCounter, Window, repair};
use conversation_store::{
    Batch, BatchKey, ConversationStore, Entry, EntryId, InMemoryStore, NewEntry, Version,
};
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};
use tool_call_advisor::{FnTool, ToolCallAdvisor};

const LEFT_OUT: &str = "[steps of this turn are left out here]";
const MESSAGE_LEFT_OUT: &str = "[this message is left out here: there is no room for it]";

fuzz_target!(|script: &[u8]| {
    let mut script = Script::new(script);
    let case = Case::read(&mut script);
    let log = log(&mut script);
    wait_for(case.check(&log));
});

const QUESTION: &str = "What was the weather like?";

/// One turn over a conversation.
struct Case {
    window: Window,
    on_overflow: OnOverflow,
    /// Whether memory is outside the loop, where it is called once.
    outside: bool,
    /// The number of rounds with calls, and the number of calls in each.
    rounds: usize,
    parallel: usize,
}

impl Case {
    fn read(script: &mut Script<'_>) -> Self {
        let letter = script.letter(b"amtk");
        let size = script.number();
        let window = match letter {
            Some(b'm') => Window::Messages(size),
            Some(b't') => Window::Turns(size),
            Some(b'k') => Window::Tokens(10 * size),
            _ => Window::All,
        };
        let on_overflow = match script.letter(b"src") {
            Some(b'r') => OnOverflow::Refuse,
            Some(b'c') => OnOverflow::Compact,
            _ => OnOverflow::Send,
        };
        let outside = script.pick(&[false, true]);
        Self {
            window,
            on_overflow,
            outside,
            rounds: script.pick(&[0, 1, 2, 3]),
            parallel: script.pick(&[1, 2, 3]),
        }
    }

    async fn check(&self, log: &[Entry]) {
        let key = ConversationKey::new("c").expect("a short name");
        let store = holding(log, &key).await;
        let memory =
            ChatMemoryAdvisor::new(store.clone()).with_window(self.window).with_on_overflow(self.on_overflow);
        let model = self.model();
        let outcome = self.client(model.clone(), memory.clone()).prompt();
        let outcome = outcome.user(QUESTION).conversation(key.clone()).call().await;

        let prompts = model.prompts();
        let written = store.read(&key, EntryId::BEGINNING, usize::MAX).await.expect("a store in memory");
        let asked = written.iter().position(|entry| is_question(entry.kind.as_message()));
        let before = &written[..asked.unwrap_or(written.len())];
        for (round, prompt) in prompts.iter().enumerate() {
            self.check_prompt(round, &prompt.messages, before);
        }
        let shown = memory.transcript(&key).await.expect("a store in memory");
        assert_eq!(validate_transcript(shown.iter()), [], "what is shown of the conversation is valid");
        match outcome {
            Ok(response) => {
                assert_eq!(response.text(), "Wet.");
                assert_eq!(prompts.len(), self.rounds + 1);
                assert_eq!(repair(&written).last().map(Message::text).as_deref(), Some("Wet."));
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::ContextOverflow, "{error}");
                assert!(self.bound().is_some(), "nothing is too large for this window");
                assert!(
                    !prompts.is_empty() || written == log,
                    "a turn that begins too large leaves no trace"
                );
            }
        }
    }

    fn check_prompt(&self, round: usize, sent: &MessageList, log: &[Entry]) {
        let sent: Vec<_> = sent.iter().cloned().collect();
        assert_eq!(validate_transcript(&sent), [], "what is sent is valid");
        let asked = sent.iter().position(|message| is_question(Some(message)));
        let (before, running) = sent.split_at(asked.expect("the running turn is sent"));

        let step = 1 + self.parallel;
        let compacted = self.on_overflow == OnOverflow::Compact && !self.outside;
        let steps = (running.len() - 1) / step;
        assert_eq!(running.len(), 1 + steps * step, "steps stay whole: {running:?}");
        assert!(steps == round || (compacted && (1..round).contains(&steps)), "{steps} of {round} steps");
        for (message, number) in running[1..].iter().rev().zip((0..steps * step).rev()) {
            let result =
                Some(format!("{}-{}", round - steps + number / step, (number % step).wrapping_sub(1)));
            let is_call = number % step == 0;
            let id = message.tool_result().map(|result| result.call_id.to_string());
            assert_eq!(id, result.filter(|_| !is_call), "the last steps stay, in their order");
        }

        self.check_earlier(before, running, log);
        // Outside the loop, memory does not see how the turn grows.
        if round == 0 || !self.outside {
            self.check_size(&sent, running);
        }
    }

    /// Checks the messages of the turns before the running one.
    fn check_earlier(&self, before: &[Message], running: &[Message], log: &[Entry]) {
        let earlier = repair(log);
        let said: Vec<_> = before.iter().filter(|message| !stands_in(message)).collect();
        let mut rest = earlier.iter();
        assert!(said.iter().all(|said| rest.any(|message| message == *said)), "in their order: {before:?}");
        let Some((room, size)) = self.room() else { return self.check_whole_turns(before, &earlier, log) };
        let room = room.saturating_sub(size(running));
        let fits = |message: &&Message| size(&[(*message).clone()]) <= room;
        if let Some(last) = earlier.last().filter(fits) {
            assert_eq!(before.last(), Some(last), "the last answer fits");
        }
        let ends = advisor_fuzz::turns(log).scan(0, |end, turn| {
            *end += turn.len();
            Some(repair(&log[..*end]))
        });
        let is_told =
            |told: &Vec<Message>| earlier.starts_with(told) && told.last().as_ref().is_some_and(fits);
        assert!(!said.is_empty() || !ends.into_iter().any(|told| is_told(&told)), "an earlier answer fits");
    }

    fn check_whole_turns(&self, before: &[Message], earlier: &[Message], log: &[Entry]) {
        let left_out = earlier.len().checked_sub(before.len()).expect("no more than there is");
        assert_eq!(before, &earlier[left_out..], "what is sent of earlier turns is the end of them");
        let ends = advisor_fuzz::turns(log).scan(0, |end, turn| {
            *end += turn.len();
            Some(*end)
        });
        let parts_here = |end| {
            let (gone, kept) = log.split_at(end);
            repair(gone).starts_with(&earlier[..left_out]) && repair(kept) == before
        };
        assert!(left_out == 0 || ends.into_iter().any(parts_here), "whole turns are left out: {before:?}");
        match self.window {
            Window::Turns(0 | 1) => assert_eq!(before, []),
            Window::Turns(_) => assert_eq!(before.is_empty(), earlier.is_empty(), "the last turn is sent"),
            _ => assert_eq!(left_out, 0),
        }
    }

    /// The room of a window that is no number of turns, and the sizes of messages in it.
    fn room(&self) -> Option<(usize, fn(&[Message]) -> usize)> {
        match self.window {
            Window::Messages(room) => Some((room, <[Message]>::len)),
            Window::Tokens(room) => Some((room, |messages| {
                messages.iter().map(|message| ApproximateTokens::default().count(message)).sum()
            })),
            _ => None,
        }
    }

    fn check_size(&self, sent: &[Message], running: &[Message]) {
        let Some((room, size)) = self.room() else { return };
        // If only the last answer fits, the placeholder for its question takes no room.
        let is_in_front = sent.len() == running.len() + 2 && stands_in(&sent[0]);
        let size = size(&sent[usize::from(is_in_front)..]);
        if self.bound().is_some() {
            assert!(size <= room, "{size} in a room of {room}");
        } else if size > room && self.rounds == 0 {
            assert_eq!(sent, running, "only the running turn may be larger than the window");
        }
    }

    /// Returns the bound on the running turn.
    fn bound(&self) -> Option<usize> {
        match self.window {
            Window::Messages(room) | Window::Tokens(room) => {
                Some(room).filter(|_| self.on_overflow != OnOverflow::Send)
            }
            _ => None,
        }
    }

    fn client(&self, model: ScriptedModel, memory: ChatMemoryAdvisor) -> ChatClient {
        let look = FnTool::new(
            ToolDefinition::new("look", "Looks out of the window.", json!({"type": "object"})),
            |_: Value| async { Ok("Rain.") },
        );
        let client = ChatClient::builder(model).advisor(ToolCallAdvisor::new()).tool(look);
        let phase = if self.outside { Phase::Turn } else { Phase::Round };
        client.advisor_in(phase, memory).build().expect("a chain that fits together")
    }

    /// Calls tools for some rounds, then answers.
    fn model(&self) -> ScriptedModel {
        let (rounds, parallel, mut round) = (self.rounds, self.parallel, 0);
        ScriptedModel::from_fn(move |_| {
            let now = round;
            round += 1;
            if now == rounds {
                return Answer::from_text("Wet.");
            }
            let calls = (0..parallel)
                .fold(Answer::new(), |answer, call| answer.call(&format!("{now}-{call}"), "look", "{}"));
            calls.finish(FinishReason::ToolCalls)
        })
    }
}

fn stands_in(message: &Message) -> bool {
    [LEFT_OUT, MESSAGE_LEFT_OUT].contains(&message.text().as_str())
}

fn is_question(message: Option<&Message>) -> bool {
    message.is_some_and(|message| message.role() == Role::User && message.text() == QUESTION)
}

async fn holding(log: &[Entry], key: &ConversationKey) -> InMemoryStore {
    let store = InMemoryStore::new();
    let mut version = Version::EMPTY;
    for turn in advisor_fuzz::turns(log) {
        let name = BatchKey::new(turn[0].turn.clone(), 0, format!("from-{}", turn[0].seq));
        let entries =
            turn.iter().map(|entry| NewEntry::new(entry.turn.clone(), entry.kind.clone())).collect();
        version = store.append(key, version, Batch::new(name, entries)).await.expect("a store in memory");
    }
    store
}
