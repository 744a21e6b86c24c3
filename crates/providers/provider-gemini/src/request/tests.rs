//! Tests of `request`.

use advisor_core::{
    Block, BlockContent, ChatOptions, Citation, ErrorKind, Media, Message, Opaque, Part, ProviderData,
    ResponseFormat, ToolCall, ToolChoice, ToolDefinition, ToolResult, ToolSet,
};
use advisor_testkit::DescribedTool;
use serde_json::json;

use super::*;
use crate::wire::FORMAT;

fn tool(name: &str, parameters: Value) -> DescribedTool {
    DescribedTool::new(ToolDefinition::new(name, "d", parameters))
}

fn form() -> Form {
    Form { format: FORMAT.into(), sends_call_ids: true, is_before_gemini_3: false }
}

fn before_3() -> Form {
    Form { is_before_gemini_3: true, ..form() }
}

fn written(request: &ChatRequest, form: &Form) -> Value {
    serde_json::from_slice(&body(request, form).expect("a body").0).expect("JSON")
}

/// The body of a request to a model of Gemini 3.
fn sent(request: &ChatRequest) -> Value {
    written(request, &form())
}

fn contents(messages: Vec<Message>) -> Value {
    sent(&ChatRequest::new(messages))["contents"].clone()
}

fn contents_of(result: ToolResult) -> Value {
    contents(vec![Message::tool(result)])
}

/// The parts of one assistant message.
fn parts(blocks: Vec<Block>) -> Value {
    contents(vec![Message::assistant_blocks(blocks)])[0]["parts"].clone()
}

fn own(value: Value) -> Vec<ProviderData> {
    vec![ProviderData::new(FORMAT, value)]
}

fn signed(content: BlockContent, value: Value) -> Block {
    Block::with_data(content, own(value))
}

