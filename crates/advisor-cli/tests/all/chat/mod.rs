//! `advisor chat` as a user or a script runs it.

mod json;
#[cfg(unix)]
mod terminal;

use crate::common::{advisor, chat, server, text_of, told};
use advisor_testkit::{ChatTranscript, ReplayServer, Reply};
use serde_json::{Value, json};

fn answer() -> ChatTranscript {
    ChatTranscript::new("m")
}

fn refusal() -> Reply {
    Reply::json(400, json!({"error": {"message": "no", "code": "nope"}}))
}

#[tokio::test]
async fn failed_turn_in_pipe_exits_with_1() {
    let server = ReplayServer::start([refusal()]).await.unwrap();
    let output = told(chat(&server, &[]), "one\ntwo\n").await;
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert_eq!(text_of(&output.stdout), "");
    let error = text_of(&output.stderr);
    assert!(error.contains("error: ") && error.contains("HTTP 400"), "{error}");
    assert_eq!(server.requests().len(), 1, "what follows a failed turn is not asked");
}

#[tokio::test]
async fn invalid_base_url_exits_with_2() {
    // Also where nothing is asked.
    for input in ["one\n", ""] {
        let output = told(advisor(&["chat", "--model", "m", "--base-url", "nonsense"]), input).await;
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert_eq!(text_of(&output.stdout), "");
        assert!(text_of(&output.stderr).contains("base URL"), "{output:?}");
    }
}

#[tokio::test]
async fn answer_cut_by_error_shows_received_text() {
    let body = answer().text("some").text(" of it").without_done();
    let server = ReplayServer::start([Reply::sse(body)]).await.unwrap();
    let output = told(chat(&server, &[]), "go\n").await;
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert_eq!(text_of(&output.stdout), "some of it\n");
    assert!(text_of(&output.stderr).contains("error: "), "{output:?}");
}

