//! Roles take turns, and the API accepts each message.

use advisor_core::{Citation, Media, MessageContent, Part};

use super::*;

#[test]
fn results_and_text_of_a_turn_are_one_message() {
    let (first, second) = (ToolCall::new("c1", "f", "{}"), ToolCall::new("c2", "g", r#"{"a": 1}"#));
    let messages = vec![
        Message::user("Hi"),
        Message::user("there"),
        Message::assistant_blocks(vec![
            Block::text("Let me look."),
            first.clone().into(),
            // The API refuses white space alone.
            Block::text("\n"),
            second.clone().into(),
        ]),
        Message::tool(ToolResult::new(&first, vec!["one".into()])),
        Message::tool(ToolResult::error(&second, "two")),
        Message::user("And?"),
        Message::assistant("a"),
        Message::assistant("b"),
    ];
    let result = |id: &str, content: &str| json!({"type": "tool_result", "tool_use_id": id, "content": [text(content)]});
    let mut failed = result("c2", "two");
    failed["is_error"] = true.into();
    assert_eq!(
        on_the_wire(messages),
        json!([
            {"role": "user", "content": [text("Hi"), text("there")]},
            {"role": "assistant", "content": [
                text("Let me look."),
                {"type": "tool_use", "id": "c1", "name": "f", "input": {}},
                {"type": "tool_use", "id": "c2", "name": "g", "input": {"a": 1}},
            ]},
            {"role": "user", "content": [result("c1", "one"), failed, text("And?")]},
            {"role": "assistant", "content": [text("a"), text("b")]},
        ])
    );
}

#[test]
fn results_come_before_text_of_the_same_turn() {
    let call = ToolCall::new("c1", "f", "{}");
    let answer = Message::assistant_blocks(vec![call.clone().into()]);
    let result = Message::tool(ToolResult::new(&call, vec![]));
    let wire = on_the_wire(vec![
        Message::user("a"),
        answer,
        Message::user("b"),
        Message::system("s"),
        result,
        Message::user("c"),
    ]);
    let last = &wire[2]["content"];
    assert_eq!(wire.as_array().map(Vec::len), Some(3));
    assert_eq!(last[0], json!({"type": "tool_result", "tool_use_id": "c1"}), "nothing is a result, too");
    assert_eq!((&last[1], &last[2]), (&text("b"), &text("c")));
}

#[test]
fn failures_are_text_and_never_empty() {
    let call = ToolCall::new("c1", "f", "{}");
    let content = |parts: Vec<Part>| {
        let mut result = ToolResult::new(&call, parts);
        result.is_error = true;
        content_of(Message::tool(result))[0]["content"].clone()
    };
    let blank = json!([text("[the tool failed without a message]")]);
    assert_eq!(content(vec![]), blank);
    assert_eq!(content(vec![" \n".into()]), blank);
    let note = |mime: &str| text(&format!("[{mime} left out: the Messages API does not take it]"));
    let media = |mime: &str| Media::from_bytes(mime, b"abc".to_vec());
    let parts = vec![
        Part::Image(media("image/png")),
        "no".into(),
        Part::File(media("text/plain")),
        Part::Json(json!({"a": 1})),
    ];
    let expected = json!([note("image/png"), text("no"), note("text/plain"), text("{\"a\":1}")]);
    assert_eq!(content(parts), expected);
}

#[test]
fn system_messages_are_a_separate_field() {
    let messages = vec![
        Message::system("one"),
        Message::user("a"),
        Message::system(" "),
        Message::system("two"),
        Message::user("b"),
    ];
    let body = written(&ChatRequest::new(messages));
    assert_eq!(body["system"], json!([text("one"), text("two")]));
    assert_eq!(body["messages"], json!([{"role": "user", "content": [text("a"), text("b")]}]));
    assert_eq!(written(&ChatRequest::new(Message::user("a"))).get("system"), None);
}

#[test]
fn nothing_empty_is_sent() {
    assert_eq!(content_of(Message::user(" \n")), json!([text("[empty message]")]));
    assert_eq!(content_of(Message::user_parts(vec![])), json!([text("[empty message]")]));
    let silent = Message::assistant_blocks(vec![
        Block::text(" "),
        Block::new(BlockContent::Reasoning("Hm.".into())),
        Block::new(BlockContent::Citation(Citation::default())),
    ]);
    let wire = on_the_wire(vec![Message::user("a"), silent, Message::user("b")]);
    assert_eq!(wire, json!([{"role": "user", "content": [text("a"), text("b")]}]));
    assert_eq!(on_the_wire(vec![]), json!([]));
    assert_eq!(on_the_wire(vec![Message::assistant("a")])[0]["role"], "assistant");
}

/// The API refuses it: "The final block in an assistant message cannot be `thinking`".
#[test]
fn law_m1_thinking_alone_is_never_sent() {
    let signed = || thought("Hm.", FORMAT, json!({"signature": "s"}));
    let hidden = || opaque(json!({"type": "redacted_thinking", "data": "ZGF0YQ=="}));
    let sent = |blocks: Vec<Block>| {
        on_the_wire(vec![Message::user("a"), Message::assistant_blocks(blocks), Message::user("b")])
    };
    let without = json!([{"role": "user", "content": [text("a"), text("b")]}]);
    assert_eq!(sent(vec![signed()]), without);
    assert_eq!(sent(vec![signed(), Block::text(" "), signed()]), without);
    let unsendable = json!([text("[content that cannot be shown here]")]);
    assert_eq!(sent(vec![signed(), hidden()])[1]["content"], unsendable);
    let kinds = |blocks| {
        let sent = sent(blocks);
        sent[1]["content"]
            .as_array()
            .expect("blocks")
            .iter()
            .map(|block| block["type"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(kinds(vec![signed(), hidden(), Block::text("Hi")]), ["thinking", "redacted_thinking", "text"]);
}

#[test]
fn thinking_goes_back_unchanged_and_in_order() {
    let hidden = json!({"type": "redacted_thinking", "data": "ZGF0YQ=="});
    let call = ToolCall::new("c1", "f", r#"{ "a" :1.0}"#);
    let blocks = vec![
        thought("Hm.", FORMAT, json!({"signature": "s1"})),
        opaque(hidden.clone()),
        Block::text("a"),
        thought("", FORMAT, json!({"signature": "s2"})),
        call.clone().into(),
    ];
    let messages = vec![
        Message::user("Hi"),
        Message::assistant_blocks(blocks),
        Message::tool(ToolResult::new(&call, vec!["1".into()])),
    ];
    let body =
        body(&ChatRequest::new(messages), "m", &FORMAT.into(), &BodySettings::default()).expect("a body").0;
    let written = String::from_utf8(body.to_vec()).expect("text");
    assert!(written.contains(r#""input":{ "a" :1.0}"#), "arguments keep their spelling: {written}");
    let body: Value = serde_json::from_str(&written).expect("JSON");
    assert_eq!(
        body["messages"][1]["content"],
        json!([
            {"type": "thinking", "thinking": "Hm.", "signature": "s1"},
            hidden,
            text("a"),
            {"type": "thinking", "thinking": "", "signature": "s2"},
            {"type": "tool_use", "id": "c1", "name": "f", "input": {"a": 1.0}},
        ])
    );
}

#[test]
fn content_of_other_providers_is_left_out_or_becomes_text() {
    let details = json!({"reasoning_details": [{"type": "reasoning.text", "text": "Hm.", "signature": "s"}]});
    let foreign = Opaque::new("openai-chat", "audio", json!({"id": "audio_1"}));
    let foreign = || Block::new(BlockContent::Opaque(foreign.clone()));
    let blocks = vec![
        thought("Hm.", "openai-chat", details),
        Block::new(BlockContent::Reasoning("Hm.".into())),
        foreign(),
        Block::text("a"),
        Block::new(BlockContent::Refusal("No.".into())),
        Block::new(BlockContent::Media(Media::from_bytes("image/png", vec![1]))),
        Block::with_data(
            BlockContent::ToolCall(ToolCall::new("c1", "f", "{}")),
            vec![ProviderData::new("gemini", json!({"thoughtSignature": "x"}))],
        ),
    ];
    let call = json!({"type": "tool_use", "id": "c1", "name": "f", "input": {}});
    assert_eq!(
        content_of(Message::assistant_blocks(blocks)),
        json!([text("a"), text("No."), text("[image]"), call])
    );
    let only_foreign = Message::assistant_blocks(vec![foreign()]);
    assert_eq!(content_of(only_foreign), json!([text("[content that cannot be shown here]")]));
}

#[test]
fn arguments_that_are_no_object_are_kept_in_one() {
    for (written, expected) in [
        ("", json!({})),
        (" \n", json!({})),
        ("{\"a\": 1", json!({"unparsable_arguments": "{\"a\": 1"})),
        ("[1]", json!({"unparsable_arguments": "[1]"})),
        ("7", json!({"unparsable_arguments": "7"})),
    ] {
        let content = content_of(Message::assistant_blocks(vec![ToolCall::new("c1", "f", written).into()]));
        assert_eq!(content[0]["input"], expected, "{written}");
    }
}

#[test]
fn data_of_a_block_goes_back_with_it() {
    let cited = json!({"type": "char_location", "cited_text": "q", "document_index": 0});
    let data = |value: Value| vec![ProviderData::new(FORMAT, value)];
    let blocks = vec![
        Block::with_data(BlockContent::Text("a".into()), data(json!({"citation": cited}))),
        Block::with_data(
            BlockContent::ToolCall(ToolCall::new("c1", "f", "{}")),
            data(json!({"caller": {"type": "direct"}})),
        ),
    ];
    let content = content_of(Message::assistant_blocks(blocks));
    assert_eq!(content[0]["citations"], json!([cited]));
    assert_eq!(content[1]["caller"], json!({"type": "direct"}));
}

pub(super) fn search(id: &str) -> Block {
    opaque(json!({"type": "server_tool_use", "id": id, "name": "web_search", "input": {"query": "x"}}))
}

pub(super) fn found(id: &str) -> Block {
    opaque(json!({"type": "web_search_tool_result", "tool_use_id": id, "content": []}))
}

/// The ids of the blocks about tools of the server, in a request with these messages.
pub(super) fn server_tools(messages: Vec<Message>) -> Vec<String> {
    let wire = on_the_wire(messages);
    let blocks =
        wire.as_array().into_iter().flatten().flat_map(|message| message["content"].as_array()).flatten();
    blocks
        .filter_map(|block| block["tool_use_id"].as_str().or(block["id"].as_str()).map(str::to_owned))
        .collect()
}

#[test]
fn tool_of_the_server_goes_back_with_its_result_only() {
    let answer = |blocks: Vec<Block>| Message::assistant_blocks(blocks);
    let (ask, more) = (Message::user("Hi"), Message::user("And?"));
    let paired = answer(vec![search("a"), found("a"), Block::text("x")]);
    assert_eq!(server_tools(vec![ask.clone(), paired.clone(), more.clone()]), ["a", "a"]);
    // A paused answer goes on in the next one.
    let paused = answer(vec![Block::text("x"), search("b")]);
    assert_eq!(server_tools(vec![ask.clone(), paused.clone()]), ["b"]);
    let goes_on = vec![ask.clone(), paused.clone(), answer(vec![found("b"), Block::text("y")]), more.clone()];
    assert_eq!(server_tools(goes_on), ["b", "b"]);
    // One that was cut off does not.
    assert_eq!(server_tools(vec![ask.clone(), paused, more.clone()]), Vec::<String>::new());
    let cut = opaque(json!({"type": "server_tool_use", "id": "c", "name": "web_search", "input": "{\"qu"}));
    assert_eq!(server_tools(vec![ask.clone(), answer(vec![Block::text("x"), cut])]), Vec::<String>::new());
    // A window may have left out the call.
    assert_eq!(
        server_tools(vec![ask, answer(vec![found("d"), Block::text("y")]), more]),
        Vec::<String>::new()
    );
}

/// A program that the server runs waits for results of the calls that it makes. If it is left out, they go as calls of the
/// model.
#[test]
fn calls_of_a_program_go_with_it() {
    let program = || {
        opaque(
            json!({"type": "server_tool_use", "id": "p", "name": "code_execution", "input": {"code": "x"}}),
        )
    };
    let ran = || opaque(json!({"type": "code_execution_tool_result", "tool_use_id": "p", "content": {}}));
    let call = ToolCall::new("c1", "f", "{}");
    let caller = json!({"caller": {"type": "code_execution_20260120", "tool_id": "p"}});
    let called = Block::with_data(
        BlockContent::ToolCall(call.clone()),
        vec![ProviderData::new(FORMAT, caller.clone())],
    );
    let turn = vec![
        Message::user("Hi"),
        Message::assistant_blocks(vec![program(), called]),
        Message::tool(ToolResult::new(&call, vec!["1".into()])),
    ];
    let more = || Message::user("And?");
    let ended = Message::assistant_blocks(vec![ran(), Block::text("x")]);
    for (rest, ids, is_of_program) in [
        (vec![], vec!["p", "c1", "c1"], true),
        (vec![ended.clone()], vec!["p", "c1", "c1", "p"], true),
        (vec![ended, more()], vec!["p", "c1", "c1", "p"], true),
        (vec![more()], vec!["c1", "c1"], false),
    ] {
        let messages = [turn.clone(), rest].concat();
        assert_eq!(server_tools(messages.clone()), ids);
        let wire = on_the_wire(messages);
        let sent = wire[1]["content"].as_array().and_then(|blocks| blocks.last()).expect("a call");
        assert_eq!(sent.get("caller"), caller.get("caller").filter(|_| is_of_program), "{ids:?}");
    }
}

#[test]
fn every_kind_of_content_has_a_role() {
    for (content, role) in [
        (MessageContent::User(vec![Part::Text("a".into())]), "user"),
        (MessageContent::Assistant(vec![Block::text("a")]), "assistant"),
        (MessageContent::Tool(ToolResult::new(&ToolCall::new("c1", "f", "{}"), vec![])), "user"),
    ] {
        assert_eq!(on_the_wire(vec![Message::new(content)])[0]["role"], role);
    }
}
