//! `ChatClient` and `ChatClientBuilder`: a chain with default instructions, options and tools; `IntoId` for their ids.

pub(crate) mod prompt;

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use message_aggregator::Text;

use crate::chain::Link;
use crate::tool::set::{duplicate_tool, warn_of_left_out};
use crate::{
    AdvisorChain, ChatModel, ChatOptions, ClientSideCall, ConversationKey, Error, OnDrop, Phase, Prompt,
    Result, Spawner, StreamAdvisor, Tool, ToolSet, TurnId,
};

/// Entry point of a chain: defaults once, a [`Prompt`] per turn. Cheap to clone.
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

#[derive(Clone, Default)]
struct Defaults {
    system: Option<Text>,
    options: ChatOptions,
    tools: ToolSet,
    on_drop: OnDrop,
    spawner: Option<Spawner>,
}

impl ChatClient {
    /// Returns a builder of a client around `model`.
    pub fn builder(model: impl ChatModel) -> ChatClientBuilder {
        ChatClientBuilder {
            links: Vec::new(),
            model: Arc::new(model),
            defaults: Defaults::default(),
            duplicate: None,
            inherited: HashSet::new(),
        }
    }

    /// Creates the prompt of a new turn.
    pub fn prompt(&self) -> Prompt {
        Prompt::new(self.chain.clone(), Arc::clone(&self.defaults))
    }

    /// Returns the calls that the conversation waits for, such as for an approval, in call order.
    ///
    /// # Errors
    /// If no memory in the chain knows them, or if the conversation cannot be read.
    pub async fn pending_calls(
        &self,
        conversation: impl IntoId<ConversationKey>,
    ) -> Result<Vec<ClientSideCall>> {
        let key = conversation.into_id()?.ok_or_else(|| Error::configuration("there is no conversation"))?;
        let memory = self.chain.pending_calls();
        let memory = memory.ok_or_else(|| {
            Error::configuration("no memory knows which calls wait: add a `ChatMemoryAdvisor`")
        })?;
        memory.list(&key).await
    }

    /// Returns a builder of the same client, to build a changed copy.
    ///
    /// Added advisors are placed inside those of the same phase; an added tool replaces one of the same name.
    pub fn to_builder(&self) -> ChatClientBuilder {
        let (links, model) = self.chain.parts();
        ChatClientBuilder {
            links,
            model,
            defaults: Defaults::clone(&self.defaults),
            duplicate: None,
            inherited: self.defaults.tools.definitions().map(|tool| tool.name.clone()).collect(),
        }
    }

    /// Returns the tools of every turn.
    #[must_use]
    pub fn tools(&self) -> &ToolSet {
        &self.defaults.tools
    }

    /// Returns the options of every turn.
    pub fn options(&self) -> &ChatOptions {
        &self.defaults.options
    }

    /// Returns the chain that every turn runs through.
    #[must_use]
    pub fn chain(&self) -> &AdvisorChain {
        &self.chain
    }

    /// Returns a description of the chain, as a table and a few sentences: the order of its advisors, their phases and
    /// roles, who sees every round, and what is remembered.
    #[must_use]
    pub fn explain(&self) -> impl fmt::Display + use<> {
        self.chain.explain()
    }
}

impl fmt::Debug for Defaults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The instructions are content and do not belong in logs.
        f.debug_struct("Defaults")
            .field("options", &self.options)
            .field("tools", &self.tools)
            .field("on_drop", &self.on_drop)
            .finish_non_exhaustive()
    }
}

/// Builder of a [`ChatClient`].
///
/// Its advisors are ordered by phase, outermost first; inside a phase the one added first is outermost. An advisor
/// [beside the model](crate::AdvisorRole::BesideModel) is inside all others.
#[derive(Clone)]
#[must_use = "a client is made by `build`"]
pub struct ChatClientBuilder {
    links: Vec<Link>,
    model: Arc<dyn ChatModel>,
    defaults: Defaults,
    duplicate: Option<Text>,
    /// Names of the copied client's tools; each can be replaced once.
    inherited: HashSet<Text>,
}

impl ChatClientBuilder {
    /// Uses another model.
    pub fn model(self, model: impl ChatModel) -> Self {
        Self { model: Arc::new(model), ..self }
    }

    /// Adds an advisor at its default placement.
    pub fn advisor(self, advisor: impl StreamAdvisor) -> Self {
        self.with(Link::new(Arc::new(advisor)))
    }

    /// Adds an advisor in another phase than its default one.
    pub fn advisor_in(self, phase: Phase, advisor: impl StreamAdvisor) -> Self {
        let mut link = Link::new(Arc::new(advisor));
        link.placement.phase = phase;
        self.with(link)
    }

    /// Adds an advisor that is used only if no other advisor of the same role is added.
    pub fn fallback_advisor(self, advisor: impl StreamAdvisor) -> Self {
        self.with(Link { fallback: true, ..Link::new(Arc::new(advisor)) })
    }

    fn with(mut self, link: Link) -> Self {
        self.links.push(link);
        self
    }

