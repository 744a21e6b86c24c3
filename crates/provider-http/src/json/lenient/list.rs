//! Lists, and a collection that holds one value without an allocation.

use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, SeqAccess};

use super::{Lenient, Object, lenient};

/// A list that nearly always has one entry, which needs no allocation.
#[derive(Debug)]
pub struct Few<T> {
    first: Option<T>,
    rest: Vec<T>,
}

impl<T> Few<T> {
    /// Returns the entries, in place.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.first.iter_mut().chain(&mut self.rest)
    }
}

impl<T> IntoIterator for Few<T> {
    type Item = T;
    type IntoIter = std::iter::Chain<std::option::IntoIter<T>, std::vec::IntoIter<T>>;

    fn into_iter(self) -> Self::IntoIter {
        self.first.into_iter().chain(self.rest)
    }
}

impl<T> Default for Few<T> {
    fn default() -> Self {
        Self { first: None, rest: Vec::new() }
    }
}

impl<T> Extend<T> for Few<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, items: I) {
        let mut items = items.into_iter();
        if self.first.is_none() {
            self.first = items.next();
        }
        self.rest.extend(items);
    }
}

/// Deserializes a list and keeps its entries that are objects; `None` if it is no list.
///
/// # Errors
/// If it is malformed.
pub fn list<'de, D, L>(deserializer: D) -> Result<Option<L>, D::Error>
where
    D: Deserializer<'de>,
    L: Default + IntoIterator<Item: Deserialize<'de>> + Extend<L::Item>,
{
    lenient::<List<L>, D>(deserializer)
}

struct List<L>(PhantomData<L>);

impl<'de, L> Lenient<'de> for List<L>
where
    L: Default + IntoIterator<Item: Deserialize<'de>> + Extend<L::Item>,
{
    type Value = Option<L>;

    fn list<A: SeqAccess<'de>>(mut items: A) -> Result<Option<L>, A::Error> {
        let mut list = L::default();
        while let Some(Object(item)) = items.next_element()? {
            list.extend(item);
        }
        Ok(Some(list))
    }
}
