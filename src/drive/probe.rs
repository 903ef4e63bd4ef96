//! Counting effects.

use std::time::Duration;

use http::Method;
use serde_json::Value;

use super::{interrupt::Deadline, scene::Scene};
use crate::{
    history::{Count, Probe, ProbeResult},
    target::EffectProbe,
};

/// How long a count may take to become still.
const PATIENCE: Duration = Duration::from_secs(10);
/// The pause between two looks for a first effect.
const LOOK_AGAIN: Duration = Duration::from_millis(25);
/// The longest such pause.
const LOOK_AGAIN_MOST: Duration = Duration::from_millis(250);

/// Whose effects are counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Whose {
    pub(super) intent: String,
    pub(super) tenant: String,
    pub(super) node: usize,
}

/// What one request found.
#[derive(Debug, PartialEq, Eq)]
struct Found {
    effects: u64,
    ids: Vec<String>,
}

/// Counts until two successive counts agree, and records that.
pub(super) async fn settle(scene: &Scene, effects: &EffectProbe, whose: &Whose) {
    let began = scene.driver.clock.now();
    let quiet = effects.quiet.duration();
    let deadline = Deadline::after(PATIENCE.max(quiet * 3), &scene.driver.interrupt);
    let mut polls = 0;
    let counting = async {
        let mut last: Option<Found> = None;
        loop {
            polls += 1;
            let found = once(scene, effects, whose, &deadline).await?;
            if last.as_ref() == Some(&found) {
                return Ok(found);
            }
            last = Some(found);
            if !scene.driver.interrupt.sleep(quiet).await {
                return Err("interrupted".to_owned());
            }
        }
    };
    let result = deadline.within(counting).await.unwrap_or_else(|| Err("the count did not become still".to_owned()));
    record(scene, whose, "final".to_owned(), began, polls, result);
}

/// Looks until there is an effect, at most for `patience`, and records that. Returns how many there were.
///
/// # Errors
/// When nothing could be counted; the text says why.
pub(super) async fn look(
    scene: &Scene,
    effects: &EffectProbe,
    whose: &Whose,
    purpose: String,
    patience: Duration,
) -> Result<u64, String> {
    let began = scene.driver.clock.now();
    let deadline = Deadline::after(patience, &scene.driver.interrupt);
    let mut polls = 0;
    let mut last = Err("nothing could be counted in time".to_owned());
    let looking = async {
        let mut pause = LOOK_AGAIN;
        loop {
            polls += 1;
            last = once(scene, effects, whose, &deadline).await;
            if last.as_ref().is_ok_and(|found| found.effects > 0) || !scene.driver.interrupt.sleep(pause).await {
                break;
            }
            pause = (pause * 2).min(LOOK_AGAIN_MOST);
        }
    };
    // What was found last counts also when the time is over.
    let _ = deadline.within(looking).await;
    let result = last.as_ref().map(|found| found.effects).map_err(Clone::clone);
    record(scene, whose, purpose, began, polls, last);
    result
}

fn record(scene: &Scene, whose: &Whose, purpose: String, began: u64, polls: u32, result: Result<Found, String>) {
    let result = match result {
        Ok(Found { effects, ids }) => ProbeResult::Counted(Count { effects, ids, polls }),
        Err(why) => ProbeResult::Failed(why),
    };
    let probe = Probe {
        intent: whose.intent.clone(),
        reference: scene.mint.reference(&whose.intent),
        tenant: whose.tenant.clone(),
        purpose,
        began,
        ended: scene.driver.clock.now(),
        result,
    };
    scene.log().probes.push(probe);
}

/// Asks once.
async fn once(scene: &Scene, effects: &EffectProbe, whose: &Whose, deadline: &Deadline) -> Result<Found, String> {
    let vars = scene.vars(&whose.intent, &whose.intent);
    let tenant = scene.tenant(&whose.tenant)?;
    let call = scene.own_call(whose.node, &Method::GET, &effects.get, &vars, &tenant.headers, None).await?;
    let (status, body) = scene.fetch(whose.node, &call, deadline).await?;
    if !(200..300).contains(&status) {
        return Err(format!("the effect probe was answered with {status}: {}", scene.excerpt(&body)));
    }
    let value: Value = serde_json::from_slice(&body)
        .map_err(|error| format!("the effect probe's answer is not JSON ({error}): {}", scene.excerpt(&body)))?;
    let ids = effects.id.as_ref().map_or_else(Vec::new, |id| {
        id.query(&value).all().into_iter().map(|node| scene.driver.clean(&node.to_string())).collect()
    });
    Ok(Found { effects: effects.count.query(&value).len() as u64, ids })
}
