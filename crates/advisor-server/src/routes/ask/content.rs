use advisor_core::{Message, Part, Role};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::parts::read_part;
use crate::refusal::Refusal;

/// A message of a client's list, of any protocol.
#[derive(Debug)]
pub(in crate::routes) struct SentMessage {
    pub(in crate::routes) role: Role,
    pub(in crate::routes) content: Content,
}

/// The content of a message: a text, or parts in the forms of the protocol.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(in crate::routes) enum Content {
    Text(String),
    Parts(Vec<Value>),
    #[default]
    Nothing,
}

impl Content {
    /// Reads the content of a message of the user. Texts beside one another become one.
    ///
    /// # Errors
    /// For a part that cannot be passed on to the model, with its type.
    pub(in crate::routes) fn read(self) -> Result<Message, Refusal> {
        let sent = match self {
            Self::Text(text) => return Ok(Message::user(text)),
            Self::Nothing => Vec::new(),
            Self::Parts(parts) => parts,
        };
        let (mut parts, mut text) = (Vec::new(), String::new());
        for part in sent.iter().map(read_part) {
            match part? {
                Some(Part::Text(piece)) => text.push_str(&piece),
                Some(media) => {
                    parts.extend(take(&mut text));
                    parts.push(media);
                }
                None => {}
            }
        }
        parts.extend(take(&mut text));
        Ok(Message::user_parts(parts))
    }
}

/// Takes a text as a part, unless it is empty.
fn take(text: &mut String) -> Option<Part> {
    Some(std::mem::take(text)).filter(|text| !text.is_empty()).map(Part::from)
}
