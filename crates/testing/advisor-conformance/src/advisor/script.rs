//! The answers of the model, and the ways in which they arrive.

use std::future::ready;

use advisor_core::{
    Delta, DeltaKind, Error, ErrorKind, FinishReason, Media, Opaque, ProviderData, Text, ToolCallDelta, Usage,
};
use serde_json::json;
use tokio::task::yield_now;

use super::subject::Subject;
use advisor_testkit::split::{pieces, random_offsets};
use advisor_testkit::{Answer, Gate};

/// The tool that the model calls.
pub(super) const TOOL: &str = "work";
/// The last words of the model in a turn of several answers.
pub(super) const LAST: &str = "All done.";

/// An answer of the model, by its parts.
#[derive(Debug, Clone)]
pub(super) struct Script {
    pub(super) name: &'static str,
    parts: Vec<Part>,
    finish: FinishReason,
}

#[derive(Debug, Clone)]
enum Part {
    /// A text that arrives in pieces, each in a delta of the block or call with this number.
    Pieces(fn(i64, Text) -> Delta, i64, String),
    /// Anything that arrives whole.
    Whole(Delta),
}

/// The pieces in which the texts of an answer arrive.
#[derive(Debug, Clone, Copy)]
pub(super) enum Cut {
    Whole,
    /// Pieces of this many characters.
    Every(usize),
    /// Pieces of random lengths, from this seed.
    Randomly(u64),
}

/// The way in which deltas arrive.
#[derive(Debug, Clone, Copy)]
pub(super) enum Pace {
    /// All that is sent is ready at once, and can be taken as a batch.
    AtOnce,
    /// One at a time; each is ready when it is polled for.
    OneByOne,
    /// One at a time, with a pause before each.
    WithPauses,
}

/// The end of an answer.
#[derive(Debug, Clone)]
pub(super) enum End {
    Finish,
    Truncated,
    Fails(ErrorKind),
    /// The model waits here.
    Waits(Gate),
}

impl Script {
    /// An answer of one text.
    pub(super) fn text(subject: &Subject) -> Self {
        let parts = vec![text(&subject.answer), usage()];
        Self { name: "a text", parts, finish: FinishReason::Stop }
    }

    /// An answer with a block of each kind.
    pub(super) fn blocks(subject: &Subject) -> Self {
        let media = Media::from_bytes("image/png", vec![1, 2, 3]);
        let opaque = Opaque::new("conformance", "search", json!({"found": 1}));
        let parts = vec![
            Part::Pieces(|_, piece| Delta::reasoning(piece), 0, "Let me think about it.".into()),
            text(&subject.answer),
            Part::Whole(DeltaKind::Citation(Box::default()).into()),
            Part::Whole(Delta::media(media)),
            Part::Whole(DeltaKind::Opaque(Box::new(opaque)).into()),
            Part::Whole(DeltaKind::Refusal("I would rather not.".into()).into()),
            text(&subject.answer),
            usage(),
        ];
        Self { name: "a block of each kind", parts, finish: FinishReason::Stop }
    }

    /// An answer of a text and two calls.
    pub(super) fn calls(subject: &Subject) -> Self {
        Self::calls_with(&subject.answer)
    }

