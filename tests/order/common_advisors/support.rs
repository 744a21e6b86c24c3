//! `Setting`: a client with a tool and memory in either phase. Also answers of the model, and `Log`.

use std::io;

use advisor_tests::prelude::*;
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::fmt::MakeWriter;

/// Both places of memory.
pub(crate) const PLACES: [Phase; 2] = [Phase::Round, Phase::Turn];

/// A client with the tool `look`, which counts its runs, and memory in this phase.
pub(crate) struct Setting {
    pub(crate) client: ChatClientBuilder,
    pub(crate) memory: ChatMemoryAdvisor,
    runs: Arc<Mutex<usize>>,
}

impl Setting {
    pub(crate) fn new(model: &ScriptedModel, remembers: Phase, on_limit: OnLimit) -> Self {
        let (memory, runs) = (ChatMemoryAdvisor::new(InMemoryStore::new()), Arc::<Mutex<usize>>::default());
        let limits = ToolLimits::default().with_on_limit(on_limit);
        let counted = Arc::clone(&runs);
        let look = tool("look", move |_| {
            *counted.lock().unwrap() += 1;
            async { Ok("a result".to_owned()) }
        });
        let client = ChatClient::builder(model.clone())
            .advisor(ToolCallAdvisor::builder().limits(limits).build().unwrap())
            .advisor_in(remembers, memory.clone())
            .tool(look);
        Self { client, memory, runs }
    }

    pub(crate) fn runs(&self) -> usize {
        *self.runs.lock().unwrap()
    }

    /// The stored messages in short, which are a valid transcript.
    pub(crate) async fn remembered(&self) -> Vec<String> {
        let transcript = self.memory.transcript(&ConversationKey::new("c").unwrap()).await.unwrap();
        assert_eq!(validate_transcript(&transcript), [], "{transcript:?}");
        transcript.iter().map(line).collect()
    }
}

/// A message in short: `text`, `text(name)`, `= result`.
fn line(message: &Message) -> String {
    let calls: String = message.tool_calls().map(|call| format!("({})", call.name)).collect();
    match message.tool_result() {
        Some(result) => format!("= {}", result.text()),
        None => message.text() + &calls,
    }
}

/// A tool without arguments.
pub(crate) fn tool<F>(
    name: &'static str,
    run: impl Fn(ToolInvocation) -> F + Send + Sync + 'static,
) -> impl Tool
where
    F: Future<Output = Result<String, ToolError>> + Send + 'static,
{
    FnTool::with_invocation(ToolDefinition::new(name, "A tool.", json!({"type": "object"})), move |call| {
        let running = run(call);
        async move { running.await.map(Into::into) }
    })
}

/// An answer with a call of `look`, of this many tokens.
pub(crate) fn looks(tokens: u64) -> Answer {
    Answer::new().text("Well. ").call("c1", "look", "{}").usage(tokens - 1, 1).finish(FinishReason::ToolCalls)
}

/// An answer with a text, of this many tokens.
pub(crate) fn says(text: &str, tokens: u64) -> Answer {
    Answer::new().text(text).usage(tokens - 1, 1).finish(FinishReason::Stop)
}

pub(crate) fn refused(kind: ErrorKind) -> Answer {
    Answer::refused(Error::new(kind, "refused"))
}

/// Collects the lines of the log of this thread.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    /// Collects until the guard is dropped.
    pub(crate) fn start() -> (Self, DefaultGuard) {
        let log = Self::default();
        let subscriber = tracing_subscriber::fmt().with_writer(log.clone()).with_ansi(false).finish();
        (log, tracing::subscriber::set_default(subscriber))
    }

    /// The lines since the last look.
    pub(crate) fn take(&self) -> String {
        String::from_utf8(std::mem::take(&mut *self.0.lock().unwrap())).unwrap()
    }
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}
