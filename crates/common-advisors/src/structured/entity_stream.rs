//! `EntityStream` and `Partial`: partial values while the answer streams, then the whole value.

use std::fmt;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use advisor_core::{BlockDelta, ChatResponse, Chunk, Result, TurnStream};
use futures::stream::{FusedStream, Stream};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::structured::OutputFormat;
use crate::structured::json_text::first_object;
use crate::structured::partial_json::partial_json;
use crate::structured::value_of::value_of;

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
    pub(crate) fn new(turn: TurnStream, format: OutputFormat) -> Self {
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
        // A repeated key replaces what was there. The next delta reads the value anew.
        if self.last.as_ref().is_some_and(|last| !extends(&value, last)) {
            (self.restarted, self.read, self.last) = (true, 0, None);
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
