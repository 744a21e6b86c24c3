//! README's start, run as a program.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::process::Stdio;
use std::time::Duration;

use advisor_testkit::{ChatTranscript, Gate, ReplayServer, Reply};
use tokio::io::AsyncReadExt;
use tokio::process::Command;
use tokio::time::timeout;

const README: &str = include_str!("../../README.md");
const PROGRAM: &str = include_str!("../readme/start.rs");

#[test]
fn the_program_is_readmes_start() {
    let start = README.split("```rust,no_run\n").nth(1).and_then(|rest| rest.split("```").next());
    assert!(
        start.is_some_and(|start| PROGRAM.ends_with(start)),
        "copy README's start to examples/readme/start.rs"
    );
}

#[tokio::test]
async fn d14_the_start_shows_each_piece_when_it_comes() {
    let body = ChatTranscript::new("m").text("It is ").text("noon.").finish("stop").done();
    let first = ChatTranscript::new("m").text("It is ").without_done().len();
    let gate = Gate::new();
    let server = ReplayServer::start([Reply::sse(body).gate_after(first, gate.clone())]).await.unwrap();
    let mut program = Command::new(env!("CARGO_BIN_EXE_start"))
        .env("OPENAI_BASE_URL", format!("{}/v1", server.url()))
        .env("OPENAI_API_KEY", "sk-1")
        .env("OPENAI_MODEL", "m")
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut shown = program.stdout.take().unwrap();
    let ran = async {
        let mut piece = [0; 64];
        let length = shown.read(&mut piece).await.unwrap();
        assert_eq!(piece.get(..length), Some(&b"It is "[..]));
        gate.release();
        let mut rest = String::new();
        shown.read_to_string(&mut rest).await.unwrap();
        assert_eq!(rest, "noon.");
        assert!(program.wait().await.unwrap().success());
    };
    timeout(Duration::from_secs(60), ran).await.unwrap();
}
