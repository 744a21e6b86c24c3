//! Tests of the laws of memory, through whole chains: sent and stored messages are equal, in every place of
//! memory.

use std::num::NonZeroUsize;

use advisor_chain::messages::MessageContent;
use advisor_testkit::{JournalStore, ReceivedPrompt};
use advisor_tests::lines::texts;
use advisor_tests::matrix::{Case, Ran, cases};
use advisor_tests::prelude::*;
use advisor_tests::scene::Scene;
use advisor_tests::tools::{definition, tool};
use futures::poll;

const MESSAGE_REFUSED: &str = "[this message is left out here: the provider refused its content]";
const NO_ANSWER: &str = "[no answer]";
const RESULT_REFUSED: &str =
    "[the call has a result, which is left out here: the provider refused its content]";

#[tokio::test]
async fn law_m1_every_transcript_that_is_sent_is_valid() {
    for case in cases() {
        let (ran, _, _) = case.run().await;
        let prompts = ran.model.prompts();
        assert_eq!(prompts.len(), case.tool_rounds as usize + 1, "{case:?}");
        for prompt in &prompts {
            assert_eq!(validate_transcript(&prompt.messages), [], "{case:?} round {}", prompt.round);
        }
        assert_eq!(validate_transcript(&ran.transcript().await), [], "{case:?}");
    }
}

#[tokio::test]
async fn law_m2_memory_is_the_prompt() {
    for case in cases() {
        let sent = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&sent);
        let store: Arc<std::sync::OnceLock<Arc<JournalStore<InMemoryStore>>>> = Arc::default();
        let at_request = Arc::clone(&store);
        let ran = case.prepare_with(move |prompt| {
            let key = ConversationKey::new("c").unwrap();
            let remembered = at_request.get().unwrap().log(&key).now_or_never().unwrap().unwrap();
            let messages: Vec<Message> = prompt.messages.iter().cloned().collect();
            seen.lock().unwrap().push((messages, remembered));
            case.answer_to(prompt)
        });
        store.set(Arc::clone(&ran.store)).ok().unwrap();
        ran.turn("Please work.").await;
        ran.turn("And again.").await;
        for (messages, remembered) in sent.lock().unwrap().iter() {
            assert_eq!(messages[0], Message::system("Be brief."), "{case:?}");
            assert_eq!(&messages[1..], &remembered[..], "{case:?}: request = system + memory");
        }
    }
}

#[tokio::test]
async fn law_m4_memory_inside_and_outside_hold_equal_transcripts() {
    for case in cases().filter(|case| case.memory == Phase::Round) {
        let (inside, _, _) = case.run().await;
        let (outside, _, _) = Case { memory: Phase::Turn, ..case }.run().await;
        let transcript = inside.transcript().await;
        assert_eq!(transcript, outside.transcript().await, "{case:?}");
        assert_eq!(
            inside.store.log(&inside.key).await.unwrap(),
            outside.store.log(&outside.key).await.unwrap(),
            "{case:?}"
        );
        let expected = 2 + case.tool_rounds as usize * (1 + case.calls);
        assert_eq!(transcript.len(), expected, "{case:?}");
        let appends = |ran: &Ran| {
            ran.journal.labels().into_iter().filter(|label| label.starts_with("stored")).collect::<Vec<_>>()
        };
        assert_eq!(appends(&inside), appends(&outside), "the same messages at the same points");
    }
}

/// A way for a turn to end, as a model's script and the settings it needs.
struct Exit {
    name: &'static str,
    answers: fn() -> Vec<Answer>,
    limits: fn(ToolLimits) -> ToolLimits,
    eligible: fn(&str) -> bool,
    /// Checks the end of the stored turn.
    end: fn(&TurnEnd) -> bool,
    /// The roles and first words of the log.
    log: &'static [&'static str],
}

const CUT: &str = "{\"n\":";

/// An exit without limits, whose calls the loop runs.
const PLAIN: Exit = Exit {
    name: "",
    answers: Vec::new,
    limits: |limits| limits,
    eligible: |_| true,
    end: |_| false,
    log: &[],
};

