//! What a streamed chunk costs, from the bytes of the network to the reader: instructions and allocations.
//!
//! Counts, not seconds: they are the same on a busy machine. Run with `cargo bench -p advisor-tests`. A count
//! is the difference between a long and a shorter stream, over the number of chunks between them, so that what
//! a stream costs once is left out. Instructions are counted by valgrind, where it is installed; with
//! `ADVISOR_REQUIRE_VALGRIND=1` it is a failure if they cannot be.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a benchmark prints its result and fails by panicking"
)]

use std::fmt::Write;
use std::process::{Command, ExitCode};

use advisor_chain::openai::transport::{ByteStream, Transport, TransportError};
use advisor_chain::{
    AdvisorChain, ChatRequest, Chunk, Message, OpenAiModel, StreamAdvisor, ToolCallAdvisor, async_trait,
    from_fn,
};
use advisor_testkit::split;
use futures::StreamExt;
use http::{Request, Response};

/// Chunks of the shorter and of the longer stream.
const SHORT: usize = 1000;
const LONG: usize = 3000;
/// Bytes of one read: about sixteen chunks.
const READ: usize = 4496;
/// Advisors that look at every chunk.
const ADVISORS: usize = 5;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    if arguments.next().as_deref() == Some("--run") {
        let case = arguments.next().unwrap();
        let chunks = arguments.next().unwrap().parse().unwrap();
        run(&case, chunks);
        return ExitCode::SUCCESS;
    }
    println!("per chunk, {READ} bytes a read, whole path: transport, decoder, aggregator, tool loop, reader");
    for (case, what) in [
        ("0", "no advisor that looks"),
        ("5", "five advisors that look"),
        ("whole", "turn, memory, loop, three that look"),
    ] {
        let allocations = per_chunk(allocations(case, LONG), allocations(case, SHORT));
        let instructions = match (instructions(case, LONG), instructions(case, SHORT)) {
            (Some(long), Some(short)) => format!("{:.0} instructions", per_chunk(long, short)),
            _ if std::env::var("ADVISOR_REQUIRE_VALGRIND").is_ok_and(|required| required == "1") => {
                eprintln!("ADVISOR_REQUIRE_VALGRIND=1, but valgrind is not installed or gave no count");
                return ExitCode::FAILURE;
            }
            _ => String::from("instructions not counted: valgrind is not installed or gave no count"),
        };
        println!("{what:<26} {instructions}, {allocations:.3} allocations");
    }
    ExitCode::SUCCESS
}

#[allow(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
fn per_chunk(long: u64, short: u64) -> f64 {
    long.saturating_sub(short) as f64 / (LONG - SHORT) as f64
}

fn allocations(case: &str, chunks: usize) -> u64 {
    // What is made once per process is not counted.
    run(case, 10);
    let body = body(chunks);
    allocation_counter::measure(|| run_body(case, body.clone(), chunks)).count_total
}

fn instructions(case: &str, chunks: usize) -> Option<u64> {
    let program = std::env::current_exe().unwrap();
    let output = Command::new("valgrind")
        .args([
            "--tool=callgrind",
            "--callgrind-out-file=/dev/null",
            "--toggle-collect=*per_chunk::run_body*",
        ])
        .arg(program)
        .args(["--run", case, &chunks.to_string()])
        .output()
        .ok()?;
    let report = String::from_utf8_lossy(&output.stderr);
    let line = report.lines().find_map(|line| line.split_once("Collected : "))?;
    line.1.trim().parse().ok()
}

fn run(case: &str, chunks: usize) {
    run_body(case, body(chunks), chunks);
}

#[inline(never)]
fn run_body(case: &str, body: Vec<bytes::Bytes>, chunks: usize) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let model = OpenAiModel::new("m").with_base_url("http://127.0.0.1:1/v1").with_transport(InMemory(body));
    if case == "whole" {
        return run_whole(model, chunks);
    }
    let looking = if case == "0" { 0 } else { ADVISORS };
    let builder = (0..looking).fold(AdvisorChain::builder(model), |builder, _| builder.advisor(counting()));
    let chain = builder.advisor(ToolCallAdvisor::new()).build().unwrap();
    runtime.block_on(async {
        let mut stream = chain.next_stream(ChatRequest::new(Message::user("?"))).await.unwrap();
        let mut texts = 0;
        while let Some(chunk) = stream.next().await {
            texts += usize::from(chunk.unwrap().text().is_some());
        }
        assert_eq!(texts, chunks);
    });
}

fn run_whole(model: OpenAiModel, chunks: usize) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let builder = advisor_chain::ChatClient::builder(model);
    let builder = (0..3).fold(builder, |builder, _| builder.advisor(counting()));
    let memory = advisor_chain::ChatMemoryAdvisor::new(advisor_chain::InMemoryStore::new());
    let client = builder.advisor(memory).advisor(ToolCallAdvisor::new()).build().unwrap();
    runtime.block_on(async {
        let mut stream = client
            .prompt()
            .user("?")
            .conversation(advisor_chain::ConversationKey::new("c").unwrap())
            .stream();
        let mut texts = 0;
        while let Some(chunk) = stream.next().await {
            texts += usize::from(chunk.unwrap().text().is_some());
        }
        assert_eq!(texts, chunks);
    });
}

/// An advisor that looks at every chunk.
fn counting() -> impl StreamAdvisor {
    from_fn("counting", |request: ChatRequest, next: AdvisorChain| async move {
        let mut texts = 0_usize;
        Ok(next.next_stream(request).await?.inspect_chunks(move |chunk: &Chunk| {
            texts += usize::from(chunk.text().is_some());
            std::hint::black_box(texts);
        }))
    })
}

/// Answers with a body that is already here.
struct InMemory(Vec<bytes::Bytes>);

#[async_trait]
impl Transport for InMemory {
    async fn send(&self, _: Request<bytes::Bytes>) -> Result<Response<ByteStream>, TransportError> {
        let pieces = futures::stream::iter(self.0.clone().into_iter().map(Ok));
        let response = Response::builder().header("content-type", "text/event-stream");
        Ok(response.body(pieces.boxed() as ByteStream).unwrap())
    }
}

/// A stream as OpenAI sends it: about 280 bytes a chunk, one word of text in each.
fn body(chunks: usize) -> Vec<bytes::Bytes> {
    let mut body = String::new();
    let mut event = |delta: &str, finish: &str| {
        write!(
            body,
            "data: {{\"id\":\"chatcmpl-B9MHDbslfkBeAs8l4bebGdFOJ6PeG\",\"object\":\"chat.completion.chunk\",\"created\":1741570283,\
             \"model\":\"gpt-4o-2024-08-06\",\"service_tier\":\"default\",\"system_fingerprint\":\"fp_fc9f1d7035\",\
             \"choices\":[{{\"index\":0,\"delta\":{delta},\"logprobs\":null,\"finish_reason\":{finish}}}],\"usage\":null}}\n\n"
        )
        .unwrap();
    };
    event(r#"{"role":"assistant","content":"","refusal":null}"#, "null");
    let words = [" the", " fjord", ",", " however", " is", " deep", ".\\n", " Grüße"];
    for word in words.iter().cycle().take(chunks) {
        event(&format!("{{\"content\":\"{word}\"}}"), "null");
    }
    event("{}", "\"stop\"");
    body.push_str("data: [DONE]\n\n");
    let cuts: Vec<_> = (1..).map(|read| read * READ).take_while(|cut| *cut < body.len()).collect();
    split::pieces(body.as_bytes(), &cuts).into_iter().map(bytes::Bytes::copy_from_slice).collect()
}