#[tokio::test]
async fn standard_output_holds_the_answer_alone() {
    let server = server([
        answer()
            .reasoning("I do not know,\nso I ")
            .reasoning("look.")
            .text("Let me look.")
            .tool_call(0, "call", "current_time", &["{}"])
            .finish("tool_calls"),
        answer().reasoning("Ah.").text("It is late.\n").finish("stop"),
        answer().text("cut he").finish("length"),
    ])
    .await;
    let output = told(chat(&server, &[]), "What time is it?\nAnd now?\n").await;
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(text_of(&output.stdout), "Let me look.\nIt is late.\ncut he\n");
    let notes = text_of(&output.stderr);
    let lines: Vec<_> = notes.lines().collect();
    assert_eq!(lines[..2], ["| I do not know,", "| so I look."], "{notes}");
    assert!(lines[2].contains("current_time") && lines[3].contains("GMT"), "{notes}");
    assert_eq!(lines[4..], ["| Ah.", "[cut off: the token limit was reached]"], "{notes}");
    assert!(!notes.contains('\x1b'), "{notes}");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn unwritable_notes_do_not_lose_answer() {
    let server = server([answer().reasoning("Hm.").text("Hi").finish("stop")]).await;
    let mut command = chat(&server, &[]);
    command.stderr(std::fs::File::options().write(true).open("/dev/full").unwrap());
    let output = told(command, "hello\n").await;
    assert_eq!((output.status.code(), text_of(&output.stdout)), (Some(0), "Hi\n".to_owned()));
}

/// The tools that the model is offered, by name.
fn offered(request: &Value) -> Vec<&str> {
    let tools = request["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
    tools.iter().filter_map(|tool| tool["function"]["name"].as_str()).collect()
}

#[tokio::test]
async fn model_may_be_given_no_tools() {
    for (more, expected) in [(&[][..], &["current_time"][..]), (&["--no-tools"], &[])] {
        let server = server([answer().text("Hi").finish("stop")]).await;
        let output = told(chat(&server, more), "hello\n").await;
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let request = server.requests().pop().unwrap().json().unwrap();
        assert_eq!(offered(&request), expected, "{more:?}");
    }
}

#[test]
fn contradicting_or_impossible_switches_are_usage_errors() {
    for (more, part) in [
        (&["--no-tools", "--ask", "current_time"][..], "--no-tools"),
        (&["--conversation", ""], "conversation"),
    ] {
        let mut command = advisor(&["chat", "--model", "m", "--base-url", "http://127.0.0.1:9/v1"]);
        let output = command.args(more).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{more:?}: {output:?}");
        assert!(text_of(&output.stderr).contains(part), "{output:?}");
    }
}

#[test]
fn all_that_is_missing_is_named_at_once() {
    const MODEL: [&str; 2] = ["--model", "OPENAI_MODEL"];
    const SERVER: [&str; 3] = ["--base-url", "OPENAI_BASE_URL", "OPENAI_API_KEY"];
    assert!(advisor(&["chat", "--json"]).output().unwrap().stdout.is_empty(), "a usage error is no item");
    for (variables, model, server) in [
        (&[][..], true, true),
        (&[("OPENAI_MODEL", "m")], false, true),
        (&[("OPENAI_API_KEY", "sk-s3cret")], true, false),
        (&[("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")], true, false),
        (&[("OPENAI_BASE_URL", " "), ("OPENAI_MODEL", ""), ("OPENAI_API_KEY", "")], true, true),
    ] {
        let output = advisor(&["chat"]).envs(variables.iter().copied()).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(output.stdout.is_empty(), "{output:?}");
        let error = text_of(&output.stderr);
        assert!(MODEL.iter().all(|name| error.contains(name) == model), "{variables:?}: {error}");
        assert!(SERVER.iter().all(|name| error.contains(name) == server), "{variables:?}: {error}");
        assert!(error.lines().count() <= 2 && !error.contains("s3cret"), "{error}");
    }
}

#[test]
fn help_describes_tools_streams_and_exit_codes() {
    let output = advisor(&["chat", "--help"]).output().unwrap();
    let help = text_of(&output.stdout);
    for part in [
        "--no-tools", "--json", "JSON Lines", "OPENAI_API_KEY", "NO_COLOR", "standard error", "/retry",
        "Exit codes:",
    ] {
        assert!(help.contains(part), "{part}: {help}");
    }
}

#[tokio::test]
async fn a_wait_before_another_attempt_is_shown() {
    let busy = Reply::json(429, json!({"error": {"message": "busy"}})).with_header("retry-after-ms", "20");
    let hi = Reply::sse(answer().text("Hi").finish("stop").done());
    let server = ReplayServer::start([busy, hi]).await.unwrap();
    let output = told(chat(&server, &[]), "hello\n").await;
    assert!(text_of(&output.stderr).contains("WARN asking the model again"), "{output:?}");
    assert_eq!(text_of(&output.stdout), "Hi\n");
}

/// The variable that chooses the form of calls is that of the library; see `ToolCallFormat`.
#[tokio::test]
async fn calls_in_the_text_are_run_if_the_environment_says_so() {
    let call = "Let me look. <tool name=\"current_time\"></tool>";
    for (name, value, in_text) in [
        ("ADVISOR_TOOL_CALL_FORMAT", "xml", true),
        ("AUTOBYTEUS_STREAM_PARSER", " XML", true),
        ("ADVISOR_TOOL_CALL_FORMAT", "api_tool_call", false),
        ("ADVISOR_TOOL_CALL_FORMAT", "", false),
    ] {
        let server =
            server([answer().text(call).finish("stop"), answer().text("It is late.").finish("stop")]);
        let server = server.await;
        let mut command = chat(&server, &[]);
        command.env(name, value);
        let output = told(command, "What time is it?\n").await;
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let request = server.requests()[0].json().unwrap();
        let described = request["messages"].to_string().contains("current_time");
        assert_eq!((described, offered(&request).is_empty()), (in_text, in_text), "{request}");
        assert_eq!(text_of(&output.stdout).contains("<tool"), !in_text, "{output:?}");
        assert_eq!(server.requests().len(), if in_text { 2 } else { 1 });
    }
}

#[test]
fn an_unknown_form_of_calls_is_refused_with_the_known_ones() {
    let base_url = ["--model", "m", "--provider", "openai", "--base-url", "http://127.0.0.1:9/v1"];
    let folder = tempfile::tempdir().unwrap();
    let memory = folder.path().join("chats.sqlite");
    let serve = ["serve", "--listen", "127.0.0.1:0", "--memory", memory.to_str().unwrap()];
    for arguments in [[&["chat"][..], &base_url].concat(), [&serve[..], &base_url].concat(), serve.to_vec()] {
        let output = advisor(&arguments).env("ADVISOR_TOOL_CALL_FORMAT", "yaml").output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let error = text_of(&output.stderr);
        let names = ["ADVISOR_TOOL_CALL_FORMAT", "yaml", "xml", "json", "sentinel", "api_tool_call"];
        assert!(names.iter().all(|name| error.contains(name)), "{error}");
    }
}
