//! Clauses about the time at which chunks come, and about connections.

use advisor_core::{Chunk, FinishReason, Message};

use super::family::AnswerPart::{self, End, Finish, Text};
use super::family::WireFamily;
use super::run::{chain, next_text, question, read, reply, request, server, within, written};
use crate::run::Run;
use advisor_testkit::{Gate, ReplayServer};

const STOP: AnswerPart = Finish(FinishReason::Stop);

/// Returns the offset at the end of each part's bytes.
fn ends(family: &dyn WireFamily, parts: &[AnswerPart]) -> Vec<usize> {
    let written = written(family, parts).expect("every format can express text");
    written
        .iter()
        .scan(0, |end, bytes| {
            *end += bytes.len();
            Some(*end)
        })
        .collect()
}

/// Law S2: a piece of text is shown while the server has not sent the next one.
pub async fn law_s2_pieces_are_shown_as_they_arrive(family: &dyn WireFamily) {
    let pieces = ["One", " two", " three", " four"];
    let parts: Vec<_> = pieces.map(Text).into_iter().chain([STOP, End]).collect();
    let ends = ends(family, &parts);
    let gates = pieces.map(|_| Gate::new());
    let reply = gates
        .iter()
        .zip(&ends)
        .fold(reply(family, &parts), |reply, (gate, end)| reply.gate_after(*end, gate.clone()));
    let server = server([reply]).await;
    let chain = chain(family, &server);
    let mut stream = within("the first piece", chain.next_stream(question())).await.expect("an answer");
    for (piece, gate) in pieces.into_iter().zip(gates) {
        assert_eq!(next_text(&mut stream).await, piece);
        within("the server", gate.reached()).await;
        gate.release();
    }
    let run = within("the end of the answer", Run::read(stream)).await;
    run.expect("law S1: an end").end.expect("no error");
}

/// Law S7: a model answers several requests at once, each with its own answer.
pub async fn law_s7_two_answers_at_once_do_not_mix(family: &dyn WireFamily) {
    let replies = ["alpha", "beta"].map(|word| (word, reply(family, &[Text(word), STOP, End])));
    let answer = move |received: &advisor_testkit::ReceivedRequest| {
        let body = String::from_utf8_lossy(&received.body).into_owned();
        let reply = replies.iter().find(|(word, _)| body.contains(word));
        reply.map_or_else(|| advisor_testkit::Reply::status(400), |(_, reply)| reply.clone().split_every(1))
    };
    let server = ReplayServer::start_with(answer).await.expect("a port of 127.0.0.1");
    let chain = chain(family, &server);
    let ask =
        async |word: &'static str| read(&chain, request(Message::user(word))).await.end.expect("an answer");
    let (alpha, beta) = futures::join!(ask("alpha"), ask("beta"));
    assert_eq!((alpha.text().as_str(), beta.text().as_str()), ("alpha", "beta"));
}

/// Law R2: dropping an answer closes its connection, although the server would send more.
pub async fn law_r2_dropped_answer_closes_its_connection(family: &dyn WireFamily) {
    let parts = [Text("One"), Text(" two"), STOP, End];
    let first = ends(family, &parts)[0];
    let server = server([reply(family, &parts).stall_after(first)]).await;
    let chain = chain(family, &server);
    let mut stream = within("the first piece", chain.next_stream(question())).await.expect("an answer");
    next_text(&mut stream).await;
    drop(stream);
    within("the connection's end", server.disconnected()).await;
}

/// Law R2: a complete answer leaves at most one idle connection, which ends with the model.
pub async fn law_r2_complete_answer_leaves_no_connection_in_use(family: &dyn WireFamily) {
    let parts = [Text("Hi"), STOP, End];
    let server = server([reply(family, &parts), reply(family, &parts)]).await;
    let chain = chain(family, &server);
    for _ in 0..2 {
        let run = read(&chain, question()).await;
        assert_eq!(run.end.expect("an answer").text(), "Hi");
        assert!(!run.chunks.iter().any(|chunk| matches!(chunk, Chunk::AttemptRestarted { .. })));
    }
    within("the end of the second reply", server.until(|counts| counts.replies == 2)).await;
    assert!(server.counts().open <= 1, "{:?}", server.counts());
    drop(chain);
    within("the last connection's end", server.until(|counts| counts.open == 0)).await;
}
