//! The clause that nothing of a conversation reaches another one.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use advisor_core::{
    ChatClient, ChatModel, ChatRequest, ChatResponse, Chunk, ChunkStream, FinishReason, Message, Result,
    Text, ToolDefinition, TurnId, async_trait,
};
use futures::StreamExt;
use serde_json::{Value, json};

use super::live::first_difference;
use super::memory::{FITS, Position, client};
use super::reading::{Items, bounded, tools, within};
use super::script::LAST;
use super::subject::{Clause, Subject};
use advisor_testkit::{Answer, ScriptedModel};

/// The conversations, and the turns of each.
const CONVERSATIONS: [&str; 2] = ["one", "two"];
const TURNS: [&str; 2] = ["asks", "continues"];
/// The most answers with calls in a turn. A tool may show further ones.
const ROUNDS: u32 = 3;

const APART: Clause = Clause {
    law: "law M5",
    rule: "the requests and answers of a conversation are the same whether or not another conversation was held",
    remedy: "keep what a conversation or its tools leave behind by `ChatRequest::conversation`, or in an extension of \
             the turn, and not in the advisor as a whole",
};

/// What a conversation has sent and shown.
struct Outcome {
    requests: Vec<String>,
    answers: Vec<String>,
}

/// Two conversations through one advisor, whose models call all tools that they are offered, send and show what each
/// does alone: messages, instructions, ephemeral messages and descriptions of tools. The second one runs after any chunk
/// of the first one.
pub async fn law_m5_conversations_stay_apart(subject: &Subject) {
    for position in [Position::InsideTheLoop, Position::OutsideTheLoop] {
        let [one, two] = CONVERSATIONS;
        let (Some(chat), Some(other)) = (Chat::new(subject, position), Chat::new(subject, position)) else {
            continue;
        };
        let alone = [chat.talk(one).finish().await, other.talk(two).finish().await];
        for until in 0.. {
            let Some(chat) = Chat::new(subject, position) else { break };
            let (mut first, mut goes_on) = (chat.talk(one), true);
            for _ in 0..until {
                goes_on = first.next().await;
            }
            let second = chat.talk(two).finish().await;
            let beside = [first.finish().await, second];
            for ((conversation, alone), beside) in CONVERSATIONS.iter().zip(&alone).zip(&beside) {
                check(subject, conversation, alone, beside);
            }
            if !goes_on {
                break;
            }
        }
    }
}

fn check(subject: &Subject, conversation: &str, alone: &Outcome, beside: &Outcome) {
    let pairs = [(&alone.requests, &beside.requests, "sends"), (&alone.answers, &beside.answers, "shows")];
    for (alone, beside, does) in pairs {
        if let Some((alone, beside)) = first_difference(alone, beside) {
            subject.breaks(
                APART,
                format_args!("conversation {conversation} alone {does}\n    {alone}\n  and beside another one\n    {beside}"),
            );
        }
    }
}

/// Conversations through one advisor.
struct Chat<'a> {
    subject: &'a Subject,
    client: ChatClient,
    model: Caller,
}

impl<'a> Chat<'a> {
    /// Returns a chat without turns; `None` if the chain refuses this position of memory.
    fn new(subject: &'a Subject, position: Position) -> Option<Self> {
        let model = Caller::new(subject);
        let client = client(subject, position, model.clone(), &tools(|_| {}))?;
        Some(Self { subject, client, model })
    }

    /// Begins the turns of a conversation, one after another.
    fn talk(&'a self, conversation: &'static str) -> Talk<'a> {
        let (client, question) = (self.client.clone(), self.subject.question.clone());
        let turns = TURNS.map(|turn| {
            let question = format!("{question} {} It {turn}.", words(conversation));
            let prompt = client.prompt().user(question).conversation(conversation);
            prompt.turn(format!("{conversation}-{turn}").as_str()).stream()
        });
        let items = bounded(futures::stream::iter(turns).flatten());
        Talk { chat: self, conversation, items, answers: Vec::new() }
    }
}

/// A conversation that is being held.
struct Talk<'a> {
    chat: &'a Chat<'a>,
    conversation: &'static str,
    items: Items,
    answers: Vec<String>,
}

