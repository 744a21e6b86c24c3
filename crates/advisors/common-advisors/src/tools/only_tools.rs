//! `OnlyTools`: allows the named tools.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use advisor_core::{
    AdvisorChain, AdvisorInfo, ChatRequest, ChunkStream, Error, Phase, Placement, Result, StreamAdvisor,
    Text, ToolChoice, ToolSet, async_trait,
};

/// Allows only the named tools, of all that the client, the prompt and other advisors add.
///
/// Add it to a client for all turns, or to a prompt for one. With several, a tool needs the permission of each. A call of
/// another tool does not run; the model reads that the tool is unknown. Names without a tool have no effect, since the
/// tools of an advisor may come later.
///
/// Its phase is [`Phase::Round`]. Add it after advisors that add tools, so that the model is not offered what it may not
/// call. A call that waits for an approval can be approved in a turn that allows its tool.
///
/// # Errors
/// Of kind [`Configuration`](advisor_core::ErrorKind::Configuration) if the options require a call of another tool, or of
/// any tool while none is allowed.
///
/// # Example
/// ```
/// use advisor_core::{ChatClient, ToolDefinition};
/// use advisor_testkit::{Answer, ScriptedModel};
/// use common_advisors::OnlyTools;
/// use serde_json::json;
/// use tool_call_advisor::{FnTool, ToolCallAdvisor};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> advisor_core::Result<()> {
/// let tool = |name: &str| {
///     FnTool::new(ToolDefinition::new(name, "A tool.", json!({"type": "object"})), |_: serde_json::Value| async { Ok("done") })
/// };
/// let model = ScriptedModel::new([Answer::from_text("I may only search.")]);
/// let client = ChatClient::builder(model.clone())
///     .advisor(ToolCallAdvisor::builder().build()?)
///     .tool(tool("search"))
///     .tool(tool("delete"))
///     .build()?;
/// client.prompt().user("Delete it.").advisor(OnlyTools::new(["search"])).call().await?;
/// assert_eq!(model.prompts()[0].tools, ["search"]);
/// # Ok(()) }
/// ```
#[must_use]
#[derive(Debug)]
pub struct OnlyTools {
    names: HashSet<Text>,
    /// The last set and its allowed part, so that a turn of many rounds serialises its tools once.
    last: Mutex<Option<(ToolSet, ToolSet)>>,
}

impl OnlyTools {
    /// Creates an advisor that allows the tools of these names.
    pub fn new(names: impl IntoIterator<Item = impl Into<Text>>) -> Self {
        Self { names: names.into_iter().map(Into::into).collect(), last: Mutex::default() }
    }

    fn allowed(&self, tools: &ToolSet) -> ToolSet {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((given, allowed)) = &*last
            && given.is_same(tools)
        {
            return allowed.clone();
        }
        let allowed = tools.filtered(|name| self.names.contains(name));
        *last = Some((tools.clone(), allowed.clone()));
        allowed
    }
}

impl AdvisorInfo for OnlyTools {
    fn name(&self) -> &str {
        "only-tools"
    }

    fn placement(&self) -> Placement {
        Placement::new(Phase::Round)
    }
}

#[async_trait]
impl StreamAdvisor for OnlyTools {
    async fn advise_stream(self: Arc<Self>, request: ChatRequest, next: AdvisorChain) -> Result<ChunkStream> {
        // Also for tools that advisors inside add, and for calls of a repeated answer.
        request.turn.allow_only(&self.names);
        let allowed = self.allowed(&request.tools);
        if let Some(problem) = forced(&request, &allowed) {
            return Err(Error::configuration(problem));
        }
        next.next_stream(ChatRequest { tools: allowed, ..request }).await
    }
}

/// Returns the contradiction between the tool choice and the allowed tools, if there is one.
fn forced(request: &ChatRequest, allowed: &ToolSet) -> Option<String> {
    match request.options.tool_choice.as_ref()? {
        ToolChoice::Tool(name) if request.tools.find(name).is_some() && allowed.find(name).is_none() => {
            Some(format!("the options require the tool `{name}`, which `OnlyTools` does not allow; allow it"))
        }
        ToolChoice::Required if allowed.is_empty() && !request.tools.is_empty() => {
            Some("the options require a tool, and `OnlyTools` allows none of the request's; allow one".into())
        }
        _ => None,
    }
}
