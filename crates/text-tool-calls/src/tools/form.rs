//! `ToolForm`, `BodyText` and `BodyMarkers`: the short form of a tool, an element whose text is one argument.

use advisor_core::Text;

/// The short form of a tool: an element of the tool's name whose text is one argument.
///
/// In XML, `<write_file path="a.txt">text</write_file>` is a call of `write_file`. The attributes of the element
/// are the other arguments. In the sentinel syntax, the header has the other arguments.
///
/// A form is given to the advisor ([`TextToolCalls::with_form`](crate::TextToolCalls::with_form)), and again to the tools
/// of a segment handler ([`TextTools::with_form`](crate::TextTools::with_form)). A `BlockPolicy` holds back a call with
/// its content: limit it to other tools (`BlockPolicy::with_tools`) to see the content while it is generated.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolForm {
    /// The name of the tool and of the element.
    pub tool: Text,
    /// The argument that is the text of the element.
    pub body: Text,
    /// The reading of that text.
    pub body_text: BodyText,
    /// Arguments without which the element is no call, and for which the start of a segment waits.
    pub required: Vec<Text>,
    /// Other spellings of arguments: the spelling, and the name of the argument.
    pub aliases: Vec<(Text, Text)>,
    /// Arguments that are left out.
    pub ignored: Vec<Text>,
}

/// The reading of the text of a [`ToolForm`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum BodyText {
    /// As a value: entities are decoded once, and white space around it is left out.
    Value,
    /// Unchanged, without one line break at its start. If it is between these markers, they are left out, and it
    /// may contain closing tags.
    Verbatim(Option<BodyMarkers>),
}

/// The markers around the text of a [`ToolForm`]. Neither is empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BodyMarkers {
    start: Text,
    end: Text,
}

impl BodyMarkers {
    /// Creates a pair of markers. Returns `None` if one is empty.
    pub fn new(start: impl Into<Text>, end: impl Into<Text>) -> Option<Self> {
        let (start, end) = (start.into(), end.into());
        (!start.is_empty() && !end.is_empty()).then_some(Self { start, end })
    }

    /// Returns the marker before the text, such as `__START_CONTENT__`.
    #[must_use]
    pub fn start(&self) -> &str {
        &self.start
    }

    /// Returns the marker after the text, such as `__END_CONTENT__`.
    #[must_use]
    pub fn end(&self) -> &str {
        &self.end
    }
}

impl ToolForm {
    /// Creates a form of the tool `tool` whose text is the argument `body`, read as a value.
    pub fn new(tool: impl Into<Text>, body: impl Into<Text>) -> Self {
        Self {
            tool: tool.into(),
            body: body.into(),
            body_text: BodyText::Value,
            required: Vec::new(),
            aliases: Vec::new(),
            ignored: Vec::new(),
        }
    }

    /// Reads the text unchanged, and leaves out these markers around it. If one is empty, the text has no markers.
    #[must_use]
    pub fn with_verbatim_body(self, start: impl Into<Text>, end: impl Into<Text>) -> Self {
        Self { body_text: BodyText::Verbatim(BodyMarkers::new(start, end)), ..self }
    }

    /// Adds an argument without which the element is no call.
    #[must_use]
    pub fn with_required(mut self, argument: impl Into<Text>) -> Self {
        self.required.push(argument.into());
        self
    }

    /// Adds another spelling of an argument.
    #[must_use]
    pub fn with_alias(mut self, spelling: impl Into<Text>, argument: impl Into<Text>) -> Self {
        self.aliases.push((spelling.into(), argument.into()));
        self
    }

    /// Leaves out an argument.
    #[must_use]
    pub fn with_ignored(mut self, argument: impl Into<Text>) -> Self {
        self.ignored.push(argument.into());
        self
    }

    /// Returns the forms of the tools `write_file`, `edit_file` and `run_bash`.
    #[must_use]
    pub fn standard() -> [Self; 3] {
        [
            Self::new("write_file", "content")
                .with_verbatim_body("__START_CONTENT__", "__END_CONTENT__")
                .with_required("path"),
            Self::new("edit_file", "patch")
                .with_verbatim_body("__START_PATCH__", "__END_PATCH__")
                .with_required("path"),
            Self::new("run_bash", "command")
                .with_alias("timeoutSeconds", "timeout_seconds")
                .with_alias("cmd", "command")
                .with_ignored("background"),
        ]
    }

    /// Returns the argument of this spelling, or `None` if it is left out.
    pub(crate) fn argument<'a>(&'a self, spelling: &'a str) -> Option<&'a str> {
        if self.ignored.iter().any(|ignored| ignored == spelling) {
            return None;
        }
        let alias = self.aliases.iter().find(|(alias, _)| alias == spelling);
        Some(alias.map_or(spelling, |(_, argument)| argument))
    }

    /// Returns the value of the text's argument among these members. Its own name precedes other spellings.
    pub(crate) fn body_among<'a>(&self, members: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
        let mut found = None;
        for (name, value) in members {
            if self.body == *name {
                return value.to_owned();
            }
            if self.argument(name) == Some(self.body.as_str()) {
                found.get_or_insert(value);
            }
        }
        found.unwrap_or_default().to_owned()
    }
}
