//! Tests of `responses::wire`.

use super::*;
use crate::wire::tests::fields_of;

#[test]
fn keys_are_those_that_are_read() {
    let read = EVENT_FIELDS.iter().filter(|(_, field)| !matches!(field, Field::Padding));
    let keys: Vec<&str> = read.map(|(key, _)| *key).collect();
    assert_eq!(fields_of::<Event<'static>>(), keys);
}
