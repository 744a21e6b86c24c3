//! The validators refuse streams that break a rule.

use advisor_sse::Frames;

use crate::protocols::frames_of;
use crate::table::{encode, protocols};
use crate::turns;

/// Returns changes of a stream that no protocol allows.
fn changes(frames: &[&str]) -> [(&'static str, String); 6] {
    let end = frames.last().copied().unwrap_or_default();
    let with_first = |data: &str| {
        let first = frames[0].replace(frames[0].split("data: ").last().unwrap_or_default().trim_end(), data);
        first + &frames[1..].concat()
    };
    [
        ("doubled", frames.iter().flat_map(|frame| [*frame, *frame]).collect()),
        ("reversed", frames.iter().rev().copied().collect()),
        ("without its end", frames[..frames.len() - 1].concat()),
        ("after the end", frames.concat() + end),
        ("an unknown type", with_first(r#"{"type":"of_another_protocol"}"#)),
        ("no JSON", with_first("{")),
    ]
}

#[tokio::test]
async fn changed_streams_are_refused() {
    for (name, turn) in turns::all().await {
        for (protocol, encoder, check) in protocols() {
            let stream = encode(encoder(), Frames::new(), &turn);
            let changes = changes(&frames_of(protocol, &stream));
            for (change, changed) in changes.into_iter().filter(|(_, changed)| *changed != stream) {
                assert!(check(&changed, &turn).is_err(), "{name} in {protocol}, {change}:\n{changed}");
            }
        }
    }
}

/// Comments are no frames. A `ping` and a line of an unknown type are some, which readers skip.
#[tokio::test]
async fn keep_alive_is_allowed_between_any_frames() {
    for (name, turn) in turns::all().await {
        for (protocol, encoder, check) in protocols() {
            let alive = std::str::from_utf8(encoder().keep_alive()).unwrap().to_owned();
            let stream = encode(encoder(), Frames::new(), &turn);
            let kept = frames_of(protocol, &stream).join(&alive);
            assert!(!alive.is_empty(), "{name} in {protocol}");
            assert_eq!(check(&kept, &turn), Ok(()), "{name} in {protocol}");
        }
    }
}

/// The bytes that a proxy and a client see while nothing else is sent.
#[test]
fn keep_alives_have_the_documented_bytes() {
    for (protocol, encoder, _) in protocols() {
        let expected = match protocol {
            "Messages" => "event: ping\ndata: {\"type\":\"ping\"}\n\n",
            "JSON lines" => "{\"type\":\"keep_alive\"}\n",
            _ => ": keep-alive\n\n",
        };
        assert_eq!(encoder().keep_alive(), expected.as_bytes(), "{protocol}");
    }
}

#[test]
fn headers_keep_proxies_from_holding_a_stream_back() {
    for (protocol, encoder, _) in protocols() {
        let kind = match protocol {
            "JSON lines" => "application/x-ndjson",
            _ => "text/event-stream",
        };
        let mut expected =
            vec![("content-type", kind), ("cache-control", "no-store"), ("x-accel-buffering", "no")];
        if protocol.starts_with("UI messages") {
            expected.push(("x-vercel-ai-ui-message-stream", "v1"));
        }
        assert_eq!(encoder().headers(), expected, "{protocol}");
    }
}
