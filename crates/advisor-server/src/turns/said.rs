//! The messages of a user as they are compared with those of a client's list, and kept of turns that memory does not have.

use advisor_core::{Message, MessageContent};
use sha2::{Digest, Sha256};

/// The digests of a message of the user. White space does not count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Said {
    text: [u8; 32],
    /// As they stand: media in another order are another message.
    media: Vec<[u8; 32]>,
}

impl Said {
    pub(crate) fn new(message: &Message) -> Self {
        let parts = match message.content() {
            MessageContent::User(parts) => parts.as_slice(),
            _ => &[],
        };
        let (mut text, mut media) = (Sha256::new(), Vec::<[u8; 32]>::new());
        for part in parts {
            match part.as_text() {
                Some(piece) => piece.split_whitespace().for_each(|word| text.update(word)),
                None => media.push(Sha256::digest(serde_json::to_vec(part).unwrap_or_default()).into()),
            }
        }
        Self { text: text.finalize().into(), media }
    }

    /// Checks whether a client may have kept this message as `sent`: it may have left out media.
    pub(crate) fn has(&self, sent: &Self) -> bool {
        let mut rest = self.media.iter();
        self.text == sent.text && sent.media.iter().all(|part| rest.any(|stored| stored == part))
    }
}
