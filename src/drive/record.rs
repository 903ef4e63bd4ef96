//! Writing the record of one attempt: what is known before it is sent, and what came of it.

use http::HeaderValue;
use serde_json::Value;

use super::{
    attempt::{How, Sent},
    call::{Call, Draft},
    exchange::Received,
    raw,
    scene::Scene,
    words::{canonical, cut, escaped, sha256},
};
use crate::{
    history::{Attempt, Body, End, NOBODY, ParsedField, Response, Timing},
    schedule::{AttemptPlan, Encoding, PlannedKey, key_field},
    suite::{Credentials, ServerFault, ServerFaultPoint},
    target::{HeaderTemplate, KeyPlace},
    text::{Template, Var, Vars, is_secret_name},
};

/// The longest request and payload in a record, in bytes.
const REQUEST_TEXT: usize = 2 * 1024;
/// The longest text of a body in a record, in bytes.
const BODY_TEXT: usize = 8 * 1024;

/// What is known of an attempt before it is sent.
pub(super) fn blank(scene: &Scene, plan: &AttemptPlan, how: &How) -> Attempt {
    let now = scene.driver.clock.now();
    Attempt {
        name: how.resend.map_or_else(|| plan.name.clone(), |number| format!("{}~{number}", plan.name)),
        burst: how.rank.as_ref().map(|rank| rank.burst.clone()),
        resend_of: how.resend.map(|_| plan.name.clone()),
        operation: scene.operation.name.clone(),
        tenant: match plan.extra.credentials {
            Credentials::Own => plan.tenant.clone(),
            Credentials::None | Credentials::Wrong => NOBODY.to_owned(),
        },
        node: plan.node,
        intent: plan.intent.clone(),
        key: if let PlannedKey::Symbol(symbol) = &plan.key { Some(symbol.clone()) } else { None },
        key_field: None,
        reference: scene.mint.reference(&plan.intent),
        role: plan.role.clone(),
        encoding: plan.encoding,
        payload_sha256: sha256(b""),
        value_sha256: sha256(b""),
        request: String::new(),
        payload: String::new(),
        timing: Timing { opened: now, first_out: None, last_out: None, first_in: None, ended: now },
        bytes_out: 0,
        bytes_in: 0,
        end: End::NotSent(String::new()),
        response: None,
        fault: None,
        hooks: hooks(plan),
        wire: None,
    }
}

fn hooks(plan: &AttemptPlan) -> Vec<String> {
    let slow = plan.slow.map(|slow| format!("slow {slow}"));
    let server = plan.server.map(|server| {
        let (verb, point) = match server {
            ServerFault::Fail(point) => ("fail", point),
            ServerFault::Throw(point) => ("throw", point),
            ServerFault::Die(point) => ("die", point),
        };
        let point = match point {
            ServerFaultPoint::Before => "before",
            ServerFaultPoint::After => "after",
        };
        format!("{verb} {point}")
    });
    slow.into_iter().chain(server).collect()
}

