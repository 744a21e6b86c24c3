//! Every turn in every protocol: the frames keep the rules of the protocol and show the turn.

use advisor_core::StreamItem;
use advisor_sse::{
    AgUi, AnswerInfo, AnthropicMessages, ChatEvents, Encoder, Encoding, EventId, Frame, Frames, JsonEvents,
    OpenAiChat, OpenAiResponses, Segments, UiMessages, UiProfile, UsageChunk, validate,
};

use crate::turns::{self, Turn};

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
                Box::new(encoder.with_server_tools(advisor_sse::ServerTools::Shown))
            },
            check!(validate::openai_chat),
        ),
        ("Responses", || Box::new(OpenAiResponses::new(info())), check!(validate::openai_responses)),
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
pub(crate) fn encode(encoder: Box<dyn Encoder>, frames: Frames, turn: &Turn) -> String {
    let mut encoding = Encoding::new(encoder).with_frames(frames);
    let mut bytes = encoding.begin().to_vec();
    turn.iter().for_each(|item| bytes.extend(encoding.push(item)));
    bytes.extend(encoding.end());
    String::from_utf8(bytes).unwrap()
}

#[tokio::test]
async fn every_turn_keeps_the_rules_of_every_protocol() {
    for (name, turn) in turns::all().await {
        for (protocol, encoder, check) in protocols() {
            let stream = encode(encoder(), Frames::new(), &turn);
            let checked = check(&Frame::read_all(&stream));
            assert_eq!(checked, Ok(()), "{name} in {protocol}:\n{stream}");
        }
    }
}

#[tokio::test]
async fn law_r3_no_protocol_shows_the_text_of_an_error() {
    for (name, turn) in turns::all().await {
        for (protocol, encoder, _) in protocols() {
            let stream = encode(encoder(), Frames::new(), &turn);
            assert!(!stream.contains("canary"), "{name} in {protocol}:\n{stream}");
        }
    }
}

#[tokio::test]
async fn every_protocol_shows_the_whole_text() {
    for (name, turn) in turns::all().await {
        let text = turns::shown_text(&turn);
        // The pieces of a segment do not say whether they are text.
        for (protocol, encoder, _) in protocols().into_iter().filter(|(protocol, ..)| *protocol != "segments")
        {
            let stream = encode(encoder(), Frames::new(), &turn);
            let shown = text_of(&Frame::read_all(&stream));
            assert!(
                shown.replace("\n\n", "").contains(&text),
                "{name} in {protocol} shows {shown:?}:\n{stream}"
            );
        }
    }
}

/// Returns the text that a client of any protocol adds up from the pieces of text.
fn text_of(frames: &[Frame]) -> String {
    let pieces = ["/content", "/delta", "/choices/0/delta/content", "/delta/text", "/delta/value"];
    let is_text = |event: &serde_json::Value| {
        let kind = event.pointer("/type").and_then(|kind| kind.as_str()).unwrap_or_default();
        let kind_of_delta = event.pointer("/delta/type").and_then(|kind| kind.as_str()).unwrap_or("text");
        !(kind.contains("ARGS")
            || kind.contains("arguments")
            || kind.contains("easoning")
            || kind.contains("REASONING")
            || kind.contains("RESULT"))
            && kind_of_delta.starts_with("text")
    };
    let piece = |event: serde_json::Value| {
        let piece = pieces.iter().find_map(|place| event.pointer(place)?.as_str());
        piece.filter(|_| is_text(&event)).map(String::from)
    };
    frames.iter().filter_map(|frame| piece(frame.json()?)).collect()
}

#[tokio::test]
async fn a_client_resumes_behind_any_frame() {
    for (name, turn) in turns::all().await {
        for (protocol, encoder, _) in protocols() {
            let whole = encode(encoder(), Frames::new().with_ids(), &turn);
            let ids: Vec<EventId> = Frame::read_all(&whole)
                .iter()
                .map(|frame| frame.id.as_ref().unwrap().parse().unwrap())
                .collect();
            assert!(ids.is_sorted_by(|one, next| one < next), "{name} in {protocol}: {ids:?}");
            let mut behind = 0;
            for id in ids {
                behind = whole[behind..].find("\n\n").unwrap() + behind + 2;
                let rest = encode(encoder(), Frames::new().after(id), &turn);
                assert_eq!(rest, whole[behind..], "{name} in {protocol} after {id}");
            }
        }
    }
}

#[tokio::test]
async fn frames_without_their_end_are_refused() {
    for (name, turn) in turns::all().await {
        for (protocol, encoder, check) in
            protocols().into_iter().filter(|(protocol, ..)| *protocol != "JSON events")
        {
            let frames = Frame::read_all(&encode(encoder(), Frames::new(), &turn));
            for cut in 0..frames.len() {
                assert!(check(&frames[..cut]).is_err(), "{name} in {protocol}, the first {cut} frames");
            }
        }
    }
}
