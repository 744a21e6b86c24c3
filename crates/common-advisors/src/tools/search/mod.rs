//! `ToolSearch`: the advisor and its tool; offers what the messages of a request have found.

mod index;

use std::fmt;
use std::sync::Arc;

use advisor_core::{
    AdvisorChain, AdvisorInfo, AdvisorRole, ChatRequest, ChunkStream, Effect, Error, Message, Phase,
    Placement, Result, StreamAdvisor, Text, Tool, ToolCall, ToolDefinition, ToolError, ToolInvocation,
    ToolOutput, ToolSet, async_trait,
};
use serde_json::{Value, json};

use self::index::Index;

/// Offers a large set of tools by search: the model has one tool that finds the others.
///
/// A request offers the search tool, the tools that the model has found, and those that it has called. They are read from
/// the messages of the request, so a restarted conversation offers the same ones. What a window leaves out is searched
/// again. Tools that the request has otherwise stay, and take precedence over those of the set with the same name.
///
/// The search compares words with the names, the descriptions and the parameters of the tools. Rare words count more.
///
/// Its phase is [`Phase::Round`], inside memory, so that it sees the conversation: add it after memory. A search does not know which tools an
/// [`OnlyTools`](crate::OnlyTools) inside it forbids: give it the allowed ones.
///
/// # Errors
/// Of kind [`Configuration`](advisor_core::ErrorKind::Configuration) if the request has a tool called `search_tools`.
///
/// # Example
/// ```
/// use advisor_core::{ChatClient, ToolDefinition, ToolSet};
/// use advisor_testkit::{Answer, ScriptedModel};
/// use common_advisors::ToolSearch;
/// use serde_json::json;
/// use tool_call_advisor::{FnTool, ToolCallAdvisor};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> advisor_core::Result<()> {
/// let tools: ToolSet = ["read_file", "send_mail"].into_iter().fold(ToolSet::new(), |tools, name| {
///     let definition = ToolDefinition::new(name, "A tool.", json!({"type": "object"}));
///     tools.with(FnTool::new(definition, |_: serde_json::Value| async { Ok("done") }))
/// });
/// let model = ScriptedModel::new([
///     Answer::from_calls([("c1", "search_tools", r#"{"query":"send a mail"}"#)]),
///     Answer::from_calls([("c2", "send_mail", "{}")]),
///     Answer::from_text("It is sent."),
/// ]);
/// let client = ChatClient::builder(model.clone())
///     .advisor(ToolCallAdvisor::builder().build()?)
///     .advisor(ToolSearch::new(&tools)?)
///     .build()?;
/// assert_eq!(client.prompt().user("Tell Ann.").call().await?.text(), "It is sent.");
/// let offered: Vec<_> = model.prompts().iter().map(|prompt| prompt.tools.len()).collect();
/// assert_eq!(offered, [1, 2, 2]);
/// # Ok(()) }
/// ```
#[must_use]
pub struct ToolSearch {
    finder: Arc<Finder>,
    search: Arc<dyn Tool>,
}

/// The tools with their index.
struct Finder {
    tools: Vec<Arc<dyn Tool>>,
    index: Index,
    limit: usize,
}

/// The tool that searches.
struct Search {
    definition: ToolDefinition,
    finder: Arc<Finder>,
}

impl ToolSearch {
    /// Creates a search over these tools. Its tool is called `search_tools`, and finds at most 8.
    ///
    /// # Errors
    /// If the set has a tool of that name, or one with an invalid definition.
    pub fn new(tools: &ToolSet) -> Result<Self> {
        tools.definitions().try_for_each(ToolDefinition::validate)?;
        let search = Self::from_tools(tools, 8);
        let name = &search.search.definition().name;
        match search.finder.tools.iter().any(|tool| tool.definition().name == *name) {
            true => Err(Error::configuration(format!(
                "a tool of the search is called `{name}`, as the search itself"
            ))),
            false => Ok(search),
        }
    }

    /// Sets the number of tools that a search finds at most.
    pub fn with_limit(self, limit: usize) -> Self {
        Self::from_tools(&self.finder.tools.iter().cloned().collect(), limit)
    }

