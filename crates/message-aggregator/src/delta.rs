//! `Delta`, `DeltaKind`, `ToolCallDelta` and `Origin`: provider-neutral input fragments and their constructors.

use crate::{Citation, Finish, Media, Opaque, ProviderData, Text, Usage};

/// One provider-neutral fragment as a provider sent it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Delta {
    /// The provider's number of the block, if its protocol numbers blocks and ends them explicitly. A call has the
    /// number of its [`ToolCallDelta::index`]. Without a number blocks are sequential: a text ends when another
    /// block begins.
    pub block: Option<i64>,
    /// The fragment.
    pub kind: DeltaKind,
}

/// Content of a [`Delta`]. Rare content is boxed, so that a piece of text is cheap to move.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum DeltaKind {
    /// A piece of text. Empty text is ignored.
    Text(Text),
    /// A piece of reasoning. Empty reasoning is ignored.
    Reasoning(Text),
    /// A piece of a refusal. Empty text is ignored.
    Refusal(Text),
    /// A complete media item, as a separate block.
    Media(Box<MediaDelta>),
    /// A complete citation, as a separate block. [`Delta::block`] gives the number of the text that it
    /// supports. The current text goes on after it.
    Citation(Box<Citation>),
    /// Content that only the provider understands, as a separate block.
    Opaque(Box<Opaque>),
    /// All tool-call fragments of one wire event, in the order in which the event lists them.
    ToolCalls(Vec<ToolCallDelta>),
    /// Further characters of one call's arguments, the only fragment of their event. Equals
    /// [`ToolCalls`](Self::ToolCalls) without its allocations. Nearly all events of a call have this form.
    Arguments {
        /// The index of the call, as [`ToolCallDelta::index`].
        index: Option<i64>,
        /// The characters.
        text: Text,
    },
    /// Provider data of the reasoning block with the number, or else of the last one, even if it has ended. It
    /// opens that block if none exists yet.
    ReasoningData(Box<ProviderData>),
    /// Provider data of the block with the number, of any kind, even if it has ended. Without a number it belongs
    /// to the current block: the one that opened or took text last, unless it has ended.
    ///
    /// Data that arrives after its block has ended is only in the response: the closed block was emitted without it.
    ///
    /// If there is no such block, the data opens a text block. Between two [`BlockEnd`](Self::BlockEnd)s that block
    /// stays without text, so that data of an empty part is sent back on a separate part.
    BlockData(Box<ProviderData>),
    /// The provider's end of the block with the number, or else of the current block.
    BlockEnd,
    /// Token counts of the answer so far. Within a round the largest count of each kind counts.
    Usage(Box<Usage>),
    /// The provider's finish reason. It ends nothing by itself: calls and usage may follow it.
    Finish(Box<Finish>),
    /// The origin of the answer.
    Origin(Box<Origin>),
    /// The protocol's own end marker, such as `[DONE]`.
    Done,
}

/// A complete media item, and the data that belongs to it.
#[derive(Debug, Clone, PartialEq)]
#[allow(clippy::exhaustive_structs, reason = "an item and what belongs to it")]
pub struct MediaDelta {
    /// The item.
    pub media: Media,
    /// Data to be replayed with the item. Its closed block has it.
    pub provider_data: Option<ProviderData>,
}

impl From<Media> for MediaDelta {
    fn from(media: Media) -> Self {
        Self { media, provider_data: None }
    }
}

/// The provider's id of an answer and the model that gave it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "two words of the provider")]
pub struct Origin {
    /// The provider's id of the answer.
    pub response_id: Option<Text>,
    /// The model that answered.
    pub model: Option<Text>,
}

/// A fragment of a tool call. All fields are optional, because each is missing on some servers.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct ToolCallDelta {
    /// The provider's number of the call: only a hint, which may repeat, skip numbers or be negative.
    pub index: Option<i64>,
    /// The provider's id of the call. Empty counts as absent.
    pub call_id: Option<Text>,
    /// The name of the tool. Empty counts as absent.
    pub name: Option<Text>,
    /// The next characters of the arguments.
    pub arguments_delta: Option<Text>,
    /// Data to be replayed with the call.
    pub provider_data: Option<ProviderData>,
}

impl From<DeltaKind> for Delta {
    #[inline]
    fn from(kind: DeltaKind) -> Self {
        Self { block: None, kind }
    }
}

impl Delta {
    /// Creates a piece of text.
    pub fn text(text: impl Into<Text>) -> Self {
        DeltaKind::Text(text.into()).into()
    }

    /// Creates a piece of reasoning.
    pub fn reasoning(text: impl Into<Text>) -> Self {
        DeltaKind::Reasoning(text.into()).into()
    }

    /// Creates a complete media item.
    pub fn media(media: impl Into<MediaDelta>) -> Self {
        DeltaKind::Media(Box::new(media.into())).into()
    }

    /// Creates a delta of one tool-call fragment, alone in its event.
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

    /// Creates a finish reason.
    pub fn finish(finish: impl Into<Finish>) -> Self {
        DeltaKind::Finish(Box::new(finish.into())).into()
    }

    /// Creates token counts.
    #[must_use]
    pub fn usage(usage: Usage) -> Self {
        DeltaKind::Usage(Box::new(usage)).into()
    }

    /// Creates an origin from the id of the answer, its model, or both.
    #[must_use]
    pub fn origin(response_id: Option<Text>, model: Option<Text>) -> Self {
        DeltaKind::Origin(Box::new(Origin { response_id, model })).into()
    }

    /// Creates the protocol's end marker.
    #[must_use]
    pub fn done() -> Self {
        DeltaKind::Done.into()
    }

    /// Sets the provider's number of the block.
    #[must_use]
    pub fn with_block(self, block: i64) -> Self {
        Self { block: Some(block), ..self }
    }
}

impl ToolCallDelta {
    /// Creates the first fragment of a call.
    pub fn start(index: i64, call_id: impl Into<Text>, name: impl Into<Text>) -> Self {
        Self { index: Some(index), call_id: Some(call_id.into()), name: Some(name.into()), ..Self::default() }
    }

    /// Creates a fragment of arguments for the call with this number.
    pub fn arguments(index: i64, arguments: impl Into<Text>) -> Self {
        Self { index: Some(index), arguments_delta: Some(arguments.into()), ..Self::default() }
    }

    /// Sets the arguments.
    #[must_use]
    pub fn with_arguments(self, arguments: impl Into<Text>) -> Self {
        Self { arguments_delta: Some(arguments.into()), ..self }
    }

    /// Checks whether the fragment has at most an index.
    pub(crate) fn is_empty(&self) -> bool {
        self.call_id().is_none() && self.says_only_its_id()
    }

    /// Checks whether the fragment has at most an index and an id.
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
