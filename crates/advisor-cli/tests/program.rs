//! The program as a user runs it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use advisor_testkit::{ChatTranscript, ReplayServer, Reply};
use serde_json::Value;

/// The program without what the environment of the test says about servers.
fn advisor(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_advisor"));
    command.args(arguments).stdin(Stdio::null());
    for name in ["OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL"] {
        command.env_remove(name);
    }
    command
}

/// A file of the test's own.
fn file(name: &str, content: impl AsRef<[u8]>) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, content).unwrap();
    path
}

fn aggregate(path: &std::path::Path) -> Command {
    advisor(&["aggregate", "--api", "openai-chat", path.to_str().unwrap()])
}

fn text_of(output: &[u8]) -> String {
    String::from_utf8(output.to_vec()).unwrap()
}

const EVENT: &str = r#"{"choices":[{"delta":{"content":"Hi"},"finish_reason":"stop"}]}"#;

/// Says one line to the program and gives what it prints.
async fn chat_with(mut command: Command) -> Output {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"hello\n").unwrap();
    tokio::task::spawn_blocking(move || child.wait_with_output().unwrap()).await.unwrap()
}

/// What a chat of one line prints when the server answers like this.
async fn chat(answer: ChatTranscript) -> String {
    let server = ReplayServer::start([Reply::sse(answer.done())]).await.unwrap();
    let output =
        chat_with(advisor(&["chat", "--model", "m", "--base-url", &format!("{}/v1", server.url())])).await;
    assert!(output.status.success(), "{output:?}");
    text_of(&output.stdout)
}

#[tokio::test]
async fn the_environment_names_the_model_also_of_a_server_given_by_hand() {
    let replies = [(); 2].map(|()| Reply::sse(ChatTranscript::new("m").text("Hi").finish("stop").done()));
    let server = ReplayServer::start(replies).await.unwrap();
    let base_url = format!("{}/v1", server.url());
    for (more, expected) in [(&[][..], "qwen3"), (&["--model", "phi4"][..], "phi4")] {
        let mut command = advisor(&["chat", "--base-url", &base_url]);
        command.args(more).env("OPENAI_MODEL", "qwen3");
        let output = chat_with(command).await;
        assert!(text_of(&output.stdout).contains("Hi\n"), "{output:?}");
        let request = server.requests().pop().unwrap().json().unwrap();
        assert_eq!(request["model"], expected);
    }
}

#[tokio::test]
async fn a_chat_with_a_file_goes_on_where_it_ended() {
    let replies = ["one", "two", "three"]
        .map(|text| Reply::sse(ChatTranscript::new("m").text(text).finish("stop").done()));
    let server = ReplayServer::start(replies).await.unwrap();
    let base_url = format!("{}/v1", server.url());
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("goes-on.sqlite");
    for suffix in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(format!("{}{suffix}", path.display()));
    }
    for (more, sent) in [(&[][..], 1), (&[][..], 3), (&["--conversation", "other"][..], 1)] {
        let mut command = advisor(&["chat", "--model", "m", "--base-url", &base_url, "--memory"]);
        let output = chat_with({
            command.arg(&path).args(more);
            command
        })
        .await;
        assert!(output.status.success(), "{output:?}");
        let request = server.requests().pop().unwrap().json().unwrap();
        assert_eq!(request["messages"].as_array().unwrap().len(), sent, "{more:?}");
    }
    let no_store = file("no-store.sqlite", "this is a text");
    let mut command = advisor(&["chat", "--model", "m", "--base-url", &base_url, "--memory"]);
    let output = command.arg(&no_store).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text_of(&output.stderr).contains("choose another path"), "{output:?}");
}

/// Runs the program, says this to it, and gives what it prints.
fn told(arguments: &[&str], said: &[u8]) -> Output {
    let mut command = advisor(arguments);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // A program that refuses early reads no more.
    let _ = child.stdin.take().unwrap().write_all(said);
    child.wait_with_output().unwrap()
}

