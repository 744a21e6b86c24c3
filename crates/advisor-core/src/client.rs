use std::sync::Arc;

use message_aggregator::Text;

use crate::builder::ChainBuilder;
use crate::{
    AdvisorChain, ChatModel, ChatOptions, Error, OnDrop, Phase, Plan, Prompt, Result, Spawner, StreamAdvisor,
    Tool, ToolSet,
};

/// The way into a chain: defaults once, a [`Prompt`] per turn. Cheap to clone.
///
/// # Example
/// ```
/// use advisor_core::{ChatClient, ChatModel, ChatRequest, ChatResponse, ChunkStream, FinishReason, Message, Result, async_trait};
///
/// struct Echo;
/// #[async_trait]
/// impl ChatModel for Echo {
///     async fn stream(&self, request: ChatRequest) -> Result<ChunkStream> {
///         let said = request.messages.last().map(Message::text).unwrap_or_default();
///         Ok(ChunkStream::answer(ChatResponse::new(request.round, Message::assistant(said), FinishReason::Stop)))
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> advisor_core::Result<()> {
/// let client = ChatClient::builder(Echo).system("Repeat.").build()?;
/// assert_eq!(client.prompt().user("Hello").call().await?.text(), "Hello");
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct ChatClient {
    chain: AdvisorChain,
    defaults: Arc<Defaults>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Defaults {
    pub(crate) system: Option<Text>,
    pub(crate) options: ChatOptions,
    pub(crate) tools: ToolSet,
    pub(crate) on_drop: OnDrop,
    pub(crate) spawner: Option<Spawner>,
}

impl ChatClient {
    /// Begins a client around `model`.
    pub fn builder(model: impl ChatModel) -> ChatClientBuilder {
        ChatClientBuilder {
            chain: AdvisorChain::builder(model),
            defaults: Defaults::default(),
            duplicate: None,
        }
    }

    /// Begins a turn.
    pub fn prompt(&self) -> Prompt {
        Prompt::new(self.chain.to_builder(), Arc::clone(&self.defaults))
    }

    /// The chain that every turn runs through.
    #[must_use]
    pub fn chain(&self) -> &AdvisorChain {
        &self.chain
    }

    /// How the chain is put together.
    #[must_use]
    pub fn explain(&self) -> Plan {
        self.chain.explain()
    }
}

/// Puts a [`ChatClient`] together.
#[derive(Debug, Clone)]
#[must_use = "a client is made by `build`"]
pub struct ChatClientBuilder {
    chain: ChainBuilder,
    defaults: Defaults,
    duplicate: Option<Text>,
}

impl ChatClientBuilder {
    /// Adds an advisor at its own place.
    pub fn advisor(self, advisor: impl StreamAdvisor) -> Self {
        Self { chain: self.chain.advisor(advisor), ..self }
    }

    /// Adds an advisor in another phase than its own.
    pub fn advisor_in(self, phase: Phase, advisor: impl StreamAdvisor) -> Self {
        Self { chain: self.chain.advisor_in(phase, advisor), ..self }
    }

    /// Adds an advisor unless another of the same role is added.
    pub fn fallback_advisor(self, advisor: impl StreamAdvisor) -> Self {
        Self { chain: self.chain.fallback_advisor(advisor), ..self }
    }

    /// The instructions of every turn that gives none of its own.
    pub fn system(mut self, text: impl Into<Text>) -> Self {
        self.defaults.system = Some(text.into());
        self
    }

    /// The options of every turn, where it gives none of its own.
    pub fn options(mut self, options: ChatOptions) -> Self {
        self.defaults.options = options;
        self
    }

    /// Adds a tool for every turn.
    pub fn tool(mut self, tool: impl Tool) -> Self {
        insert_once(&mut self.defaults.tools, Arc::new(tool), &mut self.duplicate);
        self
    }

    /// Adds tools for every turn.
    pub fn tools(mut self, tools: &ToolSet) -> Self {
        for tool in tools.iter() {
            insert_once(&mut self.defaults.tools, Arc::clone(tool), &mut self.duplicate);
        }
        self
    }

    /// What becomes of a turn that is dropped, unless it says otherwise.
    pub fn on_drop(mut self, on_drop: OnDrop) -> Self {
        self.defaults.on_drop = on_drop;
        self
    }

    /// Where work that outlives a turn may run.
    pub fn spawner(mut self, spawner: Spawner) -> Self {
        self.defaults.spawner = Some(spawner);
        self
    }

    /// The client.
    ///
    /// # Errors
    /// Of kind [`Configuration`](crate::ErrorKind::Configuration) for two tools of one name, for
    /// [`OnDrop::FinishTurn`] without a spawner, and for all that [`ChainBuilder::build`] refuses.
    pub fn build(self) -> Result<ChatClient> {
        refuse_duplicate(self.duplicate)?;
        check_spawner(self.defaults.on_drop, self.defaults.spawner.as_ref())?;
        Ok(ChatClient { chain: self.chain.build()?, defaults: Arc::new(self.defaults) })
    }
}

pub(crate) fn insert_once(tools: &mut ToolSet, tool: Arc<dyn Tool>, duplicate: &mut Option<Text>) {
    if let Some(replaced) = tools.insert(tool) {
        duplicate.get_or_insert(replaced.definition().name.clone());
    }
}

pub(crate) fn refuse_duplicate(duplicate: Option<Text>) -> Result<()> {
    duplicate.map_or(Ok(()), |name| {
        Err(Error::configuration(format!("two tools are called `{name}`; rename or leave out one of them")))
    })
}

pub(crate) fn check_spawner(on_drop: OnDrop, spawner: Option<&Spawner>) -> Result<()> {
    if on_drop == OnDrop::FinishTurn && spawner.is_none() {
        return Err(Error::configuration(
            "finishing a dropped turn needs somewhere to run: give the client a spawner",
        ));
    }
    Ok(())
}
