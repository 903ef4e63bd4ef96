#![allow(clippy::unwrap_used)]

use super::*;

const EMBEDDED: Ability = Ability { extensions: true, exact: true, primer: true };
const REAL: Ability = Ability { extensions: false, exact: true, primer: true };
const SIZES: Sizes = Sizes { request_head: 100, request: 120, answer: Some(200), patience: Duration::from_secs(5) };
const PROTOCOLS: [Protocol; 4] = [Protocol::Http1, Protocol::Tls, Protocol::H2c, Protocol::H2];

fn row(word: &str, protocol: Protocol, ability: Ability) -> Option<String> {
    compile(Fault::from_word(word).unwrap(), protocol, ability, SIZES).ok().map(|recipe| recipe.to_string())
}

#[test]
fn the_core_needs_no_extension() {
    let everywhere = [
        "refuse",
        "lose-request",
        "cut-body",
        "cut-while-handling",
        "lose-response",
        "delay-response",
        "mute-response",
        "slow-request",
        "give-up-unnoticed",
        "hold",
        "cut-before-last-byte",
    ];
    for word in everywhere {
        for protocol in PROTOCOLS {
            assert!(row(word, protocol, REAL).is_some(), "{word} {protocol:?}");
            assert!(row(word, protocol, EMBEDDED).is_some(), "{word} {protocol:?}");
        }
    }
}

#[test]
fn what_a_real_one_cannot_do_says_so() {
    for word in ["accept-and-close", "resend-by-gateway", "cut-response"] {
        let fault = Fault::from_word(word).unwrap();
        let why = compile(fault, Protocol::Http1, REAL, SIZES).unwrap_err().to_string();
        assert!(why.contains("embedded fault proxy"), "{word}: {why}");
        assert!(compile(fault, Protocol::Http1, EMBEDDED, SIZES).is_ok());
    }
    let weak = Ability { primer: false, exact: false, ..REAL };
    let reset = Fault::LoseResponse(Ending::Reset);
    assert!(compile(reset, Protocol::Http1, weak, SIZES).is_err());
    assert!(compile(Fault::LoseResponse(Ending::Close), Protocol::Http1, weak, SIZES).is_err());
}

#[test]
fn recipes_read_as_the_rows_of_the_map() {
    for (word, protocol, ability, expected) in [
        ("refuse", Protocol::H2, REAL, "a1: close the proxy"),
        ("lose-request", Protocol::Tls, REAL, "a4: after priming: limit_data bytes=0 upstream"),
        ("lose-response", Protocol::H2c, EMBEDDED, "d1: after priming: limit_data bytes=0 downstream"),
        ("cut-body", Protocol::Http1, REAL, "b: after priming: limit_data bytes=100 upstream"),
        ("cut-body", Protocol::Tls, EMBEDDED, "b: at the split: limit_data bytes=0 upstream"),
        ("cut-at-last-byte", Protocol::Http1, REAL, "i: after priming: limit_data bytes=120 upstream"),
        ("cut-before-last-byte", Protocol::Http1, REAL, "i-1: after priming: limit_data bytes=119 upstream"),
        ("cut-while-handling", Protocol::Tls, REAL, "c1: after the request: wait 50 ms, close the proxy"),
        ("mute-response", Protocol::Http1, REAL, "f2: after priming: bandwidth rate=0 downstream"),
    ] {
        assert_eq!(row(word, protocol, ability).as_deref(), Some(expected), "{word} {protocol:?}");
    }
}

#[test]
fn t10_bytes_are_never_counted_inside_tls_and_h2_except_zero() {
    for word in Fault::WORDS {
        for protocol in [Protocol::Tls, Protocol::H2c, Protocol::H2] {
            for ability in [EMBEDDED, REAL] {
                let Ok(made) = compile(Fault::from_word(word).unwrap(), protocol, ability, SIZES) else { continue };
                let moves = made.before.iter().chain(&made.arm).chain(&made.at_split).chain(&made.after);
                for one in moves {
                    if let Move::Add(_, Toxic::LimitData { bytes }) = one {
                        assert_eq!(*bytes, 0, "{word} {protocol:?}");
                    }
                }
            }
        }
    }
}

/// Every recipe there is.
fn recipes() -> Vec<(String, Recipe)> {
    let mut all = Vec::new();
    for word in Fault::WORDS {
        for ending in [Ending::Close, Ending::Reset] {
            for protocol in PROTOCOLS {
                for ability in [EMBEDDED, REAL] {
                    let fault = Fault::from_word(word).unwrap().ending(ending);
                    let what = format!("{fault:?} {protocol:?} {ability:?}");
                    all.extend(compile(fault, protocol, ability, SIZES).ok().map(|made| (what, made)));
                }
            }
        }
    }
    all
}

fn moves(recipe: &Recipe) -> impl Iterator<Item = &Move> {
    recipe.before.iter().chain(&recipe.arm).chain(&recipe.at_split).chain(&recipe.after)
}

#[test]
fn t01_a_reset_is_prepared_before_the_connection_or_made_by_a_trigger() {
    for (what, recipe) in recipes().iter().filter(|(_, recipe)| recipe.ending == Some(Ending::Reset)) {
        let prepared = recipe.before.iter().any(|one| matches!(one, Move::Asleep(_, Toxic::ResetPeer { .. })));
        let triggered = recipe.arm.iter().any(|one| matches!(one, Move::Trigger(_)));
        assert!(prepared || triggered, "{what}");
    }
}

#[test]
fn t02_nothing_sleeps_where_no_reset_is_wanted() {
    for (what, recipe) in recipes().iter().filter(|(_, recipe)| recipe.ending != Some(Ending::Reset)) {
        assert!(!moves(recipe).any(|one| matches!(one, Move::Asleep(..))), "{what}");
    }
}

#[test]
fn t04_a_timeout_never_stands_for_a_cut_by_time() {
    for (what, recipe) in recipes() {
        assert!(!moves(&recipe).any(|one| matches!(one, Move::Add(_, Toxic::Timeout { .. }))), "{what}");
    }
}

#[test]
fn t05_a_cut_towards_the_server_never_counts_as_executed() {
    for (what, recipe) in recipes() {
        let cuts_up = moves(&recipe).any(|one| match one {
            Move::Add(Stream::Upstream, Toxic::LimitData { .. } | Toxic::ResetPeer { .. }) | Move::Wake => true,
            Move::Trigger(Trigger { at, deed: Deed::Cut { server: ServerSide::Ends(_), .. }, .. }) => {
                matches!(at, Point::RequestHead | Point::RequestBody(_) | Point::RequestBodyBeforeEnd(_))
            }
            _ => false,
        });
        assert!(!cuts_up || recipe.executes != Executes::Yes, "{what}");
    }
}
