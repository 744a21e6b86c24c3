//! Law T5 with memory: tools that must not run twice, through drops, crashes, failing stores and every exit of a turn.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::task::Poll;

use advisor_chain::{
    AtCallLimit, Batch, BatchKey, CallKey, CallStart, ChatClient, ChatMemoryAdvisor, ChatResponse,
    ConversationKey, ConversationStore, Effect, Entry, EntryKind, ErrorKind, FinishReason, FnTool,
    InMemoryStore, LoopHooks, Message, NewEntry, OUTCOME_UNKNOWN, OnDrop, Phase, Result, Role,
    ToolCallAdvisor, ToolDefinition, ToolError, ToolInvocation, ToolLimits, TurnId, TurnStream,
    VERIFY_BEFORE_RETRYING, View, Window, async_trait, check_transcript,
};
use advisor_testkit::{Answer, FaultStore, Gate, ScriptedModel, StoreFault};
use futures::StreamExt;
use serde_json::json;
use tokio::task::yield_now;

const PLACES: [Phase; 2] = [Phase::Round, Phase::Turn];

/// How often each call was started, by its key.
type Starts = Arc<Mutex<BTreeMap<CallKey, u32>>>;

type Store = FaultStore<InMemoryStore>;

fn key() -> ConversationKey {
    ConversationKey::new("c").unwrap()
}

fn definition(name: &str) -> ToolDefinition {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    ToolDefinition::new(name, "A tool of a test.", schema)
}

/// A tool that counts its starts, takes its time, and fails if it is called `fails`.
fn counting(definition: ToolDefinition, starts: &Starts) -> FnTool {
    let (starts, fails) = (Arc::clone(starts), definition.name == "fails");
    FnTool::with_invocation(definition, move |invocation: ToolInvocation| {
        *starts.lock().unwrap().entry(invocation.key).or_default() += 1;
        async move {
            yield_now().await;
            if fails { Err(ToolError::new("it failed")) } else { Ok("done".into()) }
        }
    })
}

/// A process: a client with a memory of its own around a model with these answers.
struct Process {
    client: ChatClient,
    model: ScriptedModel,
    memory: ChatMemoryAdvisor,
}

/// What is the same in all processes.
#[derive(Clone)]
struct World {
    store: Store,
    starts: Starts,
    place: Phase,
    exclusive: bool,
    limits: ToolLimits,
}

impl World {
    fn new(place: Phase) -> Self {
        let store = FaultStore::new(InMemoryStore::new());
        Self { store, starts: Starts::default(), place, exclusive: false, limits: ToolLimits::default() }
    }

    fn process(&self, answers: Vec<Answer>) -> Process {
        self.process_of(ChatMemoryAdvisor::new(self.store.clone()), answers)
    }

    /// A client with this memory: the same process goes on.
    fn process_of(&self, memory: ChatMemoryAdvisor, answers: Vec<Answer>) -> Process {
        self.hooked(memory, answers, NoHooks)
    }

    fn hooked(&self, memory: ChatMemoryAdvisor, answers: Vec<Answer>, hooks: impl LoopHooks) -> Process {
        let model = ScriptedModel::new(answers);
        let tool_loop = ToolCallAdvisor::builder().limits(self.limits.clone()).hooks(hooks).build().unwrap();
        let once = |name: &str| {
            let once = definition(name).with_effect(Effect::AtMostOnce);
            if self.exclusive { once.exclusive() } else { once }
        };
        let client = ChatClient::builder(model.clone())
            .advisor(tool_loop)
            .advisor_in(self.place, memory.clone())
            .tool(counting(once("charge"), &self.starts))
            .tool(counting(once("direct").return_direct(), &self.starts))
            .tool(counting(once("fails"), &self.starts))
            .tool(counting(definition("look"), &self.starts))
            .tool(counting(definition("silent"), &self.starts))
            .build()
            .unwrap();
        Process { client, model, memory }
    }

    async fn log(&self) -> Vec<Entry> {
        self.store.load(&key(), View::All).await.unwrap().entries
    }

    /// Fails unless no call was started twice, and each that was started is announced in the log.
    async fn check_starts(&self, what: &str) {
        let announced: BTreeSet<_> =
            starts_in(&self.log().await).into_iter().map(|start| start.key).collect();
        for (key, times) in &*self.starts.lock().unwrap() {
            assert_eq!(*times, 1, "{what}: {key} was started {times} times");
            let once = key.position != 1;
            assert!(!once || announced.contains(key), "{what}: {key} ran without its start being stored");
        }
    }
}

struct NoHooks;

impl LoopHooks for NoHooks {}

