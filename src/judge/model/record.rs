//! What the model knows of one key: intervals, outcomes, and the rules of the server.

/// An instant or a span, in any one unit (recorded histories use microseconds). May be negative.
pub type Time = i64;

/// Later than everything; half of what fits, so that sums of a few of them fit as well.
pub const FOREVER: Time = i64::MAX / 16;

/// All that was observed of one key in one scope.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KeyHistory {
    /// The attempts and the counts of effects, in any order.
    pub observations: Vec<Observation>,
}

/// One attempt, or one count of effects: something happened at an instant of a closed interval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observation {
    /// Before its first byte was written.
    pub from: Time,
    /// After its last byte was read, or when it was given up.
    pub to: Time,
    /// Which payload it carried: equal numbers are one request to the server.
    pub payload: u32,
    /// What came of it.
    pub outcome: Outcome,
}

/// What came of an attempt. Numbers name results: equal numbers are one result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// Success with this result, or with one that could not be read.
    Success(Option<u32>),
    /// Success that is marked as a replay.
    Replayed(Option<u32>),
    /// A failure of the server with this body.
    Failure(Option<u32>),
    /// Refused, for another attempt was in flight.
    Conflict,
    /// Refused, for another payload had used the key.
    Mismatch,
    /// Refused for a reason that has nothing to do with keys.
    Refused,
    /// Refused by the handler, or before a key is looked at: it may have held the key, and has no effect.
    Rejected,
    /// No answer, or one of a gateway: it may have executed, now or later, or not.
    Lost,
    /// What came of it is left out of account. As lost, and no limit of a lost owner concerns it.
    Unknown,
    /// The request was cut before its last byte: it cannot have executed, but may have reserved its key.
    Cut,
    /// Not an attempt: so many effects were counted, at least and at most.
    Effects(u32, u32),
}

/// How a server that is right behaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    /// Whether an attempt may be refused while another one is in flight.
    pub conflict: bool,
    /// Whether a failure may free the key.
    pub release: bool,
    /// Whether a failure may be stored.
    pub store: bool,
    /// Whether payloads are compared.
    pub fingerprint: bool,
    /// Whether a freed key may still be held to its payload.
    pub held_after_release: bool,
    /// How long an owner keeps its key at least.
    pub lease: Bound,
    /// How old the mark of an owner that was lost can get.
    pub stuck: Option<Time>,
    /// How long a completed key is kept at least.
    pub retention: Bound,
    /// How long a completed key is kept at most.
    pub retention_most: Option<Time>,
    /// How long after the loss of its connection a request may still arrive.
    pub late: Time,
    /// Whether the server may give up, and free the key, when its client is gone.
    pub cancels: bool,
    /// Whether a gateway may send a request again by itself.
    pub gateway_repeats: bool,
    /// Whether every refusal and every bare failure is right at any time. For telling harm from rudeness.
    pub refuses_freely: bool,
}

/// When something may happen by the passing of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// It never does.
    Never,
    /// Not before so much time has passed.
    AtLeast(Time),
    /// Nobody says; any span is possible.
    Unknown,
}

impl Bound {
    /// The least time that must have passed; `None` if it never happens.
    pub(super) fn least(self) -> Option<Time> {
        match self {
            Self::Never => None,
            Self::AtLeast(span) => Some(span),
            Self::Unknown => Some(0),
        }
    }
}

impl Default for Rules {
    /// Conflicts allowed, failures free the key, payloads compared, no lease, keys kept for ever.
    fn default() -> Self {
        Self {
            conflict: true,
            release: true,
            store: false,
            fingerprint: true,
            held_after_release: false,
            lease: Bound::Never,
            stuck: None,
            retention: Bound::Never,
            retention_most: None,
            late: 0,
            cancels: false,
            gateway_repeats: false,
            refuses_freely: false,
        }
    }
}

impl Rules {
    /// Whether any guard speaks of time.
    pub(super) fn timed(&self) -> bool {
        let waits = |bound: Bound| matches!(bound, Bound::AtLeast(span) if span > 0);
        waits(self.lease) || waits(self.retention) || self.stuck.is_some() || self.retention_most.is_some()
    }

    /// Whether two payloads are one request.
    pub(super) fn same(&self, one: u32, other: u32) -> bool {
        !self.fingerprint || one == other
    }

    /// The instant after which an attempt cannot begin to execute any more.
    pub(super) fn closes(&self, observation: &Observation) -> Time {
        match observation.outcome {
            Outcome::Lost => observation.to.saturating_add(self.late).min(FOREVER),
            _ => observation.to,
        }
    }
}

impl KeyHistory {
    /// With a twin that was lost for each attempt, where a gateway may repeat requests.
    pub(super) fn with_twins(&self, rules: &Rules) -> std::borrow::Cow<'_, Self> {
        if !rules.gateway_repeats {
            return std::borrow::Cow::Borrowed(self);
        }
        let sent = self.observations.iter().filter(|o| !matches!(o.outcome, Outcome::Effects(..) | Outcome::Cut));
        let twins = sent.map(|o| Observation { outcome: Outcome::Lost, ..o.clone() });
        let observations = self.observations.iter().cloned().chain(twins).collect();
        std::borrow::Cow::Owned(Self { observations })
    }
}
