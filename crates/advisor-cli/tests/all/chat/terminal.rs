//! The same on a terminal.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;

use advisor_testkit::{ChatTranscript, Gate, ReplayServer, Reply};
use nix::pty::{OpenptyResult, openpty};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::time::timeout;

use super::{answer, refusal};
use crate::common::{LIMIT, chat, server, start, text_of, told};

/// Opens a terminal: the side that the program writes to, and the side that the test reads.
fn terminal() -> (File, OwnedFd) {
    let OpenptyResult { master, slave } = openpty(None, None).unwrap();
    (master.into(), slave)
}

/// Reads from a terminal until no writer has it open, which some systems report as an error.
fn read_all(mut master: File) -> String {
    let (mut all, mut buffer) = (Vec::new(), [0; 4096]);
    while let Ok(length @ 1..) = master.read(&mut buffer) {
        all.extend(&buffer[..length]);
    }
    text_of(&all).replace("\r\n", "\n")
}

/// Returns what a terminal shows of a question with these answers.
async fn shown(variables: &[(&str, &str)], answers: impl IntoIterator<Item = ChatTranscript>) -> String {
    let server = server(answers).await;
    let (master, slave) = terminal();
    let mut command = chat(&server, &[]);
    command.stdout(slave.try_clone().unwrap()).stderr(slave);
    command.envs(variables.iter().copied());
    let output = told(command, "hello\n").await;
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    read_all(master)
}

#[tokio::test]
async fn reasoning_is_dim_on_colour_terminal() {
    let dim = "\x1b[2m| Hm.\x1b[0m\n\x1b[2m| So\x1b[0m\nHi\n";
    let plain = "| Hm.\n| So\nHi\n";
    for (variables, expected) in [
        (&[][..], dim),
        (&[("NO_COLOR", "")], dim),
        (&[("NO_COLOR", "1")], plain),
        (&[("TERM", "dumb")], plain),
    ] {
        let answer = answer().reasoning("Hm.\nSo").text("Hi").finish("stop");
        assert_eq!(shown(variables, [answer]).await, expected, "{variables:?}");
    }
}

#[tokio::test]
async fn terminal_receives_no_control_characters_of_a_model() {
    let hostile = "\x1b]0;mine\x07 \u{9b}2J \x1b[2J **bold** \u{202e}\r";
    let arguments = serde_json::json!({"a": hostile}).to_string();
    let call = answer().reasoning(hostile).text(hostile).tool_call(0, "call", "x\x1b[2Jy", &[&arguments]);
    let answers = [call.finish("tool_calls"), answer().text(hostile).finish("stop")];
    let screen = shown(&[], answers).await;
    assert!(!screen.contains(['\x07', '\u{9b}', '\u{202e}', '\r']), "{screen:?}");
    assert!(screen.contains("**bold**"), "{screen:?}");
    for sequence in screen.split('\x1b').skip(1) {
        let (numbers, _) = sequence.strip_prefix('[').and_then(|rest| rest.split_once('m')).unwrap();
        assert!(numbers.chars().all(|char| matches!(char, '0'..='9' | ';')), "{screen:?}");
    }
}

