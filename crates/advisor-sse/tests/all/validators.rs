//! The validators refuse streams that break a rule.

use advisor_sse::{Frame, Frames};

use crate::table::{encode, protocols};
use crate::turns;

/// Changes of a stream that no protocol allows.
fn changes(frames: &[Frame]) -> Vec<(&'static str, Vec<Frame>)> {
    let doubled = || frames.iter().flat_map(|frame| [frame.clone(), frame.clone()]).collect();
    let mut reversed = frames.to_vec();
    reversed.reverse();
    let mut after_end = frames.to_vec();
    after_end.extend(frames.last().cloned());
    let mut unknown = frames.to_vec();
    unknown[0].data = r#"{"type":"of_another_protocol"}"#.into();
    let mut no_json = frames.to_vec();
    no_json[0].data = "{".into();
    vec![
        ("doubled", doubled()),
        ("reversed", reversed),
        ("after the end", after_end),
        ("an unknown type", unknown),
        ("no JSON", no_json),
    ]
}

#[tokio::test]
async fn changed_streams_are_refused() {
    for (name, turn) in turns::all().await {
        for (protocol, encoder, check) in
            protocols().into_iter().filter(|(protocol, ..)| *protocol != "JSON events")
        {
            let frames = Frame::read_all(&encode(encoder(), Frames::new(), &turn));
            for (change, changed) in changes(&frames).into_iter().filter(|(_, changed)| *changed != frames) {
                assert!(check(&changed).is_err(), "{name} in {protocol}, {change}");
            }
        }
    }
}

/// Comments are no frames, and a `ping` is one that breaks no rule.
#[tokio::test]
async fn keep_alive_is_allowed_between_any_frames() {
    for (name, turn) in turns::all().await {
        for (protocol, encoder, check) in
            protocols().into_iter().filter(|(protocol, ..)| *protocol != "JSON events")
        {
            let alive = Frame::read_all(std::str::from_utf8(encoder().keep_alive()).unwrap());
            let frames = Frame::read_all(&encode(encoder(), Frames::new(), &turn));
            let mut kept = frames.clone();
            (1..frames.len()).rev().for_each(|place| drop(kept.splice(place..place, alive.clone())));
            assert_eq!(check(&kept), Ok(()), "{name} in {protocol}");
        }
    }
}
