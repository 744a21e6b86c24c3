//! The output items of an answer, and which item an event belongs to.

use std::mem;
use std::sync::Arc;

use advisor_core::{ProviderData, Text};
use provider_http::answer::Meaning;
use provider_http::json::Str;

use super::Converted;
use super::part::{OpenPart, PartPosition, PartStage};
use crate::responses::wire::{Event, Item, ItemKind};

/// The most bytes kept of the items and parts of one answer, beside its content: enough for more than a thousand items.
/// It also bounds the search for the item of an event.
const MOST_KEPT: usize = 512 << 10;
/// More would be kept than that.
const TOO_MUCH: Meaning = Meaning::TooLarge { limit: MOST_KEPT };

/// The output items so far, in order of first appearance.
#[derive(Debug, Default)]
pub(super) struct Items {
    items: Vec<OpenItem>,
    /// The next number of an item or a part.
    next: i64,
    /// The number of bytes kept.
    kept: usize,
}

/// An output item while it streams.
#[derive(Debug)]
pub(super) struct OpenItem {
    pub(super) kind: ItemKind,
    /// The number of its call: unique among calls and blocks.
    pub(super) number: i64,
    index: Option<i64>,
    id: Option<Text>,
    call_id: Option<Text>,
    /// Whether the server announced it. A few servers begin with its content (Q59).
    announced: bool,
    /// Whether the name of its call was emitted, and whether arguments were. Servers send them in any order, or only at the
    /// end.
    pub(super) has_name: bool,
    pub(super) has_arguments: bool,
    /// Whether something of it was emitted.
    opened: bool,
    /// Its index, if its place among the blocks may not be its place in the answer.
    pub(super) misplaced: Option<i64>,
    /// Whether it was converted to its end.
    pub(super) ended: bool,
    /// Whether the fields that go back with it are known.
    has_fields: bool,
    /// The data that goes back with each part of a message.
    data: Vec<Arc<ProviderData>>,
    pub(super) parts: Vec<OpenPart>,
}

/// The identity of an item, as far as an event or an item has it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Identity<'a> {
    pub(super) index: Option<i64>,
    pub(super) id: Option<&'a str>,
    pub(super) call_id: Option<&'a str>,
}

impl<'a> Identity<'a> {
    pub(super) fn from_event(event: &Event<'a>) -> Self {
        Self { index: event.output_index, id: known(event.item_id), call_id: None }
    }

    pub(super) fn from_item(item: &Item<'a>, index: Option<i64>) -> Self {
        Self { index, id: known(item.id), call_id: known(item.call_id) }
    }

    fn bytes(&self) -> usize {
        self.id.map_or(0, str::len) + self.call_id.map_or(0, str::len)
    }
}

/// Returns an id as it is spelled, which is enough to compare it.
fn known(id: Str<'_>) -> Option<&str> {
    (!id.is_empty()).then(|| id.spelling())
}

impl Items {
    pub(super) fn at(&mut self, at: usize) -> Option<&mut OpenItem> {
        self.items.get_mut(at)
    }

    /// Returns the position of the item that an event belongs to; adds one if it is new.
    ///
    /// Index and id together decide. If they contradict each other, the index does: Copilot sends another id in each
    /// event. The id alone decides for llama.cpp, which sends no index. Some servers send the id of the call in its
    /// place (Q59). With neither, the last open item is meant.
    pub(super) fn of(&mut self, identity: Identity<'_>, kind: ItemKind) -> Converted<usize> {
        match self.find(identity, kind) {
            Some(known) => Ok(known),
            None => self.add(identity, kind),
        }
    }

    /// Returns the position of an item that the server announces; adds it unless it is known.
    pub(super) fn announced(&mut self, identity: Identity<'_>, kind: ItemKind) -> Converted<usize> {
        let is_same = |item: &OpenItem| {
            let has_other_index =
                !item.has_index(identity) && item.index.is_some() && identity.index.is_some();
            !item.announced || (item.has_id(identity) && !has_other_index && !item.ended)
        };
        let known = self.find(identity, kind).filter(|at| self.items.get(*at).is_some_and(is_same));
        let at = match known {
            Some(known) => known,
            None => self.add(identity, kind)?,
        };
        self.keep(identity.bytes())?;
        if let Some(item) = self.items.get_mut(at) {
            item.announced = true;
            item.index = item.index.or(identity.index);
            item.id = item.id.take().or_else(|| identity.id.map(Text::from));
            item.call_id = item.call_id.take().or_else(|| identity.call_id.map(Text::from));
        }
        Ok(at)
    }

