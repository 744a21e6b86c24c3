//! Tests all advisors of the guide, the examples and the documentation in one chain, in every order, and guards,
//! a budget, a retry, a rate limit and a cache among them. The shown, the returned and the stored answers are equal.

use std::future::ready;
use std::time::Duration;

use advisor_chain::advisors::{
    Budget, InMemoryQuestions, OnUnknownCost, OnlyTools, PrefixChange, PrefixWatch, RateLimit, ReReading,
    ResponseCache, Retry, SystemTemplate, ToolSearch,
};
use advisor_chain::chain::{Backoff, context_fn};
use advisor_chain::mcp::{ChainServer, McpServer};
use advisor_chain::memory::validate_transcript;
use advisor_chain::messages::{BlockObserver, ChunkFold};
use advisor_chain::retrieval::{Document, InMemoryVectors, PastTurns, Query, Retrieval};
use advisor_chain::stream_policy::{
    BlockPolicy, Guard, LetterCase, ObserveBlocks, PendingBlock, ReplaceText, Verdict,
};
use advisor_chain::structured::{OutputFormat, StructuredOutput};
use advisor_chain::text_tool_calls::{PromptFormat, TextToolCalls};
use advisor_chain::tools::{ToolCallStreaming, ToolSet, tools_fn};
use advisor_chain::{
    ChatClient, ChatClientBuilder, ChatMemoryAdvisor, ChatModel, ChatRequest, Chunk, ConversationKey, Error,
    ErrorKind, FinishReason, FnTool, InMemoryStore, Message, Phase, Role, ToolCallAdvisor, ToolDefinition,
};
use advisor_examples::advisors::{
    Cache, Logged, Permits, Stopwatch, ask_again, first_text, guard, once_more, polite, redaction, retrieval,
    stopping, with_fallback,
};
use advisor_testkit::{Answer, Journal, ReceivedPrompt, ScriptedModel, WordEmbeddings};
use futures::StreamExt;
use serde_json::{Value, json};

/// The scenario of a turn.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Plain,
    /// A round with a tool comes first.
    Tool,
    /// The same, and the answer is asked for again: since a model refused, broke off, or did not say enough.
    Restarted,
}

const KINDS: [Kind; 3] = [Kind::Plain, Kind::Tool, Kind::Restarted];
const MODES: [ToolCallStreaming; 3] =
    [ToolCallStreaming::TextOnly, ToolCallStreaming::FinalAnswerOnly, ToolCallStreaming::All];

type Add = fn(ChatClientBuilder) -> ChatClientBuilder;

/// The advisors that run once per turn.
const OUTER: [Add; 7] = [
    |client| client.advisor(polite()),
    |client| client.advisor(guard()),
    |client| client.advisor(retrieval(&["The weather is in the north."])),
    |client| client.advisor(Stopwatch),
    |client| client.advisor(first_text()),
    |client| client.advisor(Permits(Journal::new())),
    |client| client.advisor(Guard::for_words(["forbidden"], LetterCase::Ignore).on_input()),
];

/// The advisors that run for each call of the model.
const INNER: [Add; 15] = [
    |client| client.advisor(redaction(&[("Mallory", "[name]")])),
    |client| client.advisor(stopping("forbidden")),
    |client| client.advisor(Cache::default()),
    |client| client.advisor(once_more()),
    |client| client.advisor(ask_again("sunny")),
    // It holds back text of these answers, and matches none.
    |client| client.advisor(Guard::for_words(["Mallet", "sunny day"], LetterCase::Exact).on_output()),
    |client| {
        let ignore = OnUnknownCost::Ignore;
        client.advisor(Budget::for_each_turn().with_tokens(1_000).with_on_unknown_cost(ignore))
    },
    |client| {
        let at_once = Backoff::default().with_retries(1).with_waits(Duration::ZERO, Duration::ZERO);
        client.advisor(Retry::new().with_backoff(at_once))
    },
    |client| {
        client.advisor(RateLimit::for_all().with_calls(1_000, Duration::from_secs(1)).with_concurrency(1))
    },
    |client| client.advisor(ResponseCache::new()),
    |client| {
        let questions = InMemoryQuestions::new();
        client.advisor(ResponseCache::new().with_similar(WordEmbeddings::new(), questions, 0.999))
    },
    |client| client.advisor(PrefixWatch::new()),
    |client| client.advisor(OnlyTools::new(["look", "search_tools"])),
    |client| client.advisor(ToolSearch::new(&ToolSet::new()).unwrap()),
    |client| client.advisor(ReReading),
];

