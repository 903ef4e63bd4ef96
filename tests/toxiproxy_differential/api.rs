//! Rows about the HTTP API.

use serde_json::json;

use crate::harness::{Target, closed_port, dial, echo, exchange, is_open, name};

const UPSTREAM: &str = "127.0.0.1:9";

fn error(status: u16, text: &str) -> (u16, String) {
    (status, text.to_owned())
}

pub(crate) async fn row_01_request_id_on_routed_answers(t: &Target) {
    for path in ["/version", "/proxies", "/proxies/absent"] {
        assert_eq!(t.get(path).await.request_id.unwrap().len(), 20, "{path}");
    }
    assert!(t.get("/nowhere").await.request_id.is_none());
    assert!(t.send("PUT", "/version", "rows", "").await.request_id.is_none());
}

pub(crate) async fn row_02_browsers_are_refused(t: &Target) {
    let refused = t.send("GET", "/version", "Mozilla/5.0 (X11)", "").await;
    assert_eq!((refused.status, refused.text.as_str()), (403, "User agent not allowed\n"));
    assert!(refused.content_type.starts_with("text/plain"));
    assert!(refused.request_id.is_some());
    assert_eq!(t.send("GET", "/nowhere", "Mozilla/5.0", "").await.status, 404);
    assert_eq!(t.send("GET", "/version", "mozilla/5.0", "").await.status, 200);
    assert_eq!(t.send("GET", "/version", "curl/8 Mozilla/5.0", "").await.status, 200);
}

pub(crate) async fn row_04_the_list_is_an_object(t: &Target) {
    let list = t.get("/proxies").await;
    assert_eq!((list.status, list.content_type.as_str()), (200, "application/json"));
    if t.alone {
        assert_eq!(list.text, "{}");
    }
}

pub(crate) async fn row_05_missing_fields_have_exact_texts(t: &Target) {
    let answer = t.call("POST", "/proxies", json!({"upstream": UPSTREAM})).await;
    assert_eq!(answer.error(), error(400, "missing required field: name"));
    assert_eq!(answer.text, "{\"error\":\"missing required field: name\",\"status\":400}\n");
    assert_eq!(answer.content_type, "text/plain; charset=utf-8");
    let answer = t.call("POST", "/proxies", json!({"name": name()})).await;
    assert_eq!(answer.error(), error(400, "missing required field: upstream"));
    let answer = t.send("POST", "/proxies", "rows", "").await;
    assert_eq!(answer.error(), error(400, "bad request body: EOF"));
}

pub(crate) async fn row_07_create_list_show(t: &Target) {
    let name = name();
    let body =
        json!({"name": name, "listen": "localhost:0", "upstream": "garbage upstream", "toxics": [{"type": "noop"}]});
    let made = t.call("POST", "/proxies", body).await;
    assert_eq!((made.status, made.content_type.as_str()), (201, "application/json"));
    let mut made = made.json();
    made.as_object_mut().unwrap().remove("Logger");
    let listen = made["listen"].as_str().unwrap().to_owned();
    assert!(listen.starts_with("127.0.0.1:") && !listen.ends_with(":0"), "{listen}");
    let expected =
        json!({"name": name, "listen": listen, "upstream": "garbage upstream", "enabled": true, "toxics": []});
    assert_eq!(made, expected);
    for mut shown in [t.get(&format!("/proxies/{name}")).await.json(), t.get("/proxies").await.json()[&name].clone()] {
        shown.as_object_mut().unwrap().remove("Logger");
        assert_eq!(shown, expected);
    }
    let again = t.call("PATCH", &format!("/proxies/{name}"), json!({"name": "other"})).await;
    assert_eq!((again.status, again.json()["name"].as_str().unwrap()), (200, name.as_str()));
}

pub(crate) async fn row_08_created_disabled(t: &Target) {
    let (name, port) = (name(), closed_port().await);
    let listen = format!("localhost:{}", port.port());
    let body = json!({"name": name, "listen": listen, "upstream": UPSTREAM, "enabled": false});
    let made = t.call("POST", "/proxies", body).await.json();
    assert_eq!((&made["listen"], &made["enabled"]), (&json!(listen), &json!(false)));
    assert!(!is_open(port).await);
}

