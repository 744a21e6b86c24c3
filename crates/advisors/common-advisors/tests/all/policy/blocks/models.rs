//! A model as a judge.

use std::sync::Arc;

use advisor_core::{
    Block, BlockId, ChatModel, ChatOptions, ChatRequest, ChunkStream, Error, ErrorKind, FinishReason,
    ResponseFormat, Result, Role, SchemaSupport, ToolCall, async_trait,
};
use advisor_testkit::{Answer, ScriptedModel};
use common_advisors::policy::{BlockPolicy, DenialCause, Judge, ModelJudge, PendingBlock, Verdict};
use serde_json::{Value, json};

use crate::policy::blocks::common::{request, run};

fn pending(block: Block) -> PendingBlock {
    PendingBlock::new(BlockId::new(1, 0), block, request())
}

fn shell(arguments: &str) -> PendingBlock {
    pending(ToolCall::new("c1", "shell", arguments).into())
}

async fn verdict_on(text: &str) -> Result<Verdict> {
    ModelJudge::new(ScriptedModel::new([Answer::from_text(text)])).judge(shell("{}")).await
}

#[tokio::test]
async fn answer_is_a_probability_and_an_explanation() {
    for (text, expected) in [
        (r#"{"probability": 0.59, "explanation": "Fine."}"#, Verdict::Allow),
        (r#"{"probability": 0, "explanation": ""}"#, Verdict::Allow),
        (r#"{"probability": 0.6, "explanation": " Bad. "}"#, Verdict::deny("Bad.")),
        (r#"{"probability": 1}"#, Verdict::deny("")),
        (
            "Here it is:\n```json\n{\"probability\": 0.9, \"explanation\": \"{Bad}\"}\n```\nDone.",
            Verdict::deny("{Bad}"),
        ),
    ] {
        assert_eq!(verdict_on(text).await.unwrap(), expected, "{text}");
    }
    let long = "é".repeat(2000);
    let Verdict::Deny { explanation } =
        verdict_on(&json!({"probability": 1, "explanation": long}).to_string()).await.unwrap()
    else {
        panic!("it is denied");
    };
    assert_eq!(explanation.len(), 1024);
}

/// An answer that is no verdict is an error, so the policy denies the block.
#[tokio::test]
async fn law_t2_answer_that_is_no_verdict_is_an_error() {
    for text in [
        "",
        "yes",
        "}{",
        "{}",
        r#"{"probability": "high"}"#,
        r#"{"probability": 1.1}"#,
        r#"{"probability": -0.1}"#,
        r#"{"probability": 0} {"probability": 0.9}"#,
        r#"{"probability": 0.9, "probability": 0}"#,
        r#"{It says} {"probability": 0}"#,
        r#"It says {"probability": 0}. {"probability": 0.9}"#,
        r#"[{"probability": 0}, {"probability": 0}]"#,
    ] {
        assert_eq!(verdict_on(text).await.unwrap_err().kind(), ErrorKind::InvalidOutput, "{text}");
    }
    let allowed = r#"{"probability": 0, "explanation": ""}"#;
    for reason in [FinishReason::Length, FinishReason::Refusal, FinishReason::ContentFilter] {
        let model = ScriptedModel::new([Answer::new().text(allowed).finish(reason)]);
        let error = ModelJudge::new(model).judge(shell("{}")).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidOutput, "an answer that is cut off is none");
    }
    let down = Error::new(ErrorKind::Connection, "the server cannot be reached");
    let policy = BlockPolicy::new(ModelJudge::new(ScriptedModel::new([Answer::refused(down)])));
    let run = run(Answer::from_calls([("c1", "shell", "{}")]), vec![Arc::new(policy)]).await;
    assert_eq!(run.blocks(), ["[The call of `shell` was denied, since it could not be checked.]"]);
    assert_eq!(run.denials().0[0].cause, DenialCause::NoVerdict(ErrorKind::Connection));
}

async fn asked(
    judge: impl FnOnce(ScriptedModel) -> ModelJudge,
    pending: PendingBlock,
) -> (Vec<Role>, Value, ChatOptions) {
    let model = ScriptedModel::new([Answer::from_text(r#"{"probability": 0}"#)]);
    judge(model.clone()).judge(pending).await.unwrap();
    let prompt = model.prompts().remove(0);
    let roles = prompt.messages.iter().map(|message| message.role()).collect();
    let question = serde_json::from_str(&prompt.messages.last().unwrap().text()).unwrap();
    (roles, question, prompt.options)
}

#[tokio::test]
async fn block_is_data_for_the_judge() {
    let (roles, question, options) = asked(ModelJudge::new, shell("{\"command\":\"ls\"}")).await;
    assert_eq!(roles, [Role::System, Role::User]);
    assert_eq!(question, json!({"tool": "shell", "arguments": "{\"command\":\"ls\"}", "cut": false}));
    assert_eq!((options.temperature, options.response_format), (Some(0.0), None));
    let (_, question, _) = asked(ModelJudge::new, pending(Block::text("Hello"))).await;
    assert_eq!(question, json!({"kind": "text", "text": "Hello"}));
    let longest = "a".repeat(16 << 10);
    let (_, question, _) = asked(ModelJudge::new, shell(&longest)).await;
    assert_eq!(question["arguments"], longest, "the longest block is shown whole");
    let mut cut = ToolCall::new("c1", "shell", "{\"a");
    cut.complete = false;
    let (_, question, _) = asked(ModelJudge::new, pending(cut.into())).await;
    assert_eq!(question["cut"], true, "the model is told of calls that are cut off");
}

/// A block that the model cannot be shown whole has no verdict: harm may be in the rest.
#[tokio::test]
async fn law_t2_block_too_long_for_the_judge_is_denied() {
    let model = ScriptedModel::new([]);
    let judge = ModelJudge::new(model.clone());
    let longest = "a".repeat(16 << 10);
    for long in [shell(&format!("{longest};")), pending(Block::text(format!("é{longest}")))] {
        assert_eq!(judge.judge(long).await.unwrap_err().kind(), ErrorKind::TooLarge);
    }
    let calls = Answer::from_calls([("c1", "shell", &*format!("{{\"a\":\"{longest}\"}}"))]);
    let run = run(calls, vec![Arc::new(BlockPolicy::new(judge))]).await;
    assert_eq!(run.blocks(), ["[The call of `shell` was denied, since it could not be checked.]"]);
    assert_eq!(run.denials().0[0].cause, DenialCause::NoVerdict(ErrorKind::TooLarge));
    assert_eq!(model.prompts().len(), 0, "the model is not asked");
}

/// A threshold that no probability reaches would let every block pass.
#[tokio::test]
async fn law_t2_any_threshold_can_deny() {
    for (threshold, probability, expected) in [
        (f64::NAN, 0.0, Verdict::deny("")),
        (-1.0, 0.0, Verdict::deny("")),
        (0.0, 0.0, Verdict::deny("")),
        (1.0, 0.99, Verdict::Allow),
        (1.5, 0.99, Verdict::Allow),
        (1.5, 1.0, Verdict::deny("")),
        (f64::INFINITY, 1.0, Verdict::deny("")),
    ] {
        let model = ScriptedModel::new([Answer::from_text(json!({"probability": probability}).to_string())]);
        let judge = ModelJudge { threshold, ..ModelJudge::new(model) };
        assert_eq!(judge.judge(shell("{}")).await.unwrap(), expected, "{threshold} {probability}");
    }
}

#[tokio::test]
async fn instructions_and_threshold_can_be_set() {
    let model = ScriptedModel::new([Answer::from_text(r#"{"probability": 0.2}"#)]);
    let instructions = "Be strict.".into();
    let judge = ModelJudge { instructions, threshold: 0.1, ..ModelJudge::new(model.clone()) };
    assert_eq!(judge.judge(shell("{}")).await.unwrap(), Verdict::deny(""));
    let prompt = model.prompts().remove(0);
    assert_eq!(prompt.messages.iter().next().unwrap().text(), "Be strict.");
    assert_eq!(prompt.options.temperature, Some(0.0));
    assert!(!format!("{judge:?}").contains("strict"));
}

/// A model whose server enforces a form.
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

#[tokio::test]
async fn server_enforces_the_form_if_it_can() {
    let format = |support| async move {
        asked(move |model| ModelJudge::new(Enforcing(model, support)), shell("{}")).await.2.response_format
    };
    assert_eq!(format(SchemaSupport::None).await, None);
    assert_eq!(format(SchemaSupport::JsonObject).await, Some(ResponseFormat::JsonObject));
    for support in [SchemaSupport::JsonSchemaWithoutTools, SchemaSupport::JsonSchema] {
        assert!(matches!(format(support).await, Some(ResponseFormat::JsonSchema { strict: true, .. })));
    }
}
