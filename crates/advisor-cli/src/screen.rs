//! The output of a turn, on two streams.

use std::error::Error;
use std::fmt::Display;
use std::io::{self, Stderr, Stdout, Write};

use advisor_chain::chain::text_with_sources;
use advisor_chain::messages::{Block, BlockDelta, BlockKind, Part, ToolEvent, ToolEventKind};
use advisor_chain::{Chunk, FinishReason};

use crate::output::{Output, Style};

const DIM: &str = "\x1b[2m";
const NORMAL: &str = "\x1b[0m";

/// The prefix of each line of reasoning.
const REASONING: &str = "| ";

/// The output of a turn: the answer on one stream; reasoning, tools and notes on another.
///
/// A failure to write a note does not affect the answer.
#[derive(Debug)]
pub(crate) struct Screen<A, N> {
    answer: Output<A>,
    notes: Output<N>,
}

impl Screen<Stdout, Stderr> {
    /// Writes the answer to standard output, everything else to standard error.
    pub(crate) fn standard() -> Self {
        Self::new(Output::standard(io::stdout()), Output::standard(io::stderr()))
    }
}

impl<A: Write, N: Write> Screen<A, N> {
    pub(crate) fn new(answer: Output<A>, notes: Output<N>) -> Self {
        Self { answer, notes }
    }

    /// Shows one chunk of a turn.
    pub(crate) fn show(&mut self, chunk: &Chunk) -> io::Result<()> {
        match chunk {
            Chunk::Delta { delta: BlockDelta::Text(text) | BlockDelta::Refusal(text), .. } => {
                self.answer_goes_on(text)
            }
            Chunk::Delta { delta: BlockDelta::Reasoning(text), .. } => self.reasoning_goes_on(text),
            Chunk::Closed { content, .. } => self.block_ends(content),
            Chunk::Tool(event) => tool_line(event).map_or(Ok(()), |line| self.note(&line)),
            Chunk::AttemptRestarted { .. } => {
                self.end_lines()?;
                self.note("[the answer starts over; ignore the text above]")
            }
            Chunk::Completed(response) => {
                self.end_lines()?;
                note_of(&response.finish().reason).map_or(Ok(()), |note| self.note(&format!("[{note}]")))
            }
            _ => Ok(()),
        }
    }

    /// Writes a line to the stream of the answer.
    pub(crate) fn line(&mut self, text: impl Display) -> io::Result<()> {
        self.end_lines()?;
        self.answer.write(&format!("{text}\n"))
    }

    /// Writes a note on separate lines.
    pub(crate) fn note(&mut self, text: &str) -> io::Result<()> {
        self.leave_answer()?;
        let _ = self.notes.end_line().and_then(|()| self.notes.write(&format!("{}\n", printable(text))));
        Ok(())
    }

    /// Ends the lines that were begun on either stream.
    pub(crate) fn end_lines(&mut self) -> io::Result<()> {
        let _ = self.notes.end_line();
        self.answer.end_line()
    }

    fn answer_goes_on(&mut self, text: &str) -> io::Result<()> {
        // Also if the notes go to another stream: both may end up in one file.
        let _ = self.notes.end_line();
        self.answer.write(&printable(text))
    }

    fn reasoning_goes_on(&mut self, text: &str) -> io::Result<()> {
        self.leave_answer()?;
        let (begin, end) = match self.notes.style() {
            Style::Coloured => (DIM, NORMAL),
            Style::Plain | Style::Piped => ("", ""),
        };
        for piece in printable(text).split_inclusive('\n') {
            let mark = if self.notes.is_open() { "" } else { REASONING };
            let line = piece.trim_end_matches('\n');
            let _ = self.notes.write(&format!("{begin}{mark}{line}{end}{}", &piece[line.len()..]));
        }
        Ok(())
    }

