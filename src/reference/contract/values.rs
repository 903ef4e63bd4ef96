//! The values that switches may have, and how they are written.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Defines a choice between words.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name { $($(#[$variant_doc])* $variant),* }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(match self { $(Self::$variant => $word),* })
            }
        }

        impl FromStr for $name {
            type Err = ();

            fn from_str(text: &str) -> Result<Self, ()> {
                match text { $($word => Ok(Self::$variant),)* _ => Err(()) }
            }
        }
    };
}

words! {
    /// How a key is written.
    Syntax {
        /// As a Structured Field String, in double quotes.
        SfString = "sf-string",
        /// As it is.
        Bare = "bare",
        /// Either way.
        Either = "either",
    }
}

words! {
    /// The characters that a key may have.
    Charset {
        /// Visible ASCII and spaces.
        Ascii = "ascii",
        /// Visible ASCII without spaces.
        Visible = "visible",
        /// Letters, digits, hyphen, underscore and colon.
        Name = "name",
        /// Letters, digits, hyphen, underscore and space.
        NameOrSpace = "name-or-space",
    }
}

words! {
    /// The format that a key must have.
    KeyFormat {
        /// None.
        Any = "any",
        /// A UUID.
        Uuid = "uuid",
        /// A UUID of version 4.
        Uuid4 = "uuid4",
    }
}

words! {
    /// Whether an empty key is one.
    Empty {
        /// It is malformed.
        Reject = "reject",
        /// It is a key like any other.
        Accept = "accept",
    }
}

words! {
    /// What is done with a malformed key.
    Malformed {
        /// The request is refused.
        Reject = "reject",
        /// The request is treated as one without a key.
        Ignore = "ignore",
        /// The characters are the key, whatever they are.
        Raw = "raw",
    }
}

words! {
    /// What a request gets that carries a key where keys mean nothing.
    Other {
        /// The key is ignored.
        Ignore = "ignore",
        /// The request is refused.
        Reject = "reject",
    }
}

words! {
    /// What of a request is compared.
    Inputs {
        /// Nothing: the key alone decides.
        None = "none",
        /// The body.
        Body = "body",
        /// Path and body.
        PathBody = "path+body",
        /// Method, path, query and body.
        MethodPathQueryBody = "method+path+query+body",
        /// Method, path, query, body, and the fields of the request that its client chose.
        AndHeaders = "method+path+query+body+headers",
    }
}

words! {
    /// How bodies are compared.
    Canon {
        /// As JSON values.
        Json = "json",
        /// Byte by byte.
        Bytes = "bytes",
    }
}

words! {
    /// What becomes of a key after a refusal.
    Disposal {
        /// The refusal is stored and replayed.
        Store = "store",
        /// The key is free again.
        Release = "release",
    }
}

words! {
    /// What becomes of a key after a failure.
    Failures {
        /// What the operation itself documents.
        Operation = "operation",
        /// The failure is stored and replayed, with the effects it had.
        Store = "store",
        /// The effects are rolled back and the key is free again.
        Release = "release",
        /// The effects are rolled back and the key stays refused until its lease ends.
        Hold = "hold",
    }
}

words! {
    /// What a repeat gets.
    ReplayKind {
        /// The stored answer, byte by byte.
        Verbatim = "verbatim",
        /// The answer with the state that its resource has now.
        CurrentState = "current-state",
        /// A conflict that names the resource that was made.
        Refuse = "409+resource-id",
    }
}

words! {
    /// What the retention counts from.
    RetentionBase {
        /// The end of the execution.
        Completed = "completed",
        /// The first request.
        FirstSeen = "first-seen",
    }
}

words! {
    /// What becomes of the key of a dead owner.
    Crash {
        /// After the lease, a retry takes it over.
        Takeover = "takeover",
        /// It is refused until the retention ends.
        Hold = "hold-until-retention",
    }
}

words! {
    /// How errors are written.
    Format {
        /// As problem documents (RFC 9457).
        Problem = "problem+json",
        /// As JSON with an `error` member.
        Json = "json",
        /// As XML.
        Xml = "xml",
    }
}

words! {
    /// What a different request under a used key gets, if it is not refused.
    Different {
        /// The first answer.
        Replay = "replay-original",
        /// It runs as an operation of its own.
        Execute = "execute-as-new",
    }
}

words! {
    /// What a duplicate in flight gets, if it is not refused.
    Waits {
        /// It waits, and gets the first answer.
        Wait = "wait",
    }
}

words! {
    /// What an expired key gets, if it is not refused.
    Expired {
        /// It is new again.
        New = "new",
    }
}

words! {
    /// What a request gets while the store cannot be used, if it is not refused.
    Open {
        /// It runs unprotected.
        Open = "open",
    }
}

/// A refusal with a status, or something else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatusOr<T> {
    /// Refused with this status.
    Status(u16),
    /// Something else.
    Word(T),
}

impl<T: fmt::Display> fmt::Display for StatusOr<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(status) => write!(f, "{status}"),
            Self::Word(word) => word.fmt(f),
        }
    }
}

