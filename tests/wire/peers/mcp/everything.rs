//! Every tool of the server is called through a chain; progress, cancellation and the end of its process are seen.

use advisor_chain::mcp::{McpServer, McpTools};
use advisor_tests::prelude::*;
use serde_json::Map;
use tokio::io::AsyncReadExt;
use tokio::time::timeout;

use super::{Everything, LIMIT, command, over_http, over_stdio, script};

fn turn(tools: &McpTools, name: &str, arguments: &Value) -> TurnStream {
    let calls = Answer::from_calls([("c1", name, &*arguments.to_string())]);
    let model = ScriptedModel::new([calls, Answer::from_text("done")]);
    let all = ToolCallAdvisor::builder().streaming(ToolCallStreaming::All).build().unwrap();
    let client = ChatClient::builder(model).advisor(all).advisor(tools.clone());
    client.build().unwrap().prompt().user("go").stream()
}

async fn call(tools: &McpTools, name: &str, arguments: Value) -> (Vec<Part>, ToolResult) {
    let mut turn = turn(tools, name, &arguments);
    let (mut progress, mut result) = (Vec::new(), None);
    let reading = async {
        while let Some(chunk) = turn.next().await {
            let Chunk::Tool(event) = chunk.unwrap() else { continue };
            match event.kind {
                ToolEventKind::Progress { part } => progress.push(part),
                ToolEventKind::Finished { result: finished } => result = Some(finished),
                ToolEventKind::NotStarted { result, .. } => panic!("{name} is not started: {result:?}"),
                _ => {}
            }
        }
    };
    timeout(LIMIT, reading).await.expect("the turn ends");
    (progress, result.expect("the call has a result"))
}

/// Arguments that fit the schema of a tool: those that are required, and no more.
fn arguments(tool: &ToolDefinition) -> Value {
    let required = tool.parameters["required"].as_array().cloned().unwrap_or_default();
    let argument = |name: &Value| {
        let name = name.as_str().unwrap();
        let schema = &tool.parameters["properties"][name];
        let value = match (schema["enum"].get(0), schema["type"].as_str()) {
            (Some(first), _) => first.clone(),
            (None, Some("number" | "integer")) => json!(2),
            (None, Some("boolean")) => json!(true),
            (None, kind) => {
                assert_eq!(kind, Some("string"), "{name} of {}", tool.name);
                json!("some text")
            }
        };
        (name.to_owned(), value)
    };
    let mut arguments: Map<_, _> = required.iter().map(argument).collect();
    match &*tool.name {
        "trigger-long-running-operation" => {
            arguments.extend([("duration".into(), json!(0.2)), ("steps".into(), json!(2))])
        }
        // By default it fetches an address outside of this machine.
        "gzip-file-as-resource" => arguments.extend([("data".into(), json!("data:text/plain,hello"))]),
        _ => {}
    }
    Value::Object(arguments)
}

/// Tools that need sampling, elicitation or roots are not among them: this client does not offer these.
const TOOLS: [&str; 13] = [
    "echo",
    "get-annotated-message",
    "get-env",
    "get-resource-links",
    "get-resource-reference",
    "get-structured-content",
    "get-sum",
    "get-tiny-image",
    "gzip-file-as-resource",
    "toggle-simulated-logging",
    "toggle-subscriber-updates",
    "trigger-long-running-operation",
    // It needs a client with tasks.
    "simulate-research-query",
];

async fn every_tool(everything: Everything) {
    let tools = everything.server.connect().await.unwrap();
    let set = tools.tools().await.unwrap();
    set.definitions().for_each(|tool| tool.validate().unwrap());
    assert_eq!(set.definitions().map(|tool| &*tool.name).collect::<Vec<_>>(), TOOLS);
    for tool in set.definitions() {
        let (progress, result) = call(&tools, &tool.name, arguments(tool)).await;
        check(&tool.name, &progress, &result);
    }
    tools.close().await;
}

fn check(name: &str, progress: &[Part], result: &ToolResult) {
    assert_eq!(result.is_error, name == "simulate-research-query", "{result:?}");
    let text = result.parts[0].as_text().unwrap_or_default();
    match name {
        "echo" => assert_eq!(text, "Echo: some text"),
        "get-sum" => assert_eq!(text, "The sum of 2 and 2 is 4."),
        "get-structured-content" => {
            assert!(matches!(&result.parts[..], [Part::Json(value)] if value["temperature"].is_number()));
        }
        "get-tiny-image" => {
            assert!(matches!(&result.parts[1], Part::Image(image) if image.mime == "image/png"));
        }
        "get-resource-links" => {
            assert!(
                matches!(&result.parts[1], Part::Json(link) if link["uri"].to_string().contains("demo://"))
            );
        }
        "trigger-long-running-operation" => {
            assert_eq!(progress, [Part::from("1 of 2"), Part::from("2 of 2")]);
            assert!(text.starts_with("Long running operation completed"), "{text}");
        }
        "simulate-research-query" => assert!(text.contains("requires task augmentation"), "{text}"),
        _ => assert!(!result.parts.is_empty()),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_tool_is_called_over_stdio() {
    let Some(script) = script() else { return };
    every_tool(over_stdio(script)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_tool_is_called_over_http() {
    let Some(script) = script() else { return };
    every_tool(over_http(script).await).await;
}

/// Drops a turn after the first progress of its call.
async fn cancelled(everything: Everything) {
    let tools = everything.server.connect().await.unwrap();
    let arguments = json!({"duration": 200, "steps": 1_000});
    let mut turn = turn(&tools, "trigger-long-running-operation", &arguments);
    let progress = async {
        loop {
            let chunk = turn.next().await.unwrap().unwrap();
            if matches!(chunk, Chunk::Tool(event) if matches!(event.kind, ToolEventKind::Progress { .. })) {
                return;
            }
        }
    };
    timeout(LIMIT, progress).await.expect("the server reports progress");
    drop(turn);
    everything.sent.contains("notifications/cancelled").await;
    let (_, result) = call(&tools, "get-sum", json!({"a": 1, "b": 2})).await;
    assert_eq!(result.parts, [Part::from("The sum of 1 and 2 is 3.")], "the connection is still used");
    tools.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn law_k2_dropped_call_is_cancelled_over_stdio() {
    let Some(script) = script() else { return };
    cancelled(over_stdio(script)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn law_k2_dropped_call_is_cancelled_over_http() {
    let Some(script) = script() else { return };
    cancelled(over_http(script).await).await;
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn law_r2_process_ends_with_its_connection() {
    let Some(script) = script() else { return };
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    assert!(command("mkfifo").arg(&pipe).status().await.unwrap().success());
    for closed in [true, false] {
        let mut end = tokio::net::unix::pipe::OpenOptions::new().open_receiver(&pipe).unwrap();
        let (pipe, script) = (pipe.clone(), script.clone());
        let server = McpServer::from_command(move || {
            let mut shell = command("sh");
            // The pipe ends with the process.
            shell.args(["-c", r#"exec 9>"$0"; exec node "$1" stdio 2>/dev/null"#]).arg(&pipe).arg(&script);
            shell
        });
        let tools = server.connect().await.unwrap();
        let (_, result) = call(&tools, "echo", json!({"message": "hello"})).await;
        assert_eq!(result.parts, [Part::from("Echo: hello")]);
        if closed {
            tools.close().await;
        }
        drop(tools);
        timeout(LIMIT, end.read_to_end(&mut Vec::new())).await.expect("the process ends").unwrap();
    }
}