/// What a test enters, in place of a person.
enum Enters {
    /// At the prompt behind the output in front of it.
    Keys(&'static str),
    /// As soon as there is the output in front of it, before any prompt.
    Ahead(&'static str),
    /// Nothing, but lets the server answer.
    Nothing(Gate),
    /// The signal of Ctrl-C, as soon as there is the output in front of it.
    Interrupt,
}
use Enters::{Ahead, Interrupt, Keys, Nothing};

/// Chats on a terminal. Returns the exit code and the screen.
async fn typed(
    server: &ReplayServer,
    script: impl IntoIterator<Item = (&'static str, Enters)>,
) -> (Option<i32>, String) {
    typed_with(server, &[], script).await
}

/// The same, with further arguments.
async fn typed_with(
    server: &ReplayServer,
    arguments: &[&str],
    script: impl IntoIterator<Item = (&'static str, Enters)>,
) -> (Option<i32>, String) {
    let (mut master, slave) = terminal();
    let mut command = chat(server, arguments);
    command.stdin(slave.try_clone().unwrap()).stdout(slave.try_clone().unwrap()).stderr(slave);
    let mut child = tokio::process::Command::from(command).kill_on_drop(true).spawn().unwrap();
    let id = child.id().unwrap();
    let mut keyboard = master.try_clone().unwrap();
    let mut script: Vec<_> = script.into_iter().collect();
    script.reverse();
    let screen = tokio::task::spawn_blocking(move || {
        let (mut all, mut seen, mut buffer) = (String::new(), 0, [0; 4096]);
        while let Ok(length @ 1..) = master.read(&mut buffer) {
            all += &String::from_utf8_lossy(&buffer[..length]);
            let Some((after, enters)) = script.last() else { continue };
            let Some((_, rest)) = all[seen..].rsplit_once(after) else { continue };
            match enters {
                Keys(keys) if rest.contains("> ") => keyboard.write_all(keys.as_bytes()).unwrap(),
                Keys(_) => continue,
                Ahead(keys) => keyboard.write_all(keys.as_bytes()).unwrap(),
                Nothing(gate) => gate.release(),
                Interrupt => interrupt(id),
            }
            seen = all.len();
            script.pop();
        }
        all
    });
    let status = timeout(LIMIT, child.wait()).await.expect("the program ends").unwrap();
    (status.code(), screen.await.unwrap())
}

#[tokio::test]
async fn failed_turn_does_not_end_terminal_chat() {
    let body = answer().text("Hi").finish("stop").done();
    let server = ReplayServer::start([refusal(), Reply::sse(body)]).await.unwrap();
    let script = [("Ctrl-D", Keys("one\r")), ("error: ", Keys("two\r")), ("Hi", Keys("\x04"))];
    let (code, screen) = typed(&server, script).await;
    assert_eq!(code, Some(0), "{screen:?}");
    assert_eq!(server.requests().len(), 2, "{screen:?}");
}

#[tokio::test]
async fn commands_are_run_at_the_prompt() {
    let server = server([answer().text("One").finish("stop"), answer().text("Two").finish("stop")]).await;
    let script = [
        ("Ctrl-D", Keys("/hlep\r")),
        ("no command /hlep", Keys("why\r")),
        ("One", Keys("/retry\r")),
        ("Two", Keys("/quit\r")),
    ];
    let (code, screen) = typed(&server, script).await;
    assert_eq!(code, Some(0), "{screen:?}");
    let asked: Vec<_> = server.requests().iter().map(|request| request.json().unwrap()).collect();
    assert_eq!(asked.len(), 2, "{screen:?}");
    assert_eq!(asked[0]["messages"], asked[1]["messages"], "the same question, without the first answer");
}

#[tokio::test]
async fn interrupt_stops_the_turn_and_the_prompt_returns() {
    let first = answer().text("some ").text("more words").without_done();
    let body = answer().text("some ").text("more words").text("rest").finish("stop").done();
    let reply = Reply::sse(body).gate_after(first.len(), Gate::new());
    let server = ReplayServer::start([reply]).await.unwrap();
    let script = [
        ("Ctrl-D", Keys("one\r")),
        ("more", Interrupt),
        ("[cancelled]", Keys("/history\r")),
        ("cancelled;", Keys("\x03")),
        ("again", Keys("\x03")),
    ];
    let (code, screen) = typed(&server, script).await;
    assert_eq!(code, Some(130), "{screen:?}");
    assert!(screen.contains("some more words"), "{screen:?}");
}

#[tokio::test]
async fn redirected_answer_excludes_prompts_and_typed_input() {
    let server = server([answer().text("Hi").finish("stop")]).await;
    let (mut master, slave) = terminal();
    // Ctrl-D is read as the end of the input.
    master.write_all(b"hello\n\x04").unwrap();
    let mut command = chat(&server, &[]);
    command.stdin(slave.try_clone().unwrap()).stderr(slave);
    let child = tokio::process::Command::from(command).kill_on_drop(true).spawn().unwrap();
    let output = timeout(LIMIT, child.wait_with_output()).await.expect("the program ends").unwrap();
    assert_eq!((output.status.code(), text_of(&output.stdout)), (Some(0), "Hi\n".to_owned()));
    let screen = read_all(master);
    assert!(screen.contains("/help lists the commands.\nTools: current_time.\n> "), "{screen:?}");
}

fn interrupt(id: u32) {
    kill(Pid::from_raw(id.try_into().unwrap()), Signal::SIGINT).unwrap();
}

#[tokio::test]
async fn an_interrupt_ends_a_piped_chat_with_130() {
    for more in [&[][..], &["--json"]] {
        let first = answer().text("some\n").without_done();
        let body = answer().text("some\n").text("more").finish("stop").done();
        let reply = Reply::sse(body).gate_after(first.len(), Gate::new());
        let server = ReplayServer::start([reply]).await.unwrap();
        let mut child = start(chat(&server, more));
        child.stdin.as_mut().unwrap().write_all(b"one\ntwo\n").await.unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut line = async || timeout(LIMIT, lines.next_line()).await.expect("it goes on").unwrap();
        while !line().await.expect("the answer is shown").contains("some") {}
        interrupt(child.id().unwrap());
        let mut last = String::new();
        while let Some(line) = line().await {
            last = line;
        }
        let output = timeout(LIMIT, child.wait_with_output()).await.expect("the program ends").unwrap();
        assert_eq!(output.status.code(), Some(130), "{output:?}");
        match more {
            [] => assert_eq!(text_of(&output.stderr), "[cancelled]\n"),
            _ => assert!(last.contains(r#""type":"error","kind":"cancelled""#), "{last}"),
        }
        assert_eq!(server.requests().len(), 1);
    }
}

fn two_calls() -> ChatTranscript {
    let call = answer().tool_call(0, "a", "current_time", &["{}"]);
    call.tool_call(1, "b", "current_time", &["{}"]).finish("tool_calls")
}

/// A tool that asks: two calls, one of which is edited and one refused. The chat goes on with their results.
#[tokio::test]
async fn calls_wait_for_the_user_on_a_terminal() {
    let server = server([two_calls(), answer().text("So be it.").finish("stop")]).await;
    let script = [
        ("Ctrl-D", Keys("What time?\r")),
        ("y runs it", Keys("maybe\r")),
        ("y runs it", Keys("e\r")),
        ("e", Keys("]\r")),
        ("no JSON", Keys("y\r")),
        ("y runs it", Keys("n not twice\r")),
        ("So be it.", Keys("\x04")),
    ];
    let (code, screen) = typed_with(&server, &["--ask", "current_*"], script).await;
    assert_eq!(code, Some(0), "{screen:?}");
    let sent = server.requests()[1].text().into_owned();
    assert!(sent.contains("GMT") && sent.contains("not started: not twice"), "{sent}");
}

/// Keys typed before the question is shown decide nothing: those behind the line before, and those that arrive while the
/// model answers.
#[tokio::test]
async fn keys_typed_ahead_decide_no_call() {
    for (line, ahead, echo) in [
        ("What time?\ry\r", "y\r", "y\r\n"),
        ("What time?\r", "y\r", "y\r\n"),
        ("What time?\r", "y\ry\ry\r", "y\r\ny\r\ny\r\n"),
        ("What time?\r", "e\r{}\r", "{}\r\n"),
    ] {
        let gate = Gate::new();
        let answers = [two_calls(), answer().text("So be it.").finish("stop")];
        let [first, second] = answers.map(|answer| Reply::sse(answer.done()));
        let server = ReplayServer::start([first.gate_head(gate.clone()), second]).await.unwrap();
        let script = [
            ("Ctrl-D", Keys(line)),
            // The line is read, and the terminal is as it was.
            ("\u{1b}[?2004l", Ahead(ahead)),
            (echo, Nothing(gate)),
            // The second call is not known before the first is decided.
            ("y runs it", Keys("n not seen\ry\r")),
            ("y runs it", Keys("n nor this\r")),
            ("So be it.", Keys("\x04")),
        ];
        let (code, screen) = typed_with(&server, &["--ask", "*"], script).await;
        assert_eq!(code, Some(0), "{screen:?}");
        let sent = server.requests()[1].text().into_owned();
        let refused = sent.contains("not started: not seen") && sent.contains("not started: nor this");
        assert!(refused && !sent.contains("GMT"), "{ahead:?} {sent}");
    }
}

/// Characters that turn or hide text make the name or the arguments of a call look like another one.
#[tokio::test]
async fn lines_of_tools_escape_characters_that_turn_or_hide_text() {
    let unseen = "\u{202e}\u{200e}\u{200f}\u{61c}\u{2066}\u{200b}";
    let arguments = serde_json::json!({"a": unseen}).to_string();
    let calls = || {
        let call = answer().tool_call(0, "a", "current_time", &[&arguments]);
        call.tool_call(1, "b", &format!("odd{unseen}"), &["{}"]).finish("tool_calls")
    };
    let server = server([calls(), answer().text("So be it.").finish("stop")]).await;
    let script = [
        ("Ctrl-D", Keys("What time?\r")),
        ("y runs it", Keys("y\r")),
        ("So be it.", Keys("/history\r")),
        ("⚙ odd", Keys("\x04")),
    ];
    let (code, screen) = typed_with(&server, &["--ask", "current_time"], script).await;
    assert_eq!(code, Some(0), "{screen:?}");
    assert!(!screen.contains(|char| unseen.contains(char)), "{screen:?}");
    for escaped in ["\\u{202e}\\u{200e}", "\\u202e\\u200e", "odd\\u{202e}"] {
        assert!(screen.contains(escaped), "{escaped}: {screen:?}");
    }
}

/// Calls that the user leaves open still wait after a restart.
#[tokio::test]
async fn calls_left_open_wait_after_a_restart() {
    let calls = answer().tool_call(0, "a", "current_time", &["{}"]).finish("tool_calls");
    let server = server([calls, answer().text("It is late.").finish("stop")]).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("chat.sqlite");
    let arguments = ["--ask", "current_time", "--memory", file.to_str().unwrap()];
    let leaves =
        [("Ctrl-D", Keys("What time?\r")), ("y runs it", Keys("\x04")), ("/approve asks", Keys("\x04"))];
    let (code, screen) = typed_with(&server, &arguments, leaves).await;
    assert_eq!(code, Some(0), "{screen:?}");
    let mut piped = chat(&server, &arguments);
    piped.env("NO_COLOR", "1");
    let refused = told(piped, "And?\n").await;
    assert_eq!((refused.status.code(), server.requests().len()), (Some(1), 1), "{refused:?}");
    let decides =
        [("calls wait", Keys("/approve\r")), ("y runs it", Keys("y\r")), ("It is late.", Keys("\x04"))];
    let (code, screen) = typed_with(&server, &arguments, decides).await;
    assert_eq!(code, Some(0), "{screen:?}");
    assert!(server.requests()[1].text().contains("GMT"), "{screen:?}");
}

/// Where nobody can decide, a call that waits ends the program, before a further question drops it.
#[tokio::test]
async fn call_that_waits_in_a_pipe_is_an_error() {
    let calls = answer().tool_call(0, "a", "current_time", &["{}"]).finish("tool_calls");
    let server = server([calls]).await;
    let output = told(chat(&server, &["--ask", "current_time"]), "What time?\nAnd?\n").await;
    assert_eq!((output.status.code(), server.requests().len()), (Some(1), 1), "{output:?}");
    assert!(text_of(&output.stderr).contains("waits for a decision"), "{output:?}");
    let unknown = told(chat(&server, &["--ask", "currant_time"]), "").await;
    assert_eq!(unknown.status.code(), Some(2), "{unknown:?}");
}
