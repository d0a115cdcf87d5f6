"""What the benchmarks share: the programs, the trips, what a process took and how it went on, and pictures of that."""
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import threading
import time
from datetime import datetime

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
PEERS = os.path.join(ROOT, "tests", "peers")
CACHE = os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache"))
WORK = os.path.join(CACHE, "hudi-streamer", "bench")
TICK = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
# A picture needs no more, and a file of results stays small.
POINTS = 150


def build(manifest, *words):
    """Builds a package and says where its programs are."""
    subprocess.run(["cargo", "build", "--release", "--manifest-path", manifest, *words], check=True)
    metadata = subprocess.run(["cargo", "metadata", "--format-version", "1", "--no-deps", "--manifest-path", manifest], check=True,
                              capture_output=True)
    return os.path.join(json.loads(metadata.stdout)["target_directory"], "release")


def binary():
    return os.path.join(build(os.path.join(ROOT, "Cargo.toml")), "hudi-streamer")


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


def conf(settings):
    return [word for key, value in settings.items() for word in ("--hoodie-conf", f"{key}={value}")]


def cpu_of(pid):
    """Processor seconds of a process so far, all threads."""
    with open(f"/proc/{pid}/stat") as f:
        return sum(map(int, f.read().rpartition(")")[2].split()[11:13])) / TICK


def peak_of(pid):
    """The greatest resident memory of a process so far, in megabytes."""
    with open(f"/proc/{pid}/status") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmHWM")) / 1024


