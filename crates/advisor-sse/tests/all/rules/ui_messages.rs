//! Each rule of the AI SDK's UI messages, also those of later profiles, and a stream that breaks it.

use advisor_sse::UiProfile;
use serde_json::{Value, json};

use super::{Broken, Life, Rules, broken, check_broken, owned, unnamed, validate, with, without};

const START: &str = r#"{"type":"start","messageId":"m"}"#;
const STEP: &str = r#"{"type":"start-step"}"#;
const STEP_END: &str = r#"{"type":"finish-step"}"#;
const FINISH: &str = r#"{"type":"finish"}"#;
const ERROR: &str = r#"{"type":"error","errorText":"an internal error"}"#;
const ABORT: &str = r#"{"type":"abort"}"#;
const DONE: &str = "[DONE]";
const TEXT: &str = r#"{"type":"text-start","id":"p"}"#;
const TEXT_PIECE: &str = r#"{"type":"text-delta","id":"p","delta":"Hi"}"#;
const TEXT_END: &str = r#"{"type":"text-end","id":"p"}"#;
const REASONING: &str = r#"{"type":"reasoning-start","id":"p"}"#;
const THOUGHT: &str = r#"{"type":"reasoning-delta","id":"p","delta":"Hm"}"#;
const REASONING_END: &str = r#"{"type":"reasoning-end","id":"p"}"#;
const CALL: &str = r#"{"type":"tool-input-start","toolCallId":"c","toolName":"look"}"#;
const CALL_PIECE: &str = r#"{"type":"tool-input-delta","toolCallId":"c","inputTextDelta":"{}"}"#;
const INPUT: &str = r#"{"type":"tool-input-available","toolCallId":"c","toolName":"look","input":{}}"#;
const OUTPUT: &str = r#"{"type":"tool-output-available","toolCallId":"c","output":"It rains."}"#;
const OUTPUT_ERROR: &str = r#"{"type":"tool-output-error","toolCallId":"c","errorText":"it failed"}"#;
const SOURCE: &str = r#"{"type":"source-url","sourceId":"s","url":"https://example.org"}"#;
const FILE: &str = r#"{"type":"file","url":"https://example.org","mediaType":"image/png"}"#;
const RESTART: &str = r#"{"type":"data-restart","data":{"round":1}}"#;
const INCOMPLETE: &str = r#"{"type":"data-incomplete","data":{"reason":"length","message":"cut"}}"#;
/// These are in the profile V6 only.
const INPUT_ERROR: &str =
    r#"{"type":"tool-input-error","toolCallId":"c","toolName":"look","input":{},"errorText":"no JSON"}"#;
const DENIED: &str = r#"{"type":"tool-output-denied","toolCallId":"c"}"#;
const APPROVAL: &str = r#"{"type":"tool-approval-request","approvalId":"t.c","toolCallId":"c"}"#;
const FINISH_WITH_REASON: &str = r#"{"type":"finish","finishReason":"stop"}"#;

