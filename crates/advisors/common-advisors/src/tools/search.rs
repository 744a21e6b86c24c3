//! `ToolSearch`: an advisor with a tool that searches; offers what the messages of a request have found.

use std::fmt;
use std::sync::Arc;

use advisor_core::{
    AdvisorChain, AdvisorInfo, AdvisorRole, ChatRequest, ChunkStream, Effect, Error, Message, Phase,
    Placement, Result, StreamAdvisor, Text, Tool, ToolCall, ToolDefinition, ToolError, ToolInvocation,
    ToolOutput, ToolSet, async_trait,
};
use serde_json::{Value, json};

use super::index::Index;

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
pub struct ToolSearch(Arc<Search>);

/// The tools with their index, and the tool that searches them.
struct Search {
    definition: ToolDefinition,
    tools: Vec<Arc<dyn Tool>>,
    index: Index,
}

impl ToolSearch {
    /// Creates a search over these tools. Its tool is called `search_tools`, and finds at most 8.
    ///
    /// # Errors
    /// If the set has a tool of that name, or one with an invalid definition.
    pub fn new(tools: &ToolSet) -> Result<Self> {
        tools.definitions().try_for_each(ToolDefinition::validate)?;
        let definition = definition(tools.len());
        if tools.find(&definition.name).is_some() {
            return Err(Error::configuration(format!(
                "a tool of the search is called `{}`, as the search itself",
                definition.name
            )));
        }
        let (tools, index) = (tools.iter().cloned().collect(), Index::new(tools));
        Ok(Self(Arc::new(Search { definition, tools, index })))
    }

    /// Returns the tools of a request: its own, the search, and those found and called.
    fn offered(&self, request: &ChatRequest) -> Result<ToolSet> {
        let search = &self.0;
        // In the order in which they were found, so that the beginning of the list stays the same for caches.
        let mut found = Vec::new();
        let calls = request.messages.iter().flat_map(Message::tool_calls);
        for place in calls.flat_map(|call| search.places_of(call)) {
            let is_new = !found.contains(&place)
                && search
                    .tools
                    .get(place)
                    .is_some_and(|tool| request.tools.find(&tool.definition().name).is_none());
            if is_new {
                found.push(place);
            }
        }
        let found = found.into_iter().filter_map(|place| search.tools.get(place).cloned());
        let itself: Arc<dyn Tool> = Arc::<Search>::clone(search);
        let added: ToolSet = std::iter::once(itself).chain(found).collect();
        request.tools.clone().merged(&added)
    }
}

impl Search {
    /// Returns the places of the tools that a call found or called.
    fn places_of(&self, call: &ToolCall) -> Vec<usize> {
        if call.name == self.definition.name {
            let arguments = call.parsed_arguments().unwrap_or_default();
            return self.index.find(query(&arguments));
        }
        let called = self.tools.iter().position(|tool| tool.definition().name == call.name);
        called.into_iter().collect()
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
        let found = self.index.find(query(&invocation.arguments));
        let lines = found.into_iter().filter_map(|place| self.tools.get(place)).map(|tool| {
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
        let names: Vec<&Text> = self.0.tools.iter().map(|tool| &tool.definition().name).collect();
        f.debug_struct("ToolSearch").field("tools", &names).finish()
    }
}
