//! Whole conversations with real peers: llama.cpp and the mocks of aimock over HTTP, and the reference server of the
//! Model Context Protocol.
//!
//! `.ci/run` starts or installs them. `ADVISOR_LLAMA_URL` and `ADVISOR_AIMOCK_URL` name running ones, such as
//! `http://127.0.0.1:8080`, and `ADVISOR_MCP_FOLDER` a folder with the packages of `mcp/package.json`. Without them
//! the tests are skipped, which they report; with `ADVISOR_REQUIRE_LLAMA=1`, `ADVISOR_REQUIRE_AIMOCK=1` and
//! `ADVISOR_REQUIRE_MCP=1` they fail.

mod aimock;
mod chain;
mod llama;
mod mcp;

use std::io::Write as _;

/// Returns the address of a peer such as `LLAMA`, from `ADVISOR_LLAMA_URL`; or reports that its tests are left out.
fn address(peer: &str) -> Option<String> {
    variable(peer, "URL")
}

/// Returns the variable of a peer, or reports that its tests are left out.
fn variable(peer: &str, kind: &str) -> Option<String> {
    let (variable, required_variable) = (format!("ADVISOR_{peer}_{kind}"), format!("ADVISOR_REQUIRE_{peer}"));
    let value = std::env::var(&variable).ok().filter(|value| !value.is_empty());
    if value.is_none() {
        let required = std::env::var(&required_variable).is_ok_and(|required| required == "1");
        assert!(!required, "{required_variable}=1, but {variable} names no server");
        // Not `eprintln!`, which the test harness keeps to itself when the test passes.
        let _ = writeln!(std::io::stderr(), "left out: {variable} names no server");
    }
    value
}
