//! `entity`: a turn whose answer is a value, over tools, memory and restarts; rejected answers are never remembered.

use advisor_chain::chain::{ResponseFormat, SchemaSupport};
use advisor_chain::structured::{OutputFormat, Partial, StructuredOutput};
use advisor_tests::prelude::*;
use advisor_tests::tools::tool;
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct City {
    /// Its name in English.
    name: String,
    inhabitants: u32,
    mayor: Option<String>,
}

const OSLO: &str = r#"{"name": "Oslo", "inhabitants": 717710}"#;

fn oslo() -> City {
    City { name: "Oslo".into(), inhabitants: 717_710, mayor: None }
}

/// A model whose server enforces this much.
struct Enforcing(ScriptedModel, SchemaSupport);

#[async_trait]
impl ChatModel for Enforcing {
    async fn stream(&self, request: ChatRequest) -> Result<ChunkStream> {
        self.0.stream(request).await
    }

    fn schema_support(&self) -> SchemaSupport {
        self.1
    }
}

struct Setting {
    client: ChatClient,
    memory: ChatMemoryAdvisor,
    model: ScriptedModel,
}

fn setting(
    answers: impl IntoIterator<Item = Answer>,
    remembers: Phase,
    support: SchemaSupport,
    tools: ToolCallAdvisor,
) -> Setting {
    let (model, memory) = (ScriptedModel::new(answers), ChatMemoryAdvisor::new(InMemoryStore::new()));
    let client = ChatClient::builder(Enforcing(model.clone(), support))
        .advisor(tools)
        .advisor_in(remembers, memory.clone())
        .tool(tool("look", "717710"))
        .build()
        .unwrap();
    Setting { client, memory, model }
}

impl Setting {
    async fn remembered(&self) -> Vec<String> {
        let transcript = self.memory.transcript(&ConversationKey::new("c").unwrap()).await.unwrap();
        assert_eq!(validate_transcript(&transcript), [], "{transcript:?}");
        transcript.iter().map(Message::text).collect()
    }

    fn prompt(&self) -> advisor_chain::Prompt {
        self.client.prompt().user("The capital of Norway?").conversation("c")
    }
}

fn calling() -> Answer {
    Answer::new().text("let me see").call("c1", "look", "{}").finish(FinishReason::ToolCalls)
}

#[tokio::test]
async fn law_m2_s6_rejected_answer_is_retried_and_not_remembered() {
    for remembers in PLACES {
        for support in [
            SchemaSupport::None,
            SchemaSupport::JsonObject,
            SchemaSupport::JsonSchemaWithoutTools,
            SchemaSupport::JsonSchema,
        ] {
            let answers = [
                calling(),
                Answer::new().text("Oslo, ").text("of course").usage(10, 1).finish(FinishReason::Stop),
                Answer::new().text("{}").usage(20, 2).finish(FinishReason::Stop),
                Answer::new().text(OSLO).usage(30, 3).finish(FinishReason::Stop),
                Answer::from_text("Bye."),
            ];
            let setting = setting(answers, remembers, support, ToolCallAdvisor::new());
            let city: City = setting.prompt().entity().await.unwrap();
            assert_eq!(city, oslo());
            let turn = ["The capital of Norway?", "let me see", "717710", OSLO];
            assert_eq!(setting.remembered().await, turn, "{remembers}");

            let prompts = setting.model.prompts();
            let said: Vec<_> = prompts[3].messages.iter().rev().take(4).map(Message::text).collect();
            assert_eq!(said[1], "{}");
            assert!(said[0].contains("missing field `name`"), "{said:?}");
            assert!(!prompts[3].messages.iter().any(|message| message.text().starts_with("Oslo,")));
            for prompt in &prompts {
                assert_eq!(validate_transcript(&prompt.messages), []);
                let first = prompt.messages.iter().next().unwrap();
                match &prompt.options.response_format {
                    Some(ResponseFormat::JsonSchema { name, schema, strict }) => {
                        assert_eq!(
                            (support, name.as_str(), strict),
                            (SchemaSupport::JsonSchema, "City", &true)
                        );
                        assert_eq!(schema["properties"]["name"]["description"], "Its name in English.");
                    }
                    Some(other) => panic!("{other:?}: the tools are offered as well"),
                    None => {
                        assert_ne!(support, SchemaSupport::JsonSchema);
                        assert_eq!(first.role(), Role::System);
                        assert!(first.text().contains("Its name in English."), "{}", first.text());
                    }
                }
            }
            // The next turn asks for text, and knows nothing of what was rejected.
            setting.client.prompt().user("Thanks").conversation("c").call().await.unwrap();
            let sent: Vec<_> = setting.model.prompts()[4].messages.iter().map(Message::text).collect();
            assert_eq!(sent, [&turn[..], &["Thanks"]].concat());
        }
    }
}

