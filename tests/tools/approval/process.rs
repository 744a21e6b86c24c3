//! A process that asks before it pays.

use advisor_chain::chain::TurnResponse;
use advisor_chain::memory::ClientSideCall;
use advisor_chain::tools::{CallDecision, Decision, ReadyCall};
use advisor_tests::prelude::*;

/// Asks before it pays.
pub(crate) struct AskToPay;

#[async_trait]
impl LoopHooks for AskToPay {
    async fn before_tool(&self, call: &ReadyCall, _request: &ChatRequest) -> Result<CallDecision> {
        Ok(if call.call.name == "pay" { CallDecision::Ask } else { CallDecision::Run })
    }
}

pub(crate) fn definition(name: &str) -> ToolDefinition {
    let cents = json!({"type": "object", "properties": {"cents": {"type": "integer"}}});
    ToolDefinition::new(name, "A tool.", cents)
}

/// A process over a store. Its tool `pay` counts its runs.
pub(crate) struct Process {
    pub(crate) client: ChatClient,
    pub(crate) model: ScriptedModel,
    pub(crate) paid: Arc<AtomicUsize>,
}

impl Process {
    pub(crate) fn new(store: &Arc<dyn ConversationStore>, place: Phase, answers: Vec<Answer>) -> Self {
        Self::waiting(store, place, answers, None)
    }

    /// Creates a process whose tool waits at the gate.
    pub(crate) fn waiting(
        store: &Arc<dyn ConversationStore>,
        place: Phase,
        answers: Vec<Answer>,
        gate: Option<Gate>,
    ) -> Self {
        Self::behind(store, place, answers, gate, |builder| builder)
    }

    /// Creates a process whose chain has further advisors outside the memory of the same phase.
    pub(crate) fn behind(
        store: &Arc<dyn ConversationStore>,
        place: Phase,
        answers: Vec<Answer>,
        gate: Option<Gate>,
        outer: impl FnOnce(ChatClientBuilder) -> ChatClientBuilder,
    ) -> Self {
        Self::built(ChatMemoryAdvisor::new(Arc::clone(store)), place, answers, gate, outer)
    }

    /// Creates a process with this memory.
    pub(crate) fn with_memory(memory: ChatMemoryAdvisor, place: Phase, answers: Vec<Answer>) -> Self {
        Self::built(memory, place, answers, None, |builder| builder)
    }

    fn built(
        memory: ChatMemoryAdvisor,
        place: Phase,
        answers: Vec<Answer>,
        gate: Option<Gate>,
        outer: impl FnOnce(ChatClientBuilder) -> ChatClientBuilder,
    ) -> Self {
        let (model, paid) = (ScriptedModel::new(answers), Arc::new(AtomicUsize::new(0)));
        let runs = Arc::clone(&paid);
        let pay = FnTool::new(definition("pay"), move |arguments: Value| {
            let (runs, gate) = (Arc::clone(&runs), gate.clone());
            async move {
                runs.fetch_add(1, Ordering::SeqCst);
                if let Some(gate) = gate {
                    gate.pass().await;
                }
                Ok(ToolOutput::from(format!("paid {}", arguments["cents"])))
            }
        });
        let look = FnTool::new(definition("look"), |_: Value| async { Ok("seen") });
        let client = outer(ChatClient::builder(model.clone()))
            .advisor_in(place, memory)
            .advisor(ToolCallAdvisor::builder().hooks(AskToPay).build().unwrap())
            .tool(pay)
            .tool(look)
            .tool(ClientSideTool::new(definition("place")))
            .build()
            .unwrap();
        Self { client, model, paid }
    }

    pub(crate) async fn ask(&self) -> FinishReason {
        let answer = self.client.prompt().user("Pay.").conversation("c").call().await.unwrap();
        answer.finish.reason.clone()
    }

    /// Decides about the calls that wait.
    pub(crate) async fn resume(&self, decisions: impl IntoIterator<Item = Decision>) -> Result<TurnResponse> {
        self.client.prompt().conversation("c").resume(decisions).call().await
    }

    pub(crate) async fn pending(&self) -> Vec<ClientSideCall> {
        self.client.pending_calls("c").await.unwrap()
    }

    /// Polls a turn of this process until its tool has started.
    pub(crate) async fn started<T: std::fmt::Debug>(&self, turn: &mut (impl Future<Output = T> + Unpin)) {
        while self.runs() == 0 {
            assert!(futures::poll!(&mut *turn).is_pending());
            tokio::task::yield_now().await;
        }
    }

    pub(crate) fn runs(&self) -> usize {
        self.paid.load(Ordering::SeqCst)
    }

    /// Returns the messages of the last request.
    pub(crate) fn sent(&self) -> Vec<String> {
        let sent = self.model.prompts().pop().unwrap().messages;
        assert_eq!(validate_transcript(&sent), []);
        sent.iter().map(line).collect()
    }
}

pub(crate) fn line(message: &Message) -> String {
    match message.role() {
        Role::Tool => format!("{}: {}", message.tool_result().unwrap().call_id, message.text()),
        _ => message.tool_calls().fold(message.text(), |line, call| format!("{line}({})", call.id)),
    }
}

/// Two payments to approve, beside a call that needs no approval.
pub(crate) fn two_payments() -> Vec<Answer> {
    vec![Answer::from_calls([
        ("c1", "pay", r#"{"cents":1}"#),
        ("c2", "look", "{}"),
        ("c3", "pay", r#"{"cents":3}"#),
    ])]
}

pub(crate) fn one_payment() -> Vec<Answer> {
    vec![Answer::from_calls([("c1", "pay", r#"{"cents":1}"#)])]
}

pub(crate) fn then_done(mut answers: Vec<Answer>) -> Vec<Answer> {
    answers.extend(done());
    answers
}

pub(crate) fn done() -> Vec<Answer> {
    vec![Answer::from_text("Done.")]
}
