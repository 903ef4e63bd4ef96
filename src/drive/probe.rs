//! Counting effects.

use std::time::Duration;

use http::Method;
use serde_json::Value;
use tokio::time::Instant;

use super::{interrupt::Deadline, scene::Scene};
use crate::{
    history::{Count, Probe, ProbeResult},
    target::EffectProbe,
};

/// How long a count may take to become still.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long an effect that an answer speaks of may take to be counted.
const LAG: Duration = Duration::from_secs(2);
/// The pause between two looks for a first effect.
const LOOK_AGAIN: Duration = Duration::from_millis(25);
/// The longest such pause.
const LOOK_AGAIN_MOST: Duration = Duration::from_millis(250);

/// Stands for a reference that no attempt carries: names in suites have no spaces.
const UNUSED: &str = "never sent";

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

/// Counts until two successive counts agree, and records that. Fewer effects than `answered`, the different results
/// that successes have named, are taken for a count that lags behind, for a while.
pub(super) async fn settle(scene: &Scene, effects: &EffectProbe, whose: &Whose, answered: u64) {
    let began = scene.driver.clock.now();
    if let Some(why) = scene.driver.distrusted(&scene.operation.name) {
        return record(scene, whose, "final".to_owned(), began, 0, Err(why));
    }
    let quiet = effects.quiet.duration();
    let deadline = Deadline::after(PATIENCE.max(quiet * 3), &scene.driver.interrupt);
    let mut polls = 0;
    let counting = async {
        let mut last: Option<Found> = None;
        let lag = Instant::now() + LAG;
        loop {
            polls += 1;
            let found = once(scene, effects, whose, &deadline).await?;
            let behind = found.effects < answered && Instant::now() < lag;
            if last.as_ref() == Some(&found) && !behind {
                return Ok(found);
            }
            last = Some(found);
            let pause = if behind { quiet.max(LOOK_AGAIN_MOST) } else { quiet };
            if !scene.driver.interrupt.sleep(pause).await {
                return Err("interrupted".to_owned());
            }
        }
    };
    let result = deadline.within(counting).await.unwrap_or_else(|| Err("the count did not become still".to_owned()));
    record(scene, whose, "final".to_owned(), began, polls, result);
}

/// Asks for the effects of a reference that nothing was sent with. There are none, so a probe that counts any does not
/// count by reference, and whatever it has counted says nothing.
pub(super) async fn check_reference(scene: &Scene, effects: &EffectProbe) {
    let counted = |probe: &Probe| matches!(&probe.result, ProbeResult::Counted(count) if count.effects > 0);
    let Some(tenant) = scene.log().probes.iter().find(|probe| counted(probe)).map(|probe| probe.tenant.clone()) else {
        return;
    };
    let whose = Whose { intent: UNUSED.to_owned(), tenant, node: 0 };
    let deadline = Deadline::after(PATIENCE, &scene.driver.interrupt);
    let Ok(Found { effects: strangers @ 1.., .. }) = once(scene, effects, &whose, &deadline).await else { return };
    let why = format!("the effect probe counts {strangers} for a reference that was never sent");
    for probe in scene.log().probes.iter_mut().filter(|probe| matches!(probe.result, ProbeResult::Counted(_))) {
        probe.result = ProbeResult::Failed(why.clone());
    }
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
    if let Some(why) = scene.driver.distrusted(&scene.operation.name) {
        return Err(why);
    }
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
    if !(value.is_object() || value.is_array()) {
        return Err(format!("the effect probe's answer has nothing to count in: {}", scene.excerpt(&body)));
    }
    let ids = effects.id.as_ref().map_or_else(Vec::new, |id| {
        id.query(&value).all().into_iter().map(|node| scene.driver.clean(&node.to_string())).collect()
    });
    Ok(Found { effects: effects.count.query(&value).len() as u64, ids })
}
