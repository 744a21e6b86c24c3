//! One chain, four providers: a conversation begins with one, and three others continue it.
//!
//! A server on this machine plays all four. Memory holds the conversation in no provider's form, so each of them gets
//! the calls, their results and the texts as its API wants them. The signed thinking goes back to its own server only.
#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use std::sync::Arc;

use advisor_chain::anthropic::AnthropicModel;
use advisor_chain::chain::BoxError;
use advisor_chain::gemini::GeminiModel;
use advisor_chain::ollama::OllamaModel;
use advisor_chain::{
    ChatClient, ChatMemoryAdvisor, ChatModel, FnTool, InMemoryStore, OpenAiModel, ToolDefinition, client,
};
use advisor_testkit::{ReplayServer, Reply};
use serde_json::{Value, json};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    let answers = [anthropic_call(), anthropic_text(), openai(), gemini(), ollama()];
    let server = ReplayServer::start(answers.map(Reply::sse)).await?;
    let url = server.url();

    let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    let weather = ToolDefinition::new("weather", "Tells the weather of a city.", schema);
    let first = client(AnthropicModel::new("claude-sonnet-4-5").with_base_url(&url))
        .advisor(ChatMemoryAdvisor::new(InMemoryStore::new()))
        .tool(FnTool::new(weather, |_: Value| async { Ok("sunny, 20 °C") }))
        .build()?;
    ask(&first, "How is the weather in Oslo?").await?;

    let others: [(Arc<dyn ChatModel>, &str); 3] = [
        (Arc::new(OpenAiModel::new("gpt-5").with_base_url(format!("{url}/v1"))), "Is that warm?"),
        (Arc::new(GeminiModel::new("gemini-3-pro").with_base_url(&url)), "What should I wear?"),
        (Arc::new(OllamaModel::new("qwen3").with_base_url(&url)), "Thank you!"),
    ];
    for (model, question) in others {
        // The same advisors and tools, around another model.
        let next = first.to_builder().model(model).build()?;
        ask(&next, question).await?;
    }

    for request in server.requests() {
        let body = request.json()?;
        let history = body.get("messages").or_else(|| body.get("contents")).and_then(Value::as_array);
        println!("\nPOST {}", request.path);
        for message in history.into_iter().flatten() {
            println!("  {message}");
        }
    }
    Ok(())
}

async fn ask(client: &ChatClient, question: &str) -> Result<(), BoxError> {
    let answer = client.prompt().user(question).conversation("oslo").call().await?;
    println!("user: {question}\nmodel: {}", answer.text());
    Ok(())
}

/// Frames the events of an answer.
fn events(events: impl IntoIterator<Item = Value>) -> String {
    let named = |event: Value| match event.get("type").and_then(Value::as_str) {
        Some(name) => format!("event: {name}\ndata: {event}\n\n"),
        None => format!("data: {event}\n\n"),
    };
    events.into_iter().map(named).collect()
}

fn anthropic_call() -> String {
    events([
        json!({"type": "message_start", "message": {"id": "msg_1", "content": []}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "A tool."}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "EqQB"}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "content_block_start", "index": 1,
            "content_block": {"type": "tool_use", "id": "toolu_01", "name": "weather", "input": {}}}),
        json!({"type": "content_block_delta", "index": 1,
            "delta": {"type": "input_json_delta", "partial_json": "{\"city\":\"Oslo\"}"}}),
        json!({"type": "content_block_stop", "index": 1}),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}}),
        json!({"type": "message_stop"}),
    ])
}

fn anthropic_text() -> String {
    let text = json!({"type": "text_delta", "text": "It is sunny, 20 °C."});
    events([
        json!({"type": "message_start", "message": {"id": "msg_2", "content": []}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": text}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}}),
        json!({"type": "message_stop"}),
    ])
}

fn openai() -> String {
    let choice = json!({"index": 0, "delta": {"content": "For Oslo, yes."}, "finish_reason": "stop"});
    format!("{}data: [DONE]\n\n", events([json!({"choices": [choice]})]))
}

fn gemini() -> String {
    let content = json!({"role": "model", "parts": [{"text": "A T-shirt will do."}]});
    events([json!({"candidates": [{"index": 0, "content": content, "finishReason": "STOP"}]})])
}

fn ollama() -> String {
    let message = json!({"role": "assistant", "content": "You are welcome."});
    format!("{}\n", json!({"message": message, "done": true, "done_reason": "stop"}))
}
