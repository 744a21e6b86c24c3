//! `joined_text`: the texts of an answer as one text.

use advisor_core::{Block, BlockContent, BlockKind};

/// Joins the texts and refusals of an answer, for an API that takes one text per message.
///
/// A text that calls or citations interrupted is one text. So is one that its provider cut in the middle of a sentence
/// to attach data to a part: a signature, a citation. Other adjacent text blocks, such as the results of several tools,
/// are separated by a blank line. An empty text separates nothing: it holds only data for the provider that sent it.
///
/// # Example
/// ```
/// use advisor_core::{Block, BlockContent, ProviderData, ToolCall};
/// use provider_http::joined_text;
///
/// let call = Block::from(ToolCall::new("c1", "look", "{}"));
/// assert_eq!(joined_text(&[Block::text("Let me "), call, Block::text("look.")]), "Let me look.");
/// assert_eq!(joined_text(&[Block::text("One"), Block::text("Two"), Block::text("")]), "One\n\nTwo");
/// let signed = vec![ProviderData::new("gemini", "signature".into())];
/// let cut = [Block::with_data(BlockContent::Text("The wo".into()), signed), Block::text("rd.")];
/// assert_eq!(joined_text(&cut), "The word.");
/// ```
#[must_use]
pub fn joined_text(blocks: &[Block]) -> String {
    let mut text = String::new();
    let mut last: Option<&Block> = None;
    for block in blocks.iter().filter(|block| block.as_text() != Some("")) {
        if let BlockContent::Text(piece) | BlockContent::Refusal(piece) = block.content() {
            let is_cut = |block: &Block| !block.provider_data().is_empty();
            let begins = last.filter(|last| last.kind() == BlockKind::Text && !is_cut(last));
            if begins.is_some() && block.kind() == BlockKind::Text && !is_cut(block) {
                text.push_str("\n\n");
            }
            text.push_str(piece);
        }
        last = Some(block);
    }
    text
}
