//! The program as a user runs it.

#[cfg(unix)]
mod serve;

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use crate::common::{advisor, chat, file, server, text_of, told};
use advisor_test_support::recordings;
use advisor_testkit::{ChatTranscript, ReplayServer, Reply};
use serde_json::Value;

fn aggregate(path: &std::path::Path) -> Command {
    advisor(&["aggregate", "--api", "openai-chat", path.to_str().unwrap()])
}

const EVENT: &str = r#"{"choices":[{"delta":{"content":"Hi"},"finish_reason":"stop"}]}"#;

fn hi() -> ChatTranscript {
    ChatTranscript::new("m").text("Hi").finish("stop")
}

#[tokio::test]
async fn environment_model_applies_to_explicit_base_url() {
    let server = server([hi(), hi()]).await;
    let base_url = format!("{}/v1", server.url());
    for (more, expected) in [(&[][..], "qwen3"), (&["--model", "phi4"][..], "phi4")] {
        let mut command = advisor(&["chat", "--base-url", &base_url]);
        command.args(more).env("OPENAI_MODEL", "qwen3");
        let output = told(command, "hello\n").await;
        assert!(text_of(&output.stdout).contains("Hi\n"), "{output:?}");
        let request = server.requests().pop().unwrap().json().unwrap();
        assert_eq!(request["model"], expected);
    }
}

