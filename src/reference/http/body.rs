//! Reading a body: whole or not at all, within a size and a time.

use super::{Problem, problem};
use crate::reference::core::Answer;
use axum::body::Body;
use http_body_util::BodyExt;
use std::time::Duration;

/// The longest body taken, in bytes.
const LONGEST: usize = 1024 * 1024;
/// How much of a longer body is read and thrown away, in bytes. A client that still sends when the connection closes
/// may never see the answer.
const MOST_EXCESS: usize = 16 * 1024 * 1024;
/// How long a body may take to arrive.
const PATIENCE: Duration = Duration::from_secs(60);

/// The whole body of a request, or the answer that says why there is none.
pub(super) async fn read(body: Body) -> Result<Vec<u8>, Answer> {
    match tokio::time::timeout(PATIENCE, collect(body)).await {
        Ok(Ok(Some(bytes))) => Ok(bytes),
        Ok(Ok(None)) => Err(problem(Problem::BodyTooLarge, format!("the body may have at most {LONGEST} bytes"))),
        // The client is gone or its framing is broken, so hardly anybody reads this.
        Ok(Err(error)) => Err(problem(Problem::BadRequest, format!("the body did not arrive whole: {error}"))),
        Err(_) => Err(problem(Problem::BodyTooSlow, format!("the body must arrive within {} s", PATIENCE.as_secs()))),
    }
}

/// The bytes of a body, or `None` when there are too many.
async fn collect(mut body: Body) -> Result<Option<Vec<u8>>, axum::Error> {
    let mut bytes = Vec::new();
    let mut length = 0;
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        length += data.len();
        if length <= LONGEST {
            bytes.extend_from_slice(&data);
        } else if length > LONGEST + MOST_EXCESS {
            break;
        }
    }
    Ok((length <= LONGEST).then_some(bytes))
}
