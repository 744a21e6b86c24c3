//! Tools on demand: a large set behind a search, the tools of a tenant, and a turn that may use few of them.
#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use advisor_chain::advisors::{OnlyTools, SystemTemplate, TemplateValues, ToolSearch};
use advisor_chain::tools::{ToolSet, tools_fn};
use advisor_chain::{
    ChatMemoryAdvisor, ChatRequest, ConversationKey, FnTool, InMemoryStore, Tool, ToolDefinition, client,
};
use advisor_testkit::{Answer, ScriptedModel};
use serde_json::{Value, json};

/// A tool that only tells that it ran.
fn tool(name: &'static str, description: &str) -> impl Tool {
    let definition = ToolDefinition::new(name, description, json!({"type": "object"}));
    FnTool::new(definition, move |_: Value| async move { Ok(format!("{name} ran")) })
}

/// The tools that a tenant has paid for.
fn tools_of(tenant: Option<&str>) -> ToolSet {
    match tenant {
        Some("acme") => ToolSet::new().with(tool("invoice", "Writes an invoice.")),
        _ => ToolSet::new(),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> advisor_chain::Result<()> {
    let office = ToolSet::new()
        .with(tool("send_mail", "Sends a mail to a person."))
        .with(tool("read_calendar", "Reads the calendar of a person."))
        .with(tool("book_room", "Books a room for a meeting."));
    let tenant_tools = tools_fn("tenant-tools", |request: ChatRequest| async move {
        Ok(tools_of(request.conversation.as_ref().map(ConversationKey::tenant)))
    });
    let model = ScriptedModel::new([
        Answer::from_calls([("c1", "search_tools", r#"{"query": "write a mail"}"#)]),
        Answer::from_calls([("c2", "send_mail", "{}")]),
        Answer::from_text("The mail is on its way."),
        Answer::from_text("I can only write invoices in this turn."),
    ]);
    let client = client(model.clone())
        .advisor(SystemTemplate::new("You help {user}.".parse()?))
        .advisor(ChatMemoryAdvisor::new(InMemoryStore::new()))
        .advisor(tenant_tools)
        .advisor(ToolSearch::new(&office)?)
        .build()?;
    println!("{}", client.explain());

    let key = ConversationKey::in_tenant("acme", "c1")?;
    let prompt = client.prompt().extension(TemplateValues::default().with("user", "Ann")).conversation(key);
    println!("{}", prompt.clone().user("Write to Bo.").call().await?.text());
    // The found tool is still known, but this turn may only use one of the tenant's.
    let answer = prompt.user("Write to Cy, too.").advisor(OnlyTools::new(["invoice"])).call().await?;
    println!("{}", answer.text());
    for (round, prompt) in model.prompts().iter().enumerate() {
        println!("request {}: {}", round + 1, prompt.tools.join(", "));
    }
    Ok(())
}
