use crate::aggregator::Sink;
use crate::aggregator::answer_bytes::{AnswerBytes, of_citation, of_media, of_opaque, of_provider_data};
use crate::aggregator::error::Result;
use crate::aggregator::open_call::OpenCall;
use crate::{
    AggregateError, AggregatorLimits, Block, BlockContent, BlockDelta, BlockHead, BlockId, BlockKind,
    CallHead, Chunk, Citation, Media, Opaque, ProviderData, Text,
};

/// A block while it streams.
#[derive(Debug)]
pub(crate) struct OpenBlock {
    id: BlockId,
    /// The provider's number of the block, if it numbers blocks.
    key: Option<i64>,
    kind: BlockKind,
    text: String,
    whole: Option<Whole>,
    data: Vec<ProviderData>,
    opened: bool,
    closed: Option<Block>,
}

/// Content that arrives in one piece.
#[derive(Debug, Clone)]
pub(crate) enum Whole {
    Media(Media),
    Citation(Citation),
    Opaque(Opaque),
}

impl OpenBlock {
    pub(crate) fn text(kind: BlockKind, key: Option<i64>) -> Self {
        Self {
            id: BlockId::new(0, 0),
            key,
            kind,
            text: String::new(),
            whole: None,
            data: Vec::new(),
            opened: false,
            closed: None,
        }
    }

    pub(crate) fn call() -> Self {
        Self::text(BlockKind::ToolCall, None)
    }

    pub(crate) fn whole(whole: Whole, key: Option<i64>) -> Self {
        let kind = match whole {
            Whole::Media(_) => BlockKind::Media,
            Whole::Citation(_) => BlockKind::Citation,
            Whole::Opaque(_) => BlockKind::Opaque,
        };
        Self { whole: Some(whole), ..Self::text(kind, key) }
    }

    pub(crate) fn set_id(&mut self, id: BlockId) {
        self.id = id;
    }

    pub(crate) fn index(&self) -> u32 {
        self.id.index
    }

    pub(crate) fn key(&self) -> Option<i64> {
        self.key
    }

    pub(crate) fn kind(&self) -> BlockKind {
        self.kind
    }

    #[inline]
    pub(crate) fn is_open(&self, kind: BlockKind) -> bool {
        self.kind == kind && self.closed.is_none()
    }

    pub(crate) fn is_opened(&self) -> bool {
        self.opened
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.is_some()
    }

    pub(crate) fn text_so_far(&self) -> &str {
        match self.closed.as_ref().map(Block::content) {
            Some(BlockContent::Text(text) | BlockContent::Reasoning(text) | BlockContent::Refusal(text)) => {
                text
            }
            _ => &self.text,
        }
    }

    pub(crate) fn open(&mut self, choice: u32, sink: &mut Sink<'_>) {
        self.open_with(choice, None, sink);
        if let Some(whole) = self.whole.clone() {
            self.show(whole.delta(), sink);
        }
    }

    pub(crate) fn open_call(&mut self, choice: u32, call: &OpenCall, sink: &mut Sink<'_>) {
        let name = call.name.clone().unwrap_or_else(|| crate::ToolCall::UNNAMED.into());
        self.open_with(choice, Some(CallHead::new(name, call.shown_id().cloned())), sink);
    }

    fn open_with(&mut self, choice: u32, call: Option<CallHead>, sink: &mut Sink<'_>) {
        if self.opened {
            return;
        }
        self.opened = true;
        let head = BlockHead { kind: self.kind, choice, call: call.map(Box::new) };
        sink.chunks.push_back(Chunk::Opened { block: self.id, head });
    }

    /// Appends a piece of the text. If it exceeds a limit, nothing changes.
    #[inline]
    pub(crate) fn extend(
        &mut self,
        text: &str,
        limits: &AggregatorLimits,
        bytes: &mut AnswerBytes,
    ) -> Result {
        let limit = limits.block_bytes;
        if self.text.len() + text.len() > limit {
            return Err(AggregateError::TooLarge { what: "bytes in one block", limit });
        }
        bytes.add(text.len())?;
        self.text.push_str(text);
        Ok(())
    }

