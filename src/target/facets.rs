//! The values of the rarer policy keys.

/// Where the key travels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyPlace {
    /// In its header field.
    Header,
    /// Where `${key}` stands in the operation's path, payload or header fields: a member of the body, a parameter, a
    /// GraphQL directive.
    Request,
}

/// What a key may look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyFormat {
    /// Any characters.
    Any,
    /// A UUID of any version.
    Uuid,
    /// A UUID of version 4.
    Uuid4,
    /// Letters, digits, `-`, `_` and the like; no spaces and no quotes.
    Token,
}

/// What is done with an empty key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EmptyKey {
    /// It is refused.
    Refuse,
    /// It is a key like any other.
    Accept,
}

/// Whether `"k"` and `k` are one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyQuotes {
    /// They are one key.
    Ignored,
    /// They are two keys.
    Significant,
}

/// Whether header fields such as trace ids count when two requests are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FingerprintHeaders {
    /// They do not count.
    Ignored,
    /// They count.
    Compared,
}

/// A part of the request that counts when two requests are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FingerprintPart {
    /// The method.
    Method,
    /// The path.
    Path,
    /// The query.
    Query,
    /// The payload.
    Body,
}

/// What a replay shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplayKind {
    /// The bytes of the original answer.
    Verbatim,
    /// Status and value of the original answer.
    StatusAndBody,
    /// The same resource as it is now.
    CurrentState,
    /// No answer of success: a refusal that names the resource.
    Conflict,
}

/// From when the retention is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetentionFrom {
    /// From the first use of the key.
    FirstUse,
    /// From the completion of the work.
    Completion,
    /// From the last use: each replay begins it anew.
    LastUse,
}

/// What becomes of a key whose owner has died.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Crash {
    /// After the lease another attempt takes it over.
    Takeover,
    /// It is held until the retention ends, so that the work is never done twice.
    Hold,
}

/// What is done while the store of keys cannot be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreDown {
    /// Requests are refused.
    Refuse,
    /// Requests run without protection.
    Run,
}

/// What separates two keys of the same characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScopePart {
    /// The credential, such as an API key.
    Credential,
    /// The account.
    Account,
    /// The tenant.
    Tenant,
    /// The user.
    User,
    /// The region.
    Region,
    /// The zone.
    Zone,
    /// Live or test.
    Mode,
    /// The method.
    Method,
    /// The route.
    Route,
    /// The path with its parameters.
    Path,
    /// The version of the API.
    ApiVersion,
}

/// How refusals are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorFormat {
    /// Problem details (RFC 9457).
    ProblemJson,
    /// JSON of the API's own.
    Json,
    /// XML.
    Xml,
    /// In the payload of GraphQL, whatever the status.
    Graphql,
}