    /// Replaces the model by the one that `model` makes of it, and each advisor that was added so far by the one that
    /// `advisor` makes of it, such as those that measure them. Placements stay.
    pub fn wrapped(
        mut self,
        model: impl FnOnce(Arc<dyn ChatModel>) -> Arc<dyn ChatModel>,
        advisor: impl Fn(Arc<dyn StreamAdvisor>) -> Arc<dyn StreamAdvisor>,
    ) -> Self {
        for link in &mut self.links {
            link.advisor = advisor(Arc::clone(&link.advisor));
        }
        Self { model: model(self.model), ..self }
    }

    /// Sets the instructions of every turn that sets none itself.
    pub fn system(mut self, text: impl Into<Text>) -> Self {
        self.defaults.system = Some(text.into());
        self
    }

    /// Sets the default options; options of a turn take precedence.
    pub fn options(mut self, options: ChatOptions) -> Self {
        self.defaults.options = options;
        self
    }

    /// Adds a tool for every turn.
    pub fn tool(mut self, tool: impl Tool) -> Self {
        self.insert(Arc::new(tool));
        self
    }

    fn insert(&mut self, tool: Arc<dyn Tool>) {
        let name = tool.definition().name.clone();
        let is_own = |tool: &Arc<dyn Tool>| tool.definition().origin.is_none();
        let takes_own_name = !is_own(&tool) && self.defaults.tools.find(&name).is_some_and(is_own);
        if !takes_own_name && self.inherited.remove(&name) {
            self.defaults.tools.insert(tool);
            return;
        }
        match self.defaults.tools.join(tool) {
            Ok(left_out) => left_out.iter().for_each(|name| warn_of_left_out(name)),
            Err(_) => drop(self.duplicate.get_or_insert(name)),
        }
    }

    /// Adds tools for every turn.
    pub fn tools(mut self, tools: &ToolSet) -> Self {
        for tool in tools.iter() {
            self.insert(Arc::clone(tool));
        }
        self
    }

    /// Sets the policy for dropped turns; a turn can override it.
    pub fn on_drop(mut self, on_drop: OnDrop) -> Self {
        self.defaults.on_drop = on_drop;
        self
    }

    /// Sets the executor for work that outlives a turn.
    pub fn spawner(mut self, spawner: Spawner) -> Self {
        self.defaults.spawner = Some(spawner);
        self
    }

    /// Checks the settings and builds the client.
    ///
    /// # Errors
    /// Of kind [`Configuration`](crate::ErrorKind::Configuration), with the remedy, for:
    /// - two tool loops or two memories, or one of them in a phase where it cannot work;
    /// - a loop whose history setting contradicts the placement of memory;
    /// - an advisor on the wrong [side](crate::AdvisorRole::InsideMemory) of memory;
    /// - an advisor that must be [beside the model](crate::AdvisorRole::BesideModel) in another phase;
    /// - two tools of one name, neither of them [foreign](crate::ToolDefinition::origin);
    /// - tools that [`AdvisorChain::validate_tools`] rejects;
    /// - [`OnDrop::FinishTurn`] without a spawner.
    pub fn build(self) -> Result<ChatClient> {
        if let Some(name) = self.duplicate {
            return Err(duplicate_tool(&name));
        }
        check_spawner(self.defaults.on_drop, self.defaults.spawner.as_ref())?;
        let chain = AdvisorChain::new(self.links, self.model)?;
        chain.validate_tools(&self.defaults.tools)?;
        Ok(ChatClient { chain, defaults: Arc::new(self.defaults) })
    }
}

impl fmt::Debug for ChatClientBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChatClientBuilder")
            .field("advisors", &self.links)
            .field("defaults", &self.defaults)
            .finish_non_exhaustive()
    }
}

fn check_spawner(on_drop: OnDrop, spawner: Option<&Spawner>) -> Result<()> {
    if on_drop == OnDrop::FinishTurn && spawner.is_none() {
        return Err(Error::configuration("finishing a dropped turn needs a spawner: give one to the client"));
    }
    Ok(())
}

/// A value that identifies a `T` or leaves it unset: an id, its text, or an `Option` of either.
///
/// [`Prompt::conversation`](crate::Prompt::conversation) and [`Prompt::turn`](crate::Prompt::turn) take it.
pub trait IntoId<T> {
    /// Returns the id, if any.
    ///
    /// # Errors
    /// If the text is not a valid id.
    fn into_id(self) -> Result<Option<T>>;
}

impl<T, I: IntoId<T>> IntoId<T> for Option<I> {
    fn into_id(self) -> Result<Option<T>> {
        self.map_or(Ok(None), I::into_id)
    }
}

macro_rules! into_id {
    ($($id:ty),*) => {$(
        impl IntoId<Self> for $id {
            fn into_id(self) -> Result<Option<Self>> {
                Ok(Some(self))
            }
        }

        impl IntoId<$id> for &$id {
            fn into_id(self) -> Result<Option<$id>> {
                Ok(Some(self.clone()))
            }
        }

        impl IntoId<$id> for &str {
            fn into_id(self) -> Result<Option<$id>> {
                <$id>::new(self).map(Some)
            }
        }

        impl IntoId<$id> for String {
            fn into_id(self) -> Result<Option<$id>> {
                <$id>::new(&self).map(Some)
            }
        }

        impl IntoId<$id> for &String {
            fn into_id(self) -> Result<Option<$id>> {
                <$id>::new(self).map(Some)
            }
        }
    )*};
}

into_id!(ConversationKey, TurnId);
