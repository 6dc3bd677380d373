//! Work on many texts at once, shared out by bytes. Threads live only as long as the call, so that a process forked
//! between calls misses none.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::error::{Error, Kind, Result};
use crate::pipeline::Stop;

/// Does so many `jobs`, as `as_they_come` does.
pub fn in_parallel<W: Send, R: Default + Send>(
    jobs: usize,
    mut workers: Vec<W>,
    stop: Stop<'_>,
    work: impl Fn(&mut W, usize, &mut R, Stop<'_>) -> Result<()> + Sync,
    take: impl FnMut(&mut R) + Send,
) -> Result<()> {
    workers.truncate(jobs);
    let mut all = Some((0..jobs).collect());
    as_they_come(|| Ok(all.take().unwrap_or_default()), workers, stop, work, take)
}

/// Does the jobs that `more` gives, a few at a time and at last none; one worker a thread. The calling thread is the
/// first of them: only there `stop` is asked and `more` called, before the jobs run out. `work` adds to an empty
/// result. `take` gets the results in the order of the jobs, as early as it can, and leaves them empty. Of several
/// errors the one of the first job is returned.
pub fn as_they_come<W: Send, J: Send, R: Default + Send>(
    mut more: impl FnMut() -> Result<Vec<J>>,
    mut workers: Vec<W>,
    stop: Stop<'_>,
    work: impl Fn(&mut W, J, &mut R, Stop<'_>) -> Result<()> + Sync,
    take: impl FnMut(&mut R) + Send,
) -> Result<()> {
    let Some((own, others)) = workers.split_first_mut() else { return Ok(()) };
    let few = 2 * others.len() + 1;
    let queue = Queue::default();
    let (running, stopped) = (AtomicUsize::new(0), AtomicBool::new(false));
    let turn = Mutex::new(Turn { next: 0, waiting: BTreeMap::new(), spare: Vec::new(), take, failed: None });
    let fail = |number: usize, error: Error| {
        if let Ok(mut turn) = turn.lock() {
            turn.fail(number, error);
        }
    };
    let do_job = |worker: &mut W, (number, job): (usize, J), result: &mut R, stop: Stop<'_>| {
        let done = if stop() { Err(Error::interrupted()) } else { work(worker, job, result, stop) };
        match (done, turn.lock()) {
            (Ok(()), Ok(mut turn)) => turn.deliver(number, result),
            (Err(error), turn) => {
                drop(turn);
                queue.end(true); // those before this one are done or in hand
                fail(number, error);
            }
            _ => queue.end(true),
        }
    };
    let caller = std::thread::current();
    std::thread::scope(|scope| {
        let _end = OnDrop(|| queue.end(true)); // a panic must not leave the others waiting for jobs
        for worker in others {
            let (queue, running, stopped, caller, do_job) = (&queue, &running, &stopped, &caller, &do_job);
            running.fetch_add(1, Ordering::Relaxed);
            let spawned = std::thread::Builder::new().spawn_scoped(scope, move || {
                let _last = OnDrop(|| {
                    running.fetch_sub(1, Ordering::Release);
                    caller.unpark();
                });
                let mut result = R::default();
                while let Some(job) = queue.wait() {
                    do_job(worker, job, &mut result, &|| stopped.load(Ordering::Relaxed));
                }
            });
            if spawned.is_err() {
                running.fetch_sub(1, Ordering::Relaxed); // the system gives no more threads
                break;
            }
        }
        let stop = || {
            if stop() {
                stopped.store(true, Ordering::Relaxed);
            }
            stopped.load(Ordering::Relaxed)
        };
        let mut result = R::default();
        loop {
            match queue.next(few) {
                Next::More if stop() => queue.end(true),
                Next::More => match more() {
                    Ok(jobs) if jobs.is_empty() => queue.end(false),
                    Ok(jobs) => queue.add(jobs),
                    Err(error) => {
                        queue.end(false);
                        fail(queue.added(), error);
                    }
                },
                Next::Job(job) => do_job(own, job, &mut result, &stop),
                Next::End => break,
            }
        }
        while running.load(Ordering::Acquire) > 0 {
            std::thread::park_timeout(Duration::from_millis(20));
            stop();
        }
    });
    if stopped.into_inner() {
        return Err(Error::interrupted());
    }
    let turn = turn.into_inner().map_err(|_| Error { kind: Kind::Value, message: "a worker failed".into() })?;
    turn.failed.map_or(Ok(()), |(_, error)| Err(error))
}

/// The jobs that nobody has taken yet, each with its number.
struct Queue<J> {
    state: Mutex<Waiting<J>>,
    changed: Condvar,
}

enum Next<J> {
    More,
    Job(J),
    End,
}

struct Waiting<J> {
    jobs: VecDeque<(usize, J)>,
    added: usize,
    /// No more will come.
    ended: bool,
}

impl<J> Default for Queue<J> {
    fn default() -> Self {
        let state = Waiting { jobs: VecDeque::new(), added: 0, ended: false };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }
}

impl<J> Queue<J> {
    /// Nothing that can panic runs under this lock.
    fn lock(&self) -> MutexGuard<'_, Waiting<J>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, jobs: Vec<J>) {
        let mut state = self.lock();
        let number = state.added;
        state.added += jobs.len();
        state.jobs.extend((number..).zip(jobs));
        drop(state);
        self.changed.notify_all();
    }

    fn added(&self) -> usize {
        self.lock().added
    }

    fn end(&self, at_once: bool) {
        let mut state = self.lock();
        state.ended = true;
        let left = if at_once { std::mem::take(&mut state.jobs) } else { VecDeque::new() };
        drop(state);
        drop(left);
        self.changed.notify_all();
    }

    /// What the thread does next that brings the jobs, of which never less than `few` are to wait.
    fn next(&self, few: usize) -> Next<(usize, J)> {
        let mut state = self.lock();
        if !state.ended && state.jobs.len() < few {
            return Next::More;
        }
        state.jobs.pop_front().map_or(Next::End, Next::Job)
    }

    /// The next job, when there is one; None if there will be none.
    fn wait(&self) -> Option<(usize, J)> {
        let mut state = self.lock();
        loop {
            match state.jobs.pop_front() {
                None if !state.ended => state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                job => return job,
            }
        }
    }
}

