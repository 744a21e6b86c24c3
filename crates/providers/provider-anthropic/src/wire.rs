//! Names of the Messages API: hosts, keys, and the formats of data that goes back.

use advisor_core::Text;
use serde_json::Value;

/// The format name of provider data and opaque blocks of the Messages API.
pub(crate) const FORMAT: &str = "anthropic-messages";
/// The hosts that accept the signatures and encrypted content of one another.
const ANTHROPIC_HOSTS: [&str; 2] = ["anthropic.com", "azure.com"];
/// The key of a signature in the provider data of a reasoning block.
pub(crate) const SIGNATURE: &str = "signature";
/// The key of a citation in the provider data of a text block.
pub(crate) const CITATION: &str = "citation";
/// The key of the container in which the server ran code, in the provider data of the last block.
pub(crate) const CONTAINER: &str = "container";
/// The key of the caller of a call: the model, or a program that the server runs.
pub(crate) const CALLER: &str = "caller";
/// The key of the reason for a refusal, in the provider data of the last block.
pub(crate) const STOP_DETAILS: &str = "stop_details";
/// Checks whether Anthropic's own service has this host.
pub(crate) fn is_anthropic(host: &str) -> bool {
    let host = host.to_ascii_lowercase();
    ANTHROPIC_HOSTS.iter().any(|own| host == *own || host.ends_with(&format!(".{own}")))
}

/// Returns the format name of data from this host. A server refuses the signatures of another one, so the name
/// contains the host, except for Anthropic's own service.
pub(crate) fn format_of(host: &str) -> Text {
    if is_anthropic(host) { FORMAT.into() } else { format!("{FORMAT}@{}", host.to_ascii_lowercase()).into() }
}

/// Returns the text under `key`, unless it is empty.
pub(crate) fn text<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object.get(key)?.as_str().filter(|text| !text.is_empty())
}
