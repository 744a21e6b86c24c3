//! Texts between markup: the five entities of XML, and markers that are broken.

const ENTITIES: [(&str, char); 5] =
    [("&lt;", '<'), ("&gt;", '>'), ("&amp;", '&'), ("&quot;", '"'), ("&apos;", '\'')];

/// Returns the text with each entity decoded once.
pub(crate) fn decoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, from)) = rest.find('&').and_then(|at| rest.split_at_checked(at)) {
        out.push_str(before);
        let entity = ENTITIES.iter().find(|(name, _)| from.starts_with(name));
        let (name, character) = entity.unwrap_or(&("&", '&'));
        out.push(*character);
        rest = from.get(name.len()..).unwrap_or_default();
    }
    out + rest
}

/// Returns the text with the characters escaped that would be markup.
pub(crate) fn encoded(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Returns the text with each marker broken: `first` takes the place of its first byte, which is ASCII. The marker has small
/// letters, and is found in any case.
pub(crate) fn with_broken(text: &str, marker: &str, first: &str) -> String {
    let lower = text.to_ascii_lowercase();
    let (mut broken, mut from) = (String::with_capacity(text.len()), 0);
    for (at, _) in lower.match_indices(marker) {
        broken.push_str(text.get(from..at).unwrap_or_default());
        broken.push_str(first);
        from = at + 1;
    }
    broken.push_str(text.get(from..).unwrap_or_default());
    broken
}
