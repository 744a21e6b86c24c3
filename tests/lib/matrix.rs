//! One turn in every combination of memory placement, streaming mode, rounds and parallel calls, with all of
//! its parts writing into one journal.

use std::sync::Arc;

use advisor_chain::messages::ChunkFold;
use advisor_chain::tools::{ToolCallStreaming, ToolInvocation};
use advisor_chain::{
    Advisor, AdvisorInfo, ChatClient, ChatMemoryAdvisor, ChatRequest, ChatResponse, Chunk, ConversationKey,
    FnTool, InMemoryStore, Message, Phase, Placement, Result, ToolCallAdvisor, ToolDefinition, async_trait,
};
use advisor_testkit::{Answer, Journal, JournalStore, ReceivedPrompt, ScriptedModel};
use futures::StreamExt;
use serde_json::json;
use tokio::task::yield_now;

/// One combination.
#[derive(Debug, Clone, Copy)]
pub struct Case {
    /// The phase that memory is in: `Round` is inside the loop, `Turn` outside.
    pub memory: Phase,
    /// Which chunks the caller sees.
    pub mode: ToolCallStreaming,
    /// The number of rounds with tool calls, before the one that answers.
    pub tool_rounds: u32,
    /// Calls in each of them.
    pub calls: usize,
}

/// The modes in which a loop shows chunks.
pub const MODES: [ToolCallStreaming; 3] =
    [ToolCallStreaming::TextOnly, ToolCallStreaming::FinalAnswerOnly, ToolCallStreaming::All];

/// The phases that memory can be in: inside the loop, and outside.
pub const PLACES: [Phase; 2] = [Phase::Round, Phase::Turn];

/// Memory inside and outside the loop, three modes, 0, 1, 3 and 50 tool rounds, one and four calls.
pub fn cases() -> impl Iterator<Item = Case> {
    let work = [(0, 0), (1, 1), (1, 4), (3, 1), (3, 4), (50, 1), (50, 4)];
    PLACES.into_iter().flat_map(move |memory| {
        MODES.into_iter().flat_map(move |mode| {
            work.into_iter().map(move |(tool_rounds, calls)| Case { memory, mode, tool_rounds, calls })
        })
    })
}

/// A client over scripted parts, and these parts.
pub struct Ran {
    /// What happened, in order.
    pub journal: Journal,
    /// The model, which keeps the received prompts.
    pub model: ScriptedModel,
    /// The store, which writes into the journal.
    pub store: Arc<JournalStore<InMemoryStore>>,
    /// Memory over that store.
    pub memory: ChatMemoryAdvisor,
    /// The client.
    pub client: ChatClient,
    /// The conversation of each turn.
    pub key: ConversationKey,
}

impl Case {
    /// The id of a call.
    pub fn call_id(round: u32, call: usize) -> String {
        format!("r{round}c{call}")
    }

    /// The answer to this prompt.
    pub fn answer_to(self, prompt: &ReceivedPrompt) -> Answer {
        let round = prompt.round;
        if round > self.tool_rounds {
            return Answer::new()
                .text("All ")
                .text("done.")
                .usage(10, 2)
                .finish(advisor_chain::FinishReason::Stop);
        }
        let answer = Answer::new().text(format!("Working on {round}. "));
        let calls = (0..self.calls).fold(answer, |answer, call| {
            answer.call(&Self::call_id(round, call), "work", &json!({"n": call}).to_string())
        });
        calls.usage(10, 5).finish(advisor_chain::FinishReason::ToolCalls)
    }

    /// The parts of this case, put together and not yet asked.
    pub fn prepare(self) -> Ran {
        self.prepare_with(move |prompt| self.answer_to(prompt))
    }

