//! A web server of a few fixed answers, which remembers what it was asked.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

#[derive(Default)]
struct Told {
    answers: BTreeMap<String, String>,
    asked: Vec<String>,
}

/// Answers until the test process ends.
pub struct Stub {
    url: String,
    told: Arc<Mutex<Told>>,
}

impl Stub {
    /// JSON by path; any other path is 404, as a schema registry says it.
    pub fn start() -> Stub {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let told = Arc::new(Mutex::new(Told::default()));
        let of_thread = told.clone();
        thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                // A client that goes away is none of the stub's business.
                let _ = serve(connection, &of_thread);
            }
        });
        Stub { url, told }
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    pub fn answer(&self, path: &str, json: impl Into<String>) {
        self.told.lock().expect("no panic while held").answers.insert(path.into(), json.into());
    }

    /// The paths that were asked for since the last call.
    pub fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.told.lock().expect("no panic while held").asked)
    }
}

/// One request a connection.
fn serve(mut connection: TcpStream, told: &Mutex<Told>) -> std::io::Result<()> {
    let mut lines = BufReader::new(connection.try_clone()?).lines();
    let request = lines.next().transpose()?.unwrap_or_default();
    while lines.next().transpose()?.is_some_and(|header| !header.is_empty()) {}
    let target = request.split(' ').nth(1).unwrap_or_default();
    let path = target.split('?').next().unwrap_or_default();
    let found = {
        let mut told = told.lock().expect("no panic while held");
        told.asked.push(path.to_owned());
        told.answers.get(path).cloned()
    };
    let (status, body) = match found {
        Some(body) => ("200 OK", body),
        None => ("404 Not Found", r#"{"error_code":40403,"message":"not found"}"#.to_owned()),
    };
    let length = body.len();
    write!(
        connection,
        "HTTP/1.1 {status}\r\nContent-Type: application/vnd.schemaregistry.v1+json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
}
