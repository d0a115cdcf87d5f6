//! `/metrics`, `/healthz` and `/readyz` on one address.
//!
//! On a thread and a runtime of its own: a job that has wedged its own runtime must still be able to say that it is stuck.

use super::health::Answer;
use super::metrics::Metrics;
use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use std::net::{SocketAddr, TcpListener};
use tokio_util::sync::{CancellationToken, DropGuard};

/// The text format of Prometheus.
const EXPOSITION: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Answers until it is dropped.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    _stop: DropGuard,
}

impl Server {
    /// Binds `host:port` (port 0: any free one) and answers from then on.
    pub fn start(host: &str, port: u16, metrics: Metrics) -> std::io::Result<Server> {
        let listener = TcpListener::bind((host, port))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
        let stop = CancellationToken::new();
        let stopped = stop.clone().cancelled_owned();
        std::thread::Builder::new().name("observe".into()).spawn(move || {
            let served = runtime.block_on(async move {
                let listener = tokio::net::TcpListener::from_std(listener)?;
                tokio::select! {
                    served = axum::serve(listener, routes(metrics)).into_future() => served,
                    () = stopped => Ok(()),
                }
            });
            if let Err(e) = served {
                tracing::error!(error = %e, "metrics and health are no longer served");
            }
        })?;
        Ok(Server { address, _stop: stop.drop_guard() })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

fn routes(metrics: Metrics) -> Router {
    Router::new()
        .route("/metrics", get(async |State(m): State<Metrics>| ([(header::CONTENT_TYPE, EXPOSITION)], m.render())))
        .route("/healthz", get(async |State(m): State<Metrics>| probe(m.live())))
        .route("/readyz", get(async |State(m): State<Metrics>| probe(m.ready())))
        .with_state(metrics)
}

fn probe(answer: Answer) -> impl IntoResponse {
    let status = if answer.well { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, [(header::CONTENT_TYPE, "application/json")], format!("{}\n", answer.body))
}
