//! Tests of turns that finish without their reader, who leaves at any point: memory has the whole answer.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use advisor_chain::chain::Spawner;
use advisor_tests::prelude::*;
use advisor_tests::tools::definition;
use futures::future::BoxFuture;
use futures::poll;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use tokio::runtime::Handle;
use tokio::task::yield_now;
use tokio::time::timeout;

/// The script of the model: the pieces of text and the calls of each round, then the end.
#[derive(Debug, Clone)]
struct Script {
    rounds: Vec<(usize, usize)>,
    end: End,
    memory: Phase,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum End {
    /// This many pieces of text.
    Answer(usize),
    /// The connection breaks after this many pieces.
    Breaks(usize),
    /// One call whose result is the answer.
    Direct,
}

/// The spawner that finishes the turn.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Finisher {
    Tokio,
    /// It polls the work this many times, and drops it.
    GivesUp(usize),
}

fn scripts() -> impl Strategy<Value = Script> {
    let rounds = proptest::collection::vec((0..3_usize, 1..3_usize), 0..3);
    let end = prop_oneof![
        (1..4_usize).prop_map(End::Answer),
        (0..4_usize).prop_map(End::Breaks),
        Just(End::Direct),
    ];
    let memory = prop_oneof![Just(Phase::Round), Just(Phase::Turn)];
    (rounds, end, memory).prop_map(|(rounds, end, memory)| Script { rounds, end, memory })
}

impl Script {
    fn model(&self) -> ScriptedModel {
        let text = |round: usize, pieces: usize| {
            (0..pieces).fold(Answer::new().reasoning("Hm."), |answer, piece| {
                answer.wait(yield_now()).text(format!("{round}.{piece} "))
            })
        };
        let call = |answer: Answer, round: usize, name: &'static str, call: usize| {
            answer.call(&format!("c{round}-{call}"), name, "{}")
        };
        let round = |(round, (pieces, calls)): (usize, &(usize, usize))| {
            let answer = (0..*calls).fold(text(round, *pieces), |answer, id| call(answer, round, "tool", id));
            answer.finish(FinishReason::ToolCalls)
        };
        let last = self.rounds.len();
        let end = match self.end {
            End::Answer(pieces) => text(last, pieces).done(),
            End::Breaks(pieces) => text(last, pieces).error(Error::new(ErrorKind::Connection, "broken")),
            End::Direct => call(Answer::new(), last, "direct", 0).finish(FinishReason::ToolCalls),
        };
        let rounds = self.rounds.iter().enumerate().map(round);
        ScriptedModel::new(rounds.chain([end, Answer::from_text("Next.")]))
    }
}

fn tool(definition: ToolDefinition) -> FnTool {
    FnTool::new(definition, |_: Value| async {
        yield_now().await;
        Ok("done")
    })
}

struct World {
    client: ChatClient,
    memory: ChatMemoryAdvisor,
    model: ScriptedModel,
}

impl World {
    fn new(script: &Script) -> Self {
        let memory = ChatMemoryAdvisor::new(InMemoryStore::new());
        let model = script.model();
        let direct = ToolDefinition { return_direct: true, ..definition("direct") };
        let client = ChatClient::builder(model.clone())
            .advisor(ToolCallAdvisor::new())
            .advisor_in(script.memory, memory.clone())
            .tool(tool(definition("tool")))
            .tool(tool(direct))
            .build()
            .unwrap();
        Self { client, memory, model }
    }

    async fn transcript(&self) -> Vec<Message> {
        let key = ConversationKey::new("c").unwrap();
        self.memory.transcript(&key).await.unwrap().iter().cloned().collect()
    }

