//! Performs planned cases and judges them.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use tokio::{
    sync::{Semaphore, mpsc},
    task::JoinSet,
};

use super::{Stage, probe};
use crate::{
    drive::{DriveError, Driver, Options},
    judge::{CaseResult, Combined, Decision, Gate, Judgement, Reason, Verdict, combine, judge},
    report::{Accepted, Event, RunInfo, Summary},
    schedule::{Planned, Schedule, Skipped},
    spec::id,
    target::Target,
};

/// Cases that mostly wait may run in such a number beside the others.
const WAITING_TOGETHER: usize = 64;

/// A case that waits at least so many milliseconds counts as one that mostly waits.
const LONG_WAIT_MS: u64 = 1_000;

/// How a run is to be performed.
#[derive(Debug, Clone)]
pub struct RunOptions {
    /// How often each case is performed. The worst round decides.
    pub rounds: u32,
    /// How many cases may be performed side by side.
    pub jobs: usize,
    /// What makes a case fail.
    pub gate: Gate,
    /// How long to wait for the target to accept connections.
    pub wait_for_target: Duration,
    /// The words that name the same target and faults on the command line.
    pub again: String,
    /// The names of the reference server's faults.
    pub faults: Vec<String>,
    /// The part of the whole that is run, for the reports.
    pub shard: Option<String>,
    /// What ends the run early.
    pub limits: Limits,
}

/// What ends a run early. Cases under way are let end; no further one is begun.
#[derive(Debug, Clone, Default)]
pub struct Limits {
    /// After so many cases that fail the gate.
    pub max_failures: Option<u32>,
    /// After so much time.
    pub time_limit: Option<Duration>,
    /// The failures that do not count.
    pub accepted: Accepted,
}

/// Performs cases on a stage.
#[derive(Clone)]
pub struct Runner {
    driver: Driver,
    options: Arc<RunOptions>,
    info: RunInfo,
    interrupt: crate::drive::Interrupt,
    target: Arc<Target>,
    failures: Arc<AtomicU32>,
    stopped: Arc<OnceLock<Stopped>>,
    began: Instant,
}

/// Why no further case is begun.
#[derive(Debug, Clone, Copy)]
enum Stopped {
    Failures(u32),
    Time(Duration),
}

