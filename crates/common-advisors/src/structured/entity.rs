//! `PromptExt::entity` and `Entity<T>`: a prompt whose answer is a value of type `T`.

use std::future::IntoFuture;
use std::marker::PhantomData;

use advisor_core::{Prompt, Result};
use futures::FutureExt;
use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::structured::value_of::value_of;
use crate::structured::{EntityStream, OutputFormat, StructuredOutput};

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
        Self { output: self.output.with_attempts(attempts), ..self }
    }

    /// Asks by a prompt, even if the server enforces schemas.
    pub fn prompted(self) -> Self {
        Self { output: self.output.prompted(), ..self }
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
