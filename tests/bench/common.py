"""What the benchmarks share: the program, the trips, and what a process took."""
import json
import os
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
PEERS = os.path.join(ROOT, "tests", "peers")
CACHE = os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache"))
WORK = os.path.join(CACHE, "hudi-streamer", "bench")


def binary():
    subprocess.run(["cargo", "build", "--release"], cwd=ROOT, check=True)
    metadata = subprocess.run(["cargo", "metadata", "--format-version", "1", "--no-deps"], cwd=ROOT, check=True, capture_output=True)
    return os.path.join(json.loads(metadata.stdout)["target_directory"], "release", "hudi-streamer")


def trips(work, rows):
    """The folder with the inputs, made once for a number of rows: base-*.json, upsert.json, micro-*.json, trip.avsc."""
    folder = os.path.join(work, f"trips-{rows}")
    if not os.path.exists(os.path.join(folder, "fresh")):
        print(f"making {rows:,} trips in {folder}", file=sys.stderr)
        subprocess.run([os.path.join(PEERS, "bench", "data"), folder, str(rows)], check=True)
    with open(os.path.join(folder, "trip.avsc"), "w") as f:
        gen("--avro-schema", stdout=f)
    return folder


def gen(*words, **more):
    subprocess.run([sys.executable, os.path.join(PEERS, "gen"), *map(str, words)], check=True, **more)


def measure(argv):
    """Wall seconds, CPU seconds and peak resident megabytes of one process, and its log."""
    begin = time.monotonic()
    child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    log = child.stderr.read().decode(errors="replace")
    _, status, usage = os.wait4(child.pid, 0)
    wall = time.monotonic() - begin
    if status:
        sys.exit(f"{' '.join(argv)}\n{log[-4000:]}")
    return (wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024), log


def medians(samples):
    return tuple(statistics.median(column) for column in zip(*samples))


def conf(settings):
    return [word for key, value in settings.items() for word in ("--hoodie-conf", f"{key}={value}")]


def spark(folder, work, rows, *words, setup=()):
    """Hudi 0.15.0 on Spark without a metadata table, one JVM, its start not counted: wall, CPU and peak of the samples of each step."""
    peers = os.environ.get("HUDI_PEERS") or os.path.join(CACHE, "hudi-peers")
    subprocess.run([os.path.join(PEERS, "setup"), *setup], check=True)
    results = os.path.join(work, "spark.jsonl")
    if os.path.exists(results):
        os.remove(results)
    subprocess.run([os.path.join(peers, "venv", "bin", "python"), os.path.join(PEERS, "bench", "spark_bench.py"), "--hudi", "0.15.0",
                    "--metadata", "off", "--records", str(rows), "--data", folder, "--work", work, "--results", results, *words],
                   check=True, stdout=subprocess.DEVNULL, env={**os.environ, "ORACLE_LOG": "OFF", "HUDI_PEERS": peers})
    steps = {}
    with open(results) as lines:
        for line in map(json.loads, lines):
            steps.setdefault(line["step"], []).append((line["wall_s"], line["cpu_s"], line["peak_rss_mb"]))
    return {step: medians(samples) for step, samples in steps.items()}


def print_table(first, steps, mine, theirs):
    """A row a step (name, rows): what each took, and ratios."""
    print(f"\n{os.cpu_count()} cores; load {os.getloadavg()[0]:.1f}; a cell: wall s / CPU s / peak MB, rows a second\n")
    print(f"| {first} | rows | hudi-streamer | Hudi 0.15.0 on Spark | times as fast | CPU | memory |\n|---|---:|---|---|---:|---:|---:|")
    for step, rows in steps:
        cell = lambda x: f"{x[0]:.2f} / {x[1]:.1f} / {x[2]:,.0f}, {rows / x[0]:,.0f}/s"
        ours, other, ratios = mine[step], "", ["", "", ""]
        if step in theirs:
            its = theirs[step]
            other, ratios = cell(its), [f"{its[0] / ours[0]:.1f}", f"1/{its[1] / ours[1]:.1f}", f"1/{its[2] / ours[2]:.1f}"]
        print(f"| {step} | {rows:,} | {cell(ours)} | {other} | {' | '.join(ratios)} |")