    /// Returns the chunk of a piece of text or arguments.
    #[inline]
    pub(crate) fn piece(&self, text: Text) -> Chunk {
        let delta = match self.kind {
            BlockKind::Reasoning => BlockDelta::Reasoning(text),
            BlockKind::Refusal => BlockDelta::Refusal(text),
            BlockKind::ToolCall => BlockDelta::Arguments(text),
            _ => BlockDelta::Text(text),
        };
        Chunk::Delta { block: self.id, delta }
    }

    /// Adds data to be replayed with the block; it may arrive after the block has ended.
    pub(crate) fn push_data(&mut self, data: ProviderData, sink: &mut Sink<'_>) -> Result {
        let limit = sink.settings.limits.provider_data;
        if self.data.len() >= limit {
            return Err(AggregateError::TooLarge { what: "pieces of provider data on one block", limit });
        }
        sink.bytes.add(of_provider_data(&data))?;
        self.data.push(data);
        Ok(())
    }

    pub(crate) fn show(&self, delta: BlockDelta, sink: &mut Sink<'_>) {
        sink.chunks.push_back(Chunk::Delta { block: self.id, delta });
    }

    pub(crate) fn close(&mut self, sink: &mut Sink<'_>) {
        let text = std::mem::take(&mut self.text);
        let content = match (self.whole.take(), self.kind) {
            (Some(whole), _) => whole.content(),
            (None, BlockKind::Reasoning) => BlockContent::Reasoning(text),
            (None, BlockKind::Refusal) => BlockContent::Refusal(text),
            (None, _) => BlockContent::Text(text),
        };
        self.close_with(content, sink);
    }

    pub(crate) fn close_with(&mut self, content: BlockContent, sink: &mut Sink<'_>) {
        if self.closed.is_some() {
            return;
        }
        let content = Block::with_data(content, self.data.clone());
        self.closed = Some(content.clone());
        sink.chunks.push_back(Chunk::Closed { block: self.id, content });
    }

    /// Returns the current block; `call` returns the content of a call that is still open.
    pub(crate) fn to_block(&self, call: impl FnOnce() -> Option<BlockContent>) -> Block {
        let content = match (&self.closed, self.kind) {
            // Data that arrived after the end is missing on the closing chunk.
            (Some(block), _) if block.provider_data().len() == self.data.len() => return block.clone(),
            (Some(block), _) => block.content().clone(),
            (None, BlockKind::ToolCall) => call().unwrap_or_else(|| BlockContent::Text(String::new())),
            (None, BlockKind::Reasoning) => BlockContent::Reasoning(self.text.clone()),
            (None, BlockKind::Refusal) => BlockContent::Refusal(self.text.clone()),
            (None, _) => {
                self.whole.clone().map_or_else(|| BlockContent::Text(self.text.clone()), Whole::content)
            }
        };
        Block::with_data(content, self.data.clone())
    }
}

impl Whole {
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Media(media) => of_media(media),
            Self::Citation(citation) => of_citation(citation),
            Self::Opaque(opaque) => of_opaque(opaque),
        }
    }

    fn delta(self) -> BlockDelta {
        match self {
            Self::Media(media) => BlockDelta::Media(Box::new(media)),
            Self::Citation(citation) => BlockDelta::Citation(Box::new(citation)),
            Self::Opaque(opaque) => BlockDelta::Opaque(Box::new(opaque)),
        }
    }

    fn content(self) -> BlockContent {
        match self {
            Self::Media(media) => BlockContent::Media(media),
            Self::Citation(citation) => BlockContent::Citation(citation),
            Self::Opaque(opaque) => BlockContent::Opaque(opaque),
        }
    }
}
