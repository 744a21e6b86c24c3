//! Settings of clients: honoured, refused by name, or ignored, as the table of the README has them.

use std::collections::{BTreeMap, BTreeSet};

use advisor_core::{
    ChatClient, ChatModel, ChatOptions, ChatRequest, ChunkStream, ResponseFormat, Result, SchemaSupport,
    ToolChoice, ToolDefinition, async_trait,
};
use advisor_server::ChatServer;
use advisor_testkit::{Answer, ScriptedModel};
use axum::http::StatusCode;
use chat_memory_advisor::{ChatMemoryAdvisor, InMemoryStore};
use serde_json::{Value, json};
use tool_call_advisor::ClientSideTool;

use crate::setting::{Setting, setting, text, told};

const README: &str = include_str!("../../README.md");

/// A model that enforces the form of an answer.
struct Strict(ScriptedModel);

#[async_trait]
impl ChatModel for Strict {
    async fn stream(&self, request: ChatRequest) -> Result<ChunkStream> {
        self.0.stream(request).await
    }

    fn schema_support(&self) -> SchemaSupport {
        SchemaSupport::JsonSchema
    }
}

/// A server whose model enforces the form of an answer, with a tool `ask` of the client.
fn strict(options: ChatOptions) -> Setting {
    let model = ScriptedModel::new([Answer::from_text("Fine.")]);
    let memory = ChatMemoryAdvisor::new(InMemoryStore::new());
    let ask = ClientSideTool::new(ToolDefinition::new("ask", "Asks.", json!({"type": "object"})));
    let client =
        ChatClient::builder(Strict(model.clone())).advisor(memory.clone()).options(options).tool(ask);
    Setting { server: ChatServer::new(client.build().unwrap(), memory), model }
}

/// Returns a request of a route with these settings.
fn request(route: &str, settings: &Value) -> Value {
    let tool = match route {
        "/v1/chat/completions" => json!({"type": "function", "function": {"name": "ask"}}),
        _ => json!({"type": "function", "name": "ask"}),
    };
    let mut body = match route {
        "/v1/responses" => json!({"input": "Hi", "tools": [tool]}),
        _ => json!({"messages": [{"role": "user", "content": "Hi"}], "tools": [tool]}),
    };
    body.as_object_mut().unwrap().extend(settings.as_object().unwrap().clone());
    body
}

/// Returns the options that the model gets.
async fn options(route: &str, settings: Value) -> ChatOptions {
    let setting = strict(ChatOptions::default());
    let response = setting.post(route, &request(route, &settings)).await;
    assert_eq!(response.status(), StatusCode::OK, "{route} {settings}: {}", text(response).await);
    text(response).await;
    setting.model.prompts().last().unwrap().options.clone()
}

const ROUTES: [&str; 3] = ["/v1/chat/completions", "/v1/responses", "/v1/messages"];

/// Returns the cells of a route in the table: the settings that are read, honoured, refused and ignored.
fn table() -> BTreeMap<&'static str, [BTreeSet<&'static str>; 4]> {
    let words = |cell: &'static str| cell.split('`').skip(1).step_by(2).collect::<BTreeSet<_>>();
    let row = |line: &'static str| {
        let cells: Vec<_> = line.trim_matches('|').split(" | ").collect();
        let route = cells[0].trim().trim_matches('`');
        (route, [1, 2, 3, 4].map(|at| words(cells[at])))
    };
    let lines = README.lines().skip_while(|line| !line.starts_with("| route | read |")).skip(2);
    lines.take_while(|line| line.starts_with('|')).map(row).collect()
}

/// A setting and a value with an effect, by route.
fn refused_values() -> BTreeMap<&'static str, Value> {
    let of = [
        json!({
            "n": 2, "logprobs": true, "top_logprobs": 3, "functions": [{"name": "f"}], "function_call": {"name": "f"},
            "modalities": ["text", "audio"], "audio": {"voice": "alloy"}, "web_search_options": {},
        }),
        json!({"background": true, "prompt": {"id": "p"}, "max_tool_calls": 3, "top_logprobs": 3, "store": false}),
        json!({"mcp_servers": [{"url": "https://example.org"}], "container": "c"}),
    ];
    ROUTES.into_iter().zip(of).collect()
}

