//! `direct_blocks`: turns the results of return-direct tools into answer blocks.

use advisor_core::{Block, BlockContent, Media, Part, ToolResult};

/// Separator before the text of each direct result but the first.
///
/// It is part of the block, so that shown deltas, the response's text and the transcript are equal.
const PARAGRAPH: &str = "\n\n";

/// Returns direct results as the answer to the user: for each result a text block, then its media.
///
/// A result without either reads `done`, since an answer must not be empty.
pub(super) fn direct_blocks<'a>(results: impl Iterator<Item = &'a ToolResult>, done: &str) -> Vec<Block> {
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
