//! Operations whose answers are not JSON, or not final: a binary one, a streamed one, and a job that is done later.

use super::{Handled, Input, fresh, insert, reference, shown};
use crate::reference::controls::{FailCounts, Moment};
use crate::reference::core::Answer;
use crate::reference::outbox::{self, To};
use crate::reference::policy::Ending;
use crate::reference::store::{Kind, Row};
use crate::reference::work::Work;
use serde_json::json;

/// How many lines a statement has.
const LINES: usize = 64;

/// Makes a receipt: a binary document in which every byte occurs.
pub(super) async fn receipt(input: Input, work: &Work, counts: &FailCounts) -> Handled {
    let reference = reference(&input.body)?;
    let fate = input.fate(counts, reference).await;
    fate.at(Moment::Before)?;
    let id = fresh("rcp");
    let body = json!({ "id": id, "reference": reference });
    insert(work, Row::new(input.row_id(Kind::Receipt, &*id), reference, body)).await?;
    fate.at(Moment::After)?;
    let document: Vec<u8> = [id.as_bytes(), b"\r\n"].concat().into_iter().chain(0..=255).collect();
    Ok((Ending::Succeeded, document_answer(&id, "/receipts", "application/octet-stream", document)))
}

/// Makes a statement: many lines of JSON, which are sent in chunks.
pub(super) async fn statement(input: Input, work: &Work, counts: &FailCounts) -> Handled {
    let reference = reference(&input.body)?;
    let fate = input.fate(counts, reference).await;
    fate.at(Moment::Before)?;
    let id = fresh("stm");
    let body = json!({ "id": id, "reference": reference });
    insert(work, Row::new(input.row_id(Kind::Statement, &*id), reference, body)).await?;
    fate.at(Moment::After)?;
    let lines: String = (0..LINES).map(|line| format!("{}\n", json!({ "id": id, "line": line }))).collect();
    Ok((Ending::Succeeded, document_answer(&id, "/statements", "application/x-ndjson", lines.into_bytes())))
}

fn document_answer(id: &str, list: &str, content_type: &str, body: Vec<u8>) -> Answer {
    let headers = [("content-type", content_type.to_owned()), ("location", format!("{list}/{id}"))];
    Answer { status: 201, headers: headers.map(|(name, value)| (name.to_owned(), value)).to_vec(), body: body.into() }
}

/// Starts an export. The answer says that it has been accepted; where it has come to is shown at its location.
pub(super) async fn export(input: Input, work: &Work, counts: &FailCounts) -> Handled {
    let reference = reference(&input.body)?;
    let fate = input.fate(counts, reference).await;
    fate.at(Moment::Before)?;
    let id = fresh("exp");
    let body = json!({ "id": id, "reference": reference, "status": "running" });
    let row = insert(work, Row::new(input.row_id(Kind::Export, &*id), reference, body)).await?;
    let job = outbox::message(To::Exporter, format!("job_{id}"), &input.tenant, reference, json!({ "id": id }));
    work.add(job).await?;
    fate.at(Moment::After)?;
    let mut answer = shown(202, &row, Some(format!("/exports/{id}")));
    answer.headers.retain(|(name, _)| name != "etag");
    Ok((Ending::Succeeded, answer))
}