#[tokio::test]
async fn value_is_asked_for_in_words_beside_tools_in_words() {
    let answers = ["<tool name=\"look\"/>", "Oslo, of course", OSLO].map(Answer::from_text);
    let model = ScriptedModel::new(answers);
    let client = ChatClient::builder(Enforcing(model.clone(), SchemaSupport::JsonSchema))
        .advisor(ToolCallAdvisor::new())
        .advisor(TextToolCalls::new(TextFormat::Xml))
        .tool(tool("look", "717710"))
        .build()
        .unwrap();
    let city: City = client.prompt().user("The capital of Norway?").entity().await.unwrap();
    assert_eq!(city, oslo());
    assert_eq!(model.prompts().len(), 3);
    for prompt in model.prompts() {
        assert_eq!(prompt.options.response_format, None, "a server that enforces it allows no call");
        let first = prompt.messages.iter().next().unwrap();
        assert!(first.text().contains("Its name in English.") && first.text().contains("## look"));
    }
}

#[tokio::test]
async fn law_s4_rejected_answer_is_void_but_usage_counts() {
    for mode in MODES {
        let answers = [
            Answer::new().text("Oslo").usage(10, 1).finish(FinishReason::Stop),
            Answer::new().text(OSLO).usage(20, 2).finish(FinishReason::Stop),
        ];
        let tools = ToolCallAdvisor::builder().streaming(mode).build().unwrap();
        let setting = setting(answers, Phase::Round, SchemaSupport::None, tools);
        let advisor = StructuredOutput::new(OutputFormat::for_type::<City>());
        let mut turn = setting.prompt().advisor(advisor).stream();
        let mut fold = ChunkFold::default();
        let response = loop {
            let chunk = turn.next().await.unwrap().unwrap();
            fold.push(&chunk);
            if let Chunk::Completed(response) = chunk {
                break response;
            }
        };
        assert_eq!((fold.text(1).as_str(), fold.text(2).as_str()), ("", OSLO), "{mode:?}");
        let usage = response.usage.as_ref().unwrap();
        assert_eq!((usage.input_tokens, usage.output_tokens), (Some(30), Some(3)));
        let told: Vec<_> = response.transcript.iter().map(Message::text).collect();
        assert_eq!(told, ["The capital of Norway?", OSLO]);
    }
}

#[tokio::test]
async fn law_r3_attempts_are_bounded_and_error_holds_last_answer() {
    let misfit = r#"{"name": "Oslo", "inhabitants": "Oslo"}"#;
    let answers = || (0..9).map(|_| Answer::from_text(misfit));
    for (attempts, asked) in [(None, 3), (Some(1), 1), (Some(0), 1), (Some(5), 5)] {
        let setting = setting(answers(), Phase::Round, SchemaSupport::None, ToolCallAdvisor::new());
        let entity = setting.prompt().entity::<City>();
        let entity = match attempts {
            Some(attempts) => entity.with_attempts(attempts),
            None => entity,
        };
        let error = entity.await.unwrap_err();
        assert_eq!((error.kind(), setting.model.calls()), (ErrorKind::InvalidOutput, asked));
        assert_eq!(error.partial().unwrap().text(), misfit);
        assert!(!format!("{error} {error:?}").contains("Oslo"), "no content in errors: {error:?}");
        assert!(error.to_string().contains(&format!("(attempts: {asked})")), "{error}");
        assert!(!error.is_retryable());
        let remembered = setting.remembered().await;
        assert!(!remembered.concat().contains("Oslo"), "a rejected answer is not remembered: {remembered:?}");
    }
}

