//! A client with reqwest, hand-written line splitting and `serde_json`, as in a service without a library. Each
//! request serialises the whole history again.

use futures::StreamExt;
use peer_by_hand::lines::Lines;
use peer_by_hand::wire::{self, Event, Message};
use peer_measure::Peer;
use serde::Serialize;
use serde_json::{Value, json};

#[derive(Clone)]
struct Reqwest {
    client: reqwest::Client,
    url: String,
    tools: Option<Value>,
}

#[derive(Serialize)]
struct Request<'a> {
    model: &'static str,
    messages: &'a [Message],
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<&'a Value>,
    stream: bool,
    stream_options: Value,
}

impl Peer for Reqwest {
    fn new(address: &str, tools: bool) -> Self {
        let url = format!("{address}/chat/completions");
        Self { client: reqwest::Client::new(), url, tools: tools.then(wire::tools) }
    }

    async fn turn(&self, mut on_text: impl AsyncFnMut(&str)) -> u64 {
        let mut messages = vec![Message::User { content: wire::QUESTION.to_owned() }];
        for requests in 1.. {
            let mut calls = Vec::new();
            let mut body = self.ask(&messages).await;
            let (mut lines, mut events) = (Lines::default(), Vec::new());
            while let Some(bytes) = body.next().await {
                lines.feed(&bytes.expect("the answer goes on"), |data| events.push(event(data)));
                for delta in events.drain(..).flat_map(|event| event.choices).map(|choice| choice.delta) {
                    if let Some(text) = delta.content.filter(|text| !text.is_empty()) {
                        on_text(&text).await;
                    }
                    delta
                        .tool_calls
                        .into_iter()
                        .flatten()
                        .for_each(|piece| wire::assemble(&mut calls, piece));
                }
            }
            if calls.is_empty() {
                return requests;
            }
            messages.extend(wire::run(calls));
        }
        unreachable!("numbers do not end")
    }
}

impl Reqwest {
    async fn ask(
        &self,
        messages: &[Message],
    ) -> impl futures::Stream<Item = reqwest::Result<bytes::Bytes>> + Unpin + use<> {
        let stream_options = json!({"include_usage": true});
        let tools = self.tools.as_ref();
        let request = Request { model: wire::MODEL, messages, tools, stream: true, stream_options };
        let body = serde_json::to_vec(&request).expect("a request is plain data");
        let request = self.client.post(&self.url).header("content-type", "application/json").body(body);
        Box::pin(request.send().await.expect("the server answers").bytes_stream())
    }
}

fn event(data: &[u8]) -> Event {
    serde_json::from_slice(data).expect("an event is JSON")
}

fn main() {
    peer_measure::main::<Reqwest>();
}
