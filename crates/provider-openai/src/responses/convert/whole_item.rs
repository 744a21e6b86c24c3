//! Output items at their end: fills the gaps of the stream, and keeps what goes back to the server.

use std::collections::VecDeque;

use advisor_core::{Delta, DeltaKind, Media, Opaque, ProviderData, Text, ToolCallDelta};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::items::{OpenItem, TooMany};
use super::part::Place;
use super::{Converter, data_of};
use crate::responses::wire::{Item, ItemKind, KeptItem, Part};

impl Converter {
    /// Converts the end of the item at this position; its first end only.
    pub(super) fn end_item(
        &mut self,
        at: usize,
        kept: &KeptItem<'_>,
        deltas: &mut VecDeque<Delta>,
    ) -> Result<(), TooMany> {
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

    /// Ends the parts of a message. They are matched by position: a few servers begin to count at 1.
    fn end_message(
        &mut self,
        at: usize,
        kept: &KeptItem<'_>,
        deltas: &mut VecDeque<Delta>,
    ) -> Result<(), TooMany> {
        let data = data_of(&self.format, kept);
        if let Some(open) = self.items.at(at).filter(|open| open.data.is_none()) {
            open.parts.iter_mut().for_each(|part| part.data = data.clone());
            open.data = data;
        }
        for (position, part) in kept.fields.content.iter().flatten().enumerate() {
            let open = self.part_at(at, position, Place::Content)?;
            if let Some(open) = self.items.at(at).and_then(|item| item.parts.get_mut(open)) {
                open.end(part.whole(), deltas);
                if open.streamed {
                    open.attach(deltas);
                }
                open.cite(part.annotations, deltas);
            }
        }
        Ok(())
    }

    /// Ends reasoning. The item goes back unchanged, so it is kept with the last block of its text.
    fn end_reasoning(
        &mut self,
        at: usize,
        kept: &KeptItem<'_>,
        deltas: &mut VecDeque<Delta>,
    ) -> Result<(), TooMany> {
        let has_text = self.items.at(at).is_some_and(|item| !item.parts.is_empty());
        if !has_text {
            self.fill_reasoning(at, &kept.fields, deltas)?;
        }
        let last = match self.items.at(at).map(|item| item.parts.len()) {
            Some(0) | None => self.items.add_part(at, Place::Content(0))?,
            Some(parts) => parts - 1,
        };
        if let Some(part) = self.items.at(at).and_then(|item| item.parts.get_mut(last)) {
            let data = ProviderData::new(self.format.clone(), kept.value());
            deltas.push_back(part.delta(DeltaKind::ReasoningData(Box::new(data))));
            part.ended = true;
            deltas.push_back(part.delta(DeltaKind::BlockEnd));
        }
        Ok(())
    }

    /// Emits the whole text of reasoning: the raw text, or else its summary.
    fn fill_reasoning(
        &mut self,
        at: usize,
        item: &Item<'_>,
        deltas: &mut VecDeque<Delta>,
    ) -> Result<(), TooMany> {
        let texts = |parts: &Option<Vec<Part<'_>>>| -> Vec<Text> {
            parts.iter().flatten().filter_map(|part| part.text.text().map(Text::from)).collect()
        };
        let content = texts(&item.content);
        let texts = if content.is_empty() { texts(&item.summary) } else { content };
        let last = texts.len().saturating_sub(1);
        for (position, text) in texts.into_iter().enumerate() {
            let open = self.part_at(at, position, Place::Content)?;
            if let Some(open) = self.items.at(at).and_then(|item| item.parts.get_mut(open)) {
                open.add(DeltaKind::Reasoning(text), deltas);
                if position < last {
                    open.end(None, deltas);
                }
            }
        }
        Ok(())
    }

    fn end_call(&mut self, at: usize, kept: &KeptItem<'_>, deltas: &mut VecDeque<Delta>) {
        let Some(open) = self.items.at(at) else { return };
        let item = &kept.fields;
        let mut fragment = ToolCallDelta::default();
        if !std::mem::replace(&mut open.named, true) {
            fragment.call_id = item.call_id.text().map(Text::from);
            fragment.name = item.name.text().map(Text::from);
            self.has_calls = true;
        }
        if !open.streamed {
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
        let media = DeltaKind::Media(Box::new(Media::from_bytes(mime, bytes)));
        let mut rest = kept.value();
        if let Some(rest) = rest.as_object_mut() {
            rest.remove("result");
        }
        let data = DeltaKind::BlockData(Box::new(ProviderData::new(self.format.clone(), rest)));
        deltas.extend([media, data].map(|kind| Delta::from(kind).with_block(number)));
    }

    fn opaque(&self, kept: &KeptItem<'_>) -> Delta {
        let opaque = Opaque::new(self.format.clone(), kept.fields.kind_name(), kept.value());
        DeltaKind::Opaque(Box::new(opaque)).into()
    }

    /// Returns the position of the part that is at this position in its item; adds it if there is none.
    fn part_at(&mut self, at: usize, position: usize, place: fn(i64) -> Place) -> Result<usize, TooMany> {
        let parts = self.items.at(at).map_or(0, |item: &mut OpenItem| item.parts.len());
        if position < parts {
            return Ok(position);
        }
        self.items.add_part(at, place(i64::try_from(position).unwrap_or(i64::MAX)))
    }
}
