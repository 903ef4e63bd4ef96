//! No secret of a target file reaches anything that idemproof shows or writes, not even when the server sends it back.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    io::{Read, Write},
    net::TcpListener,
    process::Command,
};

const TOKEN: &str = "tok-SENTINEL/4711+abc";
const BASIC: &str = "user:pass-SENTINEL-word";

/// A server that repeats the whole request in every answer: in a header field, and three times in the body (as it
/// is, as JSON, percent-encoded).
fn echo() -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { continue };
            std::thread::spawn(move || {
                let mut buffer = vec![0; 64 * 1024];
                let read = stream.read(&mut buffer).unwrap_or(0);
                let request = String::from_utf8_lossy(&buffer[..read]).into_owned();
                let line = request.replace(['\r', '\n'], " ");
                let percent: String = request.bytes().map(|byte| format!("%{byte:02X}")).collect();
                let body = format!("{{\"id\":{:?},\"percent\":\"{percent}\"}}\n{request}", line);
                let answer =
                    format!("HTTP/1.1 201 Created\r\nX-Echo: {line}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
                let _ = stream.write_all(answer.as_bytes());
            });
        }
    });
    addr
}

#[test]
fn secrets_stay_secret() {
    let folder = tempfile::tempdir().unwrap();
    let target = format!(
        "target: echo\nbase_url: http://{}\n\
         tenants:\n  default: {{ headers: {{ Authorization: \"Bearer ${{env:SECRET_TOKEN}}\", X-Api-Key: \"lit-SENTINEL-eral\" }} }}\n  \
         other: {{ headers: {{ Authorization: \"Basic ${{env:SECRET_BASIC}}\" }} }}\n\
         operations:\n  create:\n    request: POST /payments\n    \
         json: {{ reference: \"${{reference}}\", secret: \"${{env:SECRET_TOKEN}}\" }}\n    \
         effects: {{ get: \"/payments?reference=${{reference}}\", count: \"$.items[*]\" }}\n",
        echo()
    );
    std::fs::write(folder.path().join("target.yaml"), target).unwrap();
    // What a client sends for Basic authentication is base64 of `user:password`.
    let basic = "dXNlcjpwYXNzLVNFTlRJTkVMLXdvcmQ=";
    let shard =
        ["run", "--target", "target.yaml", "--shard", "1/1", "--baseline", "reports/known.json", "--record-baseline"];
    for arguments in [
        &["run", "--target", "target.yaml", "--dry-run"][..],
        &shard,
        &["merge", "reports", "--into", "reports/merged"],
        &["run", "--target", "target.yaml"],
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_idemproof"))
            .args(arguments)
            .current_dir(folder.path())
            .env("SECRET_TOKEN", TOKEN)
            .env("SECRET_BASIC", basic)
            .env("CI", "true")
            .env("GITHUB_ACTIONS", "true")
            .env("GITHUB_STEP_SUMMARY", "step.md")
            .output()
            .unwrap();
        let mut texts = vec![
            ("stdout".to_owned(), String::from_utf8_lossy(&output.stdout).into_owned()),
            ("stderr".to_owned(), String::from_utf8_lossy(&output.stderr).into_owned()),
        ];
        for folder in [folder.path().join("reports"), folder.path().join("reports/merged")] {
            for file in std::fs::read_dir(folder).into_iter().flatten() {
                let path = file.unwrap().path();
                if path.is_file() {
                    texts.push((path.display().to_string(), std::fs::read_to_string(&path).unwrap()));
                }
            }
        }
        texts.extend(std::fs::read_to_string(folder.path().join("step.md")).ok().map(|text| ("step.md".into(), text)));
        assert!(
            texts[0].1.contains("***") || texts[0].1.contains("skipped") || texts[0].1.contains("::"),
            "{arguments:?}: {}",
            texts[0].1
        );
        for (name, text) in &texts {
            for secret in ["SENTINEL", basic, BASIC, "%53%45%4E%54%49%4E%45%4C"] {
                let at = text.find(secret);
                let around = at.map(|at| text[at.saturating_sub(60)..].chars().take(140).collect::<String>());
                assert_eq!(around, None, "{secret} is in {name} of {arguments:?}");
            }
        }
    }
}