#[test]
fn aggregate_lists_media_and_sources_beside_the_text() {
    let event = |delta: &str| format!("data: {{\"choices\":[{{\"delta\":{delta}}}]}}\n\n");
    let body = [
        event(r#"{"content":"The capital is "}"#),
        event(
            r#"{"annotations":[{"type":"url_citation","url_citation":{"url":"https://e.com/a","title":"A"}}]}"#,
        ),
        event(r#"{"content":"Oslo."}"#),
        event(
            r#"{"images":[{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgo="}}]}"#,
        ),
        format!("data: {}\n\ndata: [DONE]\n\n", EVENT.replace("Hi", "")),
    ];
    let output = aggregate(&file("media-and-sources.sse", body.concat())).output().unwrap();
    let outcome: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(outcome["text"], "The capital is Oslo.", "{outcome}");
    assert_eq!(outcome["media"], serde_json::json!([{"mime": "image/png", "bytes": 8}]));
    assert_eq!(outcome["citations"], serde_json::json!([{"url": "https://e.com/a", "title": "A"}]));
}

/// Answers of one text in the wire format of each provider, and the path of its requests.
fn answers() -> [(&'static str, &'static str, Reply); 4] {
    let responses = concat!(
        "data: {\"type\":\"response.output_item.added\",\"output_index\":0,\"item\":{\"type\":\"message\",\"id\":\"m1\",",
        "\"role\":\"assistant\",\"content\":[]}}\n\n",
        "data: {\"type\":\"response.output_text.delta\",\"output_index\":0,\"content_index\":0,\"item_id\":\"m1\",",
        "\"delta\":\"Hi\"}\n\n",
        "data: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\",\"output\":[]}}\n\n",
    );
    let messages = concat!(
        "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Hi\"}}\n\n",
        "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\n",
        "data: {\"type\":\"message_stop\"}\n\n",
    );
    let gemini = concat!(
        "data: {\"candidates\":[{\"content\":{\"role\":\"model\",\"parts\":[{\"text\":\"Hi\"}]},",
        "\"finishReason\":\"STOP\"}]}\n\n",
    );
    let ollama = serde_json::json!({
        "message": {"role": "assistant", "content": "Hi"}, "done": true, "done_reason": "stop",
    });
    [
        ("openai-responses", "/responses", Reply::sse(responses)),
        ("anthropic", "/v1/messages", Reply::sse(messages)),
        ("gemini", "m:streamGenerateContent", Reply::sse(gemini)),
        ("ollama", "/api/chat", Reply::json(200, ollama)),
    ]
}

#[tokio::test]
async fn chat_speaks_the_api_of_each_provider() {
    for (provider, path, answer) in answers() {
        let server = ReplayServer::start([answer]).await.unwrap();
        let command = advisor(&["chat", "--provider", provider, "--model", "m", "--base-url", &server.url()]);
        let output = told(command, "hello\n").await;
        assert!(text_of(&output.stdout).contains("Hi\n"), "{provider}: {output:?}");
        let request = server.requests().pop().unwrap();
        assert!(request.path.contains(path), "{provider}: {}", request.path);
    }
}

#[test]
fn unknown_provider_and_api_are_refused_with_the_known_ones() {
    for (arguments, known) in [
        (&["chat", "--provider", "x"][..], "openai, openai-responses, anthropic, gemini, ollama"),
        (
            &["aggregate", "--api", "x", "f.sse"],
            "openai-chat, openai-responses, anthropic-messages, gemini, ollama",
        ),
    ] {
        let output = advisor(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(text_of(&output.stderr).contains(known), "{output:?}");
    }
}

#[tokio::test]
async fn chat_with_memory_file_resumes_conversation() {
    let server = server([(); 3].map(|()| hi())).await;
    let path = no_store_yet("goes-on.sqlite");
    for (more, sent) in [(&[][..], 1), (&[][..], 3), (&["--conversation", "other"][..], 1)] {
        let output = told(chat(&server, &[&["--memory", &path], more].concat()), "hello\n").await;
        assert!(output.status.success(), "{output:?}");
        let request = server.requests().pop().unwrap().json().unwrap();
        assert_eq!(request["messages"].as_array().unwrap().len(), sent, "{more:?}");
    }
    let no_store = file("no-store.sqlite", "this is a text");
    let output = chat(&server, &["--memory", no_store.to_str().unwrap()]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(text_of(&output.stderr).contains("choose another path"), "{output:?}");
}

/// Runs the program with these arguments and this input, and returns its output.
async fn run(arguments: &[&str], said: impl AsRef<[u8]>) -> Output {
    told(advisor(arguments), said).await
}

/// The path of a store that is not there yet.
fn no_store_yet(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    for suffix in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(format!("{}{suffix}", path.display()));
    }
    path.to_str().unwrap().into()
}

#[tokio::test]
async fn a_conversation_is_listed_exported_and_imported() {
    let server = server([hi(), hi()]).await;
    let (store, other) = (no_store_yet("exported.sqlite"), no_store_yet("imported.sqlite"));
    for conversation in ["b", "a"] {
        let command = chat(&server, &["--memory", &store, "--conversation", conversation]);
        assert!(told(command, "hello\n").await.status.success());
    }
    assert_eq!(text_of(&run(&["conversations", &store], b"").await.stdout), "a\nb\n");
    assert_eq!(text_of(&run(&["conversations", &store, "--tenant", "acme"], b"").await.stdout), "");
    let exported = run(&["export", &store, "--conversation", "a"], b"").await;
    assert!(exported.status.success(), "{exported:?}");
    let lines: Vec<Value> =
        text_of(&exported.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&lines[0]["conversation"], lines.len()), (&"a".into(), 4), "{lines:?}");
    for more in [&[][..], &[], &["--conversation", "copy"], &["--conversation", "copy", "--tenant", "acme"]] {
        let imported = run(&[&["import", &other], more].concat(), &exported.stdout).await;
        assert!(imported.status.success(), "{imported:?}");
        assert!(text_of(&imported.stdout).ends_with(": 3 entries\n"), "{imported:?}");
    }
    assert_eq!(text_of(&run(&["conversations", &other], b"").await.stdout), "a\ncopy\n");
    assert_eq!(text_of(&run(&["conversations", &other, "--tenant", "acme"], b"").await.stdout), "copy\n");
    let again = run(&["export", &other, "--conversation", "a"], b"").await;
    assert_eq!(again.stdout, exported.stdout);
    let odd = "user:42/ä\n\u{1B}[2J\u{202E}";
    let imported = run(&["import", &other, "--conversation", odd], &exported.stdout).await;
    assert_eq!(text_of(&imported.stdout), "user:42/ä\\n\\u{1b}[2J\\u{202e}: 3 entries\n");
    let listed = run(&["conversations", &other], b"").await;
    assert_eq!(text_of(&listed.stdout), "a\ncopy\nuser:42/ä\\n\\u{1b}[2J\\u{202e}\n");
    let exported_odd = run(&["export", &other, "--conversation", odd], b"").await;
    assert!(exported_odd.status.success(), "{exported_odd:?}");
    let refused = run(&["import", &store, "--conversation", "b"], &exported.stdout).await;
    assert_eq!(refused.status.code(), Some(1));
    assert!(text_of(&refused.stderr).contains("import under another id"), "{refused:?}");
}

/// Under the usual umask, other users could read what the program creates with the default permissions.
#[cfg(unix)]
#[tokio::test]
async fn files_with_content_are_for_their_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let server = server([hi()]).await;
    let store = no_store_yet("owned.sqlite");
    let program = chat(&server, &["--memory", &store]);
    let mut command = Command::new("sh");
    command.args(["-c", "umask 022; exec \"$0\" \"$@\""]).arg(program.get_program()).args(program.get_args());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let output = told(command, "hello\n").await;
    assert!(output.status.success(), "{output:?}");
    let mode = std::fs::metadata(&store).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600, "{mode:o}");
}

