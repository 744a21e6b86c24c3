//! Tests of requests and their answers, over a connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use advisor_core::{
    ChatModel, ChatOptions, ChatRequest, ErrorKind, Message, Result, Tool, ToolDefinition, ToolError,
    ToolInvocation, ToolOutput, async_trait,
};
use advisor_testkit::{ChatTranscript, ReplayServer, Reply};
use bytes::Bytes;
use futures::{StreamExt, stream};
use provider_openai::backoff::Backoff;
use provider_openai::transport::{ByteStream, Transport, TransportError};
use provider_openai::{OpenAiModel, Profile};
use serde_json::json;

use crate::http::common::{HI, call, call_with, hello, model, request};

struct Weather(ToolDefinition);

#[async_trait]
impl Tool for Weather {
    fn definition(&self) -> &ToolDefinition {
        &self.0
    }
    async fn run(&self, _: ToolInvocation) -> Result<ToolOutput, ToolError> {
        Ok("sunny".into())
    }
}

fn weather() -> Weather {
    Weather(ToolDefinition::new("weather", "Tells the weather.", json!({"type": "object", "properties": {}})))
}

#[tokio::test]
async fn a_request_has_its_place_headers_and_body() {
    let server = ReplayServer::start([Reply::sse(hello().done())]).await.expect("a port");
    let model = model(&server).with_api_key("sk-1").with_header("X-Title", "a test");
    let request = ChatRequest {
        options: ChatOptions {
            temperature: Some(0.0),
            model: Some("another".into()),
            ..ChatOptions::default()
        },
        ..ChatRequest::new(Message::user("Hello")).with_tool(weather())
    };
    call_with(&model, request).await.expect("completed");
    let received = &server.requests()[0];
    assert_eq!((received.method.as_str(), received.path.as_str()), ("POST", "/v1/chat/completions"));
    assert_eq!(received.header("authorization"), Some("Bearer sk-1"));
    assert_eq!(received.header("content-type"), Some("application/json"));
    assert_eq!(received.header("accept-encoding"), Some("identity"));
    assert_eq!(received.header("x-title"), Some("a test"));
    let body = received.json().expect("JSON");
    assert_eq!(
        (&body["model"], &body["stream"], &body["temperature"]),
        (&json!("another"), &json!(true), &json!(0.0))
    );
    assert_eq!(body["messages"], json!([{"role": "user", "content": "Hello"}]));
    assert_eq!(body["tools"][0]["function"]["name"], "weather");
}

#[tokio::test]
async fn azure_has_its_own_path_and_header() {
    let server = ReplayServer::start([Reply::sse(hello().done())]).await.expect("a port");
    let model = OpenAiModel::new("my-deployment")
        .with_base_url(server.url())
        .with_profile(Profile::azure_deployment("2024-10-21"))
        .with_api_key("key-1");
    call(&model).await.expect("completed");
    let received = &server.requests()[0];
    assert_eq!(received.path, "/openai/deployments/my-deployment/chat/completions?api-version=2024-10-21");
    assert_eq!((received.header("api-key"), received.header("authorization")), (Some("key-1"), None));
}

#[tokio::test]
async fn chunks_come_as_the_server_sends_them() {
    use advisor_testkit::Gate;
    let (first, second) = (ChatTranscript::new("m").text("Hello").without_done(), hello().done());
    let gate = Gate::new();
    let server = ReplayServer::start([Reply::sse(second).gate_after(first.len(), gate.clone())])
        .await
        .expect("a port");
    let mut stream = model(&server).stream(request()).await.expect("an answer");
    let mut text = String::new();
    while let Some(chunk) = stream.next().await {
        text.push_str(chunk.expect("no error").text().unwrap_or_default());
        if text == "Hello" {
            // The rest has not been sent yet.
            gate.release();
        }
    }
    assert_eq!(text, "Hello there");
}

#[tokio::test]
async fn misconfiguration_is_reported_before_any_request() {
    let server = ReplayServer::start([]).await.expect("a port");
    let good = model(&server);
    for (model, says) in [
        (good.clone().with_base_url("nonsense"), "base URL"),
        (good.clone().with_base_url("https://user:pass@x.example/v1"), "with_api_key"),
        (good.clone().with_api_key("line\nbreak"), "the key"),
        (good.with_header("bad name", "x"), "`bad name`"),
    ] {
        let error = call(&model).await.expect_err(says);
        assert_eq!(error.kind(), ErrorKind::Configuration);
        assert!(error.to_string().contains(says), "{error}");
    }
    assert_eq!(server.counts().connections, 0);
}

/// Reading is driven by the reader: unread data stays at the transport, and with a socket at the server.
#[tokio::test]
async fn body_is_not_read_ahead_of_reader() {
    let taken = Arc::new(AtomicUsize::new(0));
    let transport = Counting(Arc::clone(&taken));
    let model = OpenAiModel::new("m").with_transport(transport).with_retries(Backoff::none());
    let mut stream = model.stream(request()).await.expect("an answer");
    let mut shown = 0;
    while let Some(chunk) = stream.next().await {
        shown += usize::from(chunk.expect("no error").text().is_some());
        let taken = taken.load(Ordering::Relaxed);
        assert!(taken <= shown + 1, "{taken} pieces of the body were taken while {shown} were shown");
        if shown == 1000 {
            break;
        }
    }
    assert_eq!(shown, 1000);
}

/// Counts the pieces that are taken of a body without an end.
struct Counting(Arc<AtomicUsize>);

#[async_trait]
impl Transport for Counting {
    async fn send(&self, _: http::Request<Bytes>) -> Result<http::Response<ByteStream>, TransportError> {
        let taken = Arc::clone(&self.0);
        let body = stream::repeat_with(move || {
            taken.fetch_add(1, Ordering::Relaxed);
            Ok(Bytes::from_static(HI.as_bytes()))
        });
        Ok(http::Response::new(body.boxed()))
    }
}

/// A tool has a name that servers do not accept, such as one of an advisor or of another program's history.
#[tokio::test]
async fn tool_is_called_by_its_offered_name() {
    let on_the_wire = "docs_search";
    let whole = json!({"choices": [{"message": {"tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": on_the_wire, "arguments": "{}"}}]}, "finish_reason": "tool_calls"}]});
    let first_version = json!({"function_call": {"name": on_the_wire, "arguments": "{}"}});
    let replies = [
        Reply::sse(
            ChatTranscript::new("m").tool_call(0, "c1", on_the_wire, &["{", "}"]).finish("tool_calls").done(),
        ),
        Reply::sse(
            ChatTranscript::new("m").tool_call_whole(0, "c1", on_the_wire, "{}").finish("tool_calls").done(),
        ),
        Reply::json(200, whole),
        Reply::sse(ChatTranscript::new("m").delta(first_version).finish("function_call").done()),
        // A name that was not offered stays unchanged.
        Reply::sse(
            ChatTranscript::new("m").tool_call(0, "c1", "docs.search", &["{}"]).finish("tool_calls").done(),
        ),
    ];
    let calls = replies.len();
    let server = ReplayServer::start(replies).await.expect("a port");
    let model = model(&server);
    let tool = || Weather(ToolDefinition::new("docs.search", "Searches.", json!({"type": "object"})));
    for _ in 0..calls {
        let response = call_with(&model, request().with_tool(tool())).await.expect("an answer");
        let called: Vec<_> = response.tool_calls().map(|(_, call)| call.name.to_string()).collect();
        assert_eq!(called, ["docs.search"]);
    }
    for asked in server.requests() {
        assert_eq!(asked.json().expect("JSON")["tools"][0]["function"]["name"], on_the_wire);
    }
}
