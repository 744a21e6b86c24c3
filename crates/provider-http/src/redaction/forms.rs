//! The forms that a secret can have in a server's text.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

/// Length of the pieces by which a secret is recognised. Shorter ones reveal too little, and occur by chance.
const PIECE: usize = 12;
/// Minimum length of the beginning of a secret that is recognised where the text is cut off.
const BEGINNING: usize = 4;

/// The forms of a set of secrets.
pub(super) struct Forms {
    forms: Vec<Form>,
    /// Byte strings to search for, by length: pieces of forms, and forms that are recognised only as a whole.
    pieces: HashMap<usize, HashSet<Box<[u8]>>>,
}

struct Form {
    /// In lowercase.
    bytes: Vec<u8>,
    /// Whether a piece of it is secret, too.
    in_pieces: bool,
}

impl Forms {
    pub(super) fn from_secrets<'a>(secrets: impl Iterator<Item = &'a str>) -> Self {
        let mut forms = Vec::new();
        let mut add = |form: &str, in_pieces: bool| {
            forms.push(Form { bytes: form.to_ascii_lowercase().into_bytes(), in_pieces });
        };
        for secret in secrets {
            // A sentence or an address that is sent as a header has pieces that occur anywhere.
            add(secret, !secret.contains(' ') && !secret.contains("://"));
            encoded(secret.as_bytes()).iter().for_each(|form| add(form, true));
        }
        forms.retain(|form| !form.bytes.is_empty());
        let mut pieces: HashMap<usize, HashSet<Box<[u8]>>> = HashMap::new();
        for Form { bytes: form, in_pieces } in &forms {
            let length = if *in_pieces { form.len().min(PIECE) } else { form.len() };
            pieces.entry(length).or_default().extend(form.windows(length).map(Box::from));
        }
        Self { forms, pieces }
    }

    /// Returns the ranges of these bytes that hold a form or a piece of one.
    pub(super) fn find_in(&self, bytes: &[u8]) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        for (length, pieces) in &self.pieces {
            let windows = bytes.windows(*length).enumerate();
            found.extend(windows.filter(|(_, piece)| pieces.contains(*piece)).map(|(at, _)| at..at + length));
        }
        found
    }

    /// Returns the ranges at the end of these bytes that hold the beginning of a form. The bytes are cut off
    /// there.
    pub(super) fn find_cut(&self, bytes: &[u8]) -> impl Iterator<Item = Range<usize>> {
        let in_pieces = self.forms.iter().filter(|form| form.in_pieces);
        in_pieces.filter_map(|form| Some(begins_at_the_end(bytes, &form.bytes)?..bytes.len()))
    }
}

/// Returns where the bytes end with a beginning of this form.
fn begins_at_the_end(bytes: &[u8], form: &[u8]) -> Option<usize> {
    let longest = form.len().min(bytes.len());
    let length = (BEGINNING..=longest)
        .rev()
        .find(|length| form.get(..*length).is_some_and(|beginning| bytes.ends_with(beginning)))?;
    Some(bytes.len() - length)
}

/// Returns a secret in hexadecimal, and in base64 at every alignment.
fn encoded(secret: &[u8]) -> Vec<String> {
    let mut forms = vec![secret.iter().map(|byte| format!("{byte:02x}")).collect()];
    for before in 0..3_usize {
        let padded = [&vec![0; before], secret].concat();
        for engine in [&STANDARD_NO_PAD, &URL_SAFE_NO_PAD] {
            // Characters that also encode bytes before or after the secret are left out.
            let first = (before * 8).div_ceil(6);
            let last = padded.len() * 8 / 6;
            forms.extend(engine.encode(&padded).get(first..last).map(str::to_owned));
        }
    }
    forms
}
