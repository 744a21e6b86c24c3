use crate::{Citation, Finish, Media, Opaque, ProviderData, Text, Usage};

/// One provider-neutral fragment as a provider sent it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Delta {
    /// Which of several parallel answers this belongs to; 0 where only one was asked for.
    pub choice: u32,
    /// The provider's own number of the block, where its protocol numbers blocks and ends them explicitly.
    /// Absent, blocks are sequential: one ends when a block of another kind begins.
    pub block: Option<i64>,
    /// The fragment.
    pub kind: DeltaKind,
}

/// What a [`Delta`] carries. What is rare is boxed, so that a piece of text is moved as few bytes.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum DeltaKind {
    /// Some text. Empty text is nothing.
    Text(Text),
    /// Some reasoning. Empty reasoning is nothing.
    Reasoning(Text),
    /// Some words of refusal. Empty ones are nothing.
    Refusal(Text),
    /// Whole media.
    Media(Box<Media>),
    /// A whole citation.
    Citation(Box<Citation>),
    /// Content only the provider understands, as a block of its own.
    Opaque(Box<Opaque>),
    /// All tool-call fragments of one wire event, in the order in which the event lists them.
    ToolCalls(Vec<ToolCallDelta>),
    /// The next characters of one call's arguments and nothing else of any call in the event: a [`ToolCalls`](Self::ToolCalls)
    /// without its allocations, as nearly all events of a call are.
    Arguments {
        /// As [`ToolCallDelta::index`].
        index: Option<i64>,
        /// The characters.
        text: Text,
    },
    /// Data that rides on the reasoning block, which it opens if there is none yet.
    ReasoningData(Box<ProviderData>),
    /// The provider ended the block of [`Delta::block`].
    BlockEnd,
    /// Token counts; within a round the last value wins.
    Usage(Box<Usage>),
    /// The provider's reason for ending. It ends nothing by itself: calls and usage may follow it.
    Finish(Box<Finish>),
    /// Where the answer comes from.
    Origin(Box<Origin>),
    /// The protocol's own end marker, such as `[DONE]`.
    Done,
}

/// The provider's id of an answer and the model that gave it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Origin {
    /// The provider's id of the answer.
    pub response_id: Option<Text>,
    /// The model that answered.
    pub model: Option<Text>,
}

impl Origin {
    /// What is known of an answer's origin.
    #[must_use]
    pub fn new(response_id: Option<Text>, model: Option<Text>) -> Self {
        Self { response_id, model }
    }
}

/// A fragment of a tool call. Everything is optional, because somewhere every part is missing.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct ToolCallDelta {
    /// The provider's number of the call: a hint, neither unique nor dense nor never negative.
    pub index: Option<i64>,
    /// The provider's id of the call. Empty counts as absent.
    pub call_id: Option<Text>,
    /// The tool. Empty counts as absent.
    pub name: Option<Text>,
    /// The next characters of the arguments.
    pub arguments_delta: Option<Text>,
    /// Data to be replayed with the call.
    pub provider_data: Option<ProviderData>,
}

impl From<DeltaKind> for Delta {
    #[inline]
    fn from(kind: DeltaKind) -> Self {
        Self { choice: 0, block: None, kind }
    }
}

impl Delta {
    /// Some text.
    pub fn text(text: impl Into<Text>) -> Self {
        DeltaKind::Text(text.into()).into()
    }

    /// Some reasoning.
    pub fn reasoning(text: impl Into<Text>) -> Self {
        DeltaKind::Reasoning(text.into()).into()
    }

    /// One fragment of a tool call, alone in its event.
    #[must_use]
    pub fn tool_call(fragment: ToolCallDelta) -> Self {
        match fragment {
            ToolCallDelta {
                index,
                call_id: None,
                name: None,
                arguments_delta: Some(text),
                provider_data: None,
            } => DeltaKind::Arguments { index, text }.into(),
            fragment => DeltaKind::ToolCalls(vec![fragment]).into(),
        }
    }

    /// The reason for ending.
    pub fn finish(finish: impl Into<Finish>) -> Self {
        DeltaKind::Finish(Box::new(finish.into())).into()
    }

    /// Token counts.
    #[must_use]
    pub fn usage(usage: Usage) -> Self {
        DeltaKind::Usage(Box::new(usage)).into()
    }

    /// The id of the answer, the model that gave it, or both.
    #[must_use]
    pub fn origin(response_id: Option<Text>, model: Option<Text>) -> Self {
        DeltaKind::Origin(Box::new(Origin::new(response_id, model))).into()
    }

    /// The protocol's end marker.
    #[must_use]
    pub fn done() -> Self {
        DeltaKind::Done.into()
    }

    /// The same fragment as part of another of several parallel answers.
    #[must_use]
    #[inline]
    pub fn in_choice(self, choice: u32) -> Self {
        Self { choice, ..self }
    }

    /// The same fragment in the block that the provider numbers so.
    #[must_use]
    pub fn in_block(self, block: i64) -> Self {
        Self { block: Some(block), ..self }
    }
}

impl ToolCallDelta {
    /// The fragment that begins a call.
    pub fn start(index: i64, call_id: impl Into<Text>, name: impl Into<Text>) -> Self {
        Self { index: Some(index), call_id: Some(call_id.into()), name: Some(name.into()), ..Self::default() }
    }

    /// A fragment of arguments for the call with this number.
    pub fn arguments(index: i64, arguments: impl Into<Text>) -> Self {
        Self { index: Some(index), arguments_delta: Some(arguments.into()), ..Self::default() }
    }

    /// The same fragment with these arguments.
    #[must_use]
    pub fn with_arguments(self, arguments: impl Into<Text>) -> Self {
        Self { arguments_delta: Some(arguments.into()), ..self }
    }

    /// Whether the fragment has a place at most.
    pub(crate) fn is_empty(&self) -> bool {
        self.call_id().is_none() && self.says_only_its_id()
    }

    /// Whether the fragment has a place and an id at most.
    pub(crate) fn says_only_its_id(&self) -> bool {
        self.name().is_none() && self.arguments_delta().is_none() && self.provider_data.is_none()
    }

    pub(crate) fn call_id(&self) -> Option<&Text> {
        self.call_id.as_ref().filter(|id| !id.is_empty())
    }

    pub(crate) fn name(&self) -> Option<&Text> {
        self.name.as_ref().filter(|name| !name.is_empty())
    }

    pub(crate) fn arguments_delta(&self) -> Option<&Text> {
        self.arguments_delta.as_ref().filter(|arguments| !arguments.is_empty())
    }
}
