//! Tests of `responses::request`.

use advisor_core::{
    Block, BlockContent, ChatOptions, Citation, ErrorKind, Media, MediaSource, Message, Opaque, Part,
    ProviderData, ResponseFormat, ToolCall, ToolChoice, ToolResult,
};
use advisor_testkit::DescribedTool;
use serde_json::json;

use super::*;

const FORMAT: &str = "openai-responses@api.example.org";

fn form() -> InputForm {
    InputForm::new(FORMAT.into())
}

fn streaming() -> BodySettings {
    BodySettings { streaming: true, ..BodySettings::default() }
}

pub(super) fn written_with(
    request: &ChatRequest,
    settings: &BodySettings,
    form: &InputForm,
) -> Result<Value> {
    let (json, _) = body(request, "m", settings, form)?;
    Ok(serde_json::from_slice(&json).expect("JSON"))
}

fn written(request: &ChatRequest) -> Value {
    written_with(request, &streaming(), &form()).expect("a body")
}

fn input(messages: Vec<Message>) -> Value {
    written(&ChatRequest::new(messages))["input"].take()
}

fn with_data(content: BlockContent, format: &str, value: Value) -> Block {
    Block::with_data(content, vec![ProviderData::new(format, value)])
}

fn said(text: &str) -> Value {
    json!({"type": "message", "role": "assistant", "status": "completed",
        "content": [{"type": "output_text", "text": text, "annotations": []}]})
}

#[test]
fn messages_become_items_in_their_order() {
    let (first, second) = (ToolCall::new("c1", "f", "{}"), ToolCall::new("c2", "g", r#"{"a":1}"#));
    let messages = vec![
        Message::system("Be brief."),
        Message::user("Hi"),
        Message::assistant_blocks(vec![
            Block::text("Let me look."),
            first.clone().into(),
            second.clone().into(),
        ]),
        Message::tool(ToolResult::new(&first, vec!["one".into(), json!({"n": 1}).into()])),
        Message::tool(ToolResult::error(&second, "two")),
        Message::assistant("Done."),
    ];
    let call = |id: &str, name: &str, arguments: &str| json!({"type": "function_call", "call_id": id, "name": name, "arguments": arguments});
    let output =
        |id: &str, output: &str| json!({"type": "function_call_output", "call_id": id, "output": output});
    assert_eq!(
        input(messages),
        json!([
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Hi"},
            said("Let me look."),
            call("c1", "f", "{}"),
            call("c2", "g", r#"{"a":1}"#),
            output("c1", "one\n{\"n\":1}"),
            output("c2", "two"),
            said("Done."),
        ])
    );
}

#[test]
fn reasoning_goes_back_unchanged_and_in_order() {
    let encrypted = json!({"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm."}], "encrypted_content": "e"});
    let plain = json!({"type": "reasoning", "id": "rs_2", "summary": [], "content": [{"type": "reasoning_text", "text": "So."}]});
    let reasoning = |item: &Value| with_data(BlockContent::Reasoning("Hm.".into()), FORMAT, item.clone());
    let call = ToolCall::new("c1", "f", "{}");
    let blocks = vec![
        Block::new(BlockContent::Reasoning("An earlier part.".into())),
        reasoning(&encrypted),
        call.into(),
        reasoning(&plain),
        Block::text("Hi"),
    ];
    let items = input(vec![Message::assistant_blocks(blocks)]);
    assert_eq!(
        (&items[0], &items[1]["type"], &items[2], &items[3]),
        (&encrypted, &json!("function_call"), &plain, &said("Hi"))
    );
}

/// OpenAI refuses reasoning without the item that it belongs to, as in an answer that was cut off.
#[test]
fn reasoning_at_the_end_of_an_answer_is_left_out() {
    let item = json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "e"});
    let reasoning = || with_data(BlockContent::Reasoning("Hm.".into()), FORMAT, item.clone());
    let blocks = vec![reasoning(), Block::text("Hi"), reasoning(), reasoning()];
    let user = json!({"role": "user", "content": "x"});
    assert_eq!(
        input(vec![Message::assistant_blocks(blocks), Message::user("x")]),
        json!([item, said("Hi"), user])
    );
}

