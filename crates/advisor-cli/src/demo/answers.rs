//! The answers of the demo's server: the four forms in which models stream text and tool calls.

use std::time::Duration;

use advisor_testkit::{ChatTranscript, Reply};
use serde_json::json;

/// Returns one reply per request: two rounds in the first turn, three in the second.
pub(crate) fn replies() -> Vec<Reply> {
    [only_calls(), only_text(), text_then_calls(), long_text_then_calls(), advice()]
        .into_iter()
        // Network reads need not end at event boundaries.
        .map(|transcript| Reply::sse(transcript.done()).split_every(150).paced(Duration::from_millis(8)))
        .collect()
}

fn model() -> ChatTranscript {
    ChatTranscript::new("demo-model")
}

/// Returns several calls and no text: the calls are streamed one after another.
fn only_calls() -> ChatTranscript {
    model()
        .tool_call(0, "call_tokyo", "get_weather", &["{\"ci", "ty\":\"To", "kyo\"}"])
        .tool_call(1, "call_london", "get_weather", &["{\"ci", "ty\":\"Lon", "don\"}"])
        .tool_call(2, "call_time", "get_time", &["{\"zone\":", "\"Asia/Tokyo\"}"])
        .finish("tool_calls")
        .usage(182, 51)
}

/// Returns only text.
fn only_text() -> ChatTranscript {
    words(
        model(),
        "In Tokyo (東京) it is sunny with 24 °C, and it is a quarter past nine in the evening. \
                    London has rain and 13 °C.",
    )
    .finish("stop")
    .usage(301, 38)
}

/// Returns a short text, then calls. Beside the calls, the text is an empty string and opens no block.
fn text_then_calls() -> ChatTranscript {
    let transcript = words(model(), "Let me look at Paris, too.");
    let begin = |index: u8, id: &str, name: &str| {
        json!({"content": "", "tool_calls": [{
            "index": index, "id": id, "type": "function", "function": {"name": name, "arguments": ""}}]})
    };
    let more = |index: u8, arguments: &str| json!({"content": "", "tool_calls": [{"index": index, "function": {"arguments": arguments}}]});
    transcript
        .delta(begin(0, "toolu_paris", "get_weather"))
        .delta(more(0, "{\"city\":"))
        .delta(more(0, " \"Paris\"}"))
        .delta(begin(1, "toolu_time", "get_time"))
        .delta(more(1, "{\"zone\": \"Europe/Paris\"}"))
        .finish("tool_calls")
        .usage(388, 64)
}

/// Returns a long text, then a call.
fn long_text_then_calls() -> ChatTranscript {
    words(
        model(),
        "Paris is mild and dry. Before I recommend something, let me compare what I know: Tokyo is the warmest \
         of the three, but far away; London is close, but wet; Paris lies in between in every respect. One more \
         thing matters for a trip on short notice, and that is how you would get there.",
    )
    .tool_call(0, "call_trains", "get_trains", &["{\"from\":\"London\",", "\"to\":\"Paris\"}"])
    .finish("tool_calls")
    .usage(467, 92)
}

fn advice() -> ChatTranscript {
    words(model(), "Go to Paris: it is dry, and a train leaves every hour.").finish("stop").usage(571, 19)
}

/// Appends a text word by word.
fn words(transcript: ChatTranscript, text: &str) -> ChatTranscript {
    text.split_inclusive(' ').fold(transcript, ChatTranscript::text)
}
