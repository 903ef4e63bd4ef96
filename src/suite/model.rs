//! A suite, resolved: names checked, words parsed, places kept.

use http::{HeaderName, HeaderValue};
use serde::{Deserialize, Serialize};

use crate::{
    spec::RuleId,
    target::{
        Disposal, ExpiredKey, Fingerprint, FingerprintHeaders, InFlight, KeyQuotes, KeySyntax, MalformedKey, Mismatch,
    },
    text::{Span, Template},
};

/// A file of cases.
#[derive(Debug, Clone)]
pub struct Suite {
    /// Its name, kebab-case.
    pub name: String,
    /// One sentence about it.
    pub about: String,
    /// The path it was read from; `suites/NAME.yaml` for a built-in one.
    pub file: String,
    /// Its cases, in order.
    pub cases: Vec<Case>,
}

/// Where something stands in a file; both count from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The line.
    pub line: u32,
    /// The column.
    pub column: u32,
}

/// One case: steps to perform, and what must come of them.
#[derive(Debug, Clone)]
pub struct Case {
    /// Its name within the suite, kebab-case.
    pub name: String,
    /// One line for people; knows the names of `vary`.
    pub title: Template,
    /// Where the case starts.
    pub place: Place,
    /// The rules it tests, at least one. A broken expectation without a rule of its own breaks the first one.
    pub rules: Vec<RuleId>,
    /// Words to select it by.
    pub tags: Vec<String>,
    /// What the target must offer beyond what the steps themselves show.
    pub needs: Vec<Need>,
    /// The keys that are more than fresh characters, by their symbol.
    pub keys: Vec<(String, KeyForm)>,
    /// What the operation's policy must say.
    pub when: Vec<Condition>,
    /// A name and the values it takes; the case is run once for each.
    pub vary: Option<(String, Vec<u64>)>,
    /// What is done, in order.
    pub steps: Vec<Step>,
    /// What must hold for the case to say anything. Not met means inconclusive.
    pub given: Vec<Expectation>,
    /// Groups of attempts that must have been in flight together, else the case is inconclusive.
    pub overlap: Vec<Vec<String>>,
    /// What must come of it.
    pub expect: Vec<Expectation>,
    /// How many effects there must be at the end, by key.
    pub effects: Vec<Effects>,
}

/// Something a case needs that its steps do not show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// A way to count effects.
    EffectProbe,
}

/// What an operation's policy must say for a case to apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// `failure_before_effect`.
    FailureBeforeEffect(Disposal),
    /// `failure_after_effect`.
    FailureAfterEffect(Disposal),
    /// `validation_failure`.
    ValidationFailure(Disposal),
    /// `in_flight`.
    InFlight(InFlight),
    /// `mismatch`.
    Mismatch(Mismatch),
    /// `fingerprint`.
    Fingerprint(Fingerprint),
    /// `key.required`.
    KeyRequired(bool),
    /// `key.malformed`.
    MalformedKey(MalformedKey),
    /// `expired_key`.
    ExpiredKey(ExpiredKey),
    /// `key.syntax`.
    KeySyntax(KeySyntax),
    /// `key.quotes`.
    KeyQuotes(KeyQuotes),
    /// `fingerprint_headers`.
    FingerprintHeaders(FingerprintHeaders),
    /// Whether `retention_from` is the last use, so that each replay begins the retention anew.
    RetentionSlides(bool),
}

/// One thing to do.
#[derive(Debug, Clone)]
pub enum Step {
    /// Send and wait for the end.
    Send(Request),
    /// Send and go on while it is under way.
    Start(Request),
    /// Wait for the end of a started attempt.
    Join(String),
    /// Send several equal attempts together.
    Burst(Burst),
    /// Let time pass.
    Pass(Pass),
}

/// One attempt.
#[derive(Debug, Clone)]
pub struct Request {
    /// The name it is called by in expectations.
    pub name: String,
    /// Its key.
    pub key: KeyChoice,
    /// The payload's role: `base`, `reordered`, `reformatted`, `escaped`, `unreadable`, or a variant that the target declares.
    pub payload: String,
    /// Who sends it; the target's first tenant if `None`. `other` is any second one.
    pub tenant: Option<String>,
    /// What the network does to it.
    pub fault: Option<NetworkFault>,
    /// How slow the handler is made.
    pub slow: Option<Slow>,
    /// How the handler is made to fail.
    pub server: Option<ServerFault>,
    /// Send it again while it is refused as in flight, until it settles.
    pub until_settled: bool,
    /// Header fields of this attempt only.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// The credentials that it carries.
    pub credentials: Credentials,
    /// Which node it goes to, by its place in the target file; the first one if `None`.
    pub node: Option<usize>,
    /// How its bytes differ from what an HTTP library writes.
    pub wire: Option<Wire>,
}

/// The credentials of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Credentials {
    /// Those of its tenant.
    #[default]
    Own,
    /// None: the tenant's header fields are left out.
    None,
    /// Such as nobody has, in the place of its tenant's.
    Wrong,
}

