//! One case on one operation, step by step.

use std::sync::Arc;

use super::{
    AttemptPlan, CaseId, PlannedKey, Schedule, Step, TimeMove,
    compile::{Allowed, Obstacle, Planned, Skipped},
    extra, payload,
};
use crate::{
    spec::id,
    suite::{
        self, Case, Copies, KeyChoice, Need, NetworkFault, Pass, Request, ServerFault, ServerFaultPoint, Slow, Suite,
        Window,
    },
    target::{Crash, Hook, Operation, Target},
    text::{Span, Var, Vars},
};

/// How long the handler is made to run when it has to outlive the end of its lease on a target whose clock can be
/// moved, and how much longer than the lease on one that really waits. In milliseconds.
const OUTLIVE_MS: u64 = 1_500;

/// How slow a handler is made for a cut while it runs, if the suite does not say. In milliseconds.
const CUT_SLOW_MS: u64 = 600;

/// What one schedule is compiled from.
pub(super) struct Compiler<'a> {
    pub(super) suite: &'a Suite,
    pub(super) case: &'a Case,
    pub(super) target: &'a Target,
    pub(super) operation: &'a Arc<Operation>,
    pub(super) vary: Option<(String, u64)>,
    pub(super) allowed: Allowed,
}

impl Compiler<'_> {
    fn id(&self) -> CaseId {
        CaseId {
            suite: self.suite.name.clone(),
            case: self.case.name.clone(),
            operation: self.operation.name.clone(),
            vary: self.vary.clone(),
        }
    }

    fn title(&self) -> String {
        let vars: Vars = self.vary.iter().map(|(name, value)| (name.clone(), Var::Number(*value))).collect();
        self.case.title.render(&vars).unwrap_or_else(|_| self.case.title.to_string())
    }

    pub(super) fn skip(&self, obstacle: Obstacle) -> Planned {
        Planned::Skip(Box::new(Skipped {
            id: self.id(),
            title: self.title(),
            file: self.suite.file.clone(),
            place: self.case.place,
            tags: self.case.tags.clone(),
            rules: self.case.rules.clone(),
            why: obstacle.why,
            remedy: obstacle.remedy,
        }))
    }

    pub(super) fn schedule(&self) -> Result<Schedule, Obstacle> {
        for need in &self.case.needs {
            match need {
                Need::EffectProbe if self.operation.effects.is_none() => {
                    return Err(Obstacle::new(
                        format!("the effects of `{}` cannot be counted", self.operation.name),
                        "give the operation an `effects` probe",
                    ));
                }
                Need::EffectProbe => {}
            }
        }
        if self.case.rules.contains(&id::DEAD_OWNER_TAKEN_OVER) && self.operation.policy.crash.is(&Crash::Hold) {
            return Err(Obstacle::new(
                "the target documents that the key of a dead owner is held",
                "nothing: it does not apply",
            ));
        }
        let steps = self.case.steps.iter().map(|step| self.step(step)).collect::<Result<Vec<_>, _>>()?;
        let exclusive = steps.iter().any(Step::disturbs_others);
        let waits = steps.iter().map(Step::waits_ms).sum();
        Ok(Schedule {
            id: self.id(),
            title: self.title(),
            file: self.suite.file.clone(),
            place: self.case.place,
            tags: self.case.tags.clone(),
            rules: self.case.rules.clone(),
            operation: Arc::clone(self.operation),
            steps,
            given: self.case.given.clone(),
            overlap: self.case.overlap.clone(),
            expect: self.case.expect.clone(),
            effects: self.case.effects.clone(),
            exclusive,
            waits: Span::from_millis(waits),
        })
    }

    fn step(&self, step: &suite::Step) -> Result<Step, Obstacle> {
        Ok(match step {
            suite::Step::Send(request) => Step::Send {
                attempt: Box::new(self.attempt(request, &request.name, 0, Slowness::Needed)?),
                until_settled: request.until_settled,
            },
            suite::Step::Start(request) => {
                Step::Start(Box::new(self.attempt(request, &request.name, 0, Slowness::Needed)?))
            }
            suite::Step::Join(name) => Step::Join(name.clone()),
            suite::Step::Burst(burst) => {
                let copies = self.copies(&burst.copies)?;
                let name = &burst.request.name;
                let attempts = (0..copies)
                    .map(|index| {
                        let node = index % self.target.nodes.len();
                        self.attempt(&burst.request, &format!("{name}#{}", index + 1), node, Slowness::Welcome)
                    })
                    .collect::<Result<_, _>>()?;
                Step::Burst { name: name.clone(), attempts }
            }
            suite::Step::Pass(pass) => Step::Time(self.pass(*pass)?),
        })
    }

    fn copies(&self, copies: &Copies) -> Result<usize, Obstacle> {
        let copies = match copies {
            Copies::Count(count) => usize::from(*count),
            Copies::Vary => self.vary.as_ref().map_or(2, |(_, value)| usize::try_from(*value).unwrap_or(usize::MAX)),
        };
        let most = usize::from(self.target.limits.concurrency);
        if copies > most {
            return Err(Obstacle::new(
                format!("it sends {copies} attempts together and the target allows {most}"),
                "raise `limits.concurrency`",
            ));
        }
        Ok(copies)
    }

    fn attempt(&self, request: &Request, name: &str, node: usize, slowness: Slowness) -> Result<AttemptPlan, Obstacle> {
        let (payload, encoding) = payload::of_role(self.operation, &request.payload)?;
        let (key, intent) = match &request.key {
            KeyChoice::None => (PlannedKey::None, request.name.clone()),
            KeyChoice::Symbol(symbol) => (PlannedKey::Symbol(symbol.clone()), symbol.clone()),
            KeyChoice::Raw(template) => (PlannedKey::Raw(template.clone()), request.name.clone()),
        };
        let extra = extra::of(self.case, self.target, self.operation, request, &key)?;
        let node = match request.node {
            Some(place) if place >= self.target.nodes.len() => {
                return Err(Obstacle::new(
                    format!("it needs node {}, and the target has {}", place + 1, self.target.nodes.len()),
                    "give the target several base URLs under `nodes`",
                ));
            }
            Some(place) => place,
            None => node,
        };
        let slow = self.slow(request)?;
        let mut hook_headers = request.headers.clone();
        let mut applied_slow = None;
        if let Some(span) = slow {
            let vars = Vars::from([("ms".to_owned(), Var::Number(span.millis()))]);
            match hook_fields(self.target.hooks.slow.as_ref(), &vars)? {
                Some(fields) => {
                    hook_headers.extend(fields);
                    applied_slow = Some(span);
                }
                // A burst overlaps without a slow handler too, if less surely; its overlap is measured anyway.
                None if slowness == Slowness::Welcome => {}
                None => return Err(Obstacle::new("the handler cannot be made slow", "give the target a `slow` hook")),
            }
        }
        if let Some(server) = request.server {
            hook_headers.extend(self.server_fault(server)?);
        }
        let timeout = self.target.limits.timeout.millis() + applied_slow.map_or(0, Span::millis);
        Ok(AttemptPlan {
            name: name.to_owned(),
            key,
            intent,
            role: request.payload.clone(),
            payload,
            encoding,
            tenant: self.tenant(request.tenant.as_deref())?,
            node,
            hook_headers,
            fault: request.fault,
            slow: applied_slow,
            server: request.server,
            timeout: Span::from_millis(timeout),
            extra,
        })
    }

    fn tenant(&self, name: Option<&str>) -> Result<String, Obstacle> {
        let tenants = &self.target.tenants;
        let found = match name {
            None => tenants.first(),
            Some(name) => tenants
                .iter()
                .find(|tenant| tenant.name == name)
                .or_else(|| if name == "other" { tenants.get(1) } else { None }),
        };
        found.map(|tenant| tenant.name.clone()).ok_or_else(|| {
            let name = name.unwrap_or("default");
            Obstacle::new(format!("there is no tenant `{name}`"), "give the target a second entry under `tenants`")
        })
    }

    fn slow(&self, request: &Request) -> Result<Option<Span>, Obstacle> {
        Ok(match request.slow {
            Some(Slow::For(span)) => Some(span),
            Some(Slow::PastLease) if self.target.hooks.advance_clock.is_some() => Some(Span::from_millis(OUTLIVE_MS)),
            Some(Slow::PastLease) => Some(Span::from_millis(self.window(Window::Lease)?.millis() + OUTLIVE_MS)),
            None if request.fault == Some(NetworkFault::CutWhileRunning) => Some(Span::from_millis(CUT_SLOW_MS)),
            None => None,
        })
    }

    fn server_fault(&self, fault: ServerFault) -> Result<Vec<(http::HeaderName, http::HeaderValue)>, Obstacle> {
        let point = |point| match point {
            ServerFaultPoint::Before => "before",
            ServerFaultPoint::After => "after",
        };
        let (hook, name, text) = match fault {
            ServerFault::Fail(at) => (self.target.hooks.fail.as_ref(), "fail", point(at).to_owned()),
            ServerFault::Throw(at) => (self.target.hooks.fail.as_ref(), "fail", format!("throw-{}", point(at))),
            ServerFault::Die(at) => (self.target.hooks.die.as_ref(), "die", point(at).to_owned()),
        };
        let vars = Vars::from([("point".to_owned(), Var::Text(text)), ("times".to_owned(), Var::Number(1))]);
        hook_fields(hook, &vars)?.ok_or_else(|| {
            Obstacle::new("the handler cannot be made to fail like this", format!("give the target a `{name}` hook"))
        })
    }

    fn window(&self, window: Window) -> Result<Span, Obstacle> {
        let (name, documented) = match window {
            Window::Lease => ("lease", self.operation.policy.lease),
            Window::Retention => ("retention", self.operation.policy.retention),
        };
        documented.known().copied().ok_or_else(|| {
            Obstacle::new(
                format!("`{}` documents no {name}", self.operation.name),
                format!("set `policy.{name}` in the target file"),
            )
        })
    }

    fn pass(&self, pass: Pass) -> Result<TimeMove, Obstacle> {
        let can_move = self.target.hooks.advance_clock.is_some();
        let (span, past) = match pass {
            Pass::For(span) => return self.waiting(span, None),
            Pass::Within(window) => {
                let millis = self.window(window)?.millis();
                // Real waiting has real delays around it, so it stays further from the end of the window.
                (if can_move { millis / 4 * 3 } else { millis / 2 }, None)
            }
            Pass::Past(window) => {
                let least = self.window(window)?.millis();
                // Between the least and the longest retention nothing is promised.
                let most = self.operation.policy.retention_max.known().filter(|_| window == Window::Retention);
                let millis = most.map_or(least, |most| most.millis().max(least));
                (millis + (millis / 10).clamp(500, 60_000), Some(window))
            }
        };
        if can_move {
            // Clock hooks count in whole seconds.
            return Ok(TimeMove { span: Span::from_secs(span.div_ceil(1_000)), by_hook: true, past });
        }
        self.waiting(Span::from_millis(span), past)
    }

    fn waiting(&self, span: Span, past: Option<Window>) -> Result<TimeMove, Obstacle> {
        if span > self.allowed.max_wait {
            return Err(Obstacle::new(
                format!("it would have to wait {span}, and at most {} are allowed", self.allowed.max_wait),
                format!("give the target an `advance_clock` hook, or allow `--max-wait {span}`"),
            ));
        }
        Ok(TimeMove { span, by_hook: false, past })
    }
}

