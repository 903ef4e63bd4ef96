//! What only the embedded server can do: X1 to X12 of the list of extensions. A real one refuses all of it.

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::harness::{Ending, Target, Upstream, closed_port, dial, drain, read_n, silent, soon};

const REQUEST: &[u8] = b"POST /pay HTTP/1.1\r\nHost: x\r\nIdempotency-Key: k1\r\nContent-Length: 10\r\n\r\n0123456789";
const HEAD: usize = REQUEST.len() - 10;
const ANSWER: &[u8] = b"HTTP/1.1 201 Created\r\nContent-Length: 8\r\n\r\nabcdefgh";
const ANSWER_HEAD: usize = ANSWER.len() - 8;

fn below(proxy: &str, rest: &str) -> String {
    format!("/idemproof{proxy}/{rest}")
}

async fn trigger(t: &Target, proxy: &str, body: Value) -> String {
    let answer = t.call("POST", &below(proxy, "triggers"), body).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    below(proxy, &format!("triggers/{}", answer.json()["name"].as_str().unwrap()))
}

async fn wait(t: &Target, proxy: &str, body: Value) -> Value {
    let answer = t.call("POST", &below(proxy, "wait"), body).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer.json()
}

/// The ledger of the last connection, once it is over.
async fn over(t: &Target, proxy: &str, number: u64) -> Value {
    wait(t, proxy, json!({"until": "ended", "connection": number})).await
}

/// Sends the request and plays the server as far as the proxy lets both. Gives what each side got and how it ended.
async fn play(client: &mut TcpStream, server: &mut TcpStream) -> [(Vec<u8>, Ending); 2] {
    client.write_all(REQUEST).await.unwrap();
    let serve = async {
        let mut got = Vec::new();
        while got.len() < REQUEST.len() {
            let mut byte = [0];
            match soon(tokio::io::AsyncReadExt::read(server, &mut byte)).await {
                Ok(1) => got.push(byte[0]),
                Ok(_) => return (got, Ending::Fin),
                Err(_) => return (got, Ending::Rst),
            }
        }
        // It may meet a connection that is cut already.
        let _ = server.write_all(ANSWER).await;
        let (rest, ending) = drain(server).await;
        assert!(rest.is_empty());
        (got, ending)
    };
    let (client, server) = tokio::join!(drain(client), serve);
    [client, server]
}

pub(crate) async fn x1_points_of_an_exchange(t: &Target) {
    let mut upstream = Upstream::start().await;
    let (all, none) = (REQUEST.len(), 0);
    for (point, request, answer) in [
        (json!({"at": "request-head"}), HEAD, none),
        (json!({"at": "request-body", "bytes": 0}), HEAD, none),
        (json!({"at": "request-body", "bytes": 4}), HEAD + 4, none),
        (json!({"at": "request-body", "bytes": 1, "from_end": true}), all - 1, none),
        (json!({"at": "request-end"}), all, none),
        (json!({"at": "response-start"}), all, none),
        (json!({"at": "response-head"}), all, ANSWER_HEAD),
        (json!({"at": "response-body", "bytes": 3}), all, ANSWER_HEAD + 3),
        (json!({"at": "response-end"}), all, ANSWER.len()),
    ] {
        let (path, addr) = t.proxy(upstream.addr).await;
        let made = trigger(t, &path, point.clone()).await;
        let (mut client, mut server) = upstream.raw_pair(addr).await;
        let [(seen, client_end), (got, server_end)] = play(&mut client, &mut server).await;
        assert_eq!(String::from_utf8_lossy(&got), String::from_utf8_lossy(&REQUEST[..request]), "{point}");
        assert_eq!(String::from_utf8_lossy(&seen), String::from_utf8_lossy(&ANSWER[..answer]), "{point}");
        assert_eq!((client_end, server_end), (Ending::Fin, Ending::Fin), "{point}");
        assert_eq!(t.get(&made).await.json()["fired"], 1, "{point}");
        let ledger = over(t, &path, 1).await;
        assert_eq!(ledger["upstream"]["written"], request, "{point}: {ledger}");
        assert_eq!(ledger["downstream"]["written"], answer, "{point}: {ledger}");
        assert_eq!(ledger["cause"].as_str().unwrap().split(' ').next(), Some("trigger"), "{point}");
        assert_eq!((&ledger["client"], &ledger["server"]), (&json!("closed"), &json!("closed")), "{point}");
        assert_eq!(ledger["requests"], u64::from(request == all), "{point}");
    }
}

