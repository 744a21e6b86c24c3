//! Law T3: every bound ends the turn with a typed finish and a valid transcript.

use advisor_tests::prelude::*;

use crate::tool_loop::support::*;

/// A model that asks for these tools in every round.
fn always(names: &[&'static str]) -> ScriptedModel {
    let names = names.to_vec();
    ScriptedModel::from_fn(move |prompt| {
        let calls: Vec<_> = (0..names.len())
            .map(|place| {
                (format!("r{}c{place}", prompt.round), format!("{{\"n\":\"{}.{place}\"}}", prompt.round))
            })
            .collect();
        let calls = calls.iter().zip(&names);
        Answer::from_calls(calls.map(|((id, arguments), name)| (id.as_str(), *name, arguments.as_str())))
    })
}

async fn run(client: ChatClient) -> Run {
    let run = read(client.prompt().user("go").stream()).await;
    let response = run.response();
    assert_valid(&response.transcript);
    assert!(response.text().starts_with("I stopped here: "), "{}", response.text());
    assert_eq!(run.text(), response.text(), "the closing text is shown");
    run
}

fn results(run: &Run) -> Vec<String> {
    let lines = transcript_lines(&run.response().transcript);
    lines.into_iter().filter(|line| line.starts_with("result ") || line.starts_with("error ")).collect()
}

#[tokio::test]
async fn law_t3_rounds() {
    let model = always(&["look"]);
    let (look, given) = invoked("look");
    let client = client(&model, limited(ToolLimits { rounds: Some(3), ..ToolLimits::default() }))
        .tool(look)
        .build()
        .unwrap();
    let run = run(client).await;
    assert_eq!(limit_of(&run), Limit::Rounds(3));
    assert_eq!((model.calls(), given.lock().unwrap().len()), (3, 2));
    assert_eq!(
        results(&run),
        [
            "result r1c0: ok",
            "result r2c0: ok",
            "error r3c0: not started: the limit of 3 rounds in one turn was reached"
        ]
    );
    assert_eq!(run.response().text(), "I stopped here: the limit of 3 rounds in one turn was reached.");
}

#[tokio::test]
async fn law_t3_rounds_also_bound_pauses() {
    let model = ScriptedModel::from_fn(|_| Answer::new().text("…").finish(FinishReason::Paused));
    let run = go(client(&model, limited(ToolLimits { rounds: Some(3), ..ToolLimits::default() }))).await;
    assert_eq!((limit_of(&run), model.calls()), (Limit::Rounds(3), 3));
    assert_valid(&run.response().transcript);
}

#[test]
fn limit_of_zero_rounds_is_refused() {
    let error = ToolCallAdvisor::builder()
        .limits(ToolLimits { rounds: Some(0), ..ToolLimits::default() })
        .build()
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Configuration);
    assert!(error.to_string().contains("allow at least 1"), "{error}");
}

/// Calls within the bound run, those beyond it are answered, the model is not asked again. One tool may have its own bound,
/// or none.
#[tokio::test]
async fn law_t3_calls_in_all_and_of_each_tool() {
    let of_tool = |tool: &str, limit| Limit::CallsPerTool { tool: tool.into(), limit };
    let default = ToolLimits::default;
    let own = ToolLimits {
        calls_per_tool: Some(2),
        tools: BTreeMap::from([("look".into(), None), ("tell".into(), Some(4))]),
        ..default()
    };
    for (limits, names, limit, asked, last) in [
        (
            ToolLimits { calls: Some(5), ..default() },
            &["look", "tell", "look"][..],
            Limit::Calls(5),
            2,
            &[
                "result r2c0: ok",
                "result r2c1: ok",
                "error r2c2: not started: the limit of 5 tool calls in one turn was reached",
            ][..],
        ),
        (
            ToolLimits { calls_per_tool: Some(1), ..default() },
            &["look", "look", "tell"],
            of_tool("look", 1),
            1,
            &[
                "result r1c0: ok",
                "error r1c1: not started: the limit of 1 calls of the tool `look` in one turn was reached",
                "result r1c2: ok",
            ],
        ),
        (
            ToolLimits { rounds: Some(100), ..own },
            &["look", "tell"],
            of_tool("tell", 4),
            5,
            &[
                "result r5c0: ok",
                "error r5c1: not started: the limit of 4 calls of the tool `tell` in one turn was reached",
            ],
        ),
    ] {
        let model = always(names);
        let client = client(&model, limited(limits)).tool(tool("look", "ok")).tool(tool("tell", "ok"));
        let run = run(client.build().unwrap()).await;
        assert_eq!((limit_of(&run), model.calls()), (limit, asked));
        let results = results(&run);
        assert_eq!(results[results.len() - last.len()..], *last);
    }
}

/// The model may read about the bound instead, and continue.
#[tokio::test]
async fn law_t3_call_limit_is_reported_to_model() {
    let model = ScriptedModel::new([
        Answer::from_calls([("c1", "look", "{}"), ("c2", "look", "{}")]),
        Answer::from_calls([("c3", "look", "{}")]),
        Answer::from_text("Enough."),
    ]);
    let (look, given) = invoked("look");
    let limits =
        ToolLimits { calls_per_tool: Some(1), on_limit: OnLimit::TellModel, ..ToolLimits::default() };
    let run = go(client(&model, limited(limits)).tool(look)).await;
    assert_eq!((run.response().text().as_str(), given.lock().unwrap().len()), ("Enough.", 1));
    assert_eq!(run.response().finish.reason, FinishReason::Stop);
    let results = results(&run);
    assert_eq!(results[0], "result c1: ok");
    assert!(
        results[1..].iter().all(|line| line.contains("not started: the limit of 1 calls")),
        "{results:?}"
    );
    assert_valid(&run.response().transcript);
}

