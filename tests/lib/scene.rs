//! `Scene`: a client with the tool `look`, memory and a journal, and what came of its turns.

use crate::lines::short;
use crate::prelude::*;
use crate::tools::definition;

/// A client over a scripted model, with a tool loop and the tool `look`. Further parts are added in the order of the calls.
///
/// The model writes its requests into the journal, and each tool `tool look`.
pub struct Scene {
    builder: ChatClientBuilder,
    /// The model, which keeps the received prompts.
    pub model: ScriptedModel,
    /// Memory, once it was added.
    pub memory: ChatMemoryAdvisor,
    /// What happened, in order.
    pub journal: Journal,
}

impl Scene {
    /// Creates one in which `look` says `sunny`.
    pub fn new(answers: impl IntoIterator<Item = Answer>) -> Self {
        Self::saying(answers, "sunny")
    }

    /// Creates one in which `look` says this.
    pub fn saying(answers: impl IntoIterator<Item = Answer>, result: &'static str) -> Self {
        let journal = Journal::new();
        let model = ScriptedModel::new(answers).with_journal(&journal);
        let look = noted(definition("look"), result, &journal);
        let builder = advisor_chain::client(model.clone()).tool(look);
        Self { builder, model, memory: ChatMemoryAdvisor::new(InMemoryStore::new()), journal }
    }

    /// Adds parts to the client, such as advisors.
    pub fn with(self, add: impl FnOnce(ChatClientBuilder) -> ChatClientBuilder) -> Self {
        Self { builder: add(self.builder), ..self }
    }

    /// Adds a tool loop of this mode in place of the default one.
    pub fn in_mode(self, mode: ToolCallStreaming) -> Self {
        self.with(|client| client.advisor(ToolCallAdvisor::builder().streaming(mode).build().unwrap()))
    }

    /// Adds memory in this phase.
    pub fn remembering(self, place: Phase) -> Self {
        let memory = self.memory.clone();
        self.with(|client| client.advisor_in(place, memory))
    }

    /// Adds a tool that says `name is done`.
    pub fn tool(self, definition: ToolDefinition) -> Self {
        let result = format!("{} is done", definition.name);
        let tool = noted(definition, result, &self.journal);
        self.with(|client| client.tool(tool))
    }

    /// The client with all its parts.
    pub fn client(&self) -> ChatClient {
        self.builder.clone().build().unwrap()
    }

    /// A turn of the conversation `c`.
    pub fn turn(&self, user: &str) -> TurnStream {
        self.client().prompt().user(user).conversation("c").stream()
    }

    /// The response of such a turn.
    pub async fn ask(&self, user: &str) -> Result<ChatResponse> {
        self.turn(user).call().await.map(Into::into)
    }

    /// The names of the tools that ran.
    pub fn runs(&self) -> Vec<String> {
        self.journal
            .labels()
            .iter()
            .filter_map(|label| Some(label.strip_prefix("tool ")?.to_owned()))
            .collect()
    }

    /// The stored conversation, which is a valid transcript.
    pub async fn transcript(&self) -> MessageList {
        let transcript = self.memory.transcript(&ConversationKey::new("c").unwrap()).await.unwrap();
        assert_eq!(validate_transcript(&transcript), [], "{transcript:?}");
        transcript
    }

    /// The same in short; see [`short`].
    pub async fn remembered(&self) -> Vec<String> {
        short(&self.transcript().await)
    }

    /// The messages of a request, which are valid, in short.
    pub fn sent(&self, request: usize) -> Vec<String> {
        let messages = self.model.prompts().swap_remove(request).messages;
        assert_eq!(validate_transcript(&messages), [], "{messages:?}");
        short(&messages)
    }
}

/// A tool that writes its name into the journal.
fn noted(definition: ToolDefinition, result: impl Into<ToolOutput>, journal: &Journal) -> FnTool {
    let (result, journal, label) = (result.into(), journal.clone(), format!("tool {}", definition.name));
    FnTool::new(definition, move |_: Value| {
        journal.record(label.clone());
        let result = result.clone();
        async move { Ok(result) }
    })
}
