//! The lines about tools.

use std::collections::HashMap;
use std::time::Duration;

use advisor_chain::messages::{BlockId, Part, ToolEvent, ToolEventKind, ToolResult};
use tokio::time::Instant;

use super::attached::{media_line, media_of};
use crate::look::{Attribute, Look};
use crate::printable::brief;

/// The most lines of a result that are shown, and the most characters of a line.
const LINES: usize = 5;
const LENGTH: usize = 160;

/// The tools that run.
#[derive(Debug, Default)]
pub(super) struct RunningTools(HashMap<BlockId, Instant>);

/// A note of one or more lines in one look.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ToolNote {
    pub(super) look: Look,
    pub(super) lines: Vec<String>,
}

impl RunningTools {
    /// Returns the note about an event, if it has one.
    pub(super) fn note(&mut self, event: &ToolEvent) -> Option<ToolNote> {
        let name = brief(&event.name, LENGTH);
        match &event.kind {
            ToolEventKind::Started { arguments } => {
                self.0.insert(event.block, Instant::now());
                let call = format!("⚙ Calling tool: {name} {}", brief(arguments, LENGTH));
                Some(ToolNote { look: Look::default(), lines: vec![call] })
            }
            ToolEventKind::Progress(part) => {
                let line = format!("  … {name}: {}", brief(part.as_text().unwrap_or("…"), LENGTH));
                Some(ToolNote { look: Look::new(Attribute::Dim), lines: vec![line] })
            }
            ToolEventKind::Finished(result) => {
                let started = self.0.remove(&event.block);
                let time = started.map(|at| format!(" ({})", seconds(at.elapsed()))).unwrap_or_default();
                Some(match result.is_error {
                    true => summary(&format!("✗ {name} failed{time}"), result, Look::new(Attribute::Red)),
                    false => summary(&format!("✓ {name}{time}"), result, Look::default()),
                })
            }
            ToolEventKind::NotStarted { reason, result } => {
                let reason = reason.as_str().replace('_', " ");
                let title = format!("⊘ {name} was not started, {reason}");
                Some(summary(&title, result, Look::new(Attribute::Yellow)))
            }
            _ => None,
        }
    }

    /// Forgets the tools of a turn that has ended.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

/// Returns a title and the first lines of a result.
fn summary(title: &str, result: &ToolResult, look: Look) -> ToolNote {
    let text: String = result.parts.iter().map(text_of).collect::<Vec<_>>().join("\n");
    let mut of_result = text.lines().filter(|line| !line.trim().is_empty());
    let first = of_result.next().map_or_else(|| "no text".to_owned(), |line| brief(line, LENGTH));
    let mut lines = vec![format!("{title}: {first}")];
    lines.extend(of_result.by_ref().take(LINES - 1).map(|line| format!("    {}", brief(line, LENGTH))));
    match of_result.count() {
        0 => {}
        more => lines.push(format!("    … {more} more lines")),
    }
    ToolNote { look, lines }
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

    fn event(kind: ToolEventKind) -> ToolEvent {
        ToolEvent::new(BlockId::new(1, 0), "c1".into(), "weather".into(), kind)
    }

    fn result(text: &str) -> ToolResult {
        ToolResult::new(&ToolCall::new("c1", "weather", "{}"), vec![Part::Text(text.into())])
    }

    fn error(text: &str) -> ToolResult {
        ToolResult::error(&ToolCall::new("c1", "weather", "{}"), text)
    }

    fn started() -> ToolEvent {
        event(ToolEventKind::Started { arguments: "{\"city\":\n\"Oslo\"}".into() })
    }

    #[tokio::test(start_paused = true)]
    async fn a_run_is_shown_with_its_arguments_progress_and_time() {
        let mut tools = RunningTools::default();
        let mut line = |event: &ToolEvent| tools.note(event).unwrap().lines.join("\n");
        assert_eq!(line(&started()), "⚙ Calling tool: weather {\"city\": \"Oslo\"}");
        let progress = event(ToolEventKind::Progress(Part::Text("asking\x1b[2J".into())));
        assert_eq!(line(&progress), "  … weather: asking\\u{1b}[2J");
        tokio::time::advance(Duration::from_millis(120)).await;
        let result = result("sunny");
        assert_eq!(line(&event(ToolEventKind::Finished(result.clone()))), "✓ weather (120 ms): sunny");
        line(&started());
        tokio::time::advance(Duration::from_millis(2_340)).await;
        assert_eq!(line(&event(ToolEventKind::Finished(result))), "✓ weather (2.3 s): sunny");
    }

    #[tokio::test(start_paused = true)]
    async fn failures_and_calls_that_never_start_differ() {
        let mut tools = RunningTools::default();
        tools.note(&started());
        let failed = event(ToolEventKind::Finished(error("no\u{9b}net")));
        let expected = ToolNote {
            look: Look::new(Attribute::Red),
            lines: vec!["✗ weather failed (0 ms): no\\u{9b}net".into()],
        };
        assert_eq!(tools.note(&failed), Some(expected));
        let result = error("the limit was reached");
        let not_started = ToolEventKind::NotStarted { reason: NotStartedReason::Limit, result };
        let expected = ToolNote {
            look: Look::new(Attribute::Yellow),
            lines: vec!["⊘ weather was not started, limit: the limit was reached".into()],
        };
        assert_eq!(tools.note(&event(not_started)), Some(expected));
    }

    #[test]
    fn a_long_result_is_folded() {
        let text: Vec<String> = (1..=9).map(|number| format!("line {number}")).collect();
        let note = summary("t", &result(&text.join("\n\n")), Look::default());
        assert_eq!(note.lines.len(), LINES + 1);
        assert_eq!((note.lines[0].as_str(), note.lines[5].as_str()), ("t: line 1", "    … 4 more lines"));
        let long = result(&"ä".repeat(500));
        assert!(summary("t", &long, Look::default()).lines[0].chars().count() < LENGTH + 6);
    }
}