    /// Polls a turn `polls` times and drops it. Returns the shown text of the running round, or `None` if the
    /// turn had ended.
    async fn drop_after(&self, polls: usize, finisher: Finisher) -> Option<String> {
        let turn = self.client.prompt().user("Hi").conversation("c").turn("t").stream();
        let mut turn = turn.with_on_drop(OnDrop::FinishTurn).with_spawner(finisher.spawner());
        let mut shown = String::new();
        for _ in 0..polls {
            match poll!(turn.next()) {
                Poll::Ready(None | Some(Err(_) | Ok(Chunk::Completed(_)))) => return None,
                Poll::Ready(Some(Ok(Chunk::RoundCompleted(_)))) => shown.clear(),
                Poll::Ready(Some(Ok(chunk))) => shown += chunk.text().unwrap_or_default(),
                Poll::Pending => yield_now().await,
            }
        }
        let handle = turn.handle();
        drop(turn);
        timeout(Duration::from_secs(60), handle.settled()).await.expect("it does not settle");
        Some(shown)
    }

    /// Checks that the next turn is answered, and that its request is valid.
    async fn check_next_turn(&self, script: &Script) {
        while self.model.calls() <= script.rounds.len() {
            // Uses up the answers that the turn did not request.
            let asked = ChatClient::builder(self.model.clone()).build().unwrap().prompt().user("skip").call();
            let _ = asked.await;
        }
        let answer = self.client.prompt().user("And?").conversation("c").call().await.unwrap();
        assert_eq!(answer.text(), "Next.");
        let prompts = self.model.prompts();
        assert_eq!(validate_transcript(&prompts.last().unwrap().messages), []);
    }
}

impl Finisher {
    fn spawner(self) -> Spawner {
        match self {
            Self::Tokio => Spawner::tokio(Handle::current()),
            Self::GivesUp(polls) => {
                Spawner::new(move |work| drop(Handle::current().spawn(Polled { polls, work })))
            }
        }
    }
}

/// Work that is dropped after a number of polls.
struct Polled {
    polls: usize,
    work: BoxFuture<'static, ()>,
}

impl Future for Polled {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.polls == 0 {
            return Poll::Ready(());
        }
        self.polls -= 1;
        self.work.as_mut().poll(cx)
    }
}

/// Everything but the ids of blocks.
fn told(transcript: &[Message]) -> Vec<(Role, String, Vec<String>)> {
    let calls = |message: &Message| message.tool_calls().map(|call| call.id.to_string()).collect();
    transcript.iter().map(|message| (message.role(), message.text(), calls(message))).collect()
}

/// The turn is dropped at each of its polls.
async fn check(script: &Script, finisher: Finisher) {
    let undropped = World::new(script);
    let _ = undropped.client.prompt().user("Hi").conversation("c").turn("t").call().await;
    let expected = told(&undropped.transcript().await);
    for polls in 1.. {
        let world = World::new(script);
        let Some(shown) = world.drop_after(polls, finisher).await else { break };
        let transcript = world.transcript().await;
        let case = format!("{script:?}, dropped after {polls} polls, {finisher:?}, shown {shown:?}");
        assert_eq!(validate_transcript(&transcript), [], "{case}");
        match finisher {
            Finisher::Tokio => assert_eq!(told(&transcript), expected, "{case}"),
            Finisher::GivesUp(_) => {
                let last = transcript.last().unwrap();
                let is_kept = transcript.iter().any(|message| message.text().contains(&shown));
                assert!(is_kept && last.role() == Role::Assistant, "{case}: {:?}", told(&transcript));
                let is_marked = last.text().contains("[interrupted]") || told(&transcript) == expected;
                assert!(is_marked, "{case}: {:?}", told(&transcript));
            }
        }
        world.check_next_turn(script).await;
    }
}

fn try_all(finishers: impl Strategy<Value = Finisher>, cases: u32) {
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(cases) };
    TestRunner::new(config)
        .run(&(scripts(), finishers), |(script, finisher)| {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
            runtime.unwrap().block_on(check(&script, finisher));
            Ok(())
        })
        .unwrap();
}

#[test]
fn turn_finished_without_reader_is_remembered_in_full() {
    try_all(Just(Finisher::Tokio), 40);
}

#[test]
fn shown_output_is_remembered_if_turn_unfinished() {
    try_all((0..6_usize).prop_map(Finisher::GivesUp), 60);
}