    fn block_ends(&mut self, block: &Block) -> io::Result<()> {
        match block.kind() {
            BlockKind::Text | BlockKind::Refusal => self.answer.end_line(),
            BlockKind::Reasoning => {
                let _ = self.notes.end_line();
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Ends the answer's line before other output, if one terminal shows both. In a file the line continues.
    fn leave_answer(&mut self) -> io::Result<()> {
        match (self.answer.style(), self.notes.style()) {
            (Style::Piped, _) | (_, Style::Piped) => Ok(()),
            _ => self.answer.end_line(),
        }
    }
}

/// Returns the line to show for a tool event, if any.
fn tool_line(event: &ToolEvent) -> Option<String> {
    let name = &event.name;
    match &event.kind {
        ToolEventKind::Started { arguments } => Some(format!("  ⚙ {name} {arguments} …")),
        ToolEventKind::Progress(part) => Some(format!("  ⚙ {name}: {}", part.as_text().unwrap_or("…"))),
        ToolEventKind::Finished(result) => {
            let mark = if result.is_error { "✗" } else { "✓" };
            Some(format!("  {mark} {name} {} → {}", event.call_id, first_line(&result.parts)))
        }
        ToolEventKind::NotStarted { result, .. } => {
            Some(format!("  ⊘ {name} {} → {}", event.call_id, first_line(&result.parts)))
        }
        _ => None,
    }
}

/// Returns a note about the end of a turn; none if the model simply finished.
fn note_of(reason: &FinishReason) -> Option<String> {
    let note = match reason {
        FinishReason::Empty => "the answer is empty",
        FinishReason::Length => "cut off: the token limit was reached",
        FinishReason::ContentFilter => "cut off by a content filter of the provider",
        FinishReason::Refusal => "the model refused",
        FinishReason::Paused => "the provider paused; the answer may continue in the next turn",
        FinishReason::Interrupted => "the answer was interrupted",
        FinishReason::Limit(limit) => return Some(format!("{limit} was reached")),
        FinishReason::Other(reason) => return Some(format!("the provider ended the answer: {reason}")),
        _ => return None,
    };
    Some(note.to_owned())
}

fn first_line(parts: &[Part]) -> String {
    let text: String = parts.iter().filter_map(Part::as_text).collect();
    text.lines().next().unwrap_or_default().chars().take(100).collect()
}

/// Replaces the control characters in text of a model or a tool, which could steer the terminal.
pub(crate) fn printable(text: &str) -> String {
    text.chars()
        .map(|char| if char.is_control() && !matches!(char, '\n' | '\t') { '\u{fffd}' } else { char })
        .collect()
}

/// Returns the message of an error and of its causes.
pub(crate) fn chain_of(error: &dyn Error) -> String {
    printable(&text_with_sources(error))
}

#[cfg(test)]
mod tests {
    use advisor_chain::messages::{BlockId, Limit};

    use super::*;

    #[test]
    fn control_characters_are_replaced() {
        assert_eq!(printable("a\x1b[2Jb\r\u{9b}c\td\n"), "a\u{fffd}[2Jb\u{fffd}\u{fffd}c\td\n");
    }

    #[test]
    fn abnormal_finish_reasons_produce_note() {
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

    /// Returns the output on both streams after text, reasoning within it, and a restart.
    fn shown(answer: Style, notes: Style) -> (String, String) {
        let (mut answered, mut noted) = (Vec::new(), Vec::new());
        let mut screen = Screen::new(Output::new(&mut answered, answer), Output::new(&mut noted, notes));
        let block = BlockId::new(1, 0);
        for delta in [
            BlockDelta::Text("One ".into()),
            BlockDelta::Reasoning("hm\x1b".into()),
            BlockDelta::Text("two".into()),
        ] {
            screen.show(&Chunk::Delta { block, delta }).unwrap();
        }
        screen.show(&Chunk::AttemptRestarted { round: 1 }).unwrap();
        (String::from_utf8(answered).unwrap(), String::from_utf8(noted).unwrap())
    }

    #[test]
    fn d12_answer_is_separate_from_reasoning_only_on_terminal() {
        let void = "[the answer starts over; ignore the text above]\n";
        let plain = format!("| hm\u{fffd}\n{void}");
        for notes in [Style::Piped, Style::Plain] {
            assert_eq!(shown(Style::Piped, notes), ("One two\n".into(), plain.clone()));
        }
        assert_eq!(shown(Style::Coloured, Style::Piped), ("One two\n".into(), plain.clone()));
        assert_eq!(shown(Style::Plain, Style::Plain), ("One \ntwo\n".into(), plain));
        let coloured = format!("\x1b[2m| hm\u{fffd}\x1b[0m\n{void}");
        assert_eq!(shown(Style::Coloured, Style::Coloured), ("One \ntwo\n".into(), coloured));
    }
}
