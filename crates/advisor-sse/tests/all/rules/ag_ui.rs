//! Each rule of AG-UI, and a stream that breaks it.

use serde_json::json;

use super::{Life, Rules, Texts, broken, missing, unnamed, validate, with, without};

const RUN: &str = r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#;
const END: &str = r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r"}"#;
const ERROR: &str = r#"{"type":"RUN_ERROR","message":"an internal error"}"#;
const STEP: &str = r#"{"type":"STEP_STARTED","stepName":"s"}"#;
const STEP_END: &str = r#"{"type":"STEP_FINISHED","stepName":"s"}"#;
const TEXT: &str = r#"{"type":"TEXT_MESSAGE_START","messageId":"m","role":"assistant"}"#;
const TEXT_PIECE: &str = r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"Hi"}"#;
const TEXT_END: &str = r#"{"type":"TEXT_MESSAGE_END","messageId":"m"}"#;
const REASONING: &str = r#"{"type":"REASONING_START","messageId":"m"}"#;
const THOUGHT: &str = r#"{"type":"REASONING_MESSAGE_START","messageId":"m","role":"reasoning"}"#;
const THOUGHT_PIECE: &str = r#"{"type":"REASONING_MESSAGE_CONTENT","messageId":"m","delta":"Hm"}"#;
const THOUGHT_END: &str = r#"{"type":"REASONING_MESSAGE_END","messageId":"m"}"#;
const REASONING_END: &str = r#"{"type":"REASONING_END","messageId":"m"}"#;
const CALL: &str = r#"{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"look"}"#;
const CALL_PIECE: &str = r#"{"type":"TOOL_CALL_ARGS","toolCallId":"c","delta":"{}"}"#;
const CALL_END: &str = r#"{"type":"TOOL_CALL_END","toolCallId":"c"}"#;
const RESULT: &str = r#"{"type":"TOOL_CALL_RESULT","messageId":"m2","toolCallId":"c","content":"It rains."}"#;
const SNAPSHOT: &str = r#"{"type":"STATE_SNAPSHOT","snapshot":{"tools":1}}"#;
const INTERRUPT: &str = r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":{"type":"interrupt","interrupts":[{"id":"t.c","reason":"tool_call","toolCallId":"c"}]}}"#;
const CUSTOM: &str = r#"{"type":"CUSTOM","name":"usage","value":null}"#;

/// A run with each type of event.
const WHOLE: &[&str] = &[
    RUN, STEP, REASONING, THOUGHT, THOUGHT_PIECE, THOUGHT_END, REASONING_END, TEXT, TEXT_PIECE, TEXT_END,
    CALL, CALL_PIECE, CALL_END, RESULT, SNAPSHOT, CUSTOM, STEP_END, END,
];

const LIVES: [Life; 4] = [
    Life { name: "text `m`", before: &[RUN], open: TEXT, piece: TEXT_PIECE, close: TEXT_END, end: &[END] },
    Life {
        name: "reasoning `m`",
        before: &[RUN],
        open: REASONING,
        piece: THOUGHT,
        close: REASONING_END,
        end: &[END],
    },
    Life {
        name: "reasoning message `m`",
        before: &[RUN, REASONING],
        open: THOUGHT,
        piece: THOUGHT_PIECE,
        close: THOUGHT_END,
        end: &[REASONING_END, END],
    },
    Life { name: "call `c`", before: &[RUN], open: CALL, piece: CALL_PIECE, close: CALL_END, end: &[END] },
];

