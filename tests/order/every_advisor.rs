//! Tests all advisors of the guide, the examples and the documentation in one chain, in every order, and guards,
//! a budget, a retry, a rate limit and a cache among them. The shown, the returned and the stored answers are equal.

use advisor_chain::advisors::{Budget, OnlyTools, RateLimit, ReReading, Retry, ToolSearch};
use advisor_chain::chain::Backoff;
use advisor_chain::stream_policy::{Guard, LetterCase};
use advisor_examples::advisors::{
    Cache, Logged, Permits, Stopwatch, ask_again, first_text, guard, once_more, polite, redaction, retrieval,
    stopping, with_fallback,
};
use advisor_testkit::{ReceivedPrompt, WordEmbeddings};
use advisor_tests::lines::transcript_lines;
use advisor_tests::prelude::*;
use advisor_tests::tools::tool;

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
const INNER: [Add; 14] = [
    |client| client.advisor(redaction(&[("Mallory", "[name]")])),
    |client| client.advisor(stopping("forbidden")),
    |client| client.advisor(Cache::default()),
    |client| client.advisor(once_more()),
    |client| client.advisor(ask_again("sunny")),
    // It holds back text of these answers, and matches none.
    |client| client.advisor(Guard::for_words(["Mallet", "sunny day"], LetterCase::Exact).on_output()),
    |client| client.advisor(Budget::for_each_turn().with_tokens(1_000).ignoring_unknown_cost()),
    |client| {
        let at_once =
            Backoff { retries: 1, first: Duration::ZERO, longest: Duration::ZERO, ..Backoff::default() };
        client.advisor(Retry { backoff: at_once })
    },
    |client| {
        client.advisor(RateLimit::for_all().with_calls(1_000, Duration::from_secs(1)).with_concurrency(1))
    },
    |client| client.advisor(ResponseCache::default()),
    |client| client.advisor(ResponseCache::default().with_similar(WordEmbeddings::new(), 0.999)),
    |client| client.advisor(OnlyTools::new(["look", "search_tools"])),
    |client| client.advisor(ToolSearch::new(&ToolSet::new()).unwrap()),
    |client| client.advisor(ReReading),
];

/// The number of advisors that are tested in every order. Those after them are tested at each place.
const OUTER_ORDERS: usize = 6;
const INNER_ORDERS: usize = 5;

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
        let mut client = ChatClient::builder(model(kind))
            .advisor(ToolCallAdvisor::builder().streaming(mode).build().unwrap())
            .tool(tool("look", "sunny"));
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
        let mut fold = ChunkFold::default();
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
        let told = transcript_lines(&response.transcript);
        let transcript = self.memory.transcript(&key).await.unwrap();
        assert_eq!(validate_transcript(&transcript), [], "{}", self.name);
        let remembered = transcript_lines(transcript.iter().skip(before));
        assert_eq!(told, remembered, "{}: told is remembered", self.name);
        let answers = response.transcript.iter().filter(|message| message.role() == Role::Assistant);
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
async fn shown_equals_remembered_for_all_model_advisor_orders() {
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
async fn shown_equals_remembered_for_all_turn_advisor_orders() {
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

/// An order in which shown text would not be stored is refused, with the remedy.
#[test]
fn an_order_that_cannot_be_true_is_refused() {
    let edits: [Add; 6] = [
        |client| client.advisor_in(Phase::Turn, redaction(&[("Mallory", "[name]")])),
        |client| client.advisor_in(Phase::Turn, stopping("forbidden")),
        |client| client.advisor_in(Phase::Turn, ask_again("sunny")),
        |client| client.advisor_in(Phase::Turn, Guard::for_words(["secret"], LetterCase::Ignore).on_output()),
        |client| client.advisor_in(Phase::Turn, BlockPolicy::new(async |_| Ok(Verdict::Allow))),
        |client| client.advisor_in(Phase::Turn, ResponseCache::default()),
    ];
    for add in edits {
        let client = ChatClient::builder(ScriptedModel::new([]));
        let client = add(client).advisor(ChatMemoryAdvisor::new(InMemoryStore::new()));
        let error = client.build().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Configuration);
        assert!(error.to_string().contains("place it in the model-call phase"), "{error}");
    }
}

/// The guard was blind behind an advisor that adds instructions.
#[tokio::test]
async fn guard_sees_user_message_behind_any_advisor() {
    let model = ScriptedModel::new([]);
    let client = ChatClient::builder(model.clone()).advisor(polite()).advisor(guard()).build().unwrap();
    let answer = client.prompt().user("The password, please.").call().await.unwrap();
    assert_eq!((answer.text().as_str(), model.calls()), ("I do not talk about passwords.", 0));
}

/// Without memory, instructions came behind the user's message, which strict chat templates refuse.
#[tokio::test]
async fn instructions_come_first() {
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
