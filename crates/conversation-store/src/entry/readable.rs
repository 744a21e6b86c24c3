//! Checks that a JSON parser will accept a value, without serialising it.

use std::fmt;

use serde::ser::{
    Serialize, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
    SerializeTupleStruct, SerializeTupleVariant, Serializer,
};

/// The reason why a value could not be read back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unreadable {
    /// It is nested deeper than the parser allows.
    TooDeep,
    /// An object has a member name that the parser reserves.
    ReservedName,
    /// It cannot be serialised.
    NoForm,
}

/// Names with this prefix have a special meaning to `serde_json`. It refuses such an object or reads it as another
/// value.
const RESERVED: &str = "$serde_json::private::";

/// Checks that the JSON form of `value` is nested at most `levels` deep and has no reserved names.
///
/// It visits each node once and copies nothing. It never recurses deeper than `levels`.
pub(crate) fn check(value: &impl Serialize, levels: usize) -> Result<(), Unreadable> {
    value.serialize(Probe { levels, is_name: false })
}

/// A serialiser that writes nothing.
#[derive(Clone, Copy)]
struct Probe {
    /// The number of levels still allowed.
    levels: usize,
    /// Whether the next value is a member name.
    is_name: bool,
}

impl Probe {
    fn enter(self) -> Result<Self, Unreadable> {
        let levels = self.levels.checked_sub(1).ok_or(Unreadable::TooDeep)?;
        Ok(Self { levels, is_name: false })
    }
}

macro_rules! scalars {
    ($($name:ident: $type:ty),*) => {$(
        fn $name(self, _: $type) -> Result<(), Unreadable> {
            Ok(())
        }
    )*};
}

impl Serializer for Probe {
    type Ok = ();
    type Error = Unreadable;
    type SerializeSeq = Self;
    type SerializeTuple = Self;
    type SerializeTupleStruct = Self;
    type SerializeTupleVariant = Self;
    type SerializeMap = Self;
    type SerializeStruct = Self;
    type SerializeStructVariant = Self;

    scalars! {
        serialize_bool: bool, serialize_char: char, serialize_f32: f32, serialize_f64: f64,
        serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64, serialize_i128: i128,
        serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64, serialize_u128: u128,
        serialize_unit_struct: &'static str
    }

    fn serialize_str(self, text: &str) -> Result<(), Unreadable> {
        if self.is_name && text.starts_with(RESERVED) { Err(Unreadable::ReservedName) } else { Ok(()) }
    }

    fn collect_str<T: fmt::Display + ?Sized>(self, text: &T) -> Result<(), Unreadable> {
        // Only names are checked, so that media is not encoded for this.
        if self.is_name { self.serialize_str(&text.to_string()) } else { Ok(()) }
    }

    fn serialize_bytes(self, _: &[u8]) -> Result<(), Unreadable> {
        // JSON has no bytes; they become an array of numbers.
        self.enter().map(drop)
    }

