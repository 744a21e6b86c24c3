//! `OpenAiChat`: encodes a turn as a stream of OpenAI's Chat Completions API.

use advisor_core::{BlockDelta, BlockId, BlockKind, Chunk, Usage};
use serde::Serialize;
use serde_json::{Value, json};

use crate::content::{self, AnswerInfo, Breaks, CitedText};
use crate::encoder::Encoder;
use crate::turn::{ClientCall, Ending, Turn};
use crate::{Failure, Frames};

/// The stream of OpenAI's Chat Completions, so that any OpenAI client can read a chain.
///
/// - Tools that the server runs are not shown: the client would run them.
/// - Calls that the client has to run come whole, at the end.
/// - Reasoning is `reasoning_content`, which many clients know. An empty line separates the text of different rounds, and
///   the blocks of reasoning.
/// - Media are a picture or a link in Markdown. Citations of an address are `annotations`, with the place of the text
///   before them.
/// - The protocol cannot take text back. When the model is called again, its new text follows the old.
#[derive(Debug)]
pub struct OpenAiChat {
    info: AnswerInfo,
    has_usage: bool,
    turn: Turn,
    breaks: Breaks,
    reasoning: Breaks,
    /// The characters of the content so far, and before its last block.
    characters: usize,
    block: Option<BlockId>,
    block_start: usize,
    cited: CitedText,
}

#[derive(Serialize)]
struct Completion<'a> {
    id: &'a str,
    object: &'static str,
    created: u64,
    model: &'a str,
    choices: &'a [Choice<'a>],
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<Value>,
}

#[derive(Serialize)]
struct Choice<'a> {
    index: u32,
    delta: Delta<'a>,
    finish_reason: Option<&'static str>,
}

