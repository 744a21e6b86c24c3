//! Tools whose results go straight to the user.

use advisor_chain::messages::{BlockKind, Media, Part, Usage};
use advisor_chain::tools::{ToolCallStreaming, ToolError, ToolOutput};
use advisor_chain::{FinishReason, FnTool, ToolCallAdvisor};
use advisor_testkit::{Answer, ScriptedModel};
use serde_json::{Value, json};

use crate::tool_loop::support::{
    Ledger, Run, assert_valid, client, definition, read, streaming, tool, transcript_lines,
};

fn direct(name: &str, output: impl Into<ToolOutput>) -> FnTool {
    let output = output.into();
    FnTool::new(definition(name).return_direct(), move |_: Value| {
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
    let client = tools.into_iter().fold(client, |client, tool| client.tool(tool)).build().unwrap();
    let run = read(client.prompt().user("go").stream()).await;
    assert_valid(run.response().transcript());
    run
}

/// TA-26, TA-27, TM-13, IT-05, IT-10, IA-05, IA-11: the data of the tool is the answer; the model is not
/// asked again.
#[tokio::test]
async fn ta_26_a_direct_result_is_the_answer() {
    let model = model(&[("c1", "look")]);
    let run = run(&model, [direct("look", json!({"sky": "blue"}))]).await;
    assert_eq!(model.calls(), 1);
    let response = run.response();
    assert_eq!(response.finish().reason, FinishReason::ReturnDirect);
    assert_eq!(response.text(), r#"{"sky":"blue"}"#);
    assert_eq!(
        transcript_lines(response.transcript()),
        ["user: go", "call c1 look {}", r#"result c1: {"sky":"blue"}"#, r#"assistant: {"sky":"blue"}"#]
    );
}

/// TA-27 with the call suppressed: the output is exactly the tool's data.
#[tokio::test]
async fn ta_27_only_the_direct_result_comes_out() {
    let client = client(&model(&[("c1", "look")]), streaming(ToolCallStreaming::FinalAnswerOnly));
    let client = client.tool(direct("look", "sunny")).build().unwrap();
    let run = read(client.prompt().user("go").stream()).await;
    assert_eq!(run.lines(), ["2.0 + text", "2.0 \"sunny\"", "2.0 -", "completed 2 ReturnDirect"]);
}

/// TM-16, results: all results are shown, one text block each, in call order.
#[tokio::test]
async fn tm_16_direct_results_get_one_block_each() {
    let model = model(&[("c1", "look"), ("c2", "tell"), ("c3", "look")]);
    let run = run(&model, [direct("look", "sunny"), direct("tell", "told")]).await;
    let texts: Vec<_> = run.response().blocks().map(|(_, block)| block.as_text().unwrap()).collect();
    assert_eq!(texts, ["sunny", "\n\ntold", "\n\nsunny"], "each begins a paragraph");
    assert_eq!(model.calls(), 1);
}

/// The live text, the response and the stored text are equal, with separated results.
#[tokio::test]
async fn d15_direct_results_are_separated_live_and_in_transcript() {
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
        for mode in [ToolCallStreaming::TextOnly, ToolCallStreaming::FinalAnswerOnly, ToolCallStreaming::All]
        {
            let ledger = Ledger::default();
            let client = client(&model(&[("c1", "a"), ("c2", "b")]), streaming(mode))
                .tool(direct("a", first.clone()))
                .tool(direct("b", second.clone()))
                .advisor(ledger.clone())
                .build()
                .unwrap();
            let run = read(client.prompt().user("go").stream()).await;
            assert_eq!(run.text(), reads, "live, {mode:?}");
            assert_eq!(run.response().text(), reads, "{mode:?}");
            assert_eq!(ledger.transcript().last().unwrap().text(), reads, "{mode:?}");
            assert_eq!(ledger.transcript(), *run.response().transcript());
        }
    }
}

/// TM-17: a turn continues after a batch of which only some tools are direct.
#[tokio::test]
async fn tm_17_a_mixed_batch_goes_on() {
    let model = model(&[("c1", "look"), ("c2", "tell")]);
    let run = run(&model, [direct("look", "sunny"), tool("tell", "told")]).await;
    assert_eq!((model.calls(), run.response().text().as_str()), (2, "Done."));
    assert_eq!(transcript_lines(&model.prompts()[1].messages)[3..], ["result c1: sunny", "result c2: told"]);
}

/// A direct tool that fails is no answer: the model reads the error.
#[tokio::test]
async fn a_direct_tool_that_fails_goes_on() {
    let failing = FnTool::new(definition("look").return_direct(), |_: Value| async {
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

/// TM-37, results: a tool that answers nothing is accepted, and nothing empty is remembered.
#[tokio::test]
async fn tm_37_an_empty_result_is_accepted() {
    for empty in [ToolOutput::default(), ToolOutput::from(""), ToolOutput::from(Vec::new())] {
        let model_asked = model(&[("c1", "look")]);
        let run_on = run(&model_asked, [tool("look", empty.clone())]).await;
        assert_eq!(run_on.response().text(), "Done.");
        assert_eq!(transcript_lines(&model_asked.prompts()[1].messages)[2], "result c1: ");

        let direct_run = run(&model(&[("c1", "look")]), [direct("look", empty)]).await;
        assert_eq!(direct_run.response().finish().reason, FinishReason::ReturnDirect);
    }
}

/// TA-31, TA-36: usage of all rounds is summed, also when a direct result ends the turn.
#[tokio::test]
async fn ta_31_direct_result_carries_turn_usage() {
    let model = ScriptedModel::new([
        Answer::new().call("c1", "tell", "{}").usage(10, 20).finish(FinishReason::ToolCalls),
        Answer::new().call("c2", "look", "{}").usage(1, 2).finish(FinishReason::ToolCalls),
    ]);
    let run = run(&model, [direct("look", "sunny"), tool("tell", "told")]).await;
    assert_eq!(run.response().usage(), Some(&Usage::new(11, 22)));
    assert_eq!(run.response().text(), "sunny");
    assert_eq!(run.response().round(), 3, "the answer is a round of its own");
}

/// The results and then the answer are recorded, in this order.
#[tokio::test]
async fn direct_result_is_recorded_as_result_and_answer() {
    let ledger = Ledger::default();
    let client = client(&model(&[("c1", "look")]), ToolCallAdvisor::new());
    let client = client.advisor(ledger.clone()).tool(direct("look", "sunny")).build().unwrap();
    let response = client.prompt().user("go").call().await.unwrap();
    assert_eq!(ledger.steps(), ["answer", "results", "end"]);
    assert_eq!(ledger.transcript(), *response.transcript());
    assert_valid(&ledger.transcript());
}
