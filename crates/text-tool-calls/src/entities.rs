//! The five entities of XML.

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
