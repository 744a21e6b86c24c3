//! Tests for any answers and any mode: the laws of the stream hold, a call is a folded stream, and the
//! transcript is valid.

use advisor_chain::messages::ToolCallDelta;
use advisor_tests::prelude::*;
use proptest::prelude::{Just, ProptestConfig, Strategy, any, prop_oneof};
use proptest::{collection, option, proptest, sample};
use tokio::runtime::Builder;

use crate::tool_loop::support::*;

/// One piece of a model's answer.
#[derive(Clone, Debug)]
enum Piece {
    Text(&'static str),
    Reasoning(&'static str),
    Call { tool: &'static str, arguments: &'static str },
    Usage(u64),
}

/// The end of an answer.
#[derive(Clone, Debug)]
enum End {
    Finish(FinishReason),
    Done,
    Cut,
    Error,
}

type Script = Vec<(Vec<Piece>, End)>;

fn piece() -> impl Strategy<Value = Piece> {
    let tools = vec!["look", "look", "fail", "alone", "direct", "nonesuch", "client_side"];
    let arguments = vec!["{}", "", "{\"a\":1}", "{\"a\":", "[]"];
    prop_oneof![
        sample::select(&["Let me ", "look.", ""][..]).prop_map(Piece::Text),
        sample::select(&["Hm.", "So "][..]).prop_map(Piece::Reasoning),
        (sample::select(tools), sample::select(arguments))
            .prop_map(|(tool, arguments)| Piece::Call { tool, arguments }),
        (0..10_u64).prop_map(Piece::Usage),
    ]
}

fn end() -> impl Strategy<Value = End> {
    use FinishReason::{ContentFilter, Length, Other, Paused, Stop, ToolCalls};
    let reasons = vec![Stop, ToolCalls, ToolCalls, Length, ContentFilter, Paused, Other("eos".into())];
    prop_oneof![
        8 => sample::select(reasons).prop_map(End::Finish),
        2 => Just(End::Done),
        1 => Just(End::Cut),
        1 => Just(End::Error),
    ]
}

fn script() -> impl Strategy<Value = Script> {
    collection::vec((collection::vec(piece(), 0..6), end()), 1..5)
}

fn answer(round: usize, pieces: &[Piece], end: &End) -> Answer {
    let mut answer = Answer::new();
    for (place, piece) in pieces.iter().enumerate() {
        answer = match piece {
            Piece::Text(text) => answer.text(*text),
            Piece::Reasoning(text) => answer.reasoning(*text),
            Piece::Usage(tokens) => answer.usage(*tokens, *tokens),
            Piece::Call { tool, arguments } => {
                let (index, id) = (place as i64, format!("r{round}c{place}"));
                let whole = ToolCallDelta::start(index, id, *tool).with_arguments(*arguments);
                answer.delta(Delta::tool_call(whole))
            }
        };
    }
    match end {
        End::Finish(reason) => answer.finish(reason.clone()),
        End::Done => answer.done(),
        End::Cut => answer,
        End::Error => answer.error(Error::new(ErrorKind::Connection, "reset")),
    }
}

/// The settings of a loop.
#[derive(Clone, Debug)]
struct Setting {
    mode: ToolCallStreaming,
    tool_events: bool,
    rounds: u32,
    calls: Option<u32>,
    on_limit: OnLimit,
}

fn setting() -> impl Strategy<Value = Setting> {
    use ToolCallStreaming::{All, FinalAnswerOnly, TextOnly};
    let on_limit = sample::select(vec![OnLimit::EndTurn, OnLimit::TellModel]);
    (
        sample::select(vec![TextOnly, FinalAnswerOnly, All]),
        any::<bool>(),
        1..5_u32,
        option::of(0..4_u32),
        on_limit,
    )
        .prop_map(|(mode, tool_events, rounds, calls, on_limit)| Setting {
            mode,
            tool_events,
            rounds,
            calls,
            on_limit,
        })
}

/// A client whose parts record their calls.
struct Set {
    client: ChatClient,
    model: ScriptedModel,
    stages: Stages,
    ledger: Ledger,
}

fn set(script: &Script, setting: &Setting) -> Set {
    let answers = script.iter().enumerate().map(|(round, (pieces, end))| answer(round + 1, pieces, end));
    let model = ScriptedModel::new(answers.collect::<Vec<_>>());
    let stages = Stages::default();
    let ledger = Ledger::at(&stages);
    let mut limits =
        ToolLimits { rounds: Some(setting.rounds), on_limit: setting.on_limit, ..ToolLimits::default() };
    limits.calls = setting.calls;
    let advisor = ToolCallAdvisor::builder()
        .streaming(setting.mode)
        .tool_events(setting.tool_events)
        .limits(limits)
        .hooks(Watch(stages.clone()))
        .build()
        .unwrap();
    let own = |definition, outcome: Result<&'static str, &'static str>| {
        FnTool::new(definition, move |_: Value| async move {
            outcome.map(ToolOutput::from).map_err(ToolError::new)
        })
    };
    let client = ChatClient::builder(model.clone())
        .advisor(ledger.clone())
        .advisor(advisor)
        .advisor(Staged::new(&stages))
        .tool(tool("look", "sunny"))
        .tool(own(definition("fail"), Err("broken")))
        .tool(own(ToolDefinition { exclusive: true, ..definition("alone") }, Ok("alone")))
        .tool(own(ToolDefinition { return_direct: true, ..definition("direct") }, Ok("to the user")))
        .tool(ClientSideTool::new(definition("client_side")))
        .build()
        .unwrap();
    Set { client, model, stages, ledger }
}

/// Returns the parts of a run that are compared.
fn kept(set: &Set) -> (Vec<String>, String, usize) {
    (set.stages.journal.labels(), format!("{:?}", set.ledger.records()), set.model.calls())
}

/// S4: a round that is shown in this mode folds to its response.
fn assert_folds(run: &Run, response: &ChatResponse, mode: ToolCallStreaming) {
    let open: Vec<_> = response.open_calls().map(|(block, _)| block).collect();
    // Only `All` shows the calls that the loop has answered.
    let is_shown = |(id, block): &(_, &Block)| {
        mode == ToolCallStreaming::All || block.as_tool_call().is_none() || open.contains(id)
    };
    let blocks: Vec<_> = response.blocks().filter(is_shown).map(|(id, block)| (id, block.clone())).collect();
    assert_eq!(run.fold().blocks(response.round()), blocks);
}

/// Returns whether calls of the turn are left for the caller to answer.
fn has_client_side_calls(response: &ChatResponse) -> bool {
    response.finish.reason != FinishReason::ReturnDirect && response.tool_calls().next().is_some()
}

/// S4: rounds that the mode shows fold to their responses.
fn assert_conserved(run: &Run, setting: &Setting) {
    for chunk in &run.chunks {
        match chunk {
            Chunk::Completed(response) => assert_folds(run, response, setting.mode),
            Chunk::RoundCompleted(response) if setting.mode == ToolCallStreaming::All => {
                assert_folds(run, response, setting.mode);
            }
            _ => {}
        }
    }
}

async fn check_stream(script: &Script, setting: &Setting) {
    let set = set(script, setting);
    // Reading it checks that it ends once, and that its blocks open, go on and close once.
    let run = read(set.client.prompt().user("go").stream()).await;
    assert_conserved(&run, setting);
    assert_eq!(set.stages.ends().len(), 1, "T4: finalize once");
    assert!(set.model.calls() <= setting.rounds as usize, "T3: rounds");
    let history = run.outcome.as_ref().map_or_else(
        |error| error.history().unwrap().clone(),
        |response| {
            assert_eq!(set.ledger.transcript(), response.transcript, "recorded is what came out");
            response.transcript.clone()
        },
    );
    if !run.outcome.as_ref().is_ok_and(has_client_side_calls) {
        assert_valid(&history);
    }
}

async fn check_call(script: &Script, setting: &Setting) {
    let streamed = set(script, setting);
    let run = read(streamed.client.prompt().user("go").stream()).await;
    let called = set(script, setting);
    let call = called.client.prompt().user("go").call().await;
    assert_eq!(kept(&streamed), kept(&called), "the same hooks, records and requests");
    assert_eq!(streamed.stages.outcomes(), called.stages.outcomes());
    match (call, run.outcome.as_ref()) {
        (Ok(called), Ok(streamed)) => assert_eq!(&*called, streamed),
        (Err(called), Err(streamed)) => {
            assert_eq!((called.kind(), called.history()), (streamed.kind(), streamed.history()));
            assert_eq!(called.emitted(), streamed.emitted());
        }
        (called, streamed) => panic!("called: {called:?}\nstreamed: {streamed:?}"),
    }
}

fn block_on(check: impl Future<Output = ()>) {
    let runtime = Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(check);
}

proptest! {
    #![proptest_config({
        let default = ProptestConfig::default();
        ProptestConfig { cases: 4 * default.cases, failure_persistence: None, ..default }
    })]

    #[test]
    fn law_s1_s3_s4_every_stream_is_well_formed(script in script(), setting in setting()) {
        block_on(check_stream(&script, &setting));
    }

    #[test]
    fn law_s6_a_call_is_a_stream_that_is_folded(script in script(), setting in setting()) {
        block_on(check_call(&script, &setting));
    }
}
