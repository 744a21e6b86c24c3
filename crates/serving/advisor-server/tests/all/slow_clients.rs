//! Clients that read slower than a turn answers.

use std::sync::Arc;

use advisor_testkit::{Answer, ScriptedModel};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::watch;

use crate::connection::{connect, read_until, served};
use crate::setting::{json_of, setting_of};

/// The chunks of an answer. All of them fill more than the buffers of a connection.
const CHUNKS: usize = 160;

/// The chunks that the server keeps.
const KEPT: usize = 8;

/// The number of a chunk, which is its last word.
fn mark(number: usize) -> String {
    format!("chunk-{number:03}.")
}

/// Returns an answer whose chunks wait until their number is allowed.
fn paced(allowed: &watch::Sender<usize>) -> Answer {
    let chunks = (0..CHUNKS).map(|number| (number, allowed.subscribe()));
    let answer = chunks.fold(Answer::new(), |answer, (number, mut allowed)| {
        let wait = async move { drop(allowed.wait_for(|allowed| *allowed >= number).await) };
        answer.wait(wait).text(format!("{} {}", "x".repeat(64 << 10), mark(number)))
    });
    answer.done()
}

/// A client that stops reading loses the rest of its answer: the server keeps no more for it than its bound. Readers of
/// the same turn, other turns, and memory get everything in the meantime.
#[tokio::test]
async fn law_r1_slow_client_gets_error_and_delays_no_other() {
    let allowed = Arc::new(watch::Sender::new(0));
    let setting = setting_of(ScriptedModel::from_fn({
        let allowed = Arc::clone(&allowed);
        move |_| paced(&allowed)
    }));
    let setting = setting.limited(|limits| limits.kept_chunks = KEPT);
    let (address, serving) = served(setting.server.clone()).await;
    let mut slow = connect(address, "/api/chat", r#"{"message":"Hi","conversation":"c1"}"#).await;
    read_until(&mut slow, "200 OK").await;
    let body = r#"{"model":"chain","stream":true,"messages":[{"role":"user","content":"Hi"}]}"#;
    let mut of_openai = connect(address, "/v1/chat/completions", body).await;
    read_until(&mut of_openai, "200 OK").await;

    let mut same = TcpStream::connect(address).await.unwrap();
    same.write_all(b"GET /api/conversations/c1/stream HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    let mut other = connect(address, "/api/chat", r#"{"message":"Hi","conversation":"c2"}"#).await;
    for number in 0..CHUNKS - 1 {
        read_until(&mut same, &mark(number)).await;
        read_until(&mut other, &mark(number)).await;
        allowed.send_replace(number + 1);
    }
    for fast in [&mut same, &mut other] {
        assert!(read_until(fast, "[DONE]").await.contains(&mark(CHUNKS - 1)));
    }
    for conversation in ["c1", "c2"] {
        let read = json_of(setting.get(&format!("/api/conversations/{conversation}")).await).await;
        assert!(read["messages"][1]["text"].as_str().unwrap().ends_with(&mark(CHUNKS - 1)));
    }

    let rest = read_until(&mut slow, "[DONE]").await;
    assert!(rest.contains("the connection was too slow, read the conversation"));
    assert!(read_until(&mut of_openai, "slow_reader").await.contains("the connection was too slow"));
    let received = (0..CHUNKS).take_while(|number| rest.contains(&mark(*number))).count();
    assert!(received < CHUNKS / 2 && !rest.contains(&mark(CHUNKS - 1)), "{received} chunks were kept for it");
    serving.abort();
}
