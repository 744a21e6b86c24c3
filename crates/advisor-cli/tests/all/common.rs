//! Running the program.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use advisor_testkit::{ChatTranscript, ReplayServer, Reply};
use tokio::io::AsyncWriteExt;
use tokio::process::Child;

/// The longest time that a test waits for the program. It takes far less, even on a busy machine.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// Returns the program, without the test's environment variables for servers and terminals.
pub(crate) fn advisor(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_advisor"));
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let of_provider = |(name, _): &(String, _)| {
        let starts = ["OPENAI_", "ANTHROPIC_", "GEMINI_", "GOOGLE_", "OLLAMA_"];
        starts.iter().any(|start| name.starts_with(start))
            || matches!(&**name, "ADVISOR_TOOL_CALL_FORMAT" | "AUTOBYTEUS_STREAM_PARSER")
    };
    let providers = std::env::vars().filter(of_provider).map(|(name, _)| name);
    for name in providers {
        command.env_remove(name);
    }
    command.env_remove("NO_COLOR").env("TERM", "xterm");
    command
}

/// A chat with this server.
pub(crate) fn chat(server: &ReplayServer, more: &[&str]) -> Command {
    let mut command = advisor(&["chat", "--model", "m", "--base-url", &format!("{}/v1", server.url())]);
    command.args(more);
    command
}

/// A server that answers the first request with the first answer, and so on.
pub(crate) async fn server(answers: impl IntoIterator<Item = ChatTranscript>) -> ReplayServer {
    let replies = answers.into_iter().map(|answer| Reply::sse(answer.done()));
    ReplayServer::start(replies).await.unwrap()
}

/// Starts the program with standard input open. It is killed when dropped.
pub(crate) fn start(command: Command) -> Child {
    let mut command = tokio::process::Command::from(command);
    command.stdin(Stdio::piped()).kill_on_drop(true).spawn().unwrap()
}

/// Runs the program with this input and returns its output.
pub(crate) async fn told(command: Command, said: impl AsRef<[u8]>) -> Output {
    let mut child = start(command);
    // A program that refuses early reads no more.
    let _ = child.stdin.take().unwrap().write_all(said.as_ref()).await;
    tokio::time::timeout(LIMIT, child.wait_with_output()).await.expect("the program ends").unwrap()
}

/// A file of the test's own.
pub(crate) fn file(name: &str, content: impl AsRef<[u8]>) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, content).unwrap();
    path
}

pub(crate) fn text_of(output: &[u8]) -> String {
    String::from_utf8(output.to_vec()).unwrap()
}
