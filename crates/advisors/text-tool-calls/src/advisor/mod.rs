//! `TextToolCalls`: the advisor beside the model, its settings, and the request that it makes.

mod editor;
mod history;
mod leaks;

use std::collections::BTreeMap;
use std::sync::Arc;

use advisor_core::{
    AdvisorChain, AdvisorInfo, AdvisorRole, ChatRequest, ChunkStream, Phase, Placement, ResponseFormat,
    Result, StreamAdvisor, ToolChoice, ToolSet, async_trait,
};

use self::editor::TextCallEditor;
use self::history::with_calls_as_text;
use crate::format::{TextFormat, ToolCallFormat};
use crate::parser::event::ParserLimits;
use crate::tools::{TextTools, ToolForm};

pub use leaks::Leaks;

/// Makes tool calls in the text of a model look like those of a provider's interface.
///
/// It describes the tools in the system message, takes them out of the interface's fields, and turns calls in the
/// text into blocks of calls. The tool loop runs them, and memory stores them, as any other call. Earlier calls and
/// results are sent as text. So a conversation can change between both ways, in both directions.
///
/// Its place is [beside the model](advisor_core::AdvisorRole::BesideModel), inside all other advisors, whatever the order in which
/// they are added. So it sees the tools of all others, and a policy judges the calls that it finds.
///
/// A chain has at most one: a second one would describe the tools twice, and building such a chain fails. One advisor
/// can read [several formats](Self::recovered).
///
/// # Ordering
/// Text, calls and arguments stream. Only text that may begin or end a call is held back. Calls of the provider's
/// interface pass, also in the same answer.
///
/// # Cancellation
/// It has nothing to cancel.
///
/// # Errors
/// Of kind [`TooLarge`](advisor_core::ErrorKind::TooLarge) if a call in the text is too long.
///
/// # Example
/// ```
/// use advisor_core::{ChatClient, Tool, ToolDefinition, ToolError, ToolInvocation, ToolOutput, async_trait};
/// use advisor_testkit::{Answer, ScriptedModel};
/// use serde_json::json;
/// use text_tool_calls::{TextFormat, TextToolCalls};
///
/// struct Clock(ToolDefinition);
///
/// #[async_trait]
/// impl Tool for Clock {
///     fn definition(&self) -> &ToolDefinition {
///         &self.0
///     }
///     async fn run(&self, _: ToolInvocation) -> Result<ToolOutput, ToolError> {
///         Ok("12:00".into())
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> advisor_core::Result<()> {
/// let model = ScriptedModel::new([Answer::from_text("Let me look. <tool name=\"time\"></tool>")]);
/// let time = Clock(ToolDefinition::new("time", "Tells the time.", json!({"type": "object"})));
/// // With a tool loop, the tool runs, and the model is called again.
/// let client =
///     ChatClient::builder(model).advisor(TextToolCalls::new(TextFormat::Xml)).tool(time).build()?;
/// let response = client.prompt().user("How late is it?").call().await?;
/// assert_eq!(response.text(), "Let me look. ");
/// assert_eq!(response.message().tool_calls().next().unwrap().name, "time");
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
#[allow(clippy::exhaustive_structs, reason = "callers write it with `..TextToolCalls::new(…)`")]
pub struct TextToolCalls {
    /// The format in which tools are described and calls are read.
    ///
    /// With [`ToolCallFormat::Api`], the interface of the provider describes the tools. Calls in the text are then only
    /// [reported](Leaks), unless they are [recovered](Self::recovered).
    pub format: ToolCallFormat,
    /// Further formats in which calls are read, even if the request does not ask for them.
    ///
    /// With the interface of the provider, such a text becomes a call that runs. Choose it for models and servers
    /// that are known to write such calls.
    pub recovered: Vec<TextFormat>,
    /// The short forms of tools, beside the known ones.
    pub forms: Vec<ToolForm>,
    /// The bounds.
    pub limits: ParserLimits,
}

impl TextToolCalls {
    /// Creates an advisor that describes tools in this format and reads calls in it.
    pub fn new(format: impl Into<ToolCallFormat>) -> Self {
        let (format, limits) = (format.into(), ParserLimits::default());
        Self { format, recovered: Vec::new(), forms: Vec::new(), limits }
    }

    fn tools(&self, tools: &ToolSet) -> TextTools {
        self.forms.iter().cloned().fold(TextTools::new(tools.definitions()), TextTools::with_form)
    }

    /// Returns the formats to read.
    fn formats(&self, request: &ChatRequest) -> Vec<TextFormat> {
        let prompted = match self.format {
            _ if is_without_tools(request) => return Vec::new(),
            ToolCallFormat::Text(format) => Some(format),
            ToolCallFormat::Api => None,
        };
        let recovered = self.recovered.iter().copied().filter(|format| Some(*format) != prompted);
        prompted.into_iter().chain(recovered).collect()
    }

    /// Describes the tools in words, and writes earlier calls and results into the text.
    fn in_words(&self, mut request: ChatRequest, format: TextFormat, tools: &TextTools) -> ChatRequest {
        let description = describe(tools, format, &request);
        if !description.is_empty() {
            // A server that enforces a form leaves the model no way to write a call.
            request.options.response_format = None;
        }
        ChatRequest {
            api_tools: Some(ToolSet::new()),
            ..with_calls_as_text(request, description.into(), format, tools)
        }
    }
}

/// Returns the description of the tools, or nothing if none may be called.
fn describe(tools: &TextTools, format: TextFormat, request: &ChatRequest) -> String {
    if is_without_tools(request) {
        return String::new();
    }
    let form = request.options.response_format.as_ref().and_then(ResponseFormat::instruction);
    let rules = [choice_in_words(request), one_call_in_words(request), form];
    [Some(tools.describe(format))].into_iter().chain(rules).flatten().collect::<Vec<_>>().join("\n\n")
}

fn is_without_tools(request: &ChatRequest) -> bool {
    request.tools.is_empty() || request.options.tool_choice == Some(ToolChoice::None)
}

fn choice_in_words(request: &ChatRequest) -> Option<String> {
    match request.options.tool_choice.as_ref()? {
        ToolChoice::Required => Some("Your next message must call at least one tool.".to_owned()),
        ToolChoice::Tool(name) => Some(format!("Your next message must call the tool `{name}`.")),
        _ => None,
    }
}

fn one_call_in_words(request: &ChatRequest) -> Option<String> {
    (request.options.parallel_tool_calls == Some(false))
        .then(|| "Call at most one tool per message.".to_owned())
}

impl AdvisorInfo for TextToolCalls {
    fn name(&self) -> &'static str {
        "text-tool-calls"
    }

    fn placement(&self) -> Placement {
        Placement { phase: Phase::ModelCall, role: AdvisorRole::BesideModel }
    }
}

#[async_trait]
impl StreamAdvisor for TextToolCalls {
    async fn advise_stream(self: Arc<Self>, request: ChatRequest, next: AdvisorChain) -> Result<ChunkStream> {
        let tools = self.tools(&request.tools);
        let editor = TextCallEditor {
            formats: self.formats(&request),
            limits: self.limits,
            tools: tools.clone(),
            reports_to: (self.format == ToolCallFormat::Api).then(|| Arc::clone(&request.turn)),
            open: BTreeMap::new(),
            calls_left: self.limits.calls,
        };
        let request = match self.format {
            ToolCallFormat::Text(format) => self.in_words(request, format, &tools),
            ToolCallFormat::Api => request,
        };
        Ok(next.next_stream(request).await?.edit_with(editor))
    }
}
