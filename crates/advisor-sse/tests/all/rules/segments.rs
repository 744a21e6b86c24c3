//! Each rule of segments, and a stream that breaks it.

use serde_json::json;

use super::{Life, Rules, Texts, broken, missing, unnamed, validate, with, without};

const START: &str = r#"{"type":"SEGMENT_START","turn_id":"t","segment_id":"s","segment_type":"text"}"#;
const PIECE: &str = r#"{"type":"SEGMENT_CONTENT","turn_id":"t","segment_id":"s","delta":"Hi"}"#;
const END: &str = r#"{"type":"SEGMENT_END","turn_id":"t","segment_id":"s"}"#;
const VOID: &str = r#"{"type":"SEGMENT_END","turn_id":"t","segment_id":"s","metadata":{"interrupted":true}}"#;
const DONE: &str = "[DONE]";

const LIFE: Life =
    Life { name: "segment `s`", before: &[], open: START, piece: PIECE, close: END, end: &[DONE] };

const TEXTS: [Texts; 3] = [
    (&[], START, &["/type", "/turn_id", "/segment_id", "/segment_type"]),
    (&[START], PIECE, &["/turn_id", "/segment_id"]),
    (&[START], END, &["/turn_id", "/segment_id"]),
];

pub(super) fn rules() -> Rules {
    let not_open = "the segment `s` closes while it is not open";
    let mut all = vec![
        broken("the data is no JSON object", &["[]"]),
        broken("content has a `delta`", &[START, &without(PIECE, "/delta")]),
        broken("the type `PING` is unknown", &[&with(START, "/type", json!("PING"))]),
        // A void attempt ends its segments once more, and once only.
        broken(not_open, &[VOID]),
        broken(not_open, &[START, END, VOID, VOID]),
        broken(not_open, &[START, END, VOID, END]),
        broken("the segment `s` opens twice", &[START, END, VOID, START]),
    ];
    all.extend(missing(&TEXTS));
    all.extend(LIFE.broken());
    Rules {
        protocol: "segments",
        check: validate::segments,
        source: include_str!("../../../src/validate/segments.rs"),
        frames: unnamed,
        whole: &[START, PIECE, END, VOID, DONE],
        broken: all,
    }
}
