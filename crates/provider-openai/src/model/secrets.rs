//! What of a model's settings is secret.

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use secrecy::{ExposeSecret, SecretString};

use super::OpenAiModel;
use crate::redaction::Redaction;

/// The shortest part of a path or of a header's value that may be a key: gateways are addressed by some.
const SHORTEST_PART: usize = 12;
/// Words in paths and headers that occur in any message, too.
const USUAL: [&str; 52] = [
    "accounts",
    "ai",
    "api",
    "application",
    "applications",
    "authentication",
    "authorization",
    "azure",
    "beta",
    "chat",
    "compatibility",
    "compatible",
    "completions",
    "deployments",
    "development",
    "endpoints",
    "environments",
    "event",
    "gateway",
    "generation",
    "google",
    "inference",
    "integrations",
    "internal",
    "json",
    "language",
    "llm",
    "locations",
    "management",
    "messages",
    "mode",
    "models",
    "openai",
    "organizations",
    "preview",
    "production",
    "projects",
    "providers",
    "proxy",
    "public",
    "publishers",
    "responses",
    "services",
    "serving",
    "staging",
    "stream",
    "subscriptions",
    "text",
    "v1",
    "v1beta",
    "v2",
    "workers",
];
/// What names of models follow in a path. A server names them, too.
const BEFORE_NAMES: [&str; 2] = ["deployments", "models"];

/// The key, the values of headers and their parts, and what the base URL holds beside its host.
pub(super) fn of(model: &OpenAiModel) -> Redaction {
    let headers = model.headers.iter().flat_map(|(_, value)| in_header(value.expose_secret()));
    let (path, query) = model.base_url.split_once('?').unwrap_or((&model.base_url, ""));
    // A pair without a name may be a key as it is.
    let pairs = query.split('&').map(|pair| pair.split_once('=').unwrap_or(("", pair)));
    let values = pairs.filter(|(name, _)| *name != "api-version").map(|(_, value)| value);
    let in_url = values.chain(in_path(path)).flat_map(|part| [part.to_owned(), unescaped(part)]);
    let parts = headers.chain(in_url).map(SecretString::from);
    Redaction::new(model.api_key.iter().cloned().chain(parts))
}

/// A header's value, what stands behind its scheme, such as `Bearer`, and each of its parts.
fn in_header(value: &str) -> impl Iterator<Item = String> {
    let bare = value.split_once(' ').map(|(_, bare)| bare.trim());
    let parts = value.split([' ', ';', ',']).flat_map(|field| {
        let field = field.trim_end_matches('=');
        let values = field.split('=');
        // What stands before a value is its name.
        let names = usize::from(field.contains('='));
        values.skip(names).map(|part| part.trim_matches('"'))
    });
    let parts = parts.filter(|part| part.len() >= SHORTEST_PART && !is_usual(part));
    let plain = [value].into_iter().chain(bare).chain(parts).map(str::to_owned);
    plain.chain(login(value)).collect::<Vec<_>>().into_iter()
}

/// The user and password of `Basic`, and the password alone.
fn login(value: &str) -> impl Iterator<Item = String> {
    let padding = GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    let engine = GeneralPurpose::new(&STANDARD, padding);
    let encoded = value.split_once(' ').filter(|(scheme, _)| scheme.eq_ignore_ascii_case("basic"));
    let decoded = encoded.and_then(|(_, encoded)| engine.decode(encoded.trim()).ok());
    let login = decoded.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let password = login.as_ref().and_then(|login| Some(login.split_once(':')?.1.to_owned()));
    login.into_iter().chain(password)
}

/// The parts of a URL's path that may be keys.
fn in_path(url: &str) -> impl Iterator<Item = &str> {
    let parts = || url.split('/').skip(3);
    let before = std::iter::once("").chain(parts());
    let unnamed = parts().zip(before).filter(|(_, before)| !BEFORE_NAMES.contains(before));
    unnamed.map(|(part, _)| part).filter(|part| part.len() >= SHORTEST_PART && !is_usual(part))
}

/// Whether it is made of usual words alone.
fn is_usual(part: &str) -> bool {
    part.split(['-', '_', '.', '/']).all(|word| USUAL.iter().any(|usual| usual.eq_ignore_ascii_case(word)))
}

/// The text without its percent escapes.
fn unescaped(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, escaped)) = rest.split_once('%') {
        bytes.extend_from_slice(before.as_bytes());
        match escaped.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = escaped.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(b'%');
                rest = escaped;
            }
        }
    }
    bytes.extend_from_slice(rest.as_bytes());
    String::from_utf8_lossy(&bytes).into_owned()
}
