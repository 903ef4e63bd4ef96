//! Walking through the steps of a schedule.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use tokio::{
    sync::{mpsc, watch},
    task::JoinHandle,
    time::Instant,
};

use super::{
    attempt::{How, Meeting, Rank, attempt},
    control,
    driver::Driver,
    manners::Refusal,
    payload::Gate,
    probe::{self, Whose},
    scene::Scene,
};
use crate::{
    history::{Attempt, End, History, NOBODY},
    schedule::{AttemptPlan, Schedule, Step},
    text::Span,
};

/// The lease that is assumed where none is documented.
const UNDOCUMENTED_LEASE: Duration = Duration::from_secs(30);
/// What an attempt may take beyond lease and slowness until it is settled.
const SETTLING: Duration = Duration::from_secs(5);
/// The longest time that anything is sent again for, however long the lease.
const LONGEST_SETTLING: Duration = Duration::from_secs(600);
/// The first and the longest pause between two resends.
const RESEND_PAUSE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(1));
/// The longest pause that a target can ask for with `Retry-After`.
const RETRY_AFTER_MOST: Duration = Duration::from_secs(2);

/// A task that ends with its owner.
struct Task(JoinHandle<()>);

impl Task {
    fn spawn(work: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(tokio::spawn(work))
    }

    async fn join(mut self, scene: &Scene) {
        if let Err(error) = (&mut self.0).await {
            scene.stop(format!("an attempt could not be performed: {error}"));
        }
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The steps could not go on; the reason is in the log.
struct Halt;

impl Driver {
    /// Performs a schedule. Never fails: whatever goes wrong is in the history.
    ///
    /// `round` counts the performances of this case in this run, from 0; each has keys and references of its own.
    pub async fn perform(&self, schedule: &Schedule, round: u32) -> History {
        let scene = Arc::new(Scene::new(Arc::clone(&self.inner), schedule, round));
        let seats = self.inner.manners.seats(peak(&schedule.steps)).await;
        match &seats {
            Ok(_) => walk(&scene, &schedule.steps).await,
            Err(refusal) => scene.stop(refusal),
        }
        if !self.inner.interrupt.is_set() {
            count(&scene).await;
        }
        if self.inner.interrupt.is_set() {
            scene.stop(Refusal::Interrupted);
        }
        drop(seats);
        let mut log = std::mem::take(&mut *scene.log());
        log.attempts.sort_by_key(|(place, _)| *place);
        History {
            case: schedule.id.clone(),
            round,
            attempts: log.attempts.into_iter().map(|(_, attempt)| attempt).collect(),
            probes: log.probes,
            controls: log.controls,
            stopped: log.stopped,
        }
    }
}

/// The most attempts that are in flight together.
fn peak(steps: &[Step]) -> u32 {
    let (mut open, mut most) = (Vec::new(), 1usize);
    for step in steps {
        match step {
            Step::Start(plan) => {
                open.push(plan.name.as_str());
                most = most.max(open.len());
            }
            Step::Send { .. } => most = most.max(open.len() + 1),
            Step::Burst { attempts, .. } => most = most.max(open.len() + attempts.len()),
            Step::Join(name) => open.retain(|open| open != name),
            Step::Time(_) => {}
        }
    }
    u32::try_from(most).unwrap_or(u32::MAX)
}

/// How long after its last byte a started attempt is left alone, so that it is likely to be the first that the
/// target works on. Nothing rests on it: who came first is seen in the answers, and a case that needs it says so in
/// its `given`.
fn head_start(slow: Option<Span>) -> Duration {
    slow.map_or(Duration::ZERO, |slow| (slow.duration() / 4).min(Duration::from_millis(200)))
}

async fn walk(scene: &Arc<Scene>, steps: &[Step]) {
    let mut started = Vec::new();
    for step in steps {
        if scene.driver.interrupt.is_set() {
            scene.stop(Refusal::Interrupted);
            break;
        }
        if perform(scene, step, &mut started).await.is_err() {
            break;
        }
    }
    for (_, task) in started {
        task.join(scene).await;
    }
}

async fn perform(scene: &Arc<Scene>, step: &Step, started: &mut Vec<(String, Task)>) -> Result<(), Halt> {
    match step {
        Step::Send { attempt: plan, until_settled } => {
            let last = one(scene, plan, How::default()).await?;
            if *until_settled { resend(scene, plan, last).await } else { Ok(()) }
        }
        Step::Start(plan) => {
            leave(scene).await?;
            let (left, mut seen) = watch::channel(false);
            let (apart, sent) = (Arc::clone(scene), plan.clone());
            let name = plan.name.clone();
            let work = async move {
                attempt(&apart, &sent, How { left: Some(left), ..How::default() }).await;
            };
            started.push((name, Task::spawn(work)));
            // An error means that the attempt has ended, which is as good.
            let _ = seen.wait_for(|left| *left).await;
            scene.driver.interrupt.sleep(head_start(plan.slow)).await;
            Ok(())
        }
        Step::Join(name) => {
            while let Some(index) = started.iter().position(|(started, _)| started == name) {
                started.remove(index).1.join(scene).await;
            }
            Ok(())
        }
        Step::Burst { name, attempts } => burst(scene, name, attempts).await,
        Step::Time(moved) => control::pass(scene, *moved).await.map_err(|why| {
            if scene.driver.interrupt.is_set() {
                scene.stop(Refusal::Interrupted);
            }
            scene.stop(why);
            Halt
        }),
    }
}

/// Takes leave to send one request.
async fn leave(scene: &Scene) -> Result<(), Halt> {
    scene.driver.manners.one().await.map_err(|refusal| {
        scene.stop(refusal);
        Halt
    })
}

async fn one(scene: &Scene, plan: &AttemptPlan, how: How) -> Result<Attempt, Halt> {
    leave(scene).await?;
    Ok(attempt(scene, plan, how).await)
}

/// Sends the attempt again while it is refused as in flight.
async fn resend(scene: &Scene, plan: &AttemptPlan, mut last: Attempt) -> Result<(), Halt> {
    let policy = &scene.operation.policy;
    let over = scene.log().controls.iter().any(|moved| moved.failed.is_none() && moved.moved.past.is_some());
    let lease = match policy.lease.known() {
        // Once the lease that all this is about is over, nobody has to wait for it again.
        _ if over => Duration::ZERO,
        Some(lease) => lease.duration(),
        None => UNDOCUMENTED_LEASE,
    };
    let end = Instant::now() + (lease + scene.slowest + SETTLING).min(LONGEST_SETTLING);
    let mut pause = RESEND_PAUSE.0;
    for number in 2u32.. {
        let refused = last.end == End::Answered
            && last.response.as_ref().is_some_and(|response| policy.in_flight_status.contains(response.status));
        if !refused {
            break;
        }
        let wait = retry_after(&last).map_or(pause, |asked| asked.min(RETRY_AFTER_MOST).max(pause));
        if Instant::now() + wait > end {
            break;
        }
        if !scene.driver.interrupt.sleep(wait).await {
            scene.stop(Refusal::Interrupted);
            return Err(Halt);
        }
        pause = (pause * 2).min(RESEND_PAUSE.1);
        last = one(scene, plan, How { resend: Some(number), ..How::default() }).await?;
    }
    Ok(())
}

/// How many seconds the answer asks to wait, if it says so as a number.
fn retry_after(attempt: &Attempt) -> Option<Duration> {
    let seconds: u64 = attempt.response.as_ref()?.field("retry-after")?.trim().parse().ok()?;
    (seconds > 0).then(|| Duration::from_secs(seconds))
}

async fn burst(scene: &Arc<Scene>, name: &str, plans: &[AttemptPlan]) -> Result<(), Halt> {
    let wanted = u32::try_from(plans.len()).unwrap_or(u32::MAX);
    if let Err(refusal) = scene.driver.manners.burst(wanted) {
        scene.stop(refusal);
        return Err(Halt);
    }
    let (open_arrived, mut all_open) = mpsc::channel(1);
    let (load_arrived, mut all_loaded) = mpsc::channel(1);
    let (open_keeper, open_gate) = Gate::closed();
    let (load_keeper, load_gate) = Gate::closed();
    let mut tasks = Vec::new();
    for plan in plans {
        let rank = Rank {
            burst: name.to_owned(),
            opened: Meeting { arrived: open_arrived.clone(), gate: open_gate.clone() },
            loaded: Meeting { arrived: load_arrived.clone(), gate: load_gate.clone() },
        };
        let (scene, plan) = (Arc::clone(scene), plan.clone());
        tasks.push(Task::spawn(async move {
            attempt(&scene, &plan, How { rank: Some(rank), ..How::default() }).await;
        }));
    }
    drop((open_arrived, load_arrived));
    // Nothing is ever sent here: the channels end when every attempt has arrived or ended.
    let _ = all_open.recv().await;
    open_keeper.open();
    let _ = all_loaded.recv().await;
    load_keeper.open();
    for task in tasks {
        task.join(scene).await;
    }
    Ok(())
}

/// Counts the effects of everything that was sent.
async fn count(scene: &Scene) {
    let Some(effects) = &scene.operation.effects else { return };
    let mut all: Vec<Whose> = Vec::new();
    for (_, attempt) in &scene.log().attempts {
        let whose = Whose { intent: attempt.intent.clone(), tenant: attempt.tenant.clone(), node: 0 };
        if !matches!(attempt.end, End::NotSent(_)) && attempt.tenant != NOBODY && !all.contains(&whose) {
            all.push(whose);
        }
    }
    // A count that is still is worth nothing while a slow handler is known to run on.
    let running = std::mem::take(&mut scene.log().running);
    for (left, slow) in running {
        scene.wait_out(left, slow, effects.quiet.duration()).await;
    }
    for whose in all {
        let answered = answered(scene, &whose);
        probe::settle(scene, effects, &whose, answered).await;
    }
    probe::check_reference(scene, effects).await;
}

/// How many different results the successes of an intent have named; one without a name counts as one.
fn answered(scene: &Scene, whose: &Whose) -> u64 {
    let log = scene.log();
    let mine = log.attempts.iter().map(|(_, attempt)| attempt);
    let mine = mine.filter(|a| a.intent == whose.intent && a.tenant == whose.tenant && a.end == End::Answered);
    let responses = mine.filter_map(|attempt| attempt.response.as_ref());
    let successes = responses.filter(|response| scene.operation.success.contains(response.status));
    successes.map(|response| response.identity.as_deref()).collect::<BTreeSet<_>>().len() as u64
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use crate::drive::tests::support::{plan, time};

    #[test]
    fn the_seats_of_a_case_are_its_most_attempts_in_flight() {
        let start = |name: &str| Step::Start(Box::new(plan(name)));
        let send = |name: &str| Step::Send { attempt: Box::new(plan(name)), until_settled: false };
        let burst = Step::Burst { name: "b".into(), attempts: vec![plan("b#1"), plan("b#2")] };
        assert_eq!(peak(&[time(5)]), 1);
        assert_eq!(peak(&[start("a"), start("b"), send("c")]), 3);
        assert_eq!(peak(&[start("a"), Step::Join("a".into()), send("c")]), 1);
        assert_eq!(peak(&[start("a"), burst, send("c")]), 3);
    }
}
