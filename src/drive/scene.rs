//! What all attempts of one performance share: values, and the record that they write.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use url::Url;

use super::{
    call::{Call, Draft},
    driver::Inner,
    exchange::Talk,
    interrupt::Deadline,
    words::escaped,
};
use crate::{
    history::{Attempt, Control, End, Micros, Probe},
    schedule::{CaseId, Mint, Schedule, Step},
    target::{HeaderTemplate, Operation, Tenant},
    text::{JsonTemplate, Template, Var, Vars},
};

/// The record while it is written.
#[derive(Debug, Default)]
pub(super) struct Log {
    /// With the order in which they were begun.
    pub(super) attempts: Vec<(usize, Attempt)>,
    pub(super) probes: Vec<Probe>,
    pub(super) controls: Vec<Control>,
    pub(super) stopped: Option<String>,
    /// For each attempt without an answer whose handler was made slow: when its request had left, and how slow.
    pub(super) running: Vec<(Option<Micros>, Duration)>,
}

/// One performance of one case.
pub(super) struct Scene {
    pub(super) driver: Arc<Inner>,
    pub(super) case: CaseId,
    pub(super) operation: Arc<Operation>,
    pub(super) mint: Mint,
    /// The longest time that a handler of the case is made slow for.
    pub(super) slowest: Duration,
    begun: AtomicUsize,
    log: Mutex<Log>,
}

impl Scene {
    pub(super) fn new(driver: Arc<Inner>, schedule: &Schedule, round: u32) -> Self {
        let mint = Mint::new(&driver.run, &schedule.id, round);
        let slow = |step: &Step| match step {
            Step::Send { attempt, .. } | Step::Start(attempt) => attempt.slow,
            Step::Burst { attempts, .. } => attempts.iter().filter_map(|attempt| attempt.slow).max(),
            Step::Join(_) | Step::Time(_) => None,
        };
        let slowest = schedule.steps.iter().filter_map(slow).max().map_or(Duration::ZERO, |span| span.duration());
        Self {
            driver,
            case: schedule.id.clone(),
            operation: Arc::clone(&schedule.operation),
            mint,
            slowest,
            begun: AtomicUsize::new(0),
            log: Mutex::new(Log::default()),
        }
    }

    /// The record so far.
    pub(super) fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes why the performance stops; the first reason stays.
    pub(super) fn stop(&self, why: impl ToString) {
        self.log().stopped.get_or_insert_with(|| why.to_string());
    }

    /// The place of the next attempt among all of the performance.
    pub(super) fn place(&self) -> usize {
        self.begun.fetch_add(1, Ordering::Relaxed)
    }

    /// The values of the templates for an intent.
    pub(super) fn vars(&self, intent: &str, key: &str) -> Vars {
        let text = |name: &str, value: String| (name.to_owned(), Var::Text(value));
        Vars::from([
            text("reference", self.mint.reference(intent)),
            text("key", self.mint.key(key)),
            text("case", self.mint.key("case")),
            text("run", self.driver.run.clone()),
        ])
    }

    /// The base URL of a node.
    ///
    /// # Errors
    /// When the target has no such node.
    pub(super) fn node(&self, index: usize) -> Result<&Url, String> {
        self.driver.target.nodes.get(index).ok_or_else(|| format!("the target has no node {index}"))
    }

    /// A tenant.
    ///
    /// # Errors
    /// When the target has no such tenant.
    pub(super) fn tenant(&self, name: &str) -> Result<&Tenant, String> {
        self.driver.target.tenant(name).ok_or_else(|| format!("the target has no tenant `{name}`"))
    }

    /// A request of the driver's own, such as a probe.
    ///
    /// # Errors
    /// When it cannot be rendered.
    pub(super) async fn own_call(
        &self,
        node: usize,
        method: &http::Method,
        path: &Template,
        vars: &Vars,
        fields: &[HeaderTemplate],
        json: Option<&JsonTemplate>,
    ) -> Result<Call, String> {
        let payload = match json {
            Some(json) => Some(json.render(vars).map_err(|error| error.to_string())?.to_string().into_bytes()),
            None => None,
        };
        let draft = Draft {
            node: self.node(node)?,
            method,
            path,
            vars,
            marks: &self.driver.marks,
            fields: vec![fields],
            exact: Vec::new(),
            payload,
        };
        draft.render().await
    }

    /// Sends a request of the driver's own on a connection of its own. Returns status and body.
    ///
    /// # Errors
    /// When there is no whole answer within the target's time limit, or no request may be sent any more.
    pub(super) async fn fetch(&self, node: usize, call: &Call, deadline: &Deadline) -> Result<(u16, Vec<u8>), String> {
        if let Err(refusal) = self.driver.manners.one().await {
            self.stop(refusal);
            return Err(refusal.to_string());
        }
        let deadline = deadline.and_after(self.driver.target.limits.timeout.duration());
        let line = deadline
            .within(self.driver.open(node, self.node(node)?, None))
            .await
            .ok_or_else(|| "no connection in time".to_owned())??;
        line.meter.set(Some(call.total()), None);
        let mut talk = Talk::on(line).await?;
        let (end, received) = talk.exchange(call.request(None), &deadline).await;
        match (end, received.head) {
            (End::Answered, Some((status, _))) => Ok((status.as_u16(), received.body)),
            (end, _) => Err(self.driver.clean(&described(&end))),
        }
    }

    /// Waits until a handler that was made slow must be through: `slow` and a `margin` after its request had left.
    /// Returns whether the time passed without an interrupt.
    pub(super) async fn wait_out(&self, left: Option<Micros>, slow: Duration, margin: Duration) -> bool {
        let Some(left) = left else { return true };
        let end = Duration::from_micros(left) + slow + margin;
        self.driver.interrupt.sleep(end.saturating_sub(Duration::from_micros(self.driver.clock.now()))).await
    }

    /// The start of a body for a message.
    pub(super) fn excerpt(&self, body: &[u8]) -> String {
        super::words::cut(self.driver.clean(&escaped(body)), 200)
    }
}

/// How an exchange ended, for messages.
pub(super) fn described(end: &End) -> String {
    match end {
        End::Answered => "answered".to_owned(),
        End::NotSent(why) => format!("not sent: {why}"),
        End::Lost(cut) => format!("the connection ended before the whole answer was there: {}", cut.said),
        End::TimedOut => "no whole answer in time".to_owned(),
        End::Unreadable(why) => format!("the answer cannot be read: {why}"),
    }
}