pub(crate) async fn x1_filters_choose_the_exchange(t: &Target) {
    let mut upstream = Upstream::start().await;
    for (filter, hits) in [
        (json!({"key": "k1"}), true),
        (json!({"key": "k2"}), false),
        (json!({"method": "POST", "path": "/pay", "request": 1, "connection": 1}), true),
        (json!({"method": "GET"}), false),
        (json!({"path": "/other"}), false),
        (json!({"request": 2}), false),
        (json!({"connection": 2}), false),
    ] {
        let (path, addr) = t.proxy(upstream.addr).await;
        let mut body = filter.clone();
        body["at"] = json!("response-start");
        trigger(t, &path, body).await;
        let (mut client, mut server) = upstream.raw_pair(addr).await;
        client.write_all(REQUEST).await.unwrap();
        read_n(&mut server, REQUEST.len()).await;
        server.write_all(ANSWER).await.unwrap();
        if hits {
            assert_eq!(drain(&mut client).await, (vec![], Ending::Fin), "{filter}");
        } else {
            assert_eq!(read_n(&mut client, ANSWER.len()).await, ANSWER, "{filter}");
        }
    }
}

pub(crate) async fn x1_a_trigger_on_an_open_connection_counts_from_where_it_is(t: &Target) {
    let mut upstream = Upstream::start().await;
    let (path, addr) = t.proxy(upstream.addr).await;
    let (mut client, mut server) = upstream.raw_pair(addr).await;
    client.write_all(&REQUEST[..HEAD + 2]).await.unwrap();
    read_n(&mut server, HEAD + 2).await;
    trigger(t, &path, json!({"at": "request-body", "bytes": 5})).await;
    client.write_all(&REQUEST[HEAD + 2..]).await.unwrap();
    assert_eq!(drain(&mut server).await, (b"234".to_vec(), Ending::Fin));
}

pub(crate) async fn x2_records_are_counted_from_arming(t: &Target) {
    const RECORD: [u8; 7] = [23, 3, 3, 0, 2, 7, 7];
    const HELLO: [u8; 6] = [22, 3, 1, 0, 1, 1];
    let mut upstream = Upstream::start().await;
    for (records, passes) in [(0, 0), (1, 7), (2, 14)] {
        let (path, addr) = t.proxy(upstream.addr).await;
        let (mut client, mut server) = upstream.raw_pair(addr).await;
        let primed = [&HELLO[..], &RECORD].concat();
        client.write_all(&primed).await.unwrap();
        assert_eq!(read_n(&mut server, primed.len()).await, primed);
        trigger(t, &path, json!({"at": "request-record", "records": records})).await;
        assert!(silent(&mut server).await);
        client.write_all(&[RECORD, RECORD, RECORD].concat()).await.unwrap();
        assert_eq!(drain(&mut server).await.0.len(), passes, "{records}");
        let ledger = over(t, &path, 1).await;
        assert_eq!((&ledger["speech"], &ledger["upstream"]["records"]), (&json!("tls"), &json!(records + 1)));
    }
}

pub(crate) async fn x3_each_side_ends_in_its_own_way(t: &Target) {
    let mut upstream = Upstream::start().await;
    for (client_way, server_way) in [
        ("close", "close"),
        ("close", "reset"),
        ("reset", "close"),
        ("reset", "reset"),
        ("close", "keep"),
        ("reset", "keep"),
        ("silent", "keep"),
        ("silent", "reset"),
    ] {
        let (path, addr) = t.proxy(upstream.addr).await;
        trigger(t, &path, json!({"at": "request-end", "client": client_way, "server": server_way})).await;
        let (mut client, mut server) = upstream.raw_pair(addr).await;
        client.write_all(REQUEST).await.unwrap();
        assert_eq!(read_n(&mut server, REQUEST.len()).await, REQUEST);
        let way = format!("client {client_way}, server {server_way}");
        match client_way {
            "close" => assert_eq!(drain(&mut client).await, (vec![], Ending::Fin), "{way}"),
            "reset" => assert_eq!(drain(&mut client).await, (vec![], Ending::Rst), "{way}"),
            _ => assert!(silent(&mut client).await, "{way}"),
        }
        match server_way {
            "close" => assert_eq!(drain(&mut server).await, (vec![], Ending::Fin), "{way}"),
            "reset" => assert_eq!(drain(&mut server).await, (vec![], Ending::Rst), "{way}"),
            _ => {
                assert!(silent(&mut server).await, "{way}: it is left alone");
                server.write_all(ANSWER).await.unwrap();
                let drained = wait(t, &path, json!({"until": "drained"})).await;
                assert_eq!((&drained["answers"], &drained["answers_drained"]), (&json!(0), &json!(1)), "{way}");
                assert_eq!(drain(&mut server).await, (vec![], Ending::Fin), "{way}");
            }
        }
        drop(client);
        let ledger = over(t, &path, 1).await;
        let end = |way: &str| match way {
            "close" | "keep" => "closed",
            "reset" => "reset",
            _ => "peer-closed",
        };
        assert_eq!((&ledger["client"], &ledger["server"]), (&json!(end(client_way)), &json!(end(server_way))), "{way}");
    }
}

