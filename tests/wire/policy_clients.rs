//! Turns behind policies, with a tool loop, written for clients: every encoder keeps the rules of its protocol, shows
//! denials as text, and shows neither a denied call nor a replaced word.

use advisor_chain::stream_policy::LetterCase;
use advisor_sse::Frames;
use advisor_tests::prelude::*;
use advisor_tests::tools::definition;

use crate::table::{encode, protocols};

/// The only word that clients see of a denied call.
const DENIED: &str = "[denied]";
/// The name of the denied tool.
const SECRET_TOOL: &str = "wipe";

/// Runs a turn over these answers. Calls of one tool are denied, and one name is replaced.
async fn play(answers: Vec<Answer>) -> Vec<Result<Chunk>> {
    let judge = BlockPolicy::new(|pending: PendingBlock| async move {
        let is_secret = pending.call().is_some_and(|call| call.name == SECRET_TOOL);
        Ok(if is_secret { Verdict::Replace(vec![Block::text(DENIED)]) } else { Verdict::Allow })
    });
    let tool = |name| FnTool::new(definition(name), |_: Value| async { Ok("done") });
    let client = ChatClient::builder(ScriptedModel::new(answers))
        .advisor(ToolCallAdvisor::builder().streaming(ToolCallStreaming::All).build().unwrap())
        .advisor(ReplaceText::for_words([("Mallory", "[name]")], LetterCase::Ignore))
        .advisor(judge)
        .tool(tool("look"))
        .tool(tool(SECRET_TOOL))
        .tool(ClientSideTool::new(definition("ask_user")))
        .build()
        .unwrap();
    client.prompt().user("Go on.").stream().collect().await
}

fn introduction() -> Answer {
    Answer::new().reasoning("Mal").reasoning("lory may wait.\n\n").text("I ask Mal").text("lory. ")
}

fn calls(answer: Answer, names: &[&str]) -> Answer {
    let ids = (1..).map(|number| format!("c{number}"));
    names.iter().zip(ids).fold(answer, |answer, (name, id)| answer.call(&id, name, "{}"))
}

/// The answers of turns in which a call is denied, with a name.
fn turns() -> Vec<(&'static str, Vec<Answer>)> {
    let all = |names: &[&str]| calls(introduction(), names).finish(FinishReason::ToolCalls).done();
    let last = || Answer::from_text("Mallory is asked.");
    let cut = calls(introduction(), &[SECRET_TOOL, "look"]);
    let cut = cut.delta(Delta::from(DeltaKind::BlockEnd).with_block(0)).text("And");
    let broken = Error::new(ErrorKind::Connection, "the connection broke");
    vec![
        ("one of two", vec![all(&["look", SECRET_TOOL]), last()]),
        ("the first of two", vec![all(&[SECRET_TOOL, "look"]), last()]),
        ("all calls", vec![all(&[SECRET_TOOL, SECRET_TOOL])]),
        ("beside a call for the client", vec![all(&["ask_user", SECRET_TOOL])]),
        ("in two rounds", vec![all(&["look", SECRET_TOOL]), all(&[SECRET_TOOL])]),
        ("before an error", vec![cut.error(broken)]),
    ]
}

#[tokio::test]
async fn turns_behind_policies_are_written_for_every_client() {
    for (name, answers) in turns() {
        let turn = play(answers).await;
        for (protocol, encoder, check) in protocols() {
            let stream = encode(encoder(), Frames::new(), &turn);
            assert_eq!(check(&stream, &turn), Ok(()), "{name} in {protocol}:\n{stream}");
            assert!(stream.contains(DENIED) && stream.contains("[name]"), "{name} in {protocol}:\n{stream}");
            for hidden in ["Mal", "lory", SECRET_TOOL] {
                assert!(!stream.contains(hidden), "{hidden}, {name} in {protocol}:\n{stream}");
            }
        }
    }
}
