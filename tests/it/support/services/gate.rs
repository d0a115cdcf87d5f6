//! A gate before an HTTP server: it lets requests through and spoils those that it is told to.

use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::ops::RangeFrom;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

/// What becomes of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Spoil {
    /// 503 instead of an answer; the server hears nothing of it.
    Busy,
    /// The connection ends; the server hears nothing of it.
    Cut,
    /// The server does what it is asked, and the connection ends before its answer comes.
    Lost,
    /// The server does what it is asked, and 500 comes instead of its answer.
    Denied,
    /// Half of the answer comes, then the connection ends.
    Torn,
    /// Nothing comes, for as long as one waits; the server hears nothing of it.
    Silent,
}

/// Which requests count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Requests {
    All,
    /// PUT, POST and DELETE.
    Changes,
}

struct Order {
    spoil: Spoil,
    requests: Requests,
    /// How many of them pass before.
    pass: u32,
    /// How many of them are spoilt.
    most: u32,
    hit: u32,
}

struct Shared {
    server: String,
    order: Mutex<Option<Order>>,
    asked: Mutex<Vec<String>>,
    closed: AtomicBool,
}

/// Lets requests through until it is dropped.
pub struct Gate {
    endpoint: String,
    shared: Arc<Shared>,
}

impl Gate {
    /// `server`: `http://host:port`.
    pub fn before(server: &str) -> Gate {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let endpoint = format!("http://{}", listener.local_addr().expect("an address"));
        let server = server.strip_prefix("http://").expect("plain HTTP").to_owned();
        let shared = Arc::new(Shared {
            server,
            order: Mutex::default(),
            asked: Mutex::default(),
            closed: AtomicBool::new(false),
        });
        let of_thread = Arc::clone(&shared);
        thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                if of_thread.closed.load(Ordering::Relaxed) {
                    break;
                }
                let shared = Arc::clone(&of_thread);
                // A client that goes away is none of the gate's business.
                thread::spawn(move || drop(shared.serve(connection)));
            }
        });
        Gate { endpoint, shared }
    }

    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// From now on the `nth` request of these (1 is the next) is spoilt.
    pub fn spoil(&self, spoil: Spoil, requests: Requests, nth: u32) {
        self.order(Order { spoil, requests, pass: nth - 1, most: 1, hit: 0 });
    }

    /// As [`Gate::spoil`], and all of these after it too.
    pub fn spoil_from(&self, spoil: Spoil, requests: Requests, from: RangeFrom<u32>) {
        self.order(Order { spoil, requests, pass: from.start - 1, most: u32::MAX, hit: 0 });
    }

    fn order(&self, order: Order) {
        *self.shared.order.lock().expect("no panic while held") = Some(order);
    }

    /// Lets everything through again; how many requests were spoilt.
    pub fn open(&self) -> u32 {
        self.shared.order.lock().expect("no panic while held").take().map_or(0, |order| order.hit)
    }

    /// What was asked for since the last call, e.g. `GET /bucket?list-type=2`.
    pub fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.shared.asked.lock().expect("no panic while held"))
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.shared.closed.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.endpoint.trim_start_matches("http://"));
    }
}

impl Shared {
    fn verdict(&self, request: &Message) -> Option<Spoil> {
        let (method, rest) = request.first_line.split_once(' ').unwrap_or_default();
        let target = rest.split(' ').next().unwrap_or_default();
        self.asked.lock().expect("no panic while held").push(format!("{method} {target}"));
        let mut order = self.order.lock().expect("no panic while held");
        let order = order.as_mut()?;
        let counts = match order.requests {
            Requests::All => true,
            Requests::Changes => ["PUT", "POST", "DELETE"].contains(&method),
        };
        if !counts || order.hit == order.most {
            return None;
        }
        if order.pass > 0 {
            order.pass -= 1;
            return None;
        }
        order.hit += 1;
        Some(order.spoil)
    }

