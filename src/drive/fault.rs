//! Network faults: what the proxy of an attempt is told, and what shows that the fault hit as meant.

use std::{net::SocketAddr, time::Duration};

use http::Method;

use super::{
    call::{Call, GateAt},
    exchange::Talk,
    interrupt::Deadline,
    manners::Refusal,
    probe::{self, Whose},
    proxy::{OwnProxy, Recipe, passes_exactly},
    scene::{Scene, described},
};
use crate::{
    history::{Attempt, End, FaultRecord, Witness},
    schedule::AttemptPlan,
    suite::NetworkFault,
    text::Template,
};

/// How long beyond the handler's slowness an effect is looked for.
const LOOK: Duration = Duration::from_secs(2);

/// A fault that is ready to be armed.
pub(super) struct Sabotage {
    fault: NetworkFault,
    recipe: Recipe,
    /// For a cut response: the size of a whole one, in bytes.
    whole: u64,
    proxy: OwnProxy,
    /// For a cut inside a TLS connection: whether exactly the bytes before the cut had been written.
    exact: Option<bool>,
}

impl Sabotage {
    /// Chooses the recipe and makes the proxy.
    ///
    /// # Errors
    /// What is known of the fault, and why the attempt cannot be sent.
    pub(super) async fn prepare(
        scene: &Scene,
        plan: &AttemptPlan,
        name: &str,
        fault: NetworkFault,
        call: &Call,
    ) -> Result<Self, (FaultRecord, String)> {
        let refuse = |recipe: String, why: String| {
            let witness = Witness::NotWitnessed(why.clone());
            Err((FaultRecord { fault, recipe, witness }, why))
        };
        let (recipe, whole) = match recipe(scene, plan, fault, call) {
            Ok(found) => found,
            Err(why) => return refuse("none".to_owned(), why),
        };
        let made = async {
            let upstream = scene.driver.upstream(plan.node, scene.node(plan.node)?).await?;
            OwnProxy::create(&scene.driver, &format!("{}-{name}", scene.case.case), upstream).await
        };
        match made.await {
            Ok(proxy) => Ok(Self { fault, recipe, whole, proxy, exact: None }),
            Err(why) => refuse(recipe.to_string(), format!("the fault proxy: {why}")),
        }
    }

    /// Where to connect to.
    pub(super) fn via(&self) -> SocketAddr {
        self.proxy.addr()
    }

    /// The place in the request's body before which it must wait until the bytes before it are written. Inside TLS
    /// a record arrives whole or not at all, so that the part to arrive must be a record of its own.
    pub(super) fn gate(&self, encrypted: bool, call: &Call) -> Option<GateAt> {
        (encrypted && self.fault == NetworkFault::CutRequestBody).then(|| GateAt::Byte(half(call)))
    }

    /// How many bytes, as the proxy counts, leave before the gate.
    pub(super) fn limit_up(&self) -> Option<u64> {
        if let Recipe::LimitUp(bytes) = self.recipe { Some(bytes) } else { None }
    }

    /// Notes whether exactly the bytes before the cut had been written when the rest was released.
    pub(super) fn note_exact(&mut self, exact: bool) {
        self.exact = Some(exact);
    }

    /// Arms the proxy. `overhead` is what TLS adds to a record, in bytes; `None` without TLS.
    ///
    /// # Errors
    /// When the proxy refuses; the text says why.
    pub(super) async fn arm(&mut self, overhead: Option<u64>) -> Result<(), String> {
        if let (Recipe::LimitUp(bytes), Some(overhead)) = (&mut self.recipe, overhead) {
            *bytes += overhead;
        }
        self.proxy.arm(self.recipe).await.map_err(|why| format!("the fault proxy: {why}"))
    }

    /// Gives up before the request was sent.
    pub(super) async fn abandon(self, why: &str) -> FaultRecord {
        self.proxy.delete().await;
        FaultRecord {
            fault: self.fault,
            recipe: self.recipe.to_string(),
            witness: Witness::NotWitnessed(why.to_owned()),
        }
    }

