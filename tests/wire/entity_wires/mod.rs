//! `entity` over each wire format: what is sent for the schema, and values, invalid, cut, refused and tool-calling answers,
//! as the bytes of servers.

pub(crate) mod wire;

use advisor_chain::structured::Partial;
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

/// An answer that does not fit is asked for again, and not remembered.
#[tokio::test]
async fn law_m2_invalid_answer_is_repaired_over_each_wire() {
    for wire in wires() {
        let invalid = (wire.answer)(&["It is Oslo."], End::Whole);
        let misfit = (wire.answer)(&[r#"{"name": "Oslo", "inhabitants": -1}"#], End::Whole);
        for wrong in [invalid, misfit] {
            let chain = Chain::new(&wire, vec![wrong, (wire.answer)(&PIECES, End::Whole)], false).await;
            assert_eq!(chain.value().await.unwrap(), oslo(), "{}", wire.name);
            let repair = chain.sent()[1].to_string();
            assert!(repair.contains("does not fit the form"), "{} {repair}", wire.name);
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

/// A round with a tool comes first. Its answer is no value and need not be one.
#[tokio::test]
async fn value_follows_a_round_with_tools() {
    for wire in wires() {
        let replies = vec![(wire.call)("look"), (wire.answer)(&PIECES, End::Whole)];
        let chain = Chain::new(&wire, replies, true).await;
        assert_eq!(chain.value().await.unwrap(), oslo(), "{}", wire.name);
        assert!(chain.sent()[1].to_string().contains("717710"), "{}", wire.name);
        assert_eq!(chain.remembered().await[2..], ["717710".to_owned(), PIECES.concat()], "{}", wire.name);
    }
}

/// Partial values only grow, however the bytes are split, and the last one is the value.
#[tokio::test]
async fn law_s5_partial_values_grow_at_any_split() {
    for wire in wires() {
        for bytes in [1, 7, 64, 4096] {
            let reply = (wire.answer)(&PIECES, End::Whole).split_every(bytes);
            let chain = Chain::new(&wire, vec![reply], false).await;
            let prompt = chain.client.prompt().user("Oslo?").conversation("c");
            let mut told: Vec<_> = prompt.entity::<City>().stream().try_collect().await.unwrap();
            assert_eq!(told.pop(), Some(Partial::Complete(oslo())), "{} {bytes}", wire.name);
            assert!(!told.is_empty(), "{} {bytes}", wire.name);
            let mut seen = String::new();
            for partial in told {
                let Partial::Value(value) = partial else { panic!("{} {partial:?}", wire.name) };
                let name = value["name"].as_str().unwrap_or_default().to_owned();
                assert!(
                    "Oslo".starts_with(&name) && name.len() >= seen.len(),
                    "{} {bytes} {value}",
                    wire.name
                );
                seen = name;
            }
        }
    }
}
