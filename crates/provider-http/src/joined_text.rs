use advisor_core::{Block, BlockContent, BlockKind};

/// Joins the texts and refusals of an answer, for an API that takes one text per message.
///
/// A text that calls or citations interrupted is one text. Adjacent text blocks, such as the results of several
/// tools, are separated by a blank line. An empty text separates nothing: it holds only data for the provider that
/// sent it.
///
/// # Example
/// ```
/// use advisor_core::{Block, ToolCall};
/// use provider_http::joined_text;
///
/// let call = Block::from(ToolCall::new("c1", "look", "{}"));
/// assert_eq!(joined_text(&[Block::text("Let me "), call, Block::text("look.")]), "Let me look.");
/// assert_eq!(joined_text(&[Block::text("One"), Block::text("Two"), Block::text("")]), "One\n\nTwo");
/// ```
#[must_use]
pub fn joined_text(blocks: &[Block]) -> String {
    let mut text = String::new();
    let mut last = None;
    for block in blocks.iter().filter(|block| block.as_text() != Some("")) {
        if let BlockContent::Text(piece) | BlockContent::Refusal(piece) = block.content() {
            if last == Some(BlockKind::Text) && block.kind() == BlockKind::Text {
                text.push_str("\n\n");
            }
            text.push_str(piece);
        }
        last = Some(block.kind());
    }
    text
}
