//! The one place where an error of the core becomes a Python exception, and where no panic gets through.

use std::any::Any;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Mutex;
use std::time::Instant;

use pyo3::prelude::*;
use pyo3::types::PyType;
use subword_core::pipeline::Stop;
use subword_core::{Error, Kind, Result};

/// Turns a result of the core into one of Python.
pub trait Checked<T> {
    fn checked(self) -> PyResult<T>;
}

impl<T> Checked<T> for Result<T> {
    fn checked(self) -> PyResult<T> {
        self.map_err(to_python)
    }
}

fn to_python(error: Error) -> PyErr {
    let class = match error.kind {
        Kind::Value => "SubwordValueError",
        Kind::Format => "FormatError",
        Kind::SpecialToken => "SpecialTokenError",
        Kind::UnknownToken => "UnknownTokenError",
        Kind::Interrupted => return pyo3::exceptions::PyKeyboardInterrupt::new_err(()),
    };
    raise(class, error.message)
}

/// An exception of `subword.errors`.
pub fn raise(class: &str, message: String) -> PyErr {
    Python::attach(|py| {
        let class = py.import("subword.errors").and_then(|module| module.getattr(class));
        match class.and_then(|class| class.cast_into::<PyType>().map_err(PyErr::from)) {
            Ok(class) => PyErr::from_type(class, message),
            Err(error) => error,
        }
    })
}

/// How often Python is asked for pending signals, in milliseconds.
const ASK_EVERY: u64 = 50;

/// Work on so many bytes ends long before Python would make a thread give the GIL back (after 5 ms). To release it and
/// take it again costs 0.1 µs, as much as a short text; and where other threads wait for it, a switch to one of them.
const SHORT: usize = 8192;

/// Runs `work` on so many `bytes`: without the GIL if they are many, or as it is.
pub fn run<T: Send>(py: Python<'_>, bytes: usize, work: impl FnOnce(Stop<'_>) -> Result<T> + Send) -> PyResult<T> {
    if bytes > SHORT {
        return interruptible(py, work);
    }
    match catch_unwind(AssertUnwindSafe(|| work(&|| false))) {
        Ok(result) => result.checked(),
        Err(panic) => Err(defect(&*panic)),
    }
}

/// Runs `work` without the GIL. It may ask the `Stop` it is given whether Ctrl-C was pressed; what a signal handler
/// raised is raised. A panic becomes an `InternalError`.
pub fn interruptible<T: Send>(py: Python<'_>, work: impl FnOnce(Stop<'_>) -> Result<T> + Send) -> PyResult<T> {
    let outcome = py.detach(|| {
        let asker = Asker {
            began: Instant::now(),
            next: AtomicU64::new(ASK_EVERY),
            raised: Mutex::new(None),
            thread: std::thread::current().id(),
        };
        let stop = || asker.stop();
        let result = catch_unwind(AssertUnwindSafe(|| work(&stop)));
        (result, asker.raised.into_inner().ok().flatten())
    });
    match outcome {
        (_, Some(raised)) => Err(raised),
        (Ok(result), None) => result.checked(),
        (Err(panic), None) => Err(defect(&*panic)),
    }
}

fn defect(panic: &(dyn Any + Send)) -> PyErr {
    let message = panic.downcast_ref::<String>().map(String::as_str);
    let message = message.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
    raise("InternalError", format!("a defect in subword's core: {message}. Please report it"))
}

/// Asks Python for signals, on the calling thread only and not too often.
struct Asker {
    began: Instant,
    /// When to ask again, in milliseconds after `began`.
    next: AtomicU64,
    raised: Mutex<Option<PyErr>>,
    thread: std::thread::ThreadId,
}

impl Asker {
    fn stop(&self) -> bool {
        let now = self.began.elapsed().as_millis() as u64;
        if now < self.next.load(Ordering::Relaxed) || std::thread::current().id() != self.thread {
            return false;
        }
        self.next.store(now + ASK_EVERY, Ordering::Relaxed);
        match Python::attach(|py| py.check_signals()) {
            Ok(()) => false,
            Err(error) => {
                if let Ok(mut raised) = self.raised.lock() {
                    *raised = Some(error);
                }
                true
            }
        }
    }
}
