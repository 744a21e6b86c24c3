//! Tests of law T2: any failure of a call is an error result that the model reads, and the turn continues.

use advisor_chain::tools::ParallelTools;
use advisor_tests::prelude::*;

use crate::tool_loop::support::*;

/// Lets the model request one call and read its result, and returns the result.
async fn result_of(
    arguments: &str,
    name: &str,
    add: impl Fn(ChatClientBuilder) -> ChatClientBuilder,
) -> ToolResult {
    let model =
        ScriptedModel::new([Answer::from_calls([("c1", name, arguments)]), Answer::from_text("I see.")]);
    let run = go(add(client(&model, ToolCallAdvisor::new()))).await;
    let response = run.response();
    assert_eq!((response.text().as_str(), model.calls()), ("I see.", 2), "the turn goes on");
    assert_valid(&response.transcript);
    let sent = model.prompts()[1].messages.clone();
    let call = sent.iter().find_map(|message| message.tool_calls().next().cloned()).unwrap();
    assert_eq!(call.arguments, arguments, "what the model wrote stays as it is");
    let result = sent.last().unwrap().tool_result().unwrap().clone();
    assert_eq!((result.call_id.as_str(), result.name.as_str()), ("c1", name));
    result
}

fn strict() -> ToolDefinition {
    let schema = json!({
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer", "minimum": 1}},
        "required": ["city"],
    });
    ToolDefinition::new("weather", "Tells the weather.", schema)
}

/// The error that the model reads for these arguments; the tool must not have run.
async fn refused(definition: ToolDefinition, arguments: &str) -> String {
    let (_, given) = invoked("never");
    let name = definition.name.to_string();
    let result = result_of(arguments, &name, |builder| {
        let given = Arc::clone(&given);
        builder.tool(FnTool::new(definition.clone(), move |arguments: Value| {
            given.lock().unwrap().push(arguments);
            async { Ok("ran") }
        }))
    })
    .await;
    assert!(result.is_error);
    assert!(given.lock().unwrap().is_empty(), "the tool ran with {:?}", given.lock().unwrap());
    result.text()
}

/// Arguments that are no JSON are an error result, never `{}`.
#[tokio::test]
async fn law_t2_unparsable_arguments_are_an_error_result() {
    for arguments in ["{", "{\"city\":", "city=Oslo", "{\"a\":1} {}", "{\"city\":\"Oslo\"}}", "nonsense"] {
        for definition in [strict(), definition("look")] {
            let text = refused(definition, arguments).await;
            assert!(text.starts_with("not started: the arguments are no valid JSON"), "{arguments}: {text}");
        }
    }
}

