//! All protocols, and a turn in each of them. `tests/recorded_clients.rs` of the workspace takes this file, too.

use advisor_core::{Chunk, Result, StreamItem};
use advisor_sse::{
    AgUi, AnswerInfo, AnthropicMessages, ChatDetail, ChatEvents, Encoder, Encoding, Frame, Frames,
    JsonEvents, OpenAiChat, OpenAiResponses, Segments, ServerTools, UiMessages, UiProfile, UsageChunk,
    validate,
};

pub(crate) type Check = fn(&[Frame]) -> Result<(), String>;

/// A protocol: its name, a new encoder, and the check of its frames.
pub(crate) type Protocol = (&'static str, fn() -> Box<dyn Encoder>, Check);

fn info() -> AnswerInfo {
    AnswerInfo::new("answer-1", "chain", 1_700_000_000)
}

macro_rules! check {
    ($validator:expr) => {
        |frames| $validator(frames).map_err(|violation| violation.to_string())
    };
}

pub(crate) fn protocols() -> Vec<Protocol> {
    vec![
        ("chat events", || Box::new(ChatEvents::new()), check!(validate::chat_events)),
        (
            "chat events with blocks",
            || Box::new(ChatEvents::new().with_detail(ChatDetail::Blocks)),
            check!(validate::chat_events),
        ),
        (
            "UI messages v5",
            || Box::new(UiMessages::new("m1")),
            check!(|frames| validate::ui_messages(UiProfile::V5, frames)),
        ),
        (
            "UI messages v6",
            || Box::new(UiMessages::new("m1").with_profile(UiProfile::V6)),
            check!(|frames| validate::ui_messages(UiProfile::V6, frames)),
        ),
        ("AG-UI", || Box::new(AgUi::new("t1", "r1")), check!(validate::ag_ui)),
        ("Chat Completions", || Box::new(OpenAiChat::new(info())), check!(validate::openai_chat)),
        (
            "Chat Completions with all",
            || {
                let encoder = OpenAiChat::new(info()).with_usage(UsageChunk::Sent);
                Box::new(encoder.with_server_tools(ServerTools::Shown))
            },
            check!(validate::openai_chat),
        ),
        ("Responses", || Box::new(OpenAiResponses::new(info())), check!(validate::openai_responses)),
        (
            "Responses with all",
            || Box::new(OpenAiResponses::new(info()).with_server_tools(ServerTools::Shown)),
            check!(validate::openai_responses),
        ),
        (
            "Messages with all",
            || Box::new(AnthropicMessages::new(info()).with_server_tools(ServerTools::Shown)),
            check!(validate::anthropic_messages),
        ),
        ("Messages", || Box::new(AnthropicMessages::new(info())), check!(validate::anthropic_messages)),
        ("segments", || Box::new(Segments::new("t1")), check!(validate::segments)),
        ("JSON events", || Box::new(JsonEvents::new()), items),
    ]
}

/// Checks that every frame is an item that its reader knows.
fn items(frames: &[Frame]) -> Result<(), String> {
    for frame in frames {
        match StreamItem::from_json(&frame.data) {
            Ok(StreamItem::Unknown) => return Err(format!("unknown: {}", frame.data)),
            Ok(_) => {}
            Err(error) => return Err(error.to_string()),
        }
    }
    Ok(())
}

/// Encodes a whole turn.
pub(crate) fn encode(encoder: Box<dyn Encoder>, frames: Frames, turn: &[Result<Chunk>]) -> String {
    let mut encoding = Encoding::new(encoder).with_frames(frames);
    let mut bytes = encoding.begin().to_vec();
    turn.iter().for_each(|item| bytes.extend(encoding.push(item)));
    bytes.extend(encoding.end());
    String::from_utf8(bytes).unwrap()
}