impl Process {
    fn turn(&self, user: &str) -> TurnStream {
        self.client.prompt().user(user).conversation("c").stream()
    }

    /// Runs another turn to its end and gives the messages that it was sent, which are valid.
    async fn next(&self, what: &str) -> Vec<Message> {
        let answered = self.turn("next").call().await;
        answered.unwrap_or_else(|error| panic!("{what}: the next turn failed: {error:?}"));
        let sent: Vec<_> = self.model.prompts()[0].messages.iter().cloned().collect();
        assert_eq!(check_transcript(&sent), [], "{what}");
        sent
    }
}

fn starts_in(log: &[Entry]) -> Vec<CallStart> {
    let start = |entry: &Entry| match &entry.kind {
        EntryKind::CallStarted(start) => Some(start.clone()),
        _ => None,
    };
    log.iter().filter_map(start).collect()
}

/// A log in one word per entry: `u`, `a(1,2)`, `started(1)`, `=1` and `!1` for results, `.` for the end.
fn words(log: &[Entry]) -> String {
    let word = |entry: &Entry| match &entry.kind {
        EntryKind::CallStarted(start) => format!("started({})", start.call_id),
        EntryKind::TurnEnded(_) => String::from("."),
        EntryKind::Message(message) => match message.tool_result() {
            Some(result) => format!("{}{}", if result.is_error { '!' } else { '=' }, result.call_id),
            None if message.tool_calls().next().is_some() => {
                let ids: Vec<_> = message.tool_calls().map(|call| call.id.as_str()).collect();
                format!("a({})", ids.join(","))
            }
            None if message.role() == Role::User => String::from("u"),
            None => String::from("a"),
        },
        other => format!("{other:?}"),
    };
    log.iter().map(word).collect::<Vec<_>>().join(" ")
}

