//! Output items at their end: fills the gaps of the stream, and keeps the data that goes back to the server.

use std::collections::VecDeque;

use advisor_core::{Delta, DeltaKind, Media, MediaDelta, Opaque, ProviderData, Text, ToolCallDelta};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::items::TooMuch;
use super::part::{PartPosition, PartStage};
use super::{Converter, data_of};
use crate::responses::wire::{Item, ItemKind, KeptItem};

impl Converter {
    /// Converts the end of the item at this position; its first end only.
    pub(super) fn end_item(
        &mut self,
        at: usize,
        kept: &KeptItem<'_>,
        deltas: &mut VecDeque<Delta>,
    ) -> Result<(), TooMuch> {
        let is_new = self.items.at(at).is_some_and(|open| !std::mem::replace(&mut open.ended, true));
        if !is_new {
            return Ok(());
        }
        self.items.note_change();
        match kept.fields.kind() {
            ItemKind::Message => self.end_message(at, kept, deltas)?,
            ItemKind::Reasoning => self.end_reasoning(at, kept, deltas)?,
            ItemKind::FunctionCall => self.end_call(at, kept, deltas),
            ItemKind::Image => self.end_image(at, kept, deltas),
            ItemKind::Other => deltas.push_back(self.opaque(kept)),
        }
        Ok(())
    }

    /// Ends the parts of a message.
    fn end_message(
        &mut self,
        at: usize,
        kept: &KeptItem<'_>,
        deltas: &mut VecDeque<Delta>,
    ) -> Result<(), TooMuch> {
        self.items.set_data(at, data_of(&self.format, kept), kept.bytes())?;
        let parts = kept.fields.content.as_deref().unwrap_or_default();
        for (place, part) in PartPosition::all(PartPosition::Content, parts) {
            let open = match self.items.known_part(at, place, parts.len()) {
                Some(known) => known,
                None if part.said().is_some() => self.items.add_part(at, place)?,
                None => continue,
            };
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

    /// Ends reasoning. The item goes back unchanged, so it is kept with the blocks of its text.
    fn end_reasoning(
        &mut self,
        at: usize,
        kept: &KeptItem<'_>,
        deltas: &mut VecDeque<Delta>,
    ) -> Result<(), TooMuch> {
        self.fill_reasoning(at, &kept.fields, deltas)?;
        if self.items.at(at).is_none_or(|item| item.parts.is_empty()) {
            self.items.add_part(at, PartPosition::Content(0))?;
        }
        let parts = self.items.at(at).map(|item| item.parts.as_mut_slice()).unwrap_or_default();
        let places: Vec<PartPosition> = parts.iter().map(|part| part.place).collect();
        for (part, data) in parts.iter().zip(data_of_parts(kept.value(), &places)) {
            let data = ProviderData::new(self.format.clone(), data);
            deltas.push_back(part.delta(DeltaKind::ReasoningData(Box::new(data))));
        }
        if let Some(last) = parts.last_mut() {
            last.stage = PartStage::Ended;
            deltas.push_back(last.delta(DeltaKind::BlockEnd));
        }
        Ok(())
    }

    /// Emits the parts of reasoning that have not streamed: of the kind that has, else the raw text, else the summary.
    fn fill_reasoning(
        &mut self,
        at: usize,
        item: &Item<'_>,
        deltas: &mut VecDeque<Delta>,
    ) -> Result<(), TooMuch> {
        let streamed = self.items.at(at).and_then(|item| item.parts.first()).map(|part| part.place);
        let raw = item.content.as_deref().unwrap_or_default();
        let is_raw = match streamed {
            Some(place) => matches!(place, PartPosition::Content(_)),
            None => raw.iter().any(|part| part.text.text().is_some()),
        };
        let (kind, parts): (fn(i64) -> PartPosition, _) = match is_raw {
            true => (PartPosition::Content, raw),
            false => (PartPosition::Summary, item.summary.as_deref().unwrap_or_default()),
        };
        for (place, part) in PartPosition::all(kind, parts) {
            if let Some(text) = part.text.text()
                && self.items.known_part(at, place, parts.len()).is_none()
            {
                self.add_reasoning(at, place, text, deltas)?;
            }
        }
        Ok(())
    }

    fn end_call(&mut self, at: usize, kept: &KeptItem<'_>, deltas: &mut VecDeque<Delta>) {
        let Some(open) = self.items.at(at) else { return };
        let item = &kept.fields;
        let mut fragment = ToolCallDelta::default();
        if !std::mem::replace(&mut open.call.name, true) {
            fragment.call_id = item.call_id.text().map(Text::from);
            fragment.name = item.name.text().map(Text::from);
            self.has_calls = true;
        }
        if !open.call.arguments {
            fragment.arguments_delta = item.arguments.text().map(Text::from);
        }
        fragment.provider_data = data_of(&self.format, kept);
        if fragment != ToolCallDelta::default() {
            fragment.index = Some(open.number);
            deltas.push_back(DeltaKind::ToolCalls(vec![fragment]).into());
        }
        // A cut call stays open: its arguments are not complete.
        if !item.is_cut() {
            deltas.push_back(Delta::from(DeltaKind::BlockEnd).with_block(open.number));
        }
    }

    /// Emits a generated image, with the rest of its item; or the item unchanged if it holds no readable image.
    fn end_image(&mut self, at: usize, kept: &KeptItem<'_>, deltas: &mut VecDeque<Delta>) {
        let bytes = kept.fields.result.text().and_then(|result| STANDARD.decode(result).ok());
        let number = self.items.at(at).map(|open| open.number);
        let (Some(bytes), Some(number)) = (bytes.filter(|bytes| !bytes.is_empty()), number) else {
            return deltas.push_back(self.opaque(kept));
        };
        let mime = format!("image/{}", kept.fields.output_format.text().unwrap_or("png"));
        let mut rest = kept.value();
        if let Some(rest) = rest.as_object_mut() {
            rest.remove("result");
        }
        let data = ProviderData::new(self.format.clone(), rest);
        let media = MediaDelta::from(Media::from_bytes(mime, bytes)).with_data(data);
        deltas.push_back(Delta::media(media).with_block(number));
    }

    fn opaque(&self, kept: &KeptItem<'_>) -> Delta {
        let opaque = Opaque::new(self.format.clone(), kept.fields.kind_name(), kept.value());
        DeltaKind::Opaque(Box::new(opaque)).into()
    }
}

/// Returns the data of an item of reasoning that goes back, one value for the block of each part.
///
/// The value has the text of that part. The last value also has the other fields of the item.
///
/// A block whose text is edited loses its data. So none has the text of another block, or a text that no block shows.
fn data_of_parts(mut item: Value, places: &[PartPosition]) -> Vec<Value> {
    let id = item.get("id").cloned();
    let parts = places.iter().enumerate().map(|(position, place)| {
        let (name, index) = place.entry();
        let list = item.get_mut(name).and_then(Value::as_array_mut);
        let text = list.and_then(|list| {
            // A server that counts on from an earlier item has no entry at its number.
            let at = if index < list.len() { index } else { position };
            list.get_mut(at).map(Value::take)
        });
        json!({"id": id, (name): Vec::from_iter(text)})
    });
    let mut parts: Vec<Value> = parts.collect();
    if let (Some(last), Some(fields)) = (parts.last_mut(), item.as_object_mut()) {
        for name in ["content", "summary"] {
            if let Some(texts) = fields.get_mut(name).filter(|texts| !texts.is_null()) {
                *texts = last.get_mut(name).map_or_else(|| json!([]), Value::take);
            }
        }
        *last = item;
    }
    parts
}
