//! Turns with one advisor, beside the same turns without it.

mod additions;
mod answers;
mod limits;
mod policies;
mod prompts;

use std::fmt;

use advisor_chain::{
    ChatClient, ChatClientBuilder, ConversationKey, FnTool, OpenAiModel, StreamAdvisor, ToolDefinition,
};
use bytes::Bytes;
use futures::StreamExt;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::cases::{Work, runtime};
use crate::shapes::WORDS;
use crate::{InMemory, Shape};

/// The number of pieces in the answer of the turn before the counted one. It fills caches and templates.
const FIRST_TURN: usize = 16;

/// What an advisor does with the chunks of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Touch {
    /// It leaves the stream alone.
    Nothing,
    /// It looks at each chunk, or polls the stream once more for each.
    Looks,
    /// It works on each chunk, or on the whole answer at its end, with at most this number of instructions for a chunk.
    Works(u16),
}

impl Touch {
    /// Returns the instructions and the allocations that an advisor may add to a chunk. Counts vary by a few.
    #[must_use]
    pub fn bound(self) -> (f64, f64) {
        match self {
            Self::Nothing => (3.0, 0.01),
            Self::Looks => (50.0, 0.01),
            Self::Works(instructions) => (instructions.into(), 1.01),
        }
    }
}

/// The turn to which the advisor is added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Base {
    /// An answer of text.
    Text,
    /// The same, to a request that offers a tool.
    Offer,
    /// An answer with one call, whose arguments come in pieces.
    Arguments,
    /// An answer that is a JSON object with one long string.
    Json,
}

/// A row of the table: an advisor and the turn to which it is added.
pub struct Row {
    /// The name of the advisor's type or function.
    pub advisor: &'static str,
    /// What distinguishes it from another row of the same advisor, or nothing.
    pub remark: &'static str,
    /// What it does with chunks.
    pub touch: Touch,
    /// The turn.
    pub base: Base,
    add: Add,
}

type Add = Box<dyn Fn(ChatClientBuilder, &Runtime) -> ChatClientBuilder>;

/// Returns every row.
#[must_use]
pub fn rows() -> Vec<Row> {
    [additions::core(), additions::memory_and_tools(), limits::rows(), prompts::rows(), policies::rows()]
        .into_iter()
        .chain([answers::rows()])
        .flatten()
        .collect()
}

impl Row {
    fn new<A: StreamAdvisor>(advisor: &'static str, make: fn() -> A) -> Self {
        Self::adding(advisor, Box::new(move |client, _| client.advisor(make())))
    }

    fn adding(advisor: &'static str, add: Add) -> Self {
        Self { advisor, remark: "", touch: Touch::Nothing, base: Base::Text, add }
    }

    fn in_a(self, base: Base, remark: &'static str) -> Self {
        Self { base, remark, ..self }
    }

    fn touching(self, touch: Touch) -> Self {
        Self { touch, ..self }
    }

    /// Returns the name of the row.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{}{}", self.advisor, self.remark)
    }

    /// Prepares the second turn of a conversation, whose answer has this number of pieces.
    ///
    /// # Panics
    /// If the chain cannot be built, or the first turn fails.
    #[must_use]
    pub fn work(&self, is_with: bool, pieces: usize) -> Work {
        let runtime = runtime();
        let bodies = vec![self.base.body(FIRST_TURN), self.base.body(pieces)];
        let client = self.client(is_with, &runtime, bodies);
        runtime.block_on(ask(&client, "Hello"));
        Box::new(move || {
            runtime.block_on(ask(&client, "?"));
            // Dropping the chain is not part of a turn.
            std::mem::forget((client, runtime));
        })
    }

    fn client(&self, is_with: bool, runtime: &Runtime, bodies: Vec<Vec<Bytes>>) -> ChatClient {
        let model = OpenAiModel::new("m").with_base_url("http://127.0.0.1:1/v1");
        let builder = ChatClient::builder(model.with_transport(InMemory::new(bodies)));
        let builder = if self.base == Base::Offer { builder.tool(tool("f")) } else { builder };
        let builder = if is_with { (self.add)(builder, runtime) } else { builder };
        builder.build().unwrap()
    }
}

impl fmt::Debug for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Row").field("name", &self.name()).finish_non_exhaustive()
    }
}

impl Base {
    fn body(self, pieces: usize) -> Vec<Bytes> {
        match self {
            Self::Text | Self::Offer => Shape::OPENAI.body(pieces),
            Self::Arguments => Shape::ARGUMENTS.body(pieces),
            Self::Json => {
                // A line break may not stand in a string of JSON.
                let words = WORDS.into_iter().filter(|word| !word.contains('\\')).cycle().take(pieces);
                let texts: Vec<&str> = [r#"{"text":""#].into_iter().chain(words).chain([r#""}"#]).collect();
                Shape::OPENAI.body_of(&texts)
            }
        }
    }
}

/// Reads a turn to its end.
async fn ask(client: &ChatClient, text: &str) {
    let key = ConversationKey::new("c").unwrap();
    let mut stream = client.prompt().user(text).conversation(key).stream();
    while let Some(chunk) = stream.next().await {
        std::hint::black_box(chunk.unwrap());
    }
}

fn tool(name: &str) -> FnTool {
    let definition = ToolDefinition::new(name, "Does something.", json!({"type": "object"}));
    FnTool::new(definition, |_: Value| async { Ok("done") })
}
