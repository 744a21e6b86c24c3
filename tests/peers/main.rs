//! Whole conversations with real peers over HTTP: llama.cpp, and the mocks of aimock.
//!
//! `.ci/run` starts both. `ADVISOR_LLAMA_URL` and `ADVISOR_AIMOCK_URL` name running ones, such as
//! `http://127.0.0.1:8080`. Without them the tests are skipped, which they report; with `ADVISOR_REQUIRE_LLAMA=1` and
//! `ADVISOR_REQUIRE_AIMOCK=1` they fail.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test fails by panicking and says what it left out"
)]

mod aimock;
mod chain;
mod llama;

use std::io::Write as _;

/// Returns the address of a peer such as `LLAMA`, from `ADVISOR_LLAMA_URL`; or reports that its tests are left out.
fn address(peer: &str) -> Option<String> {
    let (url_variable, required_variable) =
        (format!("ADVISOR_{peer}_URL"), format!("ADVISOR_REQUIRE_{peer}"));
    let url = std::env::var(&url_variable).ok().filter(|url| !url.is_empty());
    if url.is_none() {
        let required = std::env::var(&required_variable).is_ok_and(|required| required == "1");
        assert!(!required, "{required_variable}=1, but {url_variable} names no server");
        // Not `eprintln!`, which the test harness keeps to itself when the test passes.
        let _ = writeln!(std::io::stderr(), "left out: {url_variable} names no server");
    }
    url
}
