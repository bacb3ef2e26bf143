//! JSON into values, by code that compiles to little.
//!
//! `serde_json::from_str` compiles to about two thousand lines of LLVM IR for every struct, as it reads text and takes arrays for
//! structs as well. Here text is read into a [`Value`], once for all types, and a struct is an object.

use serde::Deserialize;
use serde::de::value::{BorrowedStrDeserializer, MapAccessDeserializer, StrDeserializer};
use serde::de::{
    DeserializeSeed, Deserializer, Error as _, Expected, MapAccess, SeqAccess, Unexpected, Visitor,
};
use serde::forward_to_deserialize_any;
use serde_json::{Error, Result, Value};

/// The value of a text.
pub fn parse(text: &str) -> Result<Value> {
    serde_json::from_str(text)
}

/// What an object or another value holds.
pub fn read<'a, T: Deserialize<'a>>(value: &'a Value) -> Result<T> {
    T::deserialize(Reader(value))
}

/// The text of a field.
pub(crate) fn word<'a>(value: &'a Value, field: &'static str) -> Result<&'a str> {
    let word = value.get(field).ok_or_else(|| Error::missing_field(field))?;
    word.as_str().ok_or_else(|| mismatch(word, &"a string"))
}

/// A value that is not what was expected.
fn mismatch(value: &Value, expected: &dyn Expected) -> Error {
    let found = match value {
        Value::Null => Unexpected::Unit,
        Value::Bool(value) => Unexpected::Bool(*value),
        Value::Number(_) => Unexpected::Other("number"),
        Value::String(text) => Unexpected::Str(text),
        Value::Array(_) => Unexpected::Seq,
        Value::Object(_) => Unexpected::Map,
    };
    Error::invalid_type(found, expected)
}

struct Reader<'a>(&'a Value);

impl<'a> Reader<'a> {
    fn fields(&self, expected: &dyn Expected) -> Result<Fields<'a>> {
        let fields = self.0.as_object().ok_or_else(|| mismatch(self.0, expected))?;
        Ok(Fields { rest: fields.iter(), value: self.0 })
    }

    fn items(&self, expected: &dyn Expected) -> Result<Items<'a>> {
        let items = self.0.as_array().ok_or_else(|| mismatch(self.0, expected))?;
        Ok(Items(items.iter()))
    }
}

impl<'de> Deserializer<'de> for Reader<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.0 {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(*value),
            Value::Number(number) => match (number.as_u64(), number.as_i64(), number.as_f64()) {
                (Some(number), _, _) => visitor.visit_u64(number),
                (None, Some(number), _) => visitor.visit_i64(number),
                (None, None, Some(number)) => visitor.visit_f64(number),
                (None, None, None) => Err(mismatch(self.0, &visitor)),
            },
            Value::String(text) => visitor.visit_borrowed_str(text),
            Value::Array(_) => self.deserialize_seq(visitor),
            Value::Object(_) => self.deserialize_map(visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        if self.0.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        self.deserialize_map(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let fields = self.fields(&visitor)?;
        visitor.visit_map(fields)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let items = self.items(&visitor)?;
        visitor.visit_seq(items)
    }

    /// An enum is a word, or an object of one field: the word with its content.
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        match self.0 {
            Value::String(word) => visitor.visit_enum(StrDeserializer::new(word)),
            Value::Object(_) => {
                let fields = self.fields(&visitor)?;
                visitor.visit_enum(MapAccessDeserializer::new(fields))
            }
            _ => Err(mismatch(self.0, &visitor)),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        tuple tuple_struct identifier
    }
}

/// The fields of an object that are left, and the value of the one whose name was read.
struct Fields<'a> {
    rest: serde_json::map::Iter<'a>,
    value: &'a Value,
}

impl<'a> Fields<'a> {
    fn next_name(&mut self) -> Option<&'a str> {
        let (name, value) = self.rest.next()?;
        self.value = value;
        Some(name)
    }
}