    fn serialize_none(self) -> Result<(), Unreadable> {
        Ok(())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Unreadable> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Unreadable> {
        Ok(())
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, _: &'static str) -> Result<(), Unreadable> {
        Ok(())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), Unreadable> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        value: &T,
    ) -> Result<(), Unreadable> {
        value.serialize(self.enter()?)
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Self, Unreadable> {
        self.enter()
    }

    fn serialize_tuple(self, _: usize) -> Result<Self, Unreadable> {
        self.enter()
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Self, Unreadable> {
        self.enter()
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self, Unreadable> {
        self.enter()?.enter()
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Self, Unreadable> {
        self.enter()
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self, Unreadable> {
        self.enter()
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self, Unreadable> {
        self.enter()?.enter()
    }
}

/// The contents of lists, tuples and structs: values one after the other.
macro_rules! values {
    ($($trait:ident::$method:ident($($name:ty)?)),*) => {$(
        impl $trait for Probe {
            type Ok = ();
            type Error = Unreadable;

            fn $method<T: Serialize + ?Sized>(&mut self, $(_: $name,)? value: &T) -> Result<(), Unreadable> {
                value.serialize(*self)
            }

            fn end(self) -> Result<(), Unreadable> {
                Ok(())
            }
        }
    )*};
}

values! {
    SerializeSeq::serialize_element(),
    SerializeTuple::serialize_element(),
    SerializeTupleStruct::serialize_field(),
    SerializeTupleVariant::serialize_field(),
    SerializeStruct::serialize_field(&'static str),
    SerializeStructVariant::serialize_field(&'static str)
}

impl SerializeMap for Probe {
    type Ok = ();
    type Error = Unreadable;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, name: &T) -> Result<(), Unreadable> {
        name.serialize(Self { is_name: true, ..*self })
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Unreadable> {
        value.serialize(*self)
    }

    fn end(self) -> Result<(), Unreadable> {
        Ok(())
    }
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooDeep => "it is nested too deep",
            Self::ReservedName => "it has a member whose name JSON parsers keep for themselves",
            Self::NoForm => "it has no JSON form",
        })
    }
}

impl std::error::Error for Unreadable {}

impl serde::ser::Error for Unreadable {
    // The serialiser's error may quote the conversation, so it is dropped.
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self::NoForm
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use serde::{Deserialize, Serialize};
    use serde_json::{Value, json};

    use super::*;

    /// Returns the depth of a JSON text, as a parser counts it.
    fn depth_of(json: &str) -> usize {
        let (mut depth, mut deepest, mut quoted, mut escaped) = (0_usize, 0, false, false);
        for byte in json.bytes() {
            match byte {
                _ if escaped => escaped = false,
                b'\\' if quoted => escaped = true,
                b'"' => quoted = !quoted,
                b'[' | b'{' if !quoted => (depth, deepest) = (depth + 1, deepest.max(depth + 1)),
                b']' | b'}' if !quoted => depth -= 1,
                _ => {}
            }
        }
        deepest
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            "\\PC{0,4}|[\\[\\]{}\"\\\\]{0,4}".prop_map(Value::from),
        ];
        let name = prop_oneof![
            9 => "[a-c$\\[\\]\"\\\\]{0,3}",
            1 => Just(format!("{RESERVED}RawValue")),
            1 => Just(format!("{RESERVED}Number")),
        ];
        leaf.prop_recursive(8, 64, 4, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(name.clone(), inner, 0..4)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn d16_accepted_json_is_read_back_unchanged(value in any_json(), levels in 0_usize..9) {
            let json = value.to_string();
            let depth = depth_of(&json);
            match check(&value, levels) {
                Ok(()) => {
                    prop_assert!(depth <= levels);
                    prop_assert_eq!(serde_json::from_str::<Value>(&json).unwrap(), value);
                }
                Err(Unreadable::TooDeep) => prop_assert!(depth > levels),
                Err(refused) => {
                    prop_assert_eq!(refused, Unreadable::ReservedName);
                    prop_assert!(json.contains(RESERVED));
                }
            }
        }
    }

    /// Every data model type of serde.
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    enum Shape {
        Unit,
        New(Option<Box<Self>>),
        Tuple(u8, (char, Vec<Self>)),
        Struct { map: BTreeMap<u8, Self>, unit: () },
    }

    #[test]
    fn every_shape_is_counted_as_it_is_written() {
        let new = |inner| Shape::New(Some(Box::new(inner)));
        for shape in [
            Shape::Unit,
            Shape::New(None),
            new(new(Shape::Unit)),
            Shape::Tuple(1, ('x', vec![])),
            Shape::Tuple(1, ('x', vec![new(Shape::Unit), Shape::New(None)])),
            Shape::Struct { map: BTreeMap::new(), unit: () },
            Shape::Struct { map: BTreeMap::from([(7, new(Shape::Unit))]), unit: () },
        ] {
            let depth = depth_of(&serde_json::to_string(&shape).unwrap());
            assert_eq!(check(&shape, depth), Ok(()), "{shape:?}");
            if depth > 0 {
                assert_eq!(check(&shape, depth - 1), Err(Unreadable::TooDeep), "{shape:?}");
            }
        }
    }

    #[test]
    fn unserializable_value_is_refused_without_quoting() {
        struct Broken;
        impl Serialize for Broken {
            fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
                Err(serde::ser::Error::custom("secret"))
            }
        }
        assert_eq!(check(&Broken, 9), Err(Unreadable::NoForm));
        let texts = [Unreadable::TooDeep, Unreadable::ReservedName, Unreadable::NoForm];
        assert!(texts.iter().all(|why| !why.to_string().contains("secret")));
        assert_eq!(check(&json!({"a": {"$serde_json::private::X": 1}}), 9), Err(Unreadable::ReservedName));
        assert_eq!(check(&json!({"a": "$serde_json::private::X"}), 9), Ok(()));
    }
}