pub(crate) async fn row_09_enabling_opens_and_disabling_closes_the_port(t: &Target) {
    let (name, port) = (name(), closed_port().await);
    let body = json!({"name": name, "listen": port.to_string(), "upstream": UPSTREAM, "enabled": false});
    assert_eq!(t.call("POST", "/proxies", body).await.status, 201);
    for (verb, enabled) in [("POST", true), ("PATCH", false), ("PATCH", true), ("POST", false)] {
        let path = format!("/proxies/{name}");
        assert_eq!(t.call(verb, &path, json!({"enabled": enabled})).await.json()["enabled"], enabled);
        assert_eq!(is_open(port).await, enabled);
    }
}

pub(crate) async fn row_10_delete(t: &Target) {
    let (path, port) = t.proxy(closed_port().await).await;
    assert!(is_open(port).await);
    let gone = t.send("DELETE", &path, "rows", "").await;
    assert_eq!((gone.status, gone.text.as_str()), (204, ""));
    assert!(!is_open(port).await);
    assert_eq!(t.get(&path).await.error(), error(404, "proxy not found"));
    assert_eq!(t.send("DELETE", &path, "rows", "").await.error(), error(404, "proxy not found"));
}

pub(crate) async fn row_11_port_conflict(t: &Target) {
    let (path, port) = t.proxy(closed_port().await).await;
    let body = json!({"name": name(), "listen": port.to_string(), "upstream": UPSTREAM});
    let taken = t.call("POST", "/proxies", body.clone()).await.error();
    assert_eq!(taken, error(500, &format!("listen tcp {port}: bind: address already in use")));
    assert_eq!(t.delete(&path).await, 204);
    assert_eq!(t.call("POST", "/proxies", body).await.status, 201);
    for (listen, text) in [
        ("nonsense", "listen tcp: address nonsense: missing port in address"),
        ("127.0.0.1:99999", "listen tcp: address 99999: invalid port"),
    ] {
        let body = json!({"name": name(), "listen": listen, "upstream": UPSTREAM});
        assert_eq!(t.call("POST", "/proxies", body).await.error(), error(500, text));
    }
}

pub(crate) async fn row_12_name_conflict(t: &Target) {
    let name = name();
    let body = json!({"name": name, "listen": "127.0.0.1:0", "upstream": UPSTREAM});
    assert_eq!(t.call("POST", "/proxies", body.clone()).await.status, 201);
    assert_eq!(t.call("POST", "/proxies", body.clone()).await.error(), error(409, "proxy already exists"));
    assert_eq!(t.delete(&format!("/proxies/{name}")).await, 204);
    assert_eq!(t.call("POST", "/proxies", body).await.status, 201);
}

pub(crate) async fn row_13_populate(t: &Target) {
    let (first, second) = (name(), name());
    let body = json!([
        {"name": second, "listen": "127.0.0.1:0", "upstream": UPSTREAM},
        {"name": first, "listen": "127.0.0.1:0", "upstream": UPSTREAM, "enabled": false},
    ]);
    let made = t.call("POST", "/populate", body).await;
    assert_eq!((made.status, made.content_type.as_str()), (201, "application/json"));
    let list = made.json()["proxies"].clone();
    assert_eq!((&list[0]["name"], &list[0]["enabled"]), (&json!(second), &json!(true)));
    assert_eq!((&list[1]["name"], &list[1]["enabled"]), (&json!(first), &json!(false)));
    assert!(is_open(list[0]["listen"].as_str().unwrap().parse().unwrap()).await);
    t.toxic(&format!("/proxies/{first}"), "upstream", "noop", json!({})).await;
    for empty in [json!([]), json!(null)] {
        let made = t.call("POST", "/populate", empty).await;
        assert_eq!((made.status, made.json()), (201, json!({"proxies": null})));
    }
}

pub(crate) async fn row_16_populate_again(t: &Target) {
    let (same, other, port) = (name(), name(), closed_port().await);
    let body = |listen: String| {
        json!([
            {"name": same, "listen": listen, "upstream": UPSTREAM},
            {"name": other, "listen": "127.0.0.1:0", "upstream": UPSTREAM},
        ])
    };
    let made = t.call("POST", "/populate", body(port.to_string())).await.json();
    for name in [&same, &other] {
        t.toxic(&format!("/proxies/{name}"), "upstream", "noop", json!({})).await;
    }
    let again = t.call("POST", "/populate", body(format!("localhost:{}", port.port()))).await;
    let again_list = again.json()["proxies"].clone();
    assert_eq!(again.status, 201);
    assert_eq!(again_list[0]["toxics"].as_array().unwrap().len(), 1, "the same proxy is left alone");
    assert_eq!(again_list[1]["toxics"], json!([]), "another one takes its place");
    assert_ne!(made["proxies"][1]["listen"], again_list[1]["listen"]);
}

