//! Tests of `request`.

mod media;
mod messages;
mod order;

use advisor_core::{
    Block, BlockContent, ChatOptions, Message, Opaque, ProviderData, ResponseFormat, ToolCall, ToolChoice,
    ToolDefinition, ToolResult, ToolSet,
};
use advisor_testkit::DescribedTool;
use serde_json::json;

use super::*;
use crate::wire::{FORMAT, format_of};

fn written_with(settings: &BodySettings, request: &ChatRequest) -> Value {
    let (body, _) = body(request, "claude-x", &FORMAT.into(), settings).expect("a body");
    serde_json::from_slice(&body).expect("JSON")
}

fn written(request: &ChatRequest) -> Value {
    written_with(&BodySettings::default(), request)
}

/// Returns these messages on the wire.
fn on_the_wire(messages: Vec<Message>) -> Value {
    written(&ChatRequest::new(messages))["messages"].take()
}

/// Returns the content of a message on the wire.
fn content_of(message: Message) -> Value {
    on_the_wire(vec![message])[0]["content"].take()
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn opaque(value: Value) -> Block {
    let name = value["type"].as_str().expect("a type").to_owned();
    Block::new(BlockContent::Opaque(Opaque::new(FORMAT, name, value)))
}

fn thought(text: &str, format: &str, data: Value) -> Block {
    Block::with_data(BlockContent::Reasoning(text.into()), vec![ProviderData::new(format, data)])
}

#[test]
fn options_become_fields() {
    let options = ChatOptions {
        seed: Some(7),
        stop: vec!["END".into()],
        max_tokens: Some(100),
        top_p: Some(0.9),
        temperature: Some(0.5),
        ..ChatOptions::default()
    }
    .with_extra("metadata", json!({"user_id": "u"}));
    let request =
        ChatRequest { options, ..ChatRequest::new(vec![Message::system("Be brief."), Message::user("Hi")]) };
    assert_eq!(
        written(&request),
        json!({
            "model": "claude-x",
            "max_tokens": 100,
            "stream": true,
            "temperature": 0.5,
            "top_p": 0.9,
            "stop_sequences": ["END"],
            "metadata": {"user_id": "u"},
            "system": [text("Be brief.")],
            "messages": [{"role": "user", "content": [text("Hi")]}],
        })
    );
}

#[test]
fn number_of_tokens_is_always_sent_and_exceeds_thinking() {
    let asked = |options: ChatOptions| {
        written(&ChatRequest { options, ..ChatRequest::new(Message::user("Hi")) })["max_tokens"].as_u64()
    };
    let thinking = |budget: u64| json!({"type": "enabled", "budget_tokens": budget});
    assert_eq!(asked(ChatOptions::default()), Some(8192));
    assert_eq!(asked(ChatOptions::default().with_extra("thinking", thinking(4000))), Some(12_192));
    assert_eq!(
        asked(
            ChatOptions { max_tokens: Some(5), ..ChatOptions::default() }
                .with_extra("thinking", thinking(4000))
        ),
        Some(5)
    );
    assert_eq!(asked(ChatOptions::default().with_extra("max_tokens", 7)), Some(7));
}

#[test]
fn tools_and_their_choice_are_written() {
    let request = ChatRequest::new(Message::user("Hi"))
        .with_tool(DescribedTool::named("look"))
        .with_tool(DescribedTool::new(ToolDefinition::new("now", "", Value::Null)));
    let mut settings = BodySettings::default();
    settings.definitions.push(json!({"type": "web_search_20250305", "name": "web_search"}));
    let body = written_with(&settings, &request);
    assert_eq!(
        body["tools"],
        json!([
            {"name": "look", "description": "Does it.", "input_schema": {"type": "object"}},
            {"name": "now", "input_schema": {"type": "object", "properties": {}}},
            {"type": "web_search_20250305", "name": "web_search"},
        ])
    );
    assert_eq!(body.get("tool_choice"), None);
    // A definition describes a tool of the request that has its name.
    settings.definitions = vec![json!({"type": "custom_2026", "name": "look"})];
    let described = written_with(&settings, &request);
    assert_eq!(described["tools"][0]["name"], "now");
    assert_eq!(described["tools"][1], json!({"type": "custom_2026", "name": "look"}));
    let choice = |choice: Option<ToolChoice>, parallel: Option<bool>| {
        let mut options = ChatOptions::default();
        (options.tool_choice, options.parallel_tool_calls) = (choice, parallel);
        written(&ChatRequest { options, ..request.clone() })["tool_choice"].take()
    };
    for (chosen, parallel, expected) in [
        (Some(ToolChoice::Auto), None, json!({"type": "auto"})),
        (Some(ToolChoice::None), Some(false), json!({"type": "none"})),
        (Some(ToolChoice::Required), None, json!({"type": "any"})),
        (Some(ToolChoice::Required), Some(false), json!({"type": "any", "disable_parallel_tool_use": true})),
        (Some(ToolChoice::Tool("look".into())), None, json!({"type": "tool", "name": "look"})),
        (None, Some(false), json!({"type": "auto", "disable_parallel_tool_use": true})),
        (None, Some(true), json!({"type": "auto", "disable_parallel_tool_use": false})),
    ] {
        assert_eq!(choice(chosen, parallel), expected);
    }
    let without = ChatRequest {
        options: ChatOptions { tool_choice: Some(ToolChoice::Required), ..ChatOptions::default() },
        ..ChatRequest::new(Message::user("Hi"))
    };
    let body = written(&without);
    assert_eq!((body.get("tools"), body.get("tool_choice")), (None, None));
}

#[test]
fn tools_described_in_words_are_not_sent() {
    let options =
        ChatOptions { tool_choice: Some(ToolChoice::Tool("look".into())), ..ChatOptions::default() };
    let request = ChatRequest {
        options,
        ..ChatRequest::new(Message::user("Hi")).with_tool(DescribedTool::named("look"))
    };
    let body = written(&ChatRequest { api_tools: Some(ToolSet::new()), ..request.clone() });
    assert_eq!((body.get("tools"), body.get("tool_choice")), (None, None));
    let settings =
        BodySettings { definitions: vec![json!({"type": "web", "name": "web"})], ..BodySettings::default() };
    let body = written_with(&settings, &ChatRequest { api_tools: Some(ToolSet::new()), ..request });
    assert_eq!((&body["tools"][0]["name"], body.get("tool_choice")), (&json!("web"), None));
}

#[test]
fn schema_of_the_answer_stands_beside_other_output_settings() {
    let schema = json!({"type": "object", "additionalProperties": false});
    let format = ResponseFormat::JsonSchema { name: "city".into(), schema: schema.clone(), strict: true };
    let options = ChatOptions { response_format: Some(format), ..ChatOptions::default() };
    let config = |options: ChatOptions| {
        written(&ChatRequest { options, ..ChatRequest::new(Message::user("Hi")) })
            .get("output_config")
            .cloned()
    };
    let expected = json!({"type": "json_schema", "schema": schema});
    assert_eq!(config(options.clone()), Some(json!({"format": expected})));
    let with_effort = options.with_extra("output_config", json!({"effort": "low"}));
    assert_eq!(config(with_effort), Some(json!({"effort": "low", "format": expected})));
    let object = ChatOptions { response_format: Some(ResponseFormat::JsonObject), ..ChatOptions::default() };
    assert_eq!(config(object), None, "the API has no form for it");
}

#[test]
fn extra_fields_replace_those_of_the_request() {
    let options = ChatOptions {
        tool_choice: Some(ToolChoice::Tool("docs.search".into())),
        ..ChatOptions::default()
            .with_extra("messages", json!([{"role": "user", "content": "raw"}]))
            .with_extra("system", "raw")
            .with_extra("tools", json!([{"name": "docs.search", "input_schema": {"type": "object"}}]))
    };
    let request = ChatRequest {
        options,
        ..ChatRequest::new(vec![Message::system("s"), Message::user("Hi")])
            .with_tool(DescribedTool::named("look"))
    };
    let body = written(&request);
    assert_eq!(body["messages"], json!([{"role": "user", "content": "raw"}]));
    assert_eq!((&body["system"], &body["tools"][0]["name"]), (&json!("raw"), &json!("docs.search")));
    assert_eq!(body["tool_choice"]["name"], "docs.search", "a name that the caller wrote stays");
}

#[test]
fn names_and_ids_fit_and_come_back() {
    let call = ToolCall::new("functions.look:0", "docs.search", "{}");
    let other = ToolCall::new("functions/look:0", "docs_search", "{}");
    let messages = vec![
        Message::user("Hi"),
        Message::assistant_blocks(vec![call.clone().into(), other.clone().into()]),
        Message::tool(ToolResult::new(&call, vec!["1".into()])),
        Message::tool(ToolResult::new(&other, vec!["2".into()])),
    ];
    let request = ChatRequest::new(messages)
        .with_tool(DescribedTool::named("docs.search"))
        .with_tool(DescribedTool::named("docs_search"));
    let (json, names) = body(&request, "claude-x", &FORMAT.into(), &BodySettings::default()).expect("a body");
    let body: Value = serde_json::from_slice(&json).expect("JSON");
    let calls = &body["messages"][1]["content"];
    let results = &body["messages"][2]["content"];
    let fits = |id: &Value| {
        let id = id.as_str().expect("a text");
        !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
    };
    for place in 0..2 {
        assert!(fits(&calls[place]["id"]) && fits(&calls[place]["name"]));
        assert_eq!(calls[place]["id"], results[place]["tool_use_id"]);
        assert_eq!(calls[place]["name"], body["tools"][place]["name"]);
    }
    assert_ne!(calls[0]["id"], calls[1]["id"]);
    assert_ne!(calls[0]["name"], calls[1]["name"]);
    let wire = calls[0]["name"].as_str().expect("a text");
    assert_eq!(names.meant_by(wire).as_deref(), Some("docs.search"));
}

#[test]
fn container_goes_back_while_the_turn_goes_on() {
    let call = ToolCall::new("c1", "look", "{}");
    let reports = json!({"container": {"id": "container_1"}, "stop_details": {"type": "refusal"}});
    let answer = |format: &str| {
        let data = vec![ProviderData::new(format, reports.clone())];
        Message::assistant_blocks(vec![Block::with_data(BlockContent::ToolCall(call.clone()), data)])
    };
    let result = Message::tool(ToolResult::new(&call, vec!["1".into()]));
    let asked = |messages: Vec<Message>| written(&ChatRequest::new(messages));
    let body = asked(vec![Message::user("Hi"), answer(FORMAT), result.clone()]);
    assert_eq!(body["container"], "container_1");
    let sent = json!({"type": "tool_use", "id": "c1", "name": "look", "input": {}});
    assert_eq!(body["messages"][1]["content"][0], sent, "no report is a field of the call");
    assert_eq!(
        asked(vec![Message::user("Hi"), answer(FORMAT)])["container"],
        "container_1",
        "a paused answer"
    );
    for ended in [
        vec![Message::user("Hi"), answer(FORMAT), result.clone(), Message::user("And?")],
        vec![Message::user("Hi"), answer("other"), result.clone()],
        vec![Message::user("Hi")],
    ] {
        assert_eq!(asked(ended).get("container"), None);
    }
    let skills = json!([{"type": "anthropic", "skill_id": "pptx"}]);
    for (own, sent) in [
        (json!("mine"), json!("mine")),
        (json!({"id": "mine"}), json!({"id": "mine"})),
        // What to load into the container names none.
        (json!({"skills": skills}), json!({"skills": skills, "id": "container_1"})),
    ] {
        let options = ChatOptions::default().with_extra("container", own);
        let messages = vec![Message::user("Hi"), answer(FORMAT), result.clone()];
        assert_eq!(written(&ChatRequest { options, ..ChatRequest::new(messages) })["container"], sent);
    }
}

/// The marks for the cache in a body: of its tools, its system and its messages.
fn marks(body: &Value) -> [Vec<String>; 3] {
    let of = |list: &Value| {
        let blocks = list.as_array().into_iter().flatten();
        let marked = blocks.filter(|block| block.get("cache_control").is_some());
        marked
            .map(|block| block["text"].as_str().or(block["name"].as_str()).unwrap_or("?").to_owned())
            .collect()
    };
    let messages = body["messages"].as_array().into_iter().flatten();
    [of(&body["tools"]), of(&body["system"]), messages.flat_map(|message| of(&message["content"])).collect()]
}

#[test]
fn stable_beginnings_are_marked_for_the_cache() {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let mut settings = BodySettings::default();
    let request = ChatRequest::new(vec![
        Message::system("s1"),
        Message::system("s2"),
        Message::user("u1"),
        Message::assistant("a1"),
        Message::user("u2"),
    ])
    .with_tool(DescribedTool::named("look"))
    .with_tool(DescribedTool::named("now"));
    assert_eq!(marks(&written_with(&settings, &request)), [const { Vec::<String>::new() }; 3]);
    settings.caching = PromptCaching::FiveMinutes;
    let body = written_with(&settings, &request);
    assert_eq!(marks(&body), [words(&["now"]), words(&["s2"]), words(&["u2"])]);
    assert_eq!(body["system"][1]["cache_control"], json!({"type": "ephemeral"}));
    settings.caching = PromptCaching::OneHour;
    let body = written_with(&settings, &request);
    assert_eq!(body["tools"][1]["cache_control"], json!({"type": "ephemeral", "ttl": "1h"}));

    // Content that is sent once gets no mark.
    let with_context = request
        .clone()
        .with_message(Message::user("context").ephemeral())
        .with_message(Message::system("s3").ephemeral());
    let body = written_with(&settings, &with_context);
    assert_eq!(marks(&body), [words(&["now"]), words(&["s2"]), words(&["u2"])]);
    assert_eq!(body["messages"][2]["content"].as_array().map(Vec::len), Some(2));
    // The request without the mark is as before.
    settings.caching = PromptCaching::Off;
    assert_eq!(marks(&written_with(&settings, &with_context)), [const { Vec::<String>::new() }; 3]);
}

#[test]
fn last_answer_is_not_marked() {
    let settings = BodySettings { caching: PromptCaching::FiveMinutes, ..BodySettings::default() };
    let thought = thought("Hm.", FORMAT, json!({"signature": "s"}));
    let request = ChatRequest::new(vec![
        Message::user("u1"),
        Message::assistant_blocks(vec![thought, Block::text("a1")]),
    ]);
    assert_eq!(marks(&written_with(&settings, &request))[2], Vec::<String>::new());
}

#[test]
fn whole_answers_are_asked_for_on_demand() {
    let settings = BodySettings { streaming: false, ..BodySettings::default() };
    assert_eq!(written_with(&settings, &ChatRequest::new(Message::user("Hi")))["stream"], false);
}

#[test]
fn data_of_another_server_is_omitted() {
    let other = format_of("api.minimax.io");
    let blocks = |format: &str| {
        let mut hidden = Opaque::new(format, "redacted_thinking", json!({"type": "redacted_thinking"}));
        hidden.value["data"] = "eA==".into();
        let hidden = Block::new(BlockContent::Opaque(hidden));
        vec![thought("Hm.", format, json!({"signature": "s"})), hidden, Block::text("a")]
    };
    let message = Message::assistant_blocks([blocks(FORMAT), blocks(&other)].concat());
    let request = ChatRequest::new(vec![Message::user("Hi"), message]);
    let kinds = |format: &Text| {
        let body = body(&request, "m", format, &BodySettings::default()).expect("a body").0;
        let body: Value = serde_json::from_slice(&body).expect("JSON");
        let content = body["messages"][1]["content"].as_array().cloned().unwrap_or_default();
        content.iter().map(|block| block["type"].as_str().unwrap_or_default().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(kinds(&FORMAT.into()), ["thinking", "redacted_thinking", "text", "text"]);
    assert_eq!(kinds(&other), ["text", "thinking", "redacted_thinking", "text"]);
    assert_eq!(
        kinds(&FORMAT.into()),
        ["thinking", "redacted_thinking", "text", "text"],
        "forms are kept apart"
    );
    assert_eq!(format_of("api.anthropic.com"), *FORMAT);
    assert_eq!(format_of("my.services.ai.azure.com"), *FORMAT);
    assert_eq!(format_of("notanthropic.com"), *"anthropic-messages@notanthropic.com");
}
