//! `Leaves`: the model and the tools of all processes, and `Seen`, their records.

use std::sync::atomic::AtomicBool;

use advisor_tests::prelude::*;
use advisor_tests::tools::definition;

use crate::state_machine::steps::{Steps, lock};

/// The model and the tools of all processes, and their records.
#[derive(Clone)]
pub(crate) struct Leaves {
    pub(crate) steps: Steps,
    /// The store itself, without faults.
    pub(crate) store: Arc<dyn ConversationStore>,
    pub(crate) seen: Arc<Seen>,
}

#[derive(Default)]
pub(crate) struct Seen {
    /// The number of starts of each call, by the number of deletions of the conversation before it.
    starts: Mutex<BTreeMap<(CallKey, usize), u32>>,
    pub(crate) deletions: AtomicUsize,
    problems: Mutex<Vec<String>>,
    pub(crate) asked: AtomicUsize,
    /// Whether only the current turn has written since it began, so that its prompt equals the log's
    /// transcript.
    pub(crate) alone: AtomicBool,
}

impl Seen {
    pub(crate) fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }

    /// Returns the first problem that the leaves have seen.
    pub(crate) fn problem(&self) -> Option<String> {
        let twice = lock(&self.starts).iter().find(|(_, times)| **times > 1).map(|((key, _), _)| key.clone());
        let twice = twice.map(|key| format!("T5: the call {key} was started twice"));
        lock(&self.problems).first().cloned().or(twice)
    }

    pub(crate) fn note(&self, problem: String) {
        lock(&self.problems).push(problem);
    }
}

impl Leaves {
    pub(crate) fn client(&self, place: Phase, memory: ChatMemoryAdvisor, window: Window) -> ChatClient {
        let leaves = self.clone();
        let model = ScriptedModel::from_fn(move |prompt| leaves.answer(prompt, window));
        let client = ChatClient::builder(model)
            .system("S")
            .advisor(ToolCallAdvisor::new())
            .advisor_in(place, memory.with_window(window));
        let once = |name| ToolDefinition { effect: Some(Effect::AtMostOnce), ..definition(name) };
        client
            .tool(self.tool(once("charge")))
            .tool(self.tool(once("fails")))
            .tool(self.tool(ToolDefinition { return_direct: true, ..once("direct") }))
            .tool(self.tool(definition("look")))
            .build()
            .unwrap()
    }

    fn tool(&self, definition: ToolDefinition) -> FnTool {
        let (leaves, fails) = (self.clone(), definition.name == "fails");
        let once = definition.name != "look";
        FnTool::with_invocation(definition, move |invocation: ToolInvocation| {
            let leaves = leaves.clone();
            async move {
                // The calls of a conversation that was deleted are forgotten with it.
                if once && !leaves.steps.is_outdated() {
                    let deletions = leaves.seen.deletions.load(Ordering::Relaxed);
                    *lock(&leaves.seen.starts).entry((invocation.key, deletions)).or_default() += 1;
                }
                leaves.steps.pass().await;
                if fails { Err(ToolError::new("it failed")) } else { Ok("ran".into()) }
            }
        })
    }
}
