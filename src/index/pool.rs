//! A handful of blocking threads for reads, merges and encoding.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use tokio_util::sync::CancellationToken;

/// Runs `work` over `tasks` on at most `workers` blocking threads, tasks begun in order; results in the order of the
/// tasks. After the first failure no task is begun any more and `abandon` is cancelled, which long tasks heed; they are
/// waited for, so that nothing is still writing when the error is seen. The same when the future is dropped, but
/// nobody waits.
pub(crate) async fn run<T, R, E, F>(
    workers: usize,
    abandon: &CancellationToken,
    tasks: Vec<T>,
    work: F,
) -> Result<Vec<R>, E>
where
    T: Send + 'static,
    R: Send + 'static,
    E: Send + 'static,
    F: Fn(T) -> Result<R, E> + Send + Sync + 'static,
{
    let threads = workers.clamp(1, tasks.len().max(1));
    let expected = tasks.len();
    let stop = Arc::new(AtomicBool::new(false));
    let mut on_drop = StopOnDrop { stop: stop.clone(), abandon: Some(abandon.clone()) };
    let queue = Arc::new(Mutex::new(tasks.into_iter().enumerate()));
    let failure = Arc::new(Mutex::new(None));
    let work = Arc::new(work);
    let handles: Vec<_> = (0..threads)
        .map(|_| {
            let (stop, queue, failure, work) = (stop.clone(), queue.clone(), failure.clone(), work.clone());
            let abandon = abandon.clone();
            tokio::task::spawn_blocking(move || {
                let mut done = Vec::new();
                while !stop.load(Ordering::Relaxed) {
                    let next = queue.lock().unwrap_or_else(PoisonError::into_inner).next();
                    let Some((position, task)) = next else { break };
                    match work(task) {
                        Ok(result) => done.push((position, result)),
                        Err(error) => {
                            // Kept before others are told to stop, whose failures follow from it.
                            failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                            stop.store(true, Ordering::Relaxed);
                            abandon.cancel();
                        }
                    }
                }
                done
            })
        })
        .collect();
    let mut results = Vec::with_capacity(expected);
    for handle in handles {
        match handle.await {
            Ok(done) => results.extend(done),
            Err(failed) if failed.is_panic() => std::panic::resume_unwind(failed.into_panic()),
            // The runtime is going down; nobody is left to read the results.
            Err(_) => stop.store(true, Ordering::Relaxed),
        }
    }
    on_drop.abandon = None;
    if let Some(error) = failure.lock().unwrap_or_else(PoisonError::into_inner).take() {
        return Err(error);
    }
    results.sort_by_key(|(position, _)| *position);
    Ok(results.into_iter().map(|(_, result)| result).collect())
}

/// How many of a pool's threads may be at work, while the others wait for storage: a pool may have more threads than there
/// are cores, and memory, for them, so that files are made durable together and not one after the other.
#[derive(Debug)]
pub(crate) struct Slots {
    free: Mutex<usize>,
    freed: Condvar,
}

impl Slots {
    pub(crate) fn new(count: usize) -> Slots {
        Slots { free: Mutex::new(count.max(1)), freed: Condvar::new() }
    }

    /// Waits until one more may be at work.
    pub(crate) fn take(&self) -> impl Drop + '_ {
        self.begin();
        Slot(self)
    }

    /// Lets another thread work while `wait` does not.
    pub(crate) fn lend<R>(&self, wait: impl FnOnce() -> R) -> R {
        self.end();
        let waited = wait();
        self.begin();
        waited
    }

    fn begin(&self) {
        let free = self.freed.wait_while(self.free(), |free| *free == 0);
        *free.unwrap_or_else(PoisonError::into_inner) -= 1;
    }

    fn end(&self) {
        *self.free() += 1;
        self.freed.notify_one();
    }

    fn free(&self) -> MutexGuard<'_, usize> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Slot<'a>(&'a Slots);

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// One piece of CPU work off the async threads.
pub(crate) async fn blocking<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> R {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(failed) => std::panic::resume_unwind(failed.into_panic()),
    }
}

struct StopOnDrop {
    stop: Arc<AtomicBool>,
    /// `None` when all is done: a token that others watch too is not cancelled by success.
    abandon: Option<CancellationToken>,
}

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(abandon) = &self.abandon {
            abandon.cancel();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;
    use std::sync::atomic::AtomicUsize;

    #[tokio::test]
    async fn results_keep_the_order_of_the_tasks() {
        let doubled = run(3, &CancellationToken::new(), (0..100).collect(), |n: i32| Ok::<_, ()>(n * 2)).await;
        assert_eq!(doubled, Ok((0..200).step_by(2).collect()));
    }

    #[tokio::test]
    async fn no_tasks_no_results() {
        assert_eq!(run(4, &CancellationToken::new(), Vec::<u8>::new(), Ok::<u8, ()>).await, Ok(vec![]));
    }

    #[tokio::test]
    async fn nothing_is_begun_after_a_failure() {
        let begun = Arc::new(Mutex::new(Vec::new()));
        let seen = begun.clone();
        let abandon = CancellationToken::new();
        let result = run(1, &abandon, (0..10).collect(), move |n: i32| {
            seen.lock().unwrap().push(n);
            if n == 3 { Err("three") } else { Ok(n) }
        })
        .await;
        assert_eq!(result, Err("three"));
        assert_eq!(*begun.lock().unwrap(), [0, 1, 2, 3]);
        assert!(abandon.is_cancelled(), "the others are told");
    }

    #[tokio::test]
    async fn as_many_work_as_there_are_slots_and_all_may_wait() {
        let slots = Arc::new(Slots::new(2));
        let (working, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        // Nobody goes on before all are waiting: with a thread a slot they would wait for ever.
        let (all, seen) = (Arc::new(Barrier::new(6)), most.clone());
        let work = move |_: u8| {
            let _slot = slots.take();
            for _ in 0..2 {
                seen.fetch_max(working.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                working.fetch_sub(1, Ordering::SeqCst);
                slots.lend(|| all.wait());
            }
            Ok::<_, ()>(())
        };
        assert!(run(6, &CancellationToken::new(), (0..6).collect(), work).await.is_ok());
        assert!(most.load(Ordering::SeqCst) <= 2);
    }
}
