//! Tests of `request`.

use advisor_core::{
    Block, BlockContent, ChatOptions, Citation, Media, MediaSource, Message, Opaque, Part, ProviderData,
    ResponseFormat, ToolCall, ToolChoice, ToolDefinition, ToolResult,
};
use advisor_testkit::DescribedTool;
use serde_json::{Value, json};

use super::*;

fn json_of(request: &ChatRequest) -> Value {
    let body = body(request, "m", true).expect("a body").0;
    serde_json::from_slice(&body)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&body)))
}

fn messages(messages: Vec<Message>) -> Value {
    json_of(&ChatRequest::new(messages))["messages"].take()
}

fn message(message: Message) -> Value {
    messages(vec![message])[0].take()
}

fn options(options: ChatOptions) -> Value {
    json_of(&ChatRequest { options, ..ChatRequest::new(Message::user("x")) })
}

fn answer(blocks: Vec<BlockContent>) -> Value {
    message(Message::assistant_blocks(blocks.into_iter().map(Block::new).collect()))
}

fn text(text: &str) -> BlockContent {
    BlockContent::Text(text.into())
}

fn with_tools(names: &[&str], options: ChatOptions) -> ChatRequest {
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let tool = |name: &&str| DescribedTool::new(ToolDefinition::new(*name, "Does it.", schema.clone()));
    let request = ChatRequest { options, ..ChatRequest::new(Message::user("x")) };
    names.iter().map(tool).fold(request, ChatRequest::with_tool)
}

