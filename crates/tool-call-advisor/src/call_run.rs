//! `CallRun` and `ToolCallAdvisor::run_call`: run one call outside the loop, for example after an approval.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use advisor_core::{
    BlockId, CallKey, ChatResponse, ConversationKey, Effect, Error, ErrorKind, Result, Tool, ToolCall,
    ToolResult, ToolSet, Turn, VERIFY_BEFORE_RETRYING,
};

use crate::plan::prepare::prepare_in_time;
use crate::plan::{Fate, PlannedCall, ToolPlan};
use crate::run::end::PendingAnswer;
use crate::{NotStarted, ReadyCall, ToolBatch, ToolCallAdvisor, ToolEvents};

/// A call to run outside the loop: a client-side call, for example after an approval.
///
/// [`ToolCallAdvisor::run_call`] runs it and documents how to run it at most once.
#[must_use]
#[derive(Clone)]
#[non_exhaustive]
pub struct CallRun {
    /// The call as the model wrote it.
    pub call: ToolCall,
    /// The permanent key of the call; its text is an idempotency key.
    pub key: CallKey,
    /// The block that events name. If the answer is unknown, it is derived from the call's position.
    pub block: BlockId,
    /// The turn that is passed to the tool.
    pub turn: Arc<Turn>,
    /// The conversation that is passed to the tool.
    pub conversation: Option<ConversationKey>,
    /// Receives the events of the call.
    pub events: ToolEvents,
}

impl CallRun {
    /// Creates a call from its key alone, such as one that another process stored.
    ///
    /// It runs in a new turn with the id in the key, without the extensions of the original turn.
    pub fn new(call: ToolCall, key: CallKey) -> Self {
        let block = BlockId::new(key.round, key.position);
        let turn = Turn::new(key.turn.clone());
        Self { call, key, block, turn, conversation: None, events: ToolEvents::ignored() }
    }

    /// Returns the client-side calls of the answer with which `turn` ended, in order, each with its recorded key.
    ///
    /// Calls that the loop has answered are left out, as in [`ChatResponse::open_calls`].
    /// An advisor outside the loop may have removed calls from the answer. The others keep their keys.
    ///
    /// # Errors
    /// Of kind [`Configuration`](advisor_core::ErrorKind::Configuration) if the answer was changed and the
    /// position of a call in the recorded answer is unknown. This happens without a loop, or if a memory outside
    /// the loop returns the answer again. `ChatMemoryAdvisor::client_side_calls` lists the calls with their
    /// keys.
    pub fn from_answer(turn: &Arc<Turn>, answer: &ChatResponse) -> Result<Vec<Self>> {
        let own = turn.extensions().get::<PendingAnswer>();
        let own = own.filter(|own| own.answer.round() == answer.round());
        let recorded = match &own {
            Some(own) => &own.answer,
            None if turn.is_as_recorded(answer.message()) => answer,
            None => return Err(unknown_place()),
        };
        let run = |(block, call): (BlockId, &ToolCall)| {
            let mut places = (0..).zip(recorded.tool_calls());
            let (position, _) = places.find(|(_, (own, _))| *own == block).ok_or_else(unknown_place)?;
            let key = CallKey::new(turn.id().clone(), answer.round(), position);
            Ok(Self { block, turn: Arc::clone(turn), ..Self::new(call.clone(), key) })
        };
        let open: HashSet<_> = match &own {
            Some(own) => own.open.clone(),
            // A memory outside the loop has returned the answer again, or there is no loop.
            None => answer.open_calls().map(|(block, _)| block).collect(),
        };
        let is_open = |block: &BlockId| open.contains(block);
        answer.tool_calls().filter(|(block, _)| is_open(block)).map(run).collect()
    }

    /// Sets the turn, whose extensions the tool can read.
    pub fn with_turn(self, turn: Arc<Turn>) -> Self {
        Self { turn, ..self }
    }

    /// Sets the conversation.
    pub fn with_conversation(self, conversation: ConversationKey) -> Self {
        Self { conversation: Some(conversation), ..self }
    }

    /// Sets the receiver of events. Read them while the call runs.
    pub fn with_events(self, events: ToolEvents) -> Self {
        Self { events, ..self }
    }
}

fn unknown_place() -> Error {
    Error::configuration(
        "the answer was changed after it was recorded, so the keys of its calls are not known; take them from the memory's `client_side_calls`",
    )
}

impl fmt::Debug for CallRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Arguments are content and must not be logged.
        f.debug_struct("CallRun")
            .field("key", &self.key)
            .field("name", &self.call.name)
            .finish_non_exhaustive()
    }
}

