//! The HTTP shell: routes, tenants, problem documents.

mod answer;
mod body;
mod cors;
mod problem;
mod routes;
mod tenant;

pub(super) use problem::{Problem, problem};
pub(super) use routes::{Checked, execute, router};
pub(super) use tenant::TENANTS;
