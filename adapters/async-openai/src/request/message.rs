//! One message of the request.

use advisor_core::{Block, Message, MessageContent, ToolCall, ToolResult};
use async_openai::types::chat::{
    ChatCompletionMessageToolCall, ChatCompletionMessageToolCalls, ChatCompletionRequestAssistantMessage,
    ChatCompletionRequestAssistantMessageContent, ChatCompletionRequestMessage,
    ChatCompletionRequestSystemMessage, ChatCompletionRequestSystemMessageContent,
    ChatCompletionRequestToolMessage, ChatCompletionRequestToolMessageContent,
    ChatCompletionRequestUserMessage, ChatCompletionRequestUserMessageContent, FunctionCall,
};
use provider_http::joined_text;
use provider_http::json::arguments;
use provider_http::names::WireNames;

use super::parts;

/// Returns the message for the client. Reasoning, citations and media of an answer do not go back.
pub(super) fn on_the_wire(message: &Message, wire: &WireNames) -> ChatCompletionRequestMessage {
    match message.content() {
        MessageContent::System(text) => ChatCompletionRequestSystemMessage {
            content: ChatCompletionRequestSystemMessageContent::Text(text.to_string()),
            name: None,
        }
        .into(),
        MessageContent::User(user) => {
            ChatCompletionRequestUserMessage { content: parts::of_user(user), name: None }.into()
        }
        MessageContent::Assistant(blocks) => assistant(blocks, wire).into(),
        MessageContent::Tool(result) => tool(result, wire).into(),
        // A kind of message newer than this crate is sent as its text.
        _ => {
            let content = ChatCompletionRequestUserMessageContent::Text(message.text());
            ChatCompletionRequestUserMessage { content, name: None }.into()
        }
    }
}

fn assistant(blocks: &[Block], wire: &WireNames) -> ChatCompletionRequestAssistantMessage {
    let calls = blocks.iter().filter_map(Block::as_tool_call).map(|call| tool_call(call, wire));
    let calls: Vec<_> = calls.collect();
    let text = joined_text(blocks);
    let says = !text.is_empty() || calls.is_empty();
    ChatCompletionRequestAssistantMessage {
        content: says.then_some(ChatCompletionRequestAssistantMessageContent::Text(text)),
        tool_calls: (!calls.is_empty()).then_some(calls),
        ..ChatCompletionRequestAssistantMessage::default()
    }
}

fn tool_call(call: &ToolCall, wire: &WireNames) -> ChatCompletionMessageToolCalls {
    ChatCompletionMessageToolCalls::Function(ChatCompletionMessageToolCall {
        id: wire.call_id(&call.id).into_owned(),
        function: FunctionCall {
            name: wire.tool(&call.name).into_owned(),
            arguments: arguments::as_text(&call.arguments).into_owned(),
        },
    })
}

fn tool(result: &ToolResult, wire: &WireNames) -> ChatCompletionRequestToolMessage {
    ChatCompletionRequestToolMessage {
        content: ChatCompletionRequestToolMessageContent::Text(parts::of_result(result)),
        tool_call_id: wire.call_id(&result.call_id).into_owned(),
    }
}