/// Two rounds with tools, then the answer. In each the call at place 1 is of a tool that says nothing.
fn two_rounds() -> Vec<Answer> {
    vec![
        Answer::of_calls([("1", "charge", "{}"), ("2", "look", "{}"), ("3", "charge", r#"{"n":3}"#)]),
        Answer::of_calls([("1", "charge", "{}"), ("2", "look", "{}")]),
        Answer::of_text("Done."),
    ]
}

/// One of them.
fn one_round() -> Vec<Answer> {
    two_rounds().split_off(1)
}

fn fine() -> Vec<Answer> {
    vec![Answer::of_text("Fine.")]
}

/// Polls a turn so often, then drops it. Whether it had ended by then.
async fn poll(mut turn: TurnStream, polls: usize) -> bool {
    for _ in 0..polls {
        match futures::poll!(turn.next()) {
            Poll::Pending => yield_now().await,
            Poll::Ready(None) => return true,
            Poll::Ready(Some(chunk)) => drop(chunk),
        }
    }
    false
}

async fn polls_of_a_turn(world: &World, answers: fn() -> Vec<Answer>) -> usize {
    for polls in 0.. {
        let world = World { store: FaultStore::new(InMemoryStore::new()), ..world.clone() };
        if poll(world.process(answers()).turn("go"), polls).await {
            return polls;
        }
    }
    unreachable!("a turn ends")
}

/// The text of what calls of the last answer before `next` were answered with, by their places.
fn check_texts(what: &str, sent: &[Message], log: &[Entry], starts: &Starts) -> [u32; 3] {
    let mut seen = [0; 3];
    let announced: BTreeSet<_> = starts_in(log).into_iter().map(|start| start.key).collect();
    let mut results = sent.iter().filter_map(Message::tool_result);
    let mut round = 0;
    for answer in sent.iter().filter(|message| message.tool_calls().next().is_some()) {
        round += 1;
        for (position, _) in (0..).zip(answer.tool_calls()) {
            let result = results.next().unwrap();
            let turn = log[0].turn.clone();
            let key = CallKey::new(turn, round, position);
            let started = starts.lock().unwrap().contains_key(&key);
            match (result.is_error, announced.contains(&key)) {
                (false, announced) => {
                    seen[0] += 1;
                    assert!(started && (announced || position == 1), "{what}: {key} has a result");
                }
                (true, true) => {
                    seen[1] += 1;
                    assert_eq!(result.text(), VERIFY_BEFORE_RETRYING, "{what}: {key}");
                }
                (true, false) => {
                    seen[2] += 1;
                    let text = result.text();
                    assert!(
                        text == OUTCOME_UNKNOWN || text.starts_with("not started"),
                        "{what}: {key} {text}"
                    );
                    assert!(!started || position == 1, "{what}: {key} ran, and nobody was told");
                }
            }
        }
    }
    seen
}

#[tokio::test]
async fn law_t5_t1_k4_dropped_or_crashed_at_any_point_a_call_is_started_once_and_the_model_is_told() {
    let mut seen = [0; 3];
    for place in PLACES {
        for exclusive in [false, true] {
            let world = World { exclusive, ..World::new(place) };
            for crashes in [false, true] {
                for polls in 0..=polls_of_a_turn(&world, two_rounds).await {
                    let what = format!("{place:?}, exclusive {exclusive}, crash {crashes}, {polls} polls");
                    let world = World { exclusive, ..World::new(place) };
                    let first = world.process(two_rounds());
                    poll(first.turn("go"), polls).await;
                    world.check_starts(&what).await;
                    let next = if crashes {
                        world.process(fine())
                    } else {
                        world.process_of(first.memory.clone(), fine())
                    };
                    let sent = next.next(&what).await;
                    world.check_starts(&what).await;
                    let log = world.log().await;
                    if !log.is_empty() && log[0].kind.as_message().is_some_and(|said| said.text() == "go") {
                        let told = check_texts(&what, &sent, &log, &world.starts);
                        seen = std::array::from_fn(|n| seen[n] + told[n]);
                    }
                    // What the model was told is what is written, and stays so.
                    let again = world.process(fine()).next(&what).await;
                    assert_eq!(again[..sent.len()], sent, "{what}");
                }
            }
        }
    }
    assert!(seen.iter().all(|times| *times > 20), "results, to be verified, unknown: {seen:?}");
}

#[tokio::test]
async fn law_t5_k4_after_any_two_drops_or_crashes_no_call_was_started_twice() {
    let mut pairs = 0;
    for place in PLACES {
        let longest = polls_of_a_turn(&World::new(place), one_round).await;
        for crashes in 0..4 {
            for (first, second) in (0..=longest).flat_map(|first| (0..=longest + 4).map(move |n| (first, n)))
            {
                let what = format!("{place:?}, crashes {crashes}, {first} and {second} polls");
                let world = World::new(place);
                let mut process = world.process(one_round());
                for (nth, polls) in [(0, first), (1, second)] {
                    poll(process.turn("go"), polls).await;
                    process = match crashes & (1 << nth) {
                        0 => world.process_of(process.memory.clone(), one_round()),
                        _ => world.process(one_round()),
                    };
                }
                world.process_of(process.memory, fine()).next(&what).await;
                world.check_starts(&what).await;
                pairs += 1;
            }
        }
    }
    assert!(pairs > 1_000, "{pairs} pairs");
}

/// A turn that was cut off and is submitted again under its id goes on. Its new calls are no old ones: every call of every
/// tool has a key of its own, and what had been started before is to be verified.
#[tokio::test]
async fn law_t5_k4_a_turn_that_is_submitted_again_starts_no_call_twice() {
    let mut verified = 0;
    for place in PLACES {
        let longest = polls_of_a_turn(&World::new(place), two_rounds).await;
        for crashes in [false, true] {
            for (first, second) in (0..=longest).flat_map(|first| [0, 5, 9, 12, 14, 40].map(|n| (first, n))) {
                let what = format!("{place:?}, crash {crashes}, {first} and {second} polls");
                let world = World::new(place);
                let mut process = world.process(two_rounds());
                for polls in [first, second, 200] {
                    let id = TurnId::new("once").unwrap();
                    let turn = process.client.prompt().user("go").conversation("c").turn(id).stream();
                    let ended = poll(turn, polls).await;
                    assert!(ended || polls < 200, "{what}: it comes to its end");
                    world.check_starts(&what).await;
                    process = match crashes {
                        false => world.process_of(process.memory.clone(), two_rounds()),
                        true => world.process(two_rounds()),
                    };
                }
                let log = world.log().await;
                assert_eq!(words(&log).matches('u').count(), 1, "{what}");
                verified += check_log(&what, &log);
                let messages: Vec<_> =
                    process.memory.transcript(&key()).await.unwrap().iter().cloned().collect();
                assert_eq!(check_transcript(&messages), [], "{what}");
                assert_eq!(messages.last().map(Message::text).as_deref(), Some("Done."), "{what}");
            }
        }
    }
    assert!(verified > 50, "{verified} calls are to be verified");
}

/// Fails unless calls that were cut off are answered by whether their start is in the log. How many were started.
fn check_log(what: &str, log: &[Entry]) -> usize {
    let (mut verified, mut started) = (0, BTreeSet::new());
    for entry in log {
        match &entry.kind {
            EntryKind::CallStarted(start) => _ = started.insert(start.call_id.clone()),
            EntryKind::Message(message) if message.tool_calls().next().is_some() => started.clear(),
            EntryKind::Message(message) => match message.tool_result().filter(|result| result.is_error) {
                Some(result) if started.contains(&result.call_id) => {
                    verified += 1;
                    assert_eq!(result.text(), VERIFY_BEFORE_RETRYING, "{what}");
                }
                Some(result) => assert_eq!(result.text(), OUTCOME_UNKNOWN, "{what}"),
                None => {}
            },
            _ => {}
        }
    }
    verified
}

#[tokio::test]
async fn law_o5_t5_the_store_may_fail_at_any_operation() {
    const FAULTS: [StoreFault; 6] = [
        StoreFault::Unavailable,
        StoreFault::AnswerLost,
        StoreFault::Conflict,
        StoreFault::HangBefore,
        StoreFault::HangAfter,
        StoreFault::Slow(9),
    ];
    for place in PLACES {
        for operation in 0..12 {
            for fault in FAULTS {
                let what = format!("{place:?}, {fault:?} at operation {operation}");
                let world = World::new(place);
                let process = world.process(two_rounds());
                world.store.fail_at(operation, fault);
                let ended = poll(process.turn("go"), 100).await;
                world.store.mend();
                world.check_starts(&what).await;
                // Load, input, answer, starts: they are operation 3.
                if operation == 3 && ended && matches!(fault, StoreFault::Unavailable | StoreFault::Conflict)
                {
                    assert_eq!(*world.starts.lock().unwrap(), BTreeMap::new(), "{what}: no tool runs");
                    let errors = world.log().await;
                    let texts = errors.iter().filter_map(|entry| entry.kind.as_message()?.tool_result());
                    let texts: Vec<_> = texts.map(advisor_chain::ToolResult::text).collect();
                    let not_started = ["not started: an error ended the turn"; 3];
                    assert!(
                        texts.is_empty() && fault == StoreFault::Conflict || texts == not_started,
                        "{what}: {texts:?}"
                    );
                }
                let sent = world.process_of(process.memory, fine()).next(&what).await;
                world.check_starts(&what).await;
                check_texts(&what, &sent, &world.log().await, &world.starts);
            }
        }
    }
}

/// However a turn ends, starts stand in the log before the results, one for each call that was run, and both places of
/// memory write the same entries.
#[tokio::test]
async fn law_t5_m4_every_exit_writes_the_same_starts_in_both_places() {
    fn charge() -> Answer {
        Answer::of_calls([("1", "charge", "{}"), ("2", "charge", r#"{"n":"x"}"#)])
    }
    fn two() -> Answer {
        Answer::of_calls([("1", "charge", "{}"), ("2", "charge", "{}")])
    }
    let done = || Answer::of_text("Done.");
    let broken = || Answer::new().error(advisor_chain::Error::new(ErrorKind::Connection, "broken"));
    let limited = ToolLimits::default().with_calls(1);
    let tell = limited.clone().with_at_call_limit(AtCallLimit::TellModel);
    let free = ToolLimits::default;
    type Answers<'a> = &'a dyn Fn() -> Vec<Answer>;
    let exits: [(&str, Answers<'_>, ToolLimits, &str); 9] = [
        ("an answer", &|| vec![charge(), done()], free(), "u a(1,2) started(1) =1 !2 a ."),
        (
            "return-direct",
            &|| vec![Answer::of_calls([("1", "direct", "{}")])],
            free(),
            "u a(1) started(1) =1 a .",
        ),
        (
            "a tool that fails",
            &|| vec![Answer::of_calls([("1", "fails", "{}")]), done()],
            free(),
            "u a(1) started(1) !1 a .",
        ),
        ("a limit on calls", &|| vec![two()], limited, "u a(1,2) started(1) =1 !2 a ."),
        ("a denial", &|| vec![two(), done()], tell, "u a(1,2) started(1) =1 !2 a ."),
        ("the last round", &|| vec![two()], free().with_rounds(1), "u a(1,2) !1 !2 a ."),
        (
            "an answer that was cut",
            &|| vec![Answer::new().call("1", "charge", "{}").finish(FinishReason::Length)],
            free(),
            "u a(1) !1 a .",
        ),
        ("an error", &|| vec![two(), broken()], free(), "u a(1,2) started(1) started(2) =1 =2 ."),
        ("no calls", &|| vec![done()], free(), "u a ."),
    ];
    for (what, answers, limits, expected) in exits {
        for place in PLACES {
            let world = World { limits: limits.clone(), ..World::new(place) };
            let process = world.process(answers());
            let _ = process.turn("go").call().await;
            assert_eq!(process.model.calls(), answers().len(), "{what}");
            assert_eq!(words(&world.log().await), expected, "{what}, {place:?}");
            let starts = world.starts.lock().unwrap().clone();
            assert!(starts.values().all(|times| *times == 1), "{what}");
            let announced: Vec<_> =
                starts_in(&world.log().await).into_iter().map(|start| start.key).collect();
            assert!(starts.keys().eq(&announced), "{what}: {starts:?} {announced:?}");
        }
    }
}

/// A tool that was running when its turn was cancelled, dropped or undone.
#[tokio::test]
async fn law_t5_k3_a_running_tool_whose_turn_is_stopped_is_to_be_verified_unless_it_is_undone() {
    for place in PLACES {
        for on_drop in [OnDrop::Seal, OnDrop::Rollback] {
            for cancels in [false, true] {
                let world = World::new(place);
                let process = world.process(two_rounds());
                let mut turn = process.turn("go").on_drop(on_drop);
                while world.starts.lock().unwrap().is_empty() {
                    let _ = futures::poll!(turn.next());
                    yield_now().await;
                }
                if cancels {
                    turn.handle().cancel(on_drop);
                    turn.call().await.unwrap_err();
                } else {
                    drop(turn);
                }
                let what = format!("{place:?} {on_drop:?} cancelled {cancels}");
                let next = world.process_of(process.memory, fine());
                let sent = next.next(&what).await;
                let told: Vec<_> =
                    sent.iter().filter_map(Message::tool_result).map(|result| result.text()).collect();
                let expected = match on_drop {
                    OnDrop::Rollback => vec![],
                    _ => vec![VERIFY_BEFORE_RETRYING, OUTCOME_UNKNOWN, VERIFY_BEFORE_RETRYING],
                };
                assert_eq!(told, expected, "{what}");
                world.check_starts(&what).await;
            }
        }
    }
}

/// Waits after the answer is stored and before its calls are announced.
struct Waits(Gate);

#[async_trait]
impl LoopHooks for Waits {
    async fn after_round(&self, response: ChatResponse, _round: u32) -> Result<ChatResponse> {
        self.0.pass().await;
        Ok(response)
    }
}

/// Two processes run the same turn at once, as when one was taken for dead: the store tells only one of them that it may
/// start the call, although both write the same.
#[tokio::test]
async fn law_t5_of_two_runs_of_a_turn_one_starts_the_call() {
    for place in PLACES {
        let world = World::new(place);
        let gate = Gate::new();
        let answers = vec![Answer::of_calls([("1", "charge", "{}")])];
        let memory = ChatMemoryAdvisor::new(world.store.clone());
        let process = world.hooked(memory, answers, Waits(gate.clone()));
        let mut turn = process.turn("go");
        while !gate.is_reached() {
            let _ = futures::poll!(turn.next());
            yield_now().await;
        }
        let log = world.log().await;
        let id = log[0].turn.clone();
        let start = EntryKind::CallStarted(CallStart::new(CallKey::new(id.clone(), 1, 0), "1"));
        let other = Batch::new(BatchKey::new(id.clone(), 1, "started"), vec![NewEntry::new(id, start)]);
        let version = world.store.load(&key(), View::All).await.unwrap().version;
        world.store.append(&key(), version, other).await.unwrap();
        gate.release();
        let error = turn.call().await.unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::StoreConflict { .. }), "{place:?}: {error:?}");
        assert_eq!(*world.starts.lock().unwrap(), BTreeMap::new(), "{place:?}");
    }
}

/// A window by messages holds the same conversation, whether or not starts stand among its messages.
#[tokio::test]
async fn starts_take_no_room_in_a_window() {
    for window in (0..30)
        .map(Window::Messages)
        .chain((0..5).map(Window::Turns))
        .chain((0..200).step_by(9).map(Window::Tokens))
    {
        let mut sent = Vec::new();
        for tool in ["silent", "charge"] {
            let world = World::new(Phase::Round);
            let memory = ChatMemoryAdvisor::new(world.store.clone()).with_window(window);
            for turn in 0..4 {
                // Names of one length take as many tokens.
                let calls = || Answer::of_calls([("1", tool, "{}"), ("2", tool, "{}")]);
                let answers =
                    std::iter::repeat_with(calls).take(turn).chain([Answer::of_text("Done.")]).collect();
                world.process_of(memory.clone(), answers).turn("go").call().await.unwrap();
            }
            let next = world.process_of(memory, fine()).next("next").await;
            sent.push(next.iter().map(|message| (message.role(), message.text())).collect::<Vec<_>>());
        }
        assert_eq!(sent[0], sent[1], "{window:?}");
    }
}