#[tokio::test]
async fn law_t2_arguments_violating_schema_are_an_error_result() {
    for (arguments, says) in [
        ("{}", "\"city\" is a required property"),
        (r#"{"city":5}"#, "/city: 5 is not of type \"string\""),
        (r#"{"city":"Oslo","days":0}"#, "/days: 0 is less than the minimum of 1"),
        ("null", "\"city\" is a required property"),
        ("[]", "[] is not of type \"object\""),
        ("\"Oslo\"", "\"Oslo\" is not of type \"object\""),
    ] {
        let text = refused(strict(), arguments).await;
        assert!(text.starts_with("not started: the arguments do not fit the tool"), "{text}");
        assert!(text.contains(says), "{arguments}: {text}");
    }
}

/// A tool without a schema takes any object, and nothing else.
#[tokio::test]
async fn law_t2_without_a_schema_arguments_are_an_object() {
    for arguments in ["[]", "5", "\"{}\"", "\"null\""] {
        let text = refused(ToolDefinition::new("look", "Looks.", Value::Null), arguments).await;
        assert_eq!(text, "not started: the arguments do not fit the tool: they are no object", "{arguments}");
    }
}

/// Compiled schemas are kept by the tool's name; a tool of the same name with another schema has its own.
#[tokio::test]
async fn validation_uses_schema_of_the_offered_tool() {
    let advisor = ToolCallAdvisor::new();
    let fits = async |wanted: &str| {
        let schema = json!({"type": "object", "required": [wanted]});
        let tool = FnTool::new(ToolDefinition::new("look", "Looks.", schema), |_: Value| async { Ok("ok") });
        let model = ScriptedModel::new([
            Answer::from_calls([("c1", "look", "{\"a\":1}")]),
            Answer::from_text("I see."),
        ]);
        let response = response_of(client(&model, advisor.clone()).tool(tool)).await;
        transcript_lines(&response.transcript)[2] == "result c1: ok"
    };
    assert_eq!([fits("a").await, fits("b").await, fits("a").await], [true, false, true]);
}

/// Absent arguments and `null` are `{}`, and nothing else is.
#[tokio::test]
async fn empty_arguments_are_an_empty_object() {
    for arguments in ["", " ", "\n\t", "{}", "null", " null "] {
        let (look, given) = invoked("look");
        let look = Mutex::new(Some(look));
        let result =
            result_of(arguments, "look", |builder| builder.tool(look.lock().unwrap().take().unwrap())).await;
        assert_eq!((result.text().as_str(), result.is_error), ("ok", false), "{arguments:?}");
        assert_eq!(*given.lock().unwrap(), [json!({})], "{arguments:?}");
    }
}

/// Offers a tool with an invalid schema. No check refuses it, since the model is not asked.
struct BrokenTool;

#[async_trait]
impl LoopHooks for BrokenTool {
    async fn before_round(&self, request: ChatRequest, _round: u32) -> Result<ChatRequest> {
        let schema = json!({"type": "object", "properties": {"a": {"type": 5}}});
        let broken = ToolDefinition::new("broken", "A broken tool.", schema);
        Ok(request.with_tool(FnTool::new(broken, |_: Value| async { Ok("ran") })))
    }
}

/// A tool with an invalid schema is refused before it is offered. If it is called all the same, its result says
/// so.
#[tokio::test]
async fn law_t2_tool_with_broken_schema_is_error_result() {
    let model = ScriptedModel::new([]);
    let answering = from_fn("answering", |request: ChatRequest, _: AdvisorChain| async move {
        let called = request.messages.last().is_some_and(|message| message.tool_result().is_some());
        let call = Block::from(ToolCall::new("c1", "broken", "{}"));
        let answer = if called { Block::text("Done.") } else { call };
        let answer = Message::assistant_blocks(vec![answer]);
        Ok(request.answer(ChatResponse::new(0, answer, FinishReason::Stop)))
    });
    let advisor = ToolCallAdvisor::builder().hooks(BrokenTool).build().unwrap();
    let answering = answering.with_placement(Placement::new(Phase::Round));
    let response = response_of(client(&model, advisor).advisor(answering)).await;
    let result = &transcript_lines(&response.transcript)[2];
    assert!(result.starts_with("error c1: not started"), "{result}");
    assert!(result.contains("the tool's own schema is invalid"), "{result}");
}

#[tokio::test]
async fn law_t2_a_panicking_tool_is_an_error_result() {
    let panicking = |text: Option<&'static str>| {
        FnTool::new(definition("look"), move |_: Value| async move {
            match text {
                Some(text) => panic!("{text}"),
                None => std::panic::panic_any(5),
            }
            #[allow(unreachable_code, reason = "it gives the closure its type")]
            Ok("never")
        })
    };
    for (text, says) in
        [(Some("oh no"), "the tool panicked: oh no"), (None, "the tool panicked: without a text")]
    {
        let result = result_of("{}", "look", |builder| builder.tool(panicking(text))).await;
        assert_eq!((result.text().as_str(), result.is_error), (says, true));
    }
    let once = || {
        FnTool::new(
            ToolDefinition { effect: Some(Effect::AtMostOnce), ..definition("look") },
            |_: Value| async {
                panic!("oh no");
                #[allow(unreachable_code, reason = "it gives the closure its type")]
                Ok("never")
            },
        )
    };
    let result = result_of("{}", "look", |builder| builder.tool(once())).await;
    let verify = "the tool panicked: oh no; the outcome is unknown, verify before retrying";
    assert_eq!(result.text(), verify, "it may have taken effect");
}

#[tokio::test(start_paused = true)]
async fn law_t2_tool_timeout_is_an_error_result() {
    let hanging = |definition| {
        FnTool::new(definition, |_: Value| async {
            std::future::pending::<()>().await;
            Ok("never")
        })
    };
    let begun = tokio::time::Instant::now();
    let own = ToolDefinition { timeout: Some(Duration::from_millis(1500)), ..definition("look") };
    let result = result_of("{}", "look", |builder| builder.tool(hanging(own.clone()))).await;
    assert_eq!(result.text(), "stopped: no answer within 1.5 s; the outcome is unknown");
    assert!(result.is_error);
    assert_eq!(begun.elapsed().as_millis(), 1500, "not a moment later");

    let result = result_of("{}", "look", |builder| builder.tool(hanging(definition("look")))).await;
    assert_eq!(result.text(), "stopped: no answer within 120 s; the outcome is unknown");
}

/// The timeout of a tool without its own can be set, or left to the turn.
#[tokio::test(start_paused = true)]
async fn law_t3_execution_timeout_applies_to_the_tool() {
    for (bound, took) in [(Some(Duration::from_secs(3)), 3), (None, 500)] {
        let hanging = FnTool::new(definition("look"), |_: Value| async {
            std::future::pending::<()>().await;
            Ok("never")
        });
        let begun = tokio::time::Instant::now();
        let model =
            ScriptedModel::new([Answer::from_calls([("c1", "look", "{}")]), Answer::from_text("Done.")]);
        let turn = ToolLimits { turn_timeout: Some(Duration::from_secs(500)), ..ToolLimits::default() };
        let tools = ParallelTools { timeout: bound, ..ParallelTools::default() };
        let advisor = ToolCallAdvisor::builder().limits(turn).execution(tools).build().unwrap();
        client(&model, advisor).tool(hanging).build().unwrap().prompt().user("go").call().await.unwrap();
        assert_eq!(begun.elapsed().as_secs(), took);
    }
}