fn exits() -> Vec<Exit> {
    fn broken() -> Error {
        Error::new(ErrorKind::Connection, "the connection broke")
    }
    vec![
        Exit {
            name: "return direct",
            answers: || vec![Answer::from_calls([("a", "direct", "{}"), ("b", "direct", "{}")])],
            end: |end| *end == TurnEnd::Completed(FinishReason::ReturnDirect),
            log: &["user go", "assistant", "tool direct", "tool direct", "assistant direct\n\ndirect"],
            ..PLAIN
        },
        Exit {
            name: "limit of rounds",
            answers: || {
                vec![Answer::from_calls([("a", "work", "{}")]), Answer::from_calls([("b", "work", "{}")])]
            },
            limits: |limits| ToolLimits { rounds: Some(2), ..limits },
            end: |end| *end == TurnEnd::Completed(FinishReason::Limit(Limit::Rounds(2))),
            log: &[
                "user go", "assistant", "tool worked", "assistant", "tool not started", "assistant I stopped",
            ],
            ..PLAIN
        },
        Exit {
            name: "limit of calls",
            answers: || vec![Answer::from_calls([("a", "work", "{}"), ("b", "work", "{}")])],
            limits: |limits| ToolLimits { calls: Some(1), ..limits },
            end: |end| *end == TurnEnd::Completed(FinishReason::Limit(Limit::Calls(1))),
            log: &["user go", "assistant", "tool worked", "tool not started", "assistant I stopped"],
            ..PLAIN
        },
        Exit {
            name: "client-side",
            answers: || vec![Answer::from_calls([("a", "work", "{}")])],
            eligible: |name| name != "work",
            end: |end| *end == TurnEnd::Completed(FinishReason::ToolCalls),
            log: &["user go", "assistant"],
            ..PLAIN
        },
        Exit {
            name: "a cut call",
            answers: || {
                vec![Answer::new().text("Let me").call("a", "work", CUT).finish(FinishReason::Length)]
            },
            end: |end| *end == TurnEnd::Completed(FinishReason::Length),
            log: &["user go", "assistant Let me", "tool not started", "assistant I stopped"],
            ..PLAIN
        },
        Exit {
            name: "an error in the second round",
            answers: || {
                vec![Answer::from_calls([("a", "work", "{}")]), Answer::new().text("Half").error(broken())]
            },
            // Text that was not shown, because only the last answer is shown, is not stored as shown.
            end: |end| matches!(end, TurnEnd::Failed { partial } if *partial == "Half" || partial.is_empty()),
            log: &["user go", "assistant", "tool worked"],
            ..PLAIN
        },
        Exit {
            name: "refused at once",
            answers: || vec![Answer::refused(broken())],
            end: |end| *end == TurnEnd::Failed { partial: "".into() },
            log: &["user go"],
            ..PLAIN
        },
        Exit {
            name: "a body that was cut off",
            answers: || vec![Answer::new().text("Half").call("a", "work", "{}")],
            // Text that was not shown, because only the last answer is shown, is not stored as shown.
            end: |end| matches!(end, TurnEnd::Failed { partial } if *partial == "Half" || partial.is_empty()),
            log: &["user go"],
            ..PLAIN
        },
        Exit {
            name: "an empty answer",
            answers: || vec![Answer::new().finish(FinishReason::Stop)],
            end: |end| *end == TurnEnd::Completed(FinishReason::Empty),
            log: &["user go"],
            ..PLAIN
        },
        Exit {
            name: "tools that fail, panic and do not exist",
            answers: || {
                let calls =
                    [("a", "fails", "{}"), ("b", "panics", "{}"), ("c", "nothing", "{}"), ("d", "work", CUT)];
                vec![Answer::from_calls(calls), Answer::from_text("Never mind.")]
            },
            end: |end| *end == TurnEnd::Completed(FinishReason::Stop),
            log: &[
                "user go",
                "assistant",
                "tool it failed",
                "tool the tool panicked: oh no",
                "tool there is no tool",
                "tool not started: the arguments are no valid JSON",
                "assistant Never mind.",
            ],
            ..PLAIN
        },
    ]
}

fn turn_end(entry: &Entry) -> Option<&TurnEnd> {
    match &entry.kind {
        EntryKind::TurnEnded(end) => Some(end),
        _ => None,
    }
}

