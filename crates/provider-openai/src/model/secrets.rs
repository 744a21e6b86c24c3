//! What of a model's settings is secret.

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use secrecy::{ExposeSecret, SecretString};

use super::OpenAiModel;
use provider_http::redaction::Redaction;

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
/// The shortest such part that may be one although it is made of plain words.
const SHORTEST_PLAIN_PART: usize = 20;
/// What names follow in a path that a server names, too: of models, places and projects.
const BEFORE_NAMES: [&str; 5] = ["deployments", "locations", "models", "projects", "regions"];
/// Headers that say in plain words who asks.
const SPOKEN: [&str; 4] = ["http-referer", "referer", "user-agent", "x-title"];

/// The key, the values of headers and their parts, and what the base URL holds beside its host.
pub(super) fn of(model: &OpenAiModel) -> Redaction {
    let headers = model.headers.iter().flat_map(|(name, value)| in_header(name, value.expose_secret()));
    let (path, query) = model.base_url.split_once('?').unwrap_or((&model.base_url, ""));
    // A pair without a name may be a key as it is.
    let pairs = query.split('&').map(|pair| pair.split_once('=').unwrap_or(("", pair)));
    let values = pairs.filter(|(name, _)| *name != "api-version").map(|(_, value)| value);
    let in_url = values.chain(in_path(path)).flat_map(|part| [part.to_owned(), unescaped(part)]);
    let parts = headers.chain(in_url).map(SecretString::from);
    Redaction::new(model.api_key.iter().cloned().chain(parts))
}

/// A header's value, and unless it is spoken, what stands behind its scheme, such as `Bearer`, and each of its parts.
fn in_header(name: &str, value: &str) -> Vec<String> {
    if SPOKEN.iter().any(|spoken| spoken.eq_ignore_ascii_case(name)) {
        return vec![value.to_owned()];
    }
    let bare = value.split_once(' ').map(|(_, bare)| bare.trim());
    let parts = value.split([' ', ';', ',']).flat_map(|field| {
        let field = field.trim_end_matches('=');
        let values = field.split('=');
        // What stands before a value is its name.
        let names = usize::from(field.contains('='));
        values.skip(names).map(|part| part.trim_matches('"'))
    });
    let parts = parts.filter(|part| may_be_key(part));
    let plain = [value].into_iter().chain(bare).chain(parts).map(str::to_owned);
    plain.chain(login(value)).collect()
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
    unnamed.map(|(part, _)| part).filter(|part| may_be_key(part))
}

/// Whether a part is long enough for a key. Plain words are longer seldom enough, and seldom have capitals inside.
fn may_be_key(part: &str) -> bool {
    let is_plain = part.bytes().all(|byte| byte.is_ascii_alphabetic() || b"-_".contains(&byte));
    let is_long = part.len() >= SHORTEST_PLAIN_PART || !is_plain || part.split(['-', '_']).any(is_mixed);
    part.len() >= SHORTEST_PART && is_long && !is_usual(part)
}

/// Whether a word has small letters, and capitals behind the first letter.
fn is_mixed(word: &str) -> bool {
    word.bytes().skip(1).any(|byte| byte.is_ascii_uppercase())
        && word.bytes().any(|byte| byte.is_ascii_lowercase())
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