/// The number of advisors that are tested in every order. Those after them are tested at each place.
const OUTER_ORDERS: usize = OUTER.len() - 1;
const INNER_ORDERS: usize = INNER.len() - 10;

/// Answers by the content of the request, so that a cache or a second request changes nothing.
fn reply(kind: Kind) -> impl FnMut(&ReceivedPrompt) -> Answer + Send + 'static {
    move |prompt| {
        let again = prompt.messages.iter().any(|message| message.text().contains("Use the word sunny"));
        let sunny = || Answer::new().text("It is sunny, says Mal").text("lory.").finish(FinishReason::Stop);
        match (prompt.messages.last().unwrap().role(), kind) {
            (_, Kind::Plain) => sunny(),
            _ if again => sunny(),
            (Role::Tool, Kind::Restarted) => Answer::from_text("Mallory says that it is grey."),
            (Role::Tool, _) => sunny(),
            _ => Answer::new()
                .text("Mallory, let me look. ")
                .call("c1", "look", "{}")
                .finish(FinishReason::ToolCalls),
        }
    }
}

fn model(kind: Kind) -> impl ChatModel {
    let down = || Error::new(ErrorKind::Connection, "the network is down");
    let mut asked = 0;
    let first = ScriptedModel::from_fn(move |prompt| {
        asked += 1;
        match (kind, asked % 3) {
            (Kind::Restarted, 1) => Answer::refused(down()),
            (Kind::Restarted, 2) => Answer::new().text("It is Mal").error(down()),
            _ => reply(kind)(prompt),
        }
    });
    with_fallback(first, ScriptedModel::from_fn(reply(kind)))
}

struct Case {
    client: ChatClient,
    memory: ChatMemoryAdvisor,
    mode: ToolCallStreaming,
    kind: Kind,
    name: String,
}

impl Case {
    fn new(kind: Kind, mode: ToolCallStreaming, remembers: Phase, outer: &[usize], inner: &[usize]) -> Self {
        let memory = ChatMemoryAdvisor::new(InMemoryStore::new());
        let look = ToolDefinition::new("look", "Looks.", json!({"type": "object"}));
        let mut client = ChatClient::builder(model(kind))
            .advisor(ToolCallAdvisor::builder().streaming(mode).build().unwrap())
            .tool(FnTool::new(look, |_: Value| async { Ok("sunny") }));
        // Between them memory, and an advisor of its phase.
        for add in outer.iter().map(|place| OUTER[*place]) {
            client = add(client);
        }
        client = client.advisor_in(remembers, memory.clone()).advisor_in(Phase::Round, Logged);
        for add in inner.iter().map(|place| INNER[*place]) {
            client = add(client);
        }
        let name = format!("{kind:?} {mode:?} {remembers} {outer:?} {inner:?}");
        Self { client: client.build().unwrap(), memory, mode, kind, name }
    }

    /// Runs a turn, and checks that the shown, the returned and the stored answer are equal.
    async fn ask(&self, conversation: &str, user: &str) {
        let key = ConversationKey::new(conversation).unwrap();
        let before = self.memory.transcript(&key).await.unwrap().len();
        let mut turn = self.client.prompt().user(user).conversation(conversation).stream();
        let mut fold = ChunkFold::new();
        let response = loop {
            let chunk = turn.next().await.expect("it ends with `Completed`").unwrap_or_else(|error| {
                panic!("{}: {error:?}", self.name);
            });
            fold.push(&chunk);
            if let Chunk::Completed(response) = chunk {
                break response;
            }
        };
        let shown: String = (1..=response.round()).map(|round| fold.text(round)).collect();
        let told: Vec<_> = response.transcript().iter().map(line).collect();
        let transcript = self.memory.transcript(&key).await.unwrap();
        assert_eq!(validate_transcript(&transcript), [], "{}", self.name);
        let remembered: Vec<_> = transcript.iter().skip(before).map(line).collect();
        assert_eq!(told, remembered, "{}: told is remembered", self.name);
        let answers = response.transcript().iter().filter(|message| message.role() == Role::Assistant);
        let answers: Vec<_> = answers.map(Message::text).collect();
        let expected = match self.mode {
            ToolCallStreaming::FinalAnswerOnly => answers.last().cloned().unwrap_or_default(),
            _ => answers.concat(),
        };
        assert_eq!(shown, expected, "{}: shown is told", self.name);
        let last = "It is sunny, says [name].";
        let said: &[&str] = if self.kind == Kind::Plain { &[last] } else { &["[name], let me look. ", last] };
        assert_eq!(answers, said, "{}", self.name);
    }

