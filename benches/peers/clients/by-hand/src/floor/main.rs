//! The lower bound: a socket, and a search for the content. It does not check the server's answers, and keeps
//! the history as bytes already sent.

mod body;
mod connection;
mod texts;
mod unescape;

use bytes::Buf;
use peer_by_hand::lines::Lines;
use peer_by_hand::wire::{self, Call, Event, Message};
use peer_measure::Peer;
use serde_json::json;

use connection::Connection;
use texts::Texts;

#[derive(Clone)]
struct Floor {
    host: String,
    path: String,
    /// The part of a request after its messages.
    tail: String,
}

impl Peer for Floor {
    fn new(address: &str, tools: bool) -> Self {
        let (host, path) =
            address.trim_start_matches("http://").split_once('/').expect("an address has a path");
        let tools = if tools { format!(r#","tools":{}"#, wire::tools()) } else { String::new() };
        let tail = format!(r#"]{tools},"stream":true,"stream_options":{{"include_usage":true}}}}"#);
        Self { host: host.to_owned(), path: format!("/{path}/chat/completions"), tail }
    }

    async fn turn(&self, mut on_text: impl AsyncFnMut(&str)) -> u64 {
        let mut connection = Connection::open(&self.host).await;
        let user = json!({"role": "user", "content": wire::QUESTION});
        let mut history = format!(r#"{{"model":"{}","messages":[{user}"#, wire::MODEL).into_bytes();
        for requests in 1.. {
            self.send(&mut connection, &history).await;
            let calls = read(&mut connection, &mut on_text).await;
            if calls.is_empty() {
                return requests;
            }
            append(&mut history, &wire::run(calls));
        }
        unreachable!("numbers do not end")
    }
}

impl Floor {
    async fn send(&self, connection: &mut Connection, history: &[u8]) {
        let Self { host, path, tail } = self;
        let length = history.len() + tail.len();
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
        );
        connection.send(head.as_bytes().chain(history).chain(tail.as_bytes())).await;
    }
}

async fn read(connection: &mut Connection, on_text: &mut impl AsyncFnMut(&str)) -> Vec<Call> {
    let (mut calls, mut lines, mut texts) = (Vec::new(), Lines::default(), Texts::default());
    loop {
        let more = connection
            .read(|bytes| {
                lines.feed(bytes, |data| {
                    if !texts.find_in(data) {
                        assemble(data, &mut calls);
                    }
                });
            })
            .await;
        for text in texts.iter() {
            on_text(text).await;
        }
        texts.clear();
        if !more {
            return calls;
        }
    }
}

/// Parses an event without text. Such events are rare, so parsing them is cheap enough.
fn assemble(data: &[u8], calls: &mut Vec<Call>) {
    let event: Event = serde_json::from_slice(data).expect("an event is JSON");
    let deltas = event.choices.into_iter().filter_map(|choice| choice.delta.tool_calls);
    deltas.flatten().for_each(|piece| wire::assemble(calls, piece));
}

fn append(history: &mut Vec<u8>, messages: &[Message]) {
    for message in messages {
        history.push(b',');
        serde_json::to_writer(&mut *history, message).expect("a message is plain data");
    }
}

fn main() {
    peer_measure::main::<Floor>();
}
