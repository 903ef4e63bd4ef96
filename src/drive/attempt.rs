//! One attempt: one request on one connection, and the record of it.

use std::{convert::Infallible, future::pending, time::Duration};

use tokio::sync::{mpsc, watch};

use super::{
    call::{Call, GateAt},
    exchange::{Received, Talk},
    fault::{Sabotage, prime},
    interrupt::Deadline,
    meter::{Meter, Reading},
    payload::Gate,
    raw,
    record::{blank, finish, prepare},
    scene::Scene,
};
use crate::{
    history::{Attempt, End},
    schedule::AttemptPlan,
};

/// The longest time that a connection of a burst may take to open.
const BURST_OPEN: Duration = Duration::from_secs(5);

/// One of the points at which a burst waits until all are there.
#[derive(Debug)]
pub(super) struct Meeting {
    /// Dropped on arrival.
    pub(super) arrived: mpsc::Sender<Infallible>,
    /// Opens when all have arrived.
    pub(super) gate: Gate,
}

/// The place of an attempt in a burst.
#[derive(Debug)]
pub(super) struct Rank {
    /// The burst's name.
    pub(super) burst: String,
    /// After the connection is open.
    pub(super) opened: Meeting,
    /// Before the last byte.
    pub(super) loaded: Meeting,
}

/// How an attempt is sent.
#[derive(Debug, Default)]
pub(super) struct How {
    /// For a resend: its number, from 2.
    pub(super) resend: Option<u32>,
    /// Told when the last byte has left; dropped at the end of the attempt.
    pub(super) left: Option<watch::Sender<bool>>,
    /// The place in a burst.
    pub(super) rank: Option<Rank>,
}

/// What came of sending.
pub(super) struct Sent {
    pub(super) end: End,
    pub(super) reading: Reading,
    pub(super) received: Received,
}

impl Sent {
    pub(super) fn not(why: String) -> Self {
        Self { end: End::NotSent(why), reading: Reading::default(), received: Received::default() }
    }
}

/// Sends one attempt and records it. Returns what was recorded.
pub(super) async fn attempt(scene: &Scene, plan: &AttemptPlan, how: How) -> Attempt {
    let place = scene.place();
    let mut record = blank(scene, plan, &how);
    let call = match prepare(scene, plan, &mut record).await {
        Ok(call) => call,
        Err(why) => {
            finish(scene, &mut record, Sent::not(why));
            scene.log().attempts.push((place, record.clone()));
            return record;
        }
    };
    // A resend asks what became of the first; the fault was for the first.
    let fault = plan.fault.filter(|_| how.resend.is_none());
    let mut sabotage = None;
    let mut refused = None;
    if let Some(fault) = fault {
        match Sabotage::prepare(scene, plan, &record.name, fault, &call).await {
            Ok(ready) => sabotage = Some(ready),
            Err((known, why)) => {
                record.fault = Some(known);
                refused = Some(why);
            }
        }
    }
    record.timing.opened = scene.driver.clock.now();
    let encrypted = scene.node(plan.node).is_ok_and(|node| node.scheme() == "https");
    let sent = match refused {
        Some(why) => Sent::not(why),
        None => send(scene, plan, &call, how, sabotage.as_mut()).await,
    };
    finish(scene, &mut record, sent);
    if let Some(sabotage) = sabotage {
        record.fault = Some(match &record.end {
            End::NotSent(why) => sabotage.abandon(why).await,
            _ => sabotage.witness(scene, plan, &record, encrypted).await,
        });
    }
    if let Some(script) = call.script.as_ref().filter(|script| script.cuts()) {
        record.fault = Some(script.witness(&record));
    }
    let mut log = scene.log();
    if let (Some(slow), false) = (plan.slow, record.end == End::Answered) {
        log.running.push((record.timing.last_out, slow.duration()));
    }
    log.attempts.push((place, record.clone()));
    drop(log);
    record
}