impl ToolCallAdvisor {
    /// Runs one call as the loop would, with the settings of this loop, and returns its result.
    ///
    /// Looks the tool up in `tools`, including client-side tools, and parses and checks the arguments. The
    /// configured execution runs the tool, and the size of the result is limited. Every failure of the call is an
    /// error result. To continue, pass the results of all calls of the answer to the next turn, as
    /// [`Message::tool`](advisor_core::Message::tool).
    ///
    /// Nothing is recorded or counted, and the `eligible` predicate is not called.
    ///
    /// # At most once
    /// This method alone starts a call that must not run twice ([`Effect::AtMostOnce`]) once within one [`Turn`]
    /// value. Another process, or another `CallRun` of the same key, starts it again, and a lost result reads as
    /// "not run". With a memory, do this for each call:
    ///
    /// 1. Record the start: `memory.record_call_start(&conversation, &CallStart::new(key, call_id)).await`.
    /// 2. Only if that is `Ok`, run the call with this method. After an error, do not run it.
    /// 3. Pass the result, with those of the other calls of the answer, as the input of the next turn.
    ///
    /// If the process dies between 1 and 3, the next turn asks the model to verify the call, whose outcome is
    /// unknown.
    ///
    /// # Cancellation
    /// Dropping the future drops the tool.
    ///
    /// # Errors
    /// Of kind [`Tool`](advisor_core::ErrorKind::Tool), or any error of a custom
    /// [`ToolExecution`](crate::ToolExecution). A failing tool is a result.
    ///
    /// # Example
    /// ```
    /// use std::sync::Arc;
    /// use advisor_core::{ChatClient, FinishReason, Message, Result};
    /// use advisor_testkit::{Answer, ScriptedModel};
    /// use serde_json::{Value, json};
    /// use tool_call_advisor::{CallRun, FnTool, ToolCallAdvisor, ToolDefinition, ToolSet};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let pay = ToolDefinition::new("pay", "Pays a bill.", json!({"type": "object"}));
    /// let pay = ToolDefinition { client_side: true, ..pay };
    /// let tools = ToolSet::new().with(FnTool::new(pay, |_: Value| async { Ok("paid") }));
    /// # let model = ScriptedModel::new([Answer::from_calls([("c1", "pay", "{}")]), Answer::from_text("Done.")]);
    /// let advisor = ToolCallAdvisor::new();
    /// let client = ChatClient::builder(model).advisor(advisor.clone()).tools(&tools).build()?;
    ///
    /// let stream = client.prompt().user("Pay the bill.").stream();
    /// let turn = Arc::clone(stream.turn());
    /// let answer = stream.call().await?;
    /// assert_eq!(answer.finish().reason, FinishReason::ToolCalls);
    ///
    /// let mut messages: Vec<_> = answer.transcript().iter().cloned().collect();
    /// for run in CallRun::from_answer(&turn, &answer)? {
    ///     // Here a person approves it. With a memory, its start is recorded next:
    ///     // let start = CallStart::new(run.key.clone(), run.call.id.clone());
    ///     // memory.record_call_start(&conversation, &start).await?;
    ///     messages.push(Message::tool(advisor.run_call(&tools, run).await?));
    /// }
    /// assert_eq!(client.prompt().messages(messages).call().await?.text(), "Done.");
    /// # Ok(()) }
    /// ```
    pub async fn run_call(&self, tools: &ToolSet, run: CallRun) -> Result<ToolResult> {
        let config = &self.config;
        let bounds = config.limits.of_result();
        let CallRun { call, key, block, turn, conversation, events } = run;
        let events = events.within(bounds);
        let fate = match prepare_in_time(&call, tools, &config.schemas, config.leniency).await {
            Err(why) => Fate::NotStarted(why),
            Ok((tool, _)) if !is_first(&turn, &key, &*tool) => {
                Fate::NotStarted(NotStarted::AlreadyStarted(VERIFY_BEFORE_RETRYING))
            }
            Ok((tool, arguments)) => {
                let (call, key) = (call.clone(), key.clone());
                Fate::Ready(ReadyCall { call, block, key, tool, arguments, edited: None })
            }
        };
        let mut plan = ToolPlan::new(vec![PlannedCall::new(block, key, &call, fate)]);
        let batch = ToolBatch { calls: Vec::new(), turn, conversation, events, deadline: None };
        let (results, broken) = plan.run(&*config.execution, &config.texts, batch, bounds).await;
        match (broken, results.into_iter().next()) {
            (None, Some(result)) => Ok(result),
            (Some(error), _) => Err(error),
            (None, None) => Err(Error::new(ErrorKind::Tool, "a call that ran has no result")),
        }
    }
}

/// Checks whether the call may start in this turn. A call that must not run twice counts as started from then on.
fn is_first(turn: &Turn, key: &CallKey, tool: &dyn Tool) -> bool {
    if tool.definition().effect != Some(Effect::AtMostOnce) {
        return true;
    }
    turn.facts(|facts| facts.started.insert(key.clone()))
}
