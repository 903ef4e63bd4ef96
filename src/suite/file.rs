//! A suite file as it is written. Words are read later, so that all that are wrong are told at once.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{Error, IgnoredAny, MapAccess, SeqAccess, Visitor, value::MapAccessDeserializer},
};

use crate::text::{Entries, OneOrMore, Spanned};

/// A text with its place.
pub(super) type Text = Spanned<String>;

/// A list of whole numbers with their places.
pub(super) type Numbers = Spanned<Vec<Spanned<u64>>>;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SuiteFile {
    pub(super) suite: Text,
    pub(super) about: Text,
    pub(super) cases: Spanned<Vec<Spanned<CaseFile>>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CaseFile {
    pub(super) case: Text,
    pub(super) title: Text,
    pub(super) rules: Spanned<Vec<Text>>,
    #[serde(default)]
    pub(super) tags: Vec<Text>,
    #[serde(default)]
    pub(super) needs: Vec<Text>,
    #[serde(default)]
    pub(super) when: Entries<Text>,
    #[serde(default)]
    pub(super) keys: Entries<Spanned<KeyFormFile>>,
    pub(super) vary: Option<Spanned<Entries<Numbers>>>,
    pub(super) steps: Spanned<Vec<Spanned<StepFile>>>,
    pub(super) given: Option<Spanned<GivenFile>>,
    pub(super) expect: Option<Spanned<ExpectFile>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum StepFile {
    Send(RequestFile),
    Start(RequestFile),
    Join(Text),
    Burst(RequestFile),
    Pass(PassFile),
}

/// What `send`, `start` and `burst` share. A key that does not belong to the step is told by name later.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RequestFile {
    #[serde(rename = "as")]
    pub(super) name: Text,
    pub(super) key: Option<Text>,
    pub(super) raw_key: Option<Text>,
    pub(super) payload: Option<Text>,
    pub(super) tenant: Option<Text>,
    pub(super) fault: Option<Text>,
    pub(super) slow: Option<Text>,
    pub(super) fail: Option<Text>,
    #[serde(rename = "throw")]
    pub(super) throws: Option<Text>,
    pub(super) die: Option<Text>,
    pub(super) until: Option<Text>,
    pub(super) headers: Option<Entries<Text>>,
    pub(super) credentials: Option<Text>,
    pub(super) node: Option<Text>,
    pub(super) wire: Option<Spanned<WireFile>>,
    pub(super) copies: Option<Text>,
    pub(super) release: Option<Text>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct KeyFormFile {
    pub(super) chars: Text,
    pub(super) length: Option<Text>,
    pub(super) beyond_limits: Option<Text>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WireFile {
    pub(super) key_lines: Option<Vec<Text>>,
    #[serde(default)]
    pub(super) trailer: Vec<Text>,
    pub(super) body: Option<Text>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PassFile {
    pub(super) within: Option<Text>,
    pub(super) past: Option<Text>,
    #[serde(rename = "for")]
    pub(super) length: Option<Text>,
}

/// The names of attempts with what is wanted of them, and `overlap`.
#[derive(Debug, Default)]
pub(super) struct GivenFile {
    pub(super) wants: Vec<(Text, Spanned<WantFile>)>,
    pub(super) overlap: Vec<Spanned<Vec<Text>>>,
}

/// The names of attempts with what is wanted of them, and `effects`.
#[derive(Debug, Default)]
pub(super) struct ExpectFile {
    pub(super) wants: Vec<(Text, Spanned<WantFile>)>,
    pub(super) effects: Option<Spanned<EffectsFile>>,
    /// `overlap`, which has no business here.
    pub(super) overlap: Option<Text>,
}

/// `success`, `[replay, in-flight]`, or a map.
#[derive(Debug)]
pub(super) enum WantFile {
    Words(OneOrMore),
    Map(WantMap),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WantMap {
    pub(super) is: Option<Spanned<OneOrMore>>,
    pub(super) executed: Option<Spanned<u16>>,
    pub(super) rest: Option<Spanned<OneOrMore>>,
    pub(super) rule: Option<Text>,
}

/// `1`, `[0, 1]`, `{ is: 1, rule: ... }`, or a map of keys to one of these.
#[derive(Debug)]
pub(super) enum EffectsFile {
    One(CountsFile),
    ByKey(Vec<(Text, Spanned<EffectsFile>)>),
}

/// The counts that are right.
#[derive(Debug, Default)]
pub(super) struct CountsFile {
    pub(super) counts: Vec<u64>,
    pub(super) rule: Option<Text>,
}

impl<'de> Deserialize<'de> for GivenFile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct GivenVisitor;
        impl<'de> Visitor<'de> for GivenVisitor {
            type Value = GivenFile;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of attempts to outcomes, such as { first: executed }")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<GivenFile, A::Error> {
                let mut given = GivenFile::default();
                while let Some(name) = map.next_key::<Text>()? {
                    if name.value == "overlap" {
                        given.overlap = map.next_value()?;
                    } else {
                        given.wants.push((name, map.next_value()?));
                    }
                }
                Ok(given)
            }
        }
        deserializer.deserialize_map(GivenVisitor)
    }
}

impl<'de> Deserialize<'de> for ExpectFile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ExpectVisitor;
        impl<'de> Visitor<'de> for ExpectVisitor {
            type Value = ExpectFile;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of attempts to outcomes, such as { first: executed, effects: 1 }")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ExpectFile, A::Error> {
                let mut expect = ExpectFile::default();
                while let Some(name) = map.next_key::<Text>()? {
                    if name.value == "effects" {
                        expect.effects = Some(map.next_value()?);
                    } else if name.value == "overlap" {
                        map.next_value::<IgnoredAny>()?;
                        expect.overlap = Some(name);
                    } else {
                        expect.wants.push((name, map.next_value()?));
                    }
                }
                Ok(expect)
            }
        }
        deserializer.deserialize_map(ExpectVisitor)
    }
}

