//! What is shown of a turn.

use std::error::Error;
use std::io::Write;

use advisor_chain::{BlockDelta, Chunk, Part, ToolEventKind};

/// Shows one chunk of a turn, as it comes.
pub(crate) fn show(chunk: &Chunk) {
    match chunk {
        Chunk::Delta { delta: BlockDelta::Text(text), .. } => print!("{}", printable(text)),
        Chunk::Delta { delta: BlockDelta::Reasoning(text), .. } => {
            print!("\x1b[2m{}\x1b[0m", printable(text))
        }
        Chunk::Closed { content, .. } if content.as_text().is_some() => println!(),
        Chunk::Tool(event) => {
            let name = printable(&event.name);
            match &event.kind {
                ToolEventKind::Started { arguments } => println!("  ⚙ {name} {} …", printable(arguments)),
                ToolEventKind::Progress(part) => {
                    println!("  ⚙ {name}: {}", printable(part.as_text().unwrap_or("…")))
                }
                ToolEventKind::Finished(result) => {
                    let mark = if result.is_error { "✗" } else { "✓" };
                    println!("  {mark} {name} {} → {}", printable(&event.call_id), first_line(&result.parts));
                }
                _ => {}
            }
        }
        _ => {}
    }
    // Without this the terminal shows the answer line by line.
    let _ = std::io::stdout().flush();
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
    use super::*;

    #[test]
    fn what_could_steer_the_terminal_is_replaced() {
        assert_eq!(printable("a\x1b[2Jb\r\u{9b}c\td\n"), "a\u{fffd}[2Jb\u{fffd}\u{fffd}c\td\n");
    }
}
