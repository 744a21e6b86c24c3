//! `OnlyTools`, `tools_fn` and `ToolSearch`: the tools of each round, and calls of others, which do not run.

use advisor_chain::advisors::{OnlyTools, ToolSearch};
use advisor_chain::tools::tools_fn;
use advisor_tests::prelude::*;

use crate::common_advisors::support::{Setting, says, tool};

/// A tool that returns its name.
fn named(name: &'static str) -> impl Tool {
    tool(name, move |_| async move { Ok(format!("{name} ran")) })
}

fn calls(name: &'static str) -> Answer {
    Answer::from_calls([("c1", name, "{}")])
}

fn offered(model: &ScriptedModel) -> Vec<Vec<String>> {
    model.prompts().into_iter().map(|prompt| prompt.tools).collect()
}

/// A call of a tool that is not allowed does not run, whichever advisor adds the tool.
#[tokio::test]
async fn law_t2_call_of_forbidden_tool_does_not_run() {
    for remembers in PLACES {
        let model = ScriptedModel::new([calls("look"), calls("added"), says("Done.", 10)]);
        let setting = Setting::new(&model, remembers, OnLimit::EndTurn);
        let adding = tools_fn("adding", |_: ChatRequest| async {
            Ok(ToolSet::new().with(named("added")).with(named("more")))
        });
        let client = setting.client.clone().advisor(adding).build().unwrap();
        let prompt =
            client.prompt().user("go").conversation("c").advisor(OnlyTools::new(["added", "absent"]));
        assert_eq!(prompt.call().await.unwrap().text(), "Done.");
        assert_eq!((setting.runs(), offered(&model)), (0, vec![vec!["added".to_owned()]; 3]), "{remembers}");
        let remembered = setting.remembered().await;
        assert!(remembered[2].starts_with("= there is no tool"), "{remembered:?}");
        assert_eq!(remembered[3..], ["(added)", "= added ran", "Done."], "{remembers}");
    }
}

/// Nor does a call of a repeated answer. Calls of tools that advisors add run again.
#[tokio::test]
async fn law_t2_repeated_call_runs_only_if_allowed() {
    for remembers in PLACES {
        let model = ScriptedModel::new([calls("added"), says("Done.", 10), says("No.", 10)]);
        let setting = Setting::new(&model, remembers, OnLimit::EndTurn);
        let runs = Arc::<Mutex<usize>>::default();
        let counted = Arc::clone(&runs);
        let added: Arc<dyn Tool> = Arc::new(tool("added", move |_| {
            *counted.lock().unwrap() += 1;
            async { Ok("a result".to_owned()) }
        }));
        let adding = tools_fn("adding", move |_: ChatRequest| {
            let added = Arc::clone(&added);
            async { Ok([added].into_iter().collect::<ToolSet>()) }
        });
        let client =
            setting.client.clone().advisor(adding).advisor(ResponseCache::default()).build().unwrap();
        for conversation in ["c", "d"] {
            let answer = client.prompt().user("go").conversation(conversation).call().await.unwrap();
            assert_eq!(answer.text(), "Done.", "{remembers}");
        }
        assert_eq!((*runs.lock().unwrap(), model.calls()), (2, 2), "{remembers}");
        // The request differs by its tools, so the answer is not repeated, and its call would not run.
        let prompt = client.prompt().user("go").conversation("e").advisor(OnlyTools::new(["look"]));
        assert_eq!(prompt.call().await.unwrap().text(), "No.", "{remembers}");
        assert_eq!((*runs.lock().unwrap(), model.calls()), (2, 3), "{remembers}");
    }
}

/// An advisor inside `OnlyTools` can neither add a tool nor answer with a call of one.
#[tokio::test]
async fn law_t2_call_of_an_advisor_inside_is_bound() {
    let model = ScriptedModel::new([says("Done.", 10)]);
    let setting = Setting::new(&model, PLACES[0], OnLimit::EndTurn);
    let is_first = Arc::new(Mutex::new(true));
    let answering = from_fn("answering", move |request: ChatRequest, next: AdvisorChain| {
        let is_first = std::mem::take(&mut *is_first.lock().unwrap());
        async move {
            if !is_first {
                return next.next_stream(request).await;
            }
            let calls = Message::assistant_blocks(vec![Block::from(ToolCall::new("c1", "look", "{}"))]);
            let request = request.with_tool(named("look"));
            Ok(request.answer(ChatResponse::new(request.round, calls, FinishReason::ToolCalls)))
        }
    });
    let answering = answering.with_placement(Placement::new(Phase::ModelCall));
    let client =
        setting.client.clone().advisor(OnlyTools::new(["other"])).advisor(answering).build().unwrap();
    client.prompt().user("go").conversation("c").call().await.unwrap();
    assert!(setting.remembered().await[2].starts_with("= there is no tool"));
    assert_eq!(setting.runs(), 0);
}

