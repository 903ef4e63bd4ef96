//! The faults towards outside systems.

use super::{Fault, FaultSet};
use crate::reference::store::{Effect, Kind, Row};
use crate::reference::work::{Halt, Work};

/// The key that a call to the payment network carries.
pub(in crate::reference) fn forwarded(faults: FaultSet, key: &str) -> Option<String> {
    if faults.contains(Fault::KeyNotForwardedDownstream) {
        None
    } else if faults.contains(Fault::DownstreamKeyPerCall) {
        Some(format!("{key} {}", uuid::Uuid::new_v4()))
    } else {
        Some(key.to_owned())
    }
}

/// The message that is to be put into the outbox. With [`Fault::NotificationOutsideOutbox`] it is delivered at once, by a
/// run that may yet fail, under a name that no other run gives it.
pub(in crate::reference) async fn unsent(work: &Work, message: Effect) -> Result<Option<Effect>, Halt> {
    if let Effect::Insert(row) = &message
        && work.faults().contains(Fault::NotificationOutsideOutbox)
    {
        let (mut id, about) = (row.id.clone(), row.body.clone());
        id.kind = Kind::Notification;
        id.tenant = about["tenant"].as_str().unwrap_or_default().to_owned();
        id.id = format!("{} {}", id.id, uuid::Uuid::new_v4());
        let reference = about["reference"].as_str().unwrap_or_default().to_owned();
        let _ = work.store().commit(vec![Effect::Insert(Row::new(id, &reference, about))]).await?;
        return Ok(None);
    }
    Ok(Some(message))
}
