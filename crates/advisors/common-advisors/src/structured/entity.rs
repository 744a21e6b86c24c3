//! `PromptExt::entity` and `Entity<T>`: a prompt whose answer is a value of type `T`. `EntityStream` and `Partial`: its
//! partial values while the answer streams.

use std::fmt;
use std::future::IntoFuture;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use advisor_core::{BlockDelta, ChatResponse, Chunk, Error, ErrorKind, Prompt, Result, TurnStream};
use futures::FutureExt;
use futures::future::BoxFuture;
use futures::stream::{FusedStream, Stream};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::structured::advisor::ended_without_value;
use crate::structured::json_text::first_object;
use crate::structured::partial_json::partial_json;
use crate::structured::{OutputFormat, StructuredOutput};

/// Extension of `Prompt` that asks for typed values.
pub trait PromptExt {
    /// Asks for a value of type `T` instead of a text: await the result, or [`stream`](Entity::stream) it.
    ///
    /// Doc comments of `T` and its fields are descriptions for the model. The value can have any shape, such as a
    /// list or an enum.
    fn entity<T: DeserializeOwned + JsonSchema + Send + 'static>(self) -> Entity<T>;
}

impl PromptExt for Prompt {
    fn entity<T: DeserializeOwned + JsonSchema + Send + 'static>(self) -> Entity<T> {
        let output = StructuredOutput::new(OutputFormat::for_type::<T>());
        Entity { prompt: self, output, value: PhantomData }
    }
}

/// A turn whose answer is a value of type `T`, created by [`PromptExt::entity`]. Nothing happens before it is
/// awaited or streamed.
///
/// # Ordering
/// The value is available when the turn has completed. Its answer is stored as the model wrote it.
///
/// # Cancellation
/// Dropping the future or the stream drops the turn.
///
/// # Errors
/// Those of the turn; see [`StructuredOutput`].
#[derive(Debug)]
#[must_use = "an entity does nothing until it is awaited or streamed"]
pub struct Entity<T> {
    prompt: Prompt,
    output: StructuredOutput,
    value: PhantomData<fn() -> T>,
}

impl<T: DeserializeOwned + Send + 'static> Entity<T> {
    /// Sets the maximum number of requests, the first included. Default: 3; 0 counts as 1.
    pub fn with_attempts(self, attempts: u32) -> Self {
        Self { output: StructuredOutput { attempts, ..self.output }, ..self }
    }

    /// Reads the turn to its end and returns the value.
    ///
    /// # Errors
    /// Those of the turn.
    pub async fn call(self) -> Result<T> {
        let format = self.output.format.clone();
        let response = self.prompt.advisor(self.output).call().await?;
        value_of(&format, &response)
    }

    /// Returns a stream of the growing value, then of the whole value.
    pub fn stream(self) -> EntityStream<T> {
        let format = self.output.format.clone();
        EntityStream::new(self.prompt.advisor(self.output).stream(), format)
    }
}

impl<T: DeserializeOwned + Send + 'static> IntoFuture for Entity<T> {
    type Output = Result<T>;
    type IntoFuture = BoxFuture<'static, Result<T>>;

    fn into_future(self) -> Self::IntoFuture {
        self.call().boxed()
    }
}

/// Returns the value of a turn's response. The response may be unvalidated, for example if a limit ended the turn.
fn value_of<T: DeserializeOwned>(format: &OutputFormat, response: &ChatResponse) -> Result<T> {
    let value = format.parse(&response.text()).ok();
    value.and_then(|value| serde_json::from_value(value).ok()).ok_or_else(|| {
        let text = ended_without_value(&response.finish.reason);
        Error::new(ErrorKind::InvalidOutput, text).or_partial(response.clone())
    })
}