    /// Removes the proxy and finds out whether the fault hit as meant.
    pub(super) async fn witness(
        self,
        scene: &Scene,
        plan: &AttemptPlan,
        attempt: &Attempt,
        encrypted: bool,
    ) -> FaultRecord {
        let Self { fault, recipe, whole, proxy, exact } = self;
        proxy.delete().await;
        let seen = match fault {
            NetworkFault::LoseResponse => lost_response(scene, plan, attempt).await,
            NetworkFault::CutWhileRunning => cut_while_running(scene, plan, attempt).await,
            NetworkFault::CutRequestBody => cut_request_body(scene, attempt, recipe, exact).await,
            NetworkFault::CutResponse => cut_response(scene, plan, attempt, whole, encrypted).await,
        };
        let witness = seen.map_or_else(Witness::NotWitnessed, Witness::Witnessed);
        FaultRecord { fault, recipe: recipe.to_string(), witness }
    }
}

fn half(call: &Call) -> usize {
    call.payload.len() / 2
}

/// What the proxy is told, and the size of a whole answer where that matters.
fn recipe(scene: &Scene, plan: &AttemptPlan, fault: NetworkFault, call: &Call) -> Result<(Recipe, u64), String> {
    match fault {
        NetworkFault::LoseResponse => Ok((Recipe::LimitDown(0), 0)),
        NetworkFault::CutWhileRunning => {
            let slow = plan.slow.ok_or("the handler was not made slow, so that nothing says when it runs")?;
            let ms = u32::try_from(slow.millis() / 2).unwrap_or(u32::MAX).max(1);
            Ok((Recipe::TimeoutDown(ms), 0))
        }
        NetworkFault::CutRequestBody if call.payload.is_empty() => Err("the request has no body to cut".to_owned()),
        NetworkFault::CutRequestBody => Ok((Recipe::LimitUp(call.before(GateAt::Byte(half(call)))), 0)),
        NetworkFault::CutResponse => {
            let log = scene.log();
            let whole = |attempt: &&Attempt| {
                let success = |status| scene.operation.success.contains(status);
                attempt.operation == scene.operation.name
                    && attempt.end == End::Answered
                    && attempt.response.as_ref().is_some_and(|response| success(response.status))
            };
            let mut wholes: Vec<_> = log.attempts.iter().map(|(_, attempt)| attempt).filter(whole).collect();
            // The same payload makes the answer most alike.
            wholes.sort_by_key(|attempt| attempt.role == plan.role);
            let measured = wholes.last().ok_or("no whole answer to measure: no earlier attempt succeeded")?;
            let body = measured.response.as_ref().map_or(0, |response| response.body.length);
            let missing = (body / 2).max(1);
            Ok((Recipe::LimitDown(measured.bytes_in.saturating_sub(missing)), measured.bytes_in))
        }
    }
}

/// Sends one harmless request on the connection, so that what TLS says at its beginning is over. Returns how many
/// bytes TLS adds to a record.
///
/// # Errors
/// When there was no whole answer; the text says why.
pub(super) async fn prime(
    scene: &Scene,
    plan: &AttemptPlan,
    talk: &mut Talk,
    below: &super::meter::Meter,
    deadline: &Deadline,
) -> Result<u64, String> {
    if let Err(refusal) = scene.driver.manners.one().await {
        scene.stop(refusal);
        return Err(refusal.to_string());
    }
    let root = Template::literal("/");
    let path = scene.operation.effects.as_ref().map_or(&root, |effects| &effects.get);
    let vars = scene.vars(&plan.intent, &plan.intent);
    let tenant = scene.tenant(&plan.tenant)?;
    let call = scene.own_call(plan.node, &Method::GET, path, &vars, &tenant.headers, None).await?;
    talk.meter().set(Some(call.total()), None);
    below.set(None, None);
    let (end, _) = talk.exchange(call.request(None), deadline).await;
    match end {
        End::Answered => Ok(below.read().bytes_out.saturating_sub(call.total())),
        end => Err(format!("the priming request failed: {}", described(&end))),
    }
}