    /// The same with this text.
    pub(super) fn calls_with(said: &str) -> Self {
        let start = |index, id: &str| Part::Whole(Delta::tool_call(ToolCallDelta::start(index, id, TOOL)));
        let arguments = |index, text: &str| {
            let piece = |index, piece| Delta::tool_call(ToolCallDelta::arguments(index, piece));
            Part::Pieces(piece, index, text.into())
        };
        let parts = vec![
            text(said),
            start(0, "c1"),
            arguments(0, r#"{"n":1}"#),
            start(1, "c2"),
            arguments(1, r#"{"n":2}"#),
            usage(),
        ];
        Self { name: "two calls", parts, finish: FinishReason::ToolCalls }
    }

    /// An answer of two texts that arrive interleaved, each with data of the provider.
    fn interleaved(subject: &Subject) -> Self {
        let middle = subject.answer.char_indices().nth(subject.answer.chars().count() / 2);
        let (first, second) = subject.answer.split_at(middle.map_or(0, |(at, _)| at));
        let numbered = |block, piece| Delta::text(piece).with_block(block);
        let part = |block, text: &str| Part::Pieces(numbered, block, text.into());
        let data = DeltaKind::BlockData(Box::new(ProviderData::new("conformance", json!({"signature": 1}))));
        let end = |block| Part::Whole(Delta::from(DeltaKind::BlockEnd).with_block(block));
        let parts = vec![
            part(0, first),
            part(1, first),
            part(0, second),
            Part::Whole(Delta::from(data.clone()).with_block(0)),
            end(0),
            part(1, second),
            Part::Whole(Delta::from(data).with_block(1)),
            end(1),
            usage(),
        ];
        Self { name: "two texts at once", parts, finish: FinishReason::Stop }
    }

    /// An answer without content.
    fn empty() -> Self {
        Self { name: "an empty answer", parts: Vec::new(), finish: FinishReason::Stop }
    }

    pub(super) fn all(subject: &Subject) -> [Self; 5] {
        [
            Self::text(subject),
            Self::blocks(subject),
            Self::interleaved(subject),
            Self::calls(subject),
            Self::empty(),
        ]
    }

    /// Returns the deltas before the finish reason.
    pub(super) fn deltas(&self, cut: Cut) -> Vec<Delta> {
        let mut deltas = Vec::new();
        for part in &self.parts {
            match part {
                Part::Pieces(delta, number, text) => {
                    deltas.extend(cut.apply(text).into_iter().map(|piece| delta(*number, piece)));
                }
                Part::Whole(delta) => deltas.push(delta.clone()),
            }
        }
        deltas
    }

    /// Returns the whole answer.
    pub(super) fn whole(&self, cut: Cut, pace: Pace) -> Answer {
        self.answer(&self.deltas(cut), pace, &End::Finish)
    }

    /// Returns an answer of these deltas, which are the script's or the first of them.
    pub(super) fn answer(&self, deltas: &[Delta], pace: Pace, end: &End) -> Answer {
        let answer =
            deltas.iter().fold(Answer::new(), |answer, delta| pace.wait(answer).delta(delta.clone()));
        let answer = pace.wait(answer);
        match end {
            End::Finish => answer.finish(self.finish.clone()),
            End::Truncated => answer,
            End::Fails(kind) => answer.error(Error::new(*kind, "the model fails here")),
            End::Waits(gate) => answer.gate(gate).finish(self.finish.clone()),
        }
    }
}

impl Pace {
    /// The paces at which nothing waits.
    pub(super) const READY: [Self; 2] = [Self::AtOnce, Self::OneByOne];
    pub(super) const ALL: [Self; 3] = [Self::AtOnce, Self::OneByOne, Self::WithPauses];

    fn wait(self, answer: Answer) -> Answer {
        match self {
            Self::AtOnce => answer,
            Self::OneByOne => answer.wait(ready(())),
            Self::WithPauses => answer.wait(yield_now()),
        }
    }
}

impl Cut {
    fn apply(self, text: &str) -> Vec<Text> {
        let characters: Vec<_> = text.char_indices().map(|(at, _)| at).collect();
        let offsets = match self {
            Self::Whole => Vec::new(),
            Self::Every(count) => characters.iter().copied().step_by(count.max(1)).collect(),
            Self::Randomly(seed) => {
                let places = random_offsets(characters.len(), seed, characters.len() / 3 + 1);
                places.into_iter().filter_map(|place| characters.get(place).copied()).collect()
            }
        };
        let pieces = pieces(text.as_bytes(), &offsets);
        pieces.into_iter().map(|piece| String::from_utf8_lossy(piece).into_owned().into()).collect()
    }
}

fn text(text: &str) -> Part {
    Part::Pieces(|_, piece| Delta::text(piece), 0, text.into())
}

fn usage() -> Part {
    Part::Whole(Delta::usage(Usage::new(10, 5)))
}