/// Renders the request and fills in what the record says of it.
pub(super) async fn prepare(scene: &Scene, plan: &AttemptPlan, record: &mut Attempt) -> Result<Call, String> {
    let operation = &scene.operation;
    let policy = &operation.policy.key;
    let key = match &plan.key {
        PlannedKey::Symbol(symbol) => symbol,
        PlannedKey::None | PlannedKey::Raw(_) => &plan.name,
    };
    let characters = match &plan.extra.form {
        // One fresh text for the whole case, so that two keys can have a part in common.
        Some(form) => form.render(&scene.mint.key("")).map_err(|error| error.to_string())?,
        None => scene.mint.key(key),
    };
    let mut vars = scene.vars(&plan.intent, key);
    vars.insert("key".to_owned(), Var::Text(characters.clone()));
    let mut exact = plan.hook_headers.clone();
    let field = match &plan.key {
        PlannedKey::None => None,
        PlannedKey::Symbol(_) => Some(key_field(&characters, policy.syntax).map_err(|error| error.to_string())?),
        PlannedKey::Raw(template) => Some(template.render(&vars).map_err(|error| error.to_string())?),
    };
    let lines = match &plan.extra.wire {
        Some(wire) => Some(raw::lines(wire, policy, &characters, &scene.mint.key("other"), field.as_deref())?),
        None => None,
    };
    if policy.place == KeyPlace::Request {
        record.key_field = Some(scene.driver.clean(&characters));
    } else if let Some(values) = lines.as_ref().and_then(raw::Lines::values) {
        record.key_field = Some(cut(scene.driver.clean(&values), REQUEST_TEXT));
    } else if let Some(field) = field {
        let value = HeaderValue::from_bytes(field.as_bytes())
            .map_err(|_| format!("the key field `{}` has bytes that HTTP forbids", field.escape_default()))?;
        exact.push((policy.header.clone(), value));
        record.key_field = Some(scene.driver.clean(&field));
    }
    let payload = match &plan.payload {
        Some(template) => {
            let value = template.render(&vars).map_err(|error| format!("payload: {error}"))?;
            let bytes = plan.encoding.bytes(&value);
            record.payload_sha256 = sha256(&bytes);
            // What is no JSON has no value but its bytes.
            record.value_sha256 = match plan.encoding {
                Encoding::Half => record.payload_sha256.clone(),
                _ => sha256(canonical(&value).to_string().as_bytes()),
            };
            Some(bytes)
        }
        None => None,
    };
    let tenant = scene.tenant(&plan.tenant)?;
    let credentials = match plan.extra.credentials {
        Credentials::Own => tenant.headers.clone(),
        Credentials::None => Vec::new(),
        Credentials::Wrong => wrong(&tenant.headers, &vars)?,
    };
    let draft = Draft {
        node: scene.node(plan.node)?,
        method: &operation.method,
        path: &operation.path,
        vars: &vars,
        marks: &scene.driver.marks,
        fields: vec![&credentials, &operation.headers],
        exact,
        payload,
    };
    let mut call = draft.render().await?;
    if let (Some(wire), Some(lines)) = (&plan.extra.wire, &lines) {
        call.script = Some(raw::Script::of(&call, wire.body, lines).await?);
        record.wire = Some(scene.driver.clean(&lines.described(wire.body)));
    }
    let body = scene.driver.clean(&escaped(&call.payload));
    let line = scene.driver.clean(&call.line());
    record.request = cut(if body.is_empty() { line } else { format!("{line}\n{body}") }, REQUEST_TEXT);
    record.payload = cut(body, REQUEST_TEXT);
    Ok(call)
}

/// The header fields with credentials that nobody has; the scheme of a field stays.
fn wrong(fields: &[HeaderTemplate], vars: &Vars) -> Result<Vec<HeaderTemplate>, String> {
    let mut wrong = fields.to_vec();
    for field in wrong.iter_mut().filter(|field| is_secret_name(field.name.as_str())) {
        let value = field.value.render(vars).map_err(|error| format!("header field `{}`: {error}", field.name))?;
        let scheme = value.split_once(' ').map_or(String::new(), |(scheme, _)| format!("{scheme} "));
        field.value = Template::literal(&format!("{scheme}idemproof-wrong"));
    }
    Ok(wrong)
}

/// Fills in what came of sending.
pub(super) fn finish(scene: &Scene, record: &mut Attempt, sent: Sent) {
    let Sent { end, reading, received } = sent;
    record.timing.ended = scene.driver.clock.now();
    record.timing.first_out = reading.first_out;
    record.timing.last_out = reading.last_out;
    record.timing.first_in = reading.first_in;
    record.bytes_out = reading.bytes_out;
    record.bytes_in = reading.bytes_in;
    record.response = response(scene, received);
    record.end = match end {
        End::NotSent(why) => End::NotSent(scene.driver.clean(&why)),
        End::Unreadable(why) => End::Unreadable(scene.driver.clean(&why)),
        End::Lost(mut cut) => {
            cut.said = scene.driver.clean(&cut.said);
            End::Lost(cut)
        }
        end @ (End::Answered | End::TimedOut) => end,
    };
}

fn response(scene: &Scene, received: Received) -> Option<Response> {
    let sha256 = received.sha256();
    let Received { head, body, length, complete, .. } = received;
    let (status, headers) = head?;
    let clean = |bytes: &[u8]| scene.driver.clean(&escaped(bytes));
    let fields = headers
        .iter()
        .map(|(name, value)| ParsedField { name: name.as_str().to_owned(), value: clean(value.as_bytes()) })
        .collect();
    let identity = if complete { serde_json::from_slice::<Value>(&body).ok() } else { None };
    let identity = identity.and_then(|value| match scene.operation.identity.query(&value).all().as_slice() {
        [] | [Value::Null] => None,
        [one] => Some(one.to_string()),
        several => Some(Value::Array(several.iter().map(|node| (*node).clone()).collect()).to_string()),
    });
    Some(Response {
        status: status.as_u16(),
        fields,
        body: Body { length, sha256, text: cut(clean(&body), BODY_TEXT), complete },
        identity: identity.map(|text| scene.driver.clean(&text)),
    })
}