#[tokio::test]
async fn settings_that_the_chain_cannot_have_are_refused_by_name() {
    let (table, refused) = (table(), refused_values());
    for route in ROUTES {
        let values = refused[route].as_object().unwrap();
        let named: BTreeSet<_> = values.keys().map(String::as_str).collect();
        assert_eq!(named, table[route][2], "{route}");
        let others = refused.values().flat_map(|values| values.as_object().unwrap());
        for (field, value) in values.iter().chain(others.filter(|(field, _)| *field != "store")) {
            let setting = strict(ChatOptions::default());
            let response = setting.post(route, &request(route, &json!({field: value}))).await;
            let message = told(response, StatusCode::BAD_REQUEST).await;
            assert!(message.starts_with(&format!("`{field}")), "{route}: {message}");
            assert_eq!(setting.model.calls(), 0);
        }
    }
}

#[tokio::test]
async fn settings_without_an_effect_are_accepted() {
    for (route, settings) in [
        (
            "/v1/chat/completions",
            json!({"n": 1, "logprobs": false, "top_logprobs": 0, "functions": [], "function_call": "none",
                   "modalities": ["text"], "audio": null, "tool_choice": "auto", "stop": null, "max_tokens": null,
                   "response_format": {"type": "text"}, "parallel_tool_calls": true}),
        ),
        (
            "/v1/responses",
            json!({"background": false, "store": true, "text": {"verbosity": "low"}, "prompt": null}),
        ),
        (
            "/v1/responses",
            json!({"store": false, "conversation": "c1", "text": {"format": {"type": "text"}}}),
        ),
        ("/v1/messages", json!({"mcp_servers": [], "container": null, "tool_choice": {"type": "auto"}})),
    ] {
        assert_eq!(options(route, settings).await, ChatOptions::default(), "{route}");
    }
}

#[tokio::test]
async fn settings_that_are_named_as_ignored_are_accepted() {
    let table = table();
    for route in ROUTES {
        for field in &table[route][3] {
            let options = options(route, json!({*field: {"x": 1}})).await;
            assert_eq!(options, ChatOptions::default(), "{route} {field}");
        }
    }
}

#[tokio::test]
async fn limits_stops_and_choices_reach_the_model() {
    let limited = ChatOptions { max_tokens: Some(7), ..ChatOptions::default() };
    let stopped = ChatOptions { stop: vec!["a".into(), "b".into()], ..ChatOptions::default() };
    let single = ChatOptions { parallel_tool_calls: Some(false), ..ChatOptions::default() };
    let chosen = |choice| ChatOptions { tool_choice: Some(choice), ..ChatOptions::default() };
    let ask = || chosen(ToolChoice::Tool("ask".into()));
    let [chat, responses, messages] = ROUTES;
    for (route, settings, expected) in [
        (chat, json!({"max_tokens": 7}), limited.clone()),
        (chat, json!({"max_completion_tokens": 7}), limited.clone()),
        (chat, json!({"stop": ["a", "b"]}), stopped.clone()),
        (chat, json!({"stop": "a"}), ChatOptions { stop: vec!["a".into()], ..ChatOptions::default() }),
        (chat, json!({"parallel_tool_calls": false}), single.clone()),
        (chat, json!({"tool_choice": "none"}), chosen(ToolChoice::None)),
        (chat, json!({"tool_choice": "required"}), chosen(ToolChoice::Required)),
        (chat, json!({"tool_choice": {"type": "function", "function": {"name": "ask"}}}), ask()),
        (responses, json!({"max_output_tokens": 7}), limited.clone()),
        (responses, json!({"parallel_tool_calls": false}), single.clone()),
        (responses, json!({"tool_choice": {"type": "function", "name": "ask"}}), ask()),
        (messages, json!({"max_tokens": 7}), limited),
        (messages, json!({"stop_sequences": ["a", "b"]}), stopped),
        (messages, json!({"tool_choice": {"type": "any"}}), chosen(ToolChoice::Required)),
        (messages, json!({"tool_choice": {"type": "tool", "name": "ask"}}), ask()),
        (messages, json!({"tool_choice": {"type": "auto", "disable_parallel_tool_use": true}}), single),
    ] {
        assert_eq!(options(route, settings.clone()).await, expected, "{route} {settings}");
    }
}