class Watch(threading.Thread):
    """Looks at a process again and again: [seconds, resident MB, MB read so far, MB written so far]."""

    def __init__(self, pid, every=0.05):
        super().__init__(daemon=True)
        self.pid, self.every, self.points, self.stop = pid, every, [], threading.Event()
        self.begin = time.monotonic()
        self.start()

    def run(self):
        while not self.stop.wait(self.every):
            try:
                with open(f"/proc/{self.pid}/statm") as memory, open(f"/proc/{self.pid}/io") as io:
                    counted = dict(line.split(": ") for line in io.read().splitlines())
                    self.points.append((time.monotonic() - self.begin, int(memory.read().split()[1]) * PAGE / 2**20,
                                        int(counted["rchar"]) / 2**20, int(counted["wchar"]) / 2**20))
            except (OSError, IndexError):
                return

    def end(self):
        self.stop.set()
        self.join()
        step = max(1, -(-len(self.points) // POINTS))
        return [[round(value, 2) for value in point] for point in self.points[::step]]


def measure(argv, log=None):
    """Wall seconds, CPU seconds and peak resident MB of one process, how its memory went, and its rounds."""
    log = log or os.path.join(WORK, "last.log")
    with open(log, "w") as stderr:
        begin = time.monotonic()
        child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=stderr)
        watch = Watch(child.pid)
        out = child.stdout.read().decode()
        _, status, usage = os.wait4(child.pid, 0)
        wall = time.monotonic() - begin
    child.returncode = status
    with open(log) as f:
        text = f.read()
    if status:
        sys.exit(f"{' '.join(argv)}\n{text[-4000:]}")
    return {"wall": round(wall, 4), "cpu": round(usage.ru_utime + usage.ru_stime, 3), "peak": round(usage.ru_maxrss / 1024, 1),
            "points": watch.end(), "rounds": rounds_of(text.splitlines()), "out": out}


def rounds_of(lines):
    """What the log says of each round: seconds since the first line, rows, ms, ms by stage."""
    found, begin = [], None
    for line in lines:
        try:
            entry = json.loads(line)
            at = datetime.fromisoformat(entry["timestamp"].replace("Z", "+00:00")).timestamp()
        except (ValueError, KeyError):
            continue
        begin = begin or at
        if entry.get("message") == "round committed":
            stages = {name: int(ms) for name, ms in re.findall(r"([\w-]+)=(\d+)ms", entry["stages"])}
            found.append({"at": round(at - begin, 3), "rows": entry["rows_read"], "ms": entry["duration_ms"], "stages": stages})
    return found


def compact(samples):
    """Of several samples what is kept: the figures of all, the course of the last."""
    kept = [{key: sample[key] for key in ("wall", "cpu", "peak")} for sample in samples]
    last = {key: samples[-1][key] for key in ("points", "rounds") if samples[-1].get(key)}
    if len(last.get("rounds", [])) > 2 * POINTS:
        last["rounds"] = last["rounds"][::-(-len(last["rounds"]) // POINTS)]
    return {"samples": kept, **last}


class Job:
    """One table of ours, and the calls on it."""

    def __init__(self, a, kind, name="ours", settings=()):
        self.a, self.kind, self.table = a, kind, os.path.join(a.work, name)
        shutil.rmtree(self.table, ignore_errors=True)
        schema = os.path.join(a.work, "trip.avsc")
        with open(schema, "w") as f:
            gen("--avro-schema", stdout=f)
        self.conf = {"hoodie.streamer.schemaprovider.source.schema.file": schema, "hoodie.datasource.write.recordkey.field": "trip_id",
                     "hoodie.datasource.write.partitionpath.field": "dt", "hoodie.index.type": "BLOOM", **dict(settings),
                     **dict(pair.split("=", 1) for pair in a.conf)}

    def argv(self, op, source, settings, *flags):
        table_type = {"cow": "COPY_ON_WRITE", "mor": "MERGE_ON_READ"}[self.kind]
        services = ["--disable-compaction"] if self.kind == "mor" else []
        return [self.a.binary, "--table-type", table_type, "--target-base-path", self.table, "--target-table", "trips", "--op", op,
                "--source-class", source, "--source-ordering-field", "ts", "--schemaprovider-class", "FilebasedSchemaProvider", *services,
                "--no-progress", "--log-json", *flags, *conf({**self.conf, **settings})]

    def dfs(self, op, root, *flags, **settings):
        return self.argv(op, "JsonDFSSource", {"hoodie.streamer.source.dfs.root": root, **settings}, *flags)

    def write(self, op, files):
        """One process that ingests these files."""
        root = self.table + ".in"
        shutil.rmtree(root, ignore_errors=True)
        os.makedirs(root)
        for path in files:
            os.link(path, os.path.join(root, os.path.basename(path)))
        took = measure(self.dfs(op, root, "--ignore-checkpoint", op + str(time.monotonic_ns())), self.table + ".log")
        shutil.rmtree(root)
        return took

    def compact(self):
        took = measure([self.a.binary, "compact", "--target-base-path", self.table, "--mode", "scheduleAndExecute",
                        *conf({"hoodie.compact.inline.max.delta.commits": 1})], self.table + ".log")
        if not any(name.endswith(".commit") for name in os.listdir(os.path.join(self.table, ".hoodie"))):
            sys.exit(f"nothing was compacted: are files so small that the delta commit rewrote them? See {self.table}.log")
        return took

    def files(self):
        return sum(len(names) for _, _, names in os.walk(self.table))

    def remove(self):
        shutil.rmtree(self.table, ignore_errors=True)


class Daemon:
    """A continuous job on a table, fed a file at a time; `with` ends it."""

    def __init__(self, job, *flags, **settings):
        self.root, self.log, self.read = job.table + ".live", job.table + ".log", 0
        shutil.rmtree(self.root, ignore_errors=True)
        os.makedirs(self.root)
        self.lines, self.partial, self.count, self.fed = [], "", 0, 0
        argv = job.dfs("UPSERT", self.root, "--continuous", "--min-sync-interval-seconds", "0", *flags, **settings)
        with open(self.log, "w") as stderr:
            self.child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=stderr)
        self.watch = Watch(self.child.pid, 0.2)
        self.tail = open(self.log)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self.child.send_signal(signal.SIGKILL if kind else signal.SIGTERM)
        code = self.child.wait()
        self.points = self.watch.end()
        self.tail.close()
        shutil.rmtree(self.root, ignore_errors=True)
        assert kind or code == 0, self.log

    def committed(self):
        """How many rounds the log has told of so far."""
        for piece in iter(self.tail.readline, ""):
            self.partial += piece
            if piece.endswith("\n"):
                if '"round committed"' in self.partial:
                    self.lines.append(self.partial)
                    self.count += 1
                self.partial = ""
        return self.count

    def feed(self, path):
        """Seconds from the moment that the file is there to that of its commit. The file goes then: its folder is listed in every round."""
        before, name = self.committed(), f"{self.fed:06}.json"
        self.fed += 1
        hidden = os.path.join(self.root, "." + name)
        shutil.copyfile(path, hidden)
        begin = time.monotonic()
        os.rename(hidden, os.path.join(self.root, name))
        while self.committed() == before:
            if self.child.poll() is not None or time.monotonic() - begin > 600:
                sys.exit(f"no commit of {path}: see {self.log}")
            time.sleep(0.001)
        took = time.monotonic() - begin
        os.remove(os.path.join(self.root, name))
        return took

    def block(self, files):
        return by_turns({self: files})[self]


def by_turns(fed):
    """Files one after the other into each of several daemons, a file to each by turns: where the machine is slower for a while, it is so for
    all. The first file warms up. Wall: what the round says of itself."""
    cpu, latencies = {}, {daemon: [] for daemon in fed}
    for daemon, files in fed.items():
        daemon.feed(files[0])
        daemon.lines.clear()
        cpu[daemon] = cpu_of(daemon.child.pid)
    for files in zip(*(files[1:] for files in fed.values())):
        for daemon, path in zip(fed, files):
            latencies[daemon].append(daemon.feed(path))
    blocks = {}
    for daemon, latency in latencies.items():
        took = (cpu_of(daemon.child.pid) - cpu[daemon]) / len(latency)
        rounds, peak = rounds_of(daemon.lines), peak_of(daemon.child.pid)
        daemon.lines.clear()
        samples = [{"wall": round["ms"] / 1000, "cpu": round_to(took), "peak": round_to(peak)} for round in rounds]
        blocks[daemon] = {"samples": samples, "latency": [round_to(x) for x in latency], "rounds": rounds}
    return blocks


def round_to(value):
    return float(f"{value:.4g}")


def medians(samples):
    return {key: statistics.median(sample[key] for sample in samples) for key in ("wall", "cpu", "peak")}


def spark(a, folder, rows, *words, setup=()):
    """Hudi 0.15.0 on Spark without a metadata table, a fresh JVM a run, its start not counted in the steps: samples of each step."""
    peers = os.environ.get("HUDI_PEERS") or os.path.join(CACHE, "hudi-peers")
    subprocess.run([os.path.join(PEERS, "setup"), *setup], check=True)
    results = os.path.join(a.work, "spark.jsonl")
    if os.path.exists(results):
        os.remove(results)
    for run in range(a.spark_runs):
        subprocess.run([os.path.join(peers, "venv", "bin", "python"), os.path.join(PEERS, "bench", "spark_bench.py"), "--hudi", "0.15.0",
                        "--metadata", "off", "--rep", str(run), "--records", str(rows), "--data", folder, "--work", a.work, "--results", results, *words],
                       check=True, stdout=subprocess.DEVNULL, env={**os.environ, "ORACLE_LOG": "OFF", "HUDI_PEERS": peers})
    steps = {}
    with open(results) as lines:
        for line in map(json.loads, lines):
            steps.setdefault(line["step"], []).append({"wall": line["wall_s"], "cpu": line["cpu_s"], "peak": line["peak_rss_mb"]})
    return steps


def plot(path, title, below, series):
    """A line a series ([(x, y)] or [y]), as SVG, from zero up."""
    wide, high, left, foot = 720, 220, 60, 30
    series = {name: [p if isinstance(p, (tuple, list)) else (i, p) for i, p in enumerate(points)] for name, points in series.items()}
    most = max((y for points in series.values() for _, y in points), default=0) or 1
    last = max((x for points in series.values() for x, _ in points), default=0) or 1
    colours = ["#1f77b4", "#d62728", "#2ca02c", "#9467bd"]
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high + foot}" font-family="sans-serif" font-size="12">',
             f'<rect width="{wide}" height="{high + foot}" fill="white"/>', f'<text x="{left}" y="14">{title}</text>']
    for step in range(5):
        y = high - (high - 30) * step / 4
        parts.append(f'<line x1="{left}" x2="{wide - 10}" y1="{y:.0f}" y2="{y:.0f}" stroke="#ddd"/>')
        parts.append(f'<text x="{left - 6}" y="{y + 4:.0f}" text-anchor="end">{most * step / 4:,.4g}</text>')
    for at, (name, points) in enumerate(series.items()):
        line = " ".join(f"{left + (wide - left - 10) * x / last:.1f},{high - (high - 30) * y / most:.1f}" for x, y in points)
        parts.append(f'<polyline fill="none" stroke="{colours[at % 4]}" stroke-width="1.2" points="{line}"/>')
        parts.append(f'<text x="{wide - 12}" y="{14 + 14 * at}" text-anchor="end" fill="{colours[at % 4]}">{name}</text>')
    parts += [f'<text x="{left}" y="{high + 20}">{below}</text>', "</svg>"]
    with open(path, "w") as f:
        f.write("\n".join(parts) + "\n")
