//! The wire format of Chat Completions, as servers really send it.
//!
//! One [`Event`] is one event of a stream, or the whole body if nothing is streamed: they differ in `delta` and
//! `message` only. Every field is optional, `null` and a value of an unexpected form mean absent, and unknown fields are
//! skipped. Texts are borrowed from the event. Rare fields are kept as JSON until they are needed.

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash, Hasher};

use advisor_core::{Text, Usage};
use provider_http::json::{Json, Key, Str, count, is_nothing, value};
use provider_http::server::Call;
use serde_json::{Map, Value};
use smallvec::SmallVec;

/// The format name of provider data from Chat Completions, before the host.
pub(crate) const FORMAT: &str = "openai-chat";
/// The key of audio in provider data, and in messages.
pub(crate) const AUDIO: &str = "audio";
/// The key of raw reasoning details in provider data.
pub(crate) const REASONING_DETAILS: &str = "reasoning_details";
/// The lowest index of a call that is kept unchanged. No server uses lower ones, so they replace indexes that are no
/// numbers.
const LOWEST_INDEX: i64 = i64::MIN / 2;

/// Returns the format name of data of this API that only the server of the call can read.
///
/// Its signatures and ids mean nothing to another server, which may refuse them.
pub(crate) fn format_of(api: &str, call: &Call) -> Text {
    format!("{api}@{}", call.uri.host().unwrap_or_default().to_ascii_lowercase()).into()
}

/// Returns the entries of a list; none if the JSON is something else.
#[inline]
pub(crate) fn list_of(json: &str) -> Vec<Value> {
    if json.is_empty() { Vec::new() } else { entries_of(json) }
}

#[cold]
fn entries_of(json: &str) -> Vec<Value> {
    match value(json) {
        Ok(Value::Array(entries)) => entries,
        _ => Vec::new(),
    }
}

/// One event of a stream, or the whole body of an answer that is not streamed.
#[derive(Default)]
pub(crate) struct Event<'a> {
    /// Whether it has a field of an answer.
    pub(crate) is_answer: bool,
    pub(crate) id: Str<'a>,
    pub(crate) model: Str<'a>,
    /// The first entry of its list of choices.
    pub(crate) choice: Option<Choice<'a>>,
    /// The others.
    pub(crate) choices: Vec<Choice<'a>>,
    pub(crate) usage: Option<TokenCounts>,
    /// A text, an object or a list (Q45).
    pub(crate) error: &'a str,
    /// The sources of the whole answer, which Perplexity and xAI repeat in every event.
    pub(crate) citations: &'a str,
    /// Groq's field for usage (Q53), and for failures on its side.
    pub(crate) groq_usage: Option<Box<TokenCounts>>,
    pub(crate) groq_error: &'a str,
}

/// An entry of the list of choices.
#[derive(Default)]
pub(crate) struct Choice<'a> {
    index: Option<i64>,
    /// Whether it is a piece of a choice, and not the whole message.
    pub(crate) is_streamed: bool,
    /// The increment of a stream, or else the whole message.
    pub(crate) piece: Option<Delta<'a>>,
    finish_reason: Str<'a>,
    /// Moonshot's field for usage (Q53).
    pub(crate) usage: Option<Box<TokenCounts>>,
    pub(crate) error: &'a str,
}

/// A piece of a message, or all of it.
#[derive(Default)]
pub(crate) struct Delta<'a> {
    pub(crate) content: Str<'a>,
    /// The content as a list, as Mistral sends it.
    pub(crate) parts: Vec<Part<'a>>,
    /// Used by DeepSeek, xAI, llama.cpp, Z.ai and others.
    pub(crate) reasoning_content: Str<'a>,
    /// Used by Groq, Cerebras, Ollama, OpenRouter, vLLM.
    pub(crate) reasoning: Str<'a>,
    /// Used by OpenRouter and similar gateways. Kept unchanged, because signatures must be sent back with it.
    pub(crate) reasoning_details: &'a str,
    pub(crate) refusal: Str<'a>,
    pub(crate) tool_calls: SmallVec<[ToolCall<'a>; 1]>,
    pub(crate) rare: Option<Box<Rare<'a>>>,
}

/// What few pieces have.
#[derive(Default)]
pub(crate) struct Rare<'a> {
    /// The single call of the API's first version, now deprecated.
    pub(crate) function_call: Option<ToolCall<'a>>,
    pub(crate) annotations: &'a str,
    pub(crate) images: &'a str,
    pub(crate) audio: &'a str,
    /// Runs of Groq's own tools on its side.
    pub(crate) executed_tools: &'a str,
}

