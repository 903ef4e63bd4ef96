//! One request without a key: its effects are committed, and no record says whose they are.

use super::app::App;
use super::handler::{self, Run, refused, store_unavailable};
use super::keyed::{Reply, TRIES};
use super::operations::{Input, Job};
use super::policy::Policy;
use super::store::{Conflict, Refused};
use std::sync::Arc;

/// Runs the handler and commits its effects. When others have changed what it read, it runs again and decides anew.
pub(super) async fn execute(app: &Arc<App>, job: Job, input: Input) -> Reply {
    let dies = input.controls.dies_committed();
    for _ in 0..TRIES {
        let work = app.work(None, None);
        match handler::run(app, job, input.clone(), &work).await {
            Run::Ended(ending, answer) if !Policy::Draft.keeps(ending) => return Reply::Fresh(answer),
            Run::Ended(_, answer) => {
                let effects = work.take();
                match app.store.commit(effects.clone()).await {
                    Ok(Ok(())) => {
                        app.committed(&effects);
                        return if dies { Reply::Died } else { Reply::Fresh(answer) };
                    }
                    Ok(Err(Conflict)) => {}
                    Err(error) => return Reply::Fresh(store_unavailable(&error)),
                }
            }
            Run::Refused(Refused::Conflict(_)) => {}
            Run::Refused(lost) => return Reply::Fresh(refused(lost)),
            Run::Store(error) => return Reply::Fresh(store_unavailable(&error)),
            Run::Died => return Reply::Died,
        }
    }
    Reply::Fresh(refused(Conflict.into()))
}
