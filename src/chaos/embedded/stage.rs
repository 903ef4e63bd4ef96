//! One toxic at work on one direction of one connection: a state machine without sockets and without a clock of its
//! own. It takes items from its inbox and puts them into the next one, and says when it wants to be asked again.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::definition::{Attributes, Definition};
use super::rng::Rng;

/// Bytes with the instant at which they were read (or at which a latency let them go).
#[derive(Clone, Debug)]
pub(super) struct Chunk {
    pub(super) bytes: Bytes,
    pub(super) stamp: Instant,
}

/// What travels through a chain.
#[derive(Clone, Debug)]
pub(super) enum Item {
    Data(Chunk),
    /// The end of the stream; nothing follows it.
    End,
}

/// What a step did.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Nothing to do now; ask again at that instant, or when something else happens.
    Idle(Option<Instant>),
    /// Something moved; ask again at once.
    Moved,
    /// The end was put out. Nothing comes after it, so this stage and those before it are over.
    Ended { reset: bool },
}

/// Chunks a latency holds, as in Toxiproxy.
const LATENCY_CHUNKS: usize = 1024;
/// A piece of a slow stream leaves each 100 milliseconds.
const SLICE_MS: u64 = 100;
/// Longer delays mean "never" to any test and would overflow the clock.
const LONGEST_MS: i64 = 10 * 365 * 24 * 3600 * 1000;

fn millis(value: i64) -> Duration {
    Duration::from_millis(value.clamp(0, LONGEST_MS) as u64)
}

#[derive(Debug)]
enum State {
    Pass,
    Latency { due: Option<Instant> },
    Bandwidth { free_at: Instant, held: Option<Held> },
    SlowClose { until: Option<Instant> },
    Timeout { deadline: Option<Instant> },
    Reset { fire_at: Option<Instant> },
    Slicer { rest: Option<Chunk>, cuts: VecDeque<usize>, pause: Option<Instant> },
    Limit,
}

/// A chunk being let through at a rate.
#[derive(Debug)]
struct Held {
    chunk: Chunk,
    next: Instant,
    ends: Instant,
}

/// One toxic of a chain.
#[derive(Debug)]
pub(super) struct Stage {
    definition: Definition,
    inbox: VecDeque<Item>,
    /// Data let go by an interruption; it leaves before anything else.
    released: VecDeque<Item>,
    /// Bytes counted by a data limit since this instance was added. Survives changes.
    passed: u64,
    state: State,
}

impl Stage {
    pub(super) fn new(definition: Definition, now: Instant, rng: &mut Rng) -> Self {
        let state = State::Pass;
        let mut stage = Self { definition, inbox: VecDeque::new(), released: VecDeque::new(), passed: 0, state };
        stage.restart(now, rng);
        stage
    }

    pub(super) fn instance(&self) -> u64 {
        self.definition.instance
    }

    pub(super) fn name(&self) -> &str {
        &self.definition.name
    }

    pub(super) fn is_reset(&self) -> bool {
        matches!(self.definition.attributes, Attributes::ResetPeer { .. })
    }

    pub(super) fn has_room(&self) -> bool {
        match self.state {
            State::Latency { .. } => self.inbox.len() < LATENCY_CHUNKS,
            _ => self.inbox.is_empty(),
        }
    }

    pub(super) fn inbox(&mut self) -> &mut VecDeque<Item> {
        &mut self.inbox
    }

    /// Takes new attributes and starts afresh with them.
    pub(super) fn change(&mut self, definition: Definition, now: Instant, rng: &mut Rng) {
        self.definition = definition;
        self.restart(now, rng);
    }

    /// Starts afresh: the toxicity is drawn again, timers and debts begin anew, what was being held is let go. A reset
    /// that has already swallowed data stays on its way, because the connection cannot be whole again.
    pub(super) fn restart(&mut self, now: Instant, rng: &mut Rng) {
        if matches!(self.state, State::Reset { fire_at: Some(_) }) {
            return;
        }
        self.let_go();
        let bites = rng.unit() < self.definition.toxicity;
        self.state = match self.definition.attributes {
            _ if !bites => State::Pass,
            Attributes::Latency { .. } => State::Latency { due: None },
            Attributes::Bandwidth { .. } => State::Bandwidth { free_at: now, held: None },
            Attributes::SlowClose { .. } => State::SlowClose { until: None },
            Attributes::Timeout { timeout } => {
                State::Timeout { deadline: (timeout > 0).then(|| now + millis(timeout)) }
            }
            Attributes::ResetPeer { .. } => State::Reset { fire_at: None },
            Attributes::Slicer { .. } => State::Slicer { rest: None, cuts: VecDeque::new(), pause: None },
            Attributes::LimitData { .. } => State::Limit,
            Attributes::Noop => State::Pass,
        };
    }

