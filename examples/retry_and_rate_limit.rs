//! A retry around a rate limit: a server that is busy is asked again after the delay that it asks for. Each attempt
//! counts for the limit, so the second attempt waits for the next minute. The clock is virtual, so nobody waits.
#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use std::time::Duration;

use advisor_chain::advisors::{RateLimit, Retry};
use advisor_chain::chain::Backoff;
use advisor_chain::{Error, ErrorKind, client};
use advisor_testkit::{Answer, ScriptedModel};
use tokio::time::Instant;

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() -> advisor_chain::Result<()> {
    let busy = ErrorKind::RateLimited { retry_after: Some(Duration::from_secs(3)) };
    let model = ScriptedModel::new([
        Answer::from_text("One."),
        Answer::refused(Error::new(busy, "the server is busy")),
        Answer::from_text("Two."),
        Answer::from_text("Three."),
    ]);
    let client = client(model)
        .advisor(Retry { backoff: Backoff { retries: 2, ..Backoff::default() } })
        .advisor(RateLimit::for_all().with_calls(2, Duration::from_secs(60)).with_concurrency(1))
        .build()?;
    println!("{}", client.explain());

    let begin = Instant::now();
    for question in ["first", "second", "third"] {
        let answer = client.prompt().user(question).call().await?;
        println!("{:>3} s: {}", begin.elapsed().as_secs(), answer.text());
    }
    Ok(())
}