/// A window may leave out the round in which the server began its work. The API refuses an output without its call.
#[test]
fn output_of_the_server_without_its_call_is_left_out() {
    let work = |name: &str, call_id: Value| {
        let item = json!({"type": name, "call_id": call_id});
        (Block::new(BlockContent::Opaque(Opaque::new(FORMAT, name, item.clone()))), item)
    };
    let (program, called) = work("program", json!("p"));
    let (output, ended) = work("program_output", json!("p"));
    let (alone, searched) = work("tool_search_output", json!(null));
    let answer = |blocks: &[&Block]| Message::assistant_blocks(blocks.iter().copied().cloned().collect());
    let text = Block::text("Hi");
    let whole = vec![answer(&[&program]), answer(&[&output, &text])];
    assert_eq!(input(whole), json!([called, ended, said("Hi")]));
    assert_eq!(input(vec![answer(&[&program, &output, &text])]), json!([called, ended, said("Hi")]));
    assert_eq!(input(vec![answer(&[&output, &text])]), json!([said("Hi")]));
    assert_eq!(input(vec![answer(&[&alone, &text])]), json!([searched, said("Hi")]), "it names no call");
}

#[test]
fn reasoning_that_no_server_can_read_is_left_out() {
    let bare =
        json!({"type": "reasoning", "id": "rs_1", "summary": [], "content": [], "encrypted_content": null});
    let block = |format: &str| with_data(BlockContent::Reasoning("Hm.".into()), format, bare.clone());
    let message = |format: &str| Message::assistant_blocks(vec![block(format), Block::text("Hi")]);
    assert_eq!(input(vec![message(FORMAT)]), json!([said("Hi")]));
}

#[test]
fn data_of_other_servers_and_providers_stays_here() {
    let others = ["openai-responses@other.example.org", "openai-chat", "anthropic-messages", "gemini"];
    for format in others {
        let encrypted = json!({"type": "reasoning", "encrypted_content": "e", "signature": "s"});
        let blocks = vec![
            with_data(BlockContent::Reasoning("Hm.".into()), format, encrypted),
            Block::new(BlockContent::Opaque(Opaque::new(
                format,
                "web_search_call",
                json!({"type": "web_search_call"}),
            ))),
            with_data(BlockContent::Text("Hi".into()), format, json!({"phase": "p"})),
            with_data(BlockContent::ToolCall(ToolCall::new("c", "f", "{}")), format, json!({"x": 1})),
        ];
        let call = json!({"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"});
        assert_eq!(input(vec![Message::assistant_blocks(blocks)]), json!([said("Hi"), call]), "{format}");
    }
}

#[test]
fn data_of_this_server_goes_back_on_its_item() {
    let search = json!({"type": "web_search_call", "id": "ws_1", "status": "completed"});
    let picture = Media::from_bytes("image/png", vec![104, 105]);
    let blocks = vec![
        Block::new(BlockContent::Opaque(Opaque::new(FORMAT, "web_search_call", search.clone()))),
        with_data(BlockContent::Text("Hi".into()), FORMAT, json!({"phase": "commentary"})),
        Block::new(BlockContent::Citation(Citation::default())),
        with_data(BlockContent::ToolCall(ToolCall::new("c", "f", "{}")), FORMAT, json!({"namespace": "n"})),
        with_data(
            BlockContent::Media(picture),
            FORMAT,
            json!({"type": "image_generation_call", "id": "ig_1"}),
        ),
    ];
    let items = input(vec![Message::assistant_blocks(blocks)]);
    assert_eq!(items[0], search);
    assert_eq!(items[1]["phase"], "commentary");
    assert_eq!(items[2]["namespace"], "n");
    assert_eq!(items[3], json!({"type": "image_generation_call", "id": "ig_1", "result": "aGk="}));
    assert_eq!(items[4], Value::Null);
}

#[test]
fn content_that_cannot_go_back_leaves_a_note() {
    let picture = || Block::new(BlockContent::Media(Media::from_url("image/png", "https://example.org/a")));
    let opaque = Block::new(BlockContent::Opaque(Opaque::new("gemini", "x", json!({}))));
    assert_eq!(
        input(vec![Message::assistant_blocks(vec![picture(), picture()])]),
        json!([said("[image]"), said("[image]")])
    );
    assert_eq!(
        input(vec![Message::assistant_blocks(vec![Block::text("See:"), picture()])]),
        json!([said("See:"), said("[image]")]),
        "also beside a text"
    );
    assert_eq!(
        input(vec![Message::assistant_blocks(vec![opaque])]),
        json!([said("[content that cannot be shown here]")])
    );
    let nothing = Block::new(BlockContent::Reasoning("Hm.".into()));
    assert_eq!(
        input(vec![Message::assistant_blocks(vec![nothing]), Message::user("x")]),
        json!([{"role": "user", "content": "x"}])
    );
    let refusal = Block::new(BlockContent::Refusal("No.".into()));
    assert_eq!(input(vec![Message::assistant_blocks(vec![refusal])]), json!([said("No.")]));
}