    /// The same with another model.
    pub fn prepare_with(self, answer: impl FnMut(&ReceivedPrompt) -> Answer + Send + 'static) -> Ran {
        let journal = Journal::new();
        let model = ScriptedModel::from_fn(answer).with_journal(&journal);
        let store = Arc::new(JournalStore::new(InMemoryStore::new(), &journal));
        let memory = ChatMemoryAdvisor::new(Arc::clone(&store));
        let tool_loop = ToolCallAdvisor::builder()
            .streaming(self.mode)
            .limits(advisor_chain::tools::ToolLimits {
                rounds: Some(60),
                calls: Some(1000),
                calls_per_tool: Some(1000),
                same_calls: None,
                ..Default::default()
            })
            .build()
            .unwrap();
        let client = ChatClient::builder(model.clone())
            .system("Be brief.")
            .advisor(Witness::new("outer", Phase::Turn, &journal))
            .advisor(Witness::new("inner", Phase::Round, &journal))
            .advisor_in(self.memory, memory.clone())
            .advisor(tool_loop)
            .tool(work(&journal))
            .build()
            .unwrap();
        let key = ConversationKey::new("c").unwrap();
        Ran { journal, model, store, memory, client, key }
    }

    /// Runs one turn to its end.
    pub async fn run(self) -> (Ran, ChunkFold, ChatResponse) {
        let ran = self.prepare();
        let (fold, response) = ran.turn("Please work.").await;
        (ran, fold, response)
    }
}

impl Ran {
    /// Runs a turn of the conversation and writes the reader's chunks into the journal.
    pub async fn turn(&self, user: &str) -> (ChunkFold, ChatResponse) {
        let mut turn = self.client.prompt().user(user).conversation("c").stream();
        let mut fold = ChunkFold::default();
        let mut last = None;
        while let Some(chunk) = turn.next().await {
            let chunk = chunk.unwrap();
            fold.push(&chunk);
            match &chunk {
                Chunk::RoundCompleted(response) => {
                    self.journal.record(format!("seen round r{}", response.round()))
                }
                Chunk::Completed(response) => {
                    self.journal.record("seen completed");
                    last = Some(response.clone());
                }
                _ => {}
            }
        }
        (fold, last.unwrap())
    }

    /// The conversation as the next turn would be sent it.
    pub async fn transcript(&self) -> Vec<Message> {
        self.memory.transcript(&self.key).await.unwrap().iter().cloned().collect()
    }
}

/// Says when its `before` and `after` begin and end; `after` takes its time.
pub struct Witness {
    name: &'static str,
    phase: Phase,
    journal: Journal,
}

impl Witness {
    /// Creates one in this phase.
    pub fn new(name: &'static str, phase: Phase, journal: &Journal) -> Self {
        Self { name, phase, journal: journal.clone() }
    }
}

impl AdvisorInfo for Witness {
    fn name(&self) -> &str {
        self.name
    }

    fn placement(&self) -> Placement {
        Placement::new(self.phase)
    }
}

#[async_trait]
impl Advisor for Witness {
    type State = ();

    async fn before(&self, request: ChatRequest) -> Result<(ChatRequest, ())> {
        self.journal.record(format!("{} before", self.name));
        Ok((request, ()))
    }

    async fn after(&self, (): (), response: &ChatResponse) -> Result<()> {
        self.journal.record(format!("{} after begins r{}", self.name, response.round()));
        for _ in 0..3 {
            yield_now().await;
        }
        self.journal.record(format!("{} after ends r{}", self.name, response.round()));
        Ok(())
    }
}

fn work(journal: &Journal) -> FnTool {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    let journal = journal.clone();
    FnTool::with_invocation(
        ToolDefinition::new("work", "Works.", schema),
        move |invocation: ToolInvocation| {
            let journal = journal.clone();
            async move {
                let id = invocation.call.id.clone();
                journal.record(format!("tool starts {id}"));
                // Later calls finish first.
                let n = invocation.arguments["n"].as_u64().unwrap_or_default();
                for _ in n..4 {
                    yield_now().await;
                }
                journal.record(format!("tool ends {id}"));
                Ok(format!("result of {id}").into())
            }
        },
    )
}
