//! The place of one direction where the triggers work: behind the toxics, before the socket. It says how many bytes may
//! be written before the next point that a trigger could mean, and which trigger hits there.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;

use super::leave::Answering;
use super::ledger::Page;
use super::scan::{Mark, Request, Scanner, Speech};
use super::trigger::{Deed, Point, Trigger};
use crate::chaos::Stream;

/// Longest request that can be sent a second time.
const MAX_CAPTURE: usize = 1024 * 1024;

/// A trigger that this direction looks out for.
#[derive(Debug)]
struct Armed {
    trigger: Arc<Trigger>,
    /// Records that had passed when it was armed.
    base: u64,
}

/// The message that is passing.
#[derive(Debug)]
struct Current {
    request: Option<Arc<Request>>,
    head_end: u64,
    end: Option<u64>,
}

/// One direction's watch. Offsets count the bytes written to the destination.
#[derive(Debug)]
pub(super) struct Tap {
    stream: Stream,
    connection: u64,
    scanner: Scanner,
    marks: VecDeque<(u64, Mark)>,
    written: u64,
    armed: Vec<Armed>,
    stops: Vec<(u64, Arc<Trigger>)>,
    due: VecDeque<Arc<Trigger>>,
    current: Option<Current>,
    gate: Option<Arc<Trigger>>,
    capture: Option<Vec<u8>>,
    /// Where an answer began of which no byte is written yet.
    begins: Option<u64>,
    records: u64,
}

/// Requests that are not answered yet, the oldest first.
pub(super) type Unanswered = VecDeque<Arc<Request>>;

impl Tap {
    pub(super) fn new(stream: Stream, connection: u64, triggers: &[Arc<Trigger>]) -> Self {
        let mut tap = Self {
            stream,
            connection,
            scanner: Scanner::new(stream),
            marks: VecDeque::new(),
            written: 0,
            armed: vec![],
            stops: vec![],
            due: VecDeque::new(),
            current: None,
            gate: None,
            capture: None,
            begins: None,
            records: 0,
        };
        tap.arm(triggers);
        tap
    }

    pub(super) fn speech(&self) -> Speech {
        self.scanner.speech()
    }

    /// Takes over the list of triggers. What already looks out goes on where it is.
    pub(super) fn arm(&mut self, triggers: &[Arc<Trigger>]) {
        let old = std::mem::take(&mut self.armed);
        let stream = self.stream;
        for trigger in triggers.iter().filter(|trigger| trigger.point.stream() == stream) {
            let known = old.iter().find(|armed| Arc::ptr_eq(&armed.trigger, trigger));
            let base = known.map_or(self.records, |armed| armed.base);
            self.armed.push(Armed { trigger: Arc::clone(trigger), base });
            if known.is_none() && matches!(trigger.point, Point::RequestBody | Point::ResponseBody) {
                self.place_stop(trigger);
            }
        }
        let armed = &self.armed;
        let stays = |trigger: &Arc<Trigger>| armed.iter().any(|armed| Arc::ptr_eq(&armed.trigger, trigger));
        self.stops.retain(|(_, trigger)| stays(trigger));
        self.due.retain(stays);
        if !self.armed.iter().any(|armed| matches!(armed.trigger.deed, Deed::Replay { .. })) {
            self.capture = None;
        }
    }

    /// Finds the place of a body point in the message that is passing, unless it has passed.
    fn place_stop(&mut self, trigger: &Arc<Trigger>) {
        let Some(current) = &self.current else { return };
        let at = match (trigger.from_end, current.end) {
            (true, None) => None,
            (true, Some(end)) => end.checked_sub(trigger.bytes).filter(|at| *at >= current.head_end),
            (false, end) => current.head_end.checked_add(trigger.bytes).filter(|at| end.is_none_or(|end| *at <= end)),
        };
        if let Some(at) =
            at.filter(|at| *at >= self.written && trigger.means(self.connection, current.request.as_deref()))
        {
            self.stops.push((at, Arc::clone(trigger)));
        }
    }

    /// Looks at what will be written next.
    pub(super) fn scan(&mut self, chunk: &[u8], unanswered: &Unanswered) {
        let seen = usize::try_from(self.scanner.offset() - self.written).unwrap_or(usize::MAX);
        let fresh = chunk.get(seen..).unwrap_or_default();
        self.scanner.feed(fresh, unanswered.front().map(Arc::as_ref), &mut self.marks);
    }

    /// How many of so many bytes may be written before the next point.
    pub(super) fn allowed(&self, length: usize) -> usize {
        if self.armed.is_empty() {
            return length;
        }
        let stops = self.stops.iter().map(|(at, _)| *at);
        let next = self.marks.front().map(|(at, _)| *at).into_iter().chain(stops).min();
        next.map_or(length, |at| usize::try_from(at - self.written).unwrap_or(usize::MAX).min(length))
    }

    /// These bytes have been written.
    pub(super) fn wrote(&mut self, bytes: &[u8], page: &Page) {
        self.written += bytes.len() as u64;
        if self.begins.is_some_and(|at| at < self.written) {
            self.begins = None;
            page.write().begun += 1;
            page.tell();
        }
        if let Some(capture) = &mut self.capture {
            if capture.len() + bytes.len() > MAX_CAPTURE {
                self.capture = None;
            } else {
                capture.extend_from_slice(bytes);
            }
        }
    }

