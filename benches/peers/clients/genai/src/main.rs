//! genai, with the loop over tools that its users write by hand.

use futures::StreamExt;
use genai::adapter::AdapterKind;
use genai::chat::{ChatMessage, ChatOptions, ChatRequest, ChatStreamEvent, Tool, ToolCall, ToolResponse};
use genai::resolver::{AuthData, Endpoint, Error, ServiceTargetResolver};
use genai::{Client, ModelIden, ServiceTarget};
use peer_measure::{Peer, weather};

const MODEL: &str = "gpt-4o-mini";

#[derive(Clone)]
struct Genai {
    client: Client,
    tools: bool,
}

impl Peer for Genai {
    fn new(address: &str, tools: bool) -> Self {
        let address = format!("{address}/");
        let target = move |target: ServiceTarget| -> Result<ServiceTarget, Error> {
            Ok(ServiceTarget {
                endpoint: Endpoint::from_owned(address.clone()),
                auth: AuthData::from_single("none"),
                model: ModelIden::new(AdapterKind::OpenAI, target.model.model_name),
            })
        };
        let resolver = ServiceTargetResolver::from_resolver_fn(target);
        let client = Client::builder().with_service_target_resolver(resolver).build().expect("a client");
        Self { client, tools }
    }

    async fn turn(&self, mut on_text: impl AsyncFnMut(&str)) -> u64 {
        let mut request = ChatRequest::new(vec![ChatMessage::user("What now?")]);
        let mut options = ChatOptions::default().with_capture_usage(true);
        if self.tools {
            request = request.with_tools(vec![tool()]);
            options = options.with_capture_tool_calls(true).with_capture_content(true);
        }
        for requests in 1.. {
            let mut calls: Vec<ToolCall> = Vec::new();
            let answer = self.client.exec_chat_stream(MODEL, request.clone(), Some(&options)).await;
            let mut stream = answer.expect("the server answers").stream;
            while let Some(event) = stream.next().await {
                match event.expect("the answer goes on") {
                    ChatStreamEvent::Chunk(chunk) if !chunk.content.is_empty() => {
                        on_text(&chunk.content).await
                    }
                    ChatStreamEvent::End(end) => calls = end.captured_into_tool_calls().unwrap_or_default(),
                    _ => {}
                }
            }
            if calls.is_empty() {
                return requests;
            }
            request = run(request, calls);
        }
        unreachable!("numbers do not end")
    }
}

fn tool() -> Tool {
    Tool::new(weather::NAME).with_description(weather::DESCRIPTION).with_schema(weather::schema())
}

/// The request with the calls and their results.
fn run(request: ChatRequest, calls: Vec<ToolCall>) -> ChatRequest {
    let result = |call: &ToolCall| {
        let city = call.fn_arguments["city"].as_str().unwrap_or_default();
        ToolResponse::new(call.call_id.clone(), weather::answer(city))
    };
    let results: Vec<ToolResponse> = calls.iter().map(result).collect();
    let request = request.append_message(ChatMessage::from(calls));
    results.into_iter().fold(request, |request, result| request.append_message(result))
}

fn main() {
    peer_measure::main::<Genai>();
}
