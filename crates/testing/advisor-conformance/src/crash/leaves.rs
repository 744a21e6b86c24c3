//! `Leaves`: the instrumented model, store, tools and hooks that a chain under test is built from.

use std::sync::Arc;

use advisor_core::{ChatClient, ChatClientBuilder, ChatModel, Role, ToolSet};
use chat_memory_advisor::ChatMemoryAdvisor;
use conversation_store::ConversationStore;
use tool_call_advisor::{PolicyAction, ToolCallAdvisor, ToolCallAdvisorBuilder, ToolPolicy, ToolRule};

use super::scenario::{LAST, tools};
use super::{AwaitPoints, PointStore, Scenario};
use crate::sent::is_said;
use advisor_testkit::{Answer, ReceivedPrompt, ScriptedModel};

/// The parts of a chain under test: leaves that record their await points.
///
/// A chain uses the model, the store and the tools; the loop has the scenario's limits. Anything else that it
/// waits for passes [`points`](Self::points).
#[derive(Clone)]
#[non_exhaustive]
pub struct Leaves {
    /// The points, for the chain's own leaves.
    pub points: AwaitPoints,
    /// The model.
    pub model: Arc<dyn ChatModel>,
    /// The store.
    pub store: PointStore,
    /// The tools that the model calls.
    pub tools: ToolSet,
    scenario: Scenario,
}

/// The user messages: of the turns with injections, and of the last turn.
pub(super) const INPUTS: [&str; 4] = ["one", "two", "three", "four"];
pub(super) const LAST_INPUT: &str = "last";
/// The user message of the turn whose calls a person approves.
pub(super) const ASKING_INPUT: &str = "ask";

impl Leaves {
    pub(super) fn new(scenario: Scenario, following: Scenario, store: Arc<dyn ConversationStore>) -> Self {
        let points = AwaitPoints::new();
        let model = ScriptedModel::from_fn(move |prompt| answer(prompt, &scenario, &following));
        Self {
            model: points.model(model),
            store: points.store(store),
            tools: tools(&points),
            points,
            scenario,
        }
    }

    /// Creates the builder of a client with the model and the tools; memory and loop must be added.
    pub fn client(&self) -> ChatClientBuilder {
        ChatClient::builder(Arc::clone(&self.model)).system("Be brief.").tools(&self.tools)
    }

    /// Creates the builder of the loop with the hooks and the scenario's limits; a mode may be added.
    pub fn tool_loop(&self) -> ToolCallAdvisorBuilder {
        let policy =
            ToolPolicy { rules: vec![ToolRule::new(["asked*"], PolicyAction::Ask)], ..ToolPolicy::default() };
        ToolCallAdvisor::builder().hooks(self.points.hooks()).limits(self.scenario.limits()).policy(policy)
    }

    /// Creates a memory in the store, as in a new process.
    pub fn memory(&self) -> ChatMemoryAdvisor {
        ChatMemoryAdvisor::new(self.store.clone())
    }
}

/// Returns the model's answer, which depends only on the messages: the same request gets the same answer.
fn answer(prompt: &ReceivedPrompt, scenario: &Scenario, following: &Scenario) -> Answer {
    let (mut said, mut answers) = (None, 0);
    // An advisor may have added user messages.
    for message in prompt.messages.iter().rev() {
        let text = message.text();
        said = INPUTS.into_iter().chain([LAST_INPUT, ASKING_INPUT]).find(|said| is_said(&text, said));
        if said.is_some() {
            break;
        }
        answers += usize::from(message.role() == Role::Assistant);
    }
    match said {
        Some(LAST_INPUT) => Answer::from_text(LAST),
        Some(ASKING_INPUT) => scenario.answer_after_asking(answers),
        Some(said) if said == INPUTS[0] => scenario.answer(answers),
        _ => following.answer(answers),
    }
}