/// Opens the connection, arms the fault, sends, and reads the answer.
async fn send(scene: &Scene, plan: &AttemptPlan, call: &Call, how: How, sabotage: Option<&mut Sabotage>) -> Sent {
    let deadline = Deadline::after(plan.timeout.duration(), &scene.driver.interrupt);
    let opening = match &how.rank {
        // One connection that does not open must not use up the time of all others.
        Some(_) => deadline.and_after((plan.timeout.duration() / 2).min(BURST_OPEN)),
        None => deadline.clone(),
    };
    let via = sabotage.as_ref().map(|sabotage| sabotage.via());
    let opened = async { scene.driver.open(plan.node, scene.node(plan.node)?, via).await };
    let line = match opening.within(opened).await {
        Some(Ok(line)) => line,
        Some(Err(why)) => return Sent::not(scene.driver.clean(&why)),
        None => return Sent::not("no connection in time".to_owned()),
    };
    if let Some(script) = &call.script {
        return raw::perform(line, script, call, how.left, scene.driver.clock, &deadline).await;
    }
    let (meter, below) = (line.meter.clone(), line.below.clone());
    let mut talk = match Talk::on(line).await {
        Ok(talk) => talk,
        Err(why) => return Sent::not(why),
    };
    let mut own = None;
    let mut sabotage = sabotage;
    if let Some(sabotage) = sabotage.as_deref_mut() {
        let gate = sabotage.gate(below.is_some(), call);
        if gate.is_some() && how.rank.is_some() {
            return Sent::not("a request body cannot be cut inside TLS as part of a burst".to_owned());
        }
        let overhead = match &below {
            Some(below) => match prime(scene, plan, &mut talk, below, &deadline).await {
                Ok(overhead) => Some(overhead),
                Err(why) => return Sent::not(why),
            },
            None => None,
        };
        if let Err(why) = sabotage.arm(overhead).await {
            return Sent::not(why);
        }
        own = gate.map(|at| (at, Gate::closed()));
    }
    meter.set(Some(call.total()), how.left);
    if let Some(below) = &below {
        below.set(None, None);
    }
    let (end, received) = match (how.rank, own) {
        (Some(rank), _) => in_rank(call, rank, &meter, &mut talk, &deadline).await,
        (None, Some((at, (keeper, gate)))) => {
            let mut written = None;
            let released = async {
                meter.flushed(call.before(at)).await;
                written = below.as_ref().map(|below| below.read().bytes_out);
                keeper.open();
                pending::<Infallible>().await
            };
            let exchange = talk.exchange(call.request(Some((at, gate))), &deadline);
            let result = tokio::select! {
                result = exchange => result,
                never = released => match never {},
            };
            if let Some(sabotage) = sabotage {
                sabotage.note_exact(written.is_some() && written == sabotage.limit_up());
            }
            result
        }
        (None, None) => talk.exchange(call.request(None), &deadline).await,
    };
    Sent { end, reading: meter.read(), received }
}

/// Sends as part of a burst: all connections are open before a byte is written, and everything but the last byte of
/// each request is written before the last bytes are released together.
async fn in_rank(call: &Call, rank: Rank, meter: &Meter, talk: &mut Talk, deadline: &Deadline) -> (End, Received) {
    let Rank { opened, loaded, .. } = rank;
    drop(opened.arrived);
    if deadline.within(opened.gate.pass()).await.is_none() {
        return (End::NotSent("the burst was not ready in time".to_owned()), Received::default());
    }
    if call.payload.is_empty() {
        drop(loaded.arrived);
        if deadline.within(loaded.gate.pass()).await.is_none() {
            return (End::NotSent("the burst was not ready in time".to_owned()), Received::default());
        }
        return talk.exchange(call.request(None), deadline).await;
    }
    let at = GateAt::LastByte;
    let exchange = talk.exchange(call.request(Some((at, loaded.gate))), deadline);
    let arrival = async {
        meter.flushed(call.before(at)).await;
        drop(loaded.arrived);
        pending::<Infallible>().await
    };
    tokio::select! {
        result = exchange => result,
        never = arrival => match never {},
    }
}
