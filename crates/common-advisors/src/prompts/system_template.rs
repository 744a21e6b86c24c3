//! `SystemTemplate` and `TemplateValues`: a system text with values of the turn.

use std::collections::BTreeMap;
use std::sync::Arc;

use advisor_core::{
    AdvisorChain, AdvisorInfo, ChatRequest, ChunkStream, Phase, Placement, Result, StreamAdvisor, Text,
    async_trait,
};

use super::template::PromptTemplate;

/// Adds a system text with values of the turn, behind the system text of the request. It is never stored.
///
/// The turn gives values as an extension, [`TemplateValues`]. They take precedence over those of the advisor.
///
/// Its phase is [`Phase::Turn`].
///
/// # Errors
/// Of kind [`Configuration`](advisor_core::ErrorKind::Configuration) for a place without a value, before the model is
/// asked.
///
/// # Example
/// ```
/// use advisor_core::ChatClient;
/// use advisor_testkit::{Answer, ScriptedModel};
/// use common_advisors::{SystemTemplate, TemplateValues};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> advisor_core::Result<()> {
/// let template = "You help {user}. Answer in {language}.".parse()?;
/// let system = SystemTemplate::new(template).with("language", "English");
/// let model = ScriptedModel::new([Answer::from_text("Bonjour.")]);
/// let client = ChatClient::builder(model.clone()).advisor(system).build()?;
/// let values = TemplateValues::new().with("user", "Ann").with("language", "French");
/// client.prompt().user("Hello").extension(values).call().await?;
/// assert_eq!(model.prompts()[0].messages.iter().next().unwrap().text(), "You help Ann. Answer in French.");
/// # Ok(()) }
/// ```
#[must_use]
#[derive(Debug, Clone)]
pub struct SystemTemplate {
    template: PromptTemplate,
    values: BTreeMap<Text, Text>,
}

/// The values of a turn for its templates: a turn extension.
#[must_use]
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TemplateValues(BTreeMap<Text, Text>);

impl SystemTemplate {
    /// Creates an advisor without values.
    pub fn new(template: PromptTemplate) -> Self {
        Self { template, values: BTreeMap::new() }
    }

    /// Sets a value for all turns.
    pub fn with(mut self, name: impl Into<Text>, value: impl Into<Text>) -> Self {
        self.values.insert(name.into(), value.into());
        self
    }
}

impl TemplateValues {
    /// Creates an empty set of values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets a value.
    pub fn with(mut self, name: impl Into<Text>, value: impl Into<Text>) -> Self {
        self.0.insert(name.into(), value.into());
        self
    }
}

impl AdvisorInfo for SystemTemplate {
    fn name(&self) -> &str {
        "system-template"
    }

    fn placement(&self) -> Placement {
        Placement::new(Phase::Turn)
    }
}

#[async_trait]
impl StreamAdvisor for SystemTemplate {
    async fn advise_stream(self: Arc<Self>, request: ChatRequest, next: AdvisorChain) -> Result<ChunkStream> {
        let mut values = self.values.clone();
        if let Some(TemplateValues(given)) = request.turn.extensions().get() {
            values.extend(given);
        }
        let text = self.template.render_with(&values)?;
        next.next_stream(request.with_system(text)).await
    }
}