pub(crate) async fn row_17_populate_checks_all_before_making_any(t: &Target) {
    let name = name();
    let body = json!([{"name": name, "listen": "127.0.0.1:0", "upstream": UPSTREAM}, {"upstream": UPSTREAM}]);
    let refused = t.call("POST", "/populate", body).await;
    assert_eq!(refused.error(), error(400, "missing required field: name at proxy 2"));
    assert_eq!(refused.json()["proxies"], json!(null));
    assert_eq!(refused.content_type, "application/json");
    assert_eq!(t.get(&format!("/proxies/{name}")).await.status, 404);
}

pub(crate) async fn row_18_populate_stops_at_the_first_failure(t: &Target) {
    let (_, taken) = t.proxy(closed_port().await).await;
    let names = [name(), name(), name()];
    let body = json!([
        {"name": names[0], "listen": "127.0.0.1:0", "upstream": UPSTREAM},
        {"name": names[1], "listen": taken.to_string(), "upstream": UPSTREAM},
        {"name": names[2], "listen": "127.0.0.1:0", "upstream": UPSTREAM},
    ]);
    let refused = t.call("POST", "/populate", body).await;
    assert_eq!(refused.error(), error(500, &format!("listen tcp {taken}: bind: address already in use")));
    let standing = refused.json()["proxies"].clone();
    assert_eq!((standing.as_array().unwrap().len(), &standing[0]["name"]), (1, &json!(names[0])));
    for (name, status) in names.iter().zip([200, 404, 404]) {
        assert_eq!(t.get(&format!("/proxies/{name}")).await.status, status);
    }
}

pub(crate) async fn row_20_reset(t: &Target) {
    if !t.alone {
        println!("row 20 skipped: a reset would touch the proxies of others on this server");
        return;
    }
    let (path, port) = t.proxy(closed_port().await).await;
    t.toxic(&path, "downstream", "latency", json!({})).await;
    t.patch(&path, json!({"enabled": false})).await;
    let reset = t.send("POST", "/reset", "rows", "").await;
    assert_eq!((reset.status, reset.text.as_str()), (204, ""));
    let shown = t.get(&path).await.json();
    assert_eq!((&shown["enabled"], &shown["toxics"]), (&json!(true), &json!([])));
    assert!(is_open(port).await);
}

