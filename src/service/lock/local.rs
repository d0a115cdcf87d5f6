//! Tasks of one process take turns: what `InProcessLockProvider` is, and what the other providers have before them.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

/// By table. They are few and small: they stay.
static TABLES: LazyLock<Mutex<HashMap<String, Local>>> = LazyLock::new(Mutex::default);

/// The turns of one table.
#[derive(Clone, Default)]
pub(super) struct Local {
    turn: Arc<AsyncMutex<()>>,
    /// What the one whose turn it is does.
    holder: Arc<Mutex<&'static str>>,
}

/// Held until it is dropped.
pub(super) struct Turn {
    _guard: OwnedMutexGuard<()>,
}

impl Local {
    /// One for all in this process that name the table so.
    pub(super) fn of(table: &str) -> Local {
        let mut tables = TABLES.lock().unwrap_or_else(PoisonError::into_inner);
        tables.entry(table.to_string()).or_default().clone()
    }

    /// In the order of asking. After `wait`: who has it.
    pub(super) async fn turn(&self, doing: &'static str, wait: Duration) -> Result<Turn, String> {
        match tokio::time::timeout(wait, Arc::clone(&self.turn).lock_owned()).await {
            Ok(guard) => {
                *self.holder.lock().unwrap_or_else(PoisonError::into_inner) = doing;
                Ok(Turn { _guard: guard })
            }
            Err(_) => {
                let holder = *self.holder.lock().unwrap_or_else(PoisonError::into_inner);
                Err(format!("this process holds it ({holder})"))
            }
        }
    }
}
