//! The JSON form of a journal.

use super::{Event, Journal};
use advisor_core::JSON_VERSION;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[derive(Serialize)]
struct Written<'a> {
    version: u32,
    events: &'a [Event],
}

#[derive(Deserialize)]
struct Read {
    version: u32,
    events: Vec<Event>,
}

impl Serialize for Journal {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let events = self.events();
        Written { version: JSON_VERSION, events: &events }.serialize(serializer)
    }
}

/// Reads a journal into a new record. A later version is an error.
impl<'de> Deserialize<'de> for Journal {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Read { version, events } = Read::deserialize(deserializer)?;
        if version > JSON_VERSION {
            let problem =
                format!("the journal has version {version}, and this version reads up to {JSON_VERSION}");
            return Err(serde::de::Error::custom(problem));
        }
        let journal = Self::new();
        journal.events.send_modify(|own| *own = events);
        Ok(journal)
    }
}
