//! The five entities of XML: `entity`, `decoded`, `encoded`.

/// The entities of XML, and their characters.
const ENTITIES: [(&str, char); 5] =
    [("&lt;", '<'), ("&gt;", '>'), ("&amp;", '&'), ("&quot;", '"'), ("&apos;", '\'')];

/// The beginning of a text that starts with `&`.
pub(crate) enum Entity {
    /// This character, written in this many bytes.
    Whole(char, usize),
    /// Perhaps an entity, depending on what follows.
    Maybe,
    None,
}

pub(crate) fn entity(text: &str) -> Entity {
    for (name, character) in ENTITIES {
        if text.starts_with(name) {
            return Entity::Whole(character, name.len());
        }
        if name.starts_with(text) {
            return Entity::Maybe;
        }
    }
    Entity::None
}

/// Returns the text with each entity decoded once.
pub(crate) fn decoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, from)) = rest.find('&').and_then(|at| rest.split_at_checked(at)) {
        out.push_str(before);
        let (character, length) = match entity(from) {
            Entity::Whole(character, length) => (character, length),
            Entity::Maybe | Entity::None => ('&', 1),
        };
        out.push(character);
        rest = from.get(length..).unwrap_or_default();
    }
    out.push_str(rest);
    out
}

/// Returns the text with the characters escaped that would be markup.
pub(crate) fn encoded(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
