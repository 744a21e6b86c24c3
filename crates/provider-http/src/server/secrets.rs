//! The secrets in a server's settings.

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use percent_encoding::percent_decode_str;
use secrecy::{ExposeSecret, SecretString};

use crate::redaction::Redaction;

/// The shortest part of a path or of a header's value that may be a key. Addresses of some gateways contain
/// keys.
const SHORTEST_PART: usize = 12;
/// Common words in paths and headers, which also occur in ordinary messages.
const COMMON_WORDS: [&str; 52] = [
    "accounts", "ai", "api", "application", "applications", "authentication", "authorization", "azure",
    "beta", "chat", "compatibility", "compatible", "completions", "deployments", "development", "endpoints",
    "environments", "event", "gateway", "generation", "google", "inference", "integrations", "internal",
    "json", "language", "llm", "locations", "management", "messages", "mode", "models", "openai",
    "organizations", "preview", "production", "projects", "providers", "proxy", "public", "publishers",
    "responses", "services", "serving", "staging", "stream", "subscriptions", "text", "v1", "v1beta", "v2",
    "workers",
];
/// The shortest part of plain words that may be a key.
const SHORTEST_PLAIN_PART: usize = 20;
/// Path segments before a name that messages of servers contain, too: of a model, a location or a project.
const BEFORE_NAMES: [&str; 5] = ["deployments", "locations", "models", "projects", "regions"];
/// Headers that name the caller in plain words.
const CALLER_HEADERS: [&str; 4] = ["http-referer", "referer", "user-agent", "x-title"];

/// Collects the secrets: the key, the header values and their parts, and the parts of the base URL beside its
/// host.
pub(super) fn collect(
    api_key: Option<&SecretString>,
    headers: &[(String, SecretString)],
    base_url: &str,
) -> Redaction {
    let headers = headers.iter().flat_map(|(name, value)| in_header(name, value.expose_secret()));
    let (path, query) = base_url.split_once('?').unwrap_or((base_url, ""));
    // A pair without a name may itself be a key.
    let pairs = query.split('&').map(|pair| pair.split_once('=').unwrap_or(("", pair)));
    let values = pairs.filter(|(name, _)| *name != "api-version").map(|(_, value)| value);
    let in_url = values.chain(in_path(path)).flat_map(|part| [part.to_owned(), unescaped(part)]);
    let parts = headers.chain(in_url).map(SecretString::from);
    Redaction::new(api_key.into_iter().cloned().chain(parts))
}

/// Returns a header's value. Unless the header is in `CALLER_HEADERS`, also the text after a scheme such as
/// `Bearer`, and each part.
fn in_header(name: &str, value: &str) -> Vec<String> {
    if CALLER_HEADERS.iter().any(|header| header.eq_ignore_ascii_case(name)) {
        return vec![value.to_owned()];
    }
    let bare = value.split_once(' ').map(|(_, bare)| bare.trim());
    let parts = value.split([' ', ';', ',']).flat_map(|field| {
        let field = field.trim_end_matches('=');
        let values = field.split('=');
        // The text before a value is its name.
        let names = usize::from(field.contains('='));
        values.skip(names).map(|part| part.trim_matches('"'))
    });
    let parts = parts.filter(|part| may_be_key(part));
    let plain = [value].into_iter().chain(bare).chain(parts).map(str::to_owned);
    plain.chain(login(value)).collect()
}

/// Returns the decoded user and password of `Basic`, and the password alone.
fn login(value: &str) -> impl Iterator<Item = String> {
    let padding = GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    let engine = GeneralPurpose::new(&STANDARD, padding);
    let encoded = value.split_once(' ').filter(|(scheme, _)| scheme.eq_ignore_ascii_case("basic"));
    let decoded = encoded.and_then(|(_, encoded)| engine.decode(encoded.trim()).ok());
    let login = decoded.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let password = login.as_ref().and_then(|login| Some(login.split_once(':')?.1.to_owned()));
    login.into_iter().chain(password)
}

/// Returns the parts of a URL's path that may be keys.
fn in_path(url: &str) -> impl Iterator<Item = &str> {
    let parts = || url.split('/').skip(3);
    let before = std::iter::once("").chain(parts());
    let unnamed = parts().zip(before).filter(|(_, before)| !BEFORE_NAMES.contains(before));
    unnamed.map(|(part, _)| part).filter(|part| may_be_key(part))
}

/// Checks whether a part is long enough for a key. Plain words are rarely as long, and rarely have capitals
/// inside.
fn may_be_key(part: &str) -> bool {
    let is_plain = part.bytes().all(|byte| byte.is_ascii_alphabetic() || b"-_".contains(&byte));
    let is_long = part.len() >= SHORTEST_PLAIN_PART || !is_plain || part.split(['-', '_']).any(is_mixed);
    part.len() >= SHORTEST_PART && is_long && !is_common(part)
}

/// Checks whether a word has lower-case letters, and capitals after the first letter.
fn is_mixed(word: &str) -> bool {
    word.bytes().skip(1).any(|byte| byte.is_ascii_uppercase())
        && word.bytes().any(|byte| byte.is_ascii_lowercase())
}

/// Checks whether a part consists of common words alone.
fn is_common(part: &str) -> bool {
    part.split(['-', '_', '.', '/'])
        .all(|word| COMMON_WORDS.iter().any(|common| common.eq_ignore_ascii_case(word)))
}

/// Decodes the percent escapes of a text.
fn unescaped(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}
