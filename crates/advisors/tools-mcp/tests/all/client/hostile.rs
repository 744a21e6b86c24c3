//! Servers that send what no server should: every failure has a type or is an error result, and nothing panics.

use std::future::ready;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use advisor_core::{ErrorKind, Part, ToolResult};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream};
use tokio::time::timeout;
use tools_mcp::McpServer;

use crate::client::{LIMIT, call, text_of};

/// Answers each request by these bytes.
async fn serve(stream: DuplexStream, answer: impl Fn(&str, &Value) -> Vec<u8>) -> std::io::Result<()> {
    let (input, mut output) = tokio::io::split(stream);
    let mut lines = BufReader::new(input).lines();
    while let Some(line) = lines.next_line().await? {
        let request: Value = serde_json::from_str(&line).unwrap();
        let method = request["method"].as_str().unwrap_or("an answer");
        output.write_all(&answer(method, &request["id"])).await?;
    }
    Ok(())
}

fn response(id: &Value, result: &Value) -> Vec<u8> {
    format!("{}\n", json!({"jsonrpc": "2.0", "id": id, "result": result})).into_bytes()
}

fn refusal(id: &Value, code: i32, message: &str) -> Vec<u8> {
    let error = json!({"code": code, "message": message});
    format!("{}\n", json!({"jsonrpc": "2.0", "id": id, "error": error})).into_bytes()
}

fn serving(answer: impl Fn(&str, &Value) -> Vec<u8> + Clone + Send + Sync + 'static) -> McpServer {
    let server = McpServer::from_stream(move || {
        let (near, far) = tokio::io::duplex(1 << 16);
        tokio::spawn(serve(far, answer.clone()));
        ready(Ok(near))
    });
    server.with_name("files")
}

/// Calls the tool of a server that answers calls by these bytes.
async fn answered(reply: impl Fn(&Value) -> Vec<u8> + Clone + Send + Sync + 'static) -> ToolResult {
    call(&with_reply(reply).connect().await.unwrap(), "t", "{}").await.1
}

/// A server with one tool, which answers calls by `reply`.
fn with_reply(reply: impl Fn(&Value) -> Vec<u8> + Clone + Send + Sync + 'static) -> McpServer {
    let initialized = json!({
        "protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "n", "version": "v"}
    });
    let listed = json!({"tools": [{"name": "t", "inputSchema": {}}]});
    serving(move |method, id| match method {
        "initialize" => response(id, &initialized),
        "tools/list" => response(id, &listed),
        "tools/call" => reply(id),
        "server/discover" => refusal(id, -32_601, "no"),
        _ => Vec::new(),
    })
}

#[tokio::test(start_paused = true)]
async fn law_t2_answers_against_the_protocol_are_error_results() {
    let foreign =
        "the server `files` answered in a way that the protocol does not have; the outcome is unknown";
    let silent = "stopped: no answer of the server `files` within 60 s; the outcome is unknown";
    let results = [
        (json!("text"), foreign),
        (json!({"content": "text"}), foreign),
        (json!({"tools": []}), foreign),
        (json!({"content": [], "isError": true}), "the tool failed without saying why"),
    ];
    for (result, text) in results {
        let shown = result.to_string();
        let answer = answered(move |id| response(id, &result)).await;
        assert_eq!((text_of(&answer), answer.is_error), (text, true), "{shown}");
    }
    let replies: [fn(&Value) -> Vec<u8>; 5] = [
        |_| b"\xff\xfe\n".to_vec(),
        |_| b"{\"jsonrpc\":\"2.0\"}\n[]\nnull\n".to_vec(),
        |_| response(&json!("another id"), &json!({"content": []})),
        |id| format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{{}}}}\n").into_bytes(),
        // Longer than a message may be.
        |id| response(id, &json!({"content": [{"type": "text", "text": "x".repeat(17 << 20)}]})),
    ];
    for (number, reply) in replies.into_iter().enumerate() {
        let answer = answered(reply).await;
        assert_eq!((text_of(&answer), answer.is_error), (silent, true), "{number}");
    }
}

#[tokio::test(start_paused = true)]
async fn text_beside_content_of_an_unknown_kind_is_kept() {
    let known = json!({"type": "text", "text": "known"});
    let unknown = json!({"type": "unheard of", "a": 1});
    let results = [
        (json!([known, unknown]), vec!["known", "[content that cannot be read]"]),
        (json!([{"type": "text"}, known]), vec!["[content that cannot be read]", "known"]),
        (json!([unknown]), vec!["[content that cannot be read]"]),
    ];
    for (content, parts) in results {
        let result = json!({"content": content});
        let answer = answered(move |id| response(id, &result)).await;
        assert_eq!((answer.parts, answer.is_error), (parts.into_iter().map(Part::from).collect(), false));
    }
}