fn client(
    exit: &Exit,
    mode: ToolCallStreaming,
    memory: Phase,
    store: &Arc<JournalStore<InMemoryStore>>,
) -> (ChatClient, ScriptedModel) {
    // After the exit, the next turn answers.
    let model = ScriptedModel::new((exit.answers)().into_iter().chain([Answer::from_text("Next.")]));
    let eligible = exit.eligible;
    let tool_loop = ToolCallAdvisor::builder()
        .streaming(mode)
        .limits((exit.limits)(ToolLimits::default()))
        .eligible(move |call| eligible(&call.name))
        .build()
        .unwrap();
    let client = ChatClient::builder(model.clone())
        .advisor(tool_loop)
        .advisor_in(memory, ChatMemoryAdvisor::new(Arc::clone(store)))
        .tool(tool("work", "worked"))
        .tool(FnTool::new(ToolDefinition { return_direct: true, ..definition("direct") }, |_: Value| async {
            Ok("direct")
        }))
        .tool(FnTool::new(definition("fails"), |_: Value| async {
            Err::<&str, _>(ToolError::new("it failed"))
        }))
        .tool(FnTool::new(definition("panics"), |_: Value| async { panic!("oh no") as Result<&str, _> }))
        .build()
        .unwrap();
    (client, model)
}

fn assert_log(name: &str, log: &[Message], expected: &[&str]) {
    assert_eq!(log.len(), expected.len(), "{name}: {log:?}");
    for (message, expected) in log.iter().zip(expected) {
        let role = format!("{:?}", message.role()).to_lowercase();
        let line = format!("{role} {}", message.text());
        assert!(line.trim_end().starts_with(expected), "{name}: {line:?} does not begin with {expected:?}");
    }
}

#[tokio::test]
async fn law_m4_m6_t1_every_exit_leaves_equal_valid_memory() {
    let key = ConversationKey::new("c").unwrap();
    for exit in exits() {
        for mode in MODES {
            let mut logs = Vec::new();
            for memory in PLACES {
                let case = format!("{} {mode:?} {memory:?}", exit.name);
                eprintln!("{case}");
                let journal = Journal::new();
                let store = Arc::new(JournalStore::new(InMemoryStore::new(), &journal));
                let (client, model) = client(&exit, mode, memory, &store);
                let _ = client.prompt().user("go").conversation("c").call().await;
                let log = store.log(&key).await.unwrap();
                assert_log(&case, &log, exit.log);
                let snapshot = store.load(&key, ReadRange::All).await.unwrap();
                let ends: Vec<_> = snapshot.entries.iter().filter_map(turn_end).collect();
                assert_eq!(ends.len(), 1, "{case}: the turn ends once");
                assert!((exit.end)(ends[0]), "{case}: {:?}", ends[0]);
                let next = client.prompt().user("next").conversation("c").call().await.unwrap();
                assert_eq!(next.text(), "Next.", "{case}");
                let sent = model.prompts().last().unwrap().messages.clone();
                assert_eq!(validate_transcript(&sent), [], "{case}");
                let log = store.log(&key).await.unwrap();
                logs.push((log, journal.labels()));
            }
            let stored = |labels: &[String]| {
                labels.iter().filter(|label| label.starts_with("stored")).cloned().collect::<Vec<_>>()
            };
            assert_eq!(logs[0].0, logs[1].0, "{} {mode:?}", exit.name);
            assert_eq!(stored(&logs[0].1), stored(&logs[1].1), "{} {mode:?}", exit.name);
        }
    }
}

/// A reader that panics has dropped the turn.
#[tokio::test]
async fn output_shown_to_panicking_reader_is_remembered() {
    for memory in PLACES {
        let hangs = Answer::new().text("Hel").text("lo").hang();
        let scene = Scene::new([hangs, Answer::from_text("Again.")]).remembering(memory);
        let mut turn = scene.turn("go");
        let reading = async move {
            let mut shown = String::new();
            while let Some(chunk) = turn.next().await {
                shown.push_str(chunk.unwrap().text().unwrap_or_default());
                assert!(shown != "Hello", "the reader cannot bear it");
            }
        };
        assert!(std::panic::AssertUnwindSafe(reading).catch_unwind().await.is_err());
        scene.ask("next").await.unwrap();
        assert_eq!(scene.sent(1), ["go", "Hello [interrupted]", "next"], "{memory:?}");
    }
}

