//! Tests that the store fails in every way at every operation of a turn, and at every pair of them. The
//! conversation stays valid, and the next turn works.

use advisor_chain::ToolDefinition;
use std::collections::HashSet;
use std::io::Write as _;
use std::sync::atomic::AtomicBool;

use advisor_testkit::FaultStore;
use advisor_tests::matrix::MODES;
use advisor_tests::prelude::*;
use tokio::time::Instant;

/// A turn, as the answers of the model in it.
struct Scenario {
    name: &'static str,
    answers: fn() -> Vec<Answer>,
    rounds: u32,
}

fn scenarios() -> [Scenario; 5] {
    fn two(round: usize, tool: &str) -> Answer {
        let ids = [format!("r{round}a"), format!("r{round}b")];
        let arguments = ids.each_ref().map(|id| format!(r#"{{"call":"{id}"}}"#));
        Answer::from_calls(
            ids.iter().zip(&arguments).map(|(id, arguments)| (id.as_str(), tool, arguments.as_str())),
        )
    }
    [
        Scenario { name: "a plain answer", answers: || vec![Answer::from_text("Done.")], rounds: 9 },
        Scenario {
            name: "three rounds of two calls",
            answers: || vec![two(1, "work"), two(2, "work"), two(3, "work"), Answer::from_text("Done.")],
            rounds: 9,
        },
        Scenario { name: "return-direct", answers: || vec![two(1, "direct")], rounds: 9 },
        Scenario { name: "the last round", answers: || vec![two(1, "work"), two(2, "work")], rounds: 2 },
        Scenario {
            name: "tools that fail and panic",
            answers: || vec![two(1, "fails"), two(2, "panics"), Answer::from_text("Done.")],
            rounds: 9,
        },
    ]
}

/// Everything that one case needs.
struct Setting {
    client: ChatClient,
    model: ScriptedModel,
    store: FaultStore<InMemoryStore>,
    witness: Arc<Witness>,
}

/// The record of the work that tools and model did in a turn.
struct Witness {
    store: FaultStore<InMemoryStore>,
    /// The calls whose tools were started, in order.
    started: Mutex<Vec<String>>,
    /// Whether the store fails once, for good: no work continues after that.
    ends: AtomicBool,
    /// The amount of work after the store had failed for good.
    late: AtomicUsize,
}

impl Witness {
    fn new(store: &FaultStore<InMemoryStore>) -> Arc<Self> {
        let (started, ends, late) = Default::default();
        Arc::new(Self { store: store.clone(), started, ends, late })
    }

    fn go_on(&self) {
        if self.ends.load(Ordering::Relaxed) && self.store.pending_faults() == 0 {
            self.late.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn start(&self, arguments: &Value) {
        self.go_on();
        self.started.lock().unwrap().push(arguments["call"].to_string());
    }

    /// The calls that were started, each once.
    fn started(&self) -> usize {
        let started = self.started.lock().unwrap();
        let calls: HashSet<_> = started.iter().collect();
        assert_eq!(calls.len(), started.len(), "a tool runs twice for one call: {started:?}");
        calls.len()
    }
}

fn setting(scenario: &Scenario, memory: Phase, mode: ToolCallStreaming) -> Setting {
    limited(scenario, memory, mode, ToolLimits::default().with_rounds(scenario.rounds))
}

fn limited(scenario: &Scenario, memory: Phase, mode: ToolCallStreaming, limits: ToolLimits) -> Setting {
    let store = FaultStore::new(InMemoryStore::new());
    let witness = Witness::new(&store);
    let (script, asked) = (Mutex::new((scenario.answers)().into_iter()), Arc::clone(&witness));
    let model = ScriptedModel::from_fn(move |prompt| {
        // The next turn is answered, whatever the outcome of the turn before.
        let is_next = prompt.messages.last().is_some_and(|message| message.text() == "next");
        if !is_next {
            asked.go_on();
        }
        let scripted = script.lock().unwrap().next().filter(|_| !is_next);
        scripted.unwrap_or_else(|| Answer::from_text("Next."))
    });
    let tool_loop = ToolCallAdvisor::builder().streaming(mode).limits(limits).build().unwrap();
    let definition = |name: &str| ToolDefinition::new(name, "A tool.", json!({"type": "object"}));
    let counted = |name: &'static str, definition: ToolDefinition| {
        let witness = Arc::clone(&witness);
        FnTool::new(definition, move |arguments: Value| {
            witness.start(&arguments);
            async move {
                match name {
                    "fails" => Err(ToolError::new("it failed")),
                    "panics" => panic!("as the test wants"),
                    _ => Ok("worked"),
                }
            }
        })
    };
    let client = ChatClient::builder(model.clone())
        .advisor(tool_loop)
        .advisor_in(memory, ChatMemoryAdvisor::new(store.clone()))
        .tool(counted("work", definition("work")))
        .tool(counted("direct", ToolDefinition { return_direct: true, ..definition("direct") }))
        .tool(counted("fails", definition("fails")))
        .tool(counted("panics", definition("panics")))
        .build()
        .unwrap();
    Setting { client, model, store, witness }
}

/// Reads a turn to its end, or until it only waits, and drops it then. Gives the text of its response.
async fn run(client: &ChatClient) -> Option<String> {
    let mut turn = client.prompt().user("go").conversation("c").stream();
    let mut waits = 0;
    while waits < 60 {
        match futures::poll!(turn.next()) {
            std::task::Poll::Ready(Some(Ok(chunk))) => {
                if let Some(response) = chunk.completed() {
                    return Some(response.text());
                }
            }
            std::task::Poll::Ready(_) => return None,
            std::task::Poll::Pending => waits += 1,
        }
        // Tools run in this task; nothing else is to be waited for.
        tokio::task::yield_now().await;
    }
    None
}

/// Runs a turn with these faults, then the next turn, and checks its request. Returns the number of faults that
/// happened.
async fn case(
    scenario: &Scenario,
    memory: Phase,
    mode: ToolCallStreaming,
    faults: &[(usize, StoreFault)],
) -> usize {
    let what = format!("{} {memory:?} {mode:?} {faults:?}", scenario.name);
    let Setting { client, model, store, witness } = setting(scenario, memory, mode);
    faults.iter().for_each(|(operation, fault)| store.fail_at(*operation, *fault));
    let fails = matches!(faults, [(_, StoreFault::Unavailable)]);
    witness.ends.store(fails, Ordering::Relaxed);
    let answered = run(&client).await;
    let had = faults.len() - store.pending_faults();
    assert!(!fails || answered.is_none(), "{what}: the turn was answered");
    assert_eq!(witness.late.load(Ordering::Relaxed), 0, "{what}: something went on");
    witness.ends.store(false, Ordering::Relaxed);
    store.clear_faults();
    let calls: usize = (scenario.answers)().len() * 2;
    assert!(witness.started() <= calls, "{what}");
    let next = client.prompt().user("next").conversation("c").call().await;
    let next = next.unwrap_or_else(|error| panic!("{what}: the next turn failed: {error:?}"));
    assert_eq!((next.text().as_str(), &next.finish().reason), ("Next.", &FinishReason::Stop), "{what}");
    for prompt in model.prompts() {
        assert_eq!(validate_transcript(&prompt.messages), [], "{what}: {:?}", prompt.messages);
    }
    let prompts = model.prompts();
    let sent = &prompts.last().unwrap().messages;
    let users: Vec<_> =
        sent.iter().filter(|message| message.role() == Role::User).map(Message::text).collect();
    assert!(users == ["go", "next"] || (users == ["next"] && answered.is_none()), "{what}: {users:?}");
    if let Some(text) = answered {
        let remembered = sent.iter().rev().find(|message| message.role() == Role::Assistant).unwrap();
        assert_eq!(remembered.text(), text, "{what}: what was answered is remembered");
    }
    let busy = client.prompt().user("again").conversation("c").call().await;
    assert!(!busy.is_err_and(|error| error.kind() == ErrorKind::ConversationBusy), "{what}");
    had
}

/// The number of store operations of this turn when nothing fails.
async fn operations(scenario: &Scenario, memory: Phase, mode: ToolCallStreaming) -> usize {
    let Setting { client, store, .. } = setting(scenario, memory, mode);
    assert!(run(&client).await.is_some(), "{} {memory:?} {mode:?}", scenario.name);
    store.operations()
}

#[tokio::test]
async fn law_m6_o5_t1_the_store_may_fail_at_any_operation() {
    let (mut cases, mut tried) = (0, 0);
    for scenario in scenarios() {
        for memory in [Phase::Round, Phase::Turn] {
            for mode in MODES {
                for operation in 0..operations(&scenario, memory, mode).await {
                    for fault in StoreFault::ALL {
                        cases += case(&scenario, memory, mode, &[(operation, fault)]).await;
                        tried += 1;
                    }
                }
            }
        }
    }
    assert_eq!(cases, tried, "each fault came");
    let _ = writeln!(std::io::stderr(), "{cases} turns in which the store failed once");
}

#[tokio::test]
async fn law_m6_k4_the_store_may_fail_at_any_two_operations() {
    let mut cases = 0;
    let mode = ToolCallStreaming::TextOnly;
    for scenario in scenarios() {
        for memory in [Phase::Round, Phase::Turn] {
            // A fault may bring further operations about.
            let operations = operations(&scenario, memory, mode).await + 2;
            for first in 0..operations {
                for second in first + 1..operations {
                    for one in StoreFault::ALL {
                        for other in StoreFault::ALL {
                            let had = case(&scenario, memory, mode, &[(first, one), (second, other)]).await;
                            // Most turns end with the first fault.
                            cases += usize::from(had == 2);
                        }
                    }
                }
            }
        }
    }
    assert!(cases > 3_000, "only {cases} turns had both");
    let _ = writeln!(std::io::stderr(), "{cases} turns in which the store failed twice");
}

/// The time limit of a turn covers the appends of a memory inside the loop. It does not cover records between
/// rounds.
#[tokio::test(start_paused = true)]
async fn turn_time_bounds_store_that_hangs_in_round() {
    let time = Duration::from_secs(5);
    let [plain, rounds, ..] = scenarios();
    // The conversation is loaded, the input stored, then each answer; in between the results, by the loop.
    for (scenario, operations) in [(plain, &[0, 1, 2][..]), (rounds, &[0, 1, 2, 4, 6, 8])] {
        for operation in operations {
            for fault in [StoreFault::HangBefore, StoreFault::HangAfter] {
                let limits = ToolLimits::default().with_turn_timeout(time);
                let Setting { client, store, .. } =
                    limited(&scenario, Phase::Round, ToolCallStreaming::TextOnly, limits);
                store.fail_at(*operation, fault);
                let begun = Instant::now();
                let response = client.prompt().user("go").conversation("c").call().await.unwrap();
                let case = format!("{}, operation {operation}, {fault:?}", scenario.name);
                assert_eq!(response.finish().reason, FinishReason::Limit(Limit::Time(5000)), "{case}");
                assert_eq!(begun.elapsed(), time, "{case}");
                assert_eq!(validate_transcript(response.transcript()), [], "{case}");
            }
        }
    }
}
