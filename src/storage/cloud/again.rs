//! Asks again where an answer broke off: `object_store` repeats a request that got none, but not one whose answer ends half
//! way. For what may be done twice.

use std::time::Duration;

use super::super::backend::Outcome;
use super::cause::{broke_off, failed};

const TRIES: u32 = 4;
const PAUSE: Duration = Duration::from_millis(if cfg!(test) { 1 } else { 200 });

pub(super) async fn again<T, F>(ask: impl Fn() -> F + Send) -> Outcome<T>
where
    F: Future<Output = object_store::Result<T>> + Send,
{
    let mut tries = 1;
    loop {
        match ask().await {
            Err(error) if tries < TRIES && broke_off(&error) => {
                tracing::debug!(error = %error, "an answer of the store broke off: asking again");
                tokio::time::sleep(PAUSE * tries).await;
                tries += 1;
            }
            done => return done.map_err(failed),
        }
    }
}
