//! `Message::map_text`: replaces the texts of a message and keeps everything else.

use crate::{Block, BlockContent, Message, MessageContent, Part, Text, ToolResult};

impl Message {
    /// Returns the message with `map` applied to each of its texts: those that [`Message::text`] joins.
    ///
    /// Pictures, files, structured parts, calls, reasoning and marks are unchanged. A text block that changes
    /// loses its provider data. If no text changes, the result is a handle of this very message.
    ///
    /// # Example
    /// ```
    /// use message_aggregator::{Media, Message, Part};
    ///
    /// let picture = Part::Image(Media::from_url("image/png", "https://example.org/card.png"));
    /// let message = Message::user_parts(vec![Part::from("My PIN is 1234."), picture.clone()]);
    /// let masked = message.map_text(|text| text.replace("1234", "****"));
    /// assert_eq!(masked, Message::user_parts(vec![Part::from("My PIN is ****."), picture]));
    /// ```
    #[must_use]
    pub fn map_text(&self, mut map: impl FnMut(&str) -> String) -> Self {
        let changed = match self.content() {
            MessageContent::System(text) => mapped(text, &mut map).map(MessageContent::System),
            MessageContent::User(parts) => mapped_parts(parts, &mut map).map(MessageContent::User),
            MessageContent::Assistant(blocks) => {
                mapped_blocks(blocks, &mut map).map(MessageContent::Assistant)
            }
            MessageContent::Tool(result) => mapped_parts(&result.parts, &mut map)
                .map(|parts| MessageContent::Tool(ToolResult { parts, ..result.clone() })),
        };
        match changed {
            None => self.clone(),
            Some(content) => self.with_content(content),
        }
    }
}

/// Returns the mapped text, or `None` if it is unchanged.
fn mapped(text: &str, map: &mut impl FnMut(&str) -> String) -> Option<Text> {
    Some(map(text)).filter(|new| new != text).map(Text::from)
}

fn mapped_parts(parts: &[Part], map: &mut impl FnMut(&str) -> String) -> Option<Vec<Part>> {
    mapped_items(parts, |part| mapped(part.as_text()?, map).map(Part::Text))
}

fn mapped_blocks(blocks: &[Block], map: &mut impl FnMut(&str) -> String) -> Option<Vec<Block>> {
    mapped_items(blocks, |block| {
        mapped(block.as_text()?, map).map(|text| Block::new(BlockContent::Text(text.into())))
    })
}

/// Returns all items with the changed ones replaced, or `None` if `change` changes none.
fn mapped_items<T: Clone>(items: &[T], mut change: impl FnMut(&T) -> Option<T>) -> Option<Vec<T>> {
    let mut any = false;
    let changed = items.iter().map(|item| match change(item) {
        Some(changed) => {
            any = true;
            changed
        }
        None => item.clone(),
    });
    let changed = changed.collect();
    any.then_some(changed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ProviderData, ToolCall};
    use serde_json::json;

    fn loud(text: &str) -> String {
        text.to_uppercase()
    }

    #[test]
    fn texts_change_and_everything_else_stays() {
        let call = ToolCall::new("c1", "look", "{\"a\":\"b\"}");
        let data = || vec![ProviderData::new("made-up", json!(1))];
        let text = |text: &str| BlockContent::Text(text.into());
        for (message, expected) in [
            (Message::system("a"), Message::system("A")),
            (Message::user("a").ephemeral(), Message::user("A").ephemeral()),
            (
                Message::assistant_blocks(vec![
                    Block::new(BlockContent::Reasoning("hm".into())),
                    Block::with_data(text("a"), data()),
                    Block::with_data(text("B"), data()),
                    Block::from(call.clone()),
                ]),
                Message::assistant_blocks(vec![
                    Block::new(BlockContent::Reasoning("hm".into())),
                    Block::text("A"),
                    Block::with_data(text("B"), data()),
                    Block::from(call.clone()),
                ]),
            ),
            (
                Message::tool(ToolResult::new(&call, vec!["a".into(), json!({"a": "b"}).into()])),
                Message::tool(ToolResult::new(&call, vec!["A".into(), json!({"a": "b"}).into()])),
            ),
        ] {
            assert_eq!(message.map_text(loud), expected);
        }
    }

    #[test]
    fn where_nothing_changes_it_is_the_same_message() {
        let message = Message::user("A");
        assert!(message.map_text(loud).is_same(&message));
    }
}
