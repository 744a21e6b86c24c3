//! What an answer has beside its text: media and sources.

use std::fmt::Write as _;

use advisor_chain::messages::{Block, BlockContent, Citation, Media, MediaSource, Part};

use crate::printable::brief;

/// The most sources that are shown, and the most characters of one of their parts.
const MOST: usize = 20;
const LENGTH: usize = 160;

/// Returns a line for media: its kind, its name, its type and its size or place.
pub(crate) fn media_line(media: &Media) -> String {
    let kind = media.mime.split('/').next().filter(|kind| ["image", "audio", "video"].contains(kind));
    let kind = kind.unwrap_or("file");
    let name = media.name.as_deref().map(|name| format!(" {}", brief(name, LENGTH))).unwrap_or_default();
    let place = match &media.source {
        MediaSource::Bytes(bytes) => format!(", {} bytes", bytes.len()),
        MediaSource::Url(url) => format!(", {}", brief(url, LENGTH)),
        MediaSource::ProviderFile(id) => format!(", file {} of the provider", brief(id, LENGTH)),
        _ => String::new(),
    };
    format!("[{kind}{name}: {}{place}]", brief(&media.mime, LENGTH))
}

/// Returns the media of a part.
pub(crate) fn media_of(part: &Part) -> Option<&Media> {
    match part {
        Part::Image(media) | Part::Audio(media) | Part::Video(media) | Part::File(media) => Some(media),
        _ => None,
    }
}

/// The sources of an answer, each once, in the order in which they are cited.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    lines: Vec<String>,
}

impl Sources {
    pub(crate) fn of(blocks: &[Block]) -> Self {
        let mut sources = Self::default();
        for block in blocks {
            if let BlockContent::Citation(citation) = block.content() {
                sources.add(citation);
            }
        }
        sources
    }

    pub(crate) fn add(&mut self, citation: &Citation) {
        let part = |text: &Option<_>| text.as_deref().map(|text| brief(text, LENGTH));
        let line = match (part(&citation.title), part(&citation.url)) {
            (Some(title), Some(url)) if title != url => format!("{title} ({url})"),
            (_, Some(url)) => url,
            (Some(title), None) => title,
            (None, None) => match part(&citation.quote) {
                Some(quote) => format!("“{quote}”"),
                None => return,
            },
        };
        if !self.lines.contains(&line) {
            self.lines.push(line);
        }
    }

    /// Returns the note about them, and forgets them. `None` if nothing is cited.
    pub(crate) fn take_note(&mut self) -> Option<String> {
        let lines = std::mem::take(&mut self.lines);
        let (first, left_out) = (lines.get(..MOST).unwrap_or(&lines), lines.len().saturating_sub(MOST));
        let mut note = String::new();
        for (number, line) in first.iter().enumerate() {
            let _ = write!(note, "{}[source {}] {line}", if number > 0 { "\n" } else { "" }, number + 1);
        }
        if left_out > 0 {
            let _ = write!(note, "\n… {left_out} more sources");
        }
        (!note.is_empty()).then_some(note)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_is_a_line_with_its_kind_type_and_size() {
        for (media, line) in [
            (Media::from_bytes("image/png", vec![0; 8]), "[image: image/png, 8 bytes]"),
            (Media::from_url("audio/*", "https://e.com/a\x1b"), "[audio: audio/*, https://e.com/a\\u{1b}]"),
            (Media::from_bytes("text/csv", vec![0]).with_name("a\nb"), "[file a b: text/csv, 1 bytes]"),
        ] {
            assert_eq!(media_line(&media), line);
        }
    }

    #[test]
    fn sources_are_listed_once_and_bounded() {
        let citation = |number: usize| {
            let mut citation = Citation::default();
            citation.url = Some(format!("https://e.com/{number}").into());
            citation.title = (number == 0).then(|| "A\u{202e}".into());
            citation
        };
        let mut sources = Sources::default();
        sources.add(&citation(0));
        sources.add(&citation(0));
        sources.add(&Citation::default());
        assert_eq!(sources.take_note().as_deref(), Some("[source 1] A\\u{202e} (https://e.com/0)"));
        assert_eq!(sources.take_note(), None);
        (0..25).for_each(|number| sources.add(&citation(number)));
        let note = sources.take_note().unwrap();
        assert_eq!(note.lines().count(), MOST + 1);
        assert!(note.ends_with("\n… 5 more sources"), "{note}");
    }
}
