//! Shapes of YAML values that derived structs cannot say.

use std::{fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, SeqAccess, Visitor},
};

use super::yaml::Spanned;

/// A map whose order counts. The names come with their places.
#[derive(Debug, Clone)]
pub struct Entries<T>(pub Vec<(Spanned<String>, T)>);

impl<T> Default for Entries<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Entries<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct EntriesVisitor<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for EntriesVisitor<T> {
            type Value = Entries<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of names to values")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries<T>, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }
        deserializer.deserialize_map(EntriesVisitor(PhantomData))
    }
}

/// One text, or a list of them.
#[derive(Debug, Clone)]
pub enum OneOrMore {
    /// A text alone; its place is that of the whole.
    One(String),
    /// A list.
    More(Vec<Spanned<String>>),
}

impl Spanned<OneOrMore> {
    /// The texts with their places.
    pub fn items(&self) -> Vec<Spanned<String>> {
        match &self.value {
            OneOrMore::One(text) => vec![Spanned { value: text.clone(), at: self.at }],
            OneOrMore::More(items) => items.clone(),
        }
    }
}

impl<'de> Deserialize<'de> for OneOrMore {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneOrMoreVisitor;
        impl<'de> Visitor<'de> for OneOrMoreVisitor {
            type Value = OneOrMore;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("one value or a list of them, such as 409 or [409, 2xx]")
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<OneOrMore, E> {
                Ok(OneOrMore::One(text.to_owned()))
            }
            fn visit_bool<E: Error>(self, value: bool) -> Result<OneOrMore, E> {
                Ok(OneOrMore::One(value.to_string()))
            }
            fn visit_u64<E: Error>(self, value: u64) -> Result<OneOrMore, E> {
                Ok(OneOrMore::One(value.to_string()))
            }
            fn visit_i64<E: Error>(self, value: i64) -> Result<OneOrMore, E> {
                Ok(OneOrMore::One(value.to_string()))
            }
            fn visit_f64<E: Error>(self, value: f64) -> Result<OneOrMore, E> {
                Ok(OneOrMore::One(value.to_string()))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<OneOrMore, A::Error> {
                let mut items = Vec::new();
                while let Some(item) = seq.next_element()? {
                    items.push(item);
                }
                Ok(OneOrMore::More(items))
            }
        }
        deserializer.deserialize_any(OneOrMoreVisitor)
    }
}
