//! Tests that the messages of a window do not depend on how much of the log was read.

use std::sync::{Arc, Mutex};

use advisor_core::{Block, FinishReason, Message, Phase, ToolCall, ToolResult, TurnEnd, TurnId, async_trait};
use advisor_testkit::{Answer, Around, Asked, ScriptedModel, StoreAround, Work, validate_transcript};
use chat_memory_advisor::{ChatMemoryAdvisor, ForkPoint, OnOverflow, Window};
use conversation_store::{
    Batch, BatchKey, ConversationStore, EntryId, EntryKind, InMemoryStore, NewEntry, ReadRange, StoreError,
    Version,
};
use proptest::prelude::*;

use crate::support::{Rounds, builder, key, words};

/// Notes the views that a store is asked for, and shows all of a log if it is to.
#[derive(Default)]
struct Views {
    shows_all: bool,
    asked: Mutex<Vec<ReadRange>>,
}

#[async_trait]
impl Around for Views {
    async fn around(&self, _: Asked<'_>, work: Work<'_>) -> Result<Option<Version>, StoreError> {
        work.await
    }

    fn range(&self, range: ReadRange) -> ReadRange {
        self.asked.lock().unwrap().push(range);
        if self.shows_all { ReadRange::All } else { range }
    }
}

/// A stored turn: the sizes of its question and of the results of its rounds, and how it ends.
type Stored = (usize, Vec<Vec<usize>>, Ends);

#[derive(Debug, Clone, Copy)]
enum Ends {
    Answered(usize),
    /// Its last round is left to the caller, without results.
    ClientSide,
    Failed(usize),
    Undone,
    /// Its last round has no results, and nothing is written of its end.
    Open,
    /// Its last round is left to the caller. Another turn begins with the results, and nothing is written of its end.
    Continued,
}

/// The beginning of the tested turn.
#[derive(Debug, Clone, Copy)]
enum Begins {
    /// With a question of this size.
    Asking(usize),
    /// With results for the calls that the last turn left to the caller, or else as the last turn, submitted again.
    Again,
    /// On a branch after this many of the stored turns, with a question.
    Branching(usize),
}

/// The stored turns, the window, and the input and rounds of the tested turn.
#[derive(Debug, Clone)]
struct Case {
    stored: Vec<Stored>,
    window: Window,
    on_overflow: OnOverflow,
    begins: Begins,
    /// The sizes of the results of each round.
    rounds: Vec<Vec<usize>>,
}

/// The size that a text names behind its last `#`; 2 for calls, else 5.
fn counted(message: &Message) -> usize {
    let text = message.tool_result().map_or_else(|| message.text(), ToolResult::text);
    let named = text.rsplit_once('#').and_then(|(_, size)| size.split(' ').next()?.parse().ok());
    named.unwrap_or(if message.tool_calls().next().is_some() { 2 } else { 5 })
}

/// The ids of the calls of a round, each of which names the size of its result.
fn ids(name: &str, sizes: &[usize]) -> Vec<String> {
    (0..).zip(sizes).map(|(nth, size): (u32, _)| format!("{name}-{nth}#{size}")).collect()
}

fn result(id: &str) -> Message {
    Message::tool(ToolResult::new(&ToolCall::new(id, "f", "{}"), vec![format!("ran {id}").into()]))
}

