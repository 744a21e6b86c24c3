//! Tests of law T5, on tools that must not run twice: the starts that the loop records, and the calls that it
//! does not run.

use advisor_chain::Turn;
use advisor_chain::tools::OUTCOME_UNKNOWN;
use advisor_tests::prelude::*;

use crate::tool_loop::support::*;

fn strict(name: &str) -> ToolDefinition {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    ToolDefinition::new(name, "A tool of a test.", schema)
}

fn once(name: &str) -> ToolDefinition {
    ToolDefinition { effect: Some(Effect::AtMostOnce), ..strict(name) }
}

/// A tool that journals `ran` and its key.
fn journalling(definition: ToolDefinition, journal: &Journal) -> FnTool {
    let journal = journal.clone();
    FnTool::with_invocation(definition, move |invocation: ToolInvocation| {
        journal.record(format!("ran {} {}", invocation.call.id, invocation.key));
        async { Ok("done".into()) }
    })
}

/// The starts that were announced, in one word per call: its id and its key without the turn.
fn announced(ledger: &Ledger) -> Vec<String> {
    let starts = ledger.records().into_iter().filter_map(|record| match record.step {
        Step::Started(starts) => {
            assert_eq!(record.messages, []);
            assert!(starts.iter().all(|start| start.key.round == record.round));
            Some(starts)
        }
        _ => None,
    });
    let word = |start: &CallStart| format!("{}={}/{}", start.call_id, start.key.round, start.key.position);
    starts.map(|starts| starts.iter().map(word).collect::<Vec<_>>().join(" ")).collect()
}

fn ran(journal: &Journal) -> Vec<String> {
    journal.labels().into_iter().filter_map(|label| label.strip_prefix("ran ").map(String::from)).collect()
}

fn results(run: &Run) -> Vec<String> {
    transcript_lines(&run.response().transcript)
        .into_iter()
        .filter_map(|line| line.strip_prefix("result ").or(line.strip_prefix("error ")).map(String::from))
        .collect()
}

