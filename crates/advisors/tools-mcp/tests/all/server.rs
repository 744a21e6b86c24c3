//! A chain as the tool of a server, called by this project's client.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use advisor_core::{
    ChatClient, Delta, Effect, Error, ErrorKind, Part, Progress, Tool, ToolCall, ToolDefinition, ToolError,
    ToolInvocation, ToolOutput, Turn, TurnId,
};
use advisor_testkit::{Answer, ScriptedModel};
use chat_memory_advisor::{ChatMemoryAdvisor, InMemoryStore};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::time::timeout;
use tools_mcp::{ChainServer, McpServer, McpTools};

const LIMIT: Duration = Duration::from_secs(600);

fn ask() -> ToolDefinition {
    ToolDefinition { effect: Some(Effect::Pure), ..ToolDefinition::new("ask", "Answers.", Value::Null) }
}

fn served(answers: impl IntoIterator<Item = Answer>) -> (ScriptedModel, ChainServer) {
    let model = ScriptedModel::new(answers);
    let memory = ChatMemoryAdvisor::new(InMemoryStore::new());
    let client = ChatClient::builder(model.clone()).advisor(memory).build().unwrap();
    (model, ChainServer::new(client, ask()).unwrap())
}

async fn over_stream(server: ChainServer) -> McpTools {
    let server = McpServer::from_stream(move || {
        let (near, far) = tokio::io::duplex(1 << 16);
        let server = server.clone();
        tokio::spawn(async move { server.serve_stream(far).await });
        std::future::ready(Ok(near))
    });
    server.with_trusted_annotations().connect().await.unwrap()
}

/// The address at which the server listens.
async fn listening(server: &ChainServer) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let router = axum::Router::new().nest("/mcp", server.router());
    tokio::spawn(async move { axum::serve(listener, router).await });
    url
}

async fn over_http(server: &ChainServer) -> McpTools {
    McpServer::from_url(listening(server).await).with_trusted_annotations().connect().await.unwrap()
}

/// Calls the tool. Returns its progress and its result.
async fn call(tools: &McpTools, arguments: Value) -> (Vec<Part>, Result<ToolOutput, ToolError>) {
    let (progress, mut reports) = Progress::channel(16);
    let result = timeout(LIMIT, started(tools, arguments, progress).await).await.unwrap();
    let mut parts = Vec::new();
    while let Ok(part) = reports.try_recv() {
        parts.push(part);
    }
    (parts, result)
}

async fn started(
    tools: &McpTools,
    arguments: Value,
    progress: Progress,
) -> impl Future<Output = Result<ToolOutput, ToolError>> + use<> {
    let tool: Arc<dyn Tool> = Arc::clone(tools.tools().await.unwrap().find("ask").unwrap());
    let turn = Turn::new(TurnId::random());
    let key = advisor_core::CallKey::new(turn.id().clone(), 1, 0);
    let call = ToolCall::new("c1", "ask", arguments.to_string());
    async move { tool.run(ToolInvocation { call, arguments, key, progress, turn, conversation: None }).await }
}

fn text(result: Result<ToolOutput, ToolError>) -> String {
    result.unwrap().parts[0].as_text().unwrap().to_owned()
}

#[tokio::test]
async fn call_is_a_turn_of_its_conversation() {
    for http in [false, true] {
        let answer = Answer::new().text("At ").text("nine.").done();
        let (model, server) = served([answer, Answer::from_text("Yes."), Answer::from_text("Me.")]);
        let tools = if http { over_http(&server).await } else { over_stream(server).await };
        let set = tools.tools().await.unwrap();
        let definition = set.definitions().next().unwrap();
        assert_eq!((&*definition.name, &*definition.description), ("ask", "Answers."));
        assert_eq!(definition.parameters["required"], json!(["message"]));
        assert_eq!(definition.effect, Some(Effect::Pure));

        let (progress, result) = call(&tools, json!({"message": "When?", "conversation": "c1"})).await;
        assert_eq!(text(result), "At nine.");
        assert_eq!(progress, ["At ", "nine."].map(Part::from));
        let (_, result) = call(&tools, json!({"message": "Sure?", "conversation": "c1"})).await;
        assert_eq!(text(result), "Yes.");
        let (_, result) = call(&tools, json!({"message": "Who?"})).await;
        assert_eq!(text(result), "Me.");
        let sent: Vec<_> = model.prompts().iter().map(|prompt| prompt.messages.len()).collect();
        assert_eq!(sent, [1, 3, 1], "a conversation is remembered, a call without one is not");
        tools.close().await;
    }
}

