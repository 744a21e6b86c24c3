//! Pieces of content as they stream: text, refusals, reasoning, arguments, citations; and the ends of their parts.

use advisor_core::{Delta, DeltaKind, Text, ToolCallDelta};
use provider_http::json::{Str, value};

use super::items::{Identity, OpenItem};
use super::part::{PartPosition, PartStage, citation_of};
use super::{Converted, Deltas, Responses};
use crate::responses::wire::{Event, ItemKind};

impl Responses {
    pub(super) fn text(
        &mut self,
        event: &Event<'_>,
        kind: fn(Text) -> DeltaKind,
        deltas: &mut Deltas,
    ) -> Converted {
        let Some(text) = event.delta.text() else { return Ok(()) };
        let at = self.items.of(Identity::from_event(event), ItemKind::Message)?;
        self.open_part(at, PartPosition::from_content(event))?;
        if let Some(part) =
            self.items.part(at, PartPosition::from_content(event))?.filter(|part| !part.has_ended())
        {
            part.add(kind(text.into()), deltas);
        }
        Ok(())
    }

    /// Converts the end of a text or a refusal.
    pub(super) fn end_text(
        &mut self,
        event: &Event<'_>,
        whole: Str<'_>,
        kind: fn(Text) -> DeltaKind,
        deltas: &mut Deltas,
    ) -> Converted {
        let at = self.items.of(Identity::from_event(event), ItemKind::Message)?;
        if !whole.is_empty() {
            self.open_part(at, PartPosition::from_content(event))?;
        }
        if let Some(part) = self.items.part(at, PartPosition::from_content(event))? {
            part.end(whole.text().map(|whole| kind(whole.into())), deltas);
        }
        Ok(())
    }

    pub(super) fn reasoning(
        &mut self,
        event: &Event<'_>,
        place: PartPosition,
        deltas: &mut Deltas,
    ) -> Converted {
        let Some(text) = event.delta.text() else { return Ok(()) };
        let at = self.items.of(Identity::from_event(event), ItemKind::Reasoning)?;
        if self.items.at(at).is_none_or(|item| item.ended) {
            return Ok(());
        }
        self.add_reasoning(at, place, &text, deltas)
    }

    /// Converts the whole text of a part of reasoning, unless a piece of it has streamed.
    pub(super) fn whole_reasoning(
        &mut self,
        event: &Event<'_>,
        place: PartPosition,
        deltas: &mut Deltas,
    ) -> Converted {
        let Some(text) = event.text.text() else { return Ok(()) };
        let at = self.items.of(Identity::from_event(event), ItemKind::Reasoning)?;
        let is_known = |item: &mut OpenItem| item.ended || item.parts.iter().any(|part| part.place == place);
        if self.items.at(at).is_none_or(is_known) {
            return Ok(());
        }
        self.add_reasoning(at, place, &text, deltas)
    }

    /// Emits reasoning. Its raw text and its summary say the same, so only the first kind that arrives is shown. A part
    /// ends when the next one begins. Here and nowhere else a blank line is put between parts, so that all readers of the
    /// text agree.
    pub(super) fn add_reasoning(
        &mut self,
        at: usize,
        place: PartPosition,
        text: &str,
        deltas: &mut Deltas,
    ) -> Converted {
        let Some(item) = self.items.at(at) else { return Ok(()) };
        if item.parts.first().is_some_and(|first| !first.place.is_beside(place)) {
            return Ok(());
        }
        let others = item.parts.iter_mut().filter(|part| part.place != place);
        others.for_each(|part| part.stage = PartStage::Ended);
        self.open(at);
        let Some(part) = self.items.part(at, place)?.filter(|part| !part.has_ended()) else { return Ok(()) };
        let begins = part.stage == PartStage::Empty;
        let text = if begins && self.has_reasoned { Text::from(format!("\n\n{text}")) } else { text.into() };
        part.add(DeltaKind::Reasoning(text), deltas);
        self.has_reasoned = true;
        Ok(())
    }

    pub(super) fn arguments(&mut self, event: &Event<'_>, deltas: &mut Deltas) -> Converted {
        let Some(text) = event.delta.text() else { return Ok(()) };
        let at = self.items.of(Identity::from_event(event), ItemKind::FunctionCall)?;
        let place = self.open(at);
        if let Some(item) = self.items.at(at).filter(|item| !item.ended) {
            item.has_arguments = true;
            let mut fragment = ToolCallDelta::arguments(item.number, Text::from(text));
            fragment.provider_data = place;
            deltas.push_back(Delta::tool_call(fragment));
        }
        Ok(())
    }

    /// Converts whole arguments. The call ends with its item, which has its name if nothing else had.
    pub(super) fn end_arguments(&mut self, event: &Event<'_>, deltas: &mut Deltas) -> Converted {
        let at = self.items.of(Identity::from_event(event), ItemKind::FunctionCall)?;
        let place = self.open(at);
        let Some(item) = self.items.at(at).filter(|item| !item.ended) else { return Ok(()) };
        let mut fragment = ToolCallDelta::default();
        fragment.provider_data = place;
        if let Some(name) = event.name.text().filter(|_| !item.has_name) {
            fragment.name = Some(name.into());
            (item.has_name, self.has_calls) = (true, true);
        }
        if let Some(arguments) = event.arguments.text().filter(|_| !item.has_arguments) {
            (fragment.arguments_delta, item.has_arguments) = (Some(arguments.into()), true);
        }
        fragment.index = Some(item.number);
        deltas.push_back(Delta::tool_call(fragment));
        Ok(())
    }

    /// Notes a part of a message, so that later parts keep their places.
    pub(super) fn begin_part(&mut self, event: &Event<'_>) -> Converted {
        if event.part.as_ref().is_some_and(|part| part.is_of_message()) {
            let at = self.items.of(Identity::from_event(event), ItemKind::Message)?;
            self.items.part(at, PartPosition::from_content(event))?;
        }
        Ok(())
    }

    /// Converts the end of a part of a message.
    pub(super) fn end_part(&mut self, event: &Event<'_>, deltas: &mut Deltas) -> Converted {
        let Some(part) = event.part.as_deref().filter(|part| part.is_of_message()) else { return Ok(()) };
        let at = self.items.of(Identity::from_event(event), ItemKind::Message)?;
        if part.said().is_some() {
            self.open_part(at, PartPosition::from_content(event))?;
        }
        if let Some(open) = self.items.part(at, PartPosition::from_content(event))? {
            open.end(part.whole(), deltas);
            open.cite(part.annotations, deltas);
        }
        Ok(())
    }

    pub(super) fn annotation(&mut self, event: &Event<'_>, deltas: &mut Deltas) -> Converted {
        let at = self.items.of(Identity::from_event(event), ItemKind::Message)?;
        if let Some(part) = self.items.part(at, PartPosition::from_content(event))? {
            part.citations += 1;
            deltas.extend(citation_of(&value(event.annotation).unwrap_or_default()));
        }
        Ok(())
    }
}
