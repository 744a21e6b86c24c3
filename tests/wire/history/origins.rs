//! The providers with which a conversation begins: what their servers send in each round.

use advisor_chain::text_tool_calls::TextTools;
use advisor_test_support::{GeminiTranscript, MessagesTranscript, OllamaTranscript, ResponsesTranscript};
use advisor_testkit::ChatTranscript;
use advisor_tests::prelude::*;
use bytes::Bytes;

use super::story::{ANSWER, CALLS, REFUSAL, TEXT, THOUGHT, definitions};
use crate::transport::ScriptedTransport;

/// A provider with which the conversation begins.
pub(crate) struct Origin {
    pub(crate) name: &'static str,
    /// The server that can read its data.
    pub(crate) server: &'static str,
    pub(crate) model: fn(ScriptedTransport) -> Arc<dyn ChatModel>,
    /// The bodies of its four answers.
    pub(crate) answers: fn() -> [Bytes; 4],
    /// The format of calls in its text.
    pub(crate) in_text: Option<TextFormat>,
    /// What only its server can read, and gets back: signatures and encrypted content.
    pub(crate) secrets: &'static [&'static str],
}

pub(crate) const ALL: [&Origin; 6] = [&OPENROUTER, &OPENAI, &ANTHROPIC, &GOOGLE, &OLLAMA, &IN_TEXT];

/// Chat Completions, as OpenRouter sends it: ids of Kimi's form, signed reasoning, and data on a call.
const OPENROUTER: Origin =
    Origin {
        name: "Chat Completions",
        server: "openrouter.ai",
        model: |transport| {
            let model = OpenAiModel::new("moonshotai/kimi-k2").with_base_url("https://openrouter.ai/api/v1");
            Arc::new(model.with_transport(transport))
        },
        answers: || {
            let detail = |key: &str, value: &str| json!([{"type": "reasoning.text", "index": 0, key: value}]);
            let google = json!({"google": {"thought_signature": "openrouter-call-data"}});
            let function = json!({"name": "look", "arguments": "{\"at\":"});
            let call = json!({"index": 0, "id": "functions.look:0", "type": "function", "function": function,
            "extra_content": google});
            let first = ChatTranscript::new("m")
                .delta(json!({"reasoning": THOUGHT, "reasoning_details": detail("text", THOUGHT)}))
                .delta(json!({"reasoning_details": detail("signature", "openrouter-signature")}))
                .text(TEXT)
                .delta(json!({"tool_calls": [call]}))
                .tool_call(1, "functions.clock_now:1", "clock_now", &[])
                .delta(json!({"tool_calls": [{"index": 0, "function": {"arguments": "\"the door\"}"}}]}));
            let second = ChatTranscript::new("m")
                .tool_call(0, "functions.draw:0", "draw", &["{}"])
                .tool_call(1, "functions.open:1", "open", &["{\"key\":\"none\"}"]);
            let [first, second] = [first, second].map(|answer| answer.finish("tool_calls").done());
            [first, second, chat(ANSWER), ChatTranscript::new("m").refusal(REFUSAL).finish("stop").done()]
        },
        in_text: None,
        secrets: &["openrouter-signature", "openrouter-call-data"],
    };

pub(crate) fn chat(text: &str) -> Bytes {
    ChatTranscript::new("m").text(text).finish("stop").done()
}

/// The Responses API: encrypted reasoning, and ids longer than those of Chat Completions.
const OPENAI: Origin = Origin {
    name: "Responses",
    server: "api.openai.com",
    model: |transport| Arc::new(OpenAiResponsesModel::new("gpt-5").with_transport(transport)),
    answers: || {
        let id = |name: &str| format!("call_{name:a<45}");
        let call = |name: &str, arguments: &str| {
            json!({"type": "function_call", "id": format!("fc_{name}"),
            "call_id": id(name), "name": name, "arguments": arguments, "status": "completed"})
        };
        let text = json!([{"type": "output_text", "text": TEXT, "annotations": []}]);
        let items = [
            json!({"type": "reasoning", "id": "rs_1", "encrypted_content": "openai-encrypted",
                "summary": [{"type": "summary_text", "text": THOUGHT}]}),
            json!({"type": "message", "id": "msg_1", "role": "assistant", "content": text}),
            call("look", "{\"at\":\"the door\"}"),
            call("clock_now", "{}"),
        ];
        let done = |(index, item): (usize, &Value)| json!({"type": "response.output_item.done", "output_index": index, "item": item});
        let ended =
            json!({"type": "response.completed", "response": {"id": "resp_1", "status": "completed"}});
        let events = items.iter().enumerate().map(done).chain([ended]);
        let first = events.fold(ResponsesTranscript::new("m"), |answer, event| answer.event(&event));
        let second = ResponsesTranscript::new("m").tool_call(&id("draw"), "draw", &[]);
        let second = second.tool_call(&id("open"), "open", &["{\"key\":\"none\"}"]);
        let last = ResponsesTranscript::new("m").refusal(REFUSAL).done();
        [first.without_end(), second.done(), responses(ANSWER), last]
    },
    in_text: None,
    secrets: &["openai-encrypted"],
};

