//! Reading a body: whole or not at all, within a size and a time.

use super::{Problem, problem};
use crate::reference::core::Answer;
use axum::body::{Body, Bytes};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use std::time::Duration;

/// The longest body taken, in bytes.
const LONGEST: usize = 1024 * 1024;
/// How long a body may take to arrive.
const PATIENCE: Duration = Duration::from_secs(60);

/// The whole body of a request, or the answer that says why there is none.
pub(super) async fn read(body: Body) -> Result<Bytes, Answer> {
    match tokio::time::timeout(PATIENCE, Limited::new(body, LONGEST).collect()).await {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            Err(problem(Problem::BodyTooLarge, format!("the body may have at most {LONGEST} bytes")))
        }
        // The client is gone or its framing is broken, so hardly anybody reads this.
        Ok(Err(error)) => Err(problem(Problem::BadRequest, format!("the body did not arrive whole: {error}"))),
        Err(_) => Err(problem(Problem::BodyTooSlow, format!("the body must arrive within {} s", PATIENCE.as_secs()))),
    }
}

/// The body of a request as JSON, with its bytes.
pub(super) async fn read_json(body: Body) -> Result<(Bytes, serde_json::Value), Answer> {
    let bytes = read(body).await?;
    match serde_json::from_slice(&bytes) {
        Ok(value) => Ok((bytes, value)),
        Err(error) => Err(problem(Problem::BadRequest, format!("the body is not JSON: {error}"))),
    }
}
