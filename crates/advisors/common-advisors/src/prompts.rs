//! Advisors that write prompts: `SystemTemplate`, with `PromptTemplate` and `TemplateValues`, and `ReReading`.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::sync::Arc;

use advisor_core::{
    AdvisorChain, AdvisorInfo, ChatRequest, ChunkStream, Error, Phase, Placement, Result, StreamAdvisor,
    Text, async_trait,
};

/// A text with places for values: `You are {name}.`
///
/// A name has letters, digits and `_`. `{{` and `}}` are braces. Values are inserted as they are: a value cannot add
/// further places.
///
/// # Example
/// ```
/// use common_advisors::{PromptTemplate, TemplateValues};
///
/// let template: PromptTemplate = "Answer {name} in {language}. Write {{}} for nothing.".parse()?;
/// let values = TemplateValues::default().with("name", "Ann").with("language", "French");
/// assert_eq!(template.render(&values)?, "Answer Ann in French. Write {} for nothing.");
/// # Ok::<(), advisor_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptTemplate {
    pieces: Vec<Piece>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    /// The place of the value of this name.
    Value(Text),
}

impl PromptTemplate {
    /// Returns the text with these values. Values without a place are not used.
    ///
    /// # Errors
    /// Of kind [`Configuration`](advisor_core::ErrorKind::Configuration) for a place without a value. The text names it.
    pub fn render(&self, values: &TemplateValues) -> Result<String> {
        let mut text = String::new();
        for piece in &self.pieces {
            text.push_str(match piece {
                Piece::Text(text) => text,
                Piece::Value(name) => values.0.get(name).ok_or_else(|| {
                    Error::configuration(format!("the template has no value for `{{{name}}}`; give it one"))
                })?,
            });
        }
        Ok(text)
    }
}

/// Reads a template. An error is of kind [`Configuration`](advisor_core::ErrorKind::Configuration): a brace without its
/// counterpart, or a name with other characters.
impl FromStr for PromptTemplate {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let (mut pieces, mut before, mut rest) = (Vec::new(), String::new(), text);
        while let Some(at) = rest.find(['{', '}']) {
            let (literal, braces) = rest.split_at(at);
            before.push_str(literal);
            if let Some(behind) = braces.strip_prefix("{{") {
                before.push('{');
                rest = behind;
            } else if let Some(behind) = braces.strip_prefix("}}") {
                before.push('}');
                rest = behind;
            } else {
                let (name, behind) = place(braces).ok_or_else(|| misplaced(braces))?;
                pieces.extend(nonempty(std::mem::take(&mut before)));
                pieces.push(Piece::Value(name.into()));
                rest = behind;
            }
        }
        before.push_str(rest);
        pieces.extend(nonempty(before));
        Ok(Self { pieces })
    }
}

/// Returns the name of a place, and the text behind it.
fn place(braces: &str) -> Option<(&str, &str)> {
    let (name, behind) = braces.strip_prefix('{')?.split_once('}')?;
    let fits = |letter: char| letter.is_alphanumeric() || letter == '_';
    (!name.is_empty() && name.chars().all(fits)).then_some((name, behind))
}

fn nonempty(text: String) -> Option<Piece> {
    (!text.is_empty()).then_some(Piece::Text(text))
}

fn misplaced(braces: &str) -> Error {
    let shown: String = braces.chars().take(20).collect();
    Error::configuration(format!(
        "the template has a brace that begins no name, at `{}`; write `{{{{` or `}}}}` for a brace itself",
        shown.escape_debug()
    ))
}

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
/// let values = TemplateValues::default().with("user", "Ann").with("language", "French");
/// client.prompt().user("Hello").extension(values).call().await?;
/// assert_eq!(model.prompts()[0].messages.iter().next().unwrap().text(), "You help Ann. Answer in French.");
/// # Ok(()) }
/// ```
#[must_use]
#[derive(Debug, Clone)]
pub struct SystemTemplate {
    template: PromptTemplate,
    values: TemplateValues,
}

/// Values for templates: of a [`PromptTemplate`], or as a turn extension for [`SystemTemplate`].
#[must_use]
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TemplateValues(BTreeMap<Text, Text>);

impl SystemTemplate {
    /// Creates an advisor without values.
    pub fn new(template: PromptTemplate) -> Self {
        Self { template, values: TemplateValues::default() }
    }

    /// Sets a value for all turns.
    pub fn with(self, name: impl Into<Text>, value: impl Into<Text>) -> Self {
        Self { values: self.values.with(name, value), ..self }
    }
}

impl TemplateValues {
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
            values.0.extend(given);
        }
        let text = self.template.render(&values)?;
        next.next_stream(request.with_system(text)).await
    }
}

/// Sends each question of the user twice, so that the model reads it again (Re2, <https://arxiv.org/abs/2309.06275>).
///
/// Memory keeps the question as the user wrote it. All user messages of the request are sent so, since a changed
/// beginning would cost the provider's cache.
///
/// Its phase is [`Phase::ModelCall`].
///
/// # Example
/// ```
/// use advisor_core::ChatClient;
/// use advisor_testkit::{Answer, ScriptedModel};
/// use common_advisors::ReReading;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> advisor_core::Result<()> {
/// let model = ScriptedModel::new([Answer::from_text("Seven.")]);
/// let client = ChatClient::builder(model.clone()).advisor(ReReading).build()?;
/// client.prompt().user("How many?").call().await?;
/// let sent = model.prompts()[0].messages.clone();
/// assert_eq!(sent.last().unwrap().text(), "How many?\nRead the question again: How many?");
/// # Ok(()) }
/// ```
#[must_use]
#[derive(Debug, Clone, Copy, Default)]
#[allow(clippy::exhaustive_structs, reason = "it has no settings")]
pub struct ReReading;

impl AdvisorInfo for ReReading {
    fn name(&self) -> &str {
        "re-reading"
    }

    fn placement(&self) -> Placement {
        Placement::new(Phase::ModelCall)
    }
}

#[async_trait]
impl StreamAdvisor for ReReading {
    async fn advise_stream(self: Arc<Self>, request: ChatRequest, next: AdvisorChain) -> Result<ChunkStream> {
        let twice = |text: &str| format!("{text}\nRead the question again: {text}");
        next.next_stream(request.map_user_text(twice)).await
    }
}

#[cfg(test)]
mod tests {
    use advisor_core::ErrorKind;

    use super::*;

    #[test]
    fn values_are_inserted_as_they_are() {
        let template: PromptTemplate = "{a}{b_2} {a}{{a}}".parse().unwrap();
        let values = TemplateValues::default().with("a", "{b_2}").with("b_2", "}}");
        assert_eq!(template.render(&values).unwrap(), "{b_2}}} {b_2}{a}");
        let empty: PromptTemplate = "".parse().unwrap();
        assert_eq!(empty.render(&values).unwrap(), "");
    }

    #[test]
    fn missing_values_and_stray_braces_are_named() {
        let template: PromptTemplate = "Hi {name}".parse().unwrap();
        let error = template.render(&TemplateValues::default().with("other", "Ann")).unwrap_err();
        assert!(error.to_string().contains("`{name}`"), "{error}");
        for text in ["{", "}", "a {} b", "{a b}", "{a", "{{}", "{ä-}"] {
            let error = text.parse::<PromptTemplate>().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Configuration, "{text}");
        }
    }
}