/// A call that one limit has denied does not count towards another one.
#[tokio::test]
async fn law_t3_denied_calls_do_not_count() {
    let limits = ToolLimits {
        calls: Some(3),
        on_limit: OnLimit::TellModel,
        tools: BTreeMap::from([("look".into(), Some(1))]),
        ..ToolLimits::default()
    };
    let look = |id| (id, "look", "{}");
    let model = ScriptedModel::new([
        Answer::from_calls([look("c1"), look("c2"), look("c3")]),
        Answer::from_calls([("c4", "listen", "{}"), ("c5", "listen", "{}")]),
        Answer::from_text("Done."),
    ]);
    let (listen, heard) = invoked("listen");
    let client = client(&model, limited(limits)).tool(tool("look", "ok")).tool(listen).build().unwrap();
    read(client.prompt().user("go").stream()).await;
    assert_eq!(heard.lock().unwrap().len(), 2);
}

/// 40 calls of one tool, 10 of them equal, 150 in all, 25 rounds.
#[tokio::test]
async fn law_t3_the_defaults_apply() {
    let asked = async |names: &[&'static str]| {
        let model = always(names);
        let client = names.iter().collect::<BTreeSet<_>>().into_iter();
        let client =
            client.fold(ChatClient::builder(model.clone()), |client, name| client.tool(tool(name, "ok")));
        let run = run(client.advisor(ToolCallAdvisor::new()).build().unwrap()).await;
        (limit_of(&run), model.calls())
    };
    let (limit, _) = asked(&["a"; 41]).await;
    assert_eq!(limit, Limit::CallsPerTool { tool: "a".into(), limit: 40 });
    let ten = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
    assert_eq!(asked(&ten).await, (Limit::Calls(150), 16));
    assert_eq!(asked(&["a"]).await, (Limit::Rounds(25), 25));
    assert_eq!(ToolLimits::default().same_calls, Some(10));
}

/// A bound counts the rounds of this turn, never those of another.
#[tokio::test]
async fn earlier_turns_do_not_count() {
    let model = ScriptedModel::from_fn(|prompt| match prompt.messages.last().unwrap().tool_result() {
        Some(_) => Answer::from_text("Done."),
        None => Answer::from_calls([("c", "look", "{}"), ("d", "look", "{}")]),
    });
    let limits =
        ToolLimits { calls: Some(2), calls_per_tool: Some(2), rounds: Some(2), ..ToolLimits::default() };
    let client = client(&model, limited(limits)).tool(tool("look", "sunny")).build().unwrap();
    let mut history = Vec::new();
    for turn in 0..3 {
        let prompt = client.prompt().messages(history).user(format!("turn {turn}"));
        let response = prompt.call().await.unwrap();
        assert_eq!(response.text(), "Done.", "turn {turn}");
        history = response.transcript.iter().cloned().collect();
    }
    assert_eq!(history.len(), 15);
}

#[tokio::test]
async fn law_t3_the_size_of_a_result() {
    let long = "0123456789".repeat(1000);
    for (bytes, output) in [
        (400, ToolOutput::from(long.as_str())),
        (400, ToolOutput::from(serde_json::json!({ "long": long }))),
        (400, vec![long.as_str().into(), long.as_str().into()].into()),
    ] {
        let model =
            ScriptedModel::new([Answer::from_calls([("c1", "look", "{}")]), Answer::from_text("Done.")]);
        let client = client(&model, limited(ToolLimits { result_bytes: bytes, ..ToolLimits::default() }));
        let response = response_of(client.tool(tool("look", output))).await;
        let text = model.prompts()[1].messages.last().unwrap().text();
        assert!(text.len() <= bytes, "{}", text.len());
        assert!(text.contains("bytes left out"), "{text}");
        assert!(text.starts_with("0123") || text.starts_with("{\"long\":\"0123"), "the head stays: {text}");
        assert_eq!(
            response.transcript.iter().nth_back(1).unwrap().text(),
            text,
            "what is kept is what was sent"
        );
    }
    let model = ScriptedModel::new([Answer::from_calls([("c1", "look", "{}")]), Answer::from_text("Done.")]);
    let errs = FnTool::new(definition("look"), |_: Value| async {
        Err::<&str, _>(ToolError::new("x".repeat(1000)))
    });
    let client =
        client(&model, limited(ToolLimits { result_bytes: 100, ..ToolLimits::default() })).tool(errs);
    client.build().unwrap().prompt().user("go").call().await.unwrap();
    let result = model.prompts()[1].messages.last().unwrap().tool_result().cloned().unwrap();
    assert!(result.is_error && result.text().len() <= 100, "errors are bounded, too: {}", result.text());
}

/// The default bounds: 64 KiB of text, and space for pictures. Observers receive the same text as the model.
#[tokio::test]
async fn law_t3_results_are_bounded_by_default() {
    let model = ScriptedModel::new([Answer::from_calls([("c1", "look", "{}")]), Answer::from_text("Done.")]);
    let picture = Part::Image(Media::from_bytes("image/png", vec![0; 5 << 20]));
    let output = ToolOutput::from(vec!["x".repeat(65_537).into(), picture.clone()]);
    let run = go(client(&model, streaming(ToolCallStreaming::All)).tool(tool("look", output))).await;
    let sent = model.prompts()[1].messages.last().unwrap().tool_result().cloned().unwrap();
    assert!(sent.text().len() <= 65_536 && sent.text().contains("bytes left out"));
    assert_eq!(sent.parts[1], picture);
    let shown = run.chunks.iter().find_map(|chunk| match chunk {
        Chunk::Tool(event) => match &event.kind {
            ToolEventKind::Finished { result } => Some(result.clone()),
            _ => None,
        },
        _ => None,
    });
    assert_eq!(shown, Some(sent));
}