    fn find(&self, identity: Identity<'_>, kind: ItemKind) -> Option<usize> {
        let last = |fits: &dyn Fn(&OpenItem) -> bool| {
            self.items.iter().rposition(|item| item.kind == kind && fits(item))
        };
        let is_nameless = identity.index.is_none() && identity.id.is_none() && identity.call_id.is_none();
        last(&|item| item.has_index(identity) && item.has_id(identity))
            .or_else(|| last(&|item| item.has_index(identity) && !item.is_other_call(identity)))
            .or_else(|| last(&|item| item.has_id(identity)))
            .or_else(|| last(&|item| is_nameless && !item.ended))
    }

    fn add(&mut self, identity: Identity<'_>, kind: ItemKind) -> Converted<usize> {
        self.keep(size_of::<OpenItem>() + identity.bytes())?;
        let item = OpenItem {
            kind,
            number: self.number(),
            index: identity.index,
            id: identity.id.map(Text::from),
            call_id: identity.call_id.map(Text::from),
            announced: false,
            has_name: false,
            has_arguments: false,
            opened: false,
            misplaced: None,
            ended: false,
            has_fields: false,
            data: Vec::new(),
            parts: Vec::new(),
        };
        self.items.push(item);
        Ok(self.items.len() - 1)
    }

    /// Notes that a block of the item opens. Returns the index of the item once, and only if the block may be out of its
    /// place: blocks of items before it may still open, or one behind it has begun.
    pub(super) fn open(&mut self, at: usize) -> Option<i64> {
        let item = self.items.get_mut(at)?;
        let is_first = !mem::replace(&mut item.opened, true);
        // A message has a block for each part, any other item has one.
        let opens = is_first || (item.kind == ItemKind::Message && item.misplaced.is_none());
        let index = item.index.filter(|_| opens)?;
        let before = self.items.iter().filter(|other| other.index.is_some_and(|other| other < index));
        let have_opened = before.filter(|other| other.has_all_blocks()).count();
        let is_early = is_first && usize::try_from(index).is_ok_and(|index| have_opened < index);
        let is_late = self.items.iter().any(|other| other.index > Some(index) && other.opened);
        let misplaced = Some(index).filter(|_| is_early || is_late);
        self.items.get_mut(at)?.misplaced = misplaced;
        misplaced
    }

    /// Checks whether a message has begun.
    pub(super) fn has_message(&self) -> bool {
        self.items.iter().any(|item| item.kind == ItemKind::Message && item.opened)
    }

    /// Returns the part at this place of an item; adds it if it is new.
    pub(super) fn part(&mut self, item: usize, place: PartPosition) -> Converted<Option<&mut OpenPart>> {
        let part = |item: &OpenItem| item.parts.iter().rposition(|part| part.place == place);
        let at = match self.items.get(item).and_then(part) {
            Some(at) => at,
            None => self.add_part(item, place)?,
        };
        Ok(self.items.get_mut(item).and_then(|item| item.parts.get_mut(at)))
    }

    /// Returns the position of the part that is the entry at this place of a whole item with `count` parts.
    ///
    /// Amazon Bedrock counts the parts of a message on from those of the item before it. So a part beyond the end is
    /// one of the entries without a part.
    pub(super) fn known_part(&self, item: usize, place: PartPosition, count: usize) -> Option<usize> {
        let parts = &self.items.get(item)?.parts;
        let is_beyond = |part: &OpenPart| part.place.is_beside(place) && part.place.is_beyond(count);
        let known = parts.iter().position(|part| part.place == place);
        known.or_else(|| parts.iter().position(is_beyond))
    }

