pub(crate) mod diagnostics;
pub(crate) mod finish;
pub(crate) mod usage;

use std::sync::Arc;

use crate::{Block, BlockId, Diagnostics, Finish, FinishReason, Message, MessageList, Text, ToolCall, Usage};

/// The finished aggregate of one model answer. Made once, shared by all, cheap to clone.
#[derive(Debug, Clone, PartialEq)]
pub struct ChatResponse(Arc<Inner>);

#[derive(Debug, Clone, PartialEq)]
struct Inner {
    round: u32,
    choices: Vec<Choice>,
    usage: Option<Usage>,
    response_id: Option<Text>,
    model: Option<Text>,
    diagnostics: Diagnostics,
    transcript: MessageList,
}

/// One of several parallel answers.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Choice {
    /// Its number, as asked for.
    pub number: u32,
    /// The assistant message.
    pub message: Message,
    /// The ids of the message's blocks, one for one.
    pub block_ids: Vec<BlockId>,
    /// Why it ended.
    pub finish: Finish,
}

impl Choice {
    /// A choice whose blocks stand at the given ids.
    #[must_use]
    pub fn new(number: u32, message: Message, block_ids: Vec<BlockId>, finish: Finish) -> Self {
        Self { number, message, block_ids, finish }
    }
}

impl ChatResponse {
    /// A response of one choice that did not come from a model; its blocks are numbered from 0.
    ///
    /// `round` is this answer's own number within the turn; [`ChatResponse::in_round`] gives it another one.
    #[must_use]
    pub fn new(round: u32, message: Message, finish: impl Into<Finish>) -> Self {
        let block_ids =
            (0_u32..).take(message.blocks().len()).map(|index| BlockId::new(round, index)).collect();
        Self::from_choices(round, vec![Choice::new(0, message, block_ids, finish.into())])
    }

    /// A response of several choices; of none, it is an empty answer.
    #[must_use]
    pub fn from_choices(round: u32, mut choices: Vec<Choice>) -> Self {
        if choices.is_empty() {
            let nothing = Message::assistant_blocks(Vec::new());
            choices.push(Choice::new(0, nothing, Vec::new(), FinishReason::Empty.into()));
        }
        Self(Arc::new(Inner {
            round,
            choices,
            usage: None,
            response_id: None,
            model: None,
            diagnostics: Diagnostics::default(),
            transcript: MessageList::new(),
        }))
    }

    /// The round this is the answer of.
    #[must_use]
    pub fn round(&self) -> u32 {
        self.0.round
    }

    /// All parallel answers, at least one.
    #[must_use]
    pub fn choices(&self) -> &[Choice] {
        &self.0.choices
    }

    #[allow(clippy::indexing_slicing, reason = "every constructor makes at least one choice")]
    fn first(&self) -> &Choice {
        &self.0.choices[0]
    }

    /// The assistant message of the first choice.
    #[must_use]
    pub fn message(&self) -> &Message {
        &self.first().message
    }

    /// The text of the first choice, its text blocks one right after the other; see [`Message::text`].
    #[must_use]
    pub fn text(&self) -> String {
        self.message().text()
    }

    /// Why the first choice ended.
    #[must_use]
    pub fn finish(&self) -> &Finish {
        &self.first().finish
    }

    /// The blocks of the first choice with their ids, in order.
    pub fn blocks(&self) -> impl Iterator<Item = (BlockId, &Block)> {
        let choice = self.first();
        choice.block_ids.iter().copied().zip(choice.message.blocks())
    }

    /// The tool calls of the first choice with the ids of their blocks, in order.
    pub fn tool_calls(&self) -> impl Iterator<Item = (BlockId, &ToolCall)> {
        self.blocks().filter_map(|(id, block)| Some((id, block.as_tool_call()?)))
    }

    /// What was used: by one round, or on the response that ends a turn by all of its rounds.
    #[must_use]
    pub fn usage(&self) -> Option<&Usage> {
        self.0.usage.as_ref()
    }

    /// The provider's id of the answer.
    #[must_use]
    pub fn response_id(&self) -> Option<&str> {
        self.0.response_id.as_deref()
    }

