//! Law T3 beyond the loop's own counts: equal calls, limits that advisors set, a last answer without tools, and turns
//! inside tools.

use advisor_chain::Advisor;
use advisor_chain::tools::{PolicyAction, ToolPolicy};
use advisor_tests::prelude::*;
use tokio::time::{Instant, sleep};

use crate::tool_loop::support::*;

/// A model that calls `look` with these arguments, one after the other, and then answers.
fn looks(arguments: &[&'static str]) -> ScriptedModel {
    let calls = arguments
        .iter()
        .enumerate()
        .map(|(place, arguments)| Answer::from_calls([(format!("c{place}").as_str(), "look", *arguments)]));
    ScriptedModel::new(calls.chain([Answer::from_text("Done.")]))
}

#[tokio::test]
async fn law_t3_equal_calls_end_the_turn() {
    let again = [r#"{"a":1,"b":2}"#, r#"{ "b": 2, "a": 1 }"#, r#"{"a":1,"b":2}"#, r#"{"b":2,"a":1}"#];
    let limits = ToolLimits { same_calls: Some(2), ..ToolLimits::default() };
    let (model, (look, given)) = (looks(&again), invoked("look"));
    let run =
        read(client(&model, limited(limits)).tool(look).build().unwrap().prompt().user("go").stream()).await;
    assert_eq!(limit_of(&run), Limit::SameCall { tool: "look".into(), limit: 2 });
    assert_eq!(given.lock().unwrap().len(), 2);
    assert_valid(&run.response().transcript);
    let text = "I stopped here: the limit of 2 equal calls of the tool `look` in a row without another result was reached.";
    assert_eq!(run.response().text(), text);
}

/// The third call does not run, and the model does something else.
#[tokio::test]
async fn model_is_told_before_equal_calls_end_the_turn() {
    let limits = ToolLimits { same_calls: Some(2), ..ToolLimits::default() };
    let (model, (look, given)) = (looks(&["{}", "{}", "{}", r#"{"a":1}"#]), invoked("look"));
    let response = response_of(client(&model, limited(limits)).tool(look)).await;
    assert_eq!((response.text().as_str(), given.lock().unwrap().len()), ("Done.", 3));
    let told = transcript_lines(&response.transcript).into_iter().find(|line| line.starts_with("error c2"));
    let text = "error c2: not started: the limit of 2 equal calls of the tool `look` in a row without another result was \
                reached; go on in another way, or answer";
    assert_eq!(told.unwrap(), text);
}

/// A job that is asked for its status is done at the twentieth time.
#[tokio::test]
async fn polled_tool_whose_result_changes_is_not_stopped() {
    let asked = AtomicUsize::new(0);
    let status = FnTool::new(definition("look"), move |_: Value| {
        let percent = asked.fetch_add(1, Ordering::Relaxed);
        async move { Ok(format!("{percent} of 20")) }
    });
    let model = looks(&["{}"; 20]);
    let client = client(&model, limited(ToolLimits::default())).tool(status).build().unwrap();
    assert_eq!(client.prompt().user("go").call().await.unwrap().text(), "Done.");
    assert_eq!(model.calls(), 21);
}

/// An advisor inside the loop that allows this many rounds.
struct Allows(u32);

impl AdvisorInfo for Allows {
    fn placement(&self) -> Placement {
        Placement::new(Phase::Round)
    }
}

#[async_trait]
impl Advisor for Allows {
    type State = Arc<advisor_chain::Turn>;

    async fn before(&self, request: ChatRequest) -> Result<(ChatRequest, Self::State)> {
        let turn = Arc::clone(&request.turn);
        Ok((request, turn))
    }

    async fn after(&self, turn: Self::State, response: &ChatResponse) -> Result<()> {
        if response.round() >= self.0 {
            turn.request_end(budget());
        }
        Ok(())
    }
}

fn budget() -> Limit {
    Limit::Other("the budget of 10 tokens".into())
}

#[tokio::test]
async fn law_t3_limit_of_an_advisor_ends_the_turn() {
    let (model, ledger) = (looks(&["{}"; 4]), Ledger::default());
    let (look, given) = invoked("look");
    let client = client(&model, limited(ToolLimits::default())).advisor(Allows(2)).advisor(ledger.clone());
    let run = read(client.tool(look).build().unwrap().prompt().user("go").stream()).await;
    assert_eq!(limit_of(&run), budget());
    assert_eq!((model.calls(), given.lock().unwrap().len()), (2, 1), "its last call does not run");
    assert_valid(&run.response().transcript);
    assert_eq!(ledger.transcript(), run.response().transcript);
    assert_eq!(run.response().text(), "I stopped here: the budget of 10 tokens was reached.");
}

/// Returns limits that end with an answer of the model.
fn answering() -> ToolLimits {
    ToolLimits { on_limit: OnLimit::AnswerWithoutTools, ..ToolLimits::default() }
}

/// Each limit, the number of requests, and the number of runs of `look`.
#[tokio::test]
async fn law_t3_last_answer_is_given_without_tools() {
    for (limits, allowed, limit, requests, runs) in [
        (ToolLimits { rounds: Some(3), ..answering() }, 9, Limit::Rounds(3), 3, 2),
        (ToolLimits { calls: Some(2), ..answering() }, 9, Limit::Calls(2), 4, 2),
        (
            ToolLimits { same_calls: Some(1), ..answering() },
            9,
            Limit::SameCall { tool: "look".into(), limit: 1 },
            4,
            1,
        ),
        (answering(), 2, budget(), 3, 1),
    ] {
        let model = ScriptedModel::from_fn(|prompt| match prompt.options.tool_choice {
            Some(ToolChoice::None) => Answer::from_text("What I know so far."),
            _ => Answer::from_calls([(format!("r{}", prompt.round).as_str(), "look", "{}")]),
        });
        let (look, given) = invoked("look");
        let ledger = Ledger::default();
        let client = client(&model, limited(limits)).advisor(Allows(allowed)).advisor(ledger.clone());
        let run = read(client.tool(look).build().unwrap().prompt().user("go").stream()).await;
        assert_eq!(limit_of(&run), limit);
        assert_eq!(run.response().text(), "What I know so far.", "{limit:?}");
        assert_eq!((model.calls(), given.lock().unwrap().len()), (requests, runs), "{limit:?}");
        assert_eq!(run.response().finish.as_written.as_deref(), None);
        assert_valid(&run.response().transcript);
        assert_eq!(ledger.transcript(), run.response().transcript);
        let tools: Vec<_> = model.prompts().iter().map(|prompt| prompt.tools.len()).collect();
        assert_eq!(tools, vec![1; requests], "the tools stay described");
    }
}

/// Its own end says more than the limit: a reader that goes on has to know that a piece is missing.
#[tokio::test]
async fn last_answer_that_was_cut_off_ends_as_cut_off() {
    let model = ScriptedModel::from_fn(|prompt| match prompt.options.tool_choice {
        Some(ToolChoice::None) => Answer::new().text("What I").finish(FinishReason::Length),
        _ => Answer::from_calls([(format!("r{}", prompt.round).as_str(), "look", "{}")]),
    });
    let client =
        client(&model, limited(ToolLimits { rounds: Some(3), ..answering() })).tool(tool("look", "sunny"));
    let run = read(client.build().unwrap().prompt().user("go").stream()).await;
    assert_eq!(run.response().finish.reason, FinishReason::Length);
}

/// A model that calls a tool nevertheless gets no further round.
#[tokio::test]
async fn law_t3_calls_of_a_last_answer_do_not_run() {
    let (model, (look, given)) = (looks(&["{}"; 5]), invoked("look"));
    let run = go(client(&model, limited(answering())).advisor(Allows(2)).tool(look)).await;
    assert_eq!((limit_of(&run), model.calls(), given.lock().unwrap().len()), (budget(), 3, 1));
    assert_valid(&run.response().transcript);
}

#[tokio::test]
async fn law_t3_answer_in_time_is_not_asked_for_late() {
    let limits = ToolLimits { turn_timeout: Some(Duration::ZERO), ..answering() };
    let run = go(client(&looks(&["{}"]), limited(limits)).tool(tool("look", "sunny"))).await;
    assert_eq!(limit_of(&run), Limit::Time(0));
}

/// A tool that asks this client, inside the turn of its call.
fn asks(inner: ChatClient) -> FnTool {
    FnTool::with_invocation(definition("ask"), move |call: ToolInvocation| {
        let inner = inner.clone();
        async move {
            let answer = inner.prompt().inside(&call).user("And?").call().await?;
            Ok(ToolOutput::from(format!("{:?}: {}", answer.finish.reason, answer.text())))
        }
    })
}

fn ask_once() -> ScriptedModel {
    ScriptedModel::new([Answer::from_calls([("o1", "ask", "{}")]), Answer::from_text("So.")])
}

/// The inner turn gets the rounds and calls that are left outside, if its own limits allow more.
#[tokio::test]
async fn law_t3_turn_inside_a_tool_gets_what_is_left() {
    for (limits, inner_rounds, inner_runs) in [
        (ToolLimits { rounds: Some(3), ..ToolLimits::default() }, 2, 1),
        (ToolLimits { calls: Some(3), ..ToolLimits::default() }, 3, 2),
        (ToolLimits { rounds: Some(20), ..ToolLimits::default() }, 5, 4),
    ] {
        let inner_model = looks(&["{}", "{\"a\":1}", "{\"a\":2}", "{\"a\":3}"]);
        let (look, given) = invoked("look");
        let inner = client(&inner_model, limited(ToolLimits::default())).tool(look).build().unwrap();
        let outer = client(&ask_once(), limited(limits)).tool(asks(inner)).build().unwrap();
        let response = outer.prompt().user("go").call().await.unwrap();
        assert_eq!(response.text(), "So.");
        assert_eq!((inner_model.calls(), given.lock().unwrap().len()), (inner_rounds, inner_runs));
        assert_valid(&response.transcript);
    }
}

/// The inner turn has its own deadline, so it ends in time also where the outer loop cannot drop it.
#[tokio::test(start_paused = true)]
async fn law_t3_nested_turn_ends_with_its_outer_turn() {
    let slow = FnTool::new(definition("look"), |_: Value| async {
        sleep(Duration::from_secs(60)).await;
        Ok("late")
    });
    let inner = client(&looks(&["{}"]), limited(ToolLimits::default())).tool(slow).build().unwrap();
    let (ended, end) = tokio::sync::oneshot::channel();
    let ended = Arc::new(Mutex::new(Some(ended)));
    let ask = FnTool::with_invocation(definition("ask"), move |call: ToolInvocation| {
        let (prompt, ended) = (inner.prompt().inside(&call).user("And?"), Arc::clone(&ended));
        async move {
            let running = tokio::spawn(async move {
                let reason = prompt.call().await.unwrap().finish.reason.clone();
                let ended = ended.lock().unwrap().take().unwrap();
                ended.send((reason, Instant::now())).unwrap();
            });
            running.await.unwrap();
            Ok(ToolOutput::from("asked"))
        }
    });
    let limits = ToolLimits { turn_timeout: Some(Duration::from_secs(5)), ..ToolLimits::default() };
    let outer = client(&ask_once(), limited(limits)).tool(ask).build().unwrap();
    let begun = Instant::now();
    let run = read(outer.prompt().user("go").stream()).await;
    assert!(matches!(limit_of(&run), Limit::Time(5000)));
    let (reason, at) = in_time(end).await.unwrap();
    assert_eq!((reason, at - begun), (FinishReason::Limit(Limit::Time(5000)), Duration::from_secs(5)));
}

/// Memory stores a last answer without tools as any other answer, with one end, at both places.
#[tokio::test]
async fn law_m4_last_answer_without_tools_is_stored_once() {
    let mut logs = Vec::new();
    for place in PLACES {
        let model = ScriptedModel::from_fn(|prompt| match prompt.options.tool_choice {
            Some(ToolChoice::None) => Answer::from_text("What I know so far."),
            _ => Answer::from_calls([("c", "look", "{}")]),
        });
        let store = Arc::new(InMemoryStore::new());
        let client = client(&model, limited(ToolLimits { rounds: Some(2), ..answering() }))
            .tool(tool("look", "sunny"));
        let memory = ChatMemoryAdvisor::new(Arc::clone(&store));
        let client = client.advisor_in(place, memory).build().unwrap();
        let response = client.prompt().user("go").conversation("c").call().await.unwrap();
        assert_eq!(response.finish.reason, FinishReason::Limit(Limit::Rounds(2)));
        let key = ConversationKey::new("c").unwrap();
        let log = store.load(&key, ReadRange::All).await.unwrap().entries;
        logs.push(log.into_iter().map(|entry| entry.kind).collect::<Vec<_>>());
    }
    assert_eq!(logs[0], logs[1]);
    let ends = logs[0].iter().filter(|kind| matches!(kind, EntryKind::TurnEnded(_)));
    assert_eq!(ends.count(), 1);
}

/// A denied call counts, so a model that repeats it under other arguments reaches a limit.
#[tokio::test]
async fn law_t3_forbidden_calls_count() {
    let mut limits = ToolLimits { calls: Some(3), ..ToolLimits::default() };
    limits.rounds = None;
    let model = ScriptedModel::from_fn(|prompt| {
        let arguments = format!(r#"{{"n":{}}}"#, prompt.round);
        Answer::from_calls([("c", "look", arguments.as_str())])
    });
    let policy = ToolPolicy { otherwise: PolicyAction::Deny("no".into()), ..ToolPolicy::default() };
    let advisor = ToolCallAdvisor::builder().limits(limits).policy(policy).build().unwrap();
    let run = go(client(&model, advisor).tool(tool("look", "sunny"))).await;
    assert_eq!((limit_of(&run), model.calls()), (Limit::Calls(3), 4));
}

/// A tool that asks its own chain does so only this deep.
#[tokio::test]
async fn law_t3_depth_of_nested_turns_is_limited() {
    let asked = AtomicUsize::new(0);
    let model = ScriptedModel::from_fn(move |prompt| match prompt.messages.last().unwrap().text().as_str() {
        // Without the limit, the turns would nest until the stack overflows.
        _ if asked.fetch_add(1, Ordering::SeqCst) == 8 => Answer::from_text("too deep"),
        text if text.contains("And?") || text == "go" => Answer::from_calls([("o1", "ask", "{}")]),
        text => Answer::from_text(format!("[{text}]")),
    });
    let own_client = Arc::new(std::sync::OnceLock::<ChatClient>::new());
    let own = Arc::clone(&own_client);
    let ask = FnTool::with_invocation(definition("ask"), move |call: ToolInvocation| {
        let own = own.get().unwrap().clone();
        async move {
            let answer = own.prompt().inside(&call).user("And?").call().await?;
            Ok(ToolOutput::from(answer.text()))
        }
    });
    let limits = ToolLimits { depth: 2, ..ToolLimits::default() };
    let built = client(&model, limited(limits)).tool(ask).build().unwrap();
    own_client.set(built.clone()).unwrap();
    let response = built.prompt().user("go").call().await.unwrap();
    let text = response.text();
    assert!(text.starts_with("[[[") && text.contains("nested more than 2 deep"), "{text}");
    assert_eq!(model.calls(), 6, "three turns of two rounds each");
}
