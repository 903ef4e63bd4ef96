//! One direction of a connection: the chain of its toxics between what was read and what is to be written. Still
//! without sockets and clock, so that every order of events can be tested exactly.

use std::collections::VecDeque;
use std::time::Instant;

use bytes::Bytes;

use super::definition::Definition;
use super::rng::Rng;
use super::stage::{Item, Stage, Step};

/// A change of one toxic, sent to every live connection.
#[derive(Clone, Debug)]
pub(super) enum Change {
    Add(Definition),
    Update(Definition),
    /// The instance that goes.
    Remove(u64),
}

/// The chain of one direction.
#[derive(Debug)]
pub(super) struct Link {
    stages: Vec<Stage>,
    out: VecDeque<Item>,
    /// No more input is wanted: the source ended, or a toxic closed the link.
    closed: bool,
    /// A toxic asks that closing be a reset.
    reset: bool,
    ended_by: Option<String>,
    rng: Rng,
}

impl Link {
    pub(super) fn new(toxics: &[Definition], now: Instant, mut rng: Rng) -> Self {
        let stages = toxics.iter().map(|toxic| Stage::new(toxic.clone(), now, &mut rng)).collect();
        Self { stages, out: VecDeque::new(), closed: false, reset: false, ended_by: None, rng }
    }

    /// The toxic that has ended the link, if the source has not.
    pub(super) fn ended_by(&self) -> Option<&str> {
        self.ended_by.as_deref()
    }

    /// Starts all timers anew, once the connection stands.
    pub(super) fn start(&mut self, now: Instant) {
        for stage in &mut self.stages {
            stage.restart(now, &mut self.rng);
        }
    }

    /// Whether a `reset_peer` is in the chain, biting or not.
    pub(super) fn has_reset(&self) -> bool {
        self.stages.iter().any(Stage::is_reset)
    }

    /// Whether a toxic has asked for a reset.
    pub(super) fn wants_reset(&self) -> bool {
        self.reset
    }

    /// Whether there is room for another chunk.
    pub(super) fn wants_input(&self) -> bool {
        !self.closed && self.stages.first().map_or(self.out.is_empty(), Stage::has_room)
    }

    /// Whether input is over.
    #[cfg(test)]
    fn is_closed(&self) -> bool {
        self.closed
    }

    /// Puts a chunk or the end into the chain.
    pub(super) fn push(&mut self, item: Item) {
        if self.closed {
            return;
        }
        self.closed = matches!(item, Item::End);
        self.stages.first_mut().map_or(&mut self.out, Stage::inbox).push_back(item);
    }

    /// What is to be written next.
    pub(super) fn output(&mut self) -> &mut VecDeque<Item> {
        &mut self.out
    }

    /// Takes out all that is still inside, in the order in which it came.
    pub(super) fn drain(&mut self) -> Vec<Bytes> {
        let inside = self.stages.drain(..).rev().map(Stage::into_items);
        let items: Vec<Item> = std::mem::take(&mut self.out).into_iter().chain(inside.flatten()).collect();
        let data = |item| if let Item::Data(chunk) = item { Some(chunk.bytes) } else { None };
        items.into_iter().filter_map(data).collect()
    }

    /// Moves everything that is due. Gives the instant at which more will be.
    pub(super) fn pump(&mut self, now: Instant) -> Option<Instant> {
        loop {
            let mut moved = false;
            let mut wake: Option<Instant> = None;
            let mut index = self.stages.len();
            while index > 0 {
                index -= 1;
                let (before, after) = self.stages.split_at_mut(index + 1);
                let Some(stage) = before.last_mut() else { break };
                let (out, room) = match after.first_mut() {
                    Some(next) => {
                        let room = next.has_room();
                        (next.inbox(), room)
                    }
                    None => {
                        let room = self.out.is_empty();
                        (&mut self.out, room)
                    }
                };
                match stage.step(now, out, room, &mut self.rng) {
                    Step::Idle(at) => wake = [wake, at].into_iter().flatten().min(),
                    Step::Moved => moved = true,
                    Step::Ended { reset } => {
                        self.cut(index, reset);
                        moved = true;
                        break;
                    }
                }
            }
            if !moved {
                return wake;
            }
        }
    }

    /// The stage at that place has put out the end: it and all before it are over.
    fn cut(&mut self, index: usize, reset: bool) {
        let stage = self.stages.drain(..=index).next_back();
        if !self.closed {
            self.ended_by = stage.map(|stage| stage.name().to_owned());
        }
        self.closed = true;
        self.reset |= reset;
    }

    /// Applies a change. Toxics that the link is already past are ignored.
    pub(super) fn change(&mut self, change: Change, now: Instant) {
        match change {
            Change::Add(_) if self.closed && self.stages.is_empty() => {}
            Change::Add(definition) => {
                if let Some(last) = self.stages.last_mut() {
                    last.restart(now, &mut self.rng);
                }
                self.stages.push(Stage::new(definition, now, &mut self.rng));
            }
            Change::Update(definition) => {
                if let Some(stage) = self.stages.iter_mut().find(|stage| stage.instance() == definition.instance) {
                    stage.change(definition, now, &mut self.rng);
                }
            }
            Change::Remove(instance) => {
                let Some(index) = self.stages.iter().position(|stage| stage.instance() == instance) else { return };
                let stage = self.stages.remove(index);
                let name = stage.name().to_owned();
                let (items, ended) = stage.dismantle();
                self.stages.get_mut(index).map_or(&mut self.out, Stage::inbox).extend(items);
                if let Some(Step::Ended { reset }) = ended {
                    self.stages.drain(..index);
                    if !self.closed {
                        self.ended_by = Some(format!("{name}, removed"));
                    }
                    self.closed = true;
                    self.reset |= reset;
                } else if let Some(before) = index.checked_sub(1).and_then(|before| self.stages.get_mut(before)) {
                    before.restart(now, &mut self.rng);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
