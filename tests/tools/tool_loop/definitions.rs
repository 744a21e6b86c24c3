//! Definitions that no server takes are refused before anything is sent.

use advisor_tests::prelude::*;

use crate::tool_loop::support::*;

fn fn_tool(definition: ToolDefinition) -> FnTool {
    FnTool::new(definition, |_: Value| async { Ok("ran") })
}

fn with_schema(schema: Value) -> ToolDefinition {
    ToolDefinition::new("look", "Looks.", schema)
}

fn with_property(schema: &Value) -> Value {
    json!({"type": "object", "properties": {"a": schema}})
}

/// Returns refused definitions, each with the texts of its error.
fn refused() -> Vec<(ToolDefinition, Vec<&'static str>)> {
    let mut refused = vec![
        (definition("my tool"), vec!["`my tool`", "call it `my_tool`"]),
        (definition("größe"), vec!["`größe`", "call it `gr__e`"]),
        (definition("look\u{1b}[2J"), vec![r"`look\u{1b}[2J`", "call it `look__2J`"]),
        (definition(""), vec!["no name"]),
    ];
    refused.push((definition(&"x".repeat(65)), vec!["64", "65"]));
    for schema in
        [json!({"type": 5}), json!({"type": "array"}), json!({}), json!({"type": ["object", "null"]})]
    {
        refused.push((with_schema(schema), vec!["`look`", "object schema", r#""type": "object""#]));
    }
    for schema in [json!(true), json!("object"), json!([])] {
        refused.push((with_schema(schema), vec!["`look`", "object schema", r#""type": "object""#]));
    }
    for schema in [
        with_property(&json!({"type": 5})),
        with_property(&json!({"type": "no such type"})),
        with_property(&json!({"$ref": "#/$defs/missing"})),
        with_property(&json!({"$ref": "https://example.org/schema.json"})),
        json!({"type": "object", "required": "a"}),
    ] {
        refused.push((with_schema(schema), vec!["`look`", "schema", "invalid"]));
    }
    refused
}

#[track_caller]
fn assert_refused(error: &Error, definition: &ToolDefinition, says: &[&str]) {
    assert_eq!(error.kind(), ErrorKind::Configuration, "{definition:?}: {error}");
    let text = error.to_string();
    assert!(says.iter().all(|says| text.contains(says)), "{definition:?}: {text}");
    assert!(!text.contains('\u{1b}'), "{text:?}");
}

/// A tool of the client is checked when the client is built, one of a turn when it starts, and one that an advisor adds
/// before the request is sent.
#[tokio::test]
async fn unsupported_definition_is_refused_wherever_it_is_added() {
    for (definition, says) in refused() {
        let model = ScriptedModel::new([]);
        let loop_around = || client(&model, ToolCallAdvisor::new());
        let built = loop_around().tool(fn_tool(definition.clone())).build();
        assert_refused(&built.unwrap_err(), &definition, &says);
        let turn = loop_around().build().unwrap().prompt().user("go").tool(fn_tool(definition.clone()));
        assert_refused(&turn.call().await.unwrap_err(), &definition, &says);
        for phase in [Phase::Turn, Phase::Round, Phase::ModelCall] {
            let added = definition.clone();
            let adding = from_fn("adding", move |request: ChatRequest, next: AdvisorChain| {
                let tool = fn_tool(added.clone());
                async move { next.next_stream(request.with_tool(tool)).await }
            });
            let run = go(loop_around().advisor_in(phase, adding)).await;
            assert_refused(run.error(), &definition, &says);
        }
        assert_eq!(model.calls(), 0);
    }
}

#[tokio::test]
async fn names_and_schemas_at_the_bounds_are_taken() {
    let local = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/a"}},
        "$defs": {"a": {"type": "string"}},
    });
    for definition in [
        definition(&"x".repeat(64)),
        definition("a-B_9"),
        definition("-"),
        with_schema(Value::Null),
        with_schema(json!({"type": "object"})),
        with_schema(local),
    ] {
        let name = definition.name.to_string();
        let model =
            ScriptedModel::new([Answer::from_calls([("c1", &*name, "{}")]), Answer::from_text("Done.")]);
        let response = response_of(client(&model, ToolCallAdvisor::new()).tool(fn_tool(definition))).await;
        assert_eq!(transcript_lines(&response.transcript)[2], "result c1: ran");
    }
}

/// The loop reports a definition that is invalid at its start before memory stores anything.
#[tokio::test]
async fn tool_from_outside_loop_is_refused_before_recording() {
    let ledger = Ledger::default();
    let model = ScriptedModel::new([]);
    let adding = from_fn("adding", |request: ChatRequest, next: AdvisorChain| async move {
        next.next_stream(request.with_tool(fn_tool(with_schema(with_property(&json!({"type": 5})))))).await
    });
    let ledger_inside = from_fn("inside", {
        let ledger = ledger.clone();
        move |request: ChatRequest, next: AdvisorChain| {
            request.turn.add_recorder(Arc::new(ledger.clone()));
            async move { next.next_stream(request).await }
        }
    });
    let client = client(&model, ToolCallAdvisor::new())
        .advisor(adding)
        .advisor(ledger_inside.with_placement(Placement::new(Phase::Round)))
        .build()
        .unwrap();
    let error = client.prompt().user("go").call().await.unwrap_err();
    assert_eq!((error.kind(), model.calls()), (ErrorKind::Configuration, 0));
    assert!(ledger.records().is_empty());
}

/// Without a tool loop, names and the root of schemas are looked at all the same.
#[tokio::test]
async fn chain_without_loop_refuses_invalid_names_and_roots() {
    let model = ScriptedModel::new([]);
    for definition in [definition("my tool"), with_schema(json!({"type": 5}))] {
        let built = ChatClient::builder(model.clone()).tool(fn_tool(definition.clone())).build();
        assert_eq!(built.unwrap_err().kind(), ErrorKind::Configuration);
        let chain = ChatClient::builder(model.clone()).build().unwrap().chain().clone();
        let request = ChatRequest::new(Message::user("go")).with_tool(fn_tool(definition));
        assert_eq!(chain.next_call(request).await.unwrap_err().kind(), ErrorKind::Configuration);
    }
    assert_eq!(model.calls(), 0);
}

/// Counts how often its definition is asked for.
struct Counted(ToolDefinition, Arc<AtomicUsize>);

#[async_trait]
impl Tool for Counted {
    fn definition(&self) -> &ToolDefinition {
        self.1.fetch_add(1, Ordering::Relaxed);
        &self.0
    }

    async fn run(&self, _invocation: ToolInvocation) -> Result<ToolOutput, ToolError> {
        Ok("ran".into())
    }
}

/// The schemas of a set are looked at once, however many requests offer it. Names are checked each time.
#[test]
fn a_set_of_tools_is_looked_at_once() {
    let asked = Arc::new(AtomicUsize::new(0));
    let tools = ToolSet::new().with(Counted(definition("look"), Arc::clone(&asked)));
    let model = ScriptedModel::new([]);
    let chain = ChatClient::builder(model).advisor(ToolCallAdvisor::new()).build().unwrap().chain().clone();
    let mut asked_for = Vec::new();
    for _ in 0..3 {
        let before = asked.load(Ordering::Relaxed);
        chain.validate_tools(&tools).unwrap();
        asked_for.push(asked.load(Ordering::Relaxed) - before);
    }
    assert_eq!(asked_for, [2, 1, 1]);
}
