//! The same on a terminal.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;

use advisor_testkit::{Gate, ReplayServer, Reply};
use nix::pty::{OpenptyResult, openpty};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::Child;

use crate::common::{LIMIT, chat, server, start, text_of, told};
use crate::{answer, refusal};

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

/// Returns the output of an answer that follows reasoning.
async fn shown(variables: &[(&str, &str)]) -> String {
    let server = server([answer().reasoning("Hm.\nSo").text("Hi").finish("stop")]).await;
    let (master, slave) = terminal();
    let mut command = chat(&server, &[]);
    command.stdout(slave.try_clone().unwrap()).stderr(slave);
    command.envs(variables.iter().copied());
    let output = told(command, "hello\n").await;
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    read_all(master)
}

#[tokio::test]
async fn d12_reasoning_is_dim_on_colour_terminal() {
    let dim = "\x1b[2m| Hm.\x1b[0m\n\x1b[2m| So\x1b[0m\nHi\n";
    let plain = "| Hm.\n| So\nHi\n";
    assert_eq!(shown(&[]).await, dim);
    for (name, value, expected) in [("NO_COLOR", "", dim), ("NO_COLOR", "1", plain), ("TERM", "dumb", plain)]
    {
        assert_eq!(shown(&[(name, value)]).await, expected, "{name}={value}");
    }
}

#[tokio::test]
async fn d12_each_stream_is_looked_at_by_itself() {
    let server = server([answer().reasoning("Hm.").text("Hi").finish("stop")]).await;
    let (master, slave) = terminal();
    let mut command = chat(&server, &[]);
    command.stdout(slave);
    let output = told(command, "hello\n").await;
    assert_eq!((text_of(&output.stderr).as_str(), read_all(master).as_str()), ("| Hm.\n", "Hi\n"));
}

#[tokio::test]
async fn d12_failed_turn_does_not_end_terminal_chat() {
    let body = answer().text("Hi").finish("stop").done();
    let server = ReplayServer::start([refusal(), Reply::sse(body)]).await.unwrap();
    let (mut master, slave) = terminal();
    let mut command = chat(&server, &[]);
    command.stdin(slave.try_clone().unwrap()).stdout(slave.try_clone().unwrap()).stderr(slave);
    let mut child = tokio::process::Command::from(command).kill_on_drop(true).spawn().unwrap();
    let mut typed = master.try_clone().unwrap();
    let screen = tokio::task::spawn_blocking(move || {
        let (mut all, mut buffer) = (String::new(), [0; 4096]);
        // The typed lines, each with the output that comes before its prompt.
        let mut script = [("Ctrl-D", "one\r"), ("error: ", "two\r"), ("Hi", "\x04")].into_iter().peekable();
        while let Ok(length @ 1..) = master.read(&mut buffer) {
            all += &String::from_utf8_lossy(&buffer[..length]);
            let prompted = |after: &str| all.rsplit_once(after).is_some_and(|(_, rest)| rest.contains("> "));
            if let Some((_, line)) = script.next_if(|(after, _)| prompted(after)) {
                typed.write_all(line.as_bytes()).unwrap();
            }
        }
        all
    });
    let status = tokio::time::timeout(LIMIT, child.wait()).await.expect("the program ends").unwrap();
    let screen = screen.await.unwrap();
    assert_eq!(status.code(), Some(0), "{screen:?}");
    assert_eq!(server.requests().len(), 2, "{screen:?}");
}

#[tokio::test]
async fn d12_redirected_answer_excludes_prompts_and_typed_input() {
    let server = server([answer().text("Hi").finish("stop")]).await;
    let (mut master, slave) = terminal();
    // Ctrl-D is read as the end of the input.
    master.write_all(b"hello\n\x04").unwrap();
    let mut command = chat(&server, &[]);
    command.stdin(slave.try_clone().unwrap()).stderr(slave);
    let child = tokio::process::Command::from(command).kill_on_drop(true).spawn().unwrap();
    let output =
        tokio::time::timeout(LIMIT, child.wait_with_output()).await.expect("the program ends").unwrap();
    assert_eq!((output.status.code(), text_of(&output.stdout)), (Some(0), "Hi\n".to_owned()));
    let screen = read_all(master);
    assert!(screen.contains("Ctrl-D ends the chat. Tools: current_time.\n> "), "{screen:?}");
}

#[tokio::test]
async fn d12_interrupt_between_piped_turns_exits_with_130() {
    let server = server([answer().text("Hi").finish("stop")]).await;
    let mut child = start(chat(&server, &[]));
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"one\n").await.unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let line = tokio::time::timeout(LIMIT, lines.next_line()).await.expect("a line is shown").unwrap();
    assert_eq!(line.as_deref(), Some("Hi"));
    interrupt(&child);
    // Nobody ends its input.
    let status = tokio::time::timeout(LIMIT, child.wait()).await.expect("the program ends").unwrap();
    assert_eq!(status.code(), Some(130));
    drop(stdin);
}

fn interrupt(child: &Child) {
    kill(Pid::from_raw(child.id().unwrap().try_into().unwrap()), Signal::SIGINT).unwrap();
}

#[tokio::test]
async fn d12_an_interrupt_ends_a_piped_chat_with_130() {
    let gate = Gate::new();
    let first = answer().text("some\n").without_done();
    let body = answer().text("some\n").text("more").finish("stop").done();
    let reply = Reply::sse(body).gate_after(first.len(), gate);
    let server = ReplayServer::start([reply]).await.unwrap();
    let mut child = start(chat(&server, &[]));
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"one\ntwo\n").await.unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let line = tokio::time::timeout(LIMIT, lines.next_line()).await.expect("a line is shown").unwrap();
    assert_eq!(line.as_deref(), Some("some"));
    interrupt(&child);
    let output =
        tokio::time::timeout(LIMIT, child.wait_with_output()).await.expect("the program ends").unwrap();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    assert_eq!(text_of(&output.stderr), "[cancelled]\n");
    assert_eq!(server.requests().len(), 1);
}