/// A tool starts a turn in the conversation that it is called from. The inner turn fails, the model reads the
/// error, and nothing else changes.
#[tokio::test]
async fn nested_turn_of_same_conversation_is_refused() {
    for memory in PLACES {
        let model =
            ScriptedModel::new([Answer::from_calls([("a", "ask", "{}")]), Answer::from_text("Done.")]);
        let itself: Arc<std::sync::OnceLock<ChatClient>> = Arc::default();
        let inner = Arc::clone(&itself);
        let asks = FnTool::new(definition("ask"), move |_: Value| {
            let inner = Arc::clone(&inner);
            async move {
                let client = inner.get().ok_or_else(|| ToolError::new("not built yet"))?;
                let answer = client.prompt().user("inside").conversation("c").call().await;
                answer.map(|response| response.text()).map_err(ToolError::from)
            }
        });
        let store = InMemoryStore::new();
        let client = ChatClient::builder(model.clone())
            .advisor(ToolCallAdvisor::new())
            .advisor_in(memory, ChatMemoryAdvisor::new(store.clone()))
            .tool(asks)
            .build()
            .unwrap();
        itself.set(client.clone()).ok().unwrap();
        let response = client.prompt().user("go").conversation("c").call().await.unwrap();
        assert_eq!((response.text().as_str(), model.calls()), ("Done.", 2));
        let result = model.prompts()[1].messages.last().unwrap().tool_result().unwrap().clone();
        assert!(result.is_error && result.text().contains("is running"), "{}", result.text());
        let key = ConversationKey::new("c").unwrap();
        let log = store.load(&key, ReadRange::All).await.unwrap().entries;
        let texts: Vec<_> =
            log.iter().filter_map(|entry| entry.kind.as_message()).map(Message::text).collect();
        assert_eq!(texts, ["go", "", result.text().as_str(), "Done."], "{memory:?}");
    }
}

fn image() -> Part {
    Part::Image(Media::from_bytes("image/png", vec![0; 3]))
}

/// A turn that runs has its messages so far, in every place of memory. It is interrupted once it is dropped.
#[tokio::test]
async fn transcript_read_while_a_turn_runs_does_not_interrupt_it() {
    for phase in PLACES {
        let (tool_runs, answers) = (Gate::new(), Gate::new());
        let model = ScriptedModel::new([
            Answer::from_text("Yes."),
            Answer::new().call("c1", "look", "{}").finish(FinishReason::ToolCalls),
            Answer::new().text("It ").gate(&answers).text("is late.").finish(FinishReason::Stop),
        ]);
        let memory = ChatMemoryAdvisor::new(InMemoryStore::new());
        let gate = tool_runs.clone();
        let look = FnTool::new(definition("look"), move |_: Value| {
            let gate = gate.clone();
            async move {
                gate.pass().await;
                Ok("late")
            }
        });
        let client = ChatClient::builder(model)
            .advisor(ToolCallAdvisor::builder().streaming(ToolCallStreaming::All).build().unwrap())
            .advisor_in(phase, memory.clone())
            .tool(look)
            .build()
            .unwrap();
        let key = ConversationKey::new("c").unwrap();
        let told = async || {
            let told = texts(&memory.transcript(&key).await.unwrap());
            let page = memory.turns(&key, None, NonZeroUsize::new(9).unwrap()).await.unwrap();
            assert_eq!(page.turns.iter().flat_map(|turn| texts(&turn.messages)).collect::<Vec<_>>(), told);
            told
        };
        client.prompt().user("Are you there?").conversation("c").call().await.unwrap();
        let mut turn = client.prompt().user("How late is it?").conversation("c").stream();
        let asked = ["Are you there?", "Yes.", "How late is it?"];
        while !matches!(turn.next().await.unwrap().unwrap(), Chunk::Tool(_)) {}
        assert!(poll!(turn.next()).is_pending(), "the tool runs");
        assert_eq!(told().await, asked, "{phase}: the call has no result yet");
        tool_runs.release();
        while turn.next().await.unwrap().unwrap().text() != Some("It ") {}
        assert_eq!(told().await, [&asked[..], &["", "late"]].concat(), "{phase}");
        drop(turn);
        assert_eq!(told().await.last().unwrap(), "It [interrupted]", "{phase}");
    }
}

/// A model that refuses each request with an image.
fn without_images() -> ScriptedModel {
    let has_image = |message: &Message| match message.tool_result() {
        Some(result) => result.parts.contains(&image()),
        None => {
            matches!(message.content(), MessageContent::User(parts) if parts.contains(&image()))
        }
    };
    ScriptedModel::from_fn(move |prompt: &ReceivedPrompt| {
        assert_eq!(validate_transcript(&prompt.messages), []);
        let last = prompt.messages.last().unwrap().text();
        match last.as_str() {
            _ if prompt.messages.iter().any(has_image) => {
                Answer::refused(Error::new(ErrorKind::InvalidInput, "the provider refuses the image"))
            }
            "Look." => Answer::new().call("c1", "look", "{}").finish(FinishReason::ToolCalls),
            _ => Answer::from_text(format!("You said {last}")),
        }
    })
}

