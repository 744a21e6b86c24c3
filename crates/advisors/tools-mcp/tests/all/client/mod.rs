//! Tools of a server in chains with the tool loop.

mod hostile;
mod http;
mod scripted;

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use advisor_core::{
    AdvisorChain, CallKey, ChatClient, ChatRequest, Chunk, Effect, ErrorKind, Part, Phase, Placement,
    Progress, ToolCall, ToolDefinition, ToolEventKind, ToolInvocation, ToolResult, ToolSet, Turn, TurnId,
    TurnStream, from_fn, text_with_sources, tools_fn,
};
use advisor_testkit::{Answer, ReceivedPrompt, ScriptedModel};
use chat_memory_advisor::{ChatMemoryAdvisor, InMemoryStore};
use futures::StreamExt;
use serde_json::{Value, json};
use tokio::process::Command;
use tokio::runtime::Runtime;
use tokio::time::timeout;
use tool_call_advisor::{FnTool, PolicyAction, ToolCallAdvisor, ToolCallStreaming, ToolPolicy, ToolRule};
use tools_mcp::{McpServer, McpTools};

use crate::client::scripted::{Scripted, read_only, tool, with_schema};

const LIMIT: Duration = Duration::from_secs(600);

fn names(tools: &ToolSet) -> Vec<String> {
    tools.definitions().map(|tool| tool.name.to_string()).collect()
}

fn model(calls: &[(&str, &str)]) -> ScriptedModel {
    let calls = calls.iter().map(|(name, arguments)| Answer::from_calls([("c1", *name, *arguments)]));
    ScriptedModel::new(calls.chain([Answer::from_text("done")]).collect::<Vec<_>>())
}

fn client(model: &ScriptedModel, tools: &McpTools) -> ChatClient {
    let all = ToolCallAdvisor::builder().streaming(ToolCallStreaming::All).build().unwrap();
    ChatClient::builder(model.clone()).advisor(all).advisor(tools.clone()).build().unwrap()
}

/// Calls one tool through a chain, and returns its progress and its result.
async fn call(tools: &McpTools, name: &str, arguments: &str) -> (Vec<Part>, ToolResult) {
    let turn = client(&model(&[(name, arguments)]), tools).prompt().user("go").stream();
    timeout(LIMIT, events(turn)).await.unwrap()
}

async fn events(mut turn: TurnStream) -> (Vec<Part>, ToolResult) {
    let (mut progress, mut result) = (Vec::new(), None);
    while let Some(chunk) = turn.next().await {
        let Chunk::Tool(event) = chunk.unwrap() else { continue };
        match event.kind {
            ToolEventKind::Progress { part } => progress.push(part),
            ToolEventKind::Finished { result: finished }
            | ToolEventKind::NotStarted { result: finished, .. } => {
                result = Some(finished);
            }
            _ => {}
        }
    }
    (progress, result.expect("the call has a result"))
}

fn text_of(result: &ToolResult) -> &str {
    result.parts[0].as_text().unwrap()
}