#[tokio::test]
async fn failed_export_or_import_is_reported() {
    let missing = no_store_yet("nowhere.sqlite");
    for arguments in [&["conversations", &missing][..], &["export", &missing, "--conversation", "a"]] {
        let refused = run(arguments, b"").await;
        assert_eq!(refused.status.code(), Some(2), "{refused:?}");
        assert!(text_of(&refused.stderr).contains("nowhere.sqlite"), "{refused:?}");
        assert!(!PathBuf::from(&missing).exists(), "nothing is made by looking");
    }
    let empty = no_store_yet("empty.sqlite");
    for (lines, told_of) in [("a text", "line 1"), ("", "line 1"), (HEADER, "it has 0 of 2 entries")] {
        let refused = run(&["import", &empty], lines.as_bytes()).await;
        assert_eq!(refused.status.code(), Some(1), "{refused:?}");
        assert!(text_of(&refused.stderr).contains(told_of), "{refused:?}");
    }
    let refused = run(&["import", &empty], format!("{HEADER}\nsecret\n").as_bytes()).await;
    let error = text_of(&refused.stderr);
    assert!(error.contains("line 2 is not an entry") && !error.contains("secret"), "{error}");
    let refused = run(&["export", &empty, "--conversation", "a"], b"").await;
    assert_eq!(refused.status.code(), Some(1));
    assert!(text_of(&refused.stderr).contains("no conversation `a`"), "{refused:?}");
}

const HEADER: &str =
    r#"{"format":"advisor-conversation","version":1,"tenant":"default","conversation":"c","entries":2}"#;

#[tokio::test]
async fn chat_shows_refusals_and_early_finish_reasons() {
    let answer = || ChatTranscript::new("m");
    for (answer, shown, note) in [
        (answer().refusal("I cannot ").refusal("help.").finish("stop"), "I cannot help.\n", ""),
        (answer().finish("stop"), "", "[the answer is empty]\n"),
        (
            answer().text("some").finish("content_filter"),
            "some\n",
            "[cut off by a content filter of the provider]\n",
        ),
    ] {
        let server = server([answer]).await;
        let output = told(chat(&server, &[]), "hello\n").await;
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        assert_eq!((text_of(&output.stdout).as_str(), text_of(&output.stderr).as_str()), (shown, note));
    }
}

#[tokio::test]
async fn printed_json_has_no_raw_control_characters() {
    const HOSTILE: &str = "a\u{9b}2J\u{202e}b\u{7f}";
    let server = server([ChatTranscript::new("m").text(HOSTILE).finish("stop")]).await;
    let store = no_store_yet("hostile.sqlite");
    assert!(told(chat(&server, &["--memory", &store]), "go\n").await.status.success());
    let event = EVENT.replace("Hi", HOSTILE);
    let recording = file("hostile.jsonl", &event);
    let recording = recording.to_str().unwrap();
    for arguments in
        [&["export", &store, "--conversation", "chat"][..], &["aggregate", "--api", "openai-chat", recording]]
    {
        let shown = text_of(&run(arguments, b"").await.stdout);
        assert!(!shown.contains(['\u{9b}', '\u{202e}', '\u{7f}']), "{shown:?}");
        assert!(shown.contains(r"a\u009b2J\u202eb\u007f"), "{shown:?}");
    }
}