    fn let_go(&mut self) {
        let held = match &mut self.state {
            State::Latency { due: Some(_) } => match self.inbox.pop_front() {
                Some(Item::Data(chunk)) => Some(chunk),
                other => {
                    self.inbox.extend(other);
                    None
                }
            },
            State::Bandwidth { held, .. } => held.take().map(|held| held.chunk),
            State::Slicer { rest, .. } => rest.take(),
            _ => None,
        };
        self.released.extend(held.map(Item::Data));
    }

    /// Ends this stage and gives what has to be handed on, in order. The connection has to end when bytes were lost.
    pub(super) fn dismantle(mut self) -> (VecDeque<Item>, Option<Step>) {
        if matches!(self.definition.attributes, Attributes::Timeout { .. }) {
            return (VecDeque::from([Item::End]), Some(Step::Ended { reset: false }));
        }
        if matches!(self.state, State::Reset { fire_at: Some(_) }) {
            return (VecDeque::from([Item::End]), Some(Step::Ended { reset: true }));
        }
        self.let_go();
        let mut items = self.released;
        items.extend(self.inbox);
        (items, None)
    }

    /// All that is inside, in order.
    pub(super) fn into_items(mut self) -> VecDeque<Item> {
        self.let_go();
        self.released.extend(self.inbox);
        self.released
    }

    /// Does the next thing that is due. `room` says whether `out` takes another item.
    pub(super) fn step(&mut self, now: Instant, out: &mut VecDeque<Item>, room: bool, rng: &mut Rng) -> Step {
        if let Some(item) = self.released.front() {
            if !room {
                return Step::Idle(None);
            }
            out.push_back(item.clone());
            self.released.pop_front();
            return Step::Moved;
        }
        let inbox = &mut self.inbox;
        match (&mut self.state, self.definition.attributes) {
            (State::Latency { due }, Attributes::Latency { latency, jitter }) => {
                let Some(Item::Data(chunk)) = inbox.front_mut() else { return pass(inbox, out, room) };
                let leaves = *due.get_or_insert_with(|| {
                    let delay = latency.clamp(-LONGEST_MS, LONGEST_MS).saturating_add(rng.around(jitter));
                    chunk.stamp + millis(delay)
                });
                if leaves > now {
                    return Step::Idle(Some(leaves));
                }
                if room {
                    chunk.stamp = leaves;
                    *due = None;
                }
                pass(inbox, out, room)
            }
            (State::Bandwidth { free_at, held }, Attributes::Bandwidth { rate }) => {
                bandwidth(free_at, held, rate, inbox, now, out, room)
            }
            (State::SlowClose { until }, Attributes::SlowClose { delay }) => {
                if matches!(inbox.front(), Some(Item::End)) {
                    let until = *until.get_or_insert(now + millis(delay));
                    if until > now {
                        return Step::Idle(Some(until));
                    }
                }
                pass(inbox, out, room)
            }
            (State::Timeout { deadline }, Attributes::Timeout { timeout }) => match inbox.front() {
                Some(Item::End) => pass(inbox, out, room),
                Some(Item::Data(_)) => {
                    inbox.pop_front();
                    *deadline = (timeout > 0).then(|| now + millis(timeout));
                    Step::Moved
                }
                None => match *deadline {
                    Some(at) if at <= now => end(out, room, false),
                    waiting => Step::Idle(waiting),
                },
            },
            (State::Reset { fire_at }, Attributes::ResetPeer { timeout }) => {
                if fire_at.is_none() && inbox.pop_front().is_some() {
                    *fire_at = Some(now + millis(timeout));
                }
                match *fire_at {
                    Some(at) if at <= now => end(out, room, true),
                    waiting => Step::Idle(waiting),
                }
            }
            (State::Slicer { rest, cuts, pause }, Attributes::Slicer { average_size, size_variation, delay }) => {
                if let Some(until) = pause.filter(|until| *until > now) {
                    return Step::Idle(Some(until));
                }
                *pause = None;
                if rest.is_none() {
                    match inbox.pop_front() {
                        None => return Step::Idle(None),
                        Some(Item::End) => {
                            inbox.push_front(Item::End);
                            return pass(inbox, out, room);
                        }
                        Some(Item::Data(chunk)) => {
                            *cuts = slices(chunk.bytes.len(), average_size, size_variation, rng);
                            *rest = Some(chunk);
                        }
                    }
                }
                let Some(mut chunk) = rest.take_if(|_| room) else { return Step::Idle(None) };
                let size = cuts.pop_front().unwrap_or(chunk.bytes.len()).min(chunk.bytes.len());
                let piece = Chunk { bytes: chunk.bytes.split_to(size), stamp: chunk.stamp };
                out.push_back(Item::Data(piece));
                *rest = Some(chunk).filter(|chunk| !chunk.bytes.is_empty());
                let delay = Duration::from_micros(delay.clamp(0, LONGEST_MS) as u64);
                *pause = (!delay.is_zero()).then(|| now + delay);
                Step::Moved
            }
            (State::Limit, Attributes::LimitData { bytes }) => {
                let Some(Item::Data(chunk)) = inbox.front_mut() else { return pass(inbox, out, room) };
                if !room {
                    return Step::Idle(None);
                }
                let limit = bytes.max(0) as u64;
                let left = usize::try_from(limit.saturating_sub(self.passed)).unwrap_or(usize::MAX);
                chunk.bytes.truncate(left);
                self.passed += chunk.bytes.len() as u64;
                let over = self.passed >= limit;
                let head = inbox.pop_front();
                out.extend(head.filter(|item| matches!(item, Item::Data(chunk) if !chunk.bytes.is_empty())));
                if over { end(out, true, false) } else { Step::Moved }
            }
            _ => pass(inbox, out, room),
        }
    }
}