/// Brings results into the order of their jobs.
struct Turn<R, T> {
    next: usize,
    waiting: BTreeMap<usize, R>,
    /// What results were brought in, to be filled again.
    spare: Vec<R>,
    take: T,
    failed: Option<(usize, Error)>,
}

impl<R: Default, T: FnMut(&mut R)> Turn<R, T> {
    fn fail(&mut self, job: usize, error: Error) {
        if self.failed.as_ref().is_none_or(|&(first, _)| job < first) {
            self.failed = Some((job, error));
        }
    }

    fn deliver(&mut self, job: usize, result: &mut R) {
        if job != self.next {
            let empty = self.spare.pop().unwrap_or_default();
            self.waiting.insert(job, std::mem::replace(result, empty));
        } else {
            (self.take)(result);
            self.next += 1;
            while let Some(mut result) = self.waiting.remove(&self.next) {
                (self.take)(&mut result);
                self.next += 1;
                self.spare.push(result);
            }
        }
    }
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

/// A place in several texts: the number of the text, and the byte in it.
pub type Place = (usize, usize);

/// Texts and parts of texts that stand one after the other: from a place up to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Job {
    pub start: Place,
    pub end: Place,
}

impl Job {
    /// The texts of the job, with the bytes of each that belong to it. `size` is that of a text.
    pub fn parts(self, size: impl Fn(usize) -> usize) -> impl Iterator<Item = (usize, std::ops::Range<usize>)> {
        let Self { start, end } = self;
        let texts = start.0..if end.1 > 0 { end.0 + 1 } else { end.0 };
        texts.map(move |text| {
            let from = if text == start.0 { start.1 } else { 0 };
            (text, from..if text == end.0 { end.1 } else { size(text) })
        })
    }
}

