//! The output of a turn, on two streams.

pub(crate) mod notes;
pub(crate) mod output;

use std::error::Error;
use std::fmt::Display;
use std::io::{self, Stderr, Stdout, Write};

use advisor_chain::chain::text_with_sources;
use advisor_chain::messages::{Block, BlockDelta, BlockKind};
use advisor_chain::{Chunk, FinishReason};

use self::notes::{media_line, source_line, tool_note};
use self::output::{Look, Output};
use crate::printable::printable;

/// The prefix of each line of reasoning.
const REASONING: &str = "| ";

/// The most sources that are listed.
const SOURCES: usize = 20;

/// The output of a turn: the answer on one stream; reasoning, tools and notes on another.
///
/// A failure to write a note does not affect the answer.
#[derive(Debug)]
pub(crate) struct Screen<A, N> {
    answer: Output<A>,
    notes: Output<N>,
    /// The sources of the answer that are not listed yet, each once.
    sources: Vec<String>,
    /// The kind of the text that was closed last. A further one continues its line; other output ends it.
    closed: Option<BlockKind>,
}

impl Screen<Stdout, Stderr> {
    /// Writes the answer to standard output, everything else to standard error.
    pub(crate) fn standard() -> Self {
        Self::new(Output::standard(io::stdout()), Output::standard(io::stderr()))
    }
}

impl<A: Write, N: Write> Screen<A, N> {
    pub(crate) fn new(answer: Output<A>, notes: Output<N>) -> Self {
        Self { answer, notes, sources: Vec::new(), closed: None }
    }

    /// Shows one chunk of a turn.
    pub(crate) fn show(&mut self, chunk: &Chunk) -> io::Result<()> {
        match chunk {
            Chunk::Opened { head, .. } => self.block_begins(head.kind),
            Chunk::Delta { delta: BlockDelta::Text(text) | BlockDelta::Refusal(text), .. } => {
                self.answer_goes_on(text)
            }
            Chunk::Delta { delta: BlockDelta::Reasoning(text), .. } => self.reasoning_goes_on(text),
            Chunk::Delta { delta: BlockDelta::Media(media), .. } => self.note(&media_line(media)),
            Chunk::Delta { delta: BlockDelta::Citation(citation), .. } => {
                // In the middle of a sentence it would split the text.
                self.sources.extend(source_line(citation).filter(|line| !self.sources.contains(line)));
                Ok(())
            }
            Chunk::Closed { content, .. } => {
                self.block_ends(content);
                Ok(())
            }
            Chunk::Tool(event) => match tool_note(event) {
                Some((look, note)) => self.note_in(look, &note),
                None => Ok(()),
            },
            Chunk::RoundCompleted(_) => self.end_texts(),
            Chunk::AttemptRestarted { .. } => {
                self.sources.clear();
                self.end_lines()?;
                self.note("[the answer starts over; ignore the text above]")
            }
            Chunk::Completed(response) => {
                self.end_lines()?;
                note_of(&response.finish.reason).map_or(Ok(()), |note| self.note(&format!("[{note}]")))
            }
            _ => Ok(()),
        }
    }

    /// Writes a line to the stream of the answer.
    pub(crate) fn line(&mut self, text: impl Display) -> io::Result<()> {
        self.end_lines()?;
        self.answer.write(&format!("{text}\n"))
    }

    /// Shows a whole text as an answer.
    pub(crate) fn text(&mut self, text: &str) -> io::Result<()> {
        self.end_lines()?;
        self.answer_goes_on(text)?;
        self.end_lines()
    }

    /// Writes a note on separate lines.
    pub(crate) fn note(&mut self, text: &str) -> io::Result<()> {
        self.note_in(Look::Usual, text)
    }

    /// Writes a note about a failure.
    pub(crate) fn error(&mut self, text: &str) -> io::Result<()> {
        self.note_in(Look::Red, &format!("error: {text}"))
    }

    fn note_in(&mut self, look: Look, text: &str) -> io::Result<()> {
        self.leave_answer()?;
        let text = self.notes.paint(look, &printable(text));
        let _ = self.notes.end_line().and_then(|()| self.notes.write(&format!("{text}\n")));
        Ok(())
    }