fn screen() -> FnTool {
    tool("look", vec![Part::from("A screen"), image()])
}

#[tokio::test]
async fn refused_content_is_left_out_of_later_requests_and_stays_stored() {
    for phase in PLACES {
        let (memory, model) = (ChatMemoryAdvisor::new(InMemoryStore::new()), without_images());
        let client = ChatClient::builder(model.clone())
            .advisor(ToolCallAdvisor::new())
            .tool(screen())
            .advisor_in(phase, memory.clone());
        let client = client.build().unwrap();
        let ask = |message: Message| client.prompt().messages([message]).conversation("c").call();
        let key = ConversationKey::new("c").unwrap();
        assert_eq!(ask(Message::user("Hi")).await.unwrap().text(), "You said Hi");

        // The image of the user, then that of a tool.
        let shown = Message::user_parts(vec![Part::from("See"), image()]);
        assert_eq!(ask(shown.clone()).await.unwrap_err().kind(), ErrorKind::InvalidInput);
        assert_eq!(ask(Message::user("And now?")).await.unwrap().text(), "You said And now?");
        assert_eq!(ask(Message::user("Look.")).await.unwrap_err().kind(), ErrorKind::InvalidInput);
        assert_eq!(ask(Message::user("Bye")).await.unwrap().text(), "You said Bye");

        let sent = texts(&model.prompts().last().unwrap().messages);
        let expected = [
            "Hi", "You said Hi", MESSAGE_REFUSED, NO_ANSWER, "And now?", "You said And now?", "Look.", "",
            RESULT_REFUSED, NO_ANSWER, "Bye",
        ];
        assert_eq!(sent, expected, "{phase}");

        // What is stored, and shown, stays what the user wrote and the tool gave.
        let page = memory.turns(&key, None, NonZeroUsize::MAX).await.unwrap();
        assert_eq!((page.turns[1].messages[0].clone(), &page.turns[1].end), (shown, &Some(TurnEnd::Refused)));
        assert_eq!(page.turns[3].messages[2].text(), "A screen");
        let log = memory.store().load(&key, ReadRange::All).await.unwrap().entries;
        let refused = log.iter().filter(|entry| entry.kind == EntryKind::TurnEnded(TurnEnd::Refused));
        assert_eq!(refused.count(), 2, "{phase}");
    }
}

#[tokio::test]
async fn other_failures_leave_nothing_out() {
    let refusal = |kind| Answer::refused(Error::new(kind, "no"));
    let answer = || Answer::from_text("Yes.");
    let model = ScriptedModel::new([
        refusal(ErrorKind::InvalidRequest),
        refusal(ErrorKind::InvalidHistory),
        Answer::new().text("It is").error(Error::new(ErrorKind::InvalidInput, "filtered")),
        answer(),
    ]);
    let memory = ChatMemoryAdvisor::new(InMemoryStore::new());
    let client = ChatClient::builder(model.clone()).advisor(memory).build().unwrap();
    for said in ["a", "b", "c", "d"] {
        let _ = client.prompt().user(said).conversation("c").call().await;
    }
    let sent = texts(&model.prompts()[3].messages);
    assert_eq!(sent, ["a", "[interrupted]", "b", "[interrupted]", "c", "It is [interrupted]", "d"]);
}

/// A turn that is submitted again is sent whole: its provider, or its model, may be another one.
#[tokio::test]
async fn refused_turn_submitted_again_is_asked_again() {
    let refusal = Answer::refused(Error::new(ErrorKind::InvalidInput, "no"));
    let model = ScriptedModel::new([refusal, Answer::from_text("A cat."), Answer::from_text("Yes.")]);
    let memory = ChatMemoryAdvisor::new(InMemoryStore::new());
    let client = ChatClient::builder(model.clone()).advisor(memory).build().unwrap();
    let see = || client.prompt().user("See").conversation("c").turn("t").call();
    see().await.unwrap_err();
    assert_eq!(see().await.unwrap().text(), "A cat.");
    client.prompt().user("Sure?").conversation("c").call().await.unwrap();
    assert_eq!(texts(&model.prompts()[2].messages), ["See", "A cat.", "Sure?"], "it was accepted in the end");
}
