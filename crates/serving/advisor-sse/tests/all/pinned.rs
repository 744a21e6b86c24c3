//! The exact bytes of three turns in each protocol, with fixed ids and times.
//!
//! The files are the documented forms of the protocols. Clients depend on them, so users see each change here.

use std::collections::BTreeSet;
use std::path::PathBuf;

use advisor_core::{Delta, FinishReason, Usage};
use advisor_sse::Frames;
use advisor_testkit::Answer;

use crate::table::{encode, protocols};
use crate::turns::{Turn, play};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

/// Returns token counts: of the request, of it read from and written to a cache, of the answer, and of its reasoning.
fn usage(input: u64, read: u64, written: u64, output: u64, reasoning: u64) -> Delta {
    let mut usage = Usage::new(input, output);
    usage.cached_input_tokens = Some(read);
    usage.cache_write_tokens = Some(written);
    usage.reasoning_tokens = Some(reasoning);
    Delta::usage(usage)
}

/// A turn in which the server runs a tool, one that leaves a call to the client, and one whose answer is cut.
async fn turns() -> [(&'static str, Turn); 3] {
    let look = Answer::new()
        .reasoning("I need ")
        .reasoning("the weather.")
        .text("Let me look.")
        .call("c1", "weather", r#"{"city":"Oslo"}"#)
        .delta(usage(100, 60, 30, 20, 8))
        .done();
    let answer = Answer::new().text("It is ").text("sunny.").delta(usage(150, 90, 40, 10, 0)).done();
    let ask = Answer::new()
        .text("Which city?")
        .call("c1", "ask_user", r#"{"city":""}"#)
        .delta(usage(100, 60, 30, 20, 0))
        .done();
    let cut =
        Answer::new().text("It is").delta(usage(100, 60, 30, 20, 0)).finish(FinishReason::Length).done();
    [
        ("server_tool", play([look, answer]).await),
        ("client_call", play([ask]).await),
        ("cut_answer", play([cut]).await),
    ]
}

#[tokio::test]
async fn turns_have_the_documented_bytes() {
    let mut checked = BTreeSet::new();
    for (name, turn) in turns().await {
        for (protocol, encoder, _) in protocols() {
            let stream = encode(encoder(), Frames::new(), &turn);
            let path = folder().join(name).join(format!("{}.txt", protocol.to_lowercase().replace(' ', "_")));
            let expected = std::fs::read_to_string(&path).unwrap_or_default();
            assert_eq!(stream, expected, "{}:\n{stream}", path.display());
            checked.insert(path);
        }
    }
    let folders = std::fs::read_dir(folder()).unwrap();
    let files = folders.flat_map(|folder| std::fs::read_dir(folder.unwrap().path()).unwrap());
    assert_eq!(files.map(|file| file.unwrap().path()).collect::<BTreeSet<_>>(), checked);
}