fn entries((number, (question, rounds, ends)): (usize, &Stored)) -> Vec<NewEntry> {
    let mut kinds = vec![EntryKind::Message(Message::user(format!("q{number}#{question}")))];
    let is_left = matches!(ends, Ends::ClientSide | Ends::Open | Ends::Continued);
    let mut next = Vec::new();
    for (round, sizes) in rounds.iter().enumerate() {
        let ids = ids(&format!("{number}-{round}"), sizes);
        let calls = ids.iter().map(|id| Block::from(ToolCall::new(id.as_str(), "f", "{}")));
        kinds.push(EntryKind::Message(Message::assistant_blocks(calls.collect())));
        let results = ids.iter().map(|id| EntryKind::Message(result(id)));
        if round + 1 < rounds.len() || !is_left {
            kinds.extend(results);
        } else if matches!(ends, Ends::Continued) {
            let turn = TurnId::new(&format!("t{number}-next")).unwrap();
            next.extend(results.map(|kind| NewEntry::new(turn.clone(), kind)));
        }
    }
    let end = match ends {
        Ends::Answered(size) => {
            kinds.push(EntryKind::Message(Message::assistant(format!("a{number}#{size}"))));
            Some(TurnEnd::Completed(FinishReason::Stop))
        }
        Ends::ClientSide | Ends::Continued => Some(TurnEnd::Completed(FinishReason::ToolCalls)),
        Ends::Failed(size) => Some(TurnEnd::Failed { partial: format!("half#{size}").into() }),
        Ends::Undone => Some(TurnEnd::RolledBack),
        Ends::Open => None,
    };
    let turn = TurnId::new(&format!("t{number}")).unwrap();
    kinds
        .into_iter()
        .chain(end.map(EntryKind::TurnEnded))
        .map(|kind| NewEntry::new(turn.clone(), kind))
        .chain(next)
        .collect()
}

/// The result of a turn.
#[derive(Debug, PartialEq)]
struct Came {
    /// The messages of each of its requests.
    sent: Vec<String>,
    outcome: Result<String, String>,
}

impl Case {
    fn sending(stored: Vec<Stored>, window: Window, begins: Begins) -> Self {
        Self { stored, window, on_overflow: OnOverflow::Send, begins, rounds: Vec::new() }
    }

    /// Returns the turn's id, its input, and its fork point.
    fn input(&self, tips: &[EntryId]) -> (TurnId, Vec<Message>, Option<ForkPoint>) {
        let (new, asked) = (TurnId::new("new").unwrap(), |size| vec![Message::user(format!("now#{size}"))]);
        let last = self.stored.iter().enumerate().next_back().map(|last| (entries(last), last.1.2));
        match (self.begins, last) {
            (Begins::Again, Some((entries, Ends::ClientSide))) => {
                let mut messages = entries.iter().filter_map(|entry| entry.kind.as_message());
                let open: Vec<_> =
                    messages.next_back().unwrap().tool_calls().map(|call| result(&call.id)).collect();
                if open.is_empty() { (new, asked(1), None) } else { (new, open, None) }
            }
            (Begins::Again, Some((entries, Ends::Open | Ends::Failed(_)))) => {
                let asked = entries[0].kind.as_message().cloned().into_iter().collect();
                (entries[0].turn.clone(), asked, None)
            }
            (Begins::Again, Some((entries, Ends::Continued))) => {
                let turn = entries.last().unwrap().turn.clone();
                let own = entries.iter().filter(|entry| entry.turn == turn);
                let said: Vec<_> = own.filter_map(|entry| entry.kind.as_message().cloned()).collect();
                if self.stored.last().is_some_and(|last| last.1.is_empty()) {
                    (new, asked(1), None)
                } else {
                    (turn, said, None)
                }
            }
            (Begins::Branching(turns), _) => {
                let tip = tips.get(turns % tips.len().max(1)).copied();
                (new, asked(1), tip.map(ForkPoint::After))
            }
            (Begins::Asking(size), _) => (new, asked(size), None),
            (Begins::Again, _) => (new, asked(1), None),
        }
    }

