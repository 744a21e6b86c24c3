//! README's start and the program with a typed tool, run as programs.

use std::process::Stdio;
use std::time::Duration;

use advisor_testkit::{ChatTranscript, Gate, ReplayServer, Reply};
use tokio::io::AsyncReadExt;
use tokio::process::Command;
use tokio::time::timeout;

const README: &str = include_str!("../../../README.md");
const PROGRAM: &str = include_str!("../../readme/start.rs");
const ORDINARY: &str = include_str!("../../readme/ordinary.rs");
const TYPED: &str = include_str!("../../readme/typed.rs");

/// The maximum number of lines that a model and a typed tool add to a program.
const MOST_FURTHER_LINES: usize = 12;

#[test]
fn the_program_is_readmes_start() {
    let start = README.split("```rust,no_run\n").nth(1).and_then(|rest| rest.split("```").next());
    assert!(
        start.is_some_and(|start| PROGRAM.ends_with(start)),
        "copy README's start to examples/readme/start.rs"
    );
}

/// Both programs have the same function, and all their lines count.
#[test]
fn typed_start_has_few_lines_more_than_ordinary_program() {
    let body = "    Forecast { city, degrees: vec![12; usize::from(days.unwrap_or(1))] }\n";
    assert!(ORDINARY.contains(body) && TYPED.contains(body) && TYPED.contains("#[tool]"));
    let (typed, ordinary) = (TYPED.lines().count(), ORDINARY.lines().count());
    assert!(typed <= ordinary + MOST_FURTHER_LINES, "{typed} lines in place of {ordinary}");
}

#[tokio::test]
async fn typed_start_answers_with_the_result_of_its_function() {
    let arguments = [r#"{"city":"Os"#, r#"lo","days":2}"#];
    let asks =
        ChatTranscript::new("m").tool_call(0, "call_1", "weather", &arguments).finish("tool_calls").done();
    let answers = ChatTranscript::new("m").text("A coat.").finish("stop").done();
    let server = ReplayServer::start([Reply::sse(asks), Reply::sse(answers)]).await.unwrap();
    let program = Command::new(env!("CARGO_BIN_EXE_typed"))
        .env("OPENAI_BASE_URL", format!("{}/v1", server.url()))
        .env("OPENAI_API_KEY", "sk-1")
        .env("OPENAI_MODEL", "m")
        .kill_on_drop(true)
        .output();
    let output = timeout(Duration::from_secs(60), program).await.unwrap().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "A coat.\n", "{output:?}");
    let requests: Vec<_> = server.requests().iter().map(|request| request.json().unwrap()).collect();
    let weather = &requests.first().unwrap()["tools"][0]["function"];
    assert_eq!(weather["description"], "Tells the weather of the next days.");
    assert_eq!(weather["parameters"]["properties"]["city"]["description"], "The city, in English.");
    let result = requests.last().unwrap()["messages"].as_array().unwrap().last().unwrap();
    assert_eq!(result["content"], r#"{"city":"Oslo","degrees":[12,12]}"#);
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
