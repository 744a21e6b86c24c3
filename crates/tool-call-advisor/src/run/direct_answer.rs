use advisor_core::{Block, BlockContent, Media, Part, ToolResult};

/// Stands before the text of each direct result but the first.
///
/// It is part of the block: the deltas that are shown, the response's text and what is remembered then read the same.
const PARAGRAPH: &str = "\n\n";

/// Direct results as the answer to the user: of each one text block, then its media.
///
/// A result without either reads `done`, since an answer that says nothing is none.
pub(crate) fn direct_blocks<'a>(results: impl Iterator<Item = &'a ToolResult>, done: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut has_text = false;
    for result in results {
        let media: Vec<_> = result.parts.iter().filter_map(media).cloned().collect();
        let text = match result.text() {
            text if !text.trim().is_empty() => Some(text),
            _ if media.is_empty() => Some(String::from(done)),
            _ => None,
        };
        blocks.extend(text.map(|text| {
            let apart = if std::mem::replace(&mut has_text, true) { PARAGRAPH } else { "" };
            Block::text(format!("{apart}{text}"))
        }));
        blocks.extend(media.into_iter().map(|media| Block::new(BlockContent::Media(media))));
    }
    blocks
}

fn media(part: &Part) -> Option<&Media> {
    match part {
        Part::Image(media) | Part::Audio(media) | Part::Video(media) | Part::File(media) => Some(media),
        _ => None,
    }
}