/// So many bytes are a job: more than a thread costs, and few enough that what is made of them stays in the cache and
/// that all threads end at about the same time.
pub const JOB: std::ops::RangeInclusive<usize> = 16 << 10..=128 << 10;

/// How many jobs a thread gets, if they are not too small or too large.
const JOBS: usize = 8;

/// Shares texts of these sizes out to `threads`, cut as `jobs_of` does; everything is one job for one thread.
pub fn share_out(sizes: &[usize], threads: usize, cut: impl Fn(usize, usize) -> Option<usize>) -> Vec<Job> {
    let total = sizes.iter().fold(0, |sum: usize, size| sum.saturating_add(work_on(*size)));
    jobs_of(sizes, job_size(total, threads), cut)
}

/// How large the jobs are into which so many bytes are shared out to `threads`.
pub fn job_size(total: usize, threads: usize) -> usize {
    if threads < 2 {
        return usize::MAX;
    }
    (total / threads.saturating_mul(JOBS)).clamp(*JOB.start(), *JOB.end())
}

/// An empty text is some work, too.
pub fn work_on(size: usize) -> usize {
    size.saturating_add(64)
}

/// Jobs of about `target` bytes. Long texts are cut, too: where `cut` says, at or behind the byte that it is asked for.
pub fn jobs_of(sizes: &[usize], target: usize, cut: impl Fn(usize, usize) -> Option<usize>) -> Vec<Job> {
    let (mut jobs, mut start, mut room) = (Vec::new(), (0, 0), target);
    for (text, &size) in sizes.iter().enumerate() {
        // `asked`: the place up to which it is known where to cut.
        let (mut at, mut asked) = (0, 0);
        while size - asked > room.saturating_add(target / 2) {
            asked += room;
            room = target;
            if let Some(end) = cut(text, asked).filter(|&end| at < end && end < size) {
                jobs.push(Job { start, end: (text, end) });
                (start, at, asked) = ((text, end), end, end);
            }
        }
        room = room.saturating_sub(work_on(size - asked));
        if room == 0 {
            jobs.push(Job { start, end: (text + 1, 0) });
            (start, room) = ((text + 1, 0), target);
        }
    }
    if start.0 < sizes.len() {
        jobs.push(Job { start, end: (sizes.len(), 0) });
    }
    jobs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_are_all_texts_in_order() {
        let texts: [&[usize]; 6] = [&[], &[0], &[0, 0, 5, 0], &[300], &[1, 299, 1, 0, 0, 800, 2], &[64; 40]];
        for sizes in texts {
            for target in [1, 2, 7, 64, 100, 1000, usize::MAX] {
                // Cuts: everywhere, only at multiples of 50, nowhere, out of the text.
                let cuts: [&dyn Fn(usize, usize) -> Option<usize>; 4] =
                    [&|_, at| Some(at), &|_, at: usize| Some(at.next_multiple_of(50)), &|_, _| None, &|_, _| Some(900)];
                for cut in cuts {
                    let jobs = jobs_of(sizes, target, cut);
                    let mut seen: Vec<(usize, usize)> = Vec::new();
                    for (text, range) in jobs.iter().flat_map(|job| job.parts(|text| sizes[text])) {
                        match seen.last_mut() {
                            Some((last, end)) if *last == text => {
                                assert!(*end == range.start && range.start < range.end);
                                *end = range.end;
                            }
                            _ => {
                                assert_eq!((seen.len(), 0), (text, range.start));
                                seen.push((text, range.end));
                            }
                        }
                    }
                    assert_eq!(seen, sizes.iter().copied().enumerate().collect::<Vec<_>>());
                }
            }
        }
    }

    #[test]
    fn long_texts_are_cut_and_short_ones_put_together() {
        assert_eq!(jobs_of(&[1000], 100, |_, at| Some(at)).len(), 10);
        assert_eq!(jobs_of(&[1000], 100, |_, at| (at >= 500).then_some(at)).len(), 6);
        assert_eq!(jobs_of(&[100; 64], 1000, |_, at| Some(at)).len(), 10);
        assert_eq!(share_out(&[1 << 20; 4], 1, |_, _| None).len(), 1);
        assert_eq!(share_out(&[1 << 14; 64], 2, |_, _| None).len(), 16);
        assert_eq!(jobs_of(&[1 << 20], job_size(1 << 20, 2), |_, at| Some(at)).len(), 16);
        assert_eq!(share_out(&[1000], 2, |_, _| None).len(), 1);
    }

    #[test]
    fn results_come_in_the_order_of_the_jobs() {
        for workers in 1..5 {
            let mut all = Vec::new();
            let work = |(): &mut (), job: usize, out: &mut Vec<usize>, _: Stop<'_>| {
                assert!(out.is_empty());
                std::thread::yield_now();
                out.extend([job, job]);
                Ok(())
            };
            in_parallel(200, vec![(); workers], &|| false, work, |out| all.append(out)).unwrap();
            assert_eq!(all, (0..400).map(|i| i / 2).collect::<Vec<_>>());
        }
    }

    #[test]
    fn the_first_error_counts() {
        for workers in 1..5 {
            let work = |(): &mut (), job: usize, _: &mut (), _: Stop<'_>| match job {
                7.. => Err(Error::value(format!("{job}"))),
                _ => Ok(()),
            };
            let error = in_parallel(100, vec![(); workers], &|| false, work, |()| ()).unwrap_err();
            assert_eq!(error.message, "7");
        }
        // With one worker: of several, another can fail before the calling thread asks.
        let stopped = in_parallel(100, vec![()], &|| true, |(), _, (), _| Ok(()), |()| ()).unwrap_err();
        assert_eq!(stopped.kind, Kind::Interrupted);
    }

    #[test]
    fn jobs_are_asked_for_before_they_run_out_and_not_long_before() {
        for workers in 1..5 {
            let (mut given, taken) = (0, AtomicUsize::new(0));
            let more = || {
                let waiting = given - taken.load(Ordering::Relaxed);
                assert!(waiting < 4 * workers + 4, "{waiting} jobs wait for {workers} workers");
                let jobs: Vec<usize> = (given..given + 3).filter(|&job| job < 100).collect();
                given += jobs.len();
                Ok(jobs)
            };
            let work = |(): &mut (), job: usize, out: &mut Vec<usize>, _: Stop<'_>| {
                taken.fetch_add(1, Ordering::Relaxed);
                out.push(job);
                Ok(())
            };
            let mut all = Vec::new();
            as_they_come(more, vec![(); workers], &|| false, work, |out| all.append(out)).unwrap();
            assert_eq!(all, (0..100).collect::<Vec<_>>());
        }
    }

    #[test]
    fn an_error_of_more_ends_the_work_after_what_was_given() {
        for workers in 1..5 {
            let mut given = 0..3;
            let more = || given.next().map_or(Err(Error::value("no more")), |job| Ok(vec![job]));
            let work = |(): &mut (), job: usize, _: &mut (), _: Stop<'_>| match job {
                2 if workers % 2 == 0 => Err(Error::value("2")),
                _ => Ok(()),
            };
            let error = as_they_come(more, vec![(); workers], &|| false, work, |()| ()).unwrap_err();
            assert_eq!(error.message, if workers % 2 == 0 { "2" } else { "no more" });
        }
    }

    #[test]
    fn a_panic_ends_the_work() {
        for workers in 1..5 {
            let mut jobs = (0..100).map(|job| vec![job]);
            let more = || Ok(jobs.next().unwrap_or_default());
            let work = |(): &mut (), job: usize, _: &mut (), _: Stop<'_>| {
                assert_ne!(job, 30);
                Ok(())
            };
            let work = || as_they_come(more, vec![(); workers], &|| false, work, |()| ());
            assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).is_err());
        }
    }
}
