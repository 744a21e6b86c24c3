//! All protocols, and a turn in each of them. `tests/wire` of the workspace takes this file, too.

use advisor_core::{Chunk, Result, StreamItem};
use advisor_sse::{
    AgUi, AnswerInfo, AnthropicMessages, ChatEvents, Encoder, Encoding, Frame, Frames, JsonLines, OpenAiChat,
    OpenAiResponses, UiMessages,
};

use crate::validate;

/// Checks the whole stream of a turn.
pub(crate) type Check = fn(&str, &[Result<Chunk>]) -> Result<(), String>;

/// A protocol: its name, a new encoder, and the check of its streams.
pub(crate) type Protocol = (&'static str, fn() -> Box<dyn Encoder>, Check);

fn info() -> AnswerInfo {
    AnswerInfo { id: "answer-1".into(), model: "chain".into(), created: 1_700_000_000 }
}

macro_rules! check {
    ($validator:expr) => {
        |stream, _| {
            let frames = Frame::read_all(stream);
            $validator(&frames)
        }
    };
}

pub(crate) fn protocols() -> Vec<Protocol> {
    vec![
        ("chat events", || Box::new(ChatEvents::default()), check!(validate::chat_events)),
        (
            "chat events with blocks",
            || Box::new(ChatEvents::default().with_blocks()),
            check!(validate::chat_events),
        ),
        ("UI messages", || Box::new(UiMessages::new("m1")), check!(validate::ui_messages)),
        ("AG-UI", || Box::new(AgUi::new("t1", "r1")), check!(validate::ag_ui)),
        ("Chat Completions", || Box::new(OpenAiChat::new(info())), check!(validate::openai_chat)),
        (
            "Chat Completions with usage",
            || Box::new(OpenAiChat::new(info()).with_usage()),
            check!(validate::openai_chat),
        ),
        ("Responses", || Box::new(OpenAiResponses::new(info())), check!(validate::openai_responses)),
        ("Messages", || Box::new(AnthropicMessages::new(info())), check!(validate::anthropic_messages)),
        ("JSON lines", || Box::new(JsonLines), |stream, _| items(stream.lines())),
    ]
}

/// Checks that items have a begin and an end, and that their reader knows each of them.
fn items<'a>(items: impl Iterator<Item = &'a str>) -> Result<(), String> {
    let mut place = Place::Before;
    for json in items {
        let item = StreamItem::from_json(json).map_err(|error| error.to_string())?;
        place = match (place, item) {
            (place, StreamItem::Unknown) if json == r#"{"type":"keep_alive"}"# => place,
            (Place::Before, StreamItem::Begin { .. }) => Place::Within,
            (Place::Within, StreamItem::Error(_) | StreamItem::Chunk(Chunk::Completed(_))) => Place::Behind,
            (Place::Within, StreamItem::Chunk(_)) => Place::Within,
            _ => return Err(format!("out of order: {json}")),
        };
    }
    if place == Place::Behind { Ok(()) } else { Err("the stream has no end".into()) }
}

#[derive(Clone, Copy, PartialEq)]
enum Place {
    Before,
    Within,
    Behind,
}

/// Encodes a whole turn.
pub(crate) fn encode(encoder: Box<dyn Encoder>, frames: Frames, turn: &[Result<Chunk>]) -> String {
    let mut encoding = Encoding::new(encoder).with_frames(frames);
    let mut bytes = encoding.begin().to_vec();
    turn.iter().for_each(|item| bytes.extend(encoding.push(item)));
    bytes.extend(encoding.end());
    String::from_utf8(bytes).unwrap()
}
