//! async-openai, with the loop over tools that its users write by hand.

use async_openai::Client;
use async_openai::config::OpenAIConfig;
use async_openai::types::chat::{
    ChatCompletionMessageToolCall, ChatCompletionMessageToolCallChunk, ChatCompletionMessageToolCalls,
    ChatCompletionRequestAssistantMessageArgs, ChatCompletionRequestMessage,
    ChatCompletionRequestToolMessage, ChatCompletionRequestUserMessageArgs, ChatCompletionStreamOptions,
    ChatCompletionTool, ChatCompletionTools, CreateChatCompletionRequest, CreateChatCompletionRequestArgs,
    FunctionCall, FunctionObjectArgs,
};
use futures::StreamExt;
use peer_measure::{Peer, weather};
use serde_json::Value;

#[derive(Clone)]
struct AsyncOpenai {
    client: Client<OpenAIConfig>,
    tools: bool,
}

impl Peer for AsyncOpenai {
    fn new(address: &str, tools: bool) -> Self {
        let config = OpenAIConfig::new().with_api_key("none").with_api_base(address);
        Self { client: Client::with_config(config), tools }
    }

    async fn turn(&self, mut on_text: impl AsyncFnMut(&str)) -> u64 {
        let user =
            ChatCompletionRequestUserMessageArgs::default().content("What now?").build().expect("a message");
        let mut messages: Vec<ChatCompletionRequestMessage> = vec![user.into()];
        for requests in 1.. {
            let mut calls: Vec<FunctionCall> = Vec::new();
            let mut ids: Vec<String> = Vec::new();
            let request = self.request(messages.clone());
            let mut stream = self.client.chat().create_stream(request).await.expect("the server answers");
            while let Some(event) = stream.next().await {
                let Some(choice) = event.expect("the answer goes on").choices.into_iter().next() else {
                    continue;
                };
                if let Some(text) = choice.delta.content.filter(|text| !text.is_empty()) {
                    on_text(&text).await;
                }
                for piece in choice.delta.tool_calls.into_iter().flatten() {
                    assemble(&mut ids, &mut calls, piece);
                }
            }
            if calls.is_empty() {
                return requests;
            }
            messages.extend(run(ids, calls));
        }
        unreachable!("numbers do not end")
    }
}

impl AsyncOpenai {
    fn request(&self, messages: Vec<ChatCompletionRequestMessage>) -> CreateChatCompletionRequest {
        let options = ChatCompletionStreamOptions { include_usage: Some(true), ..Default::default() };
        let mut request = CreateChatCompletionRequestArgs::default();
        request.model("gpt-4o-mini").messages(messages).stream(true).stream_options(options);
        if self.tools {
            request.tools(vec![tool()]);
        }
        request.build().expect("a request")
    }
}

fn tool() -> ChatCompletionTools {
    let mut function = FunctionObjectArgs::default();
    function.name(weather::NAME).description(weather::DESCRIPTION).parameters(weather::schema());
    ChatCompletionTools::Function(ChatCompletionTool { function: function.build().expect("a function") })
}

fn assemble(ids: &mut Vec<String>, calls: &mut Vec<FunctionCall>, piece: ChatCompletionMessageToolCallChunk) {
    let index = piece.index as usize;
    if calls.len() <= index {
        calls.resize(index + 1, FunctionCall { name: String::new(), arguments: String::new() });
        ids.resize(index + 1, String::new());
    }
    ids[index].extend(piece.id);
    if let Some(function) = piece.function {
        calls[index].name.extend(function.name);
        calls[index].arguments.extend(function.arguments);
    }
}

/// The calls and their results, as messages.
fn run(ids: Vec<String>, calls: Vec<FunctionCall>) -> Vec<ChatCompletionRequestMessage> {
    let result = |(id, call): (&String, &FunctionCall)| {
        let arguments: Value = serde_json::from_str(&call.arguments).expect("arguments are JSON");
        let content = weather::answer(arguments["city"].as_str().unwrap_or_default()).into();
        ChatCompletionRequestToolMessage { content, tool_call_id: id.clone() }.into()
    };
    let results: Vec<ChatCompletionRequestMessage> = ids.iter().zip(&calls).map(result).collect();
    let calls = ids.into_iter().zip(calls).map(|(id, function)| {
        ChatCompletionMessageToolCalls::Function(ChatCompletionMessageToolCall { id, function })
    });
    let mut assistant = ChatCompletionRequestAssistantMessageArgs::default();
    let assistant = assistant.tool_calls(calls.collect::<Vec<_>>()).build().expect("a message");
    std::iter::once(assistant.into()).chain(results).collect()
}

fn main() {
    peer_measure::main::<AsyncOpenai>();
}
