//! What a piece of work took, as a line of JSON: for two programs that are compared.

use std::fs;
use std::time::Instant;

/// Ticks of `/proc/self/stat` a second: 100 on every Linux of the last decades.
const TICKS: f64 = 100.0;

/// Runs `work` and prints what it took: wall and processor seconds, and the MB of memory that it had at most on top of what
/// was there before.
pub async fn measured<T, E>(step: &str, work: impl Future<Output = Result<T, E>>) -> Result<T, E> {
    let before = memory("VmRSS:");
    // Linux forgets the greatest memory so far.
    fs::write("/proc/self/clear_refs", "5").expect("Linux");
    let (begun, cpu) = (Instant::now(), processor());
    let done = work.await?;
    let (wall, cpu) = (begun.elapsed().as_secs_f64(), processor() - cpu);
    let peak = (memory("VmHWM:") - before).max(0.0);
    println!(r#"{{"step":"{step}","wall":{wall:.4},"cpu":{cpu:.2},"peak":{peak:.1}}}"#);
    Ok(done)
}

fn processor() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").expect("Linux");
    let (_, after_name) = stat.rsplit_once(')').expect("a name in parentheses");
    let ticks = after_name.split_whitespace().skip(11).take(2).map(|ticks| ticks.parse::<f64>().expect("a number"));
    ticks.sum::<f64>() / TICKS
}

/// A line of `/proc/self/status`, in MB.
fn memory(name: &str) -> f64 {
    let status = fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find(|line| line.starts_with(name)).expect("a line of memory");
    line.split_whitespace().nth(1).and_then(|kb| kb.parse::<f64>().ok()).expect("kilobytes") / 1024.0
}