    fn from_tools(tools: &ToolSet, limit: usize) -> Self {
        let index = Index::new(tools);
        let finder = Arc::new(Finder { tools: tools.iter().cloned().collect(), index, limit });
        let search = Search { definition: definition(tools.len()), finder: Arc::clone(&finder) };
        Self { finder, search: Arc::new(search) }
    }

    /// Returns the tools of a request: its own, the search, and those found and called.
    fn offered(&self, request: &ChatRequest) -> Result<ToolSet> {
        // In the order in which they were found, so that the beginning of the list stays the same for caches.
        let mut found = Vec::new();
        for place in
            request.messages.iter().flat_map(Message::tool_calls).flat_map(|call| self.places_of(call))
        {
            let is_new = !found.contains(&place)
                && self.name_of(place).is_some_and(|name| request.tools.find(name).is_none());
            if is_new {
                found.push(place);
            }
        }
        let found = found.into_iter().filter_map(|place| self.finder.tools.get(place));
        let added: ToolSet = std::iter::once(&self.search).chain(found).cloned().collect();
        request.tools.clone().merged(&added)
    }

    fn name_of(&self, place: usize) -> Option<&Text> {
        self.finder.tools.get(place).map(|tool| &tool.definition().name)
    }

    /// Returns the places of the tools that a call found or called.
    fn places_of(&self, call: &ToolCall) -> Vec<usize> {
        if call.name == self.search.definition().name {
            let arguments = call.parsed_arguments().unwrap_or_default();
            return self.finder.find(query(&arguments));
        }
        let called = self.finder.tools.iter().position(|tool| tool.definition().name == call.name);
        called.into_iter().collect()
    }
}

impl Finder {
    fn find(&self, query: &str) -> Vec<usize> {
        self.index.find(query, self.limit)
    }
}

fn query(arguments: &Value) -> &str {
    arguments.get("query").and_then(Value::as_str).unwrap_or_default()
}

fn definition(count: usize) -> ToolDefinition {
    let description = format!(
        "Searches the {count} tools that are available beside those listed. The tools it finds can be called afterwards."
    );
    let query =
        json!({"type": "string", "description": "Words for what the tool should do, such as `send mail`."});
    let schema = json!({"type": "object", "properties": {"query": query}, "required": ["query"]});
    ToolDefinition { effect: Some(Effect::Pure), ..ToolDefinition::new("search_tools", description, schema) }
}

#[async_trait]
impl Tool for Search {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    async fn run(&self, invocation: ToolInvocation) -> Result<ToolOutput, ToolError> {
        let found = self.finder.find(query(&invocation.arguments));
        let lines = found.into_iter().filter_map(|place| self.finder.tools.get(place)).map(|tool| {
            let ToolDefinition { name, description, .. } = tool.definition();
            format!("{name}: {description}")
        });
        let lines: Vec<_> = lines.collect();
        Ok(match lines.is_empty() {
            true => ToolOutput::from("No tool fits. Try other words."),
            false => ToolOutput::from(format!("These tools can be called now:\n{}", lines.join("\n"))),
        })
    }
}

impl AdvisorInfo for ToolSearch {
    fn name(&self) -> &str {
        "tool-search"
    }

    fn placement(&self) -> Placement {
        Placement { phase: Phase::Round, role: AdvisorRole::InsideMemory }
    }
}

#[async_trait]
impl StreamAdvisor for ToolSearch {
    async fn advise_stream(self: Arc<Self>, request: ChatRequest, next: AdvisorChain) -> Result<ChunkStream> {
        let tools = self.offered(&request)?;
        next.next_stream(ChatRequest { tools, ..request }).await
    }
}

impl fmt::Debug for ToolSearch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&Text> = self.finder.tools.iter().map(|tool| &tool.definition().name).collect();
        f.debug_struct("ToolSearch")
            .field("tools", &names)
            .field("limit", &self.finder.limit)
            .finish_non_exhaustive()
    }
}
