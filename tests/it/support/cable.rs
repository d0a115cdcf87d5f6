//! A TCP connection that a test can cut.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};

/// Passes bytes on to a server, as long as it is whole. Needs a runtime.
pub struct Cable {
    address: SocketAddr,
    connections: Arc<Mutex<Option<JoinSet<()>>>>,
    listening: AbortHandle,
}

impl Cable {
    /// To `server`, `host:port`.
    pub async fn to(server: &str) -> Cable {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        let connections = Arc::new(Mutex::new(Some(JoinSet::new())));
        let listening = tokio::spawn(accept(listener, server.to_string(), Arc::clone(&connections))).abort_handle();
        Cable { address, connections, listening }
    }

    /// `127.0.0.1:PORT`.
    pub fn endpoint(&self) -> String {
        self.address.to_string()
    }

    /// Closes what there is; new connections close at once.
    pub fn cut(&self) {
        *self.connections.lock().expect("no test panics with it") = None;
    }

    pub fn mend(&self) {
        *self.connections.lock().expect("no test panics with it") = Some(JoinSet::new());
    }
}

impl Drop for Cable {
    fn drop(&mut self) {
        self.listening.abort();
        self.cut();
    }
}

async fn accept(listener: TcpListener, server: String, connections: Arc<Mutex<Option<JoinSet<()>>>>) -> io::Result<()> {
    loop {
        let (mut near, _) = listener.accept().await?;
        if let Some(connections) = connections.lock().expect("no test panics with it").as_mut() {
            let server = server.clone();
            connections.spawn(async move {
                let Ok(mut far) = TcpStream::connect(server).await else { return };
                let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
            });
        }
    }
}
