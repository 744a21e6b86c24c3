//! `advisor demo`: a conversation of two turns over real HTTP, against a server in this process.

mod answers;
mod journalling;

use std::io::{self, Write};
use std::sync::Arc;

use advisor_chain::tools::ToolCallStreaming;
use advisor_chain::{
    ChatClient, ChatMemoryAdvisor, Chunk, ConversationKey, Error, InMemoryStore, Message, OpenAiModel, Phase,
    Role, ToolCallAdvisor,
};
use advisor_testkit::{Journal, JournalStore, ReplayServer};
use futures::StreamExt;

use crate::failure::Failure;
use crate::output::{ColorOption, Output};
use crate::printable::printable;
use crate::screen::Screen;

pub(crate) async fn run() -> Result<(), Failure> {
    // Everything goes to standard output, since notes and tools are the point of the demo.
    let mut screen = Screen::new(
        Output::standard(io::stdout(), ColorOption::Auto),
        Output::standard(io::stdout(), ColorOption::Auto),
    );
    let server = ReplayServer::start(answers::replies()).await.map_err(Error::advisor)?;
    let journal = Journal::new();
    let memory = ChatMemoryAdvisor::new(Arc::new(JournalStore::new(InMemoryStore::new(), &journal)));
    let model = OpenAiModel::new("demo-model").with_base_url(format!("{}/v1", server.url()));
    let client = ChatClient::builder(model)
        .system("You are a travel assistant.")
        .advisor(ToolCallAdvisor::builder().streaming(ToolCallStreaming::All).build()?)
        .advisor(memory.clone())
        .advisor_in(Phase::ModelCall, journalling::asking(&journal))
        .tools(&journalling::tools(&journal))
        .build()?;

    screen
        .line(format_args!("A server on {} plays the model; everything else is real.\n", server.address()))?;
    screen.line(format_args!("The chain:\n{}", client.explain()))?;
    for question in [
        "How is the weather in Tokyo and in London, and how late is it in Tokyo?",
        "And in Paris? Where should I go?",
    ] {
        turn(&client, question, &journal, &mut screen).await?;
    }

    screen.line("── what memory holds ──")?;
    for message in memory.transcript(&ConversationKey::new("demo")?).await?.iter() {
        screen.line(line(message))?;
    }
    screen.line(format_args!("\n── what happened in which order ──\n{journal}"))?;
    let counts = server.counts();
    screen.line(format_args!("{} requests over {} connection(s)", counts.requests, counts.connections))?;
    Ok(())
}

async fn turn<A: Write, N: Write>(
    client: &ChatClient,
    question: &str,
    journal: &Journal,
    screen: &mut Screen<A, N>,
) -> Result<(), Failure> {
    screen.line(format_args!("> {question}"))?;
    journal.record(format!("turn: {question}"));
    let mut turn = client.prompt().user(question).conversation("demo").stream();
    while let Some(chunk) = turn.next().await {
        let chunk = chunk?;
        screen.show(&chunk)?;
        match &chunk {
            Chunk::RoundCompleted(response) => {
                journal.record(format!("reader sees the end of round {}", response.round()));
            }
            Chunk::Completed(response) => {
                journal.record("reader sees the end of the turn");
                let usage = response.usage().copied().unwrap_or_default();
                let (input, output) = (usage.input_tokens.unwrap_or(0), usage.output_tokens.unwrap_or(0));
                screen.line(format_args!(
                    "[{:?}; {input} tokens in, {output} out]\n",
                    response.finish().reason
                ))?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// Formats a message for the list of the memory's content.
fn line(message: &Message) -> String {
    let text = printable(&message.text());
    match message.role() {
        Role::Assistant => {
            let calls: Vec<_> = message
                .tool_calls()
                .map(|call| format!("{}({}) as {}", call.name, call.arguments, call.id))
                .collect();
            format!(
                "assistant  {text}{}",
                calls.iter().map(|call| format!("\n             calls {call}")).collect::<String>()
            )
        }
        Role::Tool => {
            let call = message.tool_result().map_or("", |result| &result.call_id);
            format!("tool       {text}  (for {call})")
        }
        Role::User => format!("user       {text}"),
        Role::System => format!("system     {text}"),
    }
}