/// Whether a case makes sense without its slow handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Slowness {
    Needed,
    Welcome,
}

fn hook_fields(
    hook: Option<&Hook>,
    vars: &Vars,
) -> Result<Option<Vec<(http::HeaderName, http::HeaderValue)>>, Obstacle> {
    let Some(hook) = hook else { return Ok(None) };
    let Hook::Headers(headers) = hook else {
        return Err(Obstacle::new("this hook is a request of its own", "write the hook with `header`"));
    };
    let fields = headers.iter().map(|header| {
        let text = header.value.render(vars).map_err(|error| Obstacle::new(error.to_string(), "mend the hook"))?;
        let value = http::HeaderValue::from_str(&text)
            .map_err(|_| Obstacle::new(format!("`{text}` is no header field value"), "mend the hook"))?;
        Ok((header.name.clone(), value))
    });
    fields.collect::<Result<Vec<_>, _>>().map(Some)
}

impl Step {
    /// Whether performing it may disturb other cases: it moves the target's clock or kills a worker.
    fn disturbs_others(&self) -> bool {
        match self {
            Self::Time(moved) => moved.by_hook,
            Self::Send { attempt, .. } | Self::Start(attempt) => matches!(attempt.server, Some(ServerFault::Die(_))),
            Self::Burst { attempts, .. } => {
                attempts.iter().any(|attempt| matches!(attempt.server, Some(ServerFault::Die(_))))
            }
            Self::Join(_) => false,
        }
    }

    fn waits_ms(&self) -> u64 {
        match self {
            Self::Time(moved) if !moved.by_hook => moved.span.millis(),
            Self::Send { attempt, .. } => attempt.slow.map_or(0, Span::millis),
            _ => 0,
        }
    }
}
