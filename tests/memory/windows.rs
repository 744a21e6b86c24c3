//! Tests of the messages that a window sends of turns that do not fit, through whole chains.

use advisor_chain::memory::store::{BatchKey, NewEntry};
use advisor_tests::log::Log;
use advisor_tests::prelude::*;
use advisor_tests::stores::two_stores;
use advisor_tests::tools::definition;

/// Runs a turn of conversation `c` in a separate process over the same store. Returns the messages of each of
/// its requests.
async fn turn(
    store: &Arc<dyn ConversationStore>,
    place: Phase,
    window: Window,
    said: &str,
    answers: Vec<Answer>,
) -> Vec<Vec<Message>> {
    let model = ScriptedModel::new(answers);
    let read = FnTool::new(definition("read"), |arguments: Value| async move {
        Ok("x".repeat(arguments["bytes"].as_u64().unwrap_or(4).try_into().unwrap()))
    });
    let memory = ChatMemoryAdvisor::new(Arc::clone(store)).with_window(window);
    let client = ChatClient::builder(model.clone())
        .advisor(ToolCallAdvisor::new())
        .tool(read)
        .advisor_in(place, memory)
        .build()
        .unwrap();
    client.prompt().user(said).conversation("c").call().await.unwrap();
    let prompts = model.prompts();
    for prompt in &prompts {
        assert_eq!(validate_transcript(&prompt.messages), []);
    }
    prompts.iter().map(|prompt| prompt.messages.iter().cloned().collect()).collect()
}

fn said(text: &str) -> Vec<Answer> {
    vec![Answer::from_text(text.to_owned())]
}

/// Returns `count` rounds of one call each, then an answer.
fn rounds(count: usize) -> Vec<Answer> {
    let call = |round: usize| {
        let arguments = format!(r#"{{"page": {round}}}"#);
        Answer::from_calls([(round.to_string().as_str(), "read", arguments.as_str())])
    };
    (0..count).map(call).chain(said("done")).collect()
}

/// Returns the texts of user messages and answers, and the ids of the calls.
fn words(messages: &[Message]) -> String {
    let word = |message: &Message| match message.role() {
        Role::Tool => format!("r{}", message.tool_result().unwrap().call_id),
        _ => match message.tool_calls().next() {
            Some(call) => format!("c{}", call.id),
            None => message.text(),
        },
    };
    messages.iter().map(word).collect::<Vec<_>>().join(" ")
}

#[tokio::test]
async fn past_turn_exceeding_window_keeps_newest_messages() {
    for place in PLACES {
        let (stores, _folder) = two_stores().await;
        for store in stores {
            let window = Window::Messages(20);
            turn(&store, place, window, "Hello.", said("Hi.")).await;
            turn(&store, place, window, "Work.", rounds(12)).await;
            let sent = turn(&store, place, window, "And?", said("Fine.")).await;
            let newest: String = (5..12).map(|round| format!("c{round} r{round} ")).collect();
            assert_eq!(words(&sent[0]), format!("Hello. Hi. Work. {newest}done And?"), "{place:?}");
        }
    }
}

#[tokio::test]
async fn tool_result_exceeding_window_keeps_spoken_messages() {
    for place in PLACES {
        let (stores, _folder) = two_stores().await;
        for store in stores {
            let window = Window::Tokens(8000);
            turn(&store, place, window, "Hello.", said("Hi.")).await;
            let call = Answer::from_calls([("1", "read", r#"{"bytes": 60000}"#)]);
            turn(&store, place, window, "Read it.", [call].into_iter().chain(said("I did.")).collect()).await;
            let sent = turn(&store, place, window, "And?", said("Fine.")).await;
            assert_eq!(words(&sent[0]), "Hello. Hi. Read it. I did. And?", "{place:?}");
        }
    }
}

#[tokio::test]
async fn law_m7_last_answer_is_sent_if_window_fits_it() {
    for place in PLACES {
        for count in [0, 1, 9] {
            for room in 0..24 {
                for window in [Window::Messages(room), Window::Turns(room), Window::Tokens(room)] {
                    let store: Arc<dyn ConversationStore> = Arc::new(InMemoryStore::new());
                    turn(&store, place, window, "Hello.", said("Hi.")).await;
                    turn(&store, place, window, "Work.", rounds(count)).await;
                    let sent = turn(&store, place, window, "And?", said("Fine.")).await.remove(0);
                    let (asked, earlier) = sent.split_last().unwrap();
                    assert_eq!(asked.text(), "And?");
                    // One beside the question; "And?" and "done" are five tokens each, by the default guess.
                    let fits = room >= if matches!(window, Window::Tokens(_)) { 10 } else { 2 };
                    let told = earlier.last().map(Message::text);
                    assert_eq!(
                        told,
                        fits.then(|| "done".to_owned()),
                        "{window:?} {place:?}: {}",
                        words(&sent)
                    );
                }
            }
        }
    }
}

/// The window is read again and again, since damaged entries are not sent. The log names the first of all that were read.
#[tokio::test]
async fn damaged_entries_are_warned_of_once() {
    let store: Arc<dyn ConversationStore> = Arc::new(InMemoryStore::new());
    let key = ConversationKey::new("c").unwrap();
    let mut version = Version::EMPTY;
    for later in (0..30).rev() {
        let turn = TurnId::random();
        // The last turn is open, so that a read has it twice.
        let end = (later > 0).then_some(EntryKind::TurnEnded(TurnEnd::Completed(FinishReason::Stop)));
        let kinds = [EntryKind::Corrupt(b"half".into())].into_iter().chain(end);
        let entries = kinds.map(|kind| NewEntry::new(turn.clone(), kind)).collect();
        version =
            store.append(&key, version, Batch::new(BatchKey::new(turn, 0, "all"), entries)).await.unwrap();
    }
    let (log, _guard) = Log::start();
    turn(&store, Phase::Turn, Window::Messages(10), "hello", said("hi")).await;
    let lines = log.take();
    let warned: Vec<_> = lines.lines().filter(|line| line.contains("cannot be read")).collect();
    assert_eq!(warned.len(), 1, "{lines}");
    assert!(warned[0].contains("seq=1 count=30"), "{lines}");
}