/// The characters of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyForm {
    /// Knows `${key}`, which is the same for all keys of the case, and `${pad}`.
    pub chars: Template,
    /// How many characters there are in all; `${pad}` makes up for what is missing.
    pub length: Option<KeyLength>,
    /// Whether it may be sent although the API documents that it is too short or too long.
    pub beyond_limits: bool,
}

/// How long a key is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyLength {
    /// So many characters.
    Of(u32),
    /// As long as the API documents as the longest.
    Longest,
    /// One character more than that.
    TooLong,
}

/// A request as exact bytes. Such an attempt has a connection that no HTTP library writes to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Wire {
    /// The lines in the place of the key's header field. They know `${name}`, `${field}` (the key as the policy writes
    /// it), `${key}` and `${other}` (fresh characters).
    pub key_lines: Option<Vec<Template>>,
    /// Lines after the last chunk of the body; they know the same names.
    pub trailer: Vec<Template>,
    /// How the body is sent.
    pub body: WireBody,
}

/// How a body is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WireBody {
    /// With its length, at once.
    #[default]
    Whole,
    /// In chunks.
    Chunked,
    /// In chunks without the last one; then the connection is closed.
    ChunkedCut,
    /// Half of it, a pause, and the rest.
    Trickle,
    /// After waiting for 100 (Continue).
    Expect,
    /// Not at all: the connection is closed after 100 (Continue) was asked for.
    ExpectAbandoned,
    /// The whole request is sent twice on one connection, before any answer.
    Pipelined,
}

/// The key of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyChoice {
    /// No key at all. Effects are counted under the attempt's name.
    None,
    /// A fresh key that this name stands for within the case.
    Symbol(String),
    /// Exactly these characters as the field's value; `${key}` stands for a fresh key's characters.
    /// Effects are counted under the attempt's name.
    Raw(Template),
}

/// Equal attempts that are released together.
#[derive(Debug, Clone)]
pub struct Burst {
    /// What each of them sends; they are called `NAME#1`, `NAME#2`, ...
    pub request: Request,
    /// How many.
    pub copies: Copies,
}

/// How many attempts a burst has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Copies {
    /// So many, 2 to 64.
    Count(u16),
    /// The value of the case's `vary` name.
    Vary,
}

/// Network faults, by what they do to an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NetworkFault {
    /// The whole request arrives, the server answers, no byte of the answer comes back.
    LoseResponse,
    /// The whole request arrives, the connection is cut while the handler runs.
    CutWhileRunning,
    /// The head and the first half of the body arrive, then the connection is cut.
    CutRequestBody,
    /// The answer is cut in the middle of its body.
    CutResponse,
}

/// How slow the handler is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slow {
    /// For this long.
    For(Span),
    /// Until its lease is over.
    PastLease,
}

/// How the handler is made to fail, the first `times` times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerFault {
    /// It answers with a server error.
    Fail(ServerFaultPoint),
    /// It throws.
    Throw(ServerFaultPoint),
    /// The worker dies and answers nothing.
    Die(ServerFaultPoint),
}

/// Where a server fault strikes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerFaultPoint {
    /// Before the effect.
    Before,
    /// After the effect.
    After,
}

/// Letting time pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pass {
    /// To well before the end of a window that began with the first attempt.
    Within(Window),
    /// To after the end of a window.
    Past(Window),
    /// For this long, really waiting.
    For(Span),
}

/// A window of time that a policy promises.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Window {
    /// The lease of a running owner.
    Lease,
    /// The retention of a completed key.
    Retention,
}

/// What must come of one attempt or of a burst.
#[derive(Debug, Clone)]
pub struct Expectation {
    /// The attempt's or the burst's name.
    pub name: String,
    /// What is wanted.
    pub want: Want,
    /// The rule that is broken otherwise; the case's first one if `None`.
    pub rule: Option<RuleId>,
    /// Where it stands.
    pub place: Place,
}

/// What is wanted of an attempt or a burst.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Want {
    /// Any of these outcomes. For a burst, every attempt must have one of them.
    AnyOf(Vec<Word>),
    /// For a burst: so many executions, and any of these outcomes for all others.
    Executions {
        /// How many attempts are executions of their own.
        executed: u16,
        /// What the others may come to.
        rest: Vec<Word>,
    },
}

/// An outcome by meaning; the target's policy knows how its API says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Word {
    /// Success, and this attempt did the work.
    Executed,
    /// Success, with the answer of another attempt's execution.
    Replay,
    /// Success of either kind.
    Success,
    /// Refused because another attempt with the key is running.
    InFlight,
    /// Refused because the key was used for another request.
    Mismatch,
    /// Refused because there is no key.
    MissingKey,
    /// Refused because the key is malformed.
    BadKey,
    /// Any other 4xx.
    Rejected,
    /// A 5xx.
    ServerError,
    /// The connection ended without a whole answer.
    Lost,
    /// No answer in time.
    TimedOut,
}

/// How many effects there must be at the end.
#[derive(Debug, Clone)]
pub struct Effects {
    /// The key's name in the case, or the name of a keyless attempt. `None` is the first key of the case.
    pub key: Option<String>,
    /// The counts that are right.
    pub counts: Vec<u64>,
    /// The rule that is broken otherwise; the case's first one if `None`.
    pub rule: Option<RuleId>,
    /// Where it stands.
    pub place: Place,
}
