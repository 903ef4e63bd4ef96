//! The behaviour of Toxiproxy, row by row, asked of the embedded server and of a real one.
//!
//! Every row in [`api`], [`engine`] and [`cuts`] is a test of its own against the embedded server. The test
//! `real_toxiproxy` runs the same rows one after the other on the embedded server and on a real one: the program named
//! by `IDEMPROOF_TOXIPROXY_BIN`, or the server at `IDEMPROOF_TOXIPROXY=http://host:port`, which must reach and be
//! reached on 127.0.0.1. What was seen must be equal, and the table of results is `reports/toxiproxy-differential.md`.
//! Rows in [`own`] and [`extensions`] show what the embedded server does better on purpose.
//!
//! Nothing here asserts that something is fast: delays have lower bounds only, everything else is order and counts.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../common/mod.rs"]
mod common;

mod api;
mod cuts;
mod engine;
mod extensions;
mod faults;
mod harness;
mod ledger;
mod lessons;
mod own;
mod robust;
mod runs;
mod table;

use std::panic::AssertUnwindSafe;

use harness::Target;
use table::Compared;

/// How often a row is tried on both servers until they agree: a machine that stalls moves an event in time.
const TRIES: usize = 3;

macro_rules! rows {
    (both { $($room:ident :: $row:ident,)* } embedded { $($own_room:ident :: $own:ident,)* }) => {
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
                    crate::$own_room::$own(&target).await;
                    target.stop().await;
                }
            )*
        }

        /// All rows on both servers, in order, each with what was seen there.
        async fn compare(embedded: &Target, real: &Target) -> Vec<Compared> {
            let mut all = Vec::new();
            $(
                let mut compared = Compared::new(stringify!($room), stringify!($row));
                for _ in 0..TRIES {
                    compared.embedded = recorded(Box::pin($room::$row(embedded))).await;
                    compared.real = recorded(Box::pin($room::$row(real))).await;
                    real.sweep().await;
                    embedded.sweep().await;
                    if compared.agrees() {
                        break;
                    }
                }
                all.push(compared);
            )*
            all
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
    extensions::extensions_are_refused_cleanly_elsewhere,
    lessons::t07_a_toxic_reaches_connections_that_came_before_it,
    lessons::t09_the_answer_is_lost_to_a_client_that_closes_its_half,
    lessons::t11_closing_a_proxy_leaves_the_others_alone,
    lessons::t14_the_first_two_are_dropped_and_the_third_passes,
    lessons::t15_a_reset_is_over_when_it_is_removed,
    lessons::row_38_a_clean_proxy_adds_little,
    lessons::row_40_latency_keeps_the_throughput,
    lessons::row_41_latency_and_closing_do_not_race,
    faults::faults_hit_and_are_witnessed,
    faults::faults_that_miss_are_not_witnessed,
    }
    embedded {
    own::a2_changes_are_served_under_back_pressure,
    own::a3_crashers_are_refused,
    own::row_50_removal_when_nobody_reads,
    own::x5_reset_peer_resets_open_connections,
    own::reset_under_way_can_be_removed,
    own::a_hanging_dial_holds_nobody_up,
    own::a14_a_thousand_cuts_leave_no_task,
    own::malformed_bodies_are_answered,
    own::stopping_closes_everything,
    runs::an_interrupted_run_removes_its_proxies_and_no_others,
    runs::two_runs_share_a_server,
    runs::a_server_that_never_answers_ends_the_run_with_that_reason,
    runs::a_server_that_hangs_midway_makes_cases_inconclusive,
    runs::a_server_that_lies_makes_cases_inconclusive,
    robust::a_thousand_random_cuts_leave_nothing,
    robust::a_hundred_megabytes_in_a_hundred_connections_need_little_memory,
    robust::a_full_table_of_file_descriptors_leaves_the_api_working,
    robust::idle_and_slow_callers_keep_nobody_out,
    robust::random_calls_are_always_answered,
    robust::garbage_on_the_port_of_the_api_hurts_nobody,
    robust::row_51_counters,
    extensions::x1_points_of_an_exchange,
    extensions::x1_filters_choose_the_exchange,
    extensions::x1_a_trigger_on_an_open_connection_counts_from_where_it_is,
    extensions::x2_records_are_counted_from_arming,
    extensions::x3_each_side_ends_in_its_own_way,
    extensions::x3_a_server_that_is_answering_is_drained,
    extensions::x4_a_reset_waits_for_delivery,
    extensions::x6_times_and_connections,
    extensions::x7_ledger_and_waiting,
    extensions::x8_a_gate_holds_an_answer,
    extensions::x9_a_seed_decides_chance,
    extensions::x10_a_gateway_sends_again,
    extensions::x11_dial_faults,
    extensions::x12_one_connection_is_cut,
    }
}

/// Runs a row and gives what was seen in it; nothing when the row fails.
async fn recorded(row: impl Future<Output = ()>) -> Option<Vec<String>> {
    let row = async {
        let row = AssertUnwindSafe(row);
        let mut row = std::pin::pin!(row.0);
        std::future::poll_fn(|cx| match std::panic::catch_unwind(AssertUnwindSafe(|| row.as_mut().poll(cx))) {
            Ok(std::task::Poll::Pending) => std::task::Poll::Pending,
            Ok(std::task::Poll::Ready(())) => std::task::Poll::Ready(true),
            Err(_) => std::task::Poll::Ready(false),
        })
        .await
    };
    let (passed, seen) = ledger::record(row).await;
    passed.then_some(seen)
}

/// Runs the rows on the embedded server and on a real one, compares what was seen, and writes the table of results.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn real_toxiproxy() {
    let started;
    let url = match std::env::var("IDEMPROOF_TOXIPROXY") {
        Ok(url) => url,
        Err(_) => match tokio::task::spawn_blocking(common::toxiproxy::start).await.unwrap() {
            common::Need::Ready(real) => {
                started = real;
                started.url()
            }
            common::Need::Skipped(why) => {
                common::skip(&why);
                return;
            }
        },
    };
    let (embedded, real) = (Target::embedded().await, Target::real(url).await);
    let compared = Box::pin(compare(&embedded, &real)).await;
    embedded.stop().await;
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/reports/toxiproxy-differential.md");
    std::fs::create_dir_all(concat!(env!("CARGO_MANIFEST_DIR"), "/reports")).unwrap();
    std::fs::write(file, table::write(&compared)).unwrap();
    let differ: Vec<_> = compared.iter().filter(|row| !row.agrees()).map(Compared::difference).collect();
    assert!(differ.is_empty(), "{} rows differ:\n{}", differ.len(), differ.join("\n"));
}
