#![allow(clippy::unwrap_used)]

use super::*;

/// The marks, with the stream given in pieces of that size.
fn marks(stream: Stream, bytes: &[u8], piece: usize, answered: Option<&Request>) -> Vec<(u64, &'static str)> {
    let (mut scanner, mut marks) = (Scanner::new(stream), VecDeque::new());
    for piece in bytes.chunks(piece) {
        scanner.feed(piece, answered, &mut marks);
    }
    scanner.finish(&mut marks);
    assert_eq!(scanner.offset(), bytes.len() as u64);
    let name = |mark| match mark {
        Mark::Start => "start",
        Mark::Head { .. } => "head",
        Mark::End => "end",
        Mark::RecordStart => "record",
        Mark::RecordEnd => "record end",
    };
    marks.into_iter().map(|(at, mark)| (at, name(mark))).collect()
}

#[test]
fn requests_are_found_whatever_the_pieces() {
    let one = b"POST /p HTTP/1.1\r\nIdempotency-Key: k\r\nContent-Length: 3\r\n\r\nabc";
    let two = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nT: x\r\n\r\n";
    let all = [&one[..], b"\r\n", two, b"GET / HTTP/1.1\n\n"].concat();
    let (a, b) = (one.len() as u64, (one.len() + 2) as u64);
    let c = b + two.len() as u64;
    let end = all.len() as u64;
    let expected = [
        (0, "start"),
        (a - 3, "head"),
        (a, "end"),
        (b, "start"),
        (b + 47, "head"),
        (c, "end"),
        (c, "start"),
        (end, "head"),
        (end, "end"),
    ];
    for piece in [1, 2, 3, 7, 1000] {
        assert_eq!(marks(Stream::Upstream, &all, piece, None), expected, "{piece}");
    }
}

#[test]
fn a_request_is_known_by_its_head() {
    let (mut scanner, mut marks) = (Scanner::new(Stream::Upstream), VecDeque::new());
    scanner.feed(b"POST /a?b=c HTTP/1.1\r\nidempotency-KEY:  \"k 1\" \r\n\r\n", None, &mut marks);
    let request = Request { number: 1, method: "POST".into(), target: "/a?b=c".into(), key: Some("\"k 1\"".into()) };
    assert!(marks.contains(&(50, Mark::Head { request: Some(Arc::new(request)), end: Some(50) })), "{marks:?}");
}

#[test]
fn answers_end_as_their_heads_say() {
    let down = |text: &str, answered: Option<&Request>| marks(Stream::Downstream, text.as_bytes(), 1000, answered);
    let interim = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n";
    assert_eq!(down(interim, None), [(25, "start"), (71, "head"), (71, "end")]);
    assert_eq!(down("HTTP/1.1 200 OK\r\n\r\nxyz", None), [(0, "start"), (19, "head"), (22, "end")]);
    let head = Request { method: "HEAD".to_owned(), ..Request::default() };
    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";
    assert_eq!(down(answer, Some(&head)), [(0, "start"), (38, "head"), (38, "end")]);
    assert_eq!(down("HTTP/1.1 101 Switching\r\n\r\nHTTP", None), [(0, "start")][..0].to_vec());
}

#[test]
fn records_are_counted_without_being_read() {
    let hello = [22, 3, 1, 0, 2, 9, 9];
    let data = [23, 3, 3, 0, 3, 1, 2, 3];
    let all = [&hello[..], &data, &data].concat();
    for piece in [1, 4, 100] {
        let found = marks(Stream::Upstream, &all, piece, None);
        assert_eq!(found, [(7, "record"), (15, "record end"), (15, "record"), (23, "record end")]);
    }
}

#[test]
fn what_is_not_understood_is_left_alone() {
    for bytes in
        [&b"hello"[..], b"\0\0", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n"]
    {
        let (mut scanner, mut marks) = (Scanner::new(Stream::Upstream), VecDeque::new());
        scanner.feed(bytes, None, &mut marks);
        assert_eq!(scanner.speech(), Speech::Opaque);
    }
    let endless = vec![b'A'; MAX_HEAD * 3];
    let (mut scanner, mut marks) = (Scanner::new(Stream::Upstream), VecDeque::new());
    scanner.feed(&endless, None, &mut marks);
    assert_eq!((scanner.speech(), scanner.offset()), (Speech::Opaque, endless.len() as u64));
}