const TEXTS: [Texts; 18] = [
    (&[], RUN, &["/type", "/threadId", "/runId"]),
    (&[RUN], END, &["/threadId", "/runId"]),
    (&[RUN], ERROR, &["/message"]),
    (&[RUN], STEP, &["/stepName"]),
    (&[RUN, STEP], STEP_END, &["/stepName"]),
    (&[RUN], TEXT, &["/messageId", "/role"]),
    (&[RUN, TEXT], TEXT_PIECE, &["/messageId", "/delta"]),
    (&[RUN, TEXT], TEXT_END, &["/messageId"]),
    (&[RUN], REASONING, &["/messageId"]),
    (&[RUN, REASONING], THOUGHT, &["/messageId", "/role"]),
    (&[RUN, REASONING, THOUGHT], THOUGHT_PIECE, &["/messageId", "/delta"]),
    (&[RUN, REASONING, THOUGHT], THOUGHT_END, &["/messageId"]),
    (&[RUN, REASONING], REASONING_END, &["/messageId"]),
    (&[RUN], CALL, &["/toolCallId", "/toolCallName"]),
    (&[RUN, CALL], CALL_PIECE, &["/toolCallId", "/delta"]),
    (&[RUN, CALL, CALL_END], RESULT, &["/messageId", "/toolCallId", "/content"]),
    (&[RUN], CUSTOM, &["/name"]),
    (
        &[RUN, CALL, CALL_END],
        INTERRUPT,
        &["/outcome/interrupts/0/id", "/outcome/interrupts/0/reason", "/outcome/interrupts/0/toolCallId"],
    ),
];

pub(super) fn rules() -> Rules {
    let other_run = END.replace("\"r\"", "\"r2\"");
    let empty = |piece: &str, delta: &str| piece.replace(delta, "");
    let mut all = vec![
        broken("the data is no JSON object", &["[]"]),
        broken("a run starts first", &[TEXT]),
        broken("a run starts first", &[END]),
        broken("a run starts once", &[RUN, RUN]),
        broken("the run that finishes is the one that started", &[RUN, &other_run]),
        broken("a step starts once", &[RUN, STEP, STEP]),
        broken("a step finishes after its start", &[RUN, STEP_END]),
        broken("a step finishes after its start", &[RUN, STEP, STEP_END, STEP_END]),
        broken("all steps finish before the run", &[RUN, STEP, END]),
        broken("a delta is not empty", &[RUN, TEXT, &empty(TEXT_PIECE, "Hi")]),
        broken("a delta is not empty", &[RUN, REASONING, THOUGHT, &empty(THOUGHT_PIECE, "Hm")]),
        broken("a delta is not empty", &[RUN, CALL, &empty(CALL_PIECE, "{}")]),
        // Before all other content, a result is that of a call of an earlier run.
        broken("the call `c` has not closed", &[RUN, STEP, RESULT]),
        broken("a call has one result", &[RUN, RESULT, RESULT]),
        broken(
            "an outcome is an interrupt",
            &[RUN, &with(INTERRUPT, "/outcome", json!({"type": "success"}))],
        ),
        broken("an outcome is an interrupt", &[RUN, &with(INTERRUPT, "/outcome/type", json!("success"))]),
        broken(
            "an interrupt waits for something",
            &[RUN, &with(INTERRUPT, "/outcome/interrupts", json!([]))],
        ),
        broken("the call `c` has not closed", &[RUN, INTERRUPT]),
        broken("a call with a result needs no approval", &[RUN, CALL, CALL_END, RESULT, INTERRUPT]),
        broken("the call `c` has not closed", &[RUN, CALL, RESULT]),
        broken("a call has one result", &[RUN, CALL, CALL_END, RESULT, RESULT]),
        broken("a state has its snapshot", &[RUN, &without(SNAPSHOT, "/snapshot")]),
        broken("a custom event has a value", &[RUN, &without(CUSTOM, "/value")]),
        broken("the type `PING` is unknown", &[RUN, r#"{"type":"PING"}"#]),
    ];
    all.extend(missing(&TEXTS));
    all.extend(LIVES.iter().flat_map(Life::broken));
    Rules {
        protocol: "AG-UI",
        check: validate::ag_ui,
        source: include_str!("../../../src/validate/ag_ui.rs"),
        frames: unnamed,
        whole: WHOLE,
        broken: all,
    }
}