/// The answer is on its way already when the client is cut, so that the rest of it is drained.
pub(crate) async fn x3_a_server_that_is_answering_is_drained(t: &Target) {
    let mut upstream = Upstream::start().await;
    for at in ["response-start", "response-head"] {
        for split in [ANSWER.len(), ANSWER_HEAD, ANSWER_HEAD + 3, 5] {
            let (path, addr) = t.proxy(upstream.addr).await;
            trigger(t, &path, json!({"at": at, "client": "reset", "server": "keep"})).await;
            let (mut client, mut server) = upstream.raw_pair(addr).await;
            client.write_all(REQUEST).await.unwrap();
            read_n(&mut server, REQUEST.len()).await;
            server.write_all(&ANSWER[..split]).await.unwrap();
            if at == "response-start" || split >= ANSWER_HEAD {
                drain(&mut client).await;
            }
            // It may have ended already when all of the answer was in the first part.
            let _ = server.write_all(&ANSWER[split..]).await;
            let ledger = over(t, &path, 1).await;
            assert_eq!((&ledger["answers"], &ledger["answers_drained"]), (&json!(0), &json!(1)), "{at} {split}");
            assert_eq!(drain(&mut server).await, (vec![], Ending::Fin), "{at} {split}");
        }
    }
}

pub(crate) async fn x4_a_reset_waits_for_delivery(t: &Target) {
    let body = vec![b'z'; 2_000_000];
    let head = format!("POST / HTTP/1.1\r\nContent-Length: {}\r\n\r\n", body.len());
    let message = [head.as_bytes(), &body].concat();
    let mut upstream = Upstream::start().await;
    let (path, addr) = t.proxy(upstream.addr).await;
    trigger(t, &path, json!({"at": "request-end", "client": "reset", "server": "reset", "delivered": true})).await;
    let (mut client, mut server) = upstream.raw_pair(addr).await;
    let sending = tokio::spawn(async move {
        client.write_all(&message).await.unwrap();
        (drain(&mut client).await, message.len())
    });
    // A reader that starts late would lose what a plain reset throws away.
    assert_eq!(read_n(&mut server, 1).await.len(), 1);
    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    let (got, ending) = drain(&mut server).await;
    let ((seen, client_ending), sent) = sending.await.unwrap();
    assert_eq!((got.len() + 1, ending), (sent, Ending::Rst));
    assert_eq!((seen.len(), client_ending), (0, Ending::Rst));
}

pub(crate) async fn x6_times_and_connections(t: &Target) {
    let mut upstream = Upstream::start().await;
    let (path, addr) = t.proxy(upstream.addr).await;
    let made = trigger(t, &path, json!({"name": "twice", "at": "request-end", "times": 2})).await;
    let mut cut = 0;
    for _ in 0..5 {
        let (mut client, mut server) = upstream.raw_pair(addr).await;
        client.write_all(REQUEST).await.unwrap();
        read_n(&mut server, REQUEST.len()).await;
        let _ = server.write_all(ANSWER).await;
        cut += usize::from(drain_some(&mut client).await.is_empty());
    }
    assert_eq!((cut, &t.get(&made).await.json()["fired"]), (2, &json!(2)));
    assert_eq!(t.delete(&made).await, 204);
    // Of connections that come together, only one is hurt.
    let made = trigger(t, &path, json!({"at": "response-start", "times": 1})).await;
    let mut pairs = Vec::new();
    for _ in 0..8 {
        let (mut client, mut server) = upstream.raw_pair(addr).await;
        client.write_all(REQUEST).await.unwrap();
        read_n(&mut server, REQUEST.len()).await;
        pairs.push((client, server));
    }
    for (_, server) in &mut pairs {
        server.write_all(ANSWER).await.unwrap();
    }
    let mut hurt = 0;
    for (client, _) in &mut pairs {
        hurt += usize::from(drain_some(client).await.is_empty());
    }
    assert_eq!((hurt, &t.get(&made).await.json()["fired"]), (1, &json!(1)));
}

