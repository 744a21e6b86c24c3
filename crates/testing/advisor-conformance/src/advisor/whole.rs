//! Clauses about the form of an answer, and about the request to the model.

use advisor_core::{Block, ChatResponse, Chunk, ErrorKind, FallbackModel, Message, Role};

use super::inside::Inside;
use super::live::first_difference;
use super::reading::{Reader, read, request};
use super::script::{Cut, End, Pace, Script};
use super::subject::{Clause, Declaration, Subject};
use crate::run::{Run, fold};
use crate::sent::is_sent;

const WELL_FORMED: Clause = Clause {
    law: "law S3 or S4",
    rule: "the chunks of an answer are well-formed, and its response has the shown blocks",
    remedy: "change chunks with `edit_text` or `edit_with`, which keep blocks and response consistent; \
             announce a second attempt with `Chunk::AttemptRestarted`",
};
const CONSERVES: Clause = Clause {
    law: "law S4",
    rule: "nothing of the model's answer is lost, doubled, reordered or changed",
    remedy: "pass every chunk on, of any kind; otherwise declare `EditsAnswers`, `AnswersItself` or `AsksAgain`",
};
const RESTARTS: Clause = Clause {
    law: "law S4",
    rule: "nothing of a void attempt is in the answer that follows",
    remedy: "pass `Chunk::AttemptRestarted` on, and forget the held-back text and other state of its round",
};
const PARTIAL: Clause = Clause {
    law: "law S4",
    rule: "the partial answer of an error has the text that was shown",
    remedy: "pass the error on as it is, or set the shown answer with `Error::or_partial`",
};
const ASKS: Clause = Clause {
    law: "law M2",
    rule: "the model receives the messages of the request",
    remedy: "add instructions with `with_system`, context with `with_context`, and other messages as `ephemeral`; otherwise \
             declare `EditsRequests`, `AnswersItself` or `AsksAgain`",
};

/// The chunks of an answer are well-formed, and fold to its response. Unless edits are declared, both are the model's.
pub async fn law_s3_s4_chunks_fold_to_the_response(subject: &Subject) {
    for script in Script::all(subject) {
        for pace in Pace::READY {
            for reader in Reader::ALL {
                let inside = Inside::new(subject, script.whole(Cut::Every(5), pace));
                let run = inside.read(subject, reader).await;
                check_form(subject, &run, script.name);
                if !subject.declares(Declaration::EditsAnswers) && subject.asks_once() {
                    check_conserved(subject, &inside, &run, script.name);
                }
            }
        }
    }
}

/// A restart of the answer inside leaves nothing of the void attempt: the response is that of the second attempt alone.
pub async fn law_s3_s4_restarted_answers_are_well_formed(subject: &Subject) {
    for script in Script::all(subject) {
        let deltas = script.deltas(Cut::Every(5));
        let second = || Inside::new(subject, script.whole(Cut::Every(5), Pace::OneByOne));
        let alone = second().read(subject, Reader::Advisor).await;
        for void in (1..=deltas.len()).filter_map(|until| deltas.get(..until)) {
            let first = script.answer(void, Pace::OneByOne, &End::Fails(ErrorKind::Connection));
            let model = FallbackModel::new(Inside::new(subject, first)).with_fallback(second());
            let chain = subject.chain(model.with_restart_after_output());
            let run = read(subject, Reader::Advisor.open(&chain, request(subject, "one"))).await;
            check_form(subject, &run, "an answer after a void attempt");
            let (alone, restarted) = (contents(&alone), contents(&run));
            subject.breaks_if(alone != restarted, RESTARTS, || {
                format!("{alone:?} without a void attempt, and {restarted:?} after one, of {}", script.name)
            });
        }
    }
}

/// Returns the contents of the blocks in the response; none after an error. Ids may differ from attempt to attempt.
fn contents(run: &Run) -> Vec<String> {
    let content = |block: &Block| match block.as_tool_call() {
        Some(call) => format!("{}({})", call.name, call.arguments),
        None => format!("{:?}", block.content()),
    };
    run.end.iter().flat_map(|response| response.message().blocks()).map(content).collect()
}

