//! `TextStream`: only the text of a turn.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures::stream::Stream;
use message_aggregator::{BlockDelta, Chunk, Text};

use crate::{Error, ErrorKind, Result, TurnStream};

/// The text of a turn as a stream, without other chunks.
struct TextStream {
    /// `None` when the stream has ended.
    turn: Option<TurnStream>,
    /// The round of the last emitted text.
    round: Option<u32>,
    /// A text to emit after the blank line before it.
    next: Option<Text>,
}

impl TurnStream {
    /// Returns the text of the turn as a stream, without its other chunks.
    ///
    /// The text of a refusal is part of it. A refusal without a text is only in the finish reason. A blank line separates
    /// the texts of two rounds. The stream ends when the turn has completed; by then all work in the chain has finished.
    ///
    /// # Cancellation
    /// Dropping it drops the turn.
    ///
    /// # Errors
    /// Those of the turn. An attempt may be restarted after its text was emitted, if the caller allowed it. The text
    /// cannot be taken back here: the stream ends with an error of kind [`Configuration`](ErrorKind::Configuration),
    /// and the text of that attempt is not remembered. Read the chunks of such a turn instead.
    ///
    /// # Example
    /// ```
    /// use advisor_core::{ChatClient, ChatModel, ChatRequest, ChatResponse, ChunkStream, FinishReason, Message, Result, async_trait};
    /// use futures::TryStreamExt;
    ///
    /// struct Yes;
    /// #[async_trait]
    /// impl ChatModel for Yes {
    ///     async fn stream(&self, request: ChatRequest) -> Result<ChunkStream> {
    ///         Ok(ChunkStream::answer(ChatResponse::new(request.round, Message::assistant("Yes."), FinishReason::Stop)))
    ///     }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let client = ChatClient::builder(Yes).build()?;
    /// let mut text = client.prompt().user("Is it?").stream().text();
    /// while let Some(piece) = text.try_next().await? {
    ///     print!("{piece}");
    /// }
    /// # Ok(()) }
    /// ```
    pub fn text(self) -> impl Stream<Item = Result<Text>> + Send + Unpin {
        TextStream { turn: Some(self), round: None, next: None }
    }
}

impl Stream for TextStream {
    type Item = Result<Text>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        if let Some(text) = this.next.take() {
            return Poll::Ready(Some(Ok(text)));
        }
        loop {
            let Some(turn) = &mut this.turn else { return Poll::Ready(None) };
            match ready!(Pin::new(turn).poll_next(cx)) {
                Some(Ok(Chunk::Delta {
                    block,
                    delta: BlockDelta::Text(text) | BlockDelta::Refusal(text),
                })) => {
                    let new_round = this.round.replace(block.round).is_some_and(|round| round != block.round);
                    let text = if new_round {
                        this.next = Some(text);
                        Text::from("\n\n")
                    } else {
                        text
                    };
                    return Poll::Ready(Some(Ok(text)));
                }
                Some(Ok(Chunk::AttemptRestarted { round })) if this.round == Some(round) => {
                    this.turn = None;
                    return Poll::Ready(Some(Err(restarted())));
                }
                Some(Ok(_)) => {}
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => {
                    this.turn = None;
                    return Poll::Ready(None);
                }
            }
        }
    }
}

fn restarted() -> Error {
    Error::new(
        ErrorKind::Configuration,
        "an attempt was restarted after its text had been emitted; read the chunks of the turn, which mark void text",
    )
    .mark_emitted()
}
