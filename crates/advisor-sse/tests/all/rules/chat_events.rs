//! Each rule of `ChatEvents`, and a stream that breaks it.

use super::{Rules, Texts, broken, missing, unnamed, validate, without};

const CONTENT: &str = r#"{"type":"content","content":"Hi"}"#;
const BARE: &str = r#"{"content":"Hi"}"#;
const REASONING: &str = r#"{"type":"reasoning","content":"Hm","block":"1.0"}"#;
const START: &str = r#"{"type":"tool_call_start","tool":"look","id":"c","args":{}}"#;
const OLD_START: &str = r#"{"type":"tool_call","tool":"look","id":"c","args":{}}"#;
const OPEN: &str = r#"{"type":"tool_call_open","tool":"look","id":"c","block":"1.0"}"#;
const ARGUMENTS: &str = r#"{"type":"tool_call_arguments","id":"c","arguments":"{"}"#;
const PROGRESS: &str = r#"{"type":"tool_call_progress","id":"c","progress":"half"}"#;
const END: &str = r#"{"type":"tool_call_end","tool":"look","id":"c","result":"It rains."}"#;
const ERROR: &str = r#"{"type":"error","error":"an internal error"}"#;
const RESTART: &str = r#"{"type":"restart"}"#;
const DONE: &str = "[DONE]";

const TEXTS: [Texts; 10] = [
    (&[], CONTENT, &["/content"]),
    (&[], BARE, &["/content"]),
    (&[], REASONING, &["/content", "/block"]),
    (&[], START, &["/tool", "/id"]),
    (&[], OLD_START, &["/tool", "/id"]),
    (&[], OPEN, &["/tool", "/id", "/block"]),
    (&[OPEN], ARGUMENTS, &["/id", "/arguments"]),
    (&[START], PROGRESS, &["/id"]),
    (&[START], END, &["/tool", "/id"]),
    (&[], ERROR, &["/error"]),
];

pub(super) fn rules() -> Rules {
    let mut all = vec![
        broken("the data is no JSON object", &["[]"]),
        broken("nothing was shown", &[DONE]),
        broken("nothing was shown", &[r#"{"type":"content","content":""}"#, DONE]),
        broken("nothing was shown", &[REASONING, RESTART, DONE]),
        broken("a start has `args`", &[&without(START, "/args")]),
        broken("a call starts once", &[START, START]),
        broken("a call starts once", &[START, END, OLD_START]),
        broken("a call opens once", &[OPEN, OPEN]),
        broken("a call opens once", &[OPEN, START, OPEN]),
        broken("arguments come between the opening and the start", &[ARGUMENTS]),
        broken("arguments come between the opening and the start", &[OPEN, START, ARGUMENTS]),
        broken("progress has a `progress`", &[START, &without(PROGRESS, "/progress")]),
        broken("progress is that of a running call", &[OPEN, PROGRESS]),
        broken("progress is that of a running call", &[START, END, PROGRESS]),
        broken("an end has a `result`", &[START, &without(END, "/result")]),
        broken("a call ends once, after its start", &[END]),
        broken("a call ends once, after its start", &[START, END, END]),
        broken("the type `ping` is unknown", &[r#"{"type":"ping"}"#]),
    ];
    all.extend(missing(&TEXTS));
    Rules {
        protocol: "chat events",
        check: validate::chat_events,
        source: include_str!("../../../src/validate/chat_events.rs"),
        frames: unnamed,
        whole: &[REASONING, CONTENT, BARE, OPEN, ARGUMENTS, START, PROGRESS, ERROR, END, RESTART, DONE],
        broken: all,
    }
}