    async fn run(&self, store: &StoreAround<InMemoryStore, Views>) -> Came {
        let (mut at, mut tips) = (Version::EMPTY, Vec::new());
        for entries in self.stored.iter().enumerate().map(entries) {
            let batch = Batch::new(BatchKey::new(entries[0].turn.clone(), 0, "input"), entries);
            at = store.append(&key(), at, batch).await.unwrap();
            tips.push(EntryId(at.0));
        }
        let (turn, input, fork_point) = self.input(&tips);
        let memory = ChatMemoryAdvisor::new(store.clone())
            .with_window(self.window)
            .with_on_overflow(self.on_overflow)
            .with_token_counter(counted as fn(&Message) -> usize);
        let calls = (0..).zip(&self.rounds).map(|(round, sizes): (u32, _)| {
            let ids = ids(&format!("n{round}"), sizes);
            Answer::from_calls(ids.iter().map(|id| (id.as_str(), "f", "{}")).collect::<Vec<_>>())
        });
        let model = ScriptedModel::new(calls.chain([Answer::from_text("done")]));
        let client = builder(&memory, Phase::Round, &model).advisor(Rounds::default()).build().unwrap();
        let mut prompt = client.prompt().messages(input).conversation("c").turn(turn);
        if let Some(fork_point) = fork_point {
            prompt = prompt.extension(fork_point);
        }
        let outcome = prompt.call().await.map(|response| response.text()).map_err(|error| error.to_string());
        for prompt in model.prompts() {
            assert_eq!(validate_transcript(&prompt.messages), [], "{}", words(&prompt.messages));
        }
        Came { sent: model.prompts().iter().map(|prompt| words(&prompt.messages)).collect(), outcome }
    }

    /// Runs the turn over a store that returns only the requested range, and compares it with one that returns
    /// everything.
    fn check(&self) -> (Came, Vec<ReadRange>) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let [partial, all] = [false, true]
                .map(|shows_all| StoreAround::with(Arc::default(), Views { shows_all, ..Views::default() }));
            let (came, of_all) = (self.run(&partial).await, self.run(&all).await);
            // While a bounded turn runs, memory selects again among the turns that it has read.
            let same = if self.on_overflow == OnOverflow::Send { usize::MAX } else { 1 };
            let (sent, of_all_sent) = (came.sent.iter().take(same), of_all.sent.iter().take(same));
            assert!(sent.eq(of_all_sent) && came.outcome == of_all.outcome, "{self:?}: {came:?} {of_all:?}");
            let asked = partial.around.asked.lock().unwrap().clone();
            (came, asked)
        })
    }
}

fn plain(question: usize, answer: usize) -> Stored {
    (question, Vec::new(), Ends::Answered(answer))
}

/// Returns two small turns, then `count` larger ones.
fn small_and_large(count: usize, size: usize) -> Vec<Stored> {
    [plain(1, 1), plain(1, 1)].into_iter().chain(vec![plain(size, size); count]).collect()
}

const SMALL: &str = "s:S u:q0#1 a:a0#1 u:q1#1 a:a1#1";

#[test]
fn law_m7_turn_compacted_on_resubmission_leaves_history_room() {
    let mut stored = small_and_large(0, 0);
    stored.push((1, vec![vec![3; 9]; 7], Ends::Open));
    let case = Case::sending(stored, Window::Messages(20), Begins::Again);
    let (came, _) = Case { on_overflow: OnOverflow::Compact, ..case }.check();
    let compacted = format!("{SMALL} u:q2#1 a(2-6-0#3,");
    assert!(came.sent[0].starts_with(&compacted), "{}", came.sent[0]);
}

#[test]
fn law_m7_results_closing_crashed_turn_take_room() {
    let mut stored = small_and_large(20, 55);
    stored.push((1, vec![vec![3; 3]], Ends::Open));
    let (came, _) = Case::sending(stored, Window::Tokens(63), Begins::Again).check();
    assert!(came.sent[0].starts_with(&format!("{SMALL} u:q22#1 ")), "{}", came.sent[0]);
}

#[test]
fn law_m6_resumed_turn_of_results_is_sent_with_the_calls_they_answer() {
    let mut stored = small_and_large(20, 5);
    stored.push((1, vec![vec![1; 4]], Ends::Continued));
    for window in [Window::Turns(1), Window::Messages(2)] {
        let (came, _) = Case::sending(stored.clone(), window, Begins::Again).check();
        let turn = "u:q22#1 a(22-0-0#1,22-0-1#1,22-0-2#1,22-0-3#1) r22-0-0#1";
        assert!(came.sent[0].contains(turn), "{window:?}: {came:?}");
    }
}