impl<'a> MapAccess<'a> for Fields<'a> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'a>>(&mut self, seed: K) -> Result<Option<K::Value>> {
        match self.next_name() {
            Some(name) => seed.deserialize(BorrowedStrDeserializer::new(name)).map(Some),
            None => Ok(None),
        }
    }

    fn next_value_seed<V: DeserializeSeed<'a>>(&mut self, seed: V) -> Result<V::Value> {
        seed.deserialize(Reader(self.value))
    }
}

/// The items of an array that are left.
struct Items<'a>(std::slice::Iter<'a, Value>);

impl<'a> SeqAccess<'a> for Items<'a> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'a>>(&mut self, seed: T) -> Result<Option<T::Value>> {
        match self.0.next() {
            Some(value) => seed.deserialize(Reader(value)).map(Some),
            None => Ok(None),
        }
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Colour {
        DarkRed,
        Green,
        Shade(u8),
    }

    #[derive(Debug, PartialEq, Deserialize)]
    struct Wrapped(i16);

    #[derive(Debug, PartialEq, Deserialize)]
    struct Everything<'a> {
        small: u8,
        large: u64,
        negative: i64,
        real: f64,
        whole: f64,
        word: &'a str,
        text: String,
        yes: bool,
        path: std::path::PathBuf,
        colours: Vec<Option<Colour>>,
        wrapped: Wrapped,
        none: Option<u8>,
        missing: Option<u8>,
        #[serde(default)]
        usual: u8,
    }

    const TEXT: &str = r#"{
        "small": 7, "large": 18446744073709551615, "negative": -3, "real": 0.1, "whole": 2, "word": "a", "text": "\u00e4\n",
        "yes": true, "path": "/tmp", "colours": ["dark_red", null, "green", {"shade": 3}], "wrapped": -4, "none": null, "other": [{"a": 1}]
    }"#;

    /// What both readers make of a text.
    fn both<'a>(value: &'a Value, text: &'a str) -> [Result<Everything<'a>>; 2] {
        [read(value), serde_json::from_str(text)]
    }

    #[test]
    fn values_are_what_serde_json_reads() {
        let value = parse(TEXT).expect("JSON");
        let [here, there] = both(&value, TEXT).map(|read| read.expect("everything"));
        assert_eq!(here, there);
        assert_eq!(
            here.colours,
            [Some(Colour::DarkRed), None, Some(Colour::Green), Some(Colour::Shade(3))]
        );
    }

    #[test]
    fn what_is_wrong_is_wrong_for_both() {
        for (right, wrong) in [
            ("7", "256"),
            ("7", "-1"),
            ("7", "\"7\""),
            ("7", "null"),
            ("7", "1.5"),
            ("-3", "9223372036854775808"),
            ("0.1", "\"0.1\""),
            ("\"a\"", "5"),
            ("\"green\"", "\"blue\""),
            ("\"green\"", "1"),
            ("[\"dark_red\", null, \"green\", {\"shade\": 3}]", "{}"),
            ("{\"shade\": 3}", "{\"shade\": -3}"),
            ("{\"shade\": 3}", "{}"),
            ("\"yes\": true", "\"yes\": 1"),
            ("\"small\": 7, ", ""),
        ] {
            let text = TEXT.replacen(right, wrong, 1);
            let value = parse(&text).expect("JSON");
            assert!(both(&value, &text).iter().all(Result::is_err), "{right} is now {wrong}");
        }
        let array = parse("[1]").expect("JSON");
        assert!(read::<Everything<'_>>(&array).is_err(), "a struct is an object");
    }

    #[test]
    fn a_word_is_a_text_that_is_there() {
        let value = parse(TEXT).expect("JSON");
        assert_eq!(word(&value, "word").expect("a word"), "a");
        let error = |field| word(&value, field).expect_err("no word").to_string();
        assert_eq!(error("colour"), "missing field `colour`");
        assert_eq!(error("yes"), "invalid type: boolean `true`, expected a string");
    }
}
