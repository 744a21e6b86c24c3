//! Tests of the end that `finalize` receives, on exits that are neither a drop nor a failing stage.

use advisor_chain::tools::LoopEnd;
use advisor_tests::prelude::*;

use crate::tool_loop::support::*;

/// T4: `finalize` says how the loop ended, once, on every exit that is not an error or a drop.
#[tokio::test]
async fn law_t4_finalize_says_how_the_loop_ended() {
    let call = || Answer::from_calls([("c1", "look", "{}")]);
    let exits: Vec<(Vec<Answer>, &str, FinishReason, u32, u32)> = vec![
        (vec![Answer::from_text("Hi.")], "look", FinishReason::Stop, 1, 0),
        (vec![Answer::new().done()], "look", FinishReason::Empty, 1, 0),
        (vec![call(), Answer::from_text("Hi.")], "look", FinishReason::Stop, 2, 1),
        (vec![call()], "direct", FinishReason::ReturnDirect, 1, 1),
        (vec![call()], "by the caller", FinishReason::ToolCalls, 1, 0),
        (vec![call(), call(), call()], "look", FinishReason::Limit(Limit::Rounds(3)), 3, 2),
        (
            vec![Answer::new().call("c1", "look", "{}").finish(FinishReason::Length)],
            "look",
            FinishReason::Length,
            1,
            0,
        ),
    ];
    for (answers, kind, reason, rounds, calls) in exits {
        let stages = Stages::default();
        let limits = ToolLimits { rounds: Some(3), ..ToolLimits::default() };
        let advisor = ToolCallAdvisor::builder().hooks(Watch(stages.clone())).limits(limits).build().unwrap();
        let definition = match kind {
            "direct" => ToolDefinition { return_direct: true, ..definition("look") },
            "by the caller" => ToolDefinition { client_side: true, ..definition("look") },
            _ => definition("look"),
        };
        let look = FnTool::new(definition, |_: Value| async { Ok("sunny") });
        let response = response_of(client(&ScriptedModel::new(answers), advisor).tool(look)).await;
        let outcomes = stages.outcomes();
        assert_eq!(outcomes.len(), 1, "{reason:?}");
        assert_eq!(outcomes[0].end, LoopEnd::Finished(reason.clone()));
        assert_eq!((outcomes[0].rounds, outcomes[0].calls), (rounds, calls), "{reason:?}");
        assert_eq!(outcomes[0].transcript, response.transcript, "{reason:?}");
    }
}

/// A failing model before anything was sent is an exit like every other.
#[tokio::test]
async fn law_t4_finalize_runs_when_the_model_refuses() {
    let stages = Stages::default();
    let refused = Answer::refused(Error::new(ErrorKind::Authentication, "no key"));
    let model = ScriptedModel::new([refused]);
    let client = client(&model, ToolCallAdvisor::builder().hooks(Watch(stages.clone())).build().unwrap())
        .build()
        .unwrap();
    let error = client.prompt().user("go").call().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Authentication);
    assert!(!error.emitted());
    assert_eq!(stages.ends(), [LoopEnd::Failed(ErrorKind::Authentication)]);
}