impl<T: FromStr> FromStr for StatusOr<T> {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text.parse() {
            Ok(word) => Ok(Self::Word(word)),
            Err(_) => status(text, 400..=599).map(Self::Status),
        }
    }
}

fn status(text: &str, range: std::ops::RangeInclusive<u16>) -> Result<u16, ()> {
    text.parse().ok().filter(|status| text.len() == 3 && range.contains(status)).ok_or(())
}

/// A status, or that of the original.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// That of the original.
    Same,
    /// This one.
    Is(u16),
}

impl Status {
    /// The status, where the original has this one.
    #[must_use]
    pub fn of(self, original: u16) -> u16 {
        match self {
            Self::Same => original,
            Self::Is(status) => status,
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Same => f.write_str("same"),
            Self::Is(status) => write!(f, "{status}"),
        }
    }
}

impl FromStr for Status {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        if text == "same" { Ok(Self::Same) } else { status(text, 200..=599).map(Self::Is) }
    }
}

/// Where the key is: in a field of the head, a member of the JSON body, or a parameter of the query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    /// The kind of place.
    pub place: Place,
    /// The name there. Names of fields are in lower case.
    pub name: String,
}

words! {
    /// A kind of place for a key.
    Place {
        /// A field of the head.
        Header = "header",
        /// A member of the JSON body.
        Body = "body",
        /// A parameter of the query.
        Query = "query",
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.place, self.name)
    }
}

impl FromStr for Location {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (place, name) = text.split_once(':').ok_or(())?;
        let place = place.parse()?;
        let name = if place == Place::Header { name.to_ascii_lowercase() } else { name.to_owned() };
        let proper = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        if name.is_empty() || name.len() > 100 || !name.bytes().all(proper) {
            Err(())
        } else {
            Ok(Self { place, name })
        }
    }
}

/// The methods whose requests may carry a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Methods(pub Vec<String>);

impl fmt::Display for Methods {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("+"))
    }
}

impl FromStr for Methods {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let methods: Vec<_> = text.split('+').map(str::to_owned).collect();
        let known = |method: &String| ["POST", "PUT", "PATCH", "DELETE"].contains(&method.as_str());
        if methods.iter().all(known) { Ok(Self(methods)) } else { Err(()) }
    }
}

/// The field that marks a replay, if there is one: its name in lower case, and its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarkerField(pub Option<(String, String)>);

impl fmt::Display for MarkerField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            None => f.write_str("none"),
            Some((name, value)) => write!(f, "{name}: {value}"),
        }
    }
}

impl FromStr for MarkerField {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        if text == "none" {
            return Ok(Self(None));
        }
        let (name, value) = text.split_once(':').ok_or(())?;
        let name: http::HeaderName = name.trim().parse().map_err(|_| ())?;
        let value = value.trim();
        let visible = !value.is_empty() && value.bytes().all(|byte| (0x20..0x7f).contains(&byte));
        if visible { Ok(Self(Some((name.to_string(), value.to_owned())))) } else { Err(()) }
    }
}

/// What tells keys of one name apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScopeParts {
    /// Whose key it is.
    pub tenant: bool,
    /// The method of the operation.
    pub method: bool,
    /// The route of the operation.
    pub route: bool,
}

impl fmt::Display for ScopeParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [(self.tenant, "tenant"), (self.method, "method"), (self.route, "route")];
        let parts: Vec<_> = parts.iter().filter(|(on, _)| *on).map(|(_, name)| *name).collect();
        f.write_str(if parts.is_empty() { "global".to_owned() } else { parts.join("+") }.as_str())
    }
}

impl FromStr for ScopeParts {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut scope = Self { tenant: false, method: false, route: false };
        if text == "global" {
            return Ok(scope);
        }
        for part in text.split('+') {
            let slot = match part {
                "tenant" => &mut scope.tenant,
                "method" => &mut scope.method,
                "route" => &mut scope.route,
                _ => return Err(()),
            };
            if std::mem::replace(slot, true) {
                return Err(());
            }
        }
        Ok(scope)
    }
}

/// Reads `250ms`, `30s`, `5m`, `24h` or `30d`: at least a millisecond, at most ten years.
pub(super) fn duration(text: &str) -> Option<Duration> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let factor = match unit {
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    let millis = number.parse::<u64>().ok()?.checked_mul(factor)?;
    (1..=3650 * 86_400_000).contains(&millis).then(|| Duration::from_millis(millis))
}

/// The shortest exact way to write a duration that [`duration`] reads.
pub(super) fn written(duration: Duration) -> String {
    let millis = duration.as_millis();
    let units = [(3_600_000, "h"), (60_000, "m"), (1000, "s"), (1, "ms")];
    let (factor, unit) = units.into_iter().find(|(factor, _)| millis.is_multiple_of(*factor)).unwrap_or((1, "ms"));
    format!("{}{unit}", millis / factor)
}