#[test]
fn messages_are_contents_and_system_is_an_instruction() {
    let call = ToolCall::new("c1", "f", r#"{"b": 1, "a": 1.50}"#);
    let other = ToolCall::new("c2", "g", "");
    let body = sent(&ChatRequest::new(vec![
        Message::system("Be brief."),
        Message::user("Hi"),
        Message::assistant_blocks(vec![Block::text("Wait."), call.clone().into(), other.clone().into()]),
        Message::tool(ToolResult::new(&call, vec!["one".into(), "two".into()])),
        Message::tool(ToolResult::error(&other, "no")),
        Message::user("Go on"),
        Message::system("Be kind."),
    ]));
    assert_eq!(
        body,
        json!({
            "contents": [
                {"role": "user", "parts": [{"text": "Hi"}]},
                {"role": "model", "parts": [
                    {"text": "Wait."},
                    {"functionCall": {"id": "c1", "name": "f", "args": {"b": 1, "a": 1.50}}, "thoughtSignature": "skip_thought_signature_validator"},
                    {"functionCall": {"id": "c2", "name": "g", "args": {}}},
                ]},
                {"role": "user", "parts": [
                    {"functionResponse": {"id": "c1", "name": "f", "response": {"output": "one\ntwo"}}},
                    {"functionResponse": {"id": "c2", "name": "g", "response": {"error": "no"}}},
                ]},
                {"role": "user", "parts": [{"text": "Go on"}]},
            ],
            "systemInstruction": {"parts": [{"text": "Be brief."}, {"text": "Be kind."}]},
        })
    );
}

#[test]
fn q66_signatures_go_back_on_their_parts() {
    let call = |data: Option<Value>| {
        Block::with_data(
            BlockContent::ToolCall(ToolCall::new("c", "f", "{}")),
            data.map(own).unwrap_or_default(),
        )
    };
    let text = |text: &str, value: Value| signed(BlockContent::Text(text.to_owned()), value);
    let function = json!({"id": "c", "name": "f", "args": {}});
    // The first parallel call alone is signed.
    let calls = parts(vec![call(Some(json!({"thoughtSignature": "s"}))), call(None)]);
    assert_eq!(
        calls,
        json!([{"functionCall": function, "thoughtSignature": "s"}, {"functionCall": function}])
    );
    // The end of a text, all of it, an empty part after it, an empty part alone.
    for (block, expected) in [
        (
            text("One, two", json!({"thoughtSignature": "s", "signedBytes": 3})),
            json!([{"text": "One, "}, {"text": "two", "thoughtSignature": "s"}]),
        ),
        (
            text("One", json!({"thoughtSignature": "s", "signedBytes": 3})),
            json!([{"text": "One", "thoughtSignature": "s"}]),
        ),
        (
            text("One", json!({"thoughtSignature": "s", "signedBytes": 0})),
            json!([{"text": "One"}, {"text": "", "thoughtSignature": "s"}]),
        ),
        (
            text("", json!({"thoughtSignature": "s", "signedBytes": 0})),
            json!([{"text": "", "thoughtSignature": "s"}]),
        ),
        // Where an advisor changed the text.
        (
            text("é", json!({"thoughtSignature": "s", "signedBytes": 9})),
            json!([{"text": "é", "thoughtSignature": "s"}]),
        ),
        (
            text("éé", json!({"thoughtSignature": "s", "signedBytes": 3})),
            json!([{"text": "éé", "thoughtSignature": "s"}]),
        ),
    ] {
        assert_eq!(parts(vec![block]), expected);
    }
    // Thoughts go back only if they are signed.
    let thought = signed(
        BlockContent::Reasoning("Hm, so".to_owned()),
        json!({"thoughtSignature": "s", "signedBytes": 2, "thought": true}),
    );
    let plain = Block::new(BlockContent::Reasoning("Hm".to_owned()));
    assert_eq!(
        parts(vec![plain, thought]),
        json!([{"text": "so", "thought": true, "thoughtSignature": "s"}])
    );
    let media = signed(
        BlockContent::Media(Media::from_bytes("image/png", vec![1])),
        json!({"thoughtSignature": "s"}),
    );
    assert_eq!(
        parts(vec![media]),
        json!([{"inlineData": {"mimeType": "image/png", "data": "AQ=="}, "thoughtSignature": "s"}])
    );
    // A signature on another part of the message: no placeholder.
    let empty = text("", json!({"thoughtSignature": "s", "signedBytes": 0}));
    let before_call = parts(vec![empty, call(None)]);
    assert_eq!(before_call[1], json!({"functionCall": function}));
}

#[test]
fn history_of_other_providers_is_converted() {
    let foreign =
        |content| Block::with_data(content, vec![ProviderData::new("anthropic", json!({"signature": "x"}))]);
    let message = Message::assistant_blocks(vec![
        foreign(BlockContent::Reasoning("Hm".to_owned())),
        foreign(BlockContent::Text("Yes".to_owned())),
        BlockContent::Citation(Citation::default()).into(),
        BlockContent::Opaque(Opaque::new("anthropic", "server_tool_use", json!({"id": 1}))).into(),
        BlockContent::Refusal("No".to_owned()).into(),
        foreign(BlockContent::ToolCall(ToolCall::new("toolu_1", "docs.search", "[1"))),
    ]);
    let only_thoughts = Message::assistant_blocks(vec![foreign(BlockContent::Reasoning("Hm".to_owned()))]);
    let messages = vec![Message::user("a"), only_thoughts, Message::user("b"), message];
    let call = |extra: Value| {
        let mut part = json!({"functionCall": {"id": "toolu_1", "name": "docs_search", "args": {"unparsable_arguments": "[1"}}});
        part.as_object_mut().expect("an object").extend(extra.as_object().expect("an object").clone());
        part
    };
    let expected = |call: Value| {
        json!([
            {"role": "user", "parts": [{"text": "a"}]},
            {"role": "user", "parts": [{"text": "b"}]},
            {"role": "model", "parts": [{"text": "Yes"}, {"text": "No"}, call]},
        ])
    };
    let request = ChatRequest::new(messages);
    let placeholder = json!({"thoughtSignature": "skip_thought_signature_validator"});
    assert_eq!(sent(&request)["contents"], expected(call(placeholder)));
    // Earlier models need no signature.
    let earlier = written(&request, &before_3());
    assert_eq!(earlier["contents"], expected(call(json!({}))));
    // Vertex AI takes no ids.
    let vertex = written(&request, &Form { sends_call_ids: false, ..before_3() });
    assert!(vertex["contents"][2]["parts"][2]["functionCall"].get("id").is_none());
}

#[test]
fn answer_of_which_nothing_can_be_sent_is_a_note() {
    for (format, name) in [("anthropic", "server_tool_use"), (FORMAT, "groundingMetadata")] {
        let opaque = BlockContent::Opaque(Opaque::new(format, name, json!({"id": 1})));
        let answer =
            Message::assistant_blocks(vec![BlockContent::Reasoning("Hm".to_owned()).into(), opaque.into()]);
        let request = ChatRequest::new(vec![Message::user("a"), answer, Message::user("b")]);
        let note = json!({"role": "model", "parts": [{"text": "[content that cannot be shown here]"}]});
        assert_eq!(sent(&request)["contents"][1], note, "{format}");
    }
}

#[test]
fn own_opaque_parts_go_back_and_reports_do_not() {
    let opaque =
        |name: &str, value: Value| Block::new(BlockContent::Opaque(Opaque::new(FORMAT, name, value)));
    let code = json!({"executableCode": {"language": "PYTHON", "code": "1"}, "thoughtSignature": "s"});
    let deep = (0..70).fold(json!(1), |inner, _| json!([inner]));
    let sent = parts(vec![
        opaque("executableCode", code.clone()),
        opaque("groundingMetadata", json!({"groundingChunks": []})),
        opaque("odd", json!({"odd": deep, "text": "kept"})),
        opaque("odd", json!(7)),
    ]);
    assert_eq!(sent, json!([code, {"text": "kept"}]));
}

#[test]
fn signatures_of_other_servers_are_omitted() {
    let other = |value: Value| vec![ProviderData::new("gemini@aiplatform.googleapis.com", value)];
    let signature = json!({"thoughtSignature": "s"});
    let sent = parts(vec![
        Block::with_data(
            BlockContent::Reasoning("Hm".into()),
            other(json!({"thoughtSignature": "s", "signedBytes": 2, "thought": true})),
        ),
        Block::with_data(
            BlockContent::Text("Hi".into()),
            other(json!({"thoughtSignature": "s", "signedBytes": 2})),
        ),
        Block::with_data(BlockContent::ToolCall(ToolCall::new("c", "f", "{}")), other(signature.clone())),
        Block::new(BlockContent::Opaque(Opaque::new(
            "gemini@aiplatform.googleapis.com",
            "executableCode",
            json!({"executableCode": {"code": "1"}}),
        ))),
    ]);
    assert_eq!(
        sent,
        json!([
            {"text": "Hi"},
            {"functionCall": {"id": "c", "name": "f", "args": {}}, "thoughtSignature": "skip_thought_signature_validator"},
        ])
    );
    // The form for one server is not kept for another.
    let message = Message::assistant_blocks(vec![Block::with_data(
        BlockContent::ToolCall(ToolCall::new("c", "f", "{}")),
        other(signature),
    )]);
    let request = ChatRequest::new(vec![message]);
    let signed_with = |format: &str| {
        let body = written(&request, &Form { format: format.into(), ..form() });
        body["contents"][0]["parts"][0]["thoughtSignature"].clone()
    };
    assert_eq!(signed_with(FORMAT), "skip_thought_signature_validator");
    assert_eq!(signed_with("gemini@aiplatform.googleapis.com"), "s");
    assert_eq!(signed_with(FORMAT), "skip_thought_signature_validator");
}

#[test]
fn media_go_inline_or_by_address() {
    let user = Message::user_parts(vec![
        Part::Image(Media::from_bytes("image/png", vec![1, 2])),
        Part::Audio(Media::from_url("audio/mp3", "https://host/a.mp3")),
        Part::Video(Media::from_url("video/*", "gs://bucket/v")),
        Part::File(Media::from_url("x/y", "data:application/pdf;base64,AQ==")),
        Part::Json(json!({"a": 1})),
        "text".into(),
    ]);
    assert_eq!(
        contents(vec![user])[0]["parts"],
        json!([
            {"inlineData": {"mimeType": "image/png", "data": "AQI="}},
            {"fileData": {"mimeType": "audio/mp3", "fileUri": "https://host/a.mp3"}},
            {"fileData": {"fileUri": "gs://bucket/v"}},
            {"inlineData": {"mimeType": "application/pdf", "data": "AQ=="}},
            {"text": "{\"a\":1}"},
            {"text": "text"},
        ])
    );
}

#[test]
fn types_that_google_refuses_are_left_out() {
    let bytes = |mime: &str| Media::from_bytes(mime, vec![1]);
    let unknown = |mime: &str| json!({"text": format!("[{mime} left out: its type is unknown]")});
    let inline = |mime: &str| json!({"inlineData": {"mimeType": mime, "data": "AQ=="}});
    for (mime, of_user, of_answer) in [
        ("image/png", inline("image/png"), inline("image/png")),
        (
            "image/bmp",
            inline("image/bmp"),
            json!({"text": "[image/bmp left out: Gemini does not read this type]"}),
        ),
        ("image/*", unknown("image/*"), unknown("image/*")),
        (
            "application/octet-stream",
            unknown("application/octet-stream"),
            unknown("application/octet-stream"),
        ),
        ("audio/pcm", inline("audio/pcm"), inline("audio/pcm")),
    ] {
        let user = Message::user_parts(vec![Part::Image(bytes(mime))]);
        assert_eq!(contents(vec![user])[0]["parts"], json!([of_user]), "{mime}");
        assert_eq!(parts(vec![Block::new(BlockContent::Media(bytes(mime)))]), json!([of_answer]), "{mime}");
    }
}

#[test]
fn nothing_empty_is_sent() {
    let nothing = || Part::Image(Media::from_url("image/png", ""));
    let note = json!({"text": "[image/png left out: it is empty]"});
    let empty = || Message::user_parts(vec!["".into()]);
    let body = sent(&ChatRequest::new(vec![
        Message::system(""),
        Message::user_parts(vec!["".into(), "a".into(), nothing()]),
        Message::assistant(""),
        empty(),
        Message::system("Be brief."),
    ]));
    let user = |parts: Value| json!({"role": "user", "parts": parts});
    let contents = json!([user(json!([{"text": "a"}, note])), user(json!([{"text": "[empty message]"}]))]);
    assert_eq!(
        (&body["contents"], &body["systemInstruction"]),
        (&contents, &json!({"parts": [{"text": "Be brief."}]}))
    );
    assert_eq!(sent(&ChatRequest::new(vec![Message::system(""), empty()])).get("systemInstruction"), None);
    let call = ToolCall::new("c", "f", "{}");
    let mut failed = ToolResult::new(&call, vec![nothing()]);
    failed.is_error = true;
    let result = |result| contents_of(result)[0]["parts"][0]["functionResponse"]["response"].clone();
    let told = "[the tool failed without a message]";
    assert_eq!(result(ToolResult::error(&call, "")), json!({ "error": told }));
    assert_eq!(result(failed), json!({"error": format!("{told}\n[image/png left out: it is empty]")}));
    assert_eq!(
        result(ToolResult::new(&call, vec![nothing()])),
        json!({"output": "[image/png left out: it is empty]"})
    );
}

#[test]
fn results_are_objects_with_their_media() {
    let call = ToolCall::new("c", "f", "{}");
    let response = |parts: Vec<Part>| {
        contents(vec![Message::tool(ToolResult::new(&call, parts))])[0]["parts"][0]["functionResponse"]["response"].clone()
    };
    for (parts, expected) in [
        (vec![Part::Json(json!({"a": 1}))], json!({"a": 1})),
        (
            vec![Part::Json(json!({"error": "part of the result"}))],
            json!({"output": {"error": "part of the result"}}),
        ),
        (vec![Part::Json(json!([1]))], json!({"output": [1]})),
        (vec!["a".into(), Part::Json(json!(1))], json!({"output": "a\n1"})),
        (vec![], json!({"output": ""})),
    ] {
        assert_eq!(response(parts), expected);
    }
    let image = Part::Image(Media::from_bytes("image/png", vec![1]));
    let request = ChatRequest::new(Message::tool(ToolResult::new(&call, vec!["see".into(), image])));
    let inline = json!({"inlineData": {"mimeType": "image/png", "data": "AQ=="}});
    let function = json!({"id": "c", "name": "f", "response": {"output": "see"}});
    let mut inside = function.clone();
    inside["parts"] = json!([inline]);
    assert_eq!(sent(&request)["contents"][0]["parts"], json!([{"functionResponse": inside}]));
    let earlier = written(&request, &before_3());
    assert_eq!(earlier["contents"][0]["parts"], json!([{"functionResponse": function}, inline]));
}

#[test]
fn tools_are_declared_with_their_schemas() {
    let schema = json!({"type": "object", "properties": {"a": {"type": ["string", "null"]}}, "additionalProperties": false});
    let request = ChatRequest::new(Message::user("x"))
        .with_tool(tool("f", schema.clone()))
        .with_tool(tool("now", json!({"type": "object", "properties": {}})))
        .with_tool(tool("9.odd", Value::Null));
    let declared = |body: &Value| body["tools"][0]["functionDeclarations"].clone();
    assert_eq!(
        declared(&sent(&request)),
        json!([
            {"name": "f", "description": "d", "parametersJsonSchema": schema},
            {"name": "now", "description": "d", "parametersJsonSchema": {"type": "object", "properties": {}}},
            {"name": "__odd", "description": "d"},
        ])
    );
    let (_, names) = body(&request, &form()).expect("a body");
    assert_eq!(names.meant_by("__odd").as_deref(), Some("9.odd"));
    // Tools that an advisor describes in words are not declared.
    let in_words = ChatRequest { api_tools: Some(ToolSet::new()), ..request };
    assert!(sent(&in_words).get("tools").is_none() && sent(&in_words).get("toolConfig").is_none());
}

#[test]
fn tool_choice_is_a_mode() {
    let request = ChatRequest::new(Message::user("x")).with_tool(tool("docs/f", Value::Null));
    let config = |choice: ToolChoice| {
        let request = ChatRequest {
            options: ChatOptions { tool_choice: Some(choice), ..ChatOptions::default() },
            ..request.clone()
        };
        sent(&request)["toolConfig"]["functionCallingConfig"].clone()
    };
    assert_eq!(config(ToolChoice::Auto), json!({"mode": "AUTO"}));
    assert_eq!(config(ToolChoice::None), json!({"mode": "NONE"}));
    assert_eq!(config(ToolChoice::Required), json!({"mode": "ANY"}));
    assert_eq!(
        config(ToolChoice::Tool("docs/f".into())),
        json!({"mode": "ANY", "allowedFunctionNames": ["docs_f"]})
    );
    let none = ChatRequest {
        options: ChatOptions { tool_choice: Some(ToolChoice::Auto), ..ChatOptions::default() },
        ..ChatRequest::new(Message::user("x"))
    };
    assert!(sent(&none).get("toolConfig").is_none());
}

#[test]
fn options_are_the_generation_config() {
    let schema = json!({"type": "object", "properties": {"a": {"const": "x"}}});
    let format = ResponseFormat::JsonSchema { name: "n".into(), schema: schema.clone(), strict: true };
    let options = ChatOptions {
        response_format: Some(format),
        seed: Some(7),
        stop: vec!["end".into()],
        max_tokens: Some(100),
        top_p: Some(0.25),
        temperature: Some(0.5),
        ..ChatOptions::default()
    }
    .with_extra("generationConfig", json!({"thinkingConfig": {"includeThoughts": true}, "seed": 8}))
    .with_extra("safetySettings", json!([]));
    let request = ChatRequest { options, ..ChatRequest::new(Message::user("x")) };
    let expected = json!({
        "temperature": 0.5, "topP": 0.25, "maxOutputTokens": 100, "stopSequences": ["end"], "seed": 8,
        "responseMimeType": "application/json", "responseJsonSchema": schema,
        "thinkingConfig": {"includeThoughts": true},
    });
    assert_eq!(sent(&request)["generationConfig"], expected);
    assert_eq!(sent(&request)["safetySettings"], json!([]));
    let several = json!({"candidateCount": 2});
    let several = ChatOptions::default().with_extra("generationConfig", several);
    let several = ChatRequest { options: several, ..ChatRequest::new(Message::user("x")) };
    let error = body(&several, &form()).expect_err("one answer only");
    assert_eq!(error.kind(), ErrorKind::Configuration);
    let json_object =
        ChatOptions { response_format: Some(ResponseFormat::JsonObject), ..ChatOptions::default() };
    let request = ChatRequest { options: json_object, ..ChatRequest::new(Message::user("x")) };
    assert_eq!(sent(&request)["generationConfig"], json!({"responseMimeType": "application/json"}));
    let plain = sent(&ChatRequest::new(Message::user("x")));
    assert_eq!(plain, json!({"contents": [{"role": "user", "parts": [{"text": "x"}]}]}));
}

#[test]
fn callers_own_fields_replace_ours() {
    let own = json!([{"role": "user", "parts": [{"text": "own"}]}]);
    let options = ChatOptions::default()
        .with_extra("contents", own.clone())
        .with_extra("systemInstruction", json!({"parts": []}))
        .with_extra("tools", json!([{"googleSearch": {}}, {"functionDeclarations": [{"name": "docs.f"}]}]));
    let request = ChatRequest {
        options,
        ..ChatRequest::new(vec![Message::system("s"), Message::user("x")])
            .with_tool(tool("docs.f", Value::Null))
    };
    // Of two equal keys a reader takes the last one.
    let (body, names) = body(&request, &form()).expect("a body");
    let text = String::from_utf8(body.to_vec()).expect("text");
    let read: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!((&read["contents"], &read["systemInstruction"]), (&own, &json!({"parts": []})));
    assert_eq!(read["tools"][0], json!({"googleSearch": {}}));
    assert_eq!(text.matches("\"tools\"").count() + text.matches("\"contents\"").count(), 2, "{text}");
    assert_eq!(names.meant_by("docs.f").as_deref(), Some("docs.f"));
}

#[test]
fn messages_are_written_once_per_rules() {
    let message = Message::assistant_blocks(vec![ToolCall::new("c", "f", "{}").into()]);
    let request = ChatRequest::new(vec![Message::user("x"), message.clone()]);
    let first = sent(&request);
    let ids = |body: &Value| body["contents"][1]["parts"][0]["functionCall"].get("id").is_some();
    assert_eq!(sent(&request), first);
    let other = written(&request, &Form { sends_call_ids: false, ..before_3() });
    assert!(ids(&first) && !ids(&other));
    assert!(other["contents"][1]["parts"][0].get("thoughtSignature").is_none());
    assert_eq!(sent(&request), first);
    // A name that another tool has: the kept form is not used.
    let clash = Message::assistant_blocks(vec![
        ToolCall::new("a", "docs.f", "{}").into(),
        ToolCall::new("b", "docs/f", "{}").into(),
    ]);
    let both = sent(&ChatRequest::new(vec![message, clash]));
    let names: Vec<_> = both["contents"][1]["parts"]
        .as_array()
        .expect("parts")
        .iter()
        .map(|part| part["functionCall"]["name"].as_str().expect("a name").to_owned())
        .collect();
    assert!(
        names[0] != names[1]
            && names.iter().all(|name| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')),
        "{names:?}"
    );
}