#[tokio::test]
async fn law_t5_starts_are_announced_before_any_tool_runs() {
    for exclusive in [false, true] {
        let stages = Stages::default();
        let ledger = Ledger::at(&stages);
        let model = ScriptedModel::new([
            Answer::from_calls([
                ("a", "look", "{}"),
                ("b", "charge", r#"{"n":1}"#),
                ("c", "charge", r#"{"n":"one"}"#),
                ("d", "charge", "{"),
                ("e", "nonesuch", "{}"),
                ("f", "send", "{}"),
                ("g", "send", "{}"),
            ]),
            Answer::from_calls([("a", "charge", "{}")]),
            Answer::from_text("Done."),
        ]);
        let charge =
            if exclusive { ToolDefinition { exclusive: true, ..once("charge") } } else { once("charge") };
        let limits =
            ToolLimits { tools: BTreeMap::from([("send".into(), Some(1))]), ..ToolLimits::default() };
        let limits = ToolLimits { on_limit: OnLimit::TellModel, ..limits };
        let client = client(&model, ToolCallAdvisor::builder().limits(limits).build().unwrap())
            .advisor_in(Phase::Turn, ledger.clone())
            .tool(journalling(strict("look"), &stages.journal))
            .tool(journalling(charge, &stages.journal))
            .tool(journalling(once("send"), &stages.journal))
            .build()
            .unwrap();
        let run = read(client.prompt().user("go").turn(TurnId::new("t").unwrap()).stream()).await;
        assert_valid(&run.response().transcript);
        assert_eq!(
            announced(&ledger),
            ["b=1/1 f=1/5", "a=2/0"],
            "what is denied, unknown or has bad arguments never starts"
        );
        assert_eq!(
            ledger.steps(),
            ["answer", "started", "results", "answer", "started", "results", "end"],
            "one announcement a round"
        );
        let ran = ran(&stages.journal);
        let expected = ["a t/1/0", "b t/1/1", "f t/1/5", "a t/2/0"];
        assert_eq!(ran, expected, "each tool gets the key that was announced");
        let labels = stages.journal.labels();
        let at = |wanted: &str| labels.iter().position(|label| label == wanted).unwrap();
        assert!(at("record answer 1") < at("record started 1"));
        assert!(at("record started 1") < at("ran a t/1/0"), "before any tool of the round: {labels:?}");
    }
}

#[tokio::test]
async fn law_o5_t5_no_tool_runs_if_start_is_unrecorded() {
    for mode in MODES {
        let stages = Stages::failing_at("record started 1");
        let ledger = Ledger::at(&stages);
        let model = ScriptedModel::new([
            Answer::from_calls([("a", "look", "{}"), ("b", "charge", "{}")]),
            Answer::from_text("never"),
        ]);
        let loop_ = ToolCallAdvisor::builder().streaming(mode).hooks(Watch(stages.clone())).build().unwrap();
        let run = go(client(&model, loop_)
            .advisor_in(Phase::Turn, ledger.clone())
            .tool(journalling(strict("look"), &stages.journal))
            .tool(journalling(once("charge"), &stages.journal)))
        .await;
        assert_eq!(run.error().to_string(), stages.failure().to_string());
        assert_eq!((ran(&stages.journal).len(), model.calls()), (0, 1));
        assert_eq!(ledger.steps()[..2], ["answer", "results"]);
        let not_started = "not started: an error ended the turn";
        let told = transcript_lines(ledger.transcript().iter());
        assert_eq!(told[3..], [format!("error a: {not_started}"), format!("error b: {not_started}")]);
        assert_valid(&ledger.transcript());
    }
}

/// Knows calls that an earlier run of the turn has started. Reports them at once, or when their starts are
/// recorded.
struct Remembers {
    started: Vec<CallKey>,
    repeated: Option<u32>,
    at_announcement: bool,
}

/// The recorder reports to the turn. It holds a weak reference, so that it does not keep the turn alive.
struct Recorder(std::sync::Weak<Turn>, Vec<CallKey>);

#[async_trait]
impl TurnRecorder for Recorder {
    async fn record(&self, record: &Record) -> Result<()> {
        if let (Step::Started(starts), Some(turn)) = (&record.step, self.0.upgrade()) {
            let known = starts.iter().filter(|start| self.1.contains(&start.key));
            turn.facts(|facts| facts.started.extend(known.map(|start| start.key.clone())));
        }
        Ok(())
    }
}

impl Remembers {
    fn advisor(self) -> impl StreamAdvisor {
        let known = Arc::new(self);
        from_fn("remembers", move |request: ChatRequest, next: AdvisorChain| {
            let known = Arc::clone(&known);
            async move {
                let started = known.started.clone();
                request.turn.facts(|facts| facts.repeated.extend(known.repeated));
                if known.at_announcement {
                    request.turn.add_recorder(Arc::new(Recorder(Arc::downgrade(&request.turn), started)));
                } else {
                    request.turn.facts(|facts| facts.started.extend(started));
                }
                next.next_stream(request).await
            }
        })
        .with_placement(Placement::new(Phase::Turn))
    }
}

fn key(round: u32, position: u32) -> CallKey {
    CallKey::new(TurnId::new("t").unwrap(), round, position)
}

#[tokio::test]
async fn law_t5_previously_started_call_is_not_run_again() {
    for at_announcement in [false, true] {
        let (journal, ledger) = (Journal::new(), Ledger::default());
        let model = ScriptedModel::new([
            Answer::from_calls([("a", "charge", "{}"), ("b", "look", "{}"), ("c", "charge", "{}")]),
            Answer::from_text("Done."),
        ]);
        let remembers = Remembers { started: vec![key(1, 0)], repeated: None, at_announcement };
        let client = client(&model, streaming(ToolCallStreaming::All))
            .advisor_in(Phase::Turn, ledger.clone())
            .advisor(remembers.advisor())
            .tool(journalling(once("charge"), &journal))
            .tool(journalling(strict("look"), &journal))
            .build()
            .unwrap();
        let run = read(client.prompt().user("go").turn(TurnId::new("t").unwrap()).stream()).await;
        assert_eq!(ran(&journal), ["b t/1/1", "c t/1/2"]);
        let verify = format!("a: {VERIFY_BEFORE_RETRYING}");
        assert_eq!(results(&run), [verify.as_str(), "b: done", "c: done"]);
        assert_valid(&run.response().transcript);
        let shown = run.lines().iter().filter(|line| line.contains(VERIFY_BEFORE_RETRYING)).count();
        assert_eq!(shown, 1, "who watches tools is told, too: {:?}", run.lines());
        let announced = announced(&ledger);
        let expected = if at_announcement { "a=1/0 c=1/2" } else { "c=1/2" };
        assert_eq!(announced, [expected]);
    }
}

/// The table of `Effect`, for calls whose answer was given in an earlier run of the turn.
#[tokio::test]
async fn law_t5_repeated_round_runs_only_permitted_calls() {
    let journal = Journal::new();
    let model = ScriptedModel::new([
        Answer::from_calls([
            ("a", "silent", "{}"),
            ("b", "pure", "{}"),
            ("c", "idempotent", "{}"),
            ("d", "once", "{}"),
            ("e", "once", "{}"),
            ("f", "silent", "{"),
            ("g", "nonesuch", "{}"),
        ]),
        Answer::from_calls([("a", "silent", "{}")]),
        Answer::from_text("Done."),
    ]);
    let remembers = Remembers { started: vec![key(1, 3)], repeated: Some(1), at_announcement: false };
    let client = client(&model, ToolCallAdvisor::new())
        .advisor(remembers.advisor())
        .tool(journalling(strict("silent"), &journal))
        .tool(journalling(ToolDefinition { effect: Some(Effect::Pure), ..strict("pure") }, &journal))
        .tool(journalling(
            ToolDefinition { effect: Some(Effect::Idempotent), ..strict("idempotent") },
            &journal,
        ))
        .tool(journalling(once("once"), &journal))
        .build()
        .unwrap();
    let run = read(client.prompt().user("go").turn(TurnId::new("t").unwrap()).stream()).await;
    assert_eq!(ran(&journal), ["b t/1/1", "c t/1/2", "e t/1/4", "a t/2/0"], "under the same keys");
    let results = results(&run);
    assert_eq!(results[0], format!("a: {OUTCOME_UNKNOWN}"));
    assert_eq!(results[1..3], ["b: done", "c: done"]);
    assert_eq!(results[3], format!("d: {VERIFY_BEFORE_RETRYING}"));
    assert_eq!(results[4], "e: done");
    assert!(results[5].starts_with("f: not started") && results[6].starts_with("g: there is no tool"));
    assert_eq!(results[7], "a: done", "a new round is none that is repeated");
}

#[tokio::test]
async fn law_t5_answer_received_twice_starts_calls_once() {
    let journal = Journal::new();
    let kept: Arc<Mutex<Option<ChatResponse>>> = Arc::default();
    let model = ScriptedModel::new([Answer::from_calls([("a", "charge", "{}"), ("b", "look", "{}")])]);
    let passes = Arc::new(Mutex::new(0));
    let twice = from_fn("twice", move |request: ChatRequest, next: AdvisorChain| {
        let (kept, passes) = (Arc::clone(&kept), Arc::clone(&passes));
        async move {
            let pass = std::mem::replace(&mut *passes.lock().unwrap(), 1);
            if pass == 0 {
                let response = next.next_call(request).await?;
                *kept.lock().unwrap() = Some(response.clone());
                return Ok(ChunkStream::answer(response));
            }
            let again = kept.lock().unwrap().take();
            let done = || ChatResponse::new(7, Message::assistant("Done."), FinishReason::Stop);
            Ok(ChunkStream::answer(again.unwrap_or_else(done)))
        }
    })
    .with_placement(Placement::new(Phase::Round));
    let client = client(&model, ToolCallAdvisor::new())
        .advisor(twice)
        .tool(journalling(once("charge"), &journal))
        .tool(journalling(strict("look"), &journal))
        .build()
        .unwrap();
    let run = read(client.prompt().user("go").turn(TurnId::new("t").unwrap()).stream()).await;
    assert_eq!(ran(&journal), ["a t/1/0", "b t/1/1", "b t/1/1"]);
    assert_eq!(results(&run), ["a: done", "b: done", &format!("a: {VERIFY_BEFORE_RETRYING}"), "b: done"]);
}