#[tokio::test]
async fn required_tool_must_be_allowed() {
    let model = ScriptedModel::from_fn(|_| says("Done.", 10));
    let setting = Setting::new(&model, PLACES[0], OnLimit::EndTurn);
    let client = setting.client.clone().build().unwrap();
    for (choice, allowed, is_refused) in [
        (ToolChoice::Tool("look".into()), "other", true),
        (ToolChoice::Required, "other", true),
        (ToolChoice::Required, "look", false),
        (ToolChoice::Auto, "other", false),
    ] {
        let options = ChatOptions { tool_choice: Some(choice.clone()), ..ChatOptions::default() };
        let prompt =
            client.prompt().user("go").conversation("d").options(options).advisor(OnlyTools::new([allowed]));
        let outcome = prompt.call().await.map_err(|error| error.kind()).map(drop);
        assert_eq!(outcome, if is_refused { Err(ErrorKind::Configuration) } else { Ok(()) }, "{choice:?}");
    }
}

/// Equal names and errors end the turn before the model is asked.
#[tokio::test]
async fn tools_that_cannot_be_added_end_the_turn() {
    let model = ScriptedModel::new([]);
    let setting = Setting::new(&model, PLACES[0], OnLimit::EndTurn);
    let equal = tools_fn("equal", |_: ChatRequest| async { Ok(ToolSet::new().with(named("look"))) });
    let client = setting.client.clone().advisor(equal).build().unwrap();
    let refused = client.prompt().user("go").conversation("d").call().await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Configuration);
    assert!(refused.to_string().contains("`look`"), "{refused}");
    let failing = tools_fn("failing", |_: ChatRequest| async {
        Err(Error::new(ErrorKind::Connection, "the registry is down"))
    });
    let client = setting.client.clone().advisor(failing).build().unwrap();
    assert_eq!(
        client.prompt().user("go").conversation("d").call().await.unwrap_err().kind(),
        ErrorKind::Connection
    );
    assert_eq!(model.calls(), 0);
}

/// A found tool is offered from then on: in this turn, and in later ones of a restarted process.
#[tokio::test]
async fn found_tools_are_offered_in_the_conversation() {
    let search = || Answer::from_calls([("c1", "search_tools", r#"{"query":"mails, please: sendMail"}"#)]);
    for remembers in PLACES {
        let model = ScriptedModel::new([calls("send_mail"), search(), calls("send_mail"), says("Done.", 10)]);
        let setting = Setting::new(&model, remembers, OnLimit::EndTurn);
        let tools = ["read_file", "send_mail", "list_rooms"]
            .map(named)
            .into_iter()
            .fold(ToolSet::new(), ToolSet::with);
        let searching = || ToolSearch::new(&tools).unwrap();
        let client = setting.client.clone().advisor(searching()).build().unwrap();
        client.prompt().user("go").conversation("c").call().await.unwrap();
        let first = vec!["look", "search_tools"];
        let found = [&*first, &["send_mail"]].concat();
        // A tool that was called without a search is offered, too, after its call was refused.
        assert_eq!(offered(&model), [first, found.clone(), found.clone(), found.clone()], "{remembers}");
        let remembered = setting.remembered().await;
        assert!(remembered[2].starts_with("= there is no tool"), "{remembered:?}");
        assert_eq!(remembered[4], "= These tools can be called now:\nsend_mail: A tool.");
        assert_eq!(remembered[6], "= send_mail ran");

        let again = ScriptedModel::new([says("Yes.", 10)]);
        let client = setting.client.clone().model(again.clone()).advisor(searching()).build().unwrap();
        client.prompt().user("And?").conversation("c").call().await.unwrap();
        // A turn-phase memory gives the loop the conversation, so both places see it.
        assert_eq!(offered(&again), [found], "{remembers}");
    }
}