/// Hands the first item on as it is.
fn pass(inbox: &mut VecDeque<Item>, out: &mut VecDeque<Item>, room: bool) -> Step {
    if !room {
        return Step::Idle(None);
    }
    match inbox.pop_front() {
        None => Step::Idle(None),
        Some(Item::End) => end(out, true, false),
        Some(data) => {
            out.push_back(data);
            Step::Moved
        }
    }
}

/// Puts out the end of the stream.
fn end(out: &mut VecDeque<Item>, room: bool, reset: bool) -> Step {
    if !room {
        return Step::Idle(None);
    }
    out.push_back(Item::End);
    Step::Ended { reset }
}

fn bandwidth(
    free_at: &mut Instant,
    held: &mut Option<Held>,
    rate: i64,
    inbox: &mut VecDeque<Item>,
    now: Instant,
    out: &mut VecDeque<Item>,
    room: bool,
) -> Step {
    let slice = usize::try_from(rate.saturating_mul(SLICE_MS as i64)).unwrap_or(usize::MAX);
    let tick = Duration::from_millis(SLICE_MS);
    if held.is_none() {
        match inbox.pop_front() {
            None => return Step::Idle(None),
            Some(Item::End) => {
                inbox.push_front(Item::End);
                return pass(inbox, out, room);
            }
            Some(Item::Data(chunk)) => {
                // A chunk that waited here starts when the line became free, so that late timers do not add up.
                let starts = chunk.stamp.max(*free_at);
                let nanos = (chunk.bytes.len() as u64 * 1_000_000).checked_div(rate as u64).unwrap_or(0);
                let ends = starts + Duration::from_nanos(nanos);
                let next = if chunk.bytes.len() > slice { starts + tick } else { ends };
                *held = Some(Held { chunk, next, ends });
            }
        }
    }
    let Some(Held { chunk, next, ends }) = held else { return Step::Idle(None) };
    if rate == 0 {
        return Step::Idle(None);
    }
    if *next > now {
        return Step::Idle(Some(*next));
    }
    if !room {
        return Step::Idle(None);
    }
    if chunk.bytes.len() > slice {
        out.push_back(Item::Data(Chunk { bytes: chunk.bytes.split_to(slice), stamp: chunk.stamp }));
        *next = if chunk.bytes.len() > slice { *next + tick } else { *ends };
    } else {
        *free_at = *ends;
        out.extend(held.take().map(|held| Item::Data(held.chunk)));
    }
    Step::Moved
}

/// The sizes of the pieces: halves of halves until each is at most `average` plus `variation`.
fn slices(length: usize, average: i64, variation: i64, rng: &mut Rng) -> VecDeque<usize> {
    let mut sizes = VecDeque::new();
    let mut open = vec![length as i64];
    while let Some(size) = open.pop() {
        if size.saturating_sub(average) <= variation || size < 2 {
            sizes.push_back(size as usize);
            continue;
        }
        // Never an empty half, whatever the variation.
        let left = (size / 2 + rng.around(variation)).clamp(1, size - 1);
        open.push(size - left);
        open.push(left);
    }
    sizes
}
