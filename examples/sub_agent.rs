//! A sub-agent: a tool that is another chain, with its own model, tools and conversation.
//!
//! Its turn inherits the rounds, calls and time that the turn around has left, and its steps are the progress of the tool.
//! It remembers in a separate conversation. The outer conversation has its answers only.
#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use advisor_chain::messages::ToolEventKind;
use advisor_chain::tools::{OnLimit, ToolError, ToolInvocation, ToolLimits};
use advisor_chain::{
    ChatClient, ChatMemoryAdvisor, Chunk, ConversationKey, FnTool, InMemoryStore, Message, Result,
    ToolCallAdvisor, ToolChoice, ToolDefinition, tool,
};
use advisor_testkit::{Answer, ScriptedModel};
use futures::StreamExt;
use serde_json::{Value, json};

/// Looks up how many people live in a city.
#[tool]
fn look_up(city: String) -> String {
    format!("{city}: {}", if city == "Oslo" { 717_710 } else { 291_940 })
}

/// Asks the researcher, and reports each of its steps.
async fn research(researcher: &ChatClient, call: &ToolInvocation) -> Result<String, ToolError> {
    let question = call.arguments.get("question").and_then(Value::as_str).unwrap_or_default();
    // Of the same tenant. Without a conversation, each question would be a new one.
    let own = |key: &ConversationKey| {
        ConversationKey::in_tenant(key.tenant(), &format!("{}/research", key.conversation()))
    };
    let conversation = call.conversation.as_ref().map(own).transpose()?;
    let mut turn = researcher.prompt().inside(call).conversation(conversation).user(question).stream();
    while let Some(chunk) = turn.next().await {
        match chunk? {
            Chunk::Tool(event) if matches!(event.kind, ToolEventKind::Started { .. }) => {
                call.progress.report(format!("the researcher calls {}", event.name)).await;
            }
            // A turn that ends with calls for its caller has no answer: nobody can give their results here.
            Chunk::Completed(answer) if answer.open_calls().next().is_none() => return Ok(answer.text()),
            _ => {}
        }
    }
    Err(ToolError::new("the researcher needs a tool that it may not use here"))
}

/// Returns a chain with a memory, whose stream shows what its tools do.
fn agent(
    model: &ScriptedModel,
    memory: &ChatMemoryAdvisor,
    limits: ToolLimits,
    tool: FnTool,
) -> Result<ChatClient> {
    let tool_loop = ToolCallAdvisor::builder().tool_events(true).limits(limits).build()?;
    ChatClient::builder(model.clone()).advisor(memory.clone()).advisor(tool_loop).tool(tool).build()
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let memory = ChatMemoryAdvisor::new(InMemoryStore::new());
    let finds = ScriptedModel::new([
        Answer::from_calls([("r1", "look_up", r#"{"city":"Oslo"}"#)]),
        Answer::from_calls([("r2", "look_up", r#"{"city":"Bergen"}"#)]),
        Answer::from_text("Oslo has 717,710 inhabitants, Bergen 291,940."),
        Answer::from_text("Oslo, as I found before."),
    ]);
    let answers = ToolLimits { on_limit: OnLimit::AnswerWithoutTools, ..ToolLimits::default() };
    let researcher = agent(&finds, &memory, answers, look_up_tool())?;
    // Two questions at once would need the same conversation, so the tool runs alone.
    let definition = ToolDefinition {
        exclusive: true,
        ..ToolDefinition::new("research", "Asks.", json!({"type": "object"}))
    };
    let research = FnTool::with_invocation(definition, move |call| {
        let researcher = researcher.clone();
        async move { Ok(research(&researcher, &call).await?.into()) }
    });
    let writes = ScriptedModel::new([
        Answer::from_calls([("c1", "research", r#"{"question":"How large are Oslo and Bergen?"}"#)]),
        Answer::from_text("Oslo is more than twice as large as Bergen."),
        Answer::from_calls([("c2", "research", r#"{"question":"Which one is larger?"}"#)]),
        Answer::from_text("Oslo."),
    ]);
    let writer = agent(&writes, &memory, ToolLimits { rounds: Some(4), ..ToolLimits::default() }, research)?;

    for question in ["Compare Oslo and Bergen.", "Which one is larger?"] {
        println!("{question}");
        let mut turn = writer.prompt().user(question).conversation("report").stream();
        while let Some(chunk) = turn.next().await {
            match chunk? {
                Chunk::Tool(event) => match event.kind {
                    ToolEventKind::Progress { part } => {
                        println!("  … {}", part.as_text().unwrap_or_default())
                    }
                    ToolEventKind::Finished { result } => println!("  {}: {}", result.name, result.text()),
                    _ => {}
                },
                chunk => print!("{}", chunk.text().unwrap_or_default()),
            }
        }
        println!();
    }

    // The writer had three of four rounds left, so the researcher was asked for its third answer without tools.
    let choices: Vec<_> = finds.prompts().into_iter().map(|prompt| prompt.options.tool_choice).collect();
    assert_eq!(choices, [None, None, Some(ToolChoice::None), None]);
    // The second question came after the six messages of the first one.
    assert!(finds.prompts().last().is_some_and(|prompt| prompt.messages.len() == 7));
    for (conversation, tool) in [("report", "research"), ("report/research", "look_up")] {
        let transcript = memory.transcript(&ConversationKey::new(conversation)?).await?;
        assert!(transcript.iter().flat_map(Message::tool_calls).all(|call| call.name == tool));
        println!("{conversation}: {} messages, all calls are of {tool}", transcript.len());
    }
    Ok(())
}