    /// The source has ended.
    pub(super) fn finish(&mut self, page: &Page, unanswered: &mut Unanswered) {
        self.scanner.finish(&mut self.marks);
        while self.due(page, unanswered).is_some() {}
    }

    /// The trigger that hits here, if one does.
    pub(super) fn due(&mut self, page: &Page, unanswered: &mut Unanswered) -> Option<Arc<Trigger>> {
        loop {
            if let Some(trigger) = self.due.pop_front() {
                if trigger.claim() {
                    return Some(trigger);
                }
            } else if self.marks.front().is_some_and(|(at, _)| *at <= self.written) {
                if let Some((at, mark)) = self.marks.pop_front() {
                    self.reach(at, mark, page, unanswered);
                }
            } else {
                let place = self.stops.iter().position(|(at, _)| *at <= self.written)?;
                self.due.push_back(self.stops.remove(place).1);
            }
        }
    }

    fn reach(&mut self, at: u64, mark: Mark, page: &Page, unanswered: &mut Unanswered) {
        let up = self.stream == Stream::Upstream;
        match mark {
            Mark::Start if up => {
                let replay = |armed: &Armed| matches!(armed.trigger.deed, Deed::Replay { .. });
                self.capture = self.armed.iter().any(replay).then(Vec::new);
            }
            Mark::Start => {
                if at < self.written {
                    page.write().begun += 1;
                    page.tell();
                } else {
                    self.begins = Some(at);
                }
                self.meet(Point::ResponseStart, unanswered.front().map(Arc::clone));
            }
            Mark::Head { request, end } => {
                let request = if up { request } else { unanswered.front().map(Arc::clone) };
                if let (true, Some(request)) = (up, &request) {
                    unanswered.push_back(Arc::clone(request));
                }
                self.current = Some(Current { request: request.clone(), head_end: at, end });
                self.meet(if up { Point::RequestHead } else { Point::ResponseHead }, request);
                let bodies: Vec<_> = self.armed.iter().map(|armed| Arc::clone(&armed.trigger)).collect();
                for trigger in bodies.iter().filter(|t| matches!(t.point, Point::RequestBody | Point::ResponseBody)) {
                    self.place_stop(trigger);
                }
            }
            Mark::End => {
                {
                    let mut entry = page.write();
                    if up {
                        entry.requests += 1;
                    } else {
                        entry.answers += 1;
                        entry.drained += 1;
                    }
                }
                page.tell();
                let current = self.current.take().and_then(|current| current.request);
                let request = if up { current } else { unanswered.pop_front() };
                // A place behind the end of this message is not one of the next.
                let written = self.written;
                self.stops.retain(|(at, _)| *at <= written);
                self.meet(if up { Point::RequestEnd } else { Point::ResponseEnd }, request);
            }
            Mark::RecordStart => self.meet_record(true),
            Mark::RecordEnd => {
                self.records += 1;
                {
                    let mut entry = page.write();
                    if up { entry.up.records += 1 } else { entry.down.records += 1 }
                }
                page.tell();
                self.meet_record(false);
            }
        }
    }

    fn meet(&mut self, point: Point, request: Option<Arc<Request>>) {
        let meant =
            |armed: &&Armed| armed.trigger.point == point && armed.trigger.means(self.connection, request.as_deref());
        self.due.extend(self.armed.iter().filter(meant).map(|armed| Arc::clone(&armed.trigger)));
    }

    fn meet_record(&mut self, start: bool) {
        let meant = |armed: &&Armed| {
            matches!(armed.trigger.point, Point::RequestRecord | Point::ResponseRecord)
                && armed.base + armed.trigger.records == self.records
                && start == (armed.trigger.records == 0)
                && armed.trigger.means(self.connection, None)
        };
        self.due.extend(self.armed.iter().filter(meant).map(|armed| Arc::clone(&armed.trigger)));
    }

    /// Lets nothing pass until the trigger is released.
    pub(super) fn close_gate(&mut self, trigger: Arc<Trigger>) {
        self.gate = Some(trigger);
    }

    /// Whether the gate is closed. Opens it when its trigger was released.
    pub(super) fn is_held(&mut self, page: &Page) -> bool {
        if self.gate.as_ref().is_some_and(|trigger| trigger.is_released()) {
            self.gate = None;
            page.write().held = None;
            page.tell();
        }
        self.gate.is_some()
    }

    /// The request that has just ended, if it was short enough.
    pub(super) fn captured(&mut self) -> Option<Vec<u8>> {
        self.capture.take()
    }

    /// Looks on at what comes after everything that was written, for somebody who throws it away: the bytes that are
    /// still inside come first.
    pub(super) fn look_on(self, inside: Vec<Bytes>, asked: Option<&Request>) -> Answering {
        let mut seen = usize::try_from(self.scanner.offset() - self.written).unwrap_or(usize::MAX);
        let mut answering = Answering { scanner: self.scanner, marks: self.marks };
        for bytes in inside {
            answering.feed(bytes.get(seen.min(bytes.len())..).unwrap_or_default(), asked);
            seen = seen.saturating_sub(bytes.len());
        }
        answering
    }

    /// The source is another one from now on.
    pub(super) fn renew(&mut self) {
        let mut scanner = Scanner::new(self.stream);
        scanner.go_on_from(self.written);
        self.scanner = scanner;
        self.marks.clear();
        self.begins = None;
    }
}
