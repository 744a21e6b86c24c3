//! The lines about what is no text of an answer: media, sources and tools.

use std::collections::HashMap;
use std::time::Duration;

use advisor_chain::messages::{
    Block, BlockContent, BlockId, Citation, Media, MediaSource, Part, ToolEvent, ToolEventKind, ToolResult,
};
use tokio::time::Instant;

use super::output::Look;
use crate::printable::brief;

/// The most characters of a part of a line.
const LENGTH: usize = 160;

/// The most sources that are shown, and the most lines of a result.
const SOURCES: usize = 20;
const LINES: usize = 5;

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
        let left_out = lines.len().saturating_sub(SOURCES);
        let numbered = lines.into_iter().take(SOURCES).zip(1..);
        let mut shown: Vec<_> = numbered.map(|(line, number)| format!("[source {number}] {line}")).collect();
        if left_out > 0 {
            shown.push(format!("… {left_out} more sources"));
        }
        Some(shown.join("\n")).filter(|note| !note.is_empty())
    }
}

/// The tools that run.
#[derive(Debug, Default)]
pub(super) struct RunningTools(HashMap<BlockId, Instant>);

impl RunningTools {
    /// Returns the note about an event and its look, if it has one.
    pub(super) fn note(&mut self, event: &ToolEvent) -> Option<(Look, String)> {
        let name = brief(&event.name, LENGTH);
        Some(match &event.kind {
            ToolEventKind::Started { arguments } => {
                self.0.insert(event.block, Instant::now());
                (Look::Usual, format!("⚙ Calling tool: {name} {}", brief(arguments, LENGTH)))
            }
            ToolEventKind::Progress(part) => {
                (Look::Dim, format!("  … {name}: {}", brief(part.as_text().unwrap_or("…"), LENGTH)))
            }
            ToolEventKind::Finished(result) => {
                let started = self.0.remove(&event.block);
                let time = started.map(|at| format!(" ({})", seconds(at.elapsed()))).unwrap_or_default();
                match result.is_error {
                    true => (Look::Red, summary(&format!("✗ {name} failed{time}"), result)),
                    false => (Look::Usual, summary(&format!("✓ {name}{time}"), result)),
                }
            }
            ToolEventKind::NotStarted { reason, result } => {
                let reason = reason.as_str().replace('_', " ");
                (Look::Red, summary(&format!("⊘ {name} was not started, {reason}"), result))
            }
            _ => return None,
        })
    }

    /// Forgets the tools of a turn that has ended.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

/// Returns a title and the first lines of a result.
fn summary(title: &str, result: &ToolResult) -> String {
    let text: String = result.parts.iter().map(text_of).collect::<Vec<_>>().join("\n");
    let mut of_result = text.lines().filter(|line| !line.trim().is_empty());
    let first = of_result.next().map_or_else(|| "no text".to_owned(), |line| brief(line, LENGTH));
    let mut lines = vec![format!("{title}: {first}")];
    lines.extend(of_result.by_ref().take(LINES - 1).map(|line| format!("    {}", brief(line, LENGTH))));
    match of_result.count() {
        0 => {}
        more => lines.push(format!("    … {more} more lines")),
    }
    lines.join("\n")
}

fn text_of(part: &Part) -> String {
    match part {
        Part::Text(text) => text.to_string(),
        Part::Json(value) => value.to_string(),
        other => media_of(other).map_or_else(|| "(no text)".to_owned(), media_line),
    }
}

fn seconds(time: Duration) -> String {
    match time.as_millis() {
        millis @ ..1_000 => format!("{millis} ms"),
        _ => format!("{:.1} s", time.as_secs_f64()),
    }
}

#[cfg(test)]
mod tests {
    use advisor_chain::messages::{NotStartedReason, ToolCall};

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
        assert_eq!(note.lines().count(), SOURCES + 1);
        assert!(note.ends_with("\n… 5 more sources"), "{note}");
    }

    fn event(kind: ToolEventKind) -> ToolEvent {
        ToolEvent::new(BlockId::new(1, 0), "c1".into(), "weather".into(), kind)
    }

    fn result(text: &str) -> ToolResult {
        ToolResult::new(&ToolCall::new("c1", "weather", "{}"), vec![Part::Text(text.into())])
    }

    fn error(text: &str) -> ToolResult {
        ToolResult::error(&ToolCall::new("c1", "weather", "{}"), text)
    }

    #[tokio::test(start_paused = true)]
    async fn a_run_is_shown_with_its_arguments_progress_and_time() {
        let mut tools = RunningTools::default();
        let mut line = |kind| tools.note(&event(kind)).unwrap();
        let started = || ToolEventKind::Started { arguments: "{\"city\":\n\"Oslo\"}".into() };
        let shown = "⚙ Calling tool: weather {\"city\": \"Oslo\"}";
        assert_eq!(line(started()), (Look::Usual, shown.to_owned()));
        let progress = ToolEventKind::Progress(Part::Text("asking\x1b[2J".into()));
        assert_eq!(line(progress), (Look::Dim, "  … weather: asking\\u{1b}[2J".to_owned()));
        tokio::time::advance(Duration::from_millis(120)).await;
        let sunny = || ToolEventKind::Finished(result("sunny"));
        assert_eq!(line(sunny()), (Look::Usual, "✓ weather (120 ms): sunny".to_owned()));
        line(started());
        tokio::time::advance(Duration::from_millis(2_340)).await;
        let failed = ToolEventKind::Finished(error("no\u{9b}net"));
        assert_eq!(line(failed), (Look::Red, "✗ weather failed (2.3 s): no\\u{9b}net".to_owned()));
        let result = error("the limit was reached");
        let not_started = ToolEventKind::NotStarted { reason: NotStartedReason::Limit, result };
        let shown = "⊘ weather was not started, limit: the limit was reached";
        assert_eq!(line(not_started), (Look::Red, shown.to_owned()));
    }

    #[test]
    fn a_long_result_is_folded() {
        let text: Vec<String> = (1..=9).map(|number| format!("line {number}")).collect();
        let note = summary("t", &result(&text.join("\n\n")));
        let lines: Vec<_> = note.lines().collect();
        assert_eq!((lines.len(), lines[0], lines[5]), (LINES + 1, "t: line 1", "    … 4 more lines"));
        assert!(summary("t", &result(&"ä".repeat(500))).chars().count() < LENGTH + 6);
    }
}
