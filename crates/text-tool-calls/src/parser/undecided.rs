//! `Undecided`: a text that may begin a call, with a candidate for each syntax that is still possible.

use super::candidate::Candidate;
use super::format::TextFormat;
use super::input::Tail;
use super::json::Balance;
use super::opening::Opening;
use super::settings::ParserSettings;
use crate::tools::TextTools;

/// A text that may begin a call, with a candidate for each syntax that is still possible.
#[derive(Debug)]
pub(super) struct Undecided(Vec<Candidate>);

/// The result of a look at such a text.
#[derive(Debug)]
pub(super) enum Decision {
    /// It depends on what follows.
    Waits(Undecided),
    Call(Box<Candidate>),
    /// The length of text in bytes. If the text is JSON that is no call, the balance finds its end.
    Text(usize, Option<Balance>),
}

impl Undecided {
    /// Creates the candidates for a text with this first character, if there are any.
    pub(super) fn new(
        first: char,
        formats: &[TextFormat],
        tools: &TextTools,
        settings: &ParserSettings,
    ) -> Option<Self> {
        let formats = formats.iter().filter(|format| format.begins_with(first));
        let candidates: Vec<_> =
            formats.flat_map(|format| Candidate::for_format(*format, tools, settings)).collect();
        (!candidates.is_empty()).then_some(Self(candidates))
    }

    /// Looks at the text from its first character on. At its end, undecided text is no call.
    pub(super) fn decide(self, text: &str, tail: Tail) -> Decision {
        let (mut undecided, mut length, mut data) = (Vec::new(), 1, None);
        for mut candidate in self.0 {
            let opening = match candidate.open(text) {
                Opening::Undecided if tail == Tail::Ended => candidate.give_up(),
                opening => opening,
            };
            match opening {
                Opening::Yes => return Decision::Call(Box::new(candidate)),
                Opening::Undecided => undecided.push(candidate),
                Opening::No(text) => length = length.max(text),
                Opening::Data(text) => {
                    length = length.max(text);
                    data = candidate.balance();
                }
            }
        }
        if undecided.is_empty() { Decision::Text(length, data) } else { Decision::Waits(Self(undecided)) }
    }
}
