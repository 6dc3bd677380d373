//! Work on many texts at once, shared out by bytes. Threads live only as long as the call, so that a process forked
//! between calls misses none.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Mutex;
use std::time::Duration;

use crate::error::{Error, Kind, Result};
use crate::pipeline::Stop;

/// Runs `work` on runs of neighbouring texts, given the bytes of each, one worker a thread. The results come in the
/// order of the texts; of several errors the one of the first text is returned. The calling thread waits and asks `stop` meanwhile.
pub fn in_parallel<W: Send, R: Send>(
    sizes: &[usize],
    mut workers: Vec<W>,
    stop: Stop<'_>,
    work: impl Fn(&mut W, Range<usize>, Stop<'_>) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    if let [only] = &mut workers[..] {
        return Ok(vec![work(only, 0..sizes.len(), stop)?]);
    }
    let ranges = share_out(sizes, workers.len() * 4);
    let (next, running) = (AtomicUsize::new(0), AtomicUsize::new(workers.len()));
    let stopped = AtomicBool::new(false);
    let done: Mutex<Vec<(usize, Result<R>)>> = Mutex::new(Vec::new());
    let caller = std::thread::current();
    std::thread::scope(|scope| {
        for worker in &mut workers {
            let (ranges, next, running, stopped, done, caller, work) =
                (&ranges, &next, &running, &stopped, &done, &caller, &work);
            scope.spawn(move || {
                let _last = OnDrop(|| {
                    running.fetch_sub(1, Ordering::Release);
                    caller.unpark();
                });
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(range) = ranges.get(at) else { return };
                    let result = work(worker, range.clone(), &|| stopped.load(Ordering::Relaxed));
                    if let Ok(mut done) = done.lock() {
                        done.push((at, result));
                    }
                }
            });
        }
        while running.load(Ordering::Acquire) > 0 {
            std::thread::park_timeout(Duration::from_millis(20));
            if !stopped.load(Ordering::Relaxed) && stop() {
                stopped.store(true, Ordering::Relaxed);
                next.store(ranges.len(), Ordering::Relaxed);
            }
        }
    });
    if stopped.into_inner() {
        return Err(Error::interrupted());
    }
    let mut done = done.into_inner().map_err(|_| Error { kind: Kind::Value, message: "a worker failed".into() })?;
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

/// Does two things at once, or one after the other where the system gives no thread.
pub fn both<A: Send, B>(first: impl Fn() -> A + Sync, second: impl FnOnce() -> B) -> (A, B) {
    std::thread::scope(|scope| {
        let other = std::thread::Builder::new().spawn_scoped(scope, &first);
        let second = second();
        let first = other.ok().and_then(|thread| thread.join().ok()).unwrap_or_else(&first);
        (first, second)
    })
}

struct OnDrop<F: Fn()>(F);

impl<F: Fn()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// Cuts the texts into about `parts` runs of about the same number of bytes.
fn share_out(sizes: &[usize], parts: usize) -> Vec<Range<usize>> {
    let work = |size: &usize| size + 64; // an empty text is some work too
    let target = sizes.iter().map(work).sum::<usize>().div_ceil(parts.max(1)).max(4096);
    let (mut ranges, mut from, mut bytes) = (Vec::new(), 0, 0);
    for (at, size) in sizes.iter().enumerate() {
        bytes += work(size);
        if bytes >= target {
            ranges.push(from..at + 1);
            (from, bytes) = (at + 1, 0);
        }
    }
    if from < sizes.len() {
        ranges.push(from..sizes.len());
    }
    ranges
}