#[test]
fn whole_round_is_written_in_order() {
    let call = ToolCall::new("c1", "weather", r#"{"city":"Oslo"}"#);
    let result = ToolResult::new(&call, vec!["4 °C".into()]);
    let round = vec![
        Message::system("Be brief."),
        Message::user("Hello"),
        Message::assistant_blocks(vec![
            Block::new(BlockContent::Reasoning("Hm.".into())),
            Block::text("Let me look."),
            Block::from(call),
        ]),
        Message::tool(result),
    ];
    let expected = json!([
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hello"},
        {
            "role": "assistant",
            "content": "Let me look.",
            "thinking": "Hm.",
            "tool_calls": [{"id": "c1", "function": {"name": "weather", "arguments": {"city": "Oslo"}}}],
        },
        {"role": "tool", "content": "4 °C", "tool_name": "weather", "tool_call_id": "c1"},
    ]);
    assert_eq!(messages(round.clone()), expected);
    // Written once, and again from the kept bytes.
    assert_eq!(messages(round), expected);
    assert_eq!(messages(vec![]), json!([]));
}

#[test]
fn images_are_sent_as_bytes_and_other_media_as_notes() {
    let bytes = Media::from_bytes("image/png", &b"\x01\x02\x03"[..]);
    let parts = vec![
        "Look:".into(),
        Part::Image(bytes.clone()),
        Part::Image(Media::from_url("image/png", "data:image/png;base64,BAUG")),
        Part::Image(Media::from_url("image/png", "https://example.org/a.png")),
        Part::Audio(Media::from_bytes("audio/wav", &b"\x01"[..])),
        Part::Json(json!({"a": 1})),
    ];
    let content = "Look:\n[image/png left out: Ollama takes the bytes of an image, and no address]\n\
        [audio/wav left out: Ollama takes only text and images]\n{\"a\":1}";
    let sent = message(Message::user_parts(parts));
    assert_eq!(sent, json!({"role": "user", "content": content, "images": ["AQID", "BAUG"]}));
    let result = ToolResult::new(&ToolCall::new("c", "f", ""), vec![Part::Image(bytes)]);
    let sent = message(Message::tool(result));
    assert_eq!((&sent["content"], &sent["images"]), (&json!(""), &json!(["AQID"])));
    let nothing = Message::user_parts(vec![Part::Image(Media::from_bytes("image/png", vec![]))]);
    let note = "[image/png left out: it is empty]";
    assert_eq!(message(nothing), json!({"role": "user", "content": note}));
    let mut failed = ToolResult::error(&ToolCall::new("c", "f", ""), "");
    failed.parts.push(Part::Audio(Media::from_bytes("audio/wav", &b"\x01"[..])));
    let told = "[the tool failed without a message]\n[audio/wav left out: Ollama takes only text and images]";
    assert_eq!(message(Message::tool(failed))["content"], told);
    let mut file = Media::from_bytes("image/png", &b"\x01"[..]);
    file.source = MediaSource::ProviderFile("file-1".into());
    assert!(message(Message::user_parts(vec![Part::Image(file)])).get("images").is_none());
}

/// The server renders them into the prompt: another order of keys, or another spelling, misses its cache.
#[test]
fn arguments_go_back_as_the_model_wrote_them() {
    for written in
        [r#"{"path":"a.py","edits":[{"old":"x","new":"y"}],"count":1.0}"#, r#"{ "b" : 1, "a" :2 }"#]
    {
        let call = Block::from(ToolCall::new("c", "f", written));
        let request = ChatRequest::new(vec![Message::user("Hi"), Message::assistant_blocks(vec![call])]);
        let body = body(&request, "m", true).expect("a body").0;
        let body = String::from_utf8(body.to_vec()).expect("text");
        assert!(body.contains(&format!(r#""arguments":{written}"#)), "{body}");
    }
}

#[test]
fn arguments_are_sent_as_objects() {
    let sent = |arguments: &str| {
        let call = Block::from(ToolCall::new("c", "f", arguments));
        message(Message::assistant_blocks(vec![call]))["tool_calls"][0]["function"]["arguments"].take()
    };
    assert_eq!(sent(r#"{"a":[1,"ü"]}"#), json!({"a": [1, "ü"]}));
    assert_eq!(["", " ", "{}", "null"].map(sent), [(); 4].map(|()| json!({})));
    for bad in ["{\"a\":", "[1]", "words"] {
        assert_eq!(sent(bad), json!({"unparsable_arguments": bad}), "never replaced by `{{}}`");
    }
}

/// The data of other providers in a history is converted or left out.
#[test]
fn history_of_other_providers_is_converted() {
    let signed = Block::with_data(
        BlockContent::Reasoning("Signed thought.".into()),
        vec![ProviderData::new("anthropic-messages", json!({"signature": "s"}))],
    );
    let searched =
        BlockContent::Opaque(Opaque::new("openai-responses", "web_search_call", json!({"id": "ws_1"})));
    let call = Block::with_data(
        BlockContent::ToolCall(ToolCall::new("toolu_01", "f", "{\"a\":1}")),
        vec![ProviderData::new("gemini", json!({"thoughtSignature": "s"}))],
    );
    let cited = BlockContent::Citation(Citation::default());
    let blocks = vec![
        signed,
        Block::new(searched.clone()),
        Block::text("Found"),
        Block::new(cited),
        Block::text(" it."),
        call,
    ];
    let sent = message(Message::assistant_blocks(blocks));
    let expected = json!({
        "role": "assistant",
        "content": "Found it.",
        "thinking": "Signed thought.",
        "tool_calls": [{"id": "toolu_01", "function": {"name": "f", "arguments": {"a": 1}}}],
    });
    assert_eq!(sent, expected, "no data of another provider is sent");
    assert_eq!(answer(vec![BlockContent::Refusal("I cannot.".into())])["content"], "I cannot.");
    assert_eq!(answer(vec![searched])["content"], "[content that cannot be shown here]");
    let image = BlockContent::Media(Media::from_bytes("image/png", &b"\x01"[..]));
    assert_eq!(answer(vec![image])["content"], "[image]");
    assert_eq!(answer(vec![])["content"], "");
    assert_eq!(answer(vec![text("One."), text("Two.")])["content"], "One.\n\nTwo.");
}

#[test]
fn options_have_their_own_object() {
    let all = ChatOptions {
        stop: vec!["END".into()],
        seed: Some(-7),
        max_tokens: Some(100),
        top_p: Some(0.9),
        temperature: Some(0.5),
        ..ChatOptions::default()
    };
    let expected = json!({"temperature": 0.5, "top_p": 0.9, "num_predict": 100, "seed": -7, "stop": ["END"]});
    let sent = options(all.clone());
    assert_eq!((&sent["options"], &sent["model"], &sent["stream"]), (&expected, &json!("m"), &json!(true)));
    let sent = options(ChatOptions::default());
    assert!(sent.get("options").is_none() && sent.get("format").is_none() && sent.get("tools").is_none());
    let request = ChatRequest::new(Message::user("x"));
    let whole = body(&request, "m", false).expect("a body").0;
    assert_eq!(serde_json::from_slice::<Value>(&whole).expect("JSON")["stream"], json!(false));

    // Extra fields are passed on; single options among them win over ours.
    let extra = all
        .with_extra("think", "high")
        .with_extra("keep_alive", "10m")
        .with_extra("options", json!({"num_ctx": 32_768, "temperature": 0}));
    let sent = options(extra);
    assert_eq!((&sent["think"], &sent["keep_alive"]), (&json!("high"), &json!("10m")));
    assert_eq!((&sent["options"]["num_ctx"], &sent["options"]["temperature"]), (&json!(32_768), &json!(0)));
    assert_eq!(sent["options"]["num_predict"], 100);
    let odd = options(
        ChatOptions { temperature: Some(1.0), ..ChatOptions::default() }.with_extra("options", "none"),
    );
    assert_eq!(odd["options"], "none", "the caller's word counts");
}

#[test]
fn messages_and_tools_of_the_caller_replace_ours() {
    let own =
        ChatOptions::default().with_extra("messages", json!([])).with_extra("tools", json!([{"own": true}]));
    let body = body(&with_tools(&["f"], own), "m", true).expect("a body").0;
    let body = String::from_utf8(body.to_vec()).expect("text");
    assert_eq!((body.matches("\"messages\"").count(), body.matches("\"tools\"").count()), (1, 1), "{body}");
    assert!(body.contains(r#""tools":[{"own":true}]"#));
}

#[test]
fn answer_format_is_json_or_schema() {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    let named = ResponseFormat::JsonSchema { name: "n".into(), schema: schema.clone(), strict: true };
    let cases = [
        (ResponseFormat::Text, None),
        (ResponseFormat::JsonObject, Some(json!("json"))),
        (named, Some(schema)),
    ];
    for (format, expected) in cases {
        let sent = options(ChatOptions { response_format: Some(format), ..ChatOptions::default() });
        assert_eq!(sent.get("format"), expected.as_ref());
    }
}

#[test]
fn tools_follow_the_tool_choice() {
    let names = |choice: Option<ToolChoice>| -> Vec<String> {
        let options = ChatOptions { tool_choice: choice, ..ChatOptions::default() };
        let sent = json_of(&with_tools(&["a.b", "c"], options));
        assert!(sent.get("tool_choice").is_none());
        let tools = sent.get("tools").and_then(Value::as_array).cloned().unwrap_or_default();
        tools.iter().map(|tool| tool["function"]["name"].as_str().expect("a name").to_owned()).collect()
    };
    for choice in [None, Some(ToolChoice::Auto), Some(ToolChoice::Required)] {
        assert_eq!(names(choice), ["a.b", "c"]);
    }
    assert_eq!(names(Some(ToolChoice::Tool("c".into()))), ["c"]);
    assert_eq!((names(Some(ToolChoice::None)), names(Some(ToolChoice::Tool("x".into())))), (vec![], vec![]));

    let request = with_tools(&["f"], ChatOptions::default());
    let expected = json!([{
        "type": "function",
        "function": {
            "name": "f",
            "description": "Does it.",
            "parameters": {"type": "object", "properties": {"a": {"type": "string"}}},
        },
    }]);
    assert_eq!(json_of(&request)["tools"], expected);
    assert_eq!(json_of(&request)["tools"], expected, "written once");
    let any = ChatRequest::new(Message::user("x")).with_tool(DescribedTool::new(ToolDefinition::new(
        "f",
        "",
        Value::Null,
    )));
    let parameters = &json_of(&any)["tools"][0]["function"]["parameters"];
    assert_eq!(*parameters, json!({"type": "object", "properties": {}}));
}

#[test]
fn tools_described_by_an_advisor_are_not_sent() {
    let request = with_tools(
        &["f", "g"],
        ChatOptions { tool_choice: Some(ToolChoice::Tool("f".into())), ..ChatOptions::default() },
    );
    let described = request.tools.filtered(|name| name == "g");
    let sent = json_of(&ChatRequest { api_tools: Some(described), ..request });
    let tools = sent["tools"].as_array().expect("tools");
    assert_eq!((tools.len(), &tools[0]["function"]["name"]), (1, &json!("g")));
}