    /// Ends the lines that were begun on either stream, at the end of a text or of a turn.
    pub(crate) fn end_lines(&mut self) -> io::Result<()> {
        let _ = self.notes.end_line();
        self.end_texts()
    }

    /// Ends the texts of a round, and lists their sources.
    fn end_texts(&mut self) -> io::Result<()> {
        self.end_answer()?;
        let sources = std::mem::take(&mut self.sources);
        let mut numbered = sources.iter().zip(1..).take(SOURCES);
        numbered
            .try_for_each(|(line, number)| self.note_in(Look::Dim, &format!("[source {number}] {line}")))?;
        match sources.len().saturating_sub(SOURCES) {
            0 => Ok(()),
            more => self.note_in(Look::Dim, &format!("[{more} more sources]")),
        }
    }

    fn end_answer(&mut self) -> io::Result<()> {
        self.closed = None;
        self.answer.end_line()
    }

    fn answer_goes_on(&mut self, text: &str) -> io::Result<()> {
        // Even if the notes go to another stream, since one file may get both.
        let _ = self.notes.end_line();
        self.answer.write(&printable(text))
    }

    /// Ends the line of the texts before a block of another kind. Providers also split a sentence into several texts, to
    /// attach a source or a signature to one of them.
    fn block_begins(&mut self, kind: BlockKind) -> io::Result<()> {
        match self.closed {
            Some(closed) if kind != BlockKind::Citation && closed != kind => self.end_answer(),
            _ => Ok(()),
        }
    }

    fn reasoning_goes_on(&mut self, text: &str) -> io::Result<()> {
        self.leave_answer()?;
        for piece in printable(text).split_inclusive('\n') {
            let mark = if self.notes.is_open() { "" } else { REASONING };
            let (line, end) = piece.strip_suffix('\n').map_or((piece, ""), |line| (line, "\n"));
            let line = self.notes.paint(Look::Dim, &format!("{mark}{line}"));
            let _ = self.notes.write(&format!("{line}{end}"));
        }
        Ok(())
    }

    fn block_ends(&mut self, block: &Block) {
        match block.kind() {
            kind @ (BlockKind::Text | BlockKind::Refusal) => self.closed = Some(kind),
            BlockKind::Reasoning => {
                let _ = self.notes.end_line();
            }
            _ => {}
        }
    }