/// An effect that is seen after the attempt.
async fn effect(scene: &Scene, plan: &AttemptPlan, attempt: &Attempt) -> Result<u64, String> {
    let effects = scene.operation.effects.as_ref().ok_or("no effect probe")?;
    let patience = plan.slow.map_or(Duration::ZERO, |slow| slow.duration()) + LOOK;
    let whose = Whose { intent: plan.intent.clone(), tenant: plan.tenant.clone(), node: plan.node };
    match probe::look(scene, effects, &whose, format!("after {}", attempt.name), patience).await {
        Ok(0) => Err("no effect was seen afterwards".to_owned()),
        Ok(seen) => Ok(seen),
        Err(why) => Err(format!("the effects could not be counted: {why}")),
    }
}

/// That the whole request left, that the connection was cut, and that nothing of the answer came.
fn silent_cut(attempt: &Attempt) -> Result<(), String> {
    if attempt.timing.last_out.is_none() {
        return Err("the request did not leave as a whole".to_owned());
    }
    if attempt.bytes_in > 0 {
        return Err(format!("{} bytes of the answer came", attempt.bytes_in));
    }
    match &attempt.end {
        End::Lost(_) => Ok(()),
        end => Err(format!("the connection was not cut: {}", described(end))),
    }
}

async fn lost_response(scene: &Scene, plan: &AttemptPlan, attempt: &Attempt) -> Result<String, String> {
    silent_cut(attempt)?;
    let seen = effect(scene, plan, attempt).await?;
    Ok(format!("all {} bytes left, no byte of the answer came, effects seen afterwards: {seen}", attempt.bytes_out))
}

async fn cut_while_running(scene: &Scene, plan: &AttemptPlan, attempt: &Attempt) -> Result<String, String> {
    silent_cut(attempt)?;
    let running = || "nothing shows that the handler was running".to_owned();
    let slow = plan.slow.ok_or_else(running)?.duration();
    let since = Duration::from_micros(attempt.timing.ended - attempt.timing.last_out.unwrap_or(attempt.timing.ended));
    if since >= slow {
        return Err(format!("{}: the cut came {} ms after the request", running(), since.as_millis()));
    }
    // An effect that is there before the handler can be through is another attempt's.
    if !scene.wait_out(attempt.timing.last_out, slow, Duration::ZERO).await {
        return Err(Refusal::Interrupted.to_string());
    }
    let seen = effect(scene, plan, attempt).await.map_err(|why| format!("{}: {why}", running()))?;
    Ok(format!(
        "cut {} ms after the last byte left, while the handler was slow for {} ms; effects seen afterwards: {seen}",
        since.as_millis(),
        slow.as_millis()
    ))
}

async fn cut_request_body(
    scene: &Scene,
    attempt: &Attempt,
    recipe: Recipe,
    exact: Option<bool>,
) -> Result<String, String> {
    match (&attempt.end, attempt.response.as_ref().map(|response| response.status)) {
        (End::NotSent(why), _) => return Err(format!("not sent: {why}")),
        (_, Some(status)) if (200..300).contains(&status) => {
            return Err(format!("the attempt was answered with {status}"));
        }
        (End::TimedOut, _) => return Err("the connection was not cut".to_owned()),
        _ => {}
    }
    if exact == Some(false) {
        return Err("TLS did not write the first half as a record of the expected size".to_owned());
    }
    passes_exactly(&scene.driver).await?;
    Ok(format!("the fault proxy passes exactly what it is told ({recipe}), and the request was longer"))
}

async fn cut_response(
    scene: &Scene,
    plan: &AttemptPlan,
    attempt: &Attempt,
    whole: u64,
    encrypted: bool,
) -> Result<String, String> {
    match &attempt.end {
        End::Lost(_) => {}
        end => return Err(format!("the answer was not cut: {}", described(end))),
    }
    if attempt.bytes_in >= whole {
        return Err(format!("{} bytes of the answer came, a whole one has {whole}", attempt.bytes_in));
    }
    // A TLS record that is cut gives nothing at all.
    if attempt.bytes_in == 0 && !encrypted {
        return Err("no byte of the answer came".to_owned());
    }
    let seen = effect(scene, plan, attempt).await?;
    Ok(format!("{} of about {whole} bytes of the answer came; effects seen afterwards: {seen}", attempt.bytes_in))
}
