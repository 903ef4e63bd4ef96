//! Moving time.

use super::{interrupt::Deadline, manners::Refusal, scene::Scene};
use crate::{history::Control, schedule::TimeMove, target::Hook, text::Var};

/// Lets time pass, by the clock hook or by waiting.
///
/// # Errors
/// When time could not be moved; the text says why.
pub(super) async fn pass(scene: &Scene, moved: TimeMove) -> Result<(), String> {
    let began = scene.driver.clock.now();
    let result = if moved.by_hook {
        advance(scene, moved).await
    } else if scene.driver.interrupt.sleep(moved.span.duration()).await {
        Ok(())
    } else {
        Err(Refusal::Interrupted.to_string())
    };
    let failed = result.clone().err();
    scene.log().controls.push(Control { moved, began, ended: scene.driver.clock.now(), failed });
    result.map_err(|why| format!("time could not be moved: {why}"))
}

async fn advance(scene: &Scene, moved: TimeMove) -> Result<(), String> {
    let target = &scene.driver.target;
    let Some(Hook::Request { method, path, json }) = &target.hooks.advance_clock else {
        return Err("the target has no request that moves its clock".to_owned());
    };
    let mut vars = scene.vars("clock", "clock");
    vars.insert("seconds".to_owned(), Var::Number(moved.span.millis().div_ceil(1000)));
    let tenant = target.default_tenant();
    let call = scene.own_call(0, method, path, &vars, &tenant.headers, json.as_ref()).await?;
    let deadline = Deadline::after(target.limits.timeout.duration(), &scene.driver.interrupt);
    let (status, body) = scene.fetch(0, &call, &deadline).await?;
    if (200..300).contains(&status) {
        Ok(())
    } else {
        Err(format!("the clock hook was answered with {status}: {}", scene.excerpt(&body)))
    }
}