    async fn run(&self) {
        self.ask("one", "How is the weather?").await;
        // From the cache, where there is one.
        self.ask("two", "How is the weather?").await;
        self.ask("one", "And the weather tomorrow?").await;
    }
}

fn line(message: &Message) -> String {
    let calls: String = message.tool_calls().map(|call| format!("({})", call.name)).collect();
    format!("{:?}: {}{calls}", message.role(), message.text())
}

fn permutations(of: usize) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new()];
    for next in 0..of {
        let insert = |known: &Vec<usize>| {
            let known = known.clone();
            (0..=known.len()).map(move |place| {
                let mut longer = known.clone();
                longer.insert(place, next);
                longer
            })
        };
        all = all.iter().flat_map(insert).collect();
    }
    all
}

#[tokio::test]
async fn d3_d5_d6_shown_equals_remembered_for_all_model_advisor_orders() {
    let outer: Vec<_> = (0..OUTER_ORDERS).collect();
    for (place, inner) in permutations(INNER_ORDERS).iter().enumerate() {
        for kind in KINDS {
            // Each order in each kind of turn; modes and places of memory by turns.
            let (mode, remembers) = (MODES[place % 3], [Phase::Round, Phase::Turn][(place / 3) % 2]);
            Case::new(kind, mode, remembers, &outer, inner).run().await;
        }
    }
}

#[tokio::test]
async fn d3_shown_equals_remembered_for_all_turn_advisor_orders() {
    let inner: Vec<_> = (0..INNER_ORDERS).collect();
    for (place, outer) in permutations(OUTER_ORDERS).iter().enumerate() {
        let (mode, kind) = (MODES[place % 3], KINDS[(place / 3) % 3]);
        let remembers = [Phase::Round, Phase::Turn][place % 2];
        Case::new(kind, mode, remembers, outer, &inner).run().await;
    }
}

/// Guards that match nothing, and limits that are not reached, change nothing at each place among the others.
#[tokio::test]
async fn guards_and_limits_fit_at_every_place() {
    let with = |of: usize, further: usize, place: usize| {
        let mut order: Vec<_> = (0..of).collect();
        order.insert(place, further);
        order
    };
    for (outer, inner) in
        (0..=OUTER_ORDERS).flat_map(|outer| (0..=INNER_ORDERS).map(move |inner| (outer, inner)))
    {
        for (place, kind) in KINDS.into_iter().enumerate() {
            let mode = MODES[(outer + inner + place) % 3];
            let remembers = [Phase::Round, Phase::Turn][(outer + inner) % 2];
            let outer = with(OUTER_ORDERS, OUTER_ORDERS, outer);
            for further in INNER_ORDERS..INNER.len() {
                let inner = with(INNER_ORDERS, further, inner);
                Case::new(kind, mode, remembers, &outer, &inner).run().await;
            }
        }
    }
}

/// What a turn keeps of the last request of the turn before: a provider reads that from its cache.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Keeps {
    /// All of it, byte for byte.
    Everything,
    /// What is before the message of the user, which has text of its turn alone. This page says so, in these words.
    UpToTheQuestion(&'static str, &'static str),
}

use Keeps::{Everything, UpToTheQuestion};