/// One answer, or nothing when the connection ends before.
async fn drain_some(client: &mut TcpStream) -> Vec<u8> {
    let mut answer = vec![0; ANSWER.len()];
    match soon(tokio::io::AsyncReadExt::read_exact(client, &mut answer)).await {
        Ok(_) => answer,
        Err(_) => vec![],
    }
}

pub(crate) async fn x7_ledger_and_waiting(t: &Target) {
    let mut upstream = Upstream::start().await;
    let (path, addr) = t.proxy(upstream.addr).await;
    let late = t.call("POST", &below(&path, "wait"), json!({"until": "accepted", "within": 10})).await;
    assert_eq!(late.error(), (408, "it has not happened within 10 ms".to_owned()));
    let waiting = wait(t, &path, json!({"until": "request"}));
    let exchange = async {
        let (mut client, mut server) = upstream.raw_pair(addr).await;
        client.write_all(REQUEST).await.unwrap();
        read_n(&mut server, REQUEST.len()).await;
        (client, server)
    };
    let (seen, (mut client, mut server)) = tokio::join!(waiting, exchange);
    assert_eq!((&seen["number"], &seen["requests"], &seen["answers_begun"]), (&json!(1), &json!(1), &json!(0)));
    assert_eq!(seen["upstream"]["written"], REQUEST.len());
    server.write_all(&ANSWER[..5]).await.unwrap();
    let begun = wait(t, &path, json!({"until": "answer-begun", "connection": 1})).await;
    assert_eq!((&begun["answers"], &begun["downstream"]["written"]), (&json!(0), &json!(5)));
    server.write_all(&ANSWER[5..]).await.unwrap();
    assert_eq!(wait(t, &path, json!({"until": "answer"})).await["speech"], "http/1");
    assert_eq!(read_n(&mut client, ANSWER.len()).await, ANSWER);
    drop(client);
    let ledger = over(t, &path, 1).await;
    assert_eq!(ledger["cause"], "the client closed the connection");
    assert_eq!((&ledger["client"], &ledger["server"]), (&json!("peer-closed"), &json!("closed")));
    let times: Vec<u64> =
        ["accepted_us", "dialled_us", "ended_us"].iter().map(|at| ledger[at].as_u64().unwrap()).collect();
    assert!(times.is_sorted(), "{times:?}");
    assert_eq!(t.get(&below(&path, "connections")).await.json().as_array().unwrap().len(), 1);
    assert_eq!(t.get(&below(&path, "connections/7")).await.error(), (404, "connection not found".to_owned()));
    // Toxics and peers are named as what they are.
    t.toxic(&path, "upstream", "limit_data", json!({"bytes": 1})).await;
    let (mut client, _server) = upstream.raw_pair(addr).await;
    client.write_all(b"xx").await.unwrap();
    assert_eq!(over(t, &path, 2).await["cause"], "toxic limit_data_upstream");
    let (path, addr) = t.proxy(closed_port().await).await;
    drain(&mut dial(addr).await).await;
    let cause = over(t, &path, 1).await["cause"].as_str().unwrap().to_owned();
    assert!(cause.starts_with("the upstream cannot be reached: "), "{cause}");
}

