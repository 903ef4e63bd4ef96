//! Converts an HTTP Archive (HAR 1.2) to a file of histories: `har_to_history < capture.har > history.jsonl`.
//!
//! Requests with an `Idempotency-Key` become attempts of one history; the tenant is their `Authorization`, told apart and
//! not written down; the identity of a success is the member `id` of its JSON body.

use std::{
    collections::HashMap,
    io::{self, Read, Write},
};

use serde_json::{Value, json};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut text = String::new();
    io::stdin().read_to_string(&mut text)?;
    let lines = convert(&text)?;
    io::stdout().lock().write_all(lines.as_bytes())?;
    Ok(())
}

fn convert(text: &str) -> Result<String, Box<dyn std::error::Error>> {
    let har: Value = serde_json::from_str(text)?;
    let entries = har["log"]["entries"].as_array().ok_or("not a HAR file: log.entries is missing")?;
    let mut tenants: HashMap<String, usize> = HashMap::new();
    let mut attempts = Vec::new();
    let starts: Result<Vec<u64>, _> = entries.iter().map(|entry| micros(&entry["startedDateTime"])).collect();
    let starts = starts?;
    let first = starts.iter().min().copied().unwrap_or_default();
    for (index, (entry, started)) in entries.iter().zip(&starts).enumerate() {
        let request = &entry["request"];
        let Some(key) = field(request, "idempotency-key") else { continue };
        let next = tenants.len();
        let tenant = *tenants.entry(field(request, "authorization").unwrap_or_default().to_owned()).or_insert(next);
        let payload = request["postData"]["text"].as_str().unwrap_or_default();
        let value: Value = serde_json::from_str(payload).unwrap_or_else(|_| Value::String(payload.to_owned()));
        // One millisecond on each side: that is all the precision there is.
        let from = started - first;
        let took = (entry["time"].as_f64().unwrap_or_default().max(0.0) * 1000.0) as u64;
        let ended = from + took + 2_000;
        let status = entry["response"]["status"].as_u64().unwrap_or_default();
        let body = entry["response"]["content"]["text"].as_str().unwrap_or_default();
        let path = url::Url::parse(request["url"].as_str().unwrap_or_default()).map(|url| url.path().to_owned());
        let operation = format!("{} {}", request["method"].as_str().unwrap_or("POST"), path.unwrap_or_default());
        let mut attempt = json!({
            "name": format!("entry-{index}"), "operation": operation, "tenant": format!("tenant-{tenant}"), "node": 0,
            "intent": key, "key": key, "key_field": key, "reference": "", "role": "base", "encoding": "compact",
            "payload_sha256": sha256(payload), "value_sha256": sha256(&sorted(&value).to_string()),
            "request": operation, "payload": "", "bytes_out": 0, "bytes_in": 0,
            "timing": { "opened": from, "first_out": from, "ended": ended },
            // Status 0 is how HAR writes a request without an answer.
            "end": if status == 0 { json!("timed-out") } else { json!("answered") },
        });
        if status != 0 {
            let identity =
                serde_json::from_str::<Value>(body).ok().and_then(|body| body.get("id").map(Value::to_string));
            attempt["response"] = json!({
                "status": status, "fields": [], "identity": identity,
                "body": { "length": body.len(), "sha256": sha256(body), "text": "", "complete": true },
            });
        }
        attempts.push(attempt);
    }
    let header = json!({"idemproof_history": 1, "run": "har", "target": "har", "idemproof": env!("CARGO_PKG_VERSION")});
    let case = json!({"suite": "har", "case": "capture", "operation": "any"});
    let history = json!({"case": case, "round": 0, "attempts": attempts, "probes": [], "controls": []});
    Ok(format!("{header}\n{history}\n"))
}

fn field<'a>(message: &'a Value, name: &str) -> Option<&'a str> {
    let fields = message["headers"].as_array()?;
    let found = fields.iter().find(|f| f["name"].as_str().is_some_and(|n| n.eq_ignore_ascii_case(name)))?;
    found["value"].as_str()
}

fn sha256(text: &str) -> String {
    use sha2::Digest;
    sha2::Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The value with the members of every object sorted.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let mut names: Vec<_> = members.keys().collect();
            names.sort();
            Value::Object(names.into_iter().map(|name| (name.clone(), sorted(&members[name]))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(sorted).collect()),
        other => other.clone(),
    }
}

/// `2026-11-30T10:00:00.123Z`, or with an offset, as microseconds since year 0 in days of 86,400 seconds.
fn micros(value: &Value) -> Result<u64, Box<dyn std::error::Error>> {
    let text = value.as_str().ok_or("startedDateTime is missing")?;
    let bad = || format!("startedDateTime `{text}` is not a date");
    let number = |range: std::ops::Range<usize>| -> Result<i64, Box<dyn std::error::Error>> {
        Ok(text.get(range).ok_or_else(bad)?.parse().map_err(|_| bad())?)
    };
    let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
    let (hour, minute, second) = (number(11..13)?, number(14..16)?, number(17..19)?);
    let rest = text.get(19..).unwrap_or_default();
    let fraction: String =
        rest.strip_prefix('.').unwrap_or_default().chars().take_while(char::is_ascii_digit).collect();
    let micro: i64 = format!("{fraction:0<6}").get(..6).ok_or_else(bad)?.parse()?;
    let zone = rest.trim_start_matches('.').trim_start_matches(|c: char| c.is_ascii_digit());
    let offset = match zone.split_at_checked(1) {
        Some((sign @ ("+" | "-"), time)) => {
            let (hours, minutes) = time.split_once(':').ok_or_else(bad)?;
            let minutes: i64 = hours.parse::<i64>()? * 60 + minutes.parse::<i64>()?;
            if sign == "+" { minutes } else { -minutes }
        }
        _ => 0,
    };
    // Days of the civil calendar, counted from March so that the leap day comes last.
    let (y, m) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day;
    let seconds = ((days * 24 + hour) * 60 + minute - offset) * 60 + second;
    Ok(u64::try_from(seconds * 1_000_000 + micro)?)
}