/// One part of a content.
#[derive(Default)]
pub(crate) struct Part<'a> {
    /// Its JSON, so that an unknown part can be kept unchanged.
    pub(crate) raw: &'a str,
    pub(crate) kind: Str<'a>,
    pub(crate) text: Str<'a>,
    pub(crate) refusal: Str<'a>,
    /// The thoughts of Mistral's models: a text, or a list of parts whose texts are joined.
    pub(crate) thinking: String,
}

/// A fragment of a tool call. Arguments are a text, or JSON in place of one (Q20), whose spelling is kept.
#[derive(Default)]
pub(crate) struct ToolCall<'a> {
    pub(crate) index: Option<i64>,
    pub(crate) id: Str<'a>,
    pub(crate) name: Str<'a>,
    pub(crate) arguments: Str<'a>,
    /// Fields that this crate does not know, such as `extra_content` with Google's thought signatures. They are
    /// sent back with the call.
    pub(crate) extras: Map<String, Value>,
    /// Those of its function.
    pub(crate) function_extras: Map<String, Value>,
}

/// The token counts that a server reports. Some gateways send those of one API and zeros under the names of the other, so
/// each name has its place: the first that is reported counts.
#[derive(Default)]
pub(crate) struct TokenCounts {
    /// Chat Completions; Responses.
    input: [Option<i64>; 2],
    output: [Option<i64>; 2],
    total: Option<i64>,
    /// Chat Completions; DeepSeek; Moonshot; gateways in front of Anthropic; Responses.
    cached: [Option<i64>; 5],
    /// Chat Completions; gateways in front of Anthropic; Responses.
    cache_write: [Option<i64>; 3],
    /// Chat Completions; Responses.
    reasoning: [Option<i64>; 2],
}

