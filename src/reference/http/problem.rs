//! Everything that may be wrong with a request, as problem documents (RFC 9457).

use crate::reference::core::Answer;

/// The page that explains keys, linked from every problem.
pub(super) const DOCS: &str = "/docs/idempotency";

/// A kind of problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::reference) enum Problem {
    /// The credentials name no tenant.
    Unauthorized,
    /// There is no key.
    KeyMissing,
    /// There is a key that cannot be read.
    KeyMalformed,
    /// The key names another intent.
    KeyReused,
    /// The key's execution is in flight.
    KeyInUse,
    /// The key's execution is over, and its result is not told again.
    Repeated,
    /// The key's result is not kept any more.
    KeyExpired,
    /// There is a key where none is taken.
    KeyNotTaken,
    /// The execution was overtaken after its lease.
    LeaseLost,
    /// The request cannot be read.
    BadRequest,
    /// The body is longer than allowed.
    BodyTooLarge,
    /// The body did not arrive in time.
    BodyTooSlow,
    /// The request was read and asks for something that is not allowed.
    InvalidPayment,
    /// Likewise, for anything but a payment.
    Invalid,
    /// The card was declined.
    CardDeclined,
    /// The resource is not as the request demands.
    PreconditionFailed,
    /// The payment network did not do what it was asked, or did not say so.
    ProviderFailed,
    /// Others changed the same thing again and again.
    Contended,
    /// There is nothing here.
    NotFound,
    /// There is something here, but not for this method.
    MethodNotAllowed,
    /// The handler failed.
    Internal,
    /// The store failed, so nothing was done.
    StoreUnavailable,
    /// There is too much to do.
    Overloaded,
    /// The server stops.
    Stopping,
}

impl Problem {
    /// Status, last part of the type, and title.
    fn parts(self) -> (u16, &'static str, &'static str) {
        match self {
            Self::Unauthorized => (401, "unauthorized", "The credentials are not known"),
            Self::KeyMissing => (400, "key-missing", "Idempotency-Key is missing"),
            Self::KeyMalformed => (400, "key-malformed", "Idempotency-Key is malformed"),
            Self::KeyReused => (422, "key-reused", "Idempotency-Key is already used for another request"),
            Self::KeyInUse => (409, "key-in-use", "A request is outstanding for this Idempotency-Key"),
            Self::Repeated => (409, "repeated", "The request was sent before"),
            Self::KeyExpired => (410, "key-expired", "Idempotency-Key has expired"),
            Self::KeyNotTaken => (400, "key-not-taken", "Idempotency-Key is not taken here"),
            Self::LeaseLost => (409, "lease-lost", "The request took too long and lost its lease"),
            Self::BadRequest => (400, "bad-request", "The request cannot be read"),
            Self::BodyTooLarge => (413, "body-too-large", "The body is too large"),
            Self::BodyTooSlow => (408, "body-too-slow", "The body did not arrive in time"),
            Self::InvalidPayment => (400, "invalid-payment", "The payment is not valid"),
            Self::Invalid => (400, "invalid", "The request is not valid"),
            Self::CardDeclined => (402, "card-declined", "The card was declined"),
            Self::PreconditionFailed => (412, "precondition-failed", "The resource is not as the request demands"),
            Self::ProviderFailed => (502, "provider-failed", "The payment network failed"),
            Self::Contended => (503, "contended", "Too many others change the same thing"),
            Self::NotFound => (404, "not-found", "There is nothing here"),
            Self::MethodNotAllowed => (405, "method-not-allowed", "The method is not allowed here"),
            Self::Internal => (500, "internal", "The handler failed"),
            Self::StoreUnavailable => (503, "store-unavailable", "The store cannot be used at the moment"),
            Self::Overloaded => (503, "overloaded", "There are too many requests in flight"),
            Self::Stopping => (503, "stopping", "The server is stopping"),
        }
    }

    /// Fields beyond those of every problem.
    fn fields(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Unauthorized => &[("www-authenticate", "Bearer")],
            // A claim may end at any moment, usually long before its lease does.
            Self::KeyInUse
            | Self::LeaseLost
            | Self::ProviderFailed
            | Self::Contended
            | Self::StoreUnavailable
            | Self::Overloaded
            | Self::Stopping => &[("retry-after", "1")],
            _ => &[],
        }
    }
}

/// The answer that tells a client about a problem.
pub(in crate::reference) fn problem(problem: Problem, detail: impl AsRef<str>) -> Answer {
    let (status, name, title) = problem.parts();
    let body = serde_json::json!({
        "type": format!("/problems/{name}"),
        "title": title,
        "status": status,
        "detail": detail.as_ref(),
    });
    let every =
        [("content-type", "application/problem+json".to_owned()), ("link", format!("<{DOCS}>; rel=\"describedby\""))];
    let more = problem.fields().iter().map(|(name, value)| (*name, (*value).to_owned()));
    let headers = every.into_iter().chain(more).map(|(name, value)| (name.to_owned(), value)).collect();
    Answer { status, headers, body: body.to_string().into() }
}
