//! Headless Chromium through ChromeDriver: as much of the WebDriver protocol as the tests need.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::common::{Need, Skip};

/// The longest time that one command of the protocol may take.
const TIMEOUT: Duration = Duration::from_secs(90);

/// A browser with one window; closed when dropped.
pub(crate) struct Browser {
    driver: Child,
    port: u16,
    session: String,
    _profile: tempfile::TempDir,
}

/// Starts a browser, or says what is missing.
pub(crate) fn start() -> Need<Browser> {
    let missing = |what: &str| {
        Need::Skipped(Skip {
            what: "Chromium".to_owned(),
            why: format!("{what} is not on the PATH; on Debian: apt-get install chromium chromium-driver"),
        })
    };
    let found = |name: &str| {
        std::env::var_os("PATH")
            .and_then(|path| std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file()))
    };
    let Some(chromium) = found("chromium").or_else(|| found("google-chrome")) else { return missing("chromium") };
    let Some(driver) = found("chromedriver") else { return missing("chromedriver") };
    let mut driver = Command::new(driver)
        .arg("--port=0")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(driver.stdout.take().unwrap()).lines();
    let port = lines
        .find_map(|line| line.unwrap().split_once("successfully on port ").map(|(_, port)| port.to_owned()))
        .expect("chromedriver did not start")
        .trim_end_matches('.')
        .parse()
        .unwrap();
    // Its output is read on, so that it never waits for a reader.
    std::thread::spawn(move || lines.for_each(drop));
    let profile = tempfile::tempdir().unwrap();
    let mut arguments: Vec<String> = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--disable-dev-shm-usage",
    ]
    .map(str::to_owned)
    .to_vec();
    arguments.push(format!("--user-data-dir={}", profile.path().display()));
    let mut browser = Browser { driver, port, session: String::new(), _profile: profile };
    let wanted = json!({ "capabilities": { "alwaysMatch": {
        "goog:chromeOptions": { "binary": chromium, "args": arguments },
        "goog:loggingPrefs": { "browser": "ALL" },
    } } });
    let value = browser.send("POST", "", &wanted);
    browser.session = value["sessionId"].as_str().expect("a session").to_owned();
    Need::Ready(browser)
}

impl Browser {
    /// Sends a command of the session and gives the `value` of its answer.
    fn send(&self, method: &str, path: &str, body: &Value) -> Value {
        let path =
            if self.session.is_empty() { "/session".to_owned() } else { format!("/session/{}{path}", self.session) };
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        let body = if method == "POST" { body.to_string() } else { String::new() };
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.port,
            body.len()
        )
        .unwrap();
        let mut answer = Vec::new();
        let mut reader = BufReader::new(stream);
        let mut length = 0;
        loop {
            let mut line = String::new();
            assert!(reader.read_line(&mut line).unwrap() > 0, "chromedriver closed the connection");
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse().unwrap();
            }
            if line.trim().is_empty() {
                break;
            }
        }
        reader.take(length).read_to_end(&mut answer).unwrap();
        let mut answer: Value = serde_json::from_slice(&answer).unwrap();
        let value = answer["value"].take();
        assert!(value.get("error").is_none(), "{method} {path}: {value:#}");
        value
    }

    /// Opens a file and waits until it is loaded.
    pub(crate) fn open(&self, path: &Path) {
        self.send("POST", "/url", &json!({ "url": "about:blank" }));
        self.send("POST", "/url", &json!({ "url": format!("file://{}", path.display()) }));
    }

    /// The size of the page.
    pub(crate) fn size(&self, width: u32, height: u32) {
        let metrics = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500 });
        self.cdp("Emulation.setDeviceMetricsOverride", &metrics);
    }

    /// A command of the browser's own protocol.
    pub(crate) fn cdp(&self, command: &str, parameters: &Value) {
        self.send("POST", "/goog/cdp/execute", &json!({ "cmd": command, "params": parameters }));
    }

    /// Runs statements in the page.
    pub(crate) fn run(&self, script: &str) -> Value {
        self.send("POST", "/execute/sync", &json!({ "script": script, "args": [] }))
    }

    fn value(&self, expression: &str) -> Value {
        self.run(&format!("return {expression}"))
    }

    pub(crate) fn number(&self, expression: &str) -> u64 {
        let value = self.value(expression);
        value
            .as_u64()
            .or_else(|| value.as_f64().map(|number| number as u64))
            .unwrap_or_else(|| panic!("{expression}: {value}"))
    }

    pub(crate) fn text(&self, expression: &str) -> String {
        self.value(expression).as_str().unwrap_or_else(|| panic!("{expression} is no text")).to_owned()
    }

    pub(crate) fn truth(&self, expression: &str) -> bool {
        self.value(&format!("!!({expression})")) == true
    }

    /// Whether an expression becomes true.
    pub(crate) fn eventually(&self, expression: &str) -> bool {
        let until = Instant::now() + Duration::from_secs(20);
        while Instant::now() < until {
            if self.truth(expression) {
                return true;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        false
    }

    /// Presses keys, wherever the focus is.
    pub(crate) fn keys(&self, keys: &str) {
        let actions: Vec<_> = keys
            .chars()
            .flat_map(|key| {
                [
                    json!({"type": "keyDown", "value": key.to_string()}),
                    json!({"type": "keyUp", "value": key.to_string()}),
                ]
            })
            .collect();
        self.send("POST", "/actions", &json!({ "actions": [{ "type": "key", "id": "keyboard", "actions": actions }] }));
    }

    /// What is seen, as PNG.
    pub(crate) fn screenshot(&self) -> Vec<u8> {
        let text = self.send("GET", "/screenshot", &Value::Null);
        decode(text.as_str().unwrap())
    }

    /// The errors that the page has caused.
    pub(crate) fn errors(&self) -> Vec<String> {
        let log = self.send("POST", "/se/log", &json!({ "type": "browser" }));
        let lines = log.as_array().unwrap().iter();
        lines.filter(|line| line["level"] == "SEVERE").map(|line| line["message"].to_string()).collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Ends the browser; the driver is a process of its own.
        if let Ok(mut stream) = TcpStream::connect(("127.0.0.1", self.port)) {
            let _ = stream.set_read_timeout(Some(Duration::from_secs(10)));
            let _ = write!(
                stream,
                "DELETE /session/{} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n",
                self.session
            );
            let _ = stream.read_to_end(&mut Vec::new());
        }
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

/// Bytes from base64.
fn decode(text: &str) -> Vec<u8> {
    let digit = |byte: u8| match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    };
    let digits: Vec<u8> = text.bytes().filter_map(digit).collect();
    digits
        .chunks(4)
        .flat_map(|chunk| {
            let bits = chunk.iter().fold(0u32, |bits, digit| bits << 6 | u32::from(*digit)) << (6 * (4 - chunk.len()));
            bits.to_be_bytes()[1..chunk.len()].to_vec()
        })
        .collect()
}