/// Notifies when it is dropped.
struct OnDrop(Arc<Notify>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

/// An answer that begins and then waits, and the sign that it was dropped.
fn waiting() -> (Answer, Arc<Notify>, Arc<Notify>) {
    let (begun, dropped) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (begins, guard) = (Arc::clone(&begun), OnDrop(Arc::clone(&dropped)));
    let wait = async move {
        let _guard = guard;
        begins.notify_one();
        std::future::pending::<()>().await;
    };
    let answer = Answer::new().delta(Delta::text("let me see")).wait(wait).done();
    (answer, begun, dropped)
}

#[tokio::test]
async fn law_k2_cancelled_call_drops_its_turn() {
    for http in [false, true] {
        let (answer, begun, dropped) = waiting();
        let (_, server) = served([answer, Answer::from_text("Here.")]);
        let tools = if http { over_http(&server).await } else { over_stream(server).await };
        let running = started(&tools, json!({"message": "When?"}), Progress::ignored()).await;
        tokio::select! {
            _ = running => panic!("the call does not end"),
            () = begun.notified() => {}
        }
        timeout(LIMIT, dropped.notified()).await.expect("the turn is dropped");
        let (_, result) = call(&tools, json!({"message": "Still there?"})).await;
        assert_eq!(text(result), "Here.");
    }
}

#[tokio::test(start_paused = true)]
async fn law_k2_turn_ends_with_its_connection() {
    let (answer, begun, dropped) = waiting();
    let (_, server) = served([answer]);
    let tools = over_stream(server).await;
    let running = started(&tools, json!({"message": "When?"}), Progress::ignored()).await;
    let running = tokio::spawn(running);
    timeout(LIMIT, begun.notified()).await.expect("the turn begins");
    tools.close().await;
    timeout(LIMIT, dropped.notified()).await.expect("the turn is dropped");
    let error = timeout(LIMIT, running).await.unwrap().unwrap().unwrap_err();
    assert_eq!(&*error.text, "the server `mcp` is gone; the outcome is unknown");
}

#[tokio::test(start_paused = true)]
async fn law_r3_errors_tell_nothing_of_a_conversation() {
    let refused = Answer::refused(Error::new(ErrorKind::Provider { status: Some(500) }, "s3cret"));
    let (_, server) = served([refused]);
    let tools = over_stream(server).await;
    let (_, result) = call(&tools, json!({"message": "s3cret", "conversation": "s3cret"})).await;
    assert_eq!(&*result.unwrap_err().text, "the assistant failed: provider");
    for arguments in
        [json!({}), json!({"message": 3}), json!({"message": "m", "conversation": "s3cret\u{0}"})]
    {
        let (_, result) = call(&tools, arguments).await;
        let error = result.unwrap_err();
        assert!(error.text.contains("refused the call: `"), "{error:?}");
        assert!(!error.text.contains("s3cret"), "{error:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn law_r1_turns_at_once_are_bounded() {
    let (answer, begun, _dropped) = waiting();
    let (_, server) = served([answer]);
    let tools = over_stream(server.with_max_turns(1)).await;
    let running = started(&tools, json!({"message": "When?"}), Progress::ignored()).await;
    let further = async {
        timeout(LIMIT, begun.notified()).await.expect("the turn begins");
        call(&tools, json!({"message": "And when?"})).await.1.unwrap_err()
    };
    tokio::select! {
        _ = running => panic!("the call does not end"),
        error = further => assert_eq!(&*error.text, "too many calls are running; try again later"),
    }
}

/// Settings of TLS, without which no client can be built. Nothing here uses it.
fn tls() -> rustls::ClientConfig {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    config.unwrap().with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth()
}

fn post(url: &str, body: &Value) -> reqwest::RequestBuilder {
    let client = reqwest::Client::builder().tls_backend_preconfigured(tls()).build().unwrap();
    let request = client.post(url).header("accept", "application/json, text/event-stream");
    request.header("content-type", "application/json").body(body.to_string())
}

#[tokio::test]
async fn browsers_and_other_hosts_are_refused() {
    let url = listening(&served([]).1).await;
    for (header, value) in [("origin", "http://evil.example"), ("host", "evil.example")] {
        let response = post(&url, &json!({})).header(header, value).send().await.unwrap();
        assert_eq!(response.status(), 403, "{header}");
    }
}

#[tokio::test]
async fn law_r1_routes_keep_no_sessions() {
    let begin = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "n", "version": "v"}
    }});
    let response = post(&listening(&served([]).1).await, &begin).send().await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers().get("mcp-session-id"), None);
    assert!(response.text().await.unwrap().contains("serverInfo"));
}

/// In the library of the protocol, an empty list would admit all hosts.
#[tokio::test]
async fn empty_list_of_hosts_is_an_error() {
    let (_, server) = served([]);
    let error = server.with_allowed_hosts(Vec::<String>::new()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Configuration);
}