impl Runner {
    /// Makes a runner and checks that the target can be reached.
    ///
    /// # Errors
    /// When no connection to the target can be made.
    pub async fn new(stage: &Stage, options: RunOptions) -> Result<Self, DriveError> {
        let driver = Driver::new(
            Arc::clone(&stage.target),
            Options { run: stage.run.clone(), chaos: Some(stage.chaos.clone()), interrupt: stage.interrupt.clone() },
        )
        .await?;
        driver.reach(options.wait_for_target).await?;
        let info = RunInfo {
            run: stage.run.clone(),
            target: stage.target.name.clone(),
            nodes: stage.target.nodes.iter().map(ToString::to_string).collect(),
            profile: stage.target.profile.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            reference_faults: options.faults.clone(),
            proxy: stage.proxy.clone(),
            shard: options.shard.clone(),
            cases: 0,
            began_unix: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |age| age.as_secs()),
            again: options.again.clone(),
        };
        Ok(Self {
            driver,
            options: Arc::new(options),
            info,
            interrupt: stage.interrupt.clone(),
            target: Arc::clone(&stage.target),
            failures: Arc::default(),
            stopped: Arc::default(),
            began: Instant::now(),
        })
    }

    /// Performs everything that is planned, in an order of its own, and gives the results in the order of the plan.
    ///
    /// Cases that disturb others run alone, at the end. A case of an operation on which keys have no effect at all
    /// is skipped: that one finding says it. After an interrupt no further case is begun.
    pub async fn run(&self, planned: Vec<Planned>, sink: &mut (dyn FnMut(Event) + Send)) -> Vec<CaseResult> {
        let began = Instant::now();
        sink(Event::Started(RunInfo { cases: planned.len(), ..self.info.clone() }));
        self.check_probes(&planned).await;
        let mut results: BTreeMap<usize, CaseResult> = BTreeMap::new();
        let mut detection = Vec::new();
        let mut together = Vec::new();
        let mut alone = Vec::new();
        for (index, plan) in planned.into_iter().enumerate() {
            match plan {
                Planned::Skip(skipped) => finish(&mut results, index, skipped_result(*skipped), sink),
                Planned::Run(schedule) if schedule.rules.contains(&id::KEY_HAS_AN_EFFECT) => {
                    detection.push((index, schedule));
                }
                Planned::Run(schedule) if schedule.exclusive => alone.push((index, schedule)),
                Planned::Run(schedule) => together.push((index, schedule)),
            }
        }
        self.batch(detection, self.options.jobs, &mut results, sink).await;
        let unsupported: BTreeSet<String> =
            results.values().filter(|result| has_no_effect(result)).map(|result| result.id.operation.clone()).collect();
        for batch in [&mut together, &mut alone] {
            for (index, schedule) in std::mem::take(batch) {
                if unsupported.contains(&schedule.id.operation) {
                    let why = format!("keys have no effect on `{}`", schedule.id.operation);
                    let remedy = "see the finding of detection/key-has-an-effect".to_owned();
                    finish(&mut results, index, not_performed(&schedule, Reason { why, remedy }), sink);
                } else {
                    batch.push((index, schedule));
                }
            }
        }
        // The longest waits begin first, so that they overlap with everything else.
        together.sort_by_key(|(_, schedule)| std::cmp::Reverse(schedule.waits));
        self.batch(together, self.options.jobs, &mut results, sink).await;
        self.batch(alone, 1, &mut results, sink).await;
        let results: Vec<CaseResult> = results.into_values().collect();
        let millis = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        sink(Event::Finished(Summary::of(&results, self.interrupt.is_set() || self.stopped.get().is_some(), millis)));
        results
    }

    /// Tries the effect probe of each operation once, so that one that shows nothing accuses nobody.
    async fn check_probes(&self, planned: &[Planned]) {
        let mut tried = BTreeSet::new();
        for plan in planned {
            let Planned::Run(schedule) = plan else { continue };
            if schedule.operation.effects.is_none() || !tried.insert(schedule.operation.name.clone()) {
                continue;
            }
            let history = self.driver.perform(&probe::schedule(&schedule.operation, &self.target), 0).await;
            if let Some(why) = probe::blind(&schedule.operation, &history) {
                self.driver.distrust_probe(&schedule.operation.name, &why);
            }
        }
    }

    async fn batch(
        &self,
        schedules: Vec<(usize, Box<Schedule>)>,
        jobs: usize,
        results: &mut BTreeMap<usize, CaseResult>,
        sink: &mut (dyn FnMut(Event) + Send),
    ) {
        let busy = Arc::new(Semaphore::new(jobs.max(1)));
        let waiting = Arc::new(Semaphore::new(WAITING_TOGETHER));
        let (sender, mut receiver) = mpsc::unbounded_channel();
        let mut tasks = JoinSet::new();
        for (index, schedule) in schedules {
            let runner = self.clone();
            let slots = Arc::clone(if jobs > 1 && schedule.waits.millis() >= LONG_WAIT_MS { &waiting } else { &busy });
            let sender = sender.clone();
            tasks.spawn(async move {
                let _slot = slots.acquire().await;
                // A closed channel means that nobody listens any more; the result is then of no use to anybody.
                let _ = sender.send((index, Event::CaseStarted(schedule.id.clone())));
                let result = runner.perform(&schedule).await;
                // Counted before the slot is free, so that the next case sees it.
                runner.count(&result);
                let _ = sender.send((index, Event::CaseFinished(Box::new(result))));
            });
        }
        drop(sender);
        let mut told = false;
        while let Some((index, event)) = receiver.recv().await {
            if self.interrupt.is_set() && !std::mem::replace(&mut told, true) {
                sink(Event::Interrupted);
            }
            if let Event::CaseFinished(result) = event {
                finish(results, index, *result, sink);
            } else {
                sink(event);
            }
        }
        while tasks.join_next().await.is_some() {}
    }

    /// Performs one case, as often as there are rounds, and judges it.
    pub async fn perform(&self, schedule: &Schedule) -> CaseResult {
        let began = Instant::now();
        let mut judgements = Vec::new();
        let mut kept = None;
        for round in 0..self.options.rounds.max(1) {
            if self.interrupt.is_set() || self.is_stopped() {
                break;
            }
            let history = self.driver.perform(schedule, round).await;
            judgements.push(judge(schedule, &history, self.options.gate));
            // Only the history of the round that decides is kept: the first of the worst ones.
            if kept.as_ref().is_none_or(|_| decides(&judgements)) {
                kept = Some(history);
            }
        }
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let failed = judgements.iter().filter(|judgement| judgement.verdict == Verdict::Failed).count();
        let (count, failed_rounds) = (number(judgements.len()), number(failed));
        let Some(Combined { judgement, .. }) = combine(judgements) else {
            return self.not_begun(schedule);
        };
        CaseResult {
            verdict: judgement.verdict,
            reason: judgement.reason,
            findings: judgement.findings,
            millis: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
            rounds: count,
            overlaps: judgement.overlaps,
            failed_rounds,
            history: kept,
            ..not_performed(schedule, Reason { why: String::new(), remedy: String::new() })
        }
    }
}