    /// The model that answered, as the provider says.
    #[must_use]
    pub fn model(&self) -> Option<&str> {
        self.0.model.as_deref()
    }

    /// How the provider's fragments had to be interpreted.
    #[must_use]
    pub fn diagnostics(&self) -> &Diagnostics {
        &self.0.diagnostics
    }

    /// The messages of the turn, from the user's to the final answer. Only on the response that ends a turn.
    #[must_use]
    pub fn transcript(&self) -> &MessageList {
        &self.0.transcript
    }

    /// The same response with these token counts.
    #[must_use]
    pub fn with_usage(self, usage: Option<Usage>) -> Self {
        self.changed(|inner| inner.usage = usage)
    }

    /// The same response with the turn's messages.
    #[must_use]
    pub fn with_transcript(self, transcript: MessageList) -> Self {
        self.changed(|inner| inner.transcript = transcript)
    }

    /// The same response with other choices, at least one.
    #[must_use]
    pub fn with_choices(self, choices: Vec<Choice>) -> Self {
        if choices.is_empty() { self } else { self.changed(|inner| inner.choices = choices) }
    }

    /// The same response with another reason for the end of the first choice.
    #[must_use]
    pub fn with_finish(self, finish: impl Into<Finish>) -> Self {
        let finish = finish.into();
        self.changed(|inner| {
            if let Some(choice) = inner.choices.first_mut() {
                choice.finish = finish;
            }
        })
    }

    /// The same response as the answer of another round, such as one of an earlier turn that is given again.
    ///
    /// Its blocks are numbered from 0, over all choices and in the order of their ids so far. All else stays,
    /// the token counts and the transcript, too.
    #[must_use]
    pub fn in_round(self, round: u32) -> Self {
        self.changed(|inner| {
            inner.round = round;
            let choices = inner.choices.iter_mut();
            let mut block_ids: Vec<_> = choices.flat_map(|choice| &mut choice.block_ids).collect();
            block_ids.sort();
            for (index, id) in (0_u32..).zip(block_ids) {
                *id = BlockId::new(round, index);
            }
        })
    }

    pub(crate) fn with_origin(
        self,
        response_id: Option<Text>,
        model: Option<Text>,
        diagnostics: Diagnostics,
    ) -> Self {
        self.changed(|inner| {
            inner.response_id = response_id;
            inner.model = model;
            inner.diagnostics = diagnostics;
        })
    }

    fn changed(mut self, change: impl FnOnce(&mut Inner)) -> Self {
        change(Arc::make_mut(&mut self.0));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn law_s3_in_another_round_blocks_have_ids_of_their_own_in_the_same_order() {
        let choice = |number, texts: &[&str], ids: &[(u32, u32)]| {
            let blocks = texts.iter().copied().map(Block::text).collect();
            let ids = ids.iter().map(|(round, index)| BlockId::new(*round, *index)).collect();
            Choice::new(number, Message::assistant_blocks(blocks), ids, FinishReason::Stop.into())
        };
        // Choices whose blocks came by turns, with gaps, and one block taken over from another round.
        let choices =
            vec![choice(0, &["a", "c"], &[(1, 0), (1, 4)]), choice(1, &["b", "d"], &[(1, 2), (2, 0)])];
        let transcript = MessageList::from(vec![Message::user("?"), Message::assistant("ac")]);
        let response = ChatResponse::from_choices(1, choices)
            .with_usage(Some(Usage::new(3, 4)))
            .with_transcript(transcript.clone());
        let moved = response.clone().in_round(7);
        assert_eq!((response.round(), moved.round()), (1, 7));
        let ids: Vec<_> = moved.choices().iter().flat_map(|choice| &choice.block_ids).copied().collect();
        assert_eq!(ids, [0, 2, 1, 3].map(|index| BlockId::new(7, index)));
        for (moved, before) in moved.choices().iter().zip(response.choices()) {
            assert!(moved.message.is_same(&before.message));
            assert_eq!((moved.number, &moved.finish), (before.number, &before.finish));
        }
        assert_eq!((moved.usage(), moved.transcript()), (response.usage(), &transcript));
    }
}