pub(crate) async fn row_21_toxics_are_listed_and_read_back(t: &Target) {
    let (path, _) = t.proxy(closed_port().await).await;
    let toxics = format!("{path}/toxics");
    assert_eq!(t.get(&toxics).await.text, "[]");
    let down = json!({"name": "d", "type": "latency", "stream": "downstream", "attributes": {"latency": 100}});
    let added = t.call("POST", &toxics, down).await;
    assert_eq!((added.status, added.content_type.as_str()), (200, "application/json"));
    let full = json!({
        "name": "d", "type": "latency", "stream": "downstream", "toxicity": 1,
        "attributes": {"latency": 100, "jitter": 0},
    });
    assert_eq!(added.json(), full);
    assert_eq!(t.get(&format!("{toxics}/d")).await.json(), full);
    // Upstream ones come first in lists, each stream in the order of adding.
    t.toxic_with(&path, json!({"name": "u2", "type": "latency", "stream": "upstream"})).await;
    t.toxic_with(&path, json!({"name": "u1", "type": "latency", "stream": "upstream"})).await;
    let names = |list: &serde_json::Value| -> Vec<String> {
        list.as_array().unwrap().iter().map(|toxic| toxic["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&t.get(&toxics).await.json()), ["u2", "u1", "d"]);
    assert_eq!(names(&t.get(&path).await.json()["toxics"]), ["u2", "u1", "d"]);
    assert_eq!(t.delete(&format!("{toxics}/u2")).await, 204);
    assert_eq!(names(&t.get(&toxics).await.json()), ["u1", "d"]);
    assert_eq!(t.get(&format!("{toxics}/u2")).await.error(), error(404, "toxic not found"));
}

pub(crate) async fn row_24_toxic_names_are_unique(t: &Target) {
    let (path, _) = t.proxy(closed_port().await).await;
    let toxics = format!("{path}/toxics");
    for stream in ["upstream", "downstream"] {
        let toxic = t.toxic(&path, stream, "latency", json!({"latency": 1})).await;
        assert!(toxic.ends_with(&format!("latency_{stream}")));
    }
    for stream in ["upstream", "downstream"] {
        let body = json!({"name": "latency_upstream", "type": "noop", "stream": stream});
        assert_eq!(t.call("POST", &toxics, body).await.error(), error(409, "toxic already exists"));
    }
    assert_eq!(t.get(&format!("{toxics}/latency_upstream")).await.json()["attributes"]["latency"], 1);
    let default = t.toxic_with(&path, json!({"type": "noop"})).await;
    assert!(default.ends_with("noop_downstream"));
    let shouted = t.toxic_with(&path, json!({"type": "noop", "stream": "UPSTREAM"})).await;
    assert!(shouted.ends_with("noop_UPSTREAM"));
}

pub(crate) async fn row_27_toxicity_is_read_back_as_given(t: &Target) {
    let (path, _) = t.proxy(closed_port().await).await;
    for (name, toxicity) in [("a", 0.2), ("b", 1.0), ("c", 0.0), ("d", 5.0), ("e", -1.0)] {
        let body = json!({"name": name, "type": "noop", "toxicity": toxicity});
        let toxic = t.toxic_with(&path, body).await;
        assert_eq!(t.get(&toxic).await.json()["toxicity"].as_f64(), Some(toxicity));
    }
}

pub(crate) async fn row_29_updates_keep_what_is_not_given(t: &Target) {
    let (path, _) = t.proxy(closed_port().await).await;
    let body = json!({"type": "latency", "toxicity": 0.5, "attributes": {"latency": 100, "jitter": 10}});
    let toxic = t.toxic_with(&path, body).await;
    for verb in ["POST", "PATCH"] {
        let body = json!({"name": "x", "type": "noop", "stream": "upstream", "attributes": {"latency": 300}});
        let changed = t.call(verb, &toxic, body).await;
        let expected = json!({
            "name": "latency_downstream", "type": "latency", "stream": "downstream", "toxicity": 0.5,
            "attributes": {"latency": 300, "jitter": 10},
        });
        assert_eq!((changed.status, changed.json()), (200, expected));
    }
    assert_eq!(t.patch(&toxic, json!({"TOXICITY": 1, "attributes": null})).await["toxicity"], json!(1));
    let missing = t.call("PATCH", &format!("{path}/toxics/absent"), json!({})).await;
    assert_eq!(missing.error(), error(404, "toxic not found"));
}

pub(crate) async fn row_31_version(t: &Target) {
    let version = t.get("/version").await;
    assert_eq!((version.status, version.content_type.as_str()), (200, "application/json;charset=utf-8"));
    if t.is_real() {
        assert!(version.json()["version"].is_string());
    } else {
        assert_eq!(version.text, "{\"version\": \"2.12.0\"}\n");
    }
}

pub(crate) async fn row_32_streams_and_types_are_checked(t: &Target) {
    let (path, _) = t.proxy(closed_port().await).await;
    let toxics = format!("{path}/toxics");
    for stream in ["sideways", ""] {
        let refused = t.call("POST", &toxics, json!({"type": "noop", "stream": stream})).await;
        let text = "stream was invalid, can be either upstream or downstream";
        assert_eq!(refused.error(), error(400, text));
    }
    for body in [json!({"type": "down"}), json!({"type": "Latency"}), json!({})] {
        assert_eq!(t.call("POST", &toxics, body).await.error(), error(400, "invalid toxic type"));
    }
    for attributes in [json!({"latency": 1.5}), json!({"latency": "1"}), json!(7)] {
        let refused = t.call("POST", &toxics, json!({"type": "latency", "attributes": attributes})).await;
        assert_eq!(refused.status, 400);
        assert!(refused.error().1.starts_with("bad request body: "));
    }
    assert_eq!(t.get(&toxics).await.text, "[]");
}

pub(crate) async fn row_35_starting_and_stopping_twice(t: &Target) {
    let (path, port) = t.proxy(closed_port().await).await;
    for enabled in [true, true, false, false, true] {
        assert_eq!(t.patch(&path, json!({"enabled": enabled})).await["enabled"], enabled);
        assert_eq!(is_open(port).await, enabled);
    }
}

pub(crate) async fn row_36_updates_of_addresses(t: &Target) {
    let server = echo().await;
    let (path, port) = t.proxy(server.addr).await;
    let mut live = dial(port).await;
    exchange(&mut live, "before").await;
    t.patch(&path, json!({"listen": format!("localhost:{}", port.port()), "upstream": server.addr.to_string()})).await;
    exchange(&mut live, "same address").await;
    let moved = t.patch(&path, json!({"listen": "127.0.0.1:0"})).await;
    let moved: std::net::SocketAddr = moved["listen"].as_str().unwrap().parse().unwrap();
    assert_ne!(moved, port);
    assert!(!is_open(port).await);
    assert_eq!(crate::harness::drain(&mut live).await.0, b"");
    exchange(&mut dial(moved).await, "new address").await;
}

pub(crate) async fn a12_status_table(t: &Target) {
    for (verb, path) in [
        ("PUT", "/proxies"),
        ("DELETE", "/proxies"),
        ("HEAD", "/version"),
        ("OPTIONS", "/proxies"),
        ("GET", "/reset"),
        ("GET", "/populate"),
        ("PUT", "/proxies/x/toxics/y"),
        ("DELETE", "/proxies/x/toxics"),
    ] {
        let wrong = t.send(verb, path, "rows", "").await;
        assert_eq!((wrong.status, wrong.text.as_str()), (405, ""), "{verb} {path}");
    }
    for path in
        ["/", "/nowhere", "/proxies/", "/proxies/x/", "/proxies/x/toxics/", "/proxies/x/y", "/version/x", "/metrics"]
    {
        let lost = t.get(path).await;
        assert_eq!((lost.status, lost.text.as_str()), (404, "404 page not found\n"), "{path}");
        assert!(lost.content_type.starts_with("text/plain"));
    }
    for (verb, path) in [
        ("GET", "/proxies/absent"),
        ("POST", "/proxies/absent"),
        ("PATCH", "/proxies/absent"),
        ("GET", "/proxies/absent/toxics"),
        ("POST", "/proxies/absent/toxics"),
        ("GET", "/proxies/absent/toxics/x"),
        ("DELETE", "/proxies/absent/toxics/x"),
    ] {
        assert_eq!(t.call(verb, path, json!({})).await.error(), error(404, "proxy not found"), "{verb} {path}");
    }
    // What follows the first JSON value is ignored, and so are unknown keys.
    let body = format!(r#"{{"NAME":"{}","Upstream":"{UPSTREAM}","listen":"127.0.0.1:0","x":1}} trailing"#, name());
    assert_eq!(t.send("POST", "/proxies", "rows", body).await.status, 201);
    for body in ["nonsense", "{\"name\":", "{\"name\":7}", "[]"] {
        let refused = t.send("POST", "/proxies", "rows", body).await;
        assert!(refused.status == 400 && refused.error().1.starts_with("bad request body: "), "{body}");
    }
}

pub(crate) async fn a13_a_failed_move_leaves_the_proxy_closed_and_heals(t: &Target) {
    let (_, taken) = t.proxy(closed_port().await).await;
    let (path, port) = t.proxy(closed_port().await).await;
    t.toxic(&path, "upstream", "noop", json!({})).await;
    let unknown = t.call("POST", &path, json!({"listen": "nonsense"})).await;
    assert_eq!(unknown.error(), error(500, "address nonsense: missing port in address"));
    assert!(is_open(port).await, "nothing changes when the address means nothing");
    let failed = t.call("POST", &path, json!({"listen": taken.to_string()})).await;
    assert_eq!(failed.error(), error(500, &format!("listen tcp {taken}: bind: address already in use")));
    let shown = t.get(&path).await.json();
    assert_eq!((&shown["listen"], &shown["enabled"]), (&json!(taken.to_string()), &json!(false)));
    assert!(!is_open(port).await);
    let healed = t.patch(&path, json!({"listen": "127.0.0.1:0", "enabled": true})).await;
    assert_eq!(healed["toxics"].as_array().unwrap().len(), 1);
    assert!(is_open(healed["listen"].as_str().unwrap().parse().unwrap()).await);
}