/// The model receives the messages of the request, apart from instructions, ephemeral messages, and context before a
/// message of the user.
pub async fn law_m2_model_receives_the_messages(subject: &Subject) {
    if subject.declares(Declaration::EditsRequests) || !subject.asks_once() {
        return;
    }
    let script = Script::text(subject);
    let inside = Inside::new(subject, script.whole(Cut::Whole, Pace::AtOnce));
    let asked = request(subject, "one");
    let sent = asked.messages.clone();
    let items = Reader::Advisor.open(&subject.chain(inside.clone()), asked);
    read(subject, items).await;
    let received: Vec<Vec<_>> = inside.prompts().iter().map(|prompt| said(prompt.messages.iter())).collect();
    let sent = said(sent.iter());
    let is_same = |received: &Vec<Message>| {
        received.len() == sent.len()
            && received.iter().zip(&sent).all(|(received, sent)| is_sent(received, sent))
    };
    subject.breaks_if(received.len() != 1 || !received.iter().all(is_same), ASKS, || {
        format!("the requests to the model have {received:?}")
    });
}

/// Returns the messages of a conversation: all but instructions and ephemeral ones.
pub(super) fn said<'a>(messages: impl Iterator<Item = &'a Message>) -> Vec<Message> {
    messages.filter(|message| message.role() != Role::System && !message.is_ephemeral()).cloned().collect()
}

/// Checks that the chunks of an answer or a turn are well-formed.
pub(super) fn check_chunks(subject: &Subject, run: &Run, what: &str) {
    if let Some(violation) = run.violation() {
        subject.breaks(WELL_FORMED, format_args!("{violation}, in {what}"));
    }
}

/// Checks an answer against laws S3 and S4.
pub(super) fn check_form(subject: &Subject, run: &Run, what: &str) {
    check_chunks(subject, run, what);
    if let Err(error) = &run.end {
        let partial = error.partial().map(ChatResponse::text).unwrap_or_default();
        check_partial(subject, &run.chunks, &partial, what);
    }
}

fn check_partial(subject: &Subject, chunks: &[Chunk], partial: &str, what: &str) {
    // An answer that is void was rejected as a whole.
    if matches!(chunks.last(), Some(Chunk::AttemptRestarted { .. })) {
        return;
    }
    let shown = shown_text(chunks);
    let is_held_back = subject.declares(Declaration::HoldsBackAnswers) && partial.starts_with(&shown);
    subject.breaks_if(shown != partial && !is_held_back, PARTIAL, || {
        format!("{shown:?} was shown, and the partial answer has {partial:?}, in {what}")
    });
}

/// Returns the text of the last round that was shown.
fn shown_text(chunks: &[Chunk]) -> String {
    let last = chunks.iter().map(Chunk::round).max().unwrap_or_default();
    fold(chunks).text(last)
}

fn check_conserved(subject: &Subject, inside: &Inside, run: &Run, what: &str) {
    let asked = inside.prompts().len();
    subject.breaks_if(asked != 1, CONSERVES, || format!("the model was asked {asked} times, in {what}"));
    if let Err(error) = &run.end {
        subject.breaks(CONSERVES, format_args!("an error of kind {:?}: {error}, in {what}", error.kind()));
    }
    let (mut seen, mut out) = (inside.seen(), run.chunks.clone());
    if !subject.passes_chunks() {
        // Held-back blocks may come out after later ones.
        seen.sort_by_key(Chunk::block);
        out.sort_by_key(Chunk::block);
        (seen, out) = (joined(seen), joined(out));
    }
    if let Some((seen, out)) = first_difference(&seen, &out) {
        subject.breaks(CONSERVES, format_args!("in place of {seen} of the model, {out} came out, in {what}"));
    }
}

/// Returns the chunks without the deltas of blocks. Their texts are compared by the chunks that close the blocks.
fn joined(chunks: Vec<Chunk>) -> Vec<Chunk> {
    chunks.into_iter().filter(|chunk| !matches!(chunk, Chunk::Delta { .. })).collect()
}
