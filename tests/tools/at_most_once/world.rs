//! Shared parts of these tests: processes around one store, and tools that count their starts.

use std::task::Poll;

use advisor_chain::tools::OUTCOME_UNKNOWN;
use advisor_tests::prelude::*;
use advisor_tests::tools::definition;
use tokio::task::yield_now;

/// The number of starts of each call, by its key.
pub(crate) type Starts = Arc<Mutex<BTreeMap<CallKey, u32>>>;

pub(crate) fn key() -> ConversationKey {
    ConversationKey::new("c").unwrap()
}

/// A tool that counts its starts and takes its time.
fn counting(definition: ToolDefinition, starts: &Starts) -> FnTool {
    let starts = Arc::clone(starts);
    FnTool::with_invocation(definition, move |invocation: ToolInvocation| {
        *starts.lock().unwrap().entry(invocation.key).or_default() += 1;
        async move {
            yield_now().await;
            Ok("done".into())
        }
    })
}

/// A process: a client with a separate memory, around a model with these answers.
pub(crate) struct Process {
    pub(crate) client: ChatClient,
    pub(crate) model: ScriptedModel,
    pub(crate) memory: ChatMemoryAdvisor,
}

/// The state that all processes share.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) store: InMemoryStore,
    pub(crate) starts: Starts,
    pub(crate) place: Phase,
    pub(crate) exclusive: bool,
}

impl World {
    pub(crate) fn new(place: Phase) -> Self {
        Self { store: InMemoryStore::new(), starts: Starts::default(), place, exclusive: false }
    }

    pub(crate) fn process(&self, answers: Vec<Answer>) -> Process {
        self.process_of(ChatMemoryAdvisor::new(self.store.clone()), answers)
    }

    /// Creates a client with this memory, as if the same process continued.
    pub(crate) fn process_of(&self, memory: ChatMemoryAdvisor, answers: Vec<Answer>) -> Process {
        self.hooked(memory, answers, NoHooks)
    }

    pub(crate) fn hooked(
        &self,
        memory: ChatMemoryAdvisor,
        answers: Vec<Answer>,
        hooks: impl LoopHooks,
    ) -> Process {
        let model = ScriptedModel::new(answers);
        let tool_loop = ToolCallAdvisor::builder().hooks(hooks).build().unwrap();
        let once = |name: &str| {
            let once = ToolDefinition { effect: Some(Effect::AtMostOnce), ..definition(name) };
            if self.exclusive { ToolDefinition { exclusive: true, ..once } } else { once }
        };
        let client = ChatClient::builder(model.clone())
            .advisor(tool_loop)
            .advisor_in(self.place, memory.clone())
            .tool(counting(once("charge"), &self.starts))
            .tool(counting(definition("look"), &self.starts))
            .tool(counting(definition("silent"), &self.starts))
            .build()
            .unwrap();
        Process { client, model, memory }
    }

    pub(crate) async fn log(&self) -> Vec<Entry> {
        self.store.load(&key(), ReadRange::All).await.unwrap().entries
    }

    /// Fails unless no call was started twice, and each that was started is announced in the log.
    pub(crate) async fn check_starts(&self, what: &str) {
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
    pub(crate) fn turn(&self, user: &str) -> TurnStream {
        self.client.prompt().user(user).conversation("c").stream()
    }

    /// Runs another turn to its end and returns the messages of its request, which are valid.
    pub(crate) async fn next(&self, what: &str) -> Vec<Message> {
        let answered = self.turn("next").call().await;
        answered.unwrap_or_else(|error| panic!("{what}: the next turn failed: {error:?}"));
        let sent: Vec<_> = self.model.prompts()[0].messages.iter().cloned().collect();
        assert_eq!(validate_transcript(&sent), [], "{what}");
        sent
    }
}

pub(crate) fn starts_in(log: &[Entry]) -> Vec<CallStart> {
    let start = |entry: &Entry| match &entry.kind {
        EntryKind::CallStarted(start) => Some(start.clone()),
        _ => None,
    };
    log.iter().filter_map(start).collect()
}

/// Two rounds with tools, then the answer. In each the call at place 1 is of a tool that says nothing.
pub(crate) fn two_rounds() -> Vec<Answer> {
    vec![
        Answer::from_calls([("1", "charge", "{}"), ("2", "look", "{}"), ("3", "charge", r#"{"n":3}"#)]),
        Answer::from_calls([("1", "charge", "{}"), ("2", "look", "{}")]),
        Answer::from_text("Done."),
    ]
}

pub(crate) fn fine() -> Vec<Answer> {
    vec![Answer::from_text("Fine.")]
}

/// Polls a turn `polls` times, then drops it. Returns whether it had ended by then.
pub(crate) async fn poll(mut turn: TurnStream, polls: usize) -> bool {
    for _ in 0..polls {
        match futures::poll!(turn.next()) {
            Poll::Pending => yield_now().await,
            Poll::Ready(None) => return true,
            Poll::Ready(Some(chunk)) => drop(chunk),
        }
    }
    false
}

pub(crate) async fn polls_of_a_turn(world: &World, answers: fn() -> Vec<Answer>) -> usize {
    for polls in 0.. {
        let world = World { store: InMemoryStore::new(), ..world.clone() };
        if poll(world.process(answers()).turn("go"), polls).await {
            return polls;
        }
    }
    unreachable!("a turn ends")
}

/// Checks the text of each result, and counts the results, those to be verified, and those of unknown outcome.
pub(crate) fn check_texts(what: &str, sent: &[Message], log: &[Entry], starts: &Starts) -> [u32; 3] {
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
