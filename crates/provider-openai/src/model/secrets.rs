//! What of a model's settings is secret.

use secrecy::{ExposeSecret, SecretString};

use super::OpenAiModel;
use crate::redaction::Redaction;

/// The shortest part of a path that may be a key: gateways are addressed by some.
const SHORTEST_IN_PATH: usize = 20;

/// The key, the values of headers, and what the base URL holds beside its host.
pub(super) fn of(model: &OpenAiModel) -> Redaction {
    // A header may hold its secret behind a scheme, such as `Bearer`.
    let headers = model.headers.iter().flat_map(|(_, value)| {
        let bare = value.expose_secret().split_once(' ').map(|(_, bare)| SecretString::from(bare.trim()));
        std::iter::once(value.clone()).chain(bare)
    });
    let (path, query) = model.base_url.split_once('?').unwrap_or((&model.base_url, ""));
    let values = query.split('&').filter_map(|pair| pair.split_once('='));
    let values = values.filter(|(name, _)| *name != "api-version").map(|(_, value)| value);
    let in_path = path
        .split('/')
        .skip(3)
        .filter(|part| part.len() >= SHORTEST_IN_PATH && part.bytes().any(|byte| byte.is_ascii_digit()));
    let in_url =
        values.chain(in_path).flat_map(|part| [part.to_owned(), unescaped(part)]).map(SecretString::from);
    Redaction::new(model.api_key.iter().cloned().chain(headers).chain(in_url))
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
