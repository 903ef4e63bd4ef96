//! What a proxy can do beyond Toxiproxy: triggers, the ledger, dial settings, and cutting one connection.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::{Order, Proxy, Refusal, State};
use crate::chaos::embedded::body::Fields;
use crate::chaos::embedded::dial::Dial;
use crate::chaos::embedded::ledger::Until;
use crate::chaos::embedded::trigger::{Cut, Ending, Trigger, choice, natural};

/// Triggers of one proxy.
const MAX_TRIGGERS: usize = 256;

fn missing() -> Refusal {
    Refusal::new(404, "trigger not found")
}

impl State {
    fn trigger(&self, name: &str) -> Result<Arc<Trigger>, Refusal> {
        self.triggers.iter().find(|trigger| trigger.name == name).map(Arc::clone).ok_or_else(missing)
    }
}

impl Proxy {
    pub(in crate::chaos::embedded) fn triggers_json(&self) -> Value {
        self.state().triggers.iter().map(|trigger| trigger.to_json()).collect()
    }

    pub(in crate::chaos::embedded) fn trigger_json(&self, name: &str) -> Result<Value, Refusal> {
        self.state().trigger(name).map(|trigger| trigger.to_json())
    }

    /// Adds a trigger; when this returns, every live connection looks out for it.
    pub(in crate::chaos::embedded) async fn add_trigger(&self, body: &Fields) -> Result<Value, Refusal> {
        let (answer, barrier) = {
            let mut state = self.state();
            let trigger = Trigger::create(state.instances, body)?;
            if state.trigger(&trigger.name).is_ok() {
                return Err(Refusal::new(409, "trigger already exists"));
            }
            if state.triggers.len() >= MAX_TRIGGERS {
                return Err(Refusal::new(400, format!("too many triggers: a proxy has room for {MAX_TRIGGERS}")));
            }
            state.instances += 1;
            let answer = trigger.to_json();
            let new = Arc::new(trigger);
            state.triggers = state.triggers.iter().map(Arc::clone).chain([new]).collect();
            (answer, state.tell(Order::Triggers(Arc::clone(&state.triggers))))
        };
        barrier.wait().await.map(|()| answer)
    }

    /// Removes a trigger; what it holds goes on.
    pub(in crate::chaos::embedded) async fn remove_trigger(&self, name: &str) -> Result<(), Refusal> {
        let barrier = {
            let mut state = self.state();
            let gone = state.trigger(name)?;
            gone.release();
            state.triggers = state.triggers.iter().filter(|trigger| trigger.name != name).map(Arc::clone).collect();
            state.tell(Order::Triggers(Arc::clone(&state.triggers)))
        };
        barrier.wait().await
    }

    /// Removes every trigger, and the dial setting.
    pub(in crate::chaos::embedded) async fn clear_extensions(&self) -> Result<(), Refusal> {
        let barrier = {
            let mut state = self.state();
            state.triggers.iter().for_each(|trigger| trigger.release());
            state.triggers = Arc::default();
            state.dial = Dial::default();
            state.tell(Order::Triggers(Arc::default()))
        };
        barrier.wait().await
    }

    /// Opens the gate of a trigger for good; it hits no more.
    pub(in crate::chaos::embedded) async fn release(&self, name: &str) -> Result<Value, Refusal> {
        let (trigger, barrier) = {
            let state = self.state();
            let trigger = state.trigger(name)?;
            trigger.release();
            (trigger, state.tell(Order::Triggers(Arc::clone(&state.triggers))))
        };
        barrier.wait().await.map(|()| trigger.to_json())
    }

    pub(in crate::chaos::embedded) fn dial_json(&self) -> Value {
        self.state().dial.to_json()
    }

    /// Changes how later connections reach the upstream.
    pub(in crate::chaos::embedded) fn set_dial(&self, body: &Fields) -> Result<Value, Refusal> {
        let dial = Dial::read(body)?;
        self.state().dial = dial;
        Ok(dial.to_json())
    }

    pub(in crate::chaos::embedded) fn connections_json(&self) -> Value {
        self.ledger.to_json()
    }

    pub(in crate::chaos::embedded) fn connection_json(&self, number: u64) -> Result<Value, Refusal> {
        self.ledger.page_json(number).ok_or_else(|| Refusal::new(404, "connection not found"))
    }

    /// Waits for something to happen on a connection, for as long as it takes.
    pub(in crate::chaos::embedded) async fn wait(&self, body: &Fields) -> Result<Value, Refusal> {
        let until =
            choice(body, "until", &Until::ALL)?.ok_or_else(|| Refusal::new(400, "missing required field: until"))?;
        let count = natural(body, "count")?.unwrap_or(1);
        let (number, after) = (natural(body, "connection")?, natural(body, "after")?.unwrap_or(0));
        Ok(self.ledger.wait(until, count, number, after).await)
    }

    /// Cuts one connection.
    pub(in crate::chaos::embedded) async fn kill(&self, number: u64, body: &Fields) -> Result<(), Refusal> {
        let (client, server) = Ending::read_both(body)?;
        let delivered = body.boolean("delivered")?.unwrap_or(false);
        let cut = Cut { client, server, delivered, patience: Duration::from_secs(30) };
        let barrier = {
            let state = self.state();
            let connection = state.connections.get(&number);
            let connection = connection.ok_or_else(|| Refusal::new(404, "connection not found"))?;
            super::tell_all([connection], &Order::Cut(cut))
        };
        barrier.wait().await
    }
}
