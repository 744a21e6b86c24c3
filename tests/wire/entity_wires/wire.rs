//! The wire formats: answers as their servers write them, and the models that read them.

use advisor_chain::chain::SchemaSupport;
use advisor_chain::openai::backoff::Backoff;
use advisor_chain::openai::{OpenAiModel, Profile};
use advisor_test_support::{GeminiTranscript, MessagesTranscript, OllamaTranscript, ResponsesTranscript};
use advisor_testkit::ChatTranscript;
use advisor_tests::prelude::*;

/// The end of an answer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum End {
    Whole,
    Cut,
    Refused,
}

/// A wire format, as a server that enforces schemas speaks it.
pub(crate) struct Wire {
    pub(crate) name: &'static str,
    /// The place of the schema in a request.
    pub(crate) schema_field: &'static str,
    pub(crate) enforces_beside_tools: bool,
    /// Whether the format has an end for refusals.
    refuses: bool,
    pub(crate) answer: fn(&[&str], End) -> Reply,
    pub(crate) model: fn(&str) -> Arc<dyn ChatModel>,
}

impl Wire {
    /// Returns an answer, if the format has such an end.
    pub(crate) fn reply(&self, pieces: &[&str], end: End) -> Option<Reply> {
        (end != End::Refused || self.refuses).then(|| (self.answer)(pieces, end))
    }
}

pub(crate) fn wires() -> [Wire; 5] {
    [chat(), responses(), messages(), gemini(), ollama()]
}

fn chat() -> Wire {
    Wire {
        name: "Chat Completions",
        schema_field: "/response_format/json_schema/schema",
        enforces_beside_tools: true,
        refuses: true,
        answer: |pieces, end| {
            let text = |transcript: ChatTranscript, piece: &&str| match end {
                End::Refused => transcript.refusal(piece),
                _ => transcript.text(piece),
            };
            let answer = pieces.iter().fold(ChatTranscript::new("m"), text);
            Reply::sse(answer.finish(if end == End::Cut { "length" } else { "stop" }).usage(9, 5).done())
        },
        model: |url| {
            let model = OpenAiModel::new("m").with_profile(Profile::openai());
            let model = model.with_base_url(format!("{url}/v1")).with_api_key("k");
            Arc::new(model.with_retries(Backoff::none()))
        },
    }
}

fn responses() -> Wire {
    Wire {
        name: "Responses",
        schema_field: "/text/format/schema",
        enforces_beside_tools: true,
        refuses: true,
        answer: |pieces, end| {
            let text = |transcript: ResponsesTranscript, piece: &&str| match end {
                End::Refused => transcript.refusal(piece),
                _ => transcript.text(piece),
            };
            let answer = pieces.iter().fold(ResponsesTranscript::new("m"), text);
            let answer = if end == End::Cut { answer.incomplete("max_output_tokens") } else { answer };
            Reply::sse(answer.usage(9, 5).done())
        },
        model: |url| {
            let model = OpenAiResponsesModel::new("m").with_base_url(format!("{url}/v1")).with_api_key("k");
            Arc::new(model.with_retries(Backoff::none()))
        },
    }
}

fn messages() -> Wire {
    Wire {
        name: "Messages",
        schema_field: "/output_config/format/schema",
        enforces_beside_tools: true,
        refuses: true,
        answer: |pieces, end| {
            let answer = pieces.iter().fold(MessagesTranscript::new("m"), |answer, piece| answer.text(piece));
            let answer = match end {
                End::Whole => answer,
                End::Cut => answer.finish("max_tokens"),
                End::Refused => answer.finish("refusal"),
            };
            Reply::sse(answer.usage(9, 5).done())
        },
        model: |url| {
            let model = AnthropicModel::new("m").with_base_url(url).with_api_key("k");
            let model = model.with_schema_support(SchemaSupport::JsonSchema);
            Arc::new(model.with_retries(Backoff::none()))
        },
    }
}

fn gemini() -> Wire {
    Wire {
        name: "Gemini",
        schema_field: "/generationConfig/responseJsonSchema",
        enforces_beside_tools: false,
        refuses: true,
        answer: |pieces, end| {
            let answer = pieces.iter().fold(GeminiTranscript::new("m"), |answer, piece| answer.text(piece));
            let answer = match end {
                End::Whole => answer,
                End::Cut => answer.finish("MAX_TOKENS"),
                End::Refused => answer.finish("SAFETY"),
            };
            Reply::sse(answer.usage(9, 5).done())
        },
        model: |url| {
            let model = GeminiModel::new("gemini-2.5-pro").with_base_url(url).with_api_key("k");
            Arc::new(model.with_retries(Backoff::none()))
        },
    }
}

fn ollama() -> Wire {
    Wire {
        name: "Ollama",
        schema_field: "/format",
        enforces_beside_tools: false,
        refuses: false,
        answer: |pieces, end| {
            let answer = pieces.iter().fold(OllamaTranscript::new("m"), |answer, piece| answer.text(piece));
            let answer = if end == End::Cut { answer.finish("length") } else { answer };
            Reply::ndjson(answer.usage(9, 5).done())
        },
        model: |url| Arc::new(OllamaModel::new("m").with_base_url(url).with_retries(Backoff::none())),
    }
}