    /// Adds a part to an item, and returns its position there.
    pub(super) fn add_part(&mut self, item: usize, place: PartPosition) -> Converted<usize> {
        self.keep(size_of::<OpenPart>())?;
        let next = self.number();
        let Some(item) = self.items.get_mut(item) else { return Ok(0) };
        let number = if item.kind == ItemKind::Reasoning { item.number } else { next };
        let data = item.data.clone();
        let part = OpenPart { place, number, stage: PartStage::Empty, citations: 0, data };
        item.parts.push(part);
        Ok(item.parts.len() - 1)
    }

    /// Sets the fields that go back with each part of an item, unless it has some. `bytes` is the size of the data.
    pub(super) fn set_fields(&mut self, item: usize, data: Option<ProviderData>, bytes: usize) -> Converted {
        let Some(data) = data else { return Ok(()) };
        self.keep(bytes)?;
        if let Some(item) = self.items.get_mut(item).filter(|item| !item.has_fields) {
            item.has_fields = true;
            item.add_data(data);
        }
        Ok(())
    }

    fn number(&mut self) -> i64 {
        self.next += 1;
        self.next
    }

    fn keep(&mut self, bytes: usize) -> Converted {
        self.kept = self.kept.saturating_add(bytes);
        if self.kept > MOST_KEPT { Err(TOO_MUCH) } else { Ok(()) }
    }

    /// Returns the position of the known item for each item of a snapshot; adds those that are new.
    ///
    /// An item is known by its ids, or else by its position, or else as the next one of its kind. The last two are for
    /// servers whose snapshot has other ids than the stream.
    pub(super) fn of_snapshot(&mut self, snapshot: &[Item<'_>]) -> Converted<Vec<usize>> {
        if snapshot.len() > MOST_KEPT / size_of::<OpenItem>() {
            return Err(TOO_MUCH);
        }
        let mut places: Vec<Option<usize>> = vec![None; snapshot.len()];
        let mut taken = vec![false; self.items.len()];
        let rules: [fn(&OpenItem, Identity<'_>) -> bool; 3] = [
            |known, item| known.has_id(item),
            |known, item| known.has_index(item) && !known.is_other_call(item),
            |known, item| !known.is_other_call(item),
        ];
        for rule in rules {
            let unplaced =
                places.iter_mut().zip(snapshot).enumerate().filter(|(_, (place, _))| place.is_none());
            for (at, (place, item)) in unplaced {
                let identity = Identity::from_item(item, i64::try_from(at).ok());
                let mut free =
                    self.items.iter().zip(&mut taken).enumerate().filter(|(_, (_, taken))| !**taken);
                let known = free.find(|(_, (known, _))| known.kind == item.kind() && rule(known, identity));
                if let Some((at, (_, taken))) = known {
                    (*place, *taken) = (Some(at), true);
                }
            }
        }
        let unknown = |(index, (item, place)): (i64, (&Item<'_>, Option<usize>))| match place {
            Some(known) => Ok(known),
            None => self.add(Identity::from_item(item, Some(index)), item.kind()),
        };
        (0..).zip(snapshot.iter().zip(places)).map(unknown).collect()
    }
}

impl OpenItem {
    /// Checks whether all its blocks have opened.
    fn has_all_blocks(&self) -> bool {
        self.ended || (self.opened && self.kind != ItemKind::Message)
    }

    /// Adds data that go back with each part.
    pub(super) fn add_data(&mut self, data: ProviderData) {
        let data = Arc::new(data);
        self.parts.iter_mut().for_each(|part| part.data.push(Arc::clone(&data)));
        self.data.push(data);
    }

    fn has_index(&self, identity: Identity<'_>) -> bool {
        identity.index.is_some() && self.index == identity.index
    }

    /// Checks whether the ids match: those of the items, those of the calls, or one of a call in place of an item's.
    fn has_id(&self, identity: Identity<'_>) -> bool {
        let (id, call_id) = (self.id.as_deref(), self.call_id.as_deref());
        (identity.id.is_some() && [id, call_id].contains(&identity.id))
            || (identity.call_id.is_some() && call_id == identity.call_id)
    }

    /// Checks whether both are calls with different ids.
    fn is_other_call(&self, identity: Identity<'_>) -> bool {
        let ids = (self.call_id.as_deref(), identity.call_id);
        matches!(ids, (Some(own), Some(other)) if own != other)
    }
}