    /// The requests of one connection, each passed on by a connection to the server that lives as long.
    fn serve(&self, client: TcpStream) -> io::Result<()> {
        let server = TcpStream::connect(&self.server)?;
        [&client, &server].into_iter().try_for_each(|stream| stream.set_nodelay(true))?;
        let (mut requests, mut answers) = (BufReader::new(client.try_clone()?), BufReader::new(server.try_clone()?));
        loop {
            let request = Message::read(&mut requests, Body::OfRequest)?;
            let spoil = self.verdict(&request);
            let body = if request.first_line.starts_with("HEAD ") { Body::None } else { Body::OfAnswer };
            let ask = |answers: &mut BufReader<TcpStream>| {
                (&server).write_all(&request.bytes)?;
                Message::read(answers, body)
            };
            match spoil {
                None => (&client).write_all(&ask(&mut answers)?.bytes)?,
                Some(Spoil::Busy) => (&client).write_all(&refusal("503 Service Unavailable", "SlowDown"))?,
                Some(Spoil::Cut) => return client.shutdown(Shutdown::Both),
                Some(Spoil::Lost) => {
                    ask(&mut answers)?;
                    return client.shutdown(Shutdown::Both);
                }
                Some(Spoil::Denied) => {
                    ask(&mut answers)?;
                    (&client).write_all(&refusal("500 Internal Server Error", "InternalError"))?;
                }
                Some(Spoil::Torn) => {
                    let answer = ask(&mut answers)?.bytes;
                    (&client).write_all(&answer[..answer.len() - answer.len() / 4])?;
                    return client.shutdown(Shutdown::Both);
                }
                // Until the client gives up.
                Some(Spoil::Silent) => return requests.read(&mut [0]).map(drop),
            }
        }
    }
}

fn refusal(status: &str, code: &str) -> Vec<u8> {
    let body = format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?><Error><Code>{code}</Code></Error>");
    format!("HTTP/1.1 {status}\r\nContent-Type: application/xml\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Body {
    /// The answer to HEAD.
    None,
    OfRequest,
    OfAnswer,
}

/// A whole request or answer, as it came.
struct Message {
    first_line: String,
    bytes: Vec<u8>,
}

impl Message {
    fn read(from: &mut impl BufRead, body: Body) -> io::Result<Message> {
        let mut bytes = Vec::new();
        let first_line = line(from, &mut bytes)?;
        let (mut length, mut chunked) = (None, false);
        loop {
            let header = line(from, &mut bytes)?.to_ascii_lowercase();
            match header.split_once(':') {
                None => break,
                Some(("content-length", value)) => length = value.trim().parse::<u64>().ok(),
                Some(("transfer-encoding", value)) => chunked = value.contains("chunked"),
                Some(_) => {}
            }
        }
        let without = ["204", "304"].iter().any(|status| first_line.split(' ').nth(1) == Some(status));
        match (body, length) {
            (Body::None, _) => {}
            _ if chunked => while chunk(from, &mut bytes)? {},
            (_, Some(length)) => exactly(from, length, &mut bytes)?,
            (Body::OfAnswer, None) if !without => drop(from.read_to_end(&mut bytes)?),
            _ => {}
        }
        Ok(Message { first_line, bytes })
    }
}

/// Up to and without the line's end, which `bytes` has too. The end of the connection is an error.
fn line(from: &mut impl BufRead, bytes: &mut Vec<u8>) -> io::Result<String> {
    let start = bytes.len();
    from.read_until(b'\n', bytes)?;
    let line = bytes[start..].strip_suffix(b"\r\n").ok_or(ErrorKind::UnexpectedEof)?;
    Ok(String::from_utf8_lossy(line).into_owned())
}

fn exactly(from: &mut impl BufRead, length: u64, bytes: &mut Vec<u8>) -> io::Result<()> {
    let read = from.take(length).read_to_end(bytes)? as u64;
    if read == length { Ok(()) } else { Err(ErrorKind::UnexpectedEof.into()) }
}

/// Whether another one follows.
fn chunk(from: &mut impl BufRead, bytes: &mut Vec<u8>) -> io::Result<bool> {
    let size = line(from, bytes)?;
    let size = u64::from_str_radix(size.split(';').next().unwrap_or_default().trim(), 16);
    let size = size.map_err(|_| ErrorKind::InvalidData)?;
    exactly(from, size + 2, bytes)?;
    Ok(size > 0)
}