#[tokio::test]
async fn cut_or_refused_answer_is_not_retried() {
    let cut = |reason| Answer::new().text("{\"name\": \"Os").finish(reason);
    // OpenAI's way to refuse.
    let refusal =
        Answer::new().delta(DeltaKind::Refusal("I will not.".into()).into()).finish(FinishReason::Stop);
    for (answer, why) in [
        (cut(FinishReason::Length), "token limit"),
        (cut(FinishReason::ContentFilter), "filter"),
        (cut(FinishReason::Refusal), "refused"),
        (refusal, "refused"),
    ] {
        let setting = setting([answer], Phase::Round, SchemaSupport::None, ToolCallAdvisor::new());
        let error = setting.prompt().entity::<City>().await.unwrap_err();
        assert_eq!((error.kind(), setting.model.calls()), (ErrorKind::InvalidOutput, 1), "{why}");
        assert!(error.to_string().contains(why), "{error}");
    }
}

#[tokio::test]
async fn law_m1_answer_without_text_is_retried_with_valid_transcript() {
    let media = Media::from_url("image/png", "https://example.org/oslo.png");
    let answers = || {
        [
            Answer::new(),
            Answer::new().reasoning("hm"),
            Answer::new().text(" \n"),
            Answer::new().delta(DeltaKind::Refusal(" ".into()).into()),
            Answer::new().delta(Delta::media(media.clone())),
        ]
        .map(|answer| answer.finish(FinishReason::Stop))
    };
    for first in answers() {
        let model = ScriptedModel::new([first, Answer::from_text(OSLO)]);
        let client = ChatClient::builder(model.clone()).build().unwrap();
        assert_eq!(client.prompt().user("Where?").entity::<City>().await.unwrap(), oslo());
        let sent = &model.prompts()[1].messages;
        assert_eq!(validate_transcript(sent), [], "{sent:?}");
        let said: String = sent.iter().map(Message::text).collect();
        assert!(said.contains("does not fit the form"), "{said}");
    }
}

/// `12` may be the beginning of `123`; an object that is closed is whole.
#[tokio::test]
async fn possibly_truncated_value_is_an_error() {
    let one = |text: &str, reason| {
        let answers = [Answer::new().text(text).finish(reason)];
        setting(answers, Phase::Round, SchemaSupport::None, ToolCallAdvisor::new())
    };
    for (text, reason, value) in [
        ("12", FinishReason::Length, None),
        ("{\"value\": 12}", FinishReason::Length, Some(12)),
        ("{\"value\": 12}", FinishReason::ContentFilter, None),
        ("{\"value\": 12}", FinishReason::Refusal, None),
        ("12", FinishReason::Stop, Some(12)),
    ] {
        let asked = one(text, reason.clone()).prompt().entity::<u32>().await;
        assert_eq!(
            asked.map_err(|error| error.kind()),
            value.ok_or(ErrorKind::InvalidOutput),
            "{text} {reason:?}"
        );
    }
}

#[tokio::test]
async fn turn_ending_at_limit_has_no_value() {
    let limits = ToolLimits { rounds: Some(1), ..ToolLimits::default() };
    let tools = ToolCallAdvisor::builder().limits(limits).build().unwrap();
    let setting = setting([calling()], Phase::Round, SchemaSupport::None, tools);
    let error = setting.prompt().entity::<City>().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidOutput);
    assert!(error.to_string().contains("it reached the limit of 1 rounds in one turn"), "{error}");
}

#[tokio::test]
async fn error_during_retry_is_error_of_the_turn() {
    let down = Error::new(ErrorKind::Connection, "the connection broke");
    let answers = [Answer::from_text("Oslo"), Answer::refused(down)];
    let setting = setting(answers, Phase::Round, SchemaSupport::None, ToolCallAdvisor::new());
    let error = setting.prompt().entity::<City>().await.unwrap_err();
    assert_eq!((error.kind(), error.emitted()), (ErrorKind::Connection, true));
}