#[tokio::test]
async fn form_of_an_answer_reaches_a_model_that_enforces_it() {
    let schema = json!({"type": "object"});
    let format = |name: &str, strict| ChatOptions {
        response_format: Some(ResponseFormat::JsonSchema {
            name: name.into(),
            schema: json!({"type": "object"}),
            strict,
        }),
        ..ChatOptions::default()
    };
    let [chat, responses, messages] = ROUTES;
    let described = json!({"name": "city", "schema": schema, "strict": true});
    let in_text = json!({"type": "json_schema", "name": "city", "schema": schema, "strict": true});
    let claude = json!({"type": "json_schema", "schema": schema});
    for (route, settings, expected) in [
        (
            chat,
            json!({"response_format": {"type": "json_schema", "json_schema": described}}),
            format("city", true),
        ),
        (
            chat,
            json!({"response_format": {"type": "json_object"}}),
            ChatOptions { response_format: Some(ResponseFormat::JsonObject), ..ChatOptions::default() },
        ),
        (responses, json!({"text": {"format": in_text}}), format("city", true)),
        (messages, json!({"output_config": {"format": claude}}), format("answer", true)),
        (messages, json!({"output_format": claude}), format("answer", true)),
    ] {
        assert_eq!(options(route, settings.clone()).await, expected, "{route} {settings}");
        let lax = setting([Answer::from_text("Fine.")]);
        let mut body = request(route, &settings);
        body.as_object_mut().unwrap().remove("tools");
        let response = lax.post(route, &body).await;
        let message = told(response, StatusCode::BAD_REQUEST).await;
        assert!(
            message.contains("does not enforce") && message.contains("format` is not supported"),
            "{message}"
        );
    }
}

/// A client lowers the limit of the application, and does not raise it.
#[tokio::test]
async fn smaller_limit_of_tokens_counts() {
    for (own, sent, expected) in [(5, 7, 5), (9, 7, 7)] {
        let setting = strict(ChatOptions { max_tokens: Some(own), ..ChatOptions::default() });
        text(setting.post("/v1/messages", &request("/v1/messages", &json!({"max_tokens": sent}))).await)
            .await;
        assert_eq!(setting.model.prompts().last().unwrap().options.max_tokens, Some(expected));
    }
}

#[tokio::test]
async fn settings_of_another_form_are_refused_by_name() {
    let [chat, responses, messages] = ROUTES;
    for (route, field, value) in [
        (chat, "max_tokens", json!(0)),
        (chat, "stop", json!([1])),
        (chat, "parallel_tool_calls", json!("no")),
        (chat, "tool_choice", json!({"type": "function", "function": {"name": "other"}})),
        (chat, "tool_choice", json!({"type": "custom"})),
        (chat, "response_format", json!({"type": "grammar"})),
        (chat, "response_format", json!({"type": "json_schema"})),
        (responses, "max_output_tokens", json!(-1)),
        (responses, "text", json!({"format": {"type": "json_schema", "name": "x"}})),
        (messages, "stop_sequences", json!("a")),
        (messages, "tool_choice", json!({"type": "auto", "disable_parallel_tool_use": 1})),
    ] {
        let setting = strict(ChatOptions::default());
        let response = setting.post(route, &request(route, &json!({field: value}))).await;
        let message = told(response, StatusCode::BAD_REQUEST).await;
        assert!(message.contains(&format!("`{field}")), "{route} {field}: {message}");
    }
    let without_tools = json!({"messages": [{"role": "user", "content": "Hi"}], "tool_choice": "required"});
    let response = strict(ChatOptions::default()).post(chat, &without_tools).await;
    assert_eq!(response.status(), StatusCode::BAD_REQUEST);
}