pub(crate) async fn x8_a_gate_holds_an_answer(t: &Target) {
    let mut upstream = Upstream::start().await;
    let (path, addr) = t.proxy(upstream.addr).await;
    let gate = trigger(t, &path, json!({"name": "gate", "at": "response-start", "do": "hold"})).await;
    let (mut first, mut server) = upstream.raw_pair(addr).await;
    first.write_all(REQUEST).await.unwrap();
    read_n(&mut server, REQUEST.len()).await;
    server.write_all(ANSWER).await.unwrap();
    let held = wait(t, &path, json!({"until": "held"})).await;
    assert_eq!((&held["held"], &held["downstream"]["written"]), (&json!("gate"), &json!(0)));
    // A second exchange passes while the first one's answer waits.
    let (mut second, mut server_two) = upstream.raw_pair(addr).await;
    second.write_all(REQUEST).await.unwrap();
    read_n(&mut server_two, REQUEST.len()).await;
    server_two.write_all(ANSWER).await.unwrap();
    assert_eq!(read_n(&mut second, ANSWER.len()).await, ANSWER);
    assert!(silent(&mut first).await);
    assert_eq!(t.call("POST", &format!("{gate}/release"), json!({})).await.json()["released"], true);
    assert_eq!(read_n(&mut first, ANSWER.len()).await, ANSWER);
    // Removing a gate opens it as well.
    let gate = trigger(t, &path, json!({"at": "request-head", "do": "hold"})).await;
    let (mut third, mut server) = upstream.raw_pair(addr).await;
    third.write_all(REQUEST).await.unwrap();
    assert_eq!(read_n(&mut server, HEAD).await, &REQUEST[..HEAD]);
    assert!(silent(&mut server).await);
    assert_eq!(t.delete(&gate).await, 204);
    assert_eq!(read_n(&mut server, 10).await, &REQUEST[HEAD..]);
}

pub(crate) async fn x9_a_seed_decides_chance(_: &Target) {
    let mut patterns = Vec::new();
    for seed in [7, 7, 8] {
        let t = Target::seeded(seed).await;
        let mut upstream = Upstream::start().await;
        let body = json!({"name": "same", "listen": "127.0.0.1:0", "upstream": upstream.addr.to_string()});
        let made = t.call("POST", "/proxies", body).await.json();
        let addr = made["listen"].as_str().unwrap().parse().unwrap();
        let toxic = json!({"type": "limit_data", "stream": "upstream", "toxicity": 0.5});
        t.toxic_with("/proxies/same", toxic).await;
        let mut pattern = String::new();
        for _ in 0..40 {
            let (mut client, mut server) = upstream.raw_pair(addr).await;
            client.write_all(b"x").await.unwrap();
            client.shutdown().await.unwrap();
            pattern.push(if drain(&mut server).await.0.is_empty() { '-' } else { 'x' });
        }
        assert_eq!(t.get("/idemproof").await.json()["seed"], seed);
        patterns.push(pattern);
        t.stop().await;
    }
    assert_eq!(patterns[0], patterns[1]);
    assert_ne!(patterns[0], patterns[2]);
    assert!(patterns[0].contains('x') && patterns[0].contains('-'));
}

pub(crate) async fn x10_a_gateway_sends_again(t: &Target) {
    let mut upstream = Upstream::start().await;
    for (answer, server_way) in [("first", "close"), ("second", "close"), ("second", "reset"), ("second", "keep")] {
        let (path, addr) = t.proxy(upstream.addr).await;
        trigger(t, &path, json!({"at": "request-end", "do": "replay", "answer": answer, "server": server_way})).await;
        let (mut client, mut first) = upstream.raw_pair(addr).await;
        client.write_all(REQUEST).await.unwrap();
        assert_eq!(read_n(&mut first, REQUEST.len()).await, REQUEST);
        let mut second = upstream.accepted().await;
        assert_eq!(read_n(&mut second, REQUEST.len()).await, REQUEST, "the same bytes once more");
        let way = format!("{answer} {server_way}");
        match (answer, server_way) {
            ("second", "close") => assert_eq!(drain(&mut first).await, (vec![], Ending::Fin), "{way}"),
            ("second", "reset") => assert_eq!(drain(&mut first).await, (vec![], Ending::Rst), "{way}"),
            _ => assert!(silent(&mut first).await, "{way}"),
        }
        let mine = ANSWER.to_ascii_lowercase();
        let other = [b"HTTP/1.1 500 No\r\nContent-Length: 8\r\n\r\n".as_slice(), b"otherone"].concat();
        let mine = [b"HTTP/1.1 ".as_slice(), &mine[9..]].concat();
        let (for_client, for_nobody) =
            if answer == "first" { (&mut first, &mut second) } else { (&mut second, &mut first) };
        let _ = for_nobody.write_all(&other).await;
        for_client.write_all(&mine).await.unwrap();
        assert_eq!(read_n(&mut client, mine.len()).await, mine, "{way}");
        let seen = wait(t, &path, json!({"until": "replayed"})).await;
        assert_eq!(seen["replays"][0]["sent"], true, "{way}");
        if answer == "first" {
            assert_eq!((&seen["replays"][0]["status"], &seen["replays"][0]["whole"]), (&json!(500), &json!(true)));
        }
        // The exchange goes on as if nothing had happened.
        client.write_all(REQUEST).await.unwrap();
        assert_eq!(read_n(for_client, REQUEST.len()).await, REQUEST, "{way}");
    }
}