/// Runs a turn that ends well, and returns the texts of the results before each further answer of the model.
async fn results_in(client: ChatClient, model: &ScriptedModel) -> Vec<String> {
    let client = client.to_builder().model(model.clone()).build().unwrap();
    let answer = timeout(LIMIT, client.prompt().user("go").call()).await.unwrap();
    assert_eq!(answer.expect("the turn goes on").text(), "done");
    let last = |prompt: &ReceivedPrompt| prompt.messages.iter().last().unwrap().tool_result().cloned();
    model.prompts().iter().filter_map(last).map(|result| text_of(&result).to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn call_through_a_chain_reaches_the_server() {
    for server in [Scripted::new(["echo"]), Scripted::legacy(["echo"])] {
        let tools = server.server().connect().await.unwrap();
        let (progress, result) = call(&tools, "echo", r#"{"a":1}"#).await;
        assert!(!result.is_error && progress.is_empty(), "{result:?}");
        assert_eq!(text_of(&result), r#"{"a":1}"#);
        tools.close().await;
    }
}

#[tokio::test(start_paused = true)]
async fn set_has_the_pages_filter_and_prefix() {
    let server = Scripted::new(["read file", "read_dir", "write"]).with_page(1);
    let tools = server
        .server()
        .with_prefix("fs_")
        .with_filter(|name| name.starts_with("read"))
        .connect()
        .await
        .unwrap();
    let set = tools.tools().await.unwrap();
    set.definitions().for_each(|tool| tool.validate().unwrap());
    assert_eq!(names(&set), ["fs_read_file_aa9aceee", "fs_read_dir"]);
    assert_eq!(server.lists(), 3, "the pages are read once");
    let (_, result) = call(&tools, "fs_read_dir", "{}").await;
    assert_eq!(text_of(&result), "ran read_dir");
}

#[tokio::test(start_paused = true)]
async fn second_tool_of_a_name_is_left_out_of_a_list() {
    let twice = Scripted::of(vec![tool("echo"), tool("echo"), tool("look")], false);
    let tools = twice.server().with_name("files").connect().await.unwrap();
    assert_eq!(names(&tools.tools().await.unwrap()), ["echo", "look"]);
}

#[tokio::test(start_paused = true)]
async fn tools_of_this_program_keep_their_names() {
    let tools = Scripted::new(["look"]).server().with_prefix("x_").connect().await.unwrap();
    let own = || {
        let own = ToolDefinition::new("x_look", "Looks.", json!({"type": "object"}));
        FnTool::new(own, |_: Value| async { Ok("own") })
    };
    let set = tools.tools().await.unwrap();
    let added = ToolSet::new().with(own());
    let later = tools_fn("later", move |_| std::future::ready(Ok(added.clone())));
    let builder = || ChatClient::builder(model(&[])).advisor(ToolCallAdvisor::new());
    let clients = [
        (client(&model(&[]), &tools).to_builder().tool(own()).build(), "in the request, by an advisor"),
        (client(&model(&[]), &tools).to_builder().advisor(later).build(), "by an advisor behind it"),
        (builder().tool(own()).tools(&set).build(), "before it in a client"),
        (builder().tools(&set).tool(own()).build(), "behind it in a client"),
    ];
    for (client, what) in clients {
        let model = model(&[("x_look", "{}")]);
        assert_eq!(results_in(client.unwrap(), &model).await, ["own"], "{what}");
        assert_eq!(model.prompts()[0].tools, ["x_look"], "{what}");
    }
}

/// Each server has the tool `shared`: that of `first` runs as `red`, that of `second` as `ed`.
#[tokio::test(start_paused = true)]
async fn server_that_announces_a_tool_of_another_one_neither_gets_its_name_nor_fails_the_turn() {
    for first_is_outer in [true, false] {
        let first = Scripted::new(["red"]).server().with_prefix("sha").with_name("first").connect().await;
        let second = Scripted::new(["ed"]).server().with_prefix("shar").with_name("second").connect().await;
        let (first, second) = (first.unwrap(), second.unwrap());
        let (outer, inner) = if first_is_outer { (&first, &second) } else { (&second, &first) };
        let model = model(&[("shared", "{}")]);
        let client = client(&model, outer).to_builder().advisor(inner.clone()).build().unwrap();
        let results = results_in(client, &model).await;
        assert_eq!(results, ["ran red"], "the outer one is first: {first_is_outer}");
        assert_eq!(model.prompts()[0].tools, ["shared"]);
    }
}

/// The tool `grown` of `old` runs as `wn`. The other server stands in front of it and announces its `grown` later.
#[tokio::test(start_paused = true)]
async fn law_t2_later_list_does_not_take_a_name_of_another_server() {
    let new = Scripted::new(["grow"]).server().with_name("new").connect().await.unwrap();
    let old = Scripted::new(["wn"]).server().with_prefix("gro").with_name("old").connect().await.unwrap();
    let model = model(&[("grow", "{}"), ("grown", "{}"), ("grown", "{}")]);
    let client = client(&model, &new).to_builder().advisor(old.clone()).build().unwrap();
    assert_eq!(results_in(client, &model).await, ["grown", "ran wn", "ran wn"]);
    assert_eq!(new.tools().await.unwrap().len(), 2, "the new list was read");
}

/// The tools of the two servers are equal, and the second one has the name after a restart.
#[tokio::test(start_paused = true)]
async fn law_t7_approval_of_a_tool_is_not_for_that_of_another_server() {
    for (asked, resumed, text) in
        [("one", "one", "ran pay"), ("one", "other", "the definition of the tool has changed")]
    {
        let store = Arc::new(InMemoryStore::new());
        let process = async |server, answers: Vec<Answer>| {
            let tools = Scripted::new(["pay"]).server().with_name(server).connect().await.unwrap();
            let policy = ToolPolicy {
                rules: vec![ToolRule::new(["pay"], PolicyAction::Ask)],
                ..ToolPolicy::default()
            };
            let model = ScriptedModel::new(answers);
            let builder = ChatClient::builder(model.clone())
                .advisor(ToolCallAdvisor::builder().policy(policy).build().unwrap())
                .advisor(ChatMemoryAdvisor::new(Arc::clone(&store)))
                .advisor(tools);
            (builder.build().unwrap(), model)
        };
        let (first, _) = process(asked, vec![Answer::from_calls([("c1", "pay", "{}")])]).await;
        first.prompt().user("Pay.").conversation("c").call().await.unwrap();
        let (second, model) = process(resumed, vec![Answer::from_text("done")]).await;
        let pending = second.pending_calls("c").await.unwrap().remove(0);
        let answer =
            second.prompt().conversation("c").resume([pending.approve().unwrap()]).call().await.unwrap();
        assert_eq!(answer.text(), "done");
        let result = model.prompts()[0].messages.iter().last().unwrap().tool_result().unwrap().clone();
        assert!(text_of(&result).contains(text), "{asked} {resumed}: {result:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn announced_list_is_read_before_the_next_round() {
    for server in [Scripted::new(["grow"]), Scripted::legacy(["grow"])] {
        let tools = server.server().connect().await.unwrap();
        let model = model(&[("grow", "{}"), ("grown", "{}")]);
        assert_eq!(results_in(client(&model, &tools), &model).await, ["grown", "ran grown"]);
        let [first, second] = [0, 1].map(|round| model.prompts()[round].tools.clone());
        assert_eq!((&first[..], &second[..]), (&["grow".into()][..], &["grow".into(), "grown".into()][..]));
        assert_eq!(server.lists(), 2, "an unchanged list is not read again");
    }
}

#[tokio::test(start_paused = true)]
async fn law_t2_tools_with_bad_schemas_are_left_out() {
    let long = "x".repeat(256 << 10);
    let schemas = [
        json!({"type": "object", "description": long}),
        json!({"type": "object", "properties": {"a": {"type": "strng"}}}),
        json!({"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1:1/schema"}}}),
        json!({"type": ["object", "null"]}),
    ];
    let bad = schemas.into_iter().enumerate().map(|(n, schema)| with_schema(&format!("bad{n}"), schema));
    let server = Scripted::of([tool("echo")].into_iter().chain(bad).chain([tool("look")]).collect(), false);
    let tools = server.server().connect().await.unwrap();
    let model = model(&[("echo", "{}")]);
    assert_eq!(results_in(client(&model, &tools), &model).await, ["{}"]);
    assert!(model.prompts().iter().all(|prompt| prompt.tools == ["echo", "look"]), "{:?}", model.prompts());
}

/// The time of a pattern can grow without a bound. The server checks it itself.
#[tokio::test(start_paused = true)]
async fn law_r1_patterns_without_a_bound_are_left_to_the_server() {
    let patterns = ["^(?!\\.)(?!.*\\.\\.)([a-z.]*)@[a-z.]+$", "^((a+)+)\\1$", "^(a|a)*(?=b)$"];
    let properties: serde_json::Map<_, _> = patterns
        .iter()
        .zip('a'..)
        .map(|(pattern, name)| (name.to_string(), json!({"pattern": pattern})))
        .collect();
    let schema = json!({"type": "object", "properties": properties, "required": ["a"]});
    let server = Scripted::of(vec![with_schema("mail", schema)], false);
    let tools = server.server().connect().await.unwrap();
    let text = "a".repeat(64) + "!";
    let (_, result) = call(&tools, "mail", &json!({"a": text, "b": text, "c": text}).to_string()).await;
    assert_eq!((text_of(&result), result.is_error), ("ran mail", false));
    let (_, result) = call(&tools, "mail", "{}").await;
    assert!(result.is_error && text_of(&result).contains("\"a\" is a required property"), "{result:?}");
}

/// The tool of that name is one of the program, or one of the list before.
#[tokio::test(start_paused = true)]
async fn law_t2_later_list_does_not_take_names_of_other_tools() {
    let own = ToolDefinition::new("grown", "Looks.", json!({"type": "object"}));
    let own = FnTool::new(own, |_: Value| async { Ok("own") });
    for (own, results) in [(Some(own), ["grown", "grown", "own"]), (None, ["grown", "grown", "ran grown"])] {
        let tools = Scripted::new(["grow"]).server().connect().await.unwrap();
        let model = model(&[("grow", "{}"), ("grow", "{}"), ("grown", "{}")]);
        let client =
            own.into_iter().fold(client(&model, &tools).to_builder(), |client, own| client.tool(own));
        assert_eq!(results_in(client.build().unwrap(), &model).await, results);
        let mut offered = model.prompts()[3].tools.clone();
        offered.sort();
        assert_eq!(offered, ["grow", "grown"]);
    }
}

#[tokio::test(start_paused = true)]
async fn law_t2_failures_of_a_server_are_error_results() {
    let server = Scripted::new(["fail", "refuse", "hang", "large", "nothing"]);
    let tools = server.server().with_name("files").connect().await.unwrap();
    let cases = [
        ("fail", "no such file"),
        ("refuse", "the server `files` refused the call: bad key s3cret"),
        ("hang", "stopped: no answer of the server `files` within 60 s; the outcome is unknown"),
        ("large", "the tool has run, but its result of 4194305 bytes is larger than 4194304 bytes"),
    ];
    for (name, text) in cases {
        let (_, result) = call(&tools, name, "{}").await;
        assert!(result.is_error, "{name}");
        assert_eq!(text_of(&result), text, "{name}");
    }
    let (_, result) = call(&tools, "nothing", "{}").await;
    assert!(!result.is_error);
    assert_eq!(text_of(&result), "[the tool has run; its result has no content]");
}

#[tokio::test(start_paused = true)]
async fn law_t2_lost_server_is_an_error_result() {
    let server = Scripted::new(["die", "echo"]);
    let tools = server.server().with_name("files").connect().await.unwrap();
    let dying = call(&tools, "die", "{}");
    let stop = async {
        server.hanging().await;
        server.stop().await;
    };
    let ((_, result), ()) = tokio::join!(dying, stop);
    assert!(result.is_error);
    assert_eq!(text_of(&result), "the server `files` is gone; the outcome is unknown");
    assert_eq!(server.connections(), 2, "the next round connects again");

    let (_, result) = call(&tools, "echo", "{}").await;
    assert!(!result.is_error, "{result:?}");
    assert_eq!(server.connections(), 2);
}

#[tokio::test(start_paused = true)]
async fn unreachable_server_keeps_its_last_tools() {
    let server = Scripted::new(["echo"]);
    let once = server.once(|| Err(std::io::Error::other("refused at tcp://key@host")));
    let tools = once.with_name("files").connect().await.unwrap();
    assert_eq!(names(&tools.tools().await.unwrap()), ["echo"]);
    tools.close().await;

    let error = tools.tools().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Connection);
    assert_eq!(error.to_string(), "the MCP server `files` cannot be reached");
    assert!(!text_with_sources(&error).contains("key@host"), "{error:?}");
    let (_, result) = call(&tools, "echo", "{}").await;
    assert!(result.is_error);
    assert_eq!(text_of(&result), "not started: the MCP server `files` cannot be reached");
}

#[tokio::test(start_paused = true)]
async fn law_r1_turns_share_one_attempt_at_a_silent_server() {
    let silent = std::sync::Mutex::new(Vec::new());
    // These connections are never answered.
    let once = Scripted::new(["echo"]).once(move || {
        let (near, far) = tokio::io::duplex(1 << 16);
        silent.lock().unwrap().push(far);
        Ok(near)
    });
    let tools = once.connect().await.unwrap();
    tools.close().await;

    let begun = tokio::time::Instant::now();
    let asking = futures::future::join_all((0..5).map(|_| tools.tools()));
    for outcome in timeout(LIMIT, asking).await.unwrap() {
        assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Timeout);
    }
    assert_eq!(begun.elapsed().as_secs(), 30, "they wait for the same attempt");
    assert_eq!(tools.tools().await.unwrap_err().kind(), ErrorKind::Timeout);
    assert_eq!(begun.elapsed().as_secs(), 30, "its failure is remembered");
    tokio::time::advance(Duration::from_secs(30)).await;
    assert_eq!(tools.tools().await.unwrap_err().kind(), ErrorKind::Timeout);
    assert_eq!(begun.elapsed().as_secs(), 90, "for as long as it took");
}

#[tokio::test(start_paused = true)]
async fn progress_of_the_server_is_progress_of_the_tool() {
    let server = Scripted::new(["report"]);
    let tools = server.server().connect().await.unwrap();
    let (progress, result) = call(&tools, "report", "{}").await;
    assert_eq!(progress, [Part::from("1 of 3"), Part::from("nearly there")]);
    assert_eq!(text_of(&result), "reported");
}

#[tokio::test(start_paused = true)]
async fn law_r1_progress_does_not_keep_a_call_for_ever() {
    let server = Scripted::new(["report_for_ever"]);
    let tools = server.server().with_name("files").connect().await.unwrap();
    let tool = Arc::clone(tools.tools().await.unwrap().find("report_for_ever").unwrap());
    let (turn, progress) = (Turn::new(TurnId::random()), Progress::ignored());
    let key = CallKey::new(turn.id().clone(), 1, 0);
    let (call, arguments) = (ToolCall::new("c1", "report_for_ever", "{}"), json!({}));
    let run = tool.run(ToolInvocation { call, arguments, key, progress, turn, conversation: None });
    let error = timeout(LIMIT * 2, run).await.expect("the call ends").unwrap_err();
    let text = "stopped: the server `files` did not end the call within 600 s; the outcome is unknown";
    assert_eq!(&*error.text, text);
}

#[tokio::test(start_paused = true)]
async fn law_k2_dropped_call_is_cancelled_at_the_server() {
    for server in [Scripted::new(["hang", "report_and_hang"]), Scripted::legacy(["hang", "report_and_hang"])]
    {
        let tools = server.server().connect().await.unwrap();
        for name in ["hang", "report_and_hang"] {
            let model = model(&[(name, "{}")]);
            let mut turn = client(&model, &tools).prompt().user("go").stream();
            let reading = async { while turn.next().await.is_some() {} };
            tokio::select! {
                () = reading => panic!("the call does not end"),
                () = server.hanging() => {}
            }
            drop(turn);
            timeout(LIMIT, server.cancelled()).await.expect("the server is told");
        }
        let (_, result) = call(&tools, "hang", "{}").await;
        assert!(result.is_error, "a timeout stops the server, too");
        timeout(LIMIT, server.cancelled()).await.expect("the server is told");
    }
}

#[tokio::test(start_paused = true)]
async fn law_k2_dropped_list_is_cancelled_at_the_server() {
    let server = Scripted::new(["no_list"]);
    let connecting = server.server().connect();
    tokio::select! {
        _ = connecting => panic!("the list does not end"),
        () = server.hanging() => {}
    }
    timeout(LIMIT, server.cancelled()).await.expect("the server is told");
}

#[tokio::test(start_paused = true)]
async fn contents_become_parts() {
    let tools = Scripted::new(["structured", "media"]).server().connect().await.unwrap();
    let (_, result) = call(&tools, "structured", "{}").await;
    assert_eq!(result.parts, [Part::Json(json!({"degrees": 21}))], "the text says the same");
    let (_, result) = call(&tools, "media", "{}").await;
    assert!(matches!(&result.parts[0], Part::Image(image) if image.mime == "image/png"), "{result:?}");
    assert_eq!(result.parts[1], Part::from("[content that cannot be read]"));
    assert_eq!(result.parts[2], Part::from("[content that cannot be read]"));
    assert!(matches!(&result.parts[3], Part::File(file) if file.mime == "application/octet-stream"));
    assert_eq!(result.parts[4], Part::from("a note"));
}

#[tokio::test(start_paused = true)]
async fn server_that_asks_the_client_is_refused() {
    let tools = Scripted::legacy(["ask"]).server().connect().await.unwrap();
    let (_, result) = call(&tools, "ask", "{}").await;
    let answers = r#"Mcp error: -32601: sampling/createMessage; {"action":"decline"}; {"roots":[]}"#;
    assert_eq!(text_of(&result), answers);
}

#[tokio::test(start_paused = true)]
async fn effects_are_believed_only_by_option() {
    let server = Scripted::of(vec![read_only("look"), tool("write")], false);
    let effects = |set: ToolSet| set.definitions().map(|tool| tool.effect).collect::<Vec<_>>();
    let tools = server.server().connect().await.unwrap();
    assert_eq!(effects(tools.tools().await.unwrap()), [None, None]);
    let tools = server.server().with_trusted_annotations().connect().await.unwrap();
    assert_eq!(effects(tools.tools().await.unwrap()), [Some(Effect::Pure), None]);
}

#[tokio::test(start_paused = true)]
async fn law_r1_lists_are_bounded() {
    let endless = Scripted::new(["endless"]);
    let error = endless.server().connect().await.unwrap_err();
    assert_eq!((error.kind(), endless.lists()), (ErrorKind::TooLarge, 100));
    let many: Vec<_> = (0..1_001).map(|n| format!("t{n}")).collect();
    let error = Scripted::new(many.iter().map(String::as_str)).server().connect().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge);
    let long = tool("a").with_title("x".repeat(5 << 20));
    let error = Scripted::of(vec![long], false).server().connect().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge);
}

