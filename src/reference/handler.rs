//! One run of a handler, ended by its result, its unwinding, or the end of the server.

use super::app::App;
use super::core::Answer;
use super::fault;
use super::http::{Problem, problem};
use super::operations::{self, Input, Job};
use super::policy::Ending;
use super::store::{Refused, StoreError};
use super::work::{Halt, Work};
use std::sync::Arc;

/// How a run came to its end.
#[derive(Debug)]
pub(super) enum Run {
    /// With an answer, which may or may not be kept.
    Ended(Ending, Answer),
    /// Its worker died.
    Died,
    /// The end of a phase was refused.
    Refused(Refused),
    /// The store failed.
    Store(StoreError),
}

/// Runs a handler in a task of its own, so that its unwinding ends there.
pub(super) async fn run(app: &Arc<App>, job: Job, input: Input, work: &Arc<Work>) -> Run {
    let mut handler = tokio::spawn({
        let (app, work) = (Arc::clone(app), Arc::clone(work));
        async move {
            let ended = operations::run(job, input, Arc::clone(&work), &app.fail_counts).await;
            fault::deserted(&app, &work).await;
            ended
        }
    });
    tokio::select! {
        biased;
        ended = &mut handler => match ended {
            Ok(Ok((ending, answer))) => Run::Ended(ending, answer),
            Ok(Err(Halt::Rejected(answer))) => Run::Ended(Ending::Rejected, answer),
            Ok(Err(Halt::Failed(answer))) => Run::Ended(Ending::Failed, answer),
            Ok(Err(Halt::Died)) => Run::Died,
            Ok(Err(Halt::Refused(refused))) => Run::Refused(refused),
            Ok(Err(Halt::Store(error))) => Run::Store(error),
            Err(_) => Run::Ended(
                Ending::Unwound,
                problem(Problem::Internal, "the handler ended with an unhandled error"),
            ),
        },
        () = app.load.given_up() => {
            handler.abort();
            // Once it has come to its end, no effect of it can follow.
            let _ = handler.await;
            Run::Ended(Ending::Interrupted, problem(Problem::Stopping, "the server stopped before the work was done"))
        }
    }
}

/// The answer when the store failed.
pub(super) fn store_unavailable(error: &StoreError) -> Answer {
    problem(Problem::StoreUnavailable, error.to_string())
}

/// The answer when the commit of a phase was refused once too often.
pub(super) fn refused(refused: Refused) -> Answer {
    match refused {
        Refused::Lost(lost) => problem(Problem::LeaseLost, lost.to_string()),
        Refused::Conflict(conflict) => problem(Problem::Contended, conflict.to_string()),
    }
}
