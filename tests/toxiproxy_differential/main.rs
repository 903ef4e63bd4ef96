//! The behaviour of Toxiproxy, row by row, asked of the embedded server and of a real one.
//!
//! Every row in [`api`], [`engine`] and [`cuts`] is a test of its own against the embedded server. With
//! `IDEMPROOF_TOXIPROXY=http://host:port` the same rows run one after the other against the Toxiproxy there, which
//! must reach and be reached on 127.0.0.1. Rows in [`own`] show what the embedded server does better on purpose.
//!
//! Nothing here asserts that something is fast: delays have lower bounds only, everything else is order and counts.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod api;
mod cuts;
mod engine;
mod harness;
mod own;

use std::panic::AssertUnwindSafe;

use harness::Target;

macro_rules! rows {
    (both { $($room:ident :: $row:ident,)* } embedded { $($own:ident,)* }) => {
        mod embedded {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $row() {
                    let target = crate::harness::Target::embedded().await;
                    crate::$room::$row(&target).await;
                    target.stop().await;
                }
            )*
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $own() {
                    let target = crate::harness::Target::embedded().await;
                    crate::own::$own(&target).await;
                    target.stop().await;
                }
            )*
        }

        /// All rows in order against the real server; tells all that fail.
        async fn all_rows(target: &Target) -> Vec<&'static str> {
            let mut failed = Vec::new();
            $(
                if !passes($room::$row(target)).await {
                    failed.push(stringify!($row));
                }
                target.sweep().await;
            )*
            failed
        }
    };
}

rows! {
    both {
    api::row_01_request_id_on_routed_answers,
    api::row_02_browsers_are_refused,
    api::row_04_the_list_is_an_object,
    api::row_05_missing_fields_have_exact_texts,
    api::row_07_create_list_show,
    api::row_08_created_disabled,
    api::row_09_enabling_opens_and_disabling_closes_the_port,
    api::row_10_delete,
    api::row_11_port_conflict,
    api::row_12_name_conflict,
    api::row_13_populate,
    api::row_16_populate_again,
    api::row_17_populate_checks_all_before_making_any,
    api::row_18_populate_stops_at_the_first_failure,
    api::row_20_reset,
    api::row_21_toxics_are_listed_and_read_back,
    api::row_24_toxic_names_are_unique,
    api::row_27_toxicity_is_read_back_as_given,
    api::row_29_updates_keep_what_is_not_given,
    api::row_31_version,
    api::row_32_streams_and_types_are_checked,
    api::row_35_starting_and_stopping_twice,
    api::row_36_updates_of_addresses,
    api::a12_status_table,
    api::a13_a_failed_move_leaves_the_proxy_closed_and_heals,
    engine::row_33_messages_arrive_whole,
    engine::row_34_upstream_down,
    engine::row_37_a_live_connection_survives_noops,
    engine::row_39_latency,
    engine::row_42_bandwidth,
    engine::row_43_slicer,
    engine::row_44_limit_data,
    engine::row_45_reset_peer,
    engine::row_46_removing_a_latency_before_a_timeout,
    engine::row_47_removing_a_timeout_closes_both_sides,
    engine::row_48_no_byte_is_lost_while_toxics_come_and_go,
    engine::row_49_toxicity,
    cuts::a1_arming_is_a_barrier,
    cuts::a4_half_close_closes_both_sides,
    cuts::a5_a_reset_is_passed_on_as_an_end,
    cuts::a6_limit_exact_and_zero,
    cuts::a7_updates_keep_the_count,
    cuts::a8_dropped_bytes_restart_a_timeout,
    cuts::a9_primer_turns_endings_into_resets,
    cuts::a10_rate_zero_holds_and_releases,
    cuts::a11_slow_close_hides_a_hang_up,
    cuts::a15_two_callers_at_once,
    cuts::the_client_and_its_self_test_work,
    }
    embedded {
    a2_changes_are_served_under_back_pressure,
    a3_crashers_are_refused,
    row_50_removal_when_nobody_reads,
    x5_reset_peer_resets_open_connections,
    reset_under_way_can_be_removed,
    a_hanging_dial_holds_nobody_up,
    a14_a_thousand_cuts_leave_no_task,
    malformed_bodies_are_answered,
    stopping_closes_everything,
    }
}

async fn passes(row: impl Future<Output = ()>) -> bool {
    let row = AssertUnwindSafe(row);
    let mut row = std::pin::pin!(row.0);
    std::future::poll_fn(|cx| match std::panic::catch_unwind(AssertUnwindSafe(|| row.as_mut().poll(cx))) {
        Ok(std::task::Poll::Pending) => std::task::Poll::Pending,
        Ok(std::task::Poll::Ready(())) => std::task::Poll::Ready(true),
        Err(_) => std::task::Poll::Ready(false),
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn real_toxiproxy() {
    let Ok(url) = std::env::var("IDEMPROOF_TOXIPROXY") else {
        assert!(std::env::var_os("IDEMPROOF_REQUIRE_SERVICES").is_none(), "IDEMPROOF_TOXIPROXY is not set");
        println!(
            "skipped: IDEMPROOF_TOXIPROXY=http://host:port is not set, so there is no real Toxiproxy to compare with"
        );
        return;
    };
    let target = Target::real(url).await;
    let failed = all_rows(&target).await;
    assert!(failed.is_empty(), "rows that fail on the real Toxiproxy: {failed:#?}");
}