/// The fields of a piece.
#[derive(Serialize)]
#[serde(untagged)]
enum Delta<'a> {
    Role { role: &'static str, content: &'a str },
    Content { content: &'a str },
    Reasoning { reasoning_content: &'a str },
    Refusal { refusal: &'a str },
    Other(Value),
}

impl OpenAiChat {
    /// Creates the encoder of one turn.
    #[must_use]
    pub fn new(info: AnswerInfo) -> Self {
        Self {
            info,
            has_usage: false,
            turn: Turn::default(),
            breaks: Breaks::default(),
            reasoning: Breaks::default(),
            characters: 0,
            block: None,
            block_start: 0,
            cited: CitedText::default(),
        }
    }

    /// Sends the token counts in the last chunk, as a client asks for with `stream_options.include_usage`.
    #[must_use]
    pub fn with_usage(self) -> Self {
        Self { has_usage: true, ..self }
    }

    fn completion<'a>(&'a self, choices: &'a [Choice<'a>]) -> Completion<'a> {
        // Without counts, each chunk of a stream that sends them has `null`.
        let usage = self.has_usage.then_some(Value::Null);
        let AnswerInfo { id, model, created } = &self.info;
        let object = "chat.completion.chunk";
        Completion { id, object, created: *created, model, choices, usage }
    }

    fn delta(&self, delta: Delta<'_>, frames: &mut Frames) {
        let choice = Choice { index: 0, delta, finish_reason: None };
        frames.data(&self.completion(&[choice]));
    }

    fn content(&mut self, block: BlockId, kind: BlockKind, text: &str, frames: &mut Frames) {
        if self.breaks.precede(block, kind) {
            self.write_content(BREAK, frames);
        }
        if self.block.replace(block) != Some(block) {
            self.block_start = self.characters;
        }
        self.write_content(text, frames);
    }

    fn write_content(&mut self, text: &str, frames: &mut Frames) {
        self.characters += text.chars().count();
        self.delta(Delta::Content { content: text }, frames);
    }

    fn refusal(&mut self, block: BlockId, text: &str, frames: &mut Frames) {
        let line_break = self.breaks.precede(block, BlockKind::Refusal).then_some(BREAK);
        for text in line_break.into_iter().chain([text]) {
            self.delta(Delta::Refusal { refusal: text }, frames);
        }
    }

    fn reasoning(&mut self, block: BlockId, text: &str, frames: &mut Frames) {
        // Of a wire with one text for all parts, a part may begin with its own.
        let line_break =
            (self.reasoning.precede_reasoning(block) && !text.starts_with('\n')).then_some(BREAK);
        for text in line_break.into_iter().chain([text]) {
            self.delta(Delta::Reasoning { reasoning_content: text }, frames);
        }
    }

    fn write(&mut self, block: BlockId, delta: &BlockDelta, frames: &mut Frames) {
        match delta {
            BlockDelta::Text(text) => self.content(block, BlockKind::Text, text, frames),
            BlockDelta::Refusal(text) => self.refusal(block, text, frames),
            BlockDelta::Reasoning(text) => self.reasoning(block, text, frames),
            BlockDelta::Media(media) => {
                if let Some(text) = content::media_as_text(media) {
                    self.content(block, BlockKind::Media, &text, frames);
                }
            }
            BlockDelta::Citation(citation) => {
                if let Some(cited) = self.cited.citation(citation, self.block_start, self.characters) {
                    let annotation = json!({"type": "url_citation", "url_citation": cited});
                    self.delta(Delta::Other(json!({"annotations": [annotation]})), frames);
                }
            }
            _ => {}
        }
    }

    fn end(&self, calls: &[ClientCall], ending: Ending, usage: Option<&Usage>, frames: &mut Frames) {
        for (index, call) in calls.iter().enumerate() {
            let function = json!({"name": call.call.name, "arguments": call.call.arguments});
            let call = json!({"index": index, "id": call.id, "type": "function", "function": function});
            self.delta(Delta::Other(json!({"tool_calls": [call]})), frames);
        }
        let reason = match ending {
            Ending::Whole => "stop",
            Ending::ClientCalls => "tool_calls",
            Ending::Length | Ending::Interrupted | Ending::Limit => "length",
            Ending::Filtered => "content_filter",
        };
        let choice = Choice { index: 0, delta: Delta::Other(json!({})), finish_reason: Some(reason) };
        frames.data(&self.completion(&[choice]));
        if self.has_usage {
            frames.data(&Completion { usage: Some(counts(usage)), ..self.completion(&[]) });
        }
        frames.done();
    }
}

/// What separates texts.
const BREAK: &str = "\n\n";

/// Returns token counts in the form of the protocol, which has no unknown counts: they are 0.
fn counts(usage: Option<&Usage>) -> Value {
    let usage = usage.copied().unwrap_or_default();
    json!({
        "prompt_tokens": usage.input_tokens.unwrap_or_default(),
        "completion_tokens": usage.output_tokens.unwrap_or_default(),
        "total_tokens": usage.total().unwrap_or_default(),
        "prompt_tokens_details": {"cached_tokens": usage.cached_input_tokens.unwrap_or_default()},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens.unwrap_or_default()},
    })
}

impl Encoder for OpenAiChat {
    fn begin(&mut self, frames: &mut Frames) {
        self.delta(Delta::Role { role: "assistant", content: "" }, frames);
    }

    fn chunk(&mut self, chunk: &Chunk, frames: &mut Frames) {
        self.turn.note(chunk);
        match chunk {
            Chunk::Delta { block, delta } => self.write(*block, delta, frames),
            Chunk::Completed(response) => {
                let calls = self.turn.client_calls(response);
                let ending = Ending::new(&response.finish.reason, !calls.is_empty());
                self.end(&calls, ending, response.usage.as_ref(), frames);
            }
            _ => {}
        }
    }

    fn failure(&mut self, failure: &Failure, frames: &mut Frames) {
        // Some clients, such as LangChain4j, know an error by the name of its event alone.
        frames.named("error", &json!({"error": failure.identify(failure.for_openai().openai_object())}));
        frames.done();
    }
}