impl Runner {
    /// Stops the run if this result is one failure too many.
    fn count(&self, result: &CaseResult) {
        let Limits { max_failures: Some(most), accepted, .. } = &self.options.limits else { return };
        if accepted.fails(result) && self.failures.fetch_add(1, Ordering::SeqCst) + 1 >= *most {
            let _ = self.stopped.set(Stopped::Failures(*most));
        }
    }

    /// Whether a limit has been reached.
    fn is_stopped(&self) -> bool {
        if let Some(limit) = self.options.limits.time_limit
            && self.began.elapsed() >= limit
        {
            let _ = self.stopped.set(Stopped::Time(limit));
        }
        self.stopped.get().is_some()
    }

    /// The result of a case that was not begun. One that was not reached in time is inconclusive: it was asked for,
    /// and nothing is known of it.
    fn not_begun(&self, schedule: &Schedule) -> CaseResult {
        let (verdict, why, remedy) = match self.stopped.get() {
            Some(Stopped::Failures(most)) => {
                let why = format!("--max-failures {most} was reached before this case began");
                (Verdict::Skipped, why, "repair the failed cases first".to_owned())
            }
            Some(Stopped::Time(limit)) => {
                let why = format!("--time-limit {} s was over before this case began", limit.as_secs());
                (Verdict::Inconclusive, why, "allow more time, more --jobs, or spread the run with --shard".to_owned())
            }
            None => {
                let why = "the run was interrupted before this case began".to_owned();
                (Verdict::Skipped, why, "run it again".to_owned())
            }
        };
        CaseResult { verdict, ..not_performed(schedule, Reason { why, remedy }) }
    }
}

/// Whether the last of these judgements is worse than all before it.
fn decides(judgements: &[Judgement]) -> bool {
    judgements.split_last().is_some_and(|(last, before)| before.iter().all(|other| other.verdict < last.verdict))
}

fn has_no_effect(result: &CaseResult) -> bool {
    result.findings.iter().any(|f| f.rule == id::KEY_HAS_AN_EFFECT && f.decision == Decision::Broken)
}

fn finish(
    results: &mut BTreeMap<usize, CaseResult>,
    index: usize,
    result: CaseResult,
    sink: &mut (dyn FnMut(Event) + Send),
) {
    sink(Event::CaseFinished(Box::new(result.clone())));
    results.insert(index, result);
}

fn not_performed(schedule: &Schedule, reason: Reason) -> CaseResult {
    CaseResult {
        id: schedule.id.clone(),
        title: schedule.title.clone(),
        file: schedule.file.clone(),
        place: schedule.place,
        rules: schedule.rules.clone(),
        verdict: Verdict::Skipped,
        reason: Some(reason),
        findings: Vec::new(),
        millis: 0,
        rounds: 0,
        overlaps: Vec::new(),
        failed_rounds: 0,
        history: None,
    }
}

fn skipped_result(skipped: Skipped) -> CaseResult {
    CaseResult {
        id: skipped.id,
        title: skipped.title,
        file: skipped.file,
        place: skipped.place,
        rules: skipped.rules,
        verdict: Verdict::Skipped,
        reason: Some(Reason { why: skipped.why, remedy: skipped.remedy }),
        findings: Vec::new(),
        millis: 0,
        rounds: 0,
        overlaps: Vec::new(),
        failed_rounds: 0,
        history: None,
    }
}