type Row = (&'static str, Keeps, Add);

/// The advisors of `docs/advisors.md` that are no rows: each case has a memory and a loop, the tools of a server have a case
/// of their own, and an exporter sees spans and no requests.
const NO_ROWS: [&str; 4] = ["ChatMemoryAdvisor", "GenAiExporter", "McpTools", "ToolCallAdvisor"];

/// Every other advisor of `docs/advisors.md`.
fn advisors_and_prefixes() -> Vec<Row> {
    vec![
        ("Advisor", Everything, |client| client.advisor(Stopwatch)),
        ("from_fn", Everything, |client| client.advisor(polite())),
        (
            "context_fn",
            UpToTheQuestion(
                "crates/advisor-core/src/chain/context_advisor.rs",
                "the next turn has it without the text",
            ),
            |client| {
                let asked = |request: ChatRequest| async move {
                    Ok(format!("Facts about: {}", request.last_user().unwrap().text()))
                };
                client.advisor(context_fn("facts", asked))
            },
        ),
        ("tools_fn", Everything, |client| {
            client.advisor(tools_fn("tools", |_: ChatRequest| async {
                Ok(ToolSet::new().with(idle_tool("idle")))
            }))
        }),
        ("Budget", Everything, |client| {
            let ignore = OnUnknownCost::Ignore;
            client.advisor(Budget::for_each_turn().with_tokens(1_000).with_on_unknown_cost(ignore))
        }),
        ("Retry", Everything, |client| client.advisor(Retry::new())),
        ("RateLimit", Everything, |client| client.advisor(RateLimit::for_all().with_concurrency(1))),
        ("ResponseCache", Everything, |client| client.advisor(ResponseCache::new())),
        ("PrefixWatch", Everything, |client| {
            let changed = |change: &PrefixChange| panic!("{change:?}");
            client.advisor(PrefixWatch::new().with_on_change(changed))
        }),
        ("SystemTemplate", Everything, |client| {
            client.advisor(SystemTemplate::new("Help {user}.".parse().unwrap()).with("user", "Ann"))
        }),
        ("ReReading", Everything, |client| client.advisor(ReReading)),
        ("OnlyTools", Everything, |client| client.advisor(OnlyTools::new(["look"]))),
        ("ToolSearch", Everything, |client| {
            client.advisor(ToolSearch::new(&ToolSet::new().with(idle_tool("hidden"))).unwrap())
        }),
        (
            "Retrieval",
            UpToTheQuestion("crates/retrieval/README.md", "the next turn has the message without them"),
            |client| {
                let found = |query: Query| async move {
                    Ok(vec![Document::new("1", format!("About {}", query.text))])
                };
                client.advisor(Retrieval::new(found))
            },
        ),
        (
            "PastTurns",
            UpToTheQuestion("crates/retrieval/README.md", "the next turn has the message without them"),
            |client| client.advisor(PastTurns::new(WordEmbeddings::new(), InMemoryVectors::new())),
        ),
        ("BlockPolicy", Everything, |client| {
            client.advisor(BlockPolicy::new(|_: PendingBlock| async { Ok(Verdict::Allow) }))
        }),
        ("ReplaceText", Everything, |client| client.advisor(ReplaceText::new([("Mallory", "[name]")]))),
        ("ObserveBlocks", Everything, |client| {
            struct Looks;
            impl BlockObserver for Looks {}
            client.advisor(ObserveBlocks::new(|_| Looks))
        }),
        ("InputGuard", Everything, |client| {
            client.advisor(Guard::for_words(["forbidden"], LetterCase::Ignore).on_input())
        }),
        ("OutputGuard", Everything, |client| {
            client.advisor(Guard::for_words(["forbidden"], LetterCase::Ignore).on_output())
        }),
        ("StructuredOutput", Everything, |client| {
            let city = json!({"type": "object", "properties": {"city": {"type": "string"}}});
            client.advisor(StructuredOutput::new(OutputFormat::new("city", city, |_| Ok(()))))
        }),
        ("TextToolCalls", Everything, |client| client.advisor(TextToolCalls::new(PromptFormat::Xml))),
    ]
}

fn idle_tool(name: &'static str) -> FnTool {
    let definition = ToolDefinition::new(name, "Does nothing.", json!({"type": "object"}));
    FnTool::new(definition, |_: Value| async { Ok("") })
}

#[tokio::test]
async fn each_turn_keeps_the_beginning_of_the_request_before() {
    for (name, keeps, add) in advisors_and_prefixes() {
        keeps_the_beginning(name, keeps, add).await;
    }
}

#[tokio::test]
async fn tools_of_a_server_keep_the_beginning_of_the_request_before() {
    let client = ChatClient::builder(ScriptedModel::new([])).build().unwrap();
    let ask = ToolDefinition::new("ask", "Answers questions about the shop.", Value::Null);
    let shop = ChainServer::new(client, ask).unwrap();
    let server = McpServer::from_stream(move || {
        let (near, far) = tokio::io::duplex(64 << 10);
        let shop = shop.clone();
        tokio::spawn(async move { shop.serve_stream(far).await });
        ready(Ok(near))
    });
    let tools = server.connect().await.unwrap();
    keeps_the_beginning("McpTools", Everything, |client| client.advisor(tools)).await;
}

/// Runs four turns of a conversation, of which the first one has two rounds where the advisor leaves native calls alone.
async fn keeps_the_beginning(
    name: &'static str,
    keeps: Keeps,
    add: impl FnOnce(ChatClientBuilder) -> ChatClientBuilder,
) {
    let model = ScriptedModel::from_fn(move |prompt| match prompt.messages.last().unwrap().text() {
        last if last.ends_with("How is Mallory?") && name != "TextToolCalls" => {
            Answer::from_calls([("c1", "look", "{}")])
        }
        _ => Answer::from_text(r#"{"city":"Oslo"}"#),
    });
    let client = ChatClient::builder(model.clone())
        .system("Be brief.")
        .advisor(ToolCallAdvisor::new())
        .advisor(ChatMemoryAdvisor::new(InMemoryStore::new()))
        .tool(idle_tool("look"));
    let client = add(client).build().unwrap();
    let questions = ["How is Mallory?", "How are Mallory and Oslo?", "And Oslo?", "Thanks, Mallory."];
    let mut requests = Vec::new();
    for question in questions {
        let before = model.prompts().len();
        client.prompt().user(question).conversation("c").call().await.unwrap();
        requests.push(model.prompts().split_off(before));
    }
    // One request of the model, as its API has it: the tools first.
    let pieces = |prompt: &ReceivedPrompt| -> Vec<String> {
        let messages = prompt.messages.iter().map(|message| serde_json::to_string(message).unwrap());
        std::iter::once(format!("{:?}", prompt.tools)).chain(messages).collect()
    };
    for (turn, next) in requests.iter().zip(&requests[1..]) {
        let (last, first) = (pieces(turn.last().unwrap()), pieces(&next[0]));
        let asked = last.len() - turn.last().unwrap().messages.iter_back().position(is_user).unwrap() - 1;
        let kept = match keeps {
            Everything => last.len(),
            UpToTheQuestion(..) => asked,
        };
        assert_eq!(first[..kept], last[..kept], "{name}");
        // The rounds of a turn keep everything.
        for (round, later) in turn.iter().zip(&turn[1..]) {
            assert!(pieces(later).starts_with(&pieces(round)), "{name}");
        }
    }
    if let UpToTheQuestion(page, reason) = keeps {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let page = std::fs::read_to_string(root.join(page)).unwrap().replace("\n/// ", " ");
        assert!(page.contains(reason), "{name} does not say what it keeps, and why");
    }
}

fn is_user(message: &Message) -> bool {
    message.role() == Role::User
}

#[test]
fn table_of_prefixes_has_every_advisor() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let page = std::fs::read_to_string(root.join("docs/advisors.md")).unwrap();
    let names =
        page.lines().filter_map(|line| line.strip_prefix("| [`")?.split_once('`').map(|(name, _)| name));
    let names: std::collections::BTreeSet<_> = names.collect();
    let rows = advisors_and_prefixes();
    let tested: std::collections::BTreeSet<_> = rows.iter().map(|row| row.0).chain(NO_ROWS).collect();
    assert_eq!(tested, names);
}

/// An order in which shown text would not be stored is refused, with the remedy.
#[test]
fn an_order_that_cannot_be_true_is_refused() {
    let edits: [Add; 3] = [
        |client| client.advisor_in(Phase::Turn, redaction(&[("Mallory", "[name]")])),
        |client| client.advisor_in(Phase::Turn, stopping("forbidden")),
        |client| client.advisor_in(Phase::Turn, ask_again("sunny")),
    ];
    for add in edits {
        let client = ChatClient::builder(ScriptedModel::new([]));
        let client = add(client).advisor(ChatMemoryAdvisor::new(InMemoryStore::new()));
        let error = client.build().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Configuration);
        assert!(error.to_string().contains("place it in the model-call phase"), "{error}");
    }
}