/// The value of a turn while the model writes it, created by [`Entity::stream`](crate::structured::Entity::stream).
///
/// # Ordering
/// Partial values come first, each with more content than the one before. The whole value is the last item. It has the
/// content of the last partial value, unless [`Partial::Restarted`] comes between: after a rejected answer, and if the
/// values so far were those of a draft or an example. Partial values are read from the first object in an answer. Servers
/// require an object around a value of another type, such as a list. If the model leaves it out, no partial values come.
///
/// # Cancellation
/// Dropping it drops the turn.
///
/// # Errors
/// Those of the turn. Nothing follows an error.
///
/// # Example
/// ```
/// use advisor_core::ChatClient;
/// use advisor_testkit::{Answer, ScriptedModel};
/// use futures::TryStreamExt;
/// use serde::Deserialize;
/// use serde_json::json;
/// use common_advisors::structured::schemars::{self, JsonSchema};
/// use common_advisors::structured::{Partial, PromptExt};
///
/// #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
/// struct City {
///     name: String,
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> advisor_core::Result<()> {
/// # let model = ScriptedModel::new([Answer::new().text(r#"{"name": "Os"#).text(r#"lo"}"#).done()]);
/// let client = ChatClient::builder(model).build()?;
/// let mut city = client.prompt().user("What is the capital of Norway?").entity::<City>().stream();
/// while let Some(item) = city.try_next().await? {
///     match item {
///         Partial::Value(so_far) => assert!([json!({"name": "Os"}), json!({"name": "Oslo"})].contains(&so_far)),
///         Partial::Restarted => println!("what was shown of the value is void"),
///         Partial::Complete(city) => assert_eq!(city, City { name: "Oslo".into() }),
///     }
/// }
/// # Ok(()) }
/// ```
#[must_use = "streams do nothing unless polled"]
pub struct EntityStream<T> {
    turn: Option<TurnStream>,
    format: OutputFormat,
    /// The text of the running round.
    text: String,
    /// The round of the text; `None` before its first piece.
    round: Option<u32>,
    /// Length of the text at the last attempt to read a partial value.
    read: usize,
    last: Option<Value>,
    /// Whether `last` is void, which was not said yet.
    restarted: bool,
    /// The response of the turn, once it is complete.
    response: Option<ChatResponse>,
    value: PhantomData<fn() -> T>,
}

/// An item of an [`EntityStream`].
#[derive(Debug, Clone, PartialEq)]
#[allow(clippy::exhaustive_enums, reason = "a value is whole or it is not")]
pub enum Partial<T> {
    /// The value received so far: strings may be incomplete, and missing parts are absent.
    Value(Value),
    /// The values so far are void. Those that follow are of another one.
    Restarted,
    /// The whole value.
    Complete(T),
}

impl<T: DeserializeOwned> EntityStream<T> {
    fn new(turn: TurnStream, format: OutputFormat) -> Self {
        Self {
            turn: Some(turn),
            format,
            text: String::new(),
            round: None,
            read: 0,
            last: None,
            restarted: false,
            response: None,
            value: PhantomData,
        }
    }

    fn take(&mut self, chunk: &Chunk) -> Option<Value> {
        match chunk {
            Chunk::AttemptRestarted { .. } | Chunk::RoundCompleted(_) => self.begin(None),
            Chunk::Delta { block, delta: BlockDelta::Text(text) } => {
                if self.round != Some(block.round) {
                    self.begin(Some(block.round));
                }
                self.text.push_str(text);
                return self.partial();
            }
            _ => {}
        }
        None
    }

    fn begin(&mut self, round: Option<u32>) {
        self.restarted |= self.last.is_some();
        (self.round, self.read, self.last) = (round, 0, None);
        self.text.clear();
    }

    /// Returns the item that comes before others, if the values so far are void.
    fn restart(&mut self) -> Option<Partial<T>> {
        std::mem::take(&mut self.restarted).then_some(Partial::Restarted)
    }

    /// Checks whether the values so far are of another value than the response.
    fn is_other(&self, response: &ChatResponse) -> bool {
        let Some(last) = &self.last else { return false };
        self.format.parse(&response.text()).is_ok_and(|whole| !extends(&whole, last))
    }

    /// Returns the value so far, if it has changed. It is read only after the text has grown by a fiftieth, so
    /// that a long answer is not parsed for every delta.
    fn partial(&mut self) -> Option<Value> {
        if self.text.len() < self.read + self.read / 50 {
            return None;
        }
        self.read = self.text.len();
        let value = self.format.unwrapped(&partial_json(first_object(&self.text)?)?)?;
        if self.last.as_ref() == Some(&value) {
            return None;
        }
        // A repeated key replaces what was there. A later delta reads the value anew.
        if self.last.as_ref().is_some_and(|last| !extends(&value, last)) {
            (self.restarted, self.last) = (true, None);
            return None;
        }
        self.last.insert(value).clone().into()
    }
}

impl<T: DeserializeOwned> Stream for EntityStream<T> {
    type Item = Result<Partial<T>>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        loop {
            if let Some(restarted) = this.restart() {
                return Poll::Ready(Some(Ok(restarted)));
            }
            if let Some(response) = this.response.take() {
                this.turn = None;
                return Poll::Ready(Some(value_of(&this.format, &response).map(Partial::Complete)));
            }
            let Some(turn) = &mut this.turn else { return Poll::Ready(None) };
            let last = match ready!(Pin::new(turn).poll_next(cx)) {
                Some(Ok(Chunk::Completed(response))) => {
                    this.restarted |= this.is_other(&response);
                    this.response = Some(response);
                    continue;
                }
                Some(Ok(chunk)) => match this.take(&chunk) {
                    Some(value) => return Poll::Ready(Some(Ok(Partial::Value(value)))),
                    None => continue,
                },
                Some(Err(error)) => Some(Err(error)),
                None => None,
            };
            this.turn = None;
            return Poll::Ready(last);
        }
    }
}

/// Checks whether a value has the content of a partial one.
fn extends(whole: &Value, partial: &Value) -> bool {
    match (whole, partial) {
        (Value::Object(whole), Value::Object(partial)) => {
            partial.iter().all(|(name, partial)| whole.get(name).is_some_and(|whole| extends(whole, partial)))
        }
        (Value::Array(whole), Value::Array(partial)) => {
            partial.len() <= whole.len()
                && whole.iter().zip(partial).all(|(whole, partial)| extends(whole, partial))
        }
        (Value::String(whole), Value::String(partial)) => whole.starts_with(partial.as_str()),
        _ => whole == partial,
    }
}

impl<T> fmt::Debug for EntityStream<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EntityStream")
            .field("turn", &self.turn)
            .field("format", &self.format)
            .finish_non_exhaustive()
    }
}

impl<T: DeserializeOwned> FusedStream for EntityStream<T> {
    fn is_terminated(&self) -> bool {
        self.turn.is_none()
    }
}

#[cfg(test)]
mod tests {
    use advisor_core::{FinishReason, Message};

    use super::*;

    #[test]
    fn error_does_not_quote_server() {
        let reason = FinishReason::Other("Ann said so".into());
        let response = ChatResponse::new(1, Message::assistant("Oslo"), reason);
        let error = value_of::<u8>(&OutputFormat::for_type::<u8>(), &response).unwrap_err().to_string();
        assert!(error.contains("unknown name") && !error.contains("Ann"), "{error}");
    }
}