    /// Ends the answer's line before other output, if its text is closed or one terminal shows both. Otherwise the line
    /// continues in a file.
    fn leave_answer(&mut self) -> io::Result<()> {
        match self.closed.is_some() || (self.answer.is_terminal() && self.notes.is_terminal()) {
            true => self.end_answer(),
            false => Ok(()),
        }
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

/// Returns the message of an error and of its causes.
pub(crate) fn chain_of(error: &dyn Error) -> String {
    printable(&text_with_sources(error))
}

#[cfg(test)]
mod tests {
    use advisor_chain::messages::{BlockContent, BlockHead, BlockId, Citation, Media};

    use super::output::Style::{self, Coloured, Piped, Plain};
    use super::*;

    /// Returns the output on both streams after these chunks.
    fn shown_chunks(
        answer: Style,
        notes: Style,
        chunks: impl IntoIterator<Item = Chunk>,
    ) -> (String, String) {
        let (mut answered, mut noted) = (Vec::new(), Vec::new());
        let mut screen = Screen::new(Output::new(&mut answered, answer), Output::new(&mut noted, notes));
        chunks.into_iter().for_each(|chunk| screen.show(&chunk).unwrap());
        screen.end_lines().unwrap();
        (String::from_utf8(answered).unwrap(), String::from_utf8(noted).unwrap())
    }

    /// The same after text, reasoning within it, and a restart.
    fn shown(answer: Style, notes: Style) -> (String, String) {
        let block = BlockId::new(1, 0);
        let text = |text: &str| BlockDelta::Text(text.into());
        let deltas = [text("One "), BlockDelta::Reasoning("hm\x1b".into()), text("two")];
        let restarted = Chunk::AttemptRestarted { round: 1 };
        let deltas = deltas.map(|delta| Chunk::Delta { block, delta });
        shown_chunks(answer, notes, deltas.into_iter().chain([restarted]))
    }

    #[test]
    fn answer_is_separate_from_reasoning_only_on_terminal() {
        let void = "[the answer starts over; ignore the text above]\n";
        let plain = format!("| hm\u{fffd}\n{void}");
        for notes in [Piped, Plain] {
            assert_eq!(shown(Piped, notes), ("One two\n".into(), plain.clone()));
        }
        assert_eq!(shown(Coloured, Piped), ("One two\n".into(), plain.clone()));
        assert_eq!(shown(Plain, Plain), ("One \ntwo\n".into(), plain));
        let coloured = format!("\x1b[2m| hm\u{fffd}\x1b[0m\n{void}");
        assert_eq!(shown(Coloured, Coloured), ("One \ntwo\n".into(), coloured));
    }

    /// Returns the output on both streams of an answer with these blocks.
    fn shown_blocks(style: Style, blocks: &[BlockContent]) -> (String, String) {
        let chunks = blocks.iter().zip(0..).flat_map(|(content, position)| {
            let (block, content) = (BlockId::new(1, position), Block::new(content.clone()));
            let head = BlockHead::from_block(&content);
            let delta = BlockDelta::from_content(content.content());
            let delta = delta.map(|delta| Chunk::Delta { block, delta });
            [Some(Chunk::Opened { block, head }), delta, Some(Chunk::Closed { block, content })]
        });
        shown_chunks(style, style, chunks.flatten())
    }

    fn text(text: &str) -> BlockContent {
        BlockContent::Text(text.into())
    }

    fn source(title: Option<&str>, address: &str) -> BlockContent {
        let mut citation = Citation::default();
        (citation.title, citation.url) = (title.map(Into::into), Some(address.into()));
        BlockContent::Citation(citation)
    }

    const SOURCE: &str = "[source 1] A (https://e.com/a)\n";

    #[test]
    fn text_in_several_blocks_is_shown_as_it_was_written() {
        let source = || source(Some("A"), "https://e.com/a");
        let cited = [text("The capital is "), source(), text("Oslo"), source(), text(", in the south.")];
        for style in [Piped, Plain, Coloured] {
            let (answer, _) = shown_blocks(style, &[text("The **wo"), text(""), text("rd** is split.")]);
            assert_eq!(answer, "The **word** is split.\n");
            let (answer, notes) = shown_blocks(style, &cited);
            assert_eq!(answer, "The capital is Oslo, in the south.\n");
            let look = if style == Coloured { "\x1b[2m" } else { "" };
            assert!(notes.starts_with(look) && notes.contains(SOURCE.trim()), "{notes:?}");
            assert_eq!(notes.matches("source").count(), 1, "{notes:?}");
        }
    }

    #[test]
    fn sources_beyond_the_bound_are_counted() {
        let source = |number: usize| source(None, &format!("https://e.com/{number}"));
        let notes = |sources: usize| shown_blocks(Plain, &Vec::from_iter((0..sources).map(source))).1;
        assert_eq!(notes(20).lines().last(), Some("[source 20] https://e.com/19"));
        assert_eq!(notes(25).lines().count(), 21);
        assert_eq!(notes(25).lines().last(), Some("[5 more sources]"));
    }

    #[test]
    fn other_output_between_two_texts_ends_the_line() {
        let media = BlockContent::Media(Media::from_bytes("image/png", vec![0; 8]));
        for (between, note) in [
            (BlockContent::Reasoning("Hm.".into()), "| Hm.\n"),
            (media, "[image: image/png, 8 bytes]\n"),
            (BlockContent::Refusal("No.".into()), ""),
        ] {
            for style in [Piped, Plain] {
                let (answer, notes) = shown_blocks(style, &[text("One."), between.clone(), text("Two.")]);
                let refusal = if note.is_empty() { "No.\n" } else { "" };
                assert_eq!((answer, notes), (format!("One.\n{refusal}Two.\n"), note.to_owned()));
            }
        }
    }
}