/// The path of a store that is not there yet.
fn no_store_yet(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    for suffix in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(format!("{}{suffix}", path.display()));
    }
    path.to_str().unwrap().into()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_conversation_is_listed_exported_and_imported() {
    let replies = [(); 2].map(|()| Reply::sse(ChatTranscript::new("m").text("Hi").finish("stop").done()));
    let server = ReplayServer::start(replies).await.unwrap();
    let base_url = format!("{}/v1", server.url());
    let (store, other) = (no_store_yet("exported.sqlite"), no_store_yet("imported.sqlite"));
    for conversation in ["b", "a"] {
        let arguments = ["chat", "--model", "m", "--base-url", &base_url, "--memory", &store];
        let mut command = advisor(&arguments);
        command.args(["--conversation", conversation]);
        assert!(chat_with(command).await.status.success());
    }
    assert_eq!(text_of(&told(&["conversations", &store], b"").stdout), "a\nb\n");
    assert_eq!(text_of(&told(&["conversations", &store, "--tenant", "acme"], b"").stdout), "");
    let exported = told(&["export", &store, "--conversation", "a"], b"");
    assert!(exported.status.success(), "{exported:?}");
    let lines: Vec<Value> =
        text_of(&exported.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&lines[0]["conversation"], lines.len()), (&"a".into(), 4), "{lines:?}");
    for more in [&[][..], &[], &["--conversation", "copy"], &["--conversation", "copy", "--tenant", "acme"]] {
        let imported = told(&[&["import", &other], more].concat(), &exported.stdout);
        assert!(imported.status.success(), "{imported:?}");
        assert!(text_of(&imported.stdout).ends_with(": 3 entries\n"), "{imported:?}");
    }
    assert_eq!(text_of(&told(&["conversations", &other], b"").stdout), "a\ncopy\n");
    assert_eq!(text_of(&told(&["conversations", &other, "--tenant", "acme"], b"").stdout), "copy\n");
    let again = told(&["export", &other, "--conversation", "a"], b"");
    assert_eq!(again.stdout, exported.stdout);
    let odd = "user:42/ä\n\u{1B}[2J";
    let imported = told(&["import", &other, "--conversation", odd], &exported.stdout);
    assert_eq!(text_of(&imported.stdout), "user:42/ä\\n\\u{1b}[2J: 3 entries\n");
    let listed = told(&["conversations", &other], b"");
    assert_eq!(text_of(&listed.stdout), "a\ncopy\nuser:42/ä\\n\\u{1b}[2J\n");
    let exported_odd = told(&["export", &other, "--conversation", odd], b"");
    assert!(exported_odd.status.success(), "{exported_odd:?}");
    let refused = told(&["import", &store, "--conversation", "b"], &exported.stdout);
    assert_eq!(refused.status.code(), Some(1));
    assert!(text_of(&refused.stderr).contains("import under another id"), "{refused:?}");
}

#[test]
fn what_cannot_be_exported_or_imported_is_told() {
    let missing = no_store_yet("nowhere.sqlite");
    for arguments in [&["conversations", &missing][..], &["export", &missing, "--conversation", "a"]] {
        let refused = told(arguments, b"");
        assert_eq!(refused.status.code(), Some(2), "{refused:?}");
        assert!(text_of(&refused.stderr).contains("nowhere.sqlite"), "{refused:?}");
        assert!(!PathBuf::from(&missing).exists(), "nothing is made by looking");
    }
    let empty = no_store_yet("empty.sqlite");
    for (lines, told_of) in [("a text", "line 1"), ("", "line 1"), (HEADER, "it has 0 of 2 entries")] {
        let refused = told(&["import", &empty], lines.as_bytes());
        assert_eq!(refused.status.code(), Some(1), "{refused:?}");
        assert!(text_of(&refused.stderr).contains(told_of), "{refused:?}");
    }
    let refused = told(&["import", &empty], format!("{HEADER}\nsecret\n").as_bytes());
    let error = text_of(&refused.stderr);
    assert!(error.contains("line 2 is not an entry") && !error.contains("secret"), "{error}");
    let refused = told(&["export", &empty, "--conversation", "a"], b"");
    assert_eq!(refused.status.code(), Some(1));
    assert!(text_of(&refused.stderr).contains("no conversation `a`"), "{refused:?}");
}

const HEADER: &str =
    r#"{"format":"advisor-conversation","version":1,"tenant":"default","conversation":"c","entries":2}"#;

#[test]
fn a_chat_without_a_model_says_how_to_name_one() {
    let output = advisor(&["chat", "--base-url", "http://127.0.0.1:9/v1"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let error = text_of(&output.stderr);
    assert!(error.contains("--model") && error.contains("OPENAI_MODEL"), "{error}");
}

#[tokio::test]
async fn a_chat_shows_refusals_and_says_why_an_answer_ended_early() {
    let answer = || ChatTranscript::new("m");
    let refused = chat(answer().refusal("I cannot ").refusal("help.").finish("stop")).await;
    assert!(refused.contains("I cannot help.\n"), "{refused}");
    for (answer, note) in [
        (answer().finish("stop"), "[the answer is empty]\n"),
        (answer().text("cut he").finish("length"), "cut he\n[cut off: the token limit was reached]\n"),
        (answer().text("some").finish("content_filter"), "some\n[cut off by a content filter"),
    ] {
        let shown = chat(answer).await;
        assert!(shown.contains(note), "{shown}");
    }
    let usual = chat(answer().text("Hi").finish("stop")).await;
    assert!(usual.ends_with("Hi\n"), "{usual}");
}

#[test]
fn aggregate_gives_the_outcome_of_whatever_the_file_holds() {
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
fn a_reader_that_has_read_enough_is_no_error() {
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
fn an_output_that_cannot_be_written_is_told() {
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