impl Talk<'_> {
    /// Takes the next item. Returns whether there was one.
    async fn next(&mut self) -> bool {
        let subject = self.chat.subject;
        let Some(item) = within(subject, self.items.next()).await else { return false };
        match item {
            // Tools of one answer may end in any order. The next request has their results.
            Ok(Chunk::Tool(_)) => {}
            Ok(Chunk::Completed(response)) => self.answers.push(written(&response)),
            Ok(chunk) => self.answers.push(format!("{chunk:?}")),
            Err(error) => subject.breaks(
                FITS,
                format_args!(
                    "a turn of conversation {} fails: {:?}: {error}",
                    self.conversation,
                    error.kind()
                ),
            ),
        }
        true
    }

    async fn finish(mut self) -> Outcome {
        while self.next().await {}
        Outcome { requests: self.chat.model.requests(self.conversation), answers: self.answers }
    }
}

fn written(response: &ChatResponse) -> String {
    json!(response.message()).to_string()
}

/// What a conversation alone says.
fn words(conversation: &str) -> String {
    format!("The word of conversation {conversation} is w0rd-{conversation}.")
}

/// A model that calls each tool that it is offered once a turn, with the words of the conversation. It records what it
/// is sent.
#[derive(Clone)]
struct Caller {
    answer: String,
    shared: Arc<Mutex<Received>>,
}

#[derive(Default)]
struct Received {
    requests: Vec<(String, String)>,
    called: HashMap<TurnId, HashSet<Text>>,
}

impl Caller {
    fn new(subject: &Subject) -> Self {
        Self { answer: subject.answer.clone(), shared: Arc::default() }
    }

    fn requests(&self, conversation: &str) -> Vec<String> {
        let received = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        let of_it = received.requests.iter().filter(|(of, _)| of == conversation);
        of_it.map(|(_, request)| request.clone()).collect()
    }

    /// Records a request, and returns its answer.
    fn answer(&self, request: &ChatRequest) -> Answer {
        let (turn, mut received) =
            (request.turn.id().clone(), self.shared.lock().unwrap_or_else(PoisonError::into_inner));
        let conversation = turn.as_str().split('-').next().unwrap_or_default().to_owned();
        let words = words(&conversation);
        received.requests.push((conversation, described(request)));
        if request.round > ROUNDS {
            return Answer::new().text(LAST).usage(10, 5).finish(FinishReason::Stop);
        }
        let called = received.called.entry(turn).or_default();
        let new: Vec<_> =
            request.tools.definitions().filter(|tool| called.insert(tool.name.clone())).cloned().collect();
        let answer = Answer::new().text(format!("{} {words}", self.answer)).usage(10, 5);
        if new.is_empty() {
            return answer.finish(FinishReason::Stop);
        }
        let answer = new.iter().zip(0..).fold(answer, |answer, (tool, number)| {
            let id = format!("c{}-{number}", request.round);
            answer.call(&id, &tool.name, &arguments(tool, &words).to_string())
        });
        answer.finish(FinishReason::ToolCalls)
    }
}

#[async_trait]
impl ChatModel for Caller {
    async fn stream(&self, request: ChatRequest) -> Result<ChunkStream> {
        let answer = self.answer(&request);
        ScriptedModel::new([answer]).stream(request).await
    }
}

/// Returns everything that a request sends.
fn described(request: &ChatRequest) -> String {
    let messages: Vec<&Message> = request.messages.iter().collect();
    let tools: Vec<_> = request.tools.definitions().collect();
    let described: Vec<_> = request.api_tools().definitions().map(|tool| &tool.name).collect();
    format!("{} with the tools {tools:?}, of which {described:?}, and {:?}", json!(messages), request.options)
}

/// Returns the required arguments of a tool, as far as the plain forms of its schema go, with these words as each text.
fn arguments(tool: &ToolDefinition, words: &str) -> Value {
    let of = |key: &str| tool.parameters.get(key).cloned().unwrap_or_default();
    let (properties, required) = (of("properties"), of("required"));
    let names = required.as_array().into_iter().flatten().filter_map(Value::as_str);
    let argument = |name: &str| {
        let schema = properties.get(name)?;
        let first = schema.get("const").or_else(|| schema.get("enum")?.get(0));
        let value = match schema.get("type").and_then(Value::as_str) {
            _ if first.is_some() => first?.clone(),
            Some("integer" | "number") => schema.get("minimum").cloned().unwrap_or_else(|| json!(1)),
            Some("boolean") => json!(true),
            Some("array") => json!([]),
            Some("object") => json!({}),
            _ => json!(words),
        };
        Some((name.to_owned(), value))
    };
    Value::Object(names.filter_map(argument).collect())
}