/// Only one request waits, so the error can be of no other one.
#[tokio::test(start_paused = true)]
async fn error_without_an_id_answers_the_only_request_that_waits() {
    let error = json!({"code": -32_600, "message": "no"});
    for error in
        [json!({"jsonrpc": "2.0", "id": null, "error": error}), json!({"jsonrpc": "2.0", "error": error})]
    {
        let tools = with_reply(move |_| format!("{error}\n").into_bytes()).connect().await.unwrap();
        for _ in 0..2 {
            let (_, answer) = call(&tools, "t", "{}").await;
            assert_eq!(text_of(&answer), "the server `files` refused the call: no");
        }
    }
}

/// A server that announces changes of its list, and answers a call with an error without an id.
fn changing(accepts_subscription: bool) -> McpServer {
    let discovered = json!({
        "resultType": "complete", "supportedVersions": ["2026-07-28"], "ttlMs": 0, "cacheScope": "private",
        "capabilities": {"tools": {"listChanged": true}},
        "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "n", "version": "v"}},
    });
    let listed = json!({
        "resultType": "complete", "ttlMs": 0, "cacheScope": "private", "tools": [{"name": "t", "inputSchema": {}}]
    });
    serving(move |method, id| match method {
        "server/discover" => response(id, &discovered),
        "tools/list" => response(id, &listed),
        "subscriptions/listen" if accepts_subscription => {
            let params = json!({"notifications": {"toolsListChanged": true}, "_meta": {"io.modelcontextprotocol/subscriptionId": id}});
            let method = "notifications/subscriptions/acknowledged";
            format!("{}\n", json!({"jsonrpc": "2.0", "method": method, "params": params})).into_bytes()
        }
        "subscriptions/listen" | "tools/call" => refusal(&Value::Null, -32_602, "no such page"),
        _ => Vec::new(),
    })
}

/// The request for changes of the list stays open once it is accepted.
#[tokio::test(start_paused = true)]
async fn error_without_an_id_is_that_of_a_subscription_until_it_is_accepted() {
    for accepts_subscription in [true, false] {
        let tools = changing(accepts_subscription).connect().await.unwrap();
        let (_, answer) = call(&tools, "t", "{}").await;
        assert_eq!(text_of(&answer), "the server `files` refused the call: no such page");
    }
}

/// The server reads both calls, and says only that it cannot read one of them.
#[tokio::test(start_paused = true)]
async fn error_without_an_id_answers_all_requests_that_wait() {
    let calls = Arc::new(AtomicUsize::new(0));
    let server = with_reply(move |_| {
        let is_second = calls.fetch_add(1, Ordering::Relaxed) == 1;
        if is_second { refusal(&Value::Null, -32_700, "no JSON") } else { Vec::new() }
    });
    let tools = server.connect().await.unwrap();
    let (one, other) = tokio::join!(call(&tools, "t", "{}"), call(&tools, "t", "{}"));
    for (_, answer) in [one, other] {
        let text = "the server `files` failed at the call: no JSON; the outcome is unknown";
        assert_eq!(text_of(&answer), text);
    }
}

#[tokio::test(start_paused = true)]
async fn law_r1_long_texts_of_errors_are_cut() {
    let answer = answered(|id| refusal(id, 1, &"ä".repeat(1 << 20))).await;
    assert!(answer.is_error && text_of(&answer).len() < 5_000, "{}", text_of(&answer).len());
}

#[tokio::test(start_paused = true)]
async fn connections_that_begin_otherwise_are_errors() {
    let garbage: [&[u8]; 4] = [
        b"",
        b"\xff\xfe\n{}\n[]\nnull\n",
        b"{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{}}\n",
        b"{\"jsonrpc\":\"2.0\",\"id\":0,\"error\":{\"code\":1,\"message\":\"m\"}}\n",
    ];
    for bytes in garbage {
        let server = McpServer::from_stream(move || async move {
            let (near, mut far) = tokio::io::duplex(1 << 16);
            far.write_all(bytes).await?;
            Ok(near)
        });
        let error = timeout(LIMIT, server.connect()).await.unwrap().unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Connection | ErrorKind::Protocol { .. }), "{error:?}");
    }
    let silent = Mutex::new(Vec::new());
    let server = McpServer::from_stream(move || {
        let (near, far) = tokio::io::duplex(1 << 16);
        silent.lock().unwrap().push(far);
        ready(Ok(near))
    });
    let error = timeout(LIMIT, server.connect()).await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
}

#[tokio::test(start_paused = true)]
async fn law_r1_parts_of_a_result_are_bounded() {
    let block = json!({"type": "image", "data": "", "mimeType": "image/png"});
    for (number, is_error) in [(1_000, false), (1_001, true)] {
        let content = json!({"content": vec![block.clone(); number]});
        let answer = answered(move |id| response(id, &content)).await;
        assert_eq!(answer.is_error, is_error, "{number} of them");
    }
}
