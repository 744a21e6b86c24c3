//! `advisor demo`: a conversation of two turns over real HTTP, against a server in this process.

mod answers;
mod journalling;

use std::io::Write;
use std::sync::Arc;

use advisor_chain::{
    ChatClient, ChatMemoryAdvisor, Chunk, ConversationKey, Error, InMemoryStore, Message, OpenAiModel, Phase,
    Role, ToolCallAdvisor, ToolCallStreaming,
};
use advisor_testkit::{Journal, JournalStore, ReplayServer};
use futures::StreamExt;

use crate::failure::Failure;
use crate::screen;

pub(crate) async fn run(out: &mut impl Write) -> Result<(), Failure> {
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

    writeln!(
        out,
        "A server on {} plays the model; everything else is real.\n\nThe chain:",
        server.address()
    )?;
    writeln!(out, "{}", client.explain())?;
    for question in [
        "How is the weather in Tokyo and in London, and how late is it in Tokyo?",
        "And in Paris? Where should I go?",
    ] {
        turn(&client, question, &journal, out).await?;
    }

    writeln!(out, "── what memory holds ──")?;
    for message in memory.transcript(&ConversationKey::new("demo")?).await?.iter() {
        writeln!(out, "{}", line(message))?;
    }
    writeln!(out, "\n── what happened in which order ──\n{journal}")?;
    let counts = server.counts();
    writeln!(out, "{} requests over {} connection(s)", counts.requests, counts.connections)?;
    Ok(())
}

async fn turn(
    client: &ChatClient,
    question: &str,
    journal: &Journal,
    out: &mut impl Write,
) -> Result<(), Failure> {
    writeln!(out, "> {question}")?;
    journal.record(format!("turn: {question}"));
    let mut turn = client.prompt().user(question).conversation("demo").stream();
    while let Some(chunk) = turn.next().await {
        let chunk = chunk?;
        screen::show(&chunk, out)?;
        match &chunk {
            Chunk::RoundCompleted(response) => {
                journal.record(format!("reader sees the end of round {}", response.round()));
            }
            Chunk::Completed(response) => {
                journal.record("reader sees the end of the turn");
                let usage = response.usage().copied().unwrap_or_default();
                let (input, output) = (usage.input_tokens.unwrap_or(0), usage.output_tokens.unwrap_or(0));
                writeln!(out, "[{:?}; {input} tokens in, {output} out]\n", response.finish().reason)?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// A message on one line.
fn line(message: &Message) -> String {
    let text = screen::printable(&message.text());
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