#[tokio::test(start_paused = true)]
async fn law_r1_check_by_a_schema_without_a_bound_ends() {
    let doubled = |at: usize| {
        let before = json!({"$ref": format!("#/$defs/a{at}")});
        (format!("a{}", at + 1), json!({"allOf": [before, before]}))
    };
    let mut definitions: serde_json::Map<_, _> = (0..40).map(doubled).collect();
    definitions.insert("a0".into(), json!({"type": "string"}));
    let property = json!({"a": {"$ref": "#/$defs/a40"}});
    let schema = json!({"type": "object", "$defs": definitions, "properties": property});
    let server = Scripted::of(vec![with_schema("slow", schema), tool("echo")], false);
    let tools = server.server().connect().await.unwrap();
    let (_, result) = call(&tools, "slow", r#"{"a":"b"}"#).await;
    assert_eq!((text_of(&result), result.is_error), ("ran slow", false), "the server checks the rest");
    let (_, result) = call(&tools, "echo", "{}").await;
    assert!(!result.is_error, "{result:?}");
}

#[tokio::test(start_paused = true)]
async fn law_r3_no_secret_in_debug_and_errors() {
    let server = || {
        McpServer::from_url("http://127.0.0.1:1/?key=s3cret")
            .with_bearer("s3cret")
            .with_header("x-key", "s3cret")
    };
    assert!(!format!("{:?}", server()).contains("s3cret"));
    let error = server().connect().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Connection);
    assert!(!format!("{error:?} {}", text_with_sources(&error)).contains("s3cret"), "{error:?}");
    let error = server().with_header("x\n", "s3cret").connect().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Configuration);
    assert!(!format!("{error:?}").contains("s3cret"));
}