impl<'a> Event<'a> {
    #[inline(always)]
    pub(crate) fn read(&mut self, json: Json<'a>) -> Option<Json<'a>> {
        json.object(|key| {
            if let Some(value) = key.is("choices") {
                (self.choice, self.choices) = Default::default();
                self.is_answer |= value.is_list();
                value.objects(|value| match self.choice {
                    None => self.choice.insert(Choice::default()).read(value),
                    Some(_) => self.choices.push_mut(Choice::default()).read(value),
                })
            } else if let Some(value) = key.is("id") {
                value.text(&mut self.id)
            } else if let Some(value) = key.is("model") {
                value.text(&mut self.model)
            } else if let Some(value) = key.is("usage") {
                self.is_answer |= value.is_object();
                value.object_in(&mut self.usage, TokenCounts::read)
            } else if let Some(value) =
                key.is_any(["object", "created", "system_fingerprint", "service_tier", "obfuscation"])
            {
                value.skip()
            } else if let Some(value) = key.is("x_groq") {
                self.is_answer |= value.is_object();
                value.object(|key| {
                    if let Some(value) = key.is("usage") {
                        value.object_in(&mut self.groq_usage, |usage, value| usage.read(value))
                    } else if let Some(value) = key.is("error") {
                        value.raw(&mut self.groq_error)
                    } else {
                        key.skip()
                    }
                })
            } else if let Some(value) = key.is("error") {
                value.raw(&mut self.error)
            } else if let Some(value) = key.is("citations") {
                value.raw(&mut self.citations)
            } else {
                key.skip()
            }
        })
    }
}

impl<'a> Choice<'a> {
    #[inline(always)]
    fn read(&mut self, json: Json<'a>) -> Option<Json<'a>> {
        json.object(|key| {
            if let Some(value) = key.is("index") {
                value.number(&mut self.index)
            } else if let Some(value) = key.is("delta").filter(|value| value.is_object()) {
                self.is_streamed = true;
                value.object_in(&mut self.piece, Delta::read)
            } else if let Some(value) = key.is("finish_reason") {
                value.text(&mut self.finish_reason)
            } else if let Some(value) = key.is("logprobs") {
                value.skip()
            } else if let Some(value) = key.is("message").filter(|_| !self.is_streamed) {
                // In a stream, some servers send it beside the delta (Q49).
                value.object_in(&mut self.piece, Delta::read_whole)
            } else if let Some(value) = key.is("usage") {
                value.object_in(&mut self.usage, |usage, value| usage.read(value))
            } else if let Some(value) = key.is("error") {
                value.raw(&mut self.error)
            } else {
                key.skip()
            }
        })
    }

    /// Returns the number of the choice; 0 if the index is no valid choice number.
    pub(crate) fn number(&self) -> u32 {
        self.index.and_then(|index| u32::try_from(index).ok()).unwrap_or_default()
    }

    /// Returns the finish reason as written. An empty text and the text `null` mean none (Q31).
    #[inline]
    pub(crate) fn finish_reason(&self) -> Option<Cow<'a, str>> {
        self.finish_reason.text().filter(|reason| reason != "null")
    }
}

impl<'a> Delta<'a> {
    #[inline(always)]
    fn read(&mut self, json: Json<'a>) -> Option<Json<'a>> {
        json.object(|key| {
            if let Some(value) = key.is("content") {
                self.parts.clear();
                if !value.is_list() {
                    return value.text(&mut self.content);
                }
                self.content = Str::default();
                value.objects(|value| {
                    self.parts.push(Part::default());
                    self.parts.last_mut()?.read(value)
                })
            } else if let Some(value) = key.is("role") {
                value.skip()
            } else if let Some(value) = key.is("tool_calls") {
                self.tool_calls.clear();
                value.objects(|value| {
                    self.tool_calls.push(ToolCall::default());
                    self.tool_calls.last_mut()?.read(value)
                })
            } else if let Some(value) = key.is("reasoning_content") {
                value.text(&mut self.reasoning_content)
            } else if let Some(value) = key.is("reasoning") {
                value.text(&mut self.reasoning)
            } else if let Some(value) = key.is("reasoning_details") {
                value.raw(&mut self.reasoning_details)
            } else if let Some(value) = key.is("refusal") {
                value.text(&mut self.refusal)
            } else {
                self.read_rare(key)
            }
        })
    }

    #[inline(never)]
    fn read_rare(&mut self, key: Key<'a>) -> Option<Json<'a>> {
        let (key, value) = key.split()?;
        match key.spelling() {
            "function_call" => value.object_in(&mut self.rare().function_call, ToolCall::read_function),
            "annotations" => value.raw(&mut self.rare().annotations),
            "images" => value.raw(&mut self.rare().images),
            "audio" => value.raw(&mut self.rare().audio),
            "executed_tools" => value.raw(&mut self.rare().executed_tools),
            _ => value.skip(),
        }
    }

    fn rare(&mut self) -> &mut Rare<'a> {
        self.rare.get_or_insert_default()
    }

    #[inline(never)]
    fn read_whole(&mut self, json: Json<'a>) -> Option<Json<'a>> {
        self.read(json)
    }

    /// Checks whether there are calls.
    #[inline]
    pub(crate) fn calls(&self) -> bool {
        !self.tool_calls.is_empty() || self.rare.as_ref().is_some_and(|rare| rare.function_call.is_some())
    }

    /// Checks whether there is content other than reasoning and calls.
    #[inline]
    pub(crate) fn speaks(&self) -> bool {
        !self.content.is_empty()
            || !self.refusal.is_empty()
            || self.parts.iter().any(Part::speaks)
            || self.rare.as_ref().is_some_and(|rare| !is_nothing(rare.images) || !is_nothing(rare.audio))
    }

    /// Checks whether there is reasoning.
    #[inline]
    pub(crate) fn reasons(&self) -> bool {
        !self.reasoning.is_empty()
            || !self.reasoning_content.is_empty()
            || !is_nothing(self.reasoning_details)
            || self.parts.iter().any(|part| !part.thinking.is_empty())
    }
}

impl<'a> Part<'a> {
    fn read(&mut self, json: Json<'a>) -> Option<Json<'a>> {
        json.raw(&mut self.raw)?;
        json.object(|key| {
            let (key, value) = key.split()?;
            match key.spelling() {
                "type" => value.text(&mut self.kind),
                "text" => value.text(&mut self.text),
                "refusal" => value.text(&mut self.refusal),
                "thinking" => {
                    self.thinking.clear();
                    self.add_thoughts(value)?;
                    value.objects(|value| {
                        value.object(|key| match key.is("text") {
                            Some(value) => self.add_thoughts(value),
                            None => key.skip(),
                        })
                    })
                }
                _ => value.skip(),
            }
        })
    }

    fn add_thoughts(&mut self, json: Json<'a>) -> Option<Json<'a>> {
        let mut text = Str::default();
        let rest = json.text(&mut text)?;
        self.thinking.push_str(&text.text().unwrap_or_default());
        Some(rest)
    }

    /// Checks whether the part is anything but reasoning or an empty text.
    fn speaks(&self) -> bool {
        let is_text = self.kind.is_empty()
            || ["text", "output_text", "thinking", "refusal"].iter().any(|kind| self.kind.is(kind));
        !is_text || !self.text.is_empty() || !self.refusal.is_empty()
    }
}

impl<'a> ToolCall<'a> {
    #[inline(never)]
    fn read(&mut self, json: Json<'a>) -> Option<Json<'a>> {
        json.object(|key| {
            if let Some(value) = key.is("index") {
                let mut written = "";
                let rest = value.raw(&mut written)?;
                self.index = index_of(value, written);
                Some(rest)
            } else if let Some(value) = key.is("id") {
                value.text(&mut self.id)
            } else if let Some(value) = key.is("function") {
                (self.name, self.arguments) = Default::default();
                self.read_function(value)
            } else if let Some(value) = key.is("type") {
                value.skip()
            } else {
                keep(key, &mut self.extras)
            }
        })
    }

    #[inline(always)]
    fn read_function(&mut self, json: Json<'a>) -> Option<Json<'a>> {
        json.object(|key| {
            if let Some(value) = key.is("arguments") {
                value.text_or_json(&mut self.arguments)
            } else if let Some(value) = key.is("name") {
                value.text(&mut self.name)
            } else {
                keep(key, &mut self.function_extras)
            }
        })
    }
}

/// Keeps a field, unless it is `null`.
#[cold]
fn keep<'a>(key: Key<'a>, fields: &mut Map<String, Value>) -> Option<Json<'a>> {
    let (key, json) = key.split()?;
    let mut value = Value::Null;
    let rest = json.value(&mut value)?;
    if !value.is_null() {
        fields.insert(key.text().unwrap_or_default().into_owned(), value);
    }
    Some(rest)
}

/// Returns the index of a call; `None` for `null` and the empty text. It is signed, since some servers count from -1 (Q5).
///
/// A written index is never absent: a piece identified by it alone would join another call (law T6). One that is no usable
/// number becomes a number of its own, that of its spelling.
fn index_of(json: Json<'_>, written: &str) -> Option<i64> {
    let is_usable = |number: &i64| *number >= LOWEST_INDEX;
    if let Some(number) = written.parse().ok().filter(is_usable) {
        return Some(number);
    }
    let mut number = None;
    json.number(&mut number)?;
    number.filter(is_usable).or_else(|| {
        let mut hasher = DefaultHasher::new();
        written.hash(&mut hasher);
        let is_absent = matches!(written, "" | "\"\"");
        (!is_absent).then(|| i64::MIN + (hasher.finish() >> 2) as i64)
    })
}

impl TokenCounts {
    #[inline(never)]
    pub(crate) fn read<'a>(&mut self, json: Json<'a>) -> Option<Json<'a>> {
        let [prompt, input] = &mut self.input;
        let [completion, output] = &mut self.output;
        let [cached, hits, moonshot, read, of_input] = &mut self.cached;
        let [cache_write, created, write_of_input] = &mut self.cache_write;
        let [reasoning, of_output] = &mut self.reasoning;
        json.object(|key| {
            let (key, value) = key.split()?;
            match key.spelling() {
                "prompt_tokens" => value.number(prompt),
                "input_tokens" => value.number(input),
                "completion_tokens" => value.number(completion),
                "output_tokens" => value.number(output),
                "total_tokens" => value.number(&mut self.total),
                "prompt_tokens_details" => read_cached(value, cached, cache_write),
                "input_tokens_details" => read_cached(value, of_input, write_of_input),
                "completion_tokens_details" => read_reasoning(value, reasoning),
                "output_tokens_details" => read_reasoning(value, of_output),
                "prompt_cache_hit_tokens" => value.number(hits),
                "cached_tokens" => value.number(moonshot),
                "cache_read_input_tokens" => value.number(read),
                "cache_creation_input_tokens" => value.number(created),
                _ => value.skip(),
            }
        })
    }

    /// Converts the counts to this project's names; `None` if nothing is reported.
    ///
    /// xAI counts reasoning apart from the completion, which only its total shows. It is added here.
    pub(crate) fn to_usage(&self) -> Option<Usage> {
        let first = |places: &[Option<i64>]| places.iter().find_map(|number| count(*number));
        let mut usage = Usage::default();
        usage.input_tokens = first(&self.input);
        usage.output_tokens = first(&self.output);
        usage.total_tokens = count(self.total);
        usage.cached_input_tokens = first(&self.cached);
        usage.cache_write_tokens = first(&self.cache_write);
        usage.reasoning_tokens = first(&self.reasoning);
        let with_reasoning = usage.output_tokens.zip(usage.reasoning_tokens);
        let with_reasoning = with_reasoning.map(|(output, reasoning)| output.saturating_add(reasoning));
        let all = with_reasoning.zip(usage.input_tokens).map(|(output, input)| input.saturating_add(output));
        if all.is_some() && all == usage.total_tokens {
            usage.output_tokens = with_reasoning;
        }
        (usage != Usage::default()).then_some(usage)
    }
}

fn read_cached<'a>(json: Json<'a>, cached: &mut Option<i64>, written: &mut Option<i64>) -> Option<Json<'a>> {
    json.object(|key| {
        let (key, value) = key.split()?;
        match key.spelling() {
            "cached_tokens" => value.number(cached),
            "cache_write_tokens" => value.number(written),
            _ => value.skip(),
        }
    })
}

fn read_reasoning<'a>(json: Json<'a>, reasoning: &mut Option<i64>) -> Option<Json<'a>> {
    json.object(|key| match key.is("reasoning_tokens") {
        Some(value) => value.number(reasoning),
        None => key.skip(),
    })
}

#[cfg(test)]
mod tests;