#[tokio::test]
async fn value_streams_partially_and_restarts_after_rejection() {
    let answers = [
        Answer::new().text("Well: ").text("{\"na").text("me\": \"Bergen\"}").finish(FinishReason::Stop),
        Answer::new()
            .text("{\"name\": \"Os")
            .text("lo\", \"inhab")
            .text("itants\": 717710}")
            .finish(FinishReason::Stop),
    ];
    let setting = setting(answers, Phase::Round, SchemaSupport::None, ToolCallAdvisor::new());
    let told: Vec<_> = setting.prompt().entity::<City>().stream().try_collect().await.unwrap();
    assert_eq!(
        told,
        [
            Partial::Value(json!({})),
            Partial::Value(json!({"name": "Bergen"})),
            Partial::Restarted,
            Partial::Value(json!({"name": "Os"})),
            Partial::Value(json!({"name": "Oslo"})),
            Partial::Value(json!({"name": "Oslo", "inhabitants": 717_710})),
            Partial::Complete(oslo()),
        ]
    );
}

/// Returns the partial values of an answer in these pieces.
async fn told_of<T>(pieces: &[&'static str]) -> Vec<Partial<T>>
where
    T: serde::de::DeserializeOwned + JsonSchema + Send + 'static,
{
    let answer = pieces.iter().fold(Answer::new(), |answer, piece| answer.text(*piece));
    let model = ScriptedModel::new([answer.finish(FinishReason::Stop)]);
    let client = ChatClient::builder(model).build().unwrap();
    client.prompt().user("How many?").entity::<T>().stream().try_collect().await.unwrap()
}

/// A draft, and an example that is shorter than the answer.
#[tokio::test]
async fn partial_values_of_another_value_are_said_to_be_void() {
    use Partial::{Complete, Restarted, Value};
    let bergen = || Value(json!({"name": "Bergen", "inhabitants": 1}));
    let draft = ["<think>", r#"{"name": "Bergen", "inhabitants": 1}"#, "</think>", OSLO, " It is so."];
    assert_eq!(told_of::<City>(&draft).await, [bergen(), Restarted, Complete(oslo())]);
    let short = r#"{"name": "Os", "inhabitants": 717710}"#;
    let example = ["Such as ", short, ". Now: ", OSLO];
    let told = [Value(json!({"name": "Os", "inhabitants": 717_710})), Complete(oslo())];
    assert_eq!(told_of::<City>(&example).await, told, "it has the content of the last one");
}

#[tokio::test]
async fn law_r3_entity_content_is_absent_from_debug() {
    let model = ScriptedModel::new([Answer::new().text("{\"name\": \"Oslo\"").hang()]);
    let client = ChatClient::builder(model).build().unwrap();
    let mut stream = client.prompt().user("Where?").entity::<City>().stream();
    assert_eq!(stream.next().await.unwrap().unwrap(), Partial::Value(json!({"name": "Oslo"})));
    assert!(!format!("{stream:?}").contains("Oslo"), "{stream:?}");
}

#[tokio::test]
async fn values_of_any_shape_can_be_asked_for() {
    #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    enum Mood {
        Good,
        Bad,
    }
    let ask = |answer: &'static str| {
        setting([Answer::from_text(answer)], Phase::Round, SchemaSupport::JsonSchema, ToolCallAdvisor::new())
    };
    let cities: Vec<City> = ask(&*Box::leak(format!("{{\"value\": [{OSLO}]}}").into_boxed_str()))
        .prompt()
        .entity()
        .await
        .unwrap();
    assert_eq!(cities, [oslo()]);
    assert_eq!(ask("{\"value\": \"good\"}").prompt().entity::<Mood>().await.unwrap(), Mood::Good);
    assert_eq!(ask("\"bad\"").prompt().entity::<Mood>().await.unwrap(), Mood::Bad);
    assert_eq!(ask("{\"value\": 7}").prompt().entity::<u8>().await.unwrap(), 7);
}

/// A turn that is submitted again is answered by memory, and has the same value.
#[tokio::test]
async fn already_answered_turn_returns_its_value() {
    let setting =
        setting([Answer::from_text(OSLO)], Phase::Round, SchemaSupport::None, ToolCallAdvisor::new());
    for _ in 0..2 {
        let city: City = setting.prompt().turn("t").entity().await.unwrap();
        assert_eq!(city, oslo());
    }
    assert_eq!(setting.model.calls(), 1);
}