#[tokio::test(start_paused = true)]
async fn rounds_share_one_set() {
    let server = Scripted::new(["echo"]);
    let tools = server.server().connect().await.unwrap();
    let model = model(&[("echo", "{}"), ("echo", "{}")]);
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let seeing = seen.clone();
    struct Made(usize);
    let spy = from_fn("spy", move |request: ChatRequest, next: AdvisorChain| {
        let mut seen = seeing.lock().unwrap();
        let next_number = seen.len();
        seen.push(request.tools.wire_form(|_| Made(next_number)).0);
        async move { next.next_stream(request).await }
    })
    .with_placement(Placement::new(Phase::ModelCall));
    let client = client(&model, &tools).to_builder().advisor(spy).build().unwrap();
    for _ in 0..2 {
        let _ = client.prompt().user("go").call().await;
    }
    let seen = seen.lock().unwrap();
    assert!(seen.len() > 3 && seen.iter().all(|first| *first == 0), "{seen:?}");
}

fn silent() -> McpServer {
    McpServer::from_command(|| {
        let mut command = Command::new("sleep");
        command.arg("60");
        command
    })
}

/// The process is killed by the runtime, wherever the future is dropped.
#[test]
fn connection_in_the_making_is_dropped_anywhere() {
    let runtime = Runtime::new().unwrap();
    let mut connecting = Box::pin(silent().connect());
    runtime.block_on(async {
        assert!(futures::poll!(connecting.as_mut()).is_pending());
        tokio::task::yield_now().await;
    });
    drop(connecting);
}

#[test]
fn missing_runtime_is_an_error() {
    let mut context = Context::from_waker(Waker::noop());
    let connected = pin!(silent().connect()).poll(&mut context);
    let Poll::Ready(Err(error)) = connected else { panic!("there is no runtime to wait for") };
    assert_eq!(error.kind(), ErrorKind::Configuration);
}
