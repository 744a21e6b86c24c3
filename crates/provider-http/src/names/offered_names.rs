//! The tool names in a request, beside those in its messages.

use advisor_core::{ChatRequest, Text, ToolChoice};

use super::tool_names::{NameRule, ToolNames};

/// The tool names in a request, beside those in its messages.
///
/// ```
/// use advisor_core::{ChatOptions, ChatRequest, Message};
/// use provider_http::names::{NameRule, OfferedNames};
/// use serde_json::json;
///
/// let tools = json!([{"name": "docs.search"}]);
/// let request = ChatRequest::new(Message::user("Hi")).with_options(ChatOptions::new().with_extra("tools", tools));
/// let own = request.options.extra["tools"].as_array().into_iter().flatten();
/// let offered = OfferedNames::new(&request, NameRule::UP_TO_64, own.filter_map(|tool| tool["name"].as_str()));
/// assert!(offered.fit());
/// let names = offered.complete(offered.names([].iter()));
/// assert_eq!(names.meant_by("docs.search").as_deref(), Some("docs.search"));
/// ```
#[derive(Debug, Clone)]
pub struct OfferedNames<'a> {
    rule: NameRule,
    /// The names of the tools that may be called, and the one in the tool choice.
    offered: Vec<&'a Text>,
    /// The names of the tools that the caller wrote into the body.
    verbatim: Vec<&'a str>,
}

impl<'a> OfferedNames<'a> {
    /// Collects the names of a request. `verbatim` are those of the tools that the caller wrote into the body, which
    /// are sent unchanged.
    #[must_use]
    pub fn new(request: &'a ChatRequest, rule: NameRule, verbatim: impl Iterator<Item = &'a str>) -> Self {
        let chosen = match &request.options.tool_choice {
            Some(ToolChoice::Tool(name)) => Some(name),
            _ => None,
        };
        let offered = request.tools.definitions().map(|tool| &tool.name).chain(chosen).collect();
        Self { rule, offered, verbatim: verbatim.collect() }
    }

    /// Checks whether all offered names can be sent unchanged.
    #[must_use]
    pub fn fit(&self) -> bool {
        self.offered.iter().all(|name| self.rule.accepts(name))
    }

    /// Returns the wire names of a request whose messages contain the names `in_messages`.
    pub fn names<'m>(&self, in_messages: impl Iterator<Item = &'m Text>) -> ToolNames
    where
        'a: 'm,
    {
        ToolNames::new(self.rule, &self.verbatim, self.offered.iter().copied().chain(in_messages))
    }

    /// Completes the names of a request with the offered ones, which its answer may use.
    #[must_use]
    pub fn complete(&self, names: ToolNames) -> ToolNames {
        let verbatim: Vec<Text> = self.verbatim.iter().map(|name| Text::from(*name)).collect();
        names.with_offered(self.offered.iter().copied().chain(&verbatim))
    }
}