#[test]
fn aggregate_reports_outcome_for_any_file_content() {
    let not_utf8 = [EVENT.as_bytes(), b"\n\xff", EVENT.as_bytes()].concat();
    for (name, content, code, text) in [
        ("good.jsonl", format!("{EVENT}\r\n\n").into_bytes(), 0, "Hi"),
        ("good.sse", format!("data: {EVENT}\n\n").into_bytes(), 0, "Hi"),
        ("not-utf8.jsonl", not_utf8, 1, "Hi"),
        ("binary.jsonl", b"\x8d\xb8\xc8V\n\xff\xfe".to_vec(), 1, ""),
    ] {
        let output = aggregate(&file(name, content)).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{name}: {output:?}");
        let outcome: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!((&outcome["text"], outcome["error"].is_null()), (&text.into(), code == 0), "{name}");
        assert!(output.stderr.is_empty(), "{name}: {output:?}");
    }
    let missing = aggregate(&PathBuf::from("no-such-file.sse")).output().unwrap();
    assert_eq!(missing.status.code(), Some(2));
    assert!(text_of(&missing.stderr).contains("no-such-file.sse"));
}

#[test]
fn every_recording_aggregates_as_expected() {
    let apis = ["openai-chat", "openai-responses", "anthropic-messages", "gemini", "other"];
    let all = apis.into_iter().flat_map(|api| recordings::all(api).into_iter().map(move |one| (one, api)));
    for (recording, api) in all {
        let api = match api {
            "other" if recording.provider != "ollama" => continue,
            "other" => "ollama",
            api => api,
        };
        // A file of this name is a body as it was sent, whatever its framing.
        let path = file(&format!("{}.body", recording.name), &recording.body);
        let path = path.to_str().unwrap();
        let output = advisor(&["aggregate", "--api", api, path]).output().unwrap();
        let outcome: Value = serde_json::from_slice(&output.stdout).unwrap();
        let differences = recording.differences(&outcome);
        assert!(differences.is_empty(), "{}: {differences:?}\n{outcome:#}", recording.name);
        let code = i32::from(!outcome["error"].is_null());
        assert_eq!(output.status.code(), Some(code), "{}", recording.name);
        assert!(output.stderr.is_empty(), "{}: {output:?}", recording.name);
    }
}

#[test]
fn demo_shows_the_order_of_the_work() {
    let output = advisor(&["demo"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let shown = text_of(&output.stdout);
    let order = [
        "stored user",
        "request with 2 messages",
        "answer of round 1 is complete",
        "stored assistant(call_1_0,call_1_1)",
        "reader sees the end of round 1",
        "tool call_1_0 starts",
        "tool call_1_1 starts",
        "stored result(call_1_0) result(call_1_1)",
        "request with 5 messages",
    ];
    let (_, lines) = shown.split_once("in which order").unwrap();
    let place = |line: &str| lines.find(&format!("\n {line}\n")).unwrap_or_else(|| panic!("{line}: {shown}"));
    assert!(order.map(place).is_sorted(), "{shown}");
}

#[test]
fn closed_output_pipe_is_no_error() {
    let good = file("for-nobody.sse", format!("data: {EVENT}\n\n"));
    let failed = file("for-nobody-either.sse", "data: {}\n\n");
    for (mut command, code) in [(advisor(&["demo"]), 0), (aggregate(&good), 0), (aggregate(&failed), 1)] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = command.stdout(writer).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        assert!(output.stderr.is_empty(), "{output:?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn unwritable_output_is_reported() {
    let full = || std::fs::File::options().write(true).open("/dev/full").unwrap();
    let good = file("for-a-full-disk.sse", format!("data: {EVENT}\n\n"));
    for mut command in [advisor(&["demo"]), aggregate(&good)] {
        let output = command.stdout(full()).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(text_of(&output.stderr).contains("standard output cannot be written"), "{output:?}");
        // Where that cannot be told either, only the exit code is left.
        assert_eq!(command.stdout(full()).stderr(full()).status().unwrap().code(), Some(2));
    }
}
