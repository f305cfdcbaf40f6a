// SPDX-License-Identifier: MIT

//! peer_tokio QUESTION N asks tokio's tasks what the task_*.c programs ask weir's, and prints
//! the nanoseconds that one operation took, or the bytes that one task takes.

use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Notify, Semaphore};
use tokio::task::{yield_now, JoinHandle};
use tokio::time::timeout_at;

const HOUR: Duration = Duration::from_secs(3600);

fn one_thread() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

fn two_threads() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

fn per_operation(start: Instant, operations: usize) -> f64 {
    start.elapsed().as_nanos() as f64 / operations as f64
}

async fn join_all(tasks: Vec<JoinHandle<()>>) {
    for task in tasks {
        task.await.unwrap();
    }
}

/// Let all others run until they have nothing left to do but wait.
async fn until_all(arrived: &AtomicUsize, n: usize) {
    while arrived.load(Relaxed) < n {
        yield_now().await;
    }
    yield_now().await;
}

// ---- switching ------------------------------------------------------------------------

async fn yields(n: usize) -> f64 {
    let start = Instant::now();
    let tasks = (0..2).map(|_| {
        tokio::spawn(async move {
            for _ in 0..n {
                yield_now().await;
            }
        })
    });
    join_all(tasks.collect()).await;
    per_operation(start, 2 * n)
}

/// Two tasks, each of which waits for a permit and then gives one to the other.
macro_rules! handoff {
    ($n:expr, $sem:ident => $take:expr) => {{
        let sems = [Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0))];
        let start = Instant::now();
        let tasks = (0..2).map(|player| {
            let (mine, theirs) = (sems[player].clone(), sems[1 - player].clone());
            tokio::spawn(async move {
                let $sem = &*mine;
                for _ in 0..$n {
                    $take.await.unwrap().forget();
                    theirs.add_permits(1);
                }
            })
        });
        let tasks = tasks.collect();
        sems[0].add_permits(1);
        join_all(tasks).await;
        per_operation(start, 2 * $n)
    }};
}

async fn handoff_plain(n: usize) -> f64 {
    handoff!(n, sem => sem.acquire())
}

/// With a deadline, as weir's have.
async fn handoff_timeout(n: usize) -> f64 {
    let end = tokio::time::Instant::now() + HOUR;
    handoff!(n, sem => async { timeout_at(end, sem.acquire()).await.unwrap() })
}

// ---- starting and ending ----------------------------------------------------------------

async fn spawn_join(n: usize) -> f64 {
    let start = Instant::now();
    for _ in 0..n {
        tokio::spawn(async {}).await.unwrap();
    }
    per_operation(start, n)
}

async fn spawn_batches(n: usize) -> f64 {
    const BATCH: usize = 1000;
    let start = Instant::now();
    for _ in 0..n / BATCH {
        join_all((0..BATCH).map(|_| tokio::spawn(async {})).collect()).await;
    }
    per_operation(start, n / BATCH * BATCH)
}

/// The first wave pays for the memory, and does not count.
async fn wake_all(n: usize) -> f64 {
    const WAVES: usize = 3;
    let mut total = Duration::ZERO;
    for wave in 0..=WAVES {
        let (event, arrived) = (Arc::new(Notify::new()), Arc::new(AtomicUsize::new(0)));
        let tasks = (0..n).map(|_| {
            let (event, arrived) = (event.clone(), arrived.clone());
            tokio::spawn(async move {
                arrived.fetch_add(1, Relaxed);
                event.notified().await;
            })
        });
        let tasks = tasks.collect();
        until_all(&arrived, n).await;
        let start = Instant::now();
        event.notify_waiters();
        join_all(tasks).await;
        if wave > 0 {
            total += start.elapsed();
        }
    }
    total.as_nanos() as f64 / (WAVES * n) as f64
}

// ---- one semaphore for many ---------------------------------------------------------------

async fn sem_tasks(n: usize) -> f64 {
    const EACH: usize = 100;
    let (begin, sem) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(8)));
    let arrived = Arc::new(AtomicUsize::new(0));
    let tasks = (0..n).map(|_| {
        let (begin, sem, arrived) = (begin.clone(), sem.clone(), arrived.clone());
        tokio::spawn(async move {
            arrived.fetch_add(1, Relaxed);
            begin.acquire().await.unwrap().forget();
            for _ in 0..EACH {
                let permit = sem.acquire().await.unwrap();
                yield_now().await;
                drop(permit);
            }
        })
    });
    let tasks = tasks.collect();
    until_all(&arrived, n).await;
    let start = Instant::now();
    begin.add_permits(n);
    join_all(tasks).await;
    per_operation(start, n * EACH)
}

// ---- memory ---------------------------------------------------------------------------------

fn resident_bytes() -> f64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    text.split(' ').nth(1).unwrap().parse::<f64>().unwrap() * 4096.0
}

async fn memory(n: usize) -> f64 {
    let (event, arrived) = (Arc::new(Notify::new()), Arc::new(AtomicUsize::new(0)));
    let before = resident_bytes();
    for _ in 0..n {
        let (event, arrived) = (event.clone(), arrived.clone());
        tokio::spawn(async move {
            arrived.fetch_add(1, Relaxed);
            event.notified().await;
        });
    }
    until_all(&arrived, n).await;
    (resident_bytes() - before) / n as f64
}

// -----------------------------------------------------------------------------------------------

/// On one thread the question itself is a task too: what block_on runs is none.
fn ask<Fut>(runtime: Runtime, question: Fut) -> f64
where
    Fut: Future<Output = f64> + Send + 'static,
{
    runtime.block_on(async { tokio::spawn(question).await.unwrap() })
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let n = arguments.get(2).and_then(|n| n.parse().ok()).filter(|n| *n > 0);
    let (question, n) = match n {
        Some(n) => (arguments[1].as_str(), n),
        None => usage(),
    };
    let result = match question {
        "yield" => ask(one_thread(), yields(n)),
        "handoff" => ask(one_thread(), handoff_plain(n)),
        "handoff_timeout" => ask(one_thread(), handoff_timeout(n)),
        "spawn_join" => ask(one_thread(), spawn_join(n)),
        "spawn_batches" => ask(one_thread(), spawn_batches(n)),
        "wake_all" => ask(one_thread(), wake_all(n)),
        "sem_tasks" => ask(one_thread(), sem_tasks(n)),
        "sem_tasks_two" => ask(two_threads(), sem_tasks(n)),
        "memory" => ask(one_thread(), memory(n)),
        _ => usage(),
    };
    println!("{result:.2}");
    std::process::exit(0); // not waiting for tasks that wait for ever
}

fn usage() -> ! {
    eprintln!("usage: peer_tokio QUESTION N, with N above 0");
    std::process::exit(2)
}
