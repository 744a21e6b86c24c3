//! The chain that each process builds: a scripted model, tools that record their starts in a file, and a memory.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use advisor_chain::Prompt;
use advisor_chain::tools::{ClientSideCall, PolicyAction, ToolPolicy, ToolRule};
use advisor_testkit::ReceivedPrompt;
use advisor_tests::prelude::*;
use serde::{Deserialize, Serialize};

/// The scenario of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Scenario {
    /// The model answers at once.
    Plain,
    /// Two rounds of two calls at a time, one of which must not run twice.
    Rounds,
    /// The results of two calls are the answer; they must not run twice.
    Direct,
    /// The model falls silent in its answer, the reader goes, and the process closes the turn at once.
    Closed,
    /// The reader leaves after the first text, and the turn continues without it.
    Finished,
    /// Two calls wait for an approval. It is given at once, and begins the next turn.
    Approved,
}

impl Scenario {
    pub(crate) const ALL: [Self; 6] =
        [Self::Plain, Self::Rounds, Self::Direct, Self::Closed, Self::Finished, Self::Approved];

    /// Returns the number of pieces of text after which the reader leaves, and the effect on the turn.
    pub(crate) fn leaves(self) -> Option<(usize, OnDrop)> {
        match self {
            Self::Plain | Self::Rounds | Self::Direct | Self::Approved => None,
            Self::Closed => Some((2, OnDrop::KeepPartial)),
            Self::Finished => Some((1, OnDrop::FinishTurn)),
        }
    }

    /// The calls of each answer of a turn; the one after them has none.
    fn calls(self) -> &'static [[&'static str; 2]] {
        match self {
            Self::Plain | Self::Closed => &[],
            Self::Rounds => &[["charge", "look"], ["look", "charge"]],
            Self::Direct => &[["direct", "direct"]],
            Self::Finished => &[["look", "charge"]],
            Self::Approved => &[["pay", "pay"]],
        }
    }
}

/// Tools that must not run twice.
pub(crate) const ONCE: [&str; 3] = ["charge", "direct", "pay"];

/// The user message of the last turn.
pub(crate) const LAST: &str = "And now?";

/// The lease duration of a turn. The next turn waits for its end after a kill.
const LEASE: Duration = Duration::from_millis(150);

/// A model that answers as the scenario says. Every answer begins with words that no other one has, in no process.
/// `wanders_off` says whether the model falls silent where the scenario wants it.
pub(crate) fn model(scenario: Scenario, wanders_off: bool) -> ScriptedModel {
    let process = std::process::id();
    ScriptedModel::from_fn(move |prompt| {
        let begin = format!("Round {} of {} in {process}, ", prompt.round, prompt.turn);
        let answer = Answer::new().text(begin).text("and so on.");
        match scenario.calls().get(answers_since_user(prompt)) {
            Some(calls) if last_user(prompt) != LAST => {
                let call = |answer: Answer, (place, tool): (usize, &&str)| {
                    answer.call(&format!("r{}c{place}", prompt.round), tool, "{}")
                };
                calls.iter().enumerate().fold(answer, call).finish(FinishReason::ToolCalls)
            }
            None if scenario == Scenario::Closed && wanders_off => answer.hang(),
            _ => answer.finish(FinishReason::Stop),
        }
    })
}

/// Returns the number of answers in the running turn.
fn answers_since_user(prompt: &ReceivedPrompt) -> usize {
    let since = prompt.messages.iter().rev().take_while(|message| message.role() != Role::User);
    since.filter(|message| message.role() == Role::Assistant).count()
}

fn last_user(prompt: &ReceivedPrompt) -> String {
    let said = prompt.messages.iter().rev().find(|message| message.role() == Role::User);
    said.map(Message::text).unwrap_or_default()
}

/// The tools, each of which leaves a line in the file when it starts.
pub(crate) fn tools(starts: &Path) -> [FnTool; 4] {
    let definition = |name: &str| ToolDefinition::new(name, "A tool.", json!({"type": "object"}));
    let once = |name: &str| ToolDefinition { effect: Some(Effect::AtMostOnce), ..definition(name) };
    [
        starting(definition("look"), starts.into()),
        starting(once("charge"), starts.into()),
        starting(ToolDefinition { return_direct: true, ..once("direct") }, starts.into()),
        starting(once("pay"), starts.into()),
    ]
}

fn starting(definition: ToolDefinition, starts: PathBuf) -> FnTool {
    let name = definition.name.clone();
    FnTool::with_invocation(definition, move |invocation: ToolInvocation| {
        let mut file = OpenOptions::new().create(true).append(true).open(&starts).unwrap();
        file.write_all(format!("{name} {}\n", invocation.key).as_bytes()).unwrap();
        file.sync_all().unwrap();
        async move { Ok(format!("{} has worked", invocation.key).into()) }
    })
}

/// The starts in the file: the name of a tool and the key of a call.
pub(crate) fn starts(file: &Path) -> Vec<(String, String)> {
    let lines = std::fs::read_to_string(file).unwrap_or_default();
    let start = |line: &str| {
        let (name, key) = line.split_once(' ').unwrap();
        (name.to_owned(), key.to_owned())
    };
    lines.lines().map(start).collect()
}

/// A memory whose turns wait for those of other processes, and not for long.
pub(crate) fn memory(store: impl ConversationStore) -> ChatMemoryAdvisor {
    ChatMemoryAdvisor::new(store).with_on_busy(OnBusy::Queue).with_lease_ttl(LEASE)
}

pub(crate) fn client(
    model: impl ChatModel,
    tools: impl IntoIterator<Item = impl Tool>,
    memory: (ChatMemoryAdvisor, Where),
) -> ChatClient {
    let policy =
        ToolPolicy { rules: vec![ToolRule::new(["pay"], PolicyAction::Ask)], ..ToolPolicy::default() };
    let tool_loop = ToolCallAdvisor::builder().policy(policy).build().unwrap();
    let client = ChatClient::builder(model).system("Be brief.").advisor(tool_loop);
    let client = tools.into_iter().fold(client, |client, tool| client.tool(tool));
    client.advisor_in(memory.1.phase(), memory.0).build().unwrap()
}

/// Returns the turn that begins with the approval of the calls of an answer. `None` if it left none, as after a kill. A
/// call of a killed process needs no decision.
pub(crate) async fn approved(
    client: &ChatClient,
    conversation: &str,
    turn: &str,
    asked: &ChatResponse,
) -> Option<Prompt> {
    asked.open_calls().next()?;
    let waiting = client.pending_calls(conversation).await.unwrap();
    let approve = |(position, (_, call)): (u32, (BlockId, &ToolCall))| {
        let key = CallKey::new(TurnId::new(turn).unwrap(), asked.round(), position);
        let call = call.clone();
        ClientSideCall { key: Some(key), call, started: false, definition: None }.approve().unwrap()
    };
    let calls = (0..).zip(asked.tool_calls()).filter(|_| !waiting.iter().any(|call| call.started));
    Some(client.prompt().conversation(conversation).resume(calls.map(approve).collect::<Vec<_>>()))
}

/// The place of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Where {
    Inside,
    Outside,
}

impl Where {
    pub(crate) const BOTH: [Self; 2] = [Self::Inside, Self::Outside];

    fn phase(self) -> Phase {
        match self {
            Self::Inside => Phase::Round,
            Self::Outside => Phase::Turn,
        }
    }
}