#[test]
fn media_go_out_as_parts_in_messages_and_results() {
    let bytes = |mime: &str| Media::from_bytes(mime, vec![104, 105]);
    let mut stored = bytes("image/png");
    stored.source = MediaSource::ProviderFile("file_1".into());
    let parts = vec![
        Part::Text("See".into()),
        Part::Image(Media::from_url("image/png", "https://example.org/a")),
        Part::Image(bytes("image/png")),
        Part::Image(stored.clone()),
        Part::Audio(bytes("audio/mpeg")),
        Part::Video(Media::from_url("video/mp4", "https://example.org/c")),
        Part::File(bytes("application/pdf").with_name("a.pdf")),
        Part::File(Media::from_url("application/pdf", "https://example.org/b")),
        Part::File(stored),
        Part::File(Media::from_url("application/pdf", "data:application/pdf;base64,aGk=")),
        Part::Image(Media::from_url("image/png", "")),
    ];
    let expected = json!([
        {"type": "input_text", "text": "See"},
        {"type": "input_image", "image_url": "https://example.org/a"},
        {"type": "input_image", "image_url": "data:image/png;base64,aGk="},
        {"type": "input_image", "file_id": "file_1"},
        {"type": "input_text", "text": "[audio/mpeg left out: the Responses API does not take it]"},
        {"type": "input_text", "text": "[video/mp4 left out: the Responses API does not take it]"},
        {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,aGk="},
        {"type": "input_file", "file_url": "https://example.org/b"},
        {"type": "input_file", "file_id": "file_1"},
        {"type": "input_file", "filename": "file", "file_data": "data:application/pdf;base64,aGk="},
        {"type": "input_text", "text": "[image/png left out: it is empty]"},
    ]);
    let result = ToolResult::new(&ToolCall::new("c", "f", "{}"), parts.clone());
    let items = input(vec![Message::user_parts(parts), Message::tool(result)]);
    assert_eq!((&items[0]["content"], &items[1]["output"]), (&expected, &expected));
}

#[test]
fn q69_long_ids_and_odd_names_are_mapped() {
    let long = "x".repeat(65);
    let call = ToolCall::new(long.as_str(), "docs.search", "{}");
    let message = Message::assistant_blocks(vec![call.clone().into()]);
    let items = input(vec![message, Message::tool(ToolResult::new(&call, vec!["r".into()]))]);
    let id = items[0]["call_id"].as_str().expect("an id");
    assert!(id.len() <= 64 && items[1]["call_id"] == id, "{items}");
    assert_eq!(items[0]["name"], "docs_search");
    let accepted = "y".repeat(64);
    let kept =
        input(vec![Message::assistant_blocks(vec![ToolCall::new(accepted.as_str(), "f", "{}").into()])]);
    assert_eq!(kept[0]["call_id"], accepted.as_str());
}

#[test]
fn tools_are_flat_and_explicitly_not_strict() {
    let options = ChatOptions {
        parallel_tool_calls: Some(false),
        tool_choice: Some(ToolChoice::Tool("f".into())),
        ..ChatOptions::default()
    };
    let request =
        ChatRequest { options, ..ChatRequest::new(Message::user("x")).with_tool(DescribedTool::named("f")) };
    let body = written(&request);
    let function = json!({"type": "function", "name": "f", "description": "Does it.", "parameters": {"type": "object"}, "strict": false});
    assert_eq!(body["tools"], json!([function]));
    assert_eq!(body["tool_choice"], json!({"type": "function", "name": "f"}));
    assert_eq!(body["parallel_tool_calls"], false);

    let search = json!({"type": "web_search"});
    let settings = BodySettings { server_tools: [search.clone()].into(), ..streaming() };
    let both = written_with(&request, &settings, &form()).expect("a body");
    assert_eq!(both["tools"], json!([function, search]));
    let alone = ChatRequest {
        options: ChatOptions { tool_choice: Some(ToolChoice::Required), ..ChatOptions::default() },
        ..ChatRequest::new(Message::user("x"))
    };
    let alone = written_with(&alone, &settings, &form()).expect("a body");
    assert_eq!((&alone["tools"], &alone["tool_choice"]), (&json!([search]), &json!("required")));

    let choices = [(ToolChoice::None, "none"), (ToolChoice::Auto, "auto")];
    for (choice, word) in choices {
        let options = ChatOptions { tool_choice: Some(choice), ..ChatOptions::default() };
        assert_eq!(written(&ChatRequest { options, ..request.clone() })["tool_choice"], word);
    }
    let none = written(&ChatRequest {
        options: ChatOptions { tool_choice: Some(ToolChoice::Auto), ..ChatOptions::default() },
        ..ChatRequest::new(Message::user("x"))
    });
    assert_eq!((none.get("tools"), none.get("tool_choice")), (None, None));
}

#[test]
fn options_have_the_names_of_this_api() {
    let schema = json!({"type": "object"});
    let format = ResponseFormat::JsonSchema { name: "answer".into(), schema: schema.clone(), strict: true };
    let options = ChatOptions {
        response_format: Some(format),
        seed: Some(1),
        max_tokens: Some(9),
        top_p: Some(0.25),
        temperature: Some(0.5),
        ..ChatOptions::default()
    }
    .with_extra("reasoning", json!({"effort": "low"}))
    .with_extra("text", json!({"verbosity": "low"}));
    let body = written(&ChatRequest { options, ..ChatRequest::new(Message::user("x")) });
    assert_eq!(
        body,
        json!({
            "input": [{"role": "user", "content": "x"}],
            "model": "m", "stream": true, "store": false, "include": ["reasoning.encrypted_content"],
            "temperature": 0.5, "top_p": 0.25, "max_output_tokens": 9,
            "reasoning": {"effort": "low"},
            "text": {"verbosity": "low", "format": {"type": "json_schema", "name": "answer", "schema": schema, "strict": true}},
        })
    );
    for (format, word) in [(ResponseFormat::Text, "text"), (ResponseFormat::JsonObject, "json_object")] {
        let options = ChatOptions { response_format: Some(format), ..ChatOptions::default() };
        let body = written(&ChatRequest { options, ..ChatRequest::new(Message::user("x")) });
        assert_eq!(body["text"]["format"], json!({"type": word}));
    }
}

#[test]
fn options_that_the_api_lacks_are_errors() {
    let request = ChatRequest {
        options: ChatOptions { stop: vec!["END".into()], ..ChatOptions::default() },
        ..ChatRequest::new(Message::user("x"))
    };
    let error = written_with(&request, &streaming(), &form()).expect_err("impossible");
    assert_eq!(error.kind(), ErrorKind::InvalidRequest);
    assert!(error.to_string().contains("OpenAiModel"), "{error}");
}

#[test]
fn encrypted_reasoning_is_requested_where_it_exists() {
    let include = |model: &str| {
        let (json, _) =
            body(&ChatRequest::new(Message::user("x")), model, &streaming(), &form()).expect("a body");
        serde_json::from_slice::<Value>(&json).expect("JSON").get("include").cloned()
    };
    for model in ["gpt-5", "o4-mini", "openai/gpt-5.2", "grok-4", "codex-mini-latest"] {
        assert!(include(model).is_some(), "{model}");
    }
    for model in
        ["gpt-4o", "gpt-4.1-mini", "openai/gpt-4o", "chatgpt-4o-latest", "gpt-5-chat-latest", "gpt-3.5-turbo"]
    {
        assert!(include(model).is_none(), "{model}");
    }
    let own = ChatOptions::default().with_extra("include", json!([]));
    assert_eq!(
        written(&ChatRequest { options: own, ..ChatRequest::new(Message::user("x")) })["include"],
        json!([])
    );
}

#[test]
fn own_input_and_tools_replace_ours() {
    let options = ChatOptions::default()
        .with_extra("input", "Hi")
        .with_extra("tools", json!([{"type": "function", "name": "docs.search"}]));
    let request =
        ChatRequest { options, ..ChatRequest::new(Message::user("x")).with_tool(DescribedTool::named("f")) };
    let (json, names) = body(&request, "m", &streaming(), &form()).expect("a body");
    let json: Value = serde_json::from_slice(&json).expect("JSON");
    assert_eq!((&json["input"], &json["tools"][0]["name"]), (&json!("Hi"), &json!("docs.search")));
    assert_eq!(names.meant_by("docs.search").as_deref(), Some("docs.search"));
}
