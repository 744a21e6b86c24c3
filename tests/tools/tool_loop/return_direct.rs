//! Tools whose results go straight to the user.

use advisor_tests::prelude::*;

use crate::tool_loop::support::*;

fn direct(name: &str, output: impl Into<ToolOutput>) -> FnTool {
    let output = output.into();
    FnTool::new(ToolDefinition { return_direct: true, ..definition(name) }, move |_: Value| {
        let output = output.clone();
        async move { Ok(output) }
    })
}

fn model(calls: &[(&'static str, &'static str)]) -> ScriptedModel {
    let calls = calls.iter().map(|(id, name)| (*id, *name, "{}"));
    ScriptedModel::new([Answer::from_calls(calls), Answer::from_text("Done.")])
}

async fn run(model: &ScriptedModel, tools: impl IntoIterator<Item = FnTool>) -> Run {
    let client = client(model, ToolCallAdvisor::new());
    let run = go(tools.into_iter().fold(client, |client, tool| client.tool(tool))).await;
    assert_valid(&run.response().transcript);
    run
}

/// The data of the tool is the answer; the model is not
/// asked again.
#[tokio::test]
async fn a_direct_result_is_the_answer() {
    let model = model(&[("c1", "look")]);
    let run = run(&model, [direct("look", json!({"sky": "blue"}))]).await;
    assert_eq!(model.calls(), 1);
    let response = run.response();
    assert_eq!(response.finish.reason, FinishReason::ReturnDirect);
    assert_eq!(response.text(), r#"{"sky":"blue"}"#);
    assert_eq!(
        transcript_lines(&response.transcript),
        ["user: go", "call c1 look {}", r#"result c1: {"sky":"blue"}"#, r#"assistant: {"sky":"blue"}"#]
    );
}

/// With the call suppressed, the output is exactly the tool's data.
#[tokio::test]
async fn only_the_direct_result_comes_out() {
    let client = client(&model(&[("c1", "look")]), streaming(ToolCallStreaming::FinalAnswerOnly));
    let run = go(client.tool(direct("look", "sunny"))).await;
    assert_eq!(run.lines(), ["2.0 + text", "2.0 \"sunny\"", "2.0 -", "completed 2 ReturnDirect"]);
}

/// The live text, the response and the stored text are equal, with separated results.
#[tokio::test]
async fn direct_results_are_separated_live_and_in_transcript() {
    let (a, b) = ("result of a", "result of b");
    let picture = || Part::Image(Media::from_url("image/png", "https://example.org/a.png"));
    let cases: [(ToolOutput, ToolOutput, &str); 5] = [
        (a.into(), b.into(), "result of a\n\nresult of b"),
        (json!({"a": 1}).into(), json!([2]).into(), "{\"a\":1}\n\n[2]"),
        (vec![Part::from(a), picture()].into(), b.into(), "result of a\n\nresult of b"),
        (vec![picture()].into(), b.into(), "result of b"),
        ("".into(), b.into(), "Done.\n\nresult of b"),
    ];
    for (first, second, reads) in cases {
        for mode in MODES {
            let ledger = Ledger::default();
            let run = go(client(&model(&[("c1", "a"), ("c2", "b")]), streaming(mode))
                .tool(direct("a", first.clone()))
                .tool(direct("b", second.clone()))
                .advisor(ledger.clone()))
            .await;
            assert_eq!(run.text(), reads, "live, {mode:?}");
            assert_eq!(run.response().text(), reads, "{mode:?}");
            assert_eq!(ledger.transcript().last().unwrap().text(), reads, "{mode:?}");
            assert_eq!(ledger.transcript(), run.response().transcript);
        }
    }
}

/// A turn continues after a batch of which only some tools are direct.
#[tokio::test]
async fn a_mixed_batch_goes_on() {
    let model = model(&[("c1", "look"), ("c2", "tell")]);
    let run = run(&model, [direct("look", "sunny"), tool("tell", "told")]).await;
    assert_eq!((model.calls(), run.response().text().as_str()), (2, "Done."));
    assert_eq!(transcript_lines(&model.prompts()[1].messages)[3..], ["result c1: sunny", "result c2: told"]);
}

/// A direct tool that fails is no answer: the model reads the error.
#[tokio::test]
async fn a_direct_tool_that_fails_goes_on() {
    let failing =
        FnTool::new(ToolDefinition { return_direct: true, ..definition("look") }, |_: Value| async {
            Err::<&str, _>(ToolError::new("broken"))
        });
    let model = model(&[("c1", "look")]);
    let run = run(&model, [failing]).await;
    assert_eq!((model.calls(), run.response().text().as_str()), (2, "Done."));
}

/// Media of a direct result are blocks of the answer.
#[tokio::test]
async fn a_direct_result_keeps_its_media() {
    let picture = Media::from_bytes("image/png", vec![1, 2, 3]);
    let parts = vec![Part::from("a picture"), Part::Image(picture)];
    let run = run(&model(&[("c1", "look")]), [direct("look", parts)]).await;
    let kinds: Vec<_> = run.response().blocks().map(|(_, block)| block.kind()).collect();
    assert_eq!(kinds, [BlockKind::Text, BlockKind::Media]);
    let alone = vec![Part::Image(Media::from_url("image/png", "https://example.org/a.png"))];
    let run = self::run(&model(&[("c1", "look")]), [direct("look", alone)]).await;
    let kinds: Vec<_> = run.response().blocks().map(|(_, block)| block.kind()).collect();
    assert_eq!(kinds, [BlockKind::Media], "no empty text beside it");
}

/// A tool that answers nothing is accepted, and nothing empty is remembered.
#[tokio::test]
async fn an_empty_result_is_accepted() {
    for empty in [ToolOutput::default(), ToolOutput::from(""), ToolOutput::from(Vec::new())] {
        let model_asked = model(&[("c1", "look")]);
        let run_on = run(&model_asked, [tool("look", empty.clone())]).await;
        assert_eq!(run_on.response().text(), "Done.");
        assert_eq!(transcript_lines(&model_asked.prompts()[1].messages)[2], "result c1: ");

        let direct_run = run(&model(&[("c1", "look")]), [direct("look", empty)]).await;
        assert_eq!(direct_run.response().finish.reason, FinishReason::ReturnDirect);
    }
}