/// An event, the frames before it, and its fields beside the type.
type Event = (&'static [&'static str], &'static str, &'static [&'static str]);

const EVENTS: [Event; 21] = [
    (&[], START, &["messageId"]),
    (&[START], STEP, &[]),
    (&[START, STEP], TEXT, &["id"]),
    (&[START, STEP, TEXT], TEXT_PIECE, &["id", "delta"]),
    (&[START, STEP, TEXT], TEXT_END, &["id"]),
    (&[START, STEP], REASONING, &["id"]),
    (&[START, STEP, REASONING], THOUGHT, &["id", "delta"]),
    (&[START, STEP, REASONING], REASONING_END, &["id"]),
    (&[START, STEP], CALL, &["toolCallId", "toolName"]),
    (&[START, STEP, CALL], CALL_PIECE, &["toolCallId", "inputTextDelta"]),
    (&[START, STEP, CALL], INPUT, &["toolCallId", "toolName", "input"]),
    (&[START, STEP, INPUT], OUTPUT, &["toolCallId", "output"]),
    (&[START, STEP, INPUT], OUTPUT_ERROR, &["toolCallId", "errorText"]),
    (&[START], SOURCE, &["sourceId", "url"]),
    (&[START], FILE, &["url", "mediaType"]),
    (&[START], RESTART, &["data"]),
    (&[START], INCOMPLETE, &["data"]),
    (&[START, STEP], STEP_END, &[]),
    (&[START], FINISH, &[]),
    (&[START], ERROR, &["errorText"]),
    (&[START], ABORT, &[]),
];

const ADDED_BY_V6: [Event; 4] = [
    (&[START, STEP, CALL], INPUT_ERROR, &["toolCallId", "toolName", "input", "errorText"]),
    (&[START], DENIED, &["toolCallId"]),
    (&[START, STEP, INPUT], APPROVAL, &["approvalId", "toolCallId"]),
    (&[START], FINISH_WITH_REASON, &["finishReason"]),
];

const LIVES: [Life; 2] = [
    Life {
        name: "text `p`",
        before: &[START, STEP],
        open: TEXT,
        piece: TEXT_PIECE,
        close: TEXT_END,
        end: &[STEP_END],
    },
    Life {
        name: "reasoning `p`",
        before: &[START, STEP],
        open: REASONING,
        piece: THOUGHT,
        close: REASONING_END,
        end: &[STEP_END],
    },
];

/// Returns the name of an event.
fn name(event: &str) -> String {
    let event: Value = serde_json::from_str(event).unwrap();
    event["type"].as_str().unwrap().to_owned()
}

/// Returns the streams in which an event lacks a field, or has one too many.
fn fields(events: &[Event]) -> Vec<Broken> {
    let row = |(before, event, fields): &Event| {
        let name = name(event);
        let stream = |event: &str| [owned(before), vec![event.to_owned()]].concat();
        let mut more: Value = serde_json::from_str(event).unwrap();
        more["more"] = json!(1);
        let unknown =
            Broken { stream: stream(&more.to_string()), rule: format!("`{name}` has no field `more`") };
        let lacking = fields.iter().map(|field| Broken {
            stream: stream(&without(event, &format!("/{field}"))),
            rule: format!("`{name}` has a field `{field}`"),
        });
        lacking.chain([unknown]).collect::<Vec<_>>()
    };
    events.iter().flat_map(row).collect()
}

pub(super) fn rules() -> Rules {
    let number = |event: &str, place: &str| with(event, place, json!(1));
    let mut all = vec![
        broken("the data is no JSON object", &["[]"]),
        broken("the string `type` is missing", &["{}"]),
        broken("the string `id` is missing", &[START, STEP, &number(TEXT, "/id")]),
        broken("the string `id` is missing", &[START, STEP, &number(REASONING, "/id")]),
        broken("the string `toolCallId` is missing", &[START, STEP, &number(CALL, "/toolCallId")]),
        broken("`[DONE]` follows an end of the message", &[DONE]),
        broken("`[DONE]` follows an end of the message", &[START, DONE]),
        broken("only `[DONE]` follows the end of the message", &[START, FINISH, FINISH]),
        broken("only `[DONE]` follows the end of the message", &[START, ERROR, STEP]),
        broken("only `[DONE]` follows the end of the message", &[START, ABORT, ERROR]),
        broken("the profile has no type `ping`", &[START, r#"{"type":"ping"}"#]),
        broken("the message starts once, first", &[STEP]),
        broken("the message starts once, first", &[ERROR]),
        broken("the message starts once, first", &[START, START]),
        broken("parts are in a step", &[START, TEXT]),
        broken("parts are in a step", &[START, STEP, STEP_END, REASONING]),
        broken("calls are in a step", &[START, CALL]),
        broken("steps do not overlap", &[START, STEP, STEP]),
        broken("a step finishes once", &[START, STEP_END]),
        broken("a step finishes once", &[START, STEP, STEP_END, STEP_END]),
        broken("the last step finishes before the message", &[START, STEP, FINISH]),
        broken("the call `c` has not closed", &[START, STEP, OUTPUT]),
        broken("the call `c` has not closed", &[START, STEP, CALL, OUTPUT_ERROR]),
        broken("a call has one output", &[START, STEP, INPUT, OUTPUT, OUTPUT]),
        broken("a call has one output", &[START, STEP, INPUT, OUTPUT_ERROR, OUTPUT]),
        // The input of a call may come whole, without a start.
        broken("the call `c` opens twice", &[START, STEP, CALL, CALL]),
        broken("the call `c` opens twice", &[START, STEP, CALL, INPUT, CALL]),
        broken("the call `c` opens twice", &[START, STEP, INPUT, CALL]),
        broken("the call `c` opens twice", &[START, STEP, CALL, INPUT, INPUT]),
        broken("the call `c` is extended while it is not open", &[START, STEP, CALL_PIECE]),
        broken("the call `c` is extended while it is not open", &[START, STEP, CALL, INPUT, CALL_PIECE]),
        broken("the call `c` is still open", &[START, STEP, CALL, STEP_END]),
        broken("the profile has no type `tool-input-error`", &[START, STEP, CALL, INPUT_ERROR]),
        broken("the profile has no type `tool-output-denied`", &[START, STEP, INPUT, DENIED]),
        broken("the profile has no type `tool-approval-request`", &[START, STEP, INPUT, APPROVAL]),
        broken("`finish` has no field `finishReason`", &[START, FINISH_WITH_REASON]),
        // Calls of earlier turns end before the first step.
        broken("a call has one output", &[START, OUTPUT, OUTPUT_ERROR]),
        broken("the call `c` has not closed", &[START, STEP, STEP_END, STEP, OUTPUT]),
    ];
    all.extend(fields(&EVENTS));
    all.extend(LIVES.iter().flat_map(Life::broken));
    Rules {
        protocol: "UI messages",
        check: |frames| validate::ui_messages(UiProfile::V5, frames),
        source: include_str!("../../../src/validate/ui_messages.rs"),
        frames: unnamed,
        whole: &[
            START, STEP, TEXT, TEXT_PIECE, TEXT_END, CALL, CALL_PIECE, INPUT, OUTPUT, STEP_END, FINISH, DONE,
        ],
        broken: all,
    }
}

/// Returns the streams that break a rule of the later profile: it has more types, and a finish needs its reason.
pub(super) fn later() -> Vec<Broken> {
    let mut all = fields(&ADDED_BY_V6);
    all.extend([
        broken("`finish` has a field `finishReason`", &[START, FINISH]),
        broken("the call `c` opens twice", &[START, STEP, CALL, INPUT_ERROR, INPUT]),
        broken("a call has one output", &[START, STEP, CALL, INPUT_ERROR, OUTPUT_ERROR]),
        broken("a call has one output", &[START, STEP, INPUT, APPROVAL, DENIED, OUTPUT]),
        broken("a denied call has a request for its approval", &[START, STEP, INPUT, DENIED]),
        broken("the call `c` has not closed", &[START, STEP, CALL, DENIED]),
        broken("the call `c` has not closed", &[START, STEP, CALL, APPROVAL]),
        broken("calls are in a step", &[START, APPROVAL]),
        broken("a call with an output needs no approval", &[START, STEP, INPUT, OUTPUT, APPROVAL]),
        broken("a call has one request for its approval", &[START, STEP, INPUT, APPROVAL, APPROVAL]),
    ]);
    all
}

#[test]
fn later_profile_has_rules_of_its_own() {
    for profile in [UiProfile::V6, UiProfile::V7] {
        later().iter().for_each(|broken| {
            check_broken(|frames| validate::ui_messages(profile, frames), unnamed, broken)
        });
    }
}
