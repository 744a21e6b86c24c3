//! Calls: whole ones, and those whose arguments arrive in pieces.

use advisor_core::{Delta, DeltaKind, ProviderData, Text, ToolCallDelta};
use serde_json::value::RawValue;

use super::arguments::{Arguments, Piece};
use crate::wire::{Object, compact, text};

/// The calls of a candidate.
#[derive(Debug, Default)]
pub(super) struct Calls {
    /// The number of calls so far, which distinguishes them: the wire often has no ids, and no indexes.
    begun: i64,
    /// The call whose arguments continue.
    open: Option<OpenCall>,
    /// Whether an event was more than another piece of a string.
    changed: bool,
}

#[derive(Debug)]
struct OpenCall {
    index: i64,
    id: Option<String>,
    name: Option<String>,
    arguments: Arguments,
}

impl Calls {
    /// Emits a call or a piece of one. `signature` is the data of its part.
    ///
    /// A piece says `willContinue`. The last one does not, and may be empty.
    pub(super) fn read(
        &mut self,
        call: &Object<'_>,
        signature: Option<ProviderData>,
        push: &mut impl FnMut(Delta),
    ) {
        let continues = self.open.as_ref().is_some_and(|open| open.continues_with(call));
        if !continues {
            self.abandon(push);
            self.begin(call);
        }
        let Some(open) = &mut self.open else { return };
        let index = open.index;
        let mut fragment = open.header(call);
        let (mut text, piece) = open.read(call);
        let ends = !call.is_true("willContinue");
        if ends {
            text.push_str(&open.arguments.close());
            self.open = None;
        }
        self.changed |= !continues || ends || piece != Piece::OfString;
        fragment.index = Some(index);
        fragment.arguments_delta = (!text.is_empty()).then(|| text.into());
        fragment.provider_data = signature;
        push(Delta::tool_call(fragment));
        if ends {
            push(Delta::from(DeltaKind::BlockEnd).with_block(index));
        }
    }

    /// Returns whether an event since the last time was more than another piece of a string.
    pub(super) fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }

    /// Leaves a call whose end did not arrive. Its arguments are no valid JSON then, so that it never runs.
    pub(super) fn abandon(&mut self, push: &mut impl FnMut(Delta)) {
        let Some(mut open) = self.open.take() else { return };
        let text = open.arguments.abandon();
        if !text.is_empty() {
            push(Delta::tool_call(ToolCallDelta::arguments(open.index, text)));
        }
    }

    /// Begins a call, unless the fields are empty.
    fn begin(&mut self, call: &Object<'_>) {
        if call.names().next().is_some() {
            let index = self.begun;
            self.begun = self.begun.saturating_add(1);
            self.open = Some(OpenCall { index, id: None, name: None, arguments: Arguments::default() });
        }
    }
}

impl OpenCall {
    /// Checks whether these are more fields of this call. A whole call is always a new one.
    fn continues_with(&self, call: &Object<'_>) -> bool {
        let fits = |field: &str, own: &Option<String>| {
            own.as_deref().is_none_or(|own| call.text(field).is_none_or(|word| own == word))
        };
        let is_whole = call.field("name").is_some() && call.field("args").is_some();
        !is_whole && fits("name", &self.name) && fits("id", &self.id)
    }

    /// Returns a fragment with the id and the name, if they were not known before.
    fn header(&mut self, call: &Object<'_>) -> ToolCallDelta {
        let mut fragment = ToolCallDelta::default();
        let places =
            [("id", &mut self.id, &mut fragment.call_id), ("name", &mut self.name, &mut fragment.name)];
        for (field, own, sent) in places {
            if let Some(word) = call.text(field).filter(|_| own.is_none()) {
                *sent = Some(Text::from(&*word));
                *own = Some(word.into_owned());
            }
        }
        fragment
    }

    /// Returns the characters that a call adds to the arguments.
    fn read(&mut self, call: &Object<'_>) -> (String, Piece) {
        if let Some(args) = call.field("args") {
            return (self.arguments.whole(&whole(args)), Piece::Other);
        }
        let mut written = (String::new(), Piece::Other);
        for (place, piece) in call.list("partialArgs").into_iter().enumerate() {
            let (text, kind) = self.arguments.piece(&Object::read(piece).unwrap_or_default());
            written.0.push_str(&text);
            written.1 = if place == 0 { kind } else { Piece::Other };
        }
        written
    }
}

/// Returns whole arguments as text: an object as it is spelled, or the text in its place.
fn whole(args: &RawValue) -> String {
    text(args).filter(|_| args.get().starts_with('"')).map_or_else(|| compact(args), |text| text.into_owned())
}
