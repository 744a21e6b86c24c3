//! What is shown of a turn.

use std::error::Error;
use std::io::{self, Write};

use advisor_chain::{BlockDelta, BlockKind, Chunk, FinishReason, Part, ToolEvent, ToolEventKind};

/// Shows one chunk of a turn, as it comes.
pub(crate) fn show(chunk: &Chunk, out: &mut impl Write) -> io::Result<()> {
    match chunk {
        Chunk::Delta { delta: BlockDelta::Text(text) | BlockDelta::Refusal(text), .. } => {
            write!(out, "{}", printable(text))?;
        }
        Chunk::Delta { delta: BlockDelta::Reasoning(text), .. } => {
            write!(out, "\x1b[2m{}\x1b[0m", printable(text))?;
        }
        Chunk::Closed { content, .. } if matches!(content.kind(), BlockKind::Text | BlockKind::Refusal) => {
            writeln!(out)?;
        }
        Chunk::Tool(event) => show_tool(event, out)?,
        Chunk::Completed(response) => {
            if let Some(note) = note_of(&response.finish().reason) {
                writeln!(out, "[{}]", printable(&note))?;
            }
        }
        _ => {}
    }
    // Without this the terminal shows the answer line by line.
    out.flush()
}

fn show_tool(event: &ToolEvent, out: &mut impl Write) -> io::Result<()> {
    let name = printable(&event.name);
    match &event.kind {
        ToolEventKind::Started { arguments } => writeln!(out, "  ⚙ {name} {} …", printable(arguments)),
        ToolEventKind::Progress(part) => {
            writeln!(out, "  ⚙ {name}: {}", printable(part.as_text().unwrap_or("…")))
        }
        ToolEventKind::Finished(result) => {
            let mark = if result.is_error { "✗" } else { "✓" };
            writeln!(out, "  {mark} {name} {} → {}", printable(&event.call_id), first_line(&result.parts))
        }
        _ => Ok(()),
    }
}

/// What the user should know about how a turn ended; nothing if the model was simply done.
fn note_of(reason: &FinishReason) -> Option<String> {
    let note = match reason {
        FinishReason::Empty => "the answer is empty",
        FinishReason::Length => "cut off: the token limit was reached",
        FinishReason::ContentFilter => "cut off by a content filter of the provider",
        FinishReason::Refusal => "the model refused",
        FinishReason::Paused => "the provider paused; the answer may go on in the next turn",
        FinishReason::Interrupted => "the answer was interrupted",
        FinishReason::Limit(limit) => return Some(format!("{limit} was reached")),
        FinishReason::Other(reason) => return Some(format!("the provider ended the answer: {reason}")),
        _ => return None,
    };
    Some(note.to_owned())
}

fn first_line(parts: &[Part]) -> String {
    let text: String = parts.iter().filter_map(Part::as_text).collect();
    let line = text.lines().next().unwrap_or_default();
    let short: String = line.chars().take(100).collect();
    printable(&short)
}

/// Text of a model or a tool without what could steer the terminal.
pub(crate) fn printable(text: &str) -> String {
    text.chars()
        .map(|char| if char.is_control() && !matches!(char, '\n' | '\t') { '\u{fffd}' } else { char })
        .collect()
}

/// An error and what caused it, on one line.
pub(crate) fn chain_of(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    printable(&text)
}

#[cfg(test)]
mod tests {
    use advisor_chain::Limit;

    use super::*;

    #[test]
    fn what_could_steer_the_terminal_is_replaced() {
        assert_eq!(printable("a\x1b[2Jb\r\u{9b}c\td\n"), "a\u{fffd}[2Jb\u{fffd}\u{fffd}c\td\n");
    }

    #[test]
    fn an_end_that_is_not_the_models_own_is_told() {
        for (reason, part) in [
            (FinishReason::Empty, "empty"),
            (FinishReason::Length, "token limit"),
            (FinishReason::ContentFilter, "filter"),
            (FinishReason::Refusal, "refused"),
            (FinishReason::Limit(Limit::Rounds(25)), "25 rounds"),
            (FinishReason::Other("tired".into()), "tired"),
        ] {
            let note = note_of(&reason).unwrap_or_default();
            assert!(note.contains(part), "{reason:?}: {note}");
        }
        for reason in [FinishReason::Stop, FinishReason::ToolCalls, FinishReason::ReturnDirect] {
            assert_eq!(note_of(&reason), None);
        }
    }
}