#[test]
fn ordinary_turns_are_read_once_beside_bounded_turn() {
    let rounds = vec![vec![3, 3]; 12];
    for (window, first) in [
        (Window::Messages(20), ReadRange::LastEntries(40)),
        (Window::Tokens(100), ReadRange::LastTurns(16)),
        (Window::Turns(3), ReadRange::LastTurns(3)),
    ] {
        let rounds = if matches!(window, Window::Tokens(_)) { vec![vec![3, 3]; 6] } else { rounds.clone() };
        let case = Case::sending(small_and_large(200, 5), window, Begins::Asking(5));
        let (came, asked) = Case { on_overflow: OnOverflow::Compact, rounds, ..case }.check();
        assert_eq!((came.outcome, asked), (Ok("done".into()), vec![first]));
    }
}

#[test]
fn results_of_the_caller_need_no_older_turns() {
    let mut stored = small_and_large(200, 5);
    stored.push((1, vec![vec![1]], Ends::ClientSide));
    let (came, asked) = Case::sending(stored, Window::Turns(3), Begins::Again).check();
    assert_eq!((came.outcome, asked), (Ok("done".into()), [3, 12].map(ReadRange::LastTurns).into()));
}

#[test]
fn turn_refused_for_its_size_reads_no_older_turns() {
    let case = Case::sending(small_and_large(200, 5), Window::Tokens(100), Begins::Asking(500));
    let (came, asked) = Case { on_overflow: OnOverflow::Refuse, ..case }.check();
    assert!(came.outcome.is_err_and(|error| error.contains("larger than the window")));
    assert_eq!(asked, [ReadRange::LastTurns(16)]);
}

#[test]
fn branch_is_read_once_beside_the_last_turn() {
    let case = Case::sending(small_and_large(200, 5), Window::Turns(50), Begins::Branching(100));
    let (came, asked) = case.check();
    assert_eq!((came.outcome, asked), (Ok("done".into()), [1, 50].map(ReadRange::LastTurns).into()));
}

fn any_size() -> impl Strategy<Value = usize> {
    prop_oneof![4 => 1..4_usize, 2 => 5..40_usize, 1 => 40..200_usize, 1 => Just(0_usize)]
}

fn any_rounds(most: usize) -> impl Strategy<Value = Vec<Vec<usize>>> {
    prop::collection::vec(prop::collection::vec(any_size(), 1..5), 0..most)
}

fn any_case() -> impl Strategy<Value = Case> {
    let ends = prop_oneof![
        9 => any_size().prop_map(Ends::Answered),
        1 => any_size().prop_map(Ends::Failed),
        1 => Just(Ends::Undone),
        1 => Just(Ends::ClientSide),
    ];
    let few = prop_oneof![2 => Just(Vec::new()), 1 => any_rounds(6)];
    let stored = prop::collection::vec((any_size(), few, ends), 0..40);
    let last = prop::option::of((
        any_size(),
        any_rounds(8),
        prop_oneof![
            3 => Just(Ends::Open), 1 => Just(Ends::ClientSide), 2 => Just(Ends::Continued),
            1 => any_size().prop_map(Ends::Failed),
        ],
    ));
    let window = prop_oneof![
        2 => (0..30_usize).prop_map(Window::Messages),
        4 => (0..300_usize).prop_map(Window::Tokens),
        1 => (0..6_usize).prop_map(Window::Turns),
    ];
    let when = prop_oneof![Just(OnOverflow::Send), Just(OnOverflow::Compact), Just(OnOverflow::Refuse)];
    let begins = prop_oneof![
        2 => any_size().prop_map(Begins::Asking),
        2 => Just(Begins::Again),
        1 => (0..40_usize).prop_map(Begins::Branching),
    ];
    (stored, last, window, when, begins, any_rounds(6)).prop_map(
        |(mut stored, last, window, on_overflow, begins, rounds)| {
            stored.extend(last);
            Case { stored, window, on_overflow, begins, rounds }
        },
    )
}

proptest! {
    #[test]
    fn law_m7_partial_view_sends_same_as_whole_log(case in any_case()) {
        case.check();
    }
}
