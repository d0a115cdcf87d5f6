//! The columns of a file that is written alone, side by side on all cores.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::thread;

static CORES: LazyLock<usize> = LazyLock::new(num_cpus::get);

/// Files that the process is writing.
static OPEN: AtomicUsize = AtomicUsize::new(0);

/// Stands for one file that is being written.
pub(super) struct Writing(());

impl Writing {
    pub(super) fn begin() -> Writing {
        OPEN.fetch_add(1, Ordering::Relaxed);
        Writing(())
    }

    /// Does `work` on each task: here and, for each core that no other file is written on, on a thread of its own. For work
    /// of a millisecond and more: a thread takes some 30 µs to start.
    pub(super) fn each<T: Send, E: Send>(
        &self,
        tasks: Vec<T>,
        work: impl Fn(T) -> Result<(), E> + Sync,
    ) -> Result<(), E> {
        spread(CORES.saturating_sub(OPEN.load(Ordering::Relaxed)), tasks, work)
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        OPEN.fetch_sub(1, Ordering::Relaxed);
    }
}

/// With the help of at most `helpers` threads.
fn spread<T: Send, E: Send>(helpers: usize, tasks: Vec<T>, work: impl Fn(T) -> Result<(), E> + Sync) -> Result<(), E> {
    let helpers = helpers.min(tasks.len().saturating_sub(1));
    if helpers == 0 {
        return tasks.into_iter().try_for_each(work);
    }
    let (queue, failed) = (Mutex::new(tasks.into_iter()), Mutex::new(Ok(())));
    let run = || {
        let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
        while let Some(task) = next() {
            if let Err(error) = work(task) {
                *failed.lock().unwrap_or_else(PoisonError::into_inner) = Err(error);
                break;
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..helpers {
            // Without it the others do its part.
            let _ = thread::Builder::new().name("columns".to_owned()).spawn_scoped(scope, run);
        }
        run();
    });
    failed.into_inner().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use parquet::errors::ParquetError;

    use super::*;

    #[test]
    fn every_task_is_done_once_and_a_failure_is_told() {
        for (helpers, count) in [0, 1, 5].into_iter().flat_map(|helpers| [0, 1, 2, 100].map(|count| (helpers, count))) {
            let done: Vec<AtomicU32> = (0..count).map(|_| AtomicU32::new(0)).collect();
            let count_up = |at: usize| {
                done[at].fetch_add(1, Ordering::Relaxed);
                Ok::<_, ParquetError>(())
            };
            spread(helpers, (0..count).collect(), count_up).unwrap();
            assert!(done.iter().all(|times| times.load(Ordering::Relaxed) == 1), "{count} by {helpers}");
        }
        let fails = |at: usize| match at {
            7 => Err(ParquetError::General("the seventh".to_owned())),
            _ => Ok(()),
        };
        for helpers in [0, 1, 5] {
            assert!(spread(helpers, (0..20).collect(), fails).unwrap_err().to_string().contains("the seventh"));
        }
    }
}
