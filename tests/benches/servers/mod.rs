//! Servers that a benchmark needs.

/// The server that this variable names. A store whose server is not named is left out, in words; with
/// `ADVISOR_REQUIRE_SERVERS=1` that is a failure.
pub(crate) fn server(variable: &str) -> Option<String> {
    let url = std::env::var(variable).ok().filter(|url| !url.is_empty());
    let required = std::env::var("ADVISOR_REQUIRE_SERVERS").is_ok_and(|required| required == "1");
    assert!(url.is_some() || !required, "ADVISOR_REQUIRE_SERVERS=1, but {variable} names no server");
    if url.is_none() {
        println!("left out: {variable} names no server");
    }
    url
}
