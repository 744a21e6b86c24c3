//! Every turn in every protocol: the frames keep the rules of the protocol and show the turn.

use advisor_sse::{EventId, Frame, Frames};

use crate::table::{encode, protocols};
use crate::turns;

#[tokio::test]
async fn every_turn_keeps_the_rules_of_every_protocol() {
    for (name, turn) in turns::all().await {
        for (protocol, encoder, check) in protocols() {
            let stream = encode(encoder(), Frames::new(), &turn);
            let checked = check(&stream, &turn);
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
        for (protocol, encoder, _) in protocols().into_iter().filter(|(protocol, ..)| has_events(protocol)) {
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
    let chat = ["/choices/0/delta/content", "/choices/0/delta/refusal"];
    let pieces = ["/content", "/delta", "/delta/text", "/delta/value"];
    let is_text = |event: &serde_json::Value| {
        let kind = event.pointer("/type").and_then(|kind| kind.as_str()).unwrap_or_default();
        let kind_of_delta = event.pointer("/delta/type").and_then(|kind| kind.as_str()).unwrap_or("text");
        !(kind.contains("ARGS")
            || kind.contains("arguments")
            || kind.contains("easoning")
            || kind.contains("REASONING")
            || kind.contains("RESULT"))
            && (kind_of_delta.starts_with("text") || kind_of_delta == "refusal")
    };
    let piece = |event: serde_json::Value| {
        let piece = chat.iter().chain(&pieces).find_map(|place| event.pointer(place)?.as_str());
        piece.filter(|_| is_text(&event)).map(String::from)
    };
    frames.iter().filter_map(|frame| piece(frame.json()?)).collect()
}

#[tokio::test]
async fn a_client_resumes_behind_any_frame() {
    for (name, turn) in turns::all().await {
        for (protocol, encoder, _) in protocols().into_iter().filter(|(protocol, ..)| has_events(protocol)) {
            let whole = encode(encoder(), Frames::new().with_ids("t"), &turn);
            let ids: Vec<EventId> = Frame::read_all(&whole)
                .iter()
                .map(|frame| EventId::parse(frame.id.as_ref().unwrap().strip_prefix("t:").unwrap()).unwrap())
                .collect();
            assert!(ids.is_sorted_by(|one, next| one < next), "{name} in {protocol}: {ids:?}");
            let mut behind = 0;
            for id in ids {
                behind = whole[behind..].find("\n\n").unwrap() + behind + 2;
                let rest = encode(encoder(), Frames::new().with_ids("t").after(id), &turn);
                assert_eq!(rest, whole[behind..], "{name} in {protocol} after {id}");
            }
        }
    }
}

/// Clients of providers' protocols would run the tools of the server.
#[tokio::test]
async fn tools_of_the_server_are_no_calls_of_the_client() {
    let turns = turns::all().await;
    let (_, turn) = turns.iter().find(|(name, _)| *name == "one call").unwrap();
    for (protocol, encoder, _) in protocols() {
        if ["Chat Completions", "Responses", "Messages"].contains(&protocol) {
            let stream = encode(encoder(), Frames::new(), turn);
            assert!(!stream.contains("weather") && !stream.contains("clear"), "{protocol}: {stream}");
        }
    }
}

/// Returns whether the protocol has server-sent events.
pub(crate) fn has_events(protocol: &str) -> bool {
    protocol != "JSON lines"
}

/// Returns the frames of a stream: its events, or its lines.
pub(crate) fn frames_of<'a>(protocol: &str, stream: &'a str) -> Vec<&'a str> {
    stream.split_inclusive(if has_events(protocol) { "\n\n" } else { "\n" }).collect()
}
