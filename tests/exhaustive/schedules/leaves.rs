//! `YieldingStore`, and a model and tools that yield to other tasks wherever they wait.

use advisor_chain::client;
use advisor_chain::memory::store::FencingToken;
use advisor_testkit::{Around, Asked, ReceivedPrompt, StoreAround, Work};
use advisor_tests::prelude::*;
use advisor_tests::tools::definition;
use shuttle::future::yield_now;

/// A store whose operations yield to other tasks, before and after their effect. With leases, only the holder
/// of the last one may write. Clones share everything.
pub(crate) type YieldingStore = StoreAround<InMemoryStore, Yielding>;

pub(crate) fn yielding(store: InMemoryStore) -> YieldingStore {
    StoreAround::with(Arc::new(store), Yielding::default())
}

#[derive(Default)]
pub(crate) struct Yielding(Mutex<Right>);

/// Who may write.
#[derive(Default)]
struct Right {
    /// The conversation's version after the last append.
    version: Version,
    /// The token of the last append.
    token: Option<FencingToken>,
    /// Whether a lease was granted since.
    granted: bool,
}

#[async_trait]
impl Around for Yielding {
    async fn around(&self, asked: Asked<'_>, work: Work<'_>) -> Result<Option<Version>, StoreError> {
        yield_now().await;
        let done = work.await;
        if let Ok(version) = &done {
            let mut right = self.0.lock().unwrap();
            match (asked, version) {
                (Asked::Acquire, _) => right.granted = true,
                (Asked::Append(batch), Some(version)) if *version > right.version => {
                    let may =
                        if right.granted { batch.token > right.token } else { batch.token == right.token };
                    assert!(may, "M3: who has lost the right has written");
                    *right = Right { version: *version, token: batch.token, granted: false };
                }
                _ => {}
            }
        }
        yield_now().await;
        done
    }
}

/// Counts of the tools that ran.
#[derive(Clone, Default)]
pub(crate) struct Seen {
    /// The number of starts of each call that must not run twice.
    pub(crate) starts: Arc<Mutex<BTreeMap<CallKey, u32>>>,
}

/// A client with this memory, around a model that has two rounds of tools and then answers.
pub(crate) fn chain(memory: &ChatMemoryAdvisor, place: Phase, seen: &Seen) -> ChatClient {
    let once = ToolDefinition { effect: Some(Effect::AtMostOnce), ..definition("charge") };
    client(ScriptedModel::from_fn(answer))
        .advisor_in(place, memory.clone())
        .tool(tool(once, seen))
        .tool(tool(definition("look"), seen))
        .build()
        .unwrap()
}

fn tool(definition: ToolDefinition, seen: &Seen) -> FnTool {
    let (seen, once) = (seen.clone(), definition.name == "charge");
    FnTool::with_invocation(definition, move |invocation: ToolInvocation| {
        if once {
            *seen.starts.lock().unwrap().entry(invocation.key).or_default() += 1;
        }
        async {
            yield_now().await;
            Ok::<_, ToolError>("ran".into())
        }
    })
}

/// Returns the answer of the model, which depends only on the messages, and checks that they are valid.
fn answer(prompt: &ReceivedPrompt) -> Answer {
    let sent: Vec<Message> = prompt.messages.iter().cloned().collect();
    assert_eq!(validate_transcript(&sent), [], "M1: {sent:?}");
    let said = sent.iter().rposition(|message| message.role() == Role::User).unwrap();
    let rounds = sent[said..].iter().filter(|message| message.tool_calls().next().is_some()).count();
    let waits = |answer: Answer| answer.wait(yield_now());
    match rounds {
        0 | 1 => waits(waits(Answer::new()).text("Wait. "))
            .call("1", "charge", "{}")
            .call("2", "look", "{}")
            .finish(FinishReason::ToolCalls),
        _ => waits(waits(Answer::new()).text("Done: ")).text(sent[said].text()).finish(FinishReason::Stop),
    }
}
