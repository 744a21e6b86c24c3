//! Output items at their end: fills the gaps of the stream, and keeps the data that goes back to the server.

use advisor_core::{Delta, DeltaKind, Media, MediaDelta, Opaque, ProviderData, Text, ToolCallDelta};
use serde_json::{Value, json};

use super::items::OpenItem;
use super::part::{OpenPart, PartPosition, PartStage};
use super::{Converted, Deltas, Responses, data_of};
use crate::responses::wire::{Item, ItemKind, OUTPUT_INDEX};

impl Responses {
    /// Converts the end of the item at this position; its first end only.
    pub(super) fn end_item(&mut self, at: usize, item: &Item<'_>, deltas: &mut Deltas) -> Converted {
        let is_new = self.items.at(at).is_some_and(|open| !std::mem::replace(&mut open.ended, true));
        if !is_new {
            return Ok(());
        }
        match item.kind() {
            ItemKind::Message => self.end_message(at, item, deltas)?,
            ItemKind::Reasoning => self.end_reasoning(at, item, deltas)?,
            ItemKind::FunctionCall => self.end_call(at, item, deltas),
            ItemKind::Image => self.end_image(at, item, deltas),
            ItemKind::Other => {
                let opaque = self.opaque(at, item);
                deltas.push_back(opaque);
            }
        }
        Ok(())
    }

    /// Ends the parts of a message.
    fn end_message(&mut self, at: usize, item: &Item<'_>, deltas: &mut Deltas) -> Converted {
        self.items.set_fields(at, data_of(&self.format, item), item.raw.len())?;
        let parts = &item.content;
        for (place, part) in PartPosition::all(PartPosition::Content, parts) {
            let open = match self.items.known_part(at, place, parts.len()) {
                Some(known) => known,
                None if part.said().is_some() => self.items.add_part(at, place)?,
                None => continue,
            };
            let is_empty = |item: &mut OpenItem| item.parts.get(open).is_some_and(OpenPart::is_empty);
            if part.said().is_some() && self.items.at(at).is_some_and(is_empty) {
                self.open(at);
            }
            if let Some(open) = self.items.at(at).and_then(|item| item.parts.get_mut(open)) {
                // Before the end of its block, which then has the data.
                if open.stage != PartStage::Empty {
                    open.attach(deltas);
                }
                open.end(part.whole(), deltas);
                open.cite(part.annotations, deltas);
            }
        }
        Ok(())
    }

    /// Ends reasoning. The item goes back unchanged, so it is kept with its text.
    ///
    /// A block whose text is edited loses its data. So the data have no text that the block does not show.
    fn end_reasoning(&mut self, at: usize, item: &Item<'_>, deltas: &mut Deltas) -> Converted {
        self.fill_reasoning(at, item, deltas)?;
        self.open(at);
        let mut json = self.placed(at, item.value());
        let Some(item) = self.items.at(at) else { return Ok(()) };
        if let Some(shown) = item.parts.first()
            && let Some(hidden) = json.get_mut(shown.place.other_list()).filter(|texts| !texts.is_null())
        {
            *hidden = json!([]);
        }
        item.parts.iter_mut().for_each(|part| part.stage = PartStage::Ended);
        let data = ProviderData::new(self.format.clone(), json);
        for kind in [DeltaKind::ReasoningData(Box::new(data)), DeltaKind::BlockEnd] {
            deltas.push_back(Delta::from(kind).with_block(item.number));
        }
        Ok(())
    }

    /// Emits the parts of reasoning that have not streamed: of the kind that has, else the raw text, else the summary.
    fn fill_reasoning(&mut self, at: usize, item: &Item<'_>, deltas: &mut Deltas) -> Converted {
        let streamed = self.items.at(at).and_then(|item| item.parts.first()).map(|part| part.place);
        let raw = item.content.as_slice();
        let is_raw = match streamed {
            Some(place) => matches!(place, PartPosition::Content(_)),
            None => raw.iter().any(|part| !part.text.is_empty()),
        };
        let (kind, parts): (fn(i64) -> PartPosition, _) = match is_raw {
            true => (PartPosition::Content, raw),
            false => (PartPosition::Summary, item.summary.as_slice()),
        };
        for (place, part) in PartPosition::all(kind, parts) {
            if let Some(text) = part.text.text()
                && self.items.known_part(at, place, parts.len()).is_none()
            {
                self.add_reasoning(at, place, &text, deltas)?;
            }
        }
        Ok(())
    }

    fn end_call(&mut self, at: usize, item: &Item<'_>, deltas: &mut Deltas) {
        let place = self.open(at);
        let Some(open) = self.items.at(at) else { return };
        let mut fragment = ToolCallDelta::default();
        if !std::mem::replace(&mut open.has_name, true) {
            fragment.call_id = item.call_id.text().map(Text::from);
            fragment.name = item.name.text().map(Text::from);
            self.has_calls = true;
        }
        if !open.has_arguments {
            fragment.arguments_delta = item.arguments.text().map(Text::from);
        }
        fragment.provider_data = place;
        let mut fields = ToolCallDelta::default();
        fields.provider_data = data_of(&self.format, item);
        for mut fragment in [fragment, fields].into_iter().filter(|part| *part != ToolCallDelta::default()) {
            fragment.index = Some(open.number);
            deltas.push_back(Delta::tool_call(fragment));
        }
        // A cut call stays open: its arguments are not complete.
        if !item.is_cut() {
            deltas.push_back(Delta::from(DeltaKind::BlockEnd).with_block(open.number));
        }
    }

    /// Emits a generated image, with the rest of its item; or the item unchanged if it holds no readable image.
    fn end_image(&mut self, at: usize, item: &Item<'_>, deltas: &mut Deltas) {
        let number = self.items.at(at).map(|open| open.number);
        let (Some(bytes), Some(number)) = (item.image(), number) else {
            let opaque = self.opaque(at, item);
            return deltas.push_back(opaque);
        };
        let mime = format!("image/{}", item.output_format.text().unwrap_or("png".into()));
        self.open(at);
        let mut rest = self.placed(at, item.value());
        if let Some(rest) = rest.as_object_mut() {
            rest.remove("result");
        }
        let data = ProviderData::new(self.format.clone(), rest);
        let media = MediaDelta { media: Media::from_bytes(mime, bytes), provider_data: Some(data) };
        deltas.push_back(Delta::media(media).with_block(number));
    }

    fn opaque(&mut self, at: usize, item: &Item<'_>) -> Delta {
        self.open(at);
        let kind = item.kind_name();
        self.has_program_output |= kind == "program_output";
        let opaque = Opaque::new(self.format.clone(), kind, self.placed(at, item.value()));
        DeltaKind::Opaque(Box::new(opaque)).into()
    }

    /// Adds the index to the JSON of an item that may be out of its place.
    fn placed(&mut self, at: usize, mut json: Value) -> Value {
        if let Some(index) = self.items.at(at).and_then(|item| item.misplaced)
            && let Some(fields) = json.as_object_mut()
        {
            fields.insert(OUTPUT_INDEX.to_owned(), index.into());
        }
        json
    }
}