impl<'de> Deserialize<'de> for WantFile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct WantVisitor;
        impl<'de> Visitor<'de> for WantVisitor {
            type Value = WantFile;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an outcome, such as success, [replay, in-flight] or { is: replay, rule: ... }")
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<WantFile, E> {
                Ok(WantFile::Words(OneOrMore::One(text.to_owned())))
            }
            // A number is no outcome; it is told as a word that is unknown.
            fn visit_u64<E: Error>(self, number: u64) -> Result<WantFile, E> {
                self.visit_str(&number.to_string())
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<WantFile, A::Error> {
                let mut words = Vec::new();
                while let Some(word) = seq.next_element()? {
                    words.push(word);
                }
                Ok(WantFile::Words(OneOrMore::More(words)))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<WantFile, A::Error> {
                WantMap::deserialize(MapAccessDeserializer::new(map)).map(WantFile::Map)
            }
        }
        deserializer.deserialize_any(WantVisitor)
    }
}

impl<'de> Deserialize<'de> for EffectsFile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct EffectsVisitor;
        impl<'de> Visitor<'de> for EffectsVisitor {
            type Value = EffectsFile;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a count of effects, such as 1, [0, 1], { k: 1, x: 0 } or { is: 1, rule: ... }")
            }
            fn visit_u64<E: Error>(self, count: u64) -> Result<EffectsFile, E> {
                Ok(EffectsFile::One(CountsFile { counts: vec![count], rule: None }))
            }
            fn visit_i64<E: Error>(self, count: i64) -> Result<EffectsFile, E> {
                u64::try_from(count)
                    .map_err(|_| E::invalid_value(serde::de::Unexpected::Signed(count), &self))
                    .and_then(|count| self.visit_u64(count))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<EffectsFile, A::Error> {
                let mut counts = Vec::new();
                while let Some(count) = seq.next_element()? {
                    counts.push(count);
                }
                Ok(EffectsFile::One(CountsFile { counts, rule: None }))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<EffectsFile, A::Error> {
                let mut by_key = Vec::new();
                let mut whole: Option<CountsFile> = None;
                while let Some(name) = map.next_key::<Text>()? {
                    match name.value.as_str() {
                        "is" => {
                            let EffectsFile::One(counts) = map.next_value()? else {
                                return Err(A::Error::custom("`is` takes a count or a list of counts"));
                            };
                            whole.get_or_insert_default().counts = counts.counts;
                        }
                        "rule" => whole.get_or_insert_default().rule = Some(map.next_value()?),
                        _ => by_key.push((name, map.next_value()?)),
                    }
                }
                match whole {
                    None => Ok(EffectsFile::ByKey(by_key)),
                    Some(counts) if by_key.is_empty() => Ok(EffectsFile::One(counts)),
                    Some(_) => {
                        Err(A::Error::custom("`is` and `rule` stand beside the name of a key: put them under it"))
                    }
                }
            }
        }
        deserializer.deserialize_any(EffectsVisitor)
    }
}
