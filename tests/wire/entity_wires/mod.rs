//! `entity` over each wire format: what is sent for the schema, and values, invalid, cut, refused and tool-calling answers,
//! as the bytes of servers.

pub(crate) mod wire;

use advisor_tests::prelude::*;
use schemars::JsonSchema;
use serde::Deserialize;

use wire::{End, Wire, wires};

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
pub(crate) struct City {
    name: String,
    inhabitants: u32,
}

const PIECES: [&str; 4] = [r#"{"name": "#, r#""Os"#, r#"lo", "inhabitants": 7177"#, "10}"];

fn oslo() -> City {
    City { name: "Oslo".into(), inhabitants: 717_710 }
}

/// A chain over a wire, with memory in the loop and the tool `look` if wanted.
struct Chain {
    client: ChatClient,
    memory: ChatMemoryAdvisor,
    server: ReplayServer,
}

impl Chain {
    async fn new(wire: &Wire, replies: Vec<Reply>, has_tool: bool) -> Self {
        let server = ReplayServer::start(replies).await.unwrap();
        let memory = ChatMemoryAdvisor::new(InMemoryStore::new());
        let client = ChatClient::builder((wire.model)(&server.url()))
            .advisor(ToolCallAdvisor::new())
            .advisor(memory.clone());
        let look =
            FnTool::new(ToolDefinition::new("look", "Looks.", json!({"type": "object"})), |_: Value| async {
                Ok("717710")
            });
        let client = if has_tool { client.tool(look) } else { client };
        Self { client: client.build().unwrap(), memory, server }
    }

    async fn value(&self) -> Result<City> {
        self.client.prompt().user("Oslo?").conversation("c").entity::<City>().await
    }

    /// The bodies of the requests.
    fn sent(&self) -> Vec<Value> {
        self.server.requests().iter().map(|request| request.json().unwrap()).collect()
    }

    async fn remembered(&self) -> Vec<String> {
        let transcript = self.memory.transcript(&ConversationKey::new("c").unwrap()).await.unwrap();
        assert_eq!(validate_transcript(&transcript), [], "{transcript:?}");
        transcript.iter().map(Message::text).collect()
    }
}

/// A server that enforces a schema is sent it. Another one, or one that cannot beside tools, reads it in the prompt.
#[tokio::test]
async fn schema_is_in_its_field_or_in_the_prompt() {
    for wire in wires() {
        for has_tool in [false, true] {
            let chain = Chain::new(&wire, vec![(wire.answer)(&PIECES, End::Whole)], has_tool).await;
            assert_eq!(chain.value().await.unwrap(), oslo(), "{}", wire.name);
            let sent = &chain.sent()[0];
            let is_native = wire.enforces_beside_tools || !has_tool;
            let names = |schema: &Value| -> BTreeSet<String> {
                schema["properties"].as_object().unwrap().keys().cloned().collect()
            };
            let native = sent.pointer(wire.schema_field).map(names);
            let expected = is_native.then(|| ["inhabitants", "name"].map(String::from).into());
            assert_eq!(native, expected, "{} {sent}", wire.name);
            let in_words = sent.to_string().contains("fits this JSON schema");
            assert_eq!(in_words, !is_native, "{} {sent}", wire.name);
            assert_eq!(chain.remembered().await, ["Oslo?".to_owned(), PIECES.concat()], "{}", wire.name);
        }
    }
}

/// A cut answer is not complete by chance, and a refusal is none. Neither is asked for again.
#[tokio::test]
async fn cut_and_refused_answers_have_no_value() {
    for wire in wires() {
        for (end, why) in [(End::Cut, "token limit"), (End::Refused, "refused")] {
            let Some(reply) = wire.reply(&PIECES[..3], end) else { continue };
            let chain = Chain::new(&wire, vec![reply], false).await;
            let error = chain.value().await.unwrap_err();
            assert_eq!(
                (error.kind(), chain.sent().len()),
                (ErrorKind::InvalidOutput, 1),
                "{} {error}",
                wire.name
            );
            let says = error.to_string();
            assert!(says.contains(why) || says.contains("filter"), "{} {says}", wire.name);
        }
    }
}