pub(crate) fn responses(text: &str) -> Bytes {
    ResponsesTranscript::new("m").text(text).done()
}

/// The signature that [`MessagesTranscript`] gives a thought.
pub(crate) const SIGNATURE: &str = "c2lnbmF0dXJl";

/// Anthropic's Messages API: signed and encrypted thinking, and a call without any piece of arguments.
const ANTHROPIC: Origin = Origin {
    name: "Messages",
    server: "api.anthropic.com",
    model: |transport| Arc::new(AnthropicModel::new("claude-sonnet-4-5").with_transport(transport)),
    answers: || {
        let redacted = json!({"type": "redacted_thinking", "data": "anthropic-encrypted"});
        let first = MessagesTranscript::new("m")
            .reasoning(THOUGHT)
            .event(&json!({"type": "content_block_start", "index": 9, "content_block": redacted}))
            .event(&json!({"type": "content_block_stop", "index": 9}))
            .text(TEXT)
            .tool_call("toolu_01look", "look", &["{\"at\":", "\"the door\"}"])
            .tool_call("toolu_01clock_now", "clock_now", &[]);
        let second = MessagesTranscript::new("m").tool_call("toolu_01draw", "draw", &[""]);
        let second = second.tool_call("toolu_01open", "open", &["{\"key\":\"none\"}"]);
        let last = MessagesTranscript::new("m").text(REFUSAL).finish("refusal").done();
        [first.done(), second.done(), messages(ANSWER), last]
    },
    in_text: None,
    secrets: &[SIGNATURE, "anthropic-encrypted"],
};

pub(crate) fn messages(text: &str) -> Bytes {
    MessagesTranscript::new("m").text(text).done()
}

/// Gemini: calls without ids, a signature on the first of them, and a filter that stops an answer.
const GOOGLE: Origin = Origin {
    name: "Gemini",
    server: "generativelanguage.googleapis.com",
    model: |transport| Arc::new(GeminiModel::new("gemini-3-pro").with_transport(transport)),
    answers: || {
        let look = json!({"name": "look", "args": {"at": "the door"}});
        let first = GeminiTranscript::new("m")
            .reasoning(THOUGHT)
            .text(TEXT)
            .part(json!({"functionCall": look, "thoughtSignature": "gemini-signature"}))
            .part(json!({"functionCall": {"name": "clock_now", "args": {}}}));
        let second = GeminiTranscript::new("m")
            .part(json!({"functionCall": {"name": "draw"}}))
            .part(json!({"functionCall": {"name": "open", "args": {"key": "none"}}}));
        let last = GeminiTranscript::new("m").text(REFUSAL).finish("SAFETY").done();
        [first.done(), second.done(), gemini(ANSWER), last]
    },
    in_text: None,
    secrets: &["gemini-signature"],
};

pub(crate) fn gemini(text: &str) -> Bytes {
    GeminiTranscript::new("m").text(text).done()
}

/// Ollama: calls without ids, arguments as objects, reasoning without a signature, and an answer that was cut.
const OLLAMA: Origin = Origin {
    name: "Ollama",
    server: "127.0.0.1:11434",
    model: |transport| Arc::new(OllamaModel::new("qwen3").with_transport(transport)),
    answers: || {
        let first = OllamaTranscript::new("m").reasoning(THOUGHT).text(TEXT);
        let first = first.tool_call("look", json!({"at": "the door"})).tool_call("clock.now", json!({}));
        let second = OllamaTranscript::new("m").tool_call("draw", json!({}));
        let second = second.tool_call("open", json!({"key": "none"}));
        let last = OllamaTranscript::new("m").text(REFUSAL).finish("length").done();
        [first.done(), second.done(), ollama(ANSWER), last]
    },
    in_text: None,
    secrets: &[],
};

pub(crate) fn ollama(text: &str) -> Bytes {
    OllamaTranscript::new("m").text(text).done()
}

/// A model that writes its calls into its text, as XML, behind a compatible server.
const IN_TEXT: Origin = Origin {
    name: "calls in text",
    server: "llm.example",
    model: |transport| {
        Arc::new(OpenAiModel::new("small").with_base_url("https://llm.example/v1").with_transport(transport))
    },
    answers: || {
        let tools = TextTools::new(&definitions());
        let calls = |round: usize| {
            CALLS[round].map(|(name, arguments)| tools.call(TextFormat::Xml, name, arguments)).join("\n")
        };
        let first = ChatTranscript::new("m").delta(json!({"reasoning_content": THOUGHT}));
        let first = first.text(&format!("{TEXT}\n{}", calls(0))).finish("stop").done();
        let last = ChatTranscript::new("m").text(REFUSAL).finish("length").done();
        [first, chat(&calls(1)), chat(ANSWER), last]
    },
    in_text: Some(TextFormat::Xml),
    secrets: &[],
};