pub(crate) async fn x11_dial_faults(t: &Target) {
    let mut upstream = Upstream::start().await;
    let (path, addr) = t.proxy(upstream.addr).await;
    let setting = below(&path, "dial");
    assert_eq!(t.get(&setting).await.json(), json!({"mode": "connect", "delay": 0}));
    t.call("POST", &setting, json!({"mode": "refuse"})).await;
    assert_eq!(drain(&mut dial(addr).await).await, (vec![], Ending::Fin));
    t.call("POST", &setting, json!({"mode": "blackhole"})).await;
    let mut lost = dial(addr).await;
    lost.write_all(REQUEST).await.unwrap();
    assert!(silent(&mut lost).await);
    // Others are not held up by it.
    t.call("POST", &setting, json!({"delay": 150})).await;
    let start = std::time::Instant::now();
    let (_client, _server) = upstream.raw_pair(addr).await;
    assert!(start.elapsed() >= std::time::Duration::from_millis(150));
    drop(lost);
    assert_eq!(over(t, &path, 2).await["cause"], "the client closed the connection");
    assert_eq!(t.call("POST", &setting, json!({"mode": "sideways"})).await.status, 400);
}

pub(crate) async fn x12_one_connection_is_cut(t: &Target) {
    let mut upstream = Upstream::start().await;
    let (path, addr) = t.proxy(upstream.addr).await;
    let (mut first, mut server) = upstream.pair(addr).await;
    let (mut second, mut server_two) = upstream.pair(addr).await;
    let one = below(&path, "connections/1");
    let answer = t.call("DELETE", &one, json!({"client": "reset"})).await;
    assert_eq!((answer.status, answer.text.as_str()), (204, ""));
    assert_eq!(drain(&mut first).await, (vec![], Ending::Rst));
    assert_eq!(drain(&mut server).await, (vec![], Ending::Fin));
    assert_eq!(over(t, &path, 1).await["cause"], "killed");
    assert_eq!(t.delete(&one).await, 404);
    second.write_all(b"still here").await.unwrap();
    assert_eq!(read_n(&mut server_two, 10).await, b"still here");
    assert_eq!(t.delete(&below(&path, "connections/2")).await, 204);
    assert_eq!(drain(&mut second).await, (vec![], Ending::Fin));
}

/// Asked of both: a real Toxiproxy knows none of it and says so.
pub(crate) async fn extensions_are_refused_cleanly_elsewhere(t: &Target) {
    let (path, _) = t.proxy(closed_port().await).await;
    for (verb, rest) in [
        ("GET", "connections"),
        ("DELETE", "connections/1"),
        ("POST", "wait"),
        ("POST", "triggers"),
        ("DELETE", "triggers/x"),
        ("POST", "triggers/x/release"),
        ("POST", "dial"),
    ] {
        let answer = t.call(verb, &below(&path, rest), json!({})).await;
        if t.is_real() {
            assert_eq!((answer.status, answer.text.as_str()), (404, "404 page not found\n"), "{verb} {rest}");
        } else {
            assert_ne!(answer.text, "404 page not found\n", "{verb} {rest}");
        }
    }
    assert_eq!(t.get("/idemproof").await.status, if t.is_real() { 404 } else { 200 });
    if !t.is_real() {
        assert_eq!(t.send("PUT", &below(&path, "triggers"), "rows", "").await.status, 405);
        assert_eq!(t.get("/idemproof/nowhere").await.status, 404);
        let twice = json!({"name": "same", "at": "request-end"});
        trigger(t, &path, twice.clone()).await;
        let again = t.call("POST", &below(&path, "triggers"), twice).await;
        assert_eq!(again.error(), (409, "trigger already exists".to_owned()));
    }
}