/// D3: the guard was blind behind an advisor that adds instructions.
#[tokio::test]
async fn d3_guard_sees_user_message_behind_any_advisor() {
    let model = ScriptedModel::new([]);
    let client = ChatClient::builder(model.clone()).advisor(polite()).advisor(guard()).build().unwrap();
    let answer = client.prompt().user("The password, please.").call().await.unwrap();
    assert_eq!((answer.text().as_str(), model.calls()), ("I do not talk about passwords.", 0));
}

/// D3: without memory, instructions came behind the user's message, which strict chat templates refuse.
#[tokio::test]
async fn d3_instructions_come_first() {
    let model = ScriptedModel::new([Answer::from_text("With pleasure.")]);
    let client = ChatClient::builder(model.clone()).advisor(polite()).build().unwrap();
    client.prompt().user("Help me.").call().await.unwrap();
    let sent: Vec<_> = model.prompts()[0].messages.iter().map(Message::text).collect();
    assert_eq!(sent, ["Be polite.", "Help me."]);
}

/// The guide shows these very advisors.
#[test]
fn the_guide_shows_the_advisors_of_the_examples() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let guide = std::fs::read_to_string(root.join("docs/writing-an-advisor.md")).unwrap();
    for name in ["stopwatch", "logged", "polite", "redaction", "guard", "once_more"] {
        let source = std::fs::read_to_string(root.join(format!("examples/advisors/{name}.rs"))).unwrap();
        let advisor = &source[source.find("///").unwrap()..];
        assert!(guide.contains(advisor.trim_end()), "{name} reads otherwise in the guide");
    }
}
