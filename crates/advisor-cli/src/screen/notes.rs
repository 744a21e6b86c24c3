//! The lines about what is no text of an answer: media, sources and tools.

use advisor_chain::messages::{Citation, Media, MediaSource, Part, ToolEvent, ToolEventKind, ToolResult};

use super::output::Look;
use crate::printable::brief;

/// The most characters of a part of a line.
const LENGTH: usize = 160;

/// Returns a line for media: its kind, its name, its type and its size or place.
pub(super) fn media_line(media: &Media) -> String {
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
fn media_of(part: &Part) -> Option<&Media> {
    match part {
        Part::Image(media) | Part::Audio(media) | Part::Video(media) | Part::File(media) => Some(media),
        _ => None,
    }
}

/// Returns the line of a source: its title and its address, or what it says. `None` if it has neither.
pub(super) fn source_line(citation: &Citation) -> Option<String> {
    let part = |text: &Option<_>| text.as_deref().map(|text| brief(text, LENGTH));
    match (part(&citation.title), part(&citation.url)) {
        (Some(title), Some(url)) if title != url => Some(format!("{title} ({url})")),
        (title, url) => url.or(title).or_else(|| Some(format!("“{}”", part(&citation.quote)?))),
    }
}

/// Returns the note about an event of a tool and its look, if it has one.
pub(super) fn tool_note(event: &ToolEvent) -> Option<(Look, String)> {
    let name = brief(&event.name, LENGTH);
    Some(match &event.kind {
        ToolEventKind::Started { arguments } => {
            (Look::Usual, format!("⚙ Calling tool: {name} {}", brief(arguments, LENGTH)))
        }
        ToolEventKind::Progress { part } => {
            (Look::Dim, format!("  … {name}: {}", brief(part.as_text().unwrap_or("…"), LENGTH)))
        }
        ToolEventKind::Finished { result } => match result.is_error {
            true => (Look::Red, format!("✗ {name} failed: {}", summary(result))),
            false => (Look::Usual, format!("✓ {name}: {}", summary(result))),
        },
        ToolEventKind::NotStarted { reason, result } => {
            let reason = reason.as_str().replace('_', " ");
            (Look::Red, format!("⊘ {name} was not started, {reason}: {}", summary(result)))
        }
        _ => return None,
    })
}

/// Returns the beginning of a result.
fn summary(result: &ToolResult) -> String {
    brief(&result.parts.iter().map(text_of).collect::<Vec<_>>().join(" "), LENGTH)
}

fn text_of(part: &Part) -> String {
    match part {
        Part::Text(text) => text.to_string(),
        Part::Json(value) => value.to_string(),
        other => media_of(other).map_or_else(|| "(no text)".to_owned(), media_line),
    }
}

#[cfg(test)]
mod tests {
    use advisor_chain::messages::{BlockId, NotStartedReason, ToolCall};

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

    fn event(kind: ToolEventKind) -> ToolEvent {
        ToolEvent { block: BlockId::new(1, 0), call_id: "c1".into(), name: "weather".into(), kind }
    }

    fn result(text: &str) -> ToolResult {
        ToolResult::new(&ToolCall::new("c1", "weather", "{}"), vec![Part::Text(text.into())])
    }

    fn error(text: &str) -> ToolResult {
        ToolResult::error(&ToolCall::new("c1", "weather", "{}"), text)
    }

    #[test]
    fn a_run_is_shown_with_its_arguments_and_progress() {
        let started = ToolEventKind::Started { arguments: "{\"city\":\n\"Oslo\"}".into() };
        let not_started = ToolEventKind::NotStarted {
            reason: NotStartedReason::Limit,
            result: error("the limit was reached"),
        };
        for (kind, look, line) in [
            (started, Look::Usual, "⚙ Calling tool: weather {\"city\": \"Oslo\"}"),
            (
                ToolEventKind::Progress { part: Part::Text("asking\x1b[2J".into()) },
                Look::Dim,
                "  … weather: asking\\u{1b}[2J",
            ),
            (ToolEventKind::Finished { result: result("sunny\nwarm") }, Look::Usual, "✓ weather: sunny warm"),
            (
                ToolEventKind::Finished { result: error("no\u{9b}net") },
                Look::Red,
                "✗ weather failed: no\\u{9b}net",
            ),
            (not_started, Look::Red, "⊘ weather was not started, limit: the limit was reached"),
        ] {
            assert_eq!(tool_note(&event(kind)), Some((look, line.to_owned())));
        }
        assert!(summary(&result(&"ä".repeat(500))).chars().count() <= LENGTH + 1);
    }
}
