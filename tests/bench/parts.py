"""The measured parts that need no broker: each a function that returns what the report keeps of it."""
import glob
import json
import os
import shutil
import subprocess
from contextlib import ExitStack

import common
from common import Daemon, Job, by_turns, compact, measure

# Rows of a small commit, at 2,000,000 rows in the table.
SMALL = 1000


def bases(folder):
    return sorted(glob.glob(os.path.join(folder, "base-*.json")))


def many_trips(a, rows, files):
    """New trips of the same kind, more than the peers are asked to take: made once."""
    folder = os.path.join(a.work, f"many-{rows}")
    if not os.path.exists(os.path.join(folder, "done")):
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        subprocess.run([a.floor, "trips", str(rows), str(files), os.path.join(folder, "base")], check=True, stdout=subprocess.DEVNULL)
        open(os.path.join(folder, "done"), "w").close()
    return sorted(glob.glob(os.path.join(folder, "base-*.json")), key=lambda path: int(path.rpartition("-")[2].split(".")[0]))


def small_files(a, rows, kind, count, size):
    """Files of `size` trips for a table of `rows`: half updates (mixed), or updates alone. New keys are new in each."""
    folder = os.path.join(a.work, f"small-{rows}")
    os.makedirs(folder, exist_ok=True)
    made = [os.path.join(folder, f"{kind}-{size}-{i}.json") for i in range(count)]
    for i, path in enumerate(made):
        words = {"updates": ["--update-ratio", 1], "mixed": ["--first", 100 * rows + i * size], "fresh": ["--first", 1000 * rows + i * size]}
        if not os.path.exists(path):
            batch = {"updates": 101, "mixed": 100, "fresh": 3000}[kind] + 2 * i
            common.gen(size, "--existing", rows, "--skew", 1, "--batch", batch, "--out", path, *words[kind])
    return made


def cow(a):
    """bulk_insert and upsert into a new copy-on-write table; then small commits of a warm daemon on it."""
    folder = common.trips(a.work, a.rows)
    found, floors = {"bulk_insert": [], "upsert": []}, {"bulk_insert": [], "rewrite": []}
    for _ in range(a.runs):
        job = Job(a, "cow")
        # By turns with its floor: a machine that is slower for a while is so for both.
        floors["bulk_insert"].append(measure([a.floor, "encode", *bases(folder)]))
        found["bulk_insert"].append(job.write("BULK_INSERT", bases(folder)))
        floors["rewrite"].append(measure([a.floor, "rewrite", job.table]))
        found["upsert"].append(job.write("UPSERT", [os.path.join(folder, "upsert.json")]))
    ours = {step: compact(samples) for step, samples in found.items()}
    floors = {step: compact(samples) for step, samples in floors.items()}
    with Daemon(job) as daemon:
        ours["small"] = daemon.block(small_files(a, a.rows, "mixed", a.runs + 1, a.small))
    ours["small"]["points"] = daemon.points
    job.remove()
    theirs = {} if a.ours_only else common.spark(a, folder, a.rows, "--kinds", "cow")
    return {"ours": ours, "floor": floors, "spark": theirs}


def mor(a):
    """A delta commit into a merge-on-read table, its compaction, and small commits of a warm daemon on it."""
    folder = common.trips(a.work, a.rows)
    found, floors = {"bulk_insert": [], "upsert": [], "compaction": []}, []
    for _ in range(a.runs):
        job = Job(a, "mor")
        found["bulk_insert"].append(job.write("BULK_INSERT", bases(folder)))
        found["upsert"].append(job.write("UPSERT", [os.path.join(folder, "upsert.json")]))
        found["compaction"].append(job.compact())
        floors.append(measure([a.floor, "rewrite", job.table]))
    ours = {step: compact(samples) for step, samples in found.items()}
    batches = 2 * a.runs + 1
    mixed = small_files(a, a.rows, "mixed", 2 * batches, a.small)
    with Daemon(job) as daemon:
        ours["updates"] = daemon.block(small_files(a, a.rows, "updates", batches, a.small))
        ours["small"] = daemon.block(mixed[:batches])
    ours["small"]["points"] = daemon.points
    with Daemon(job, **{"hoodie.parquet.small.file.limit": 0}) as daemon:
        ours["new files"] = daemon.block(mixed[batches:])
    ours["new files"]["points"] = daemon.points
    job.remove()
    theirs = {} if a.ours_only else common.spark(a, folder, a.rows, "--kinds", "mor")
    return {"ours": ours, "floor": {"rewrite": compact(floors)}, "spark": theirs}


def start(a):
    """Processes that take one small file: into a new table, and into one of all rows."""
    folder = common.trips(a.work, a.rows)
    files = small_files(a, a.rows, "updates", a.runs, a.small)
    new = [Job(a, "mor").write("UPSERT", [path]) for path in files]
    job = Job(a, "mor")
    job.write("BULK_INSERT", bases(folder))
    old = [job.write("UPSERT", [path]) for path in files]
    job.remove()
    return {"ours": {"new table": compact(new), "large table": compact(old)}}


def sorted_keys(a):
    """Copy-on-write, one partition, rows in the order of their keys, several row groups a file: updates of keys that stand side
    by side, and of as many anywhere."""
    folder = common.trips(a.work, a.rows)
    job = Job(a, "cow", settings={"hoodie.datasource.write.partitionpath.field": "", "hoodie.bulkinsert.sort.mode": "GLOBAL_SORT",
                                  "hoodie.parquet.block.size": a.block_size})
    job.write("BULK_INSERT", bases(folder))
    # The keys of one file group: they are random, so that those of one first digit stand side by side.
    with open(bases(folder)[0]) as f:
        anywhere = [line for line in f]
    lines = [line for line in anywhere if line.startswith('{"trip_id":"4')]
    lines.sort()
    folder = job.table + ".updates"
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)

    def updates(name, choose):
        made = []
        for i in range(a.runs + 1):
            path = os.path.join(folder, f"{name}-{i}.json")
            with open(path, "w") as f:
                for line in choose(i):
                    row = json.loads(line)
                    f.write(json.dumps({**row, "ts": row["ts"] + 10_000_000 * (i + 1)}) + "\n")
            made.append(path)
        return made

    middle, count = len(lines) // 2, min(a.small, len(lines) // 4)
    beside = updates("beside", lambda i: lines[middle:middle + count])
    spread = updates("spread", lambda i: anywhere[i * count:(i + 1) * count])
    with Daemon(job) as daemon:
        ours = {"side by side": daemon.block(beside), "all over the table": daemon.block(spread)}
    newest = max(glob.glob(os.path.join(job.table, "*.parquet")), key=os.path.getmtime)
    found = {"ours": ours, "file_mb": round(os.path.getsize(newest) / 2**20, 1), "block_size": a.block_size}
    shutil.rmtree(folder)
    job.remove()
    return found


def tables(a, kinds, **settings):
    """Merge-on-read tables, {name: rows}, with one file group a partition whatever their size: a round costs what the groups cost that it
    writes to."""
    made = {}
    for name, rows in kinds.items():
        job = made[name] = Job(a, "mor", f"ours-{name}", settings)
        job.conf["hoodie.streamer.workers"] = 1
        job.write("BULK_INSERT", many_trips(a, rows, 8))
        del job.conf["hoodie.streamer.workers"]
    # Else their files are on the way to the disk while the rounds are measured.
    os.sync()
    return made


def follows(a):
    """Does the cost of a small commit follow the batch? Into tables of so many rows (--sizes), after so many commits (--commits)."""
    count = 4 * a.runs + 1
    made = tables(a, {str(rows): rows for rows in a.sizes})
    by_rows = {name: {} for name in made}

    def measured(kind, files, **settings):
        with ExitStack() as stack:
            daemons = {stack.enter_context(Daemon(job, **settings)): files(int(name)) for name, job in made.items()}
            for name, block in zip(made, by_turns(daemons).values()):
                by_rows[name][kind] = {"samples": block["samples"]}

    measured("updates", lambda rows: small_files(a, rows, "updates", count, a.small))
    measured("mixed", lambda rows: small_files(a, rows, "mixed", 2 * count, a.small)[:count])
    measured("new files", lambda rows: small_files(a, rows, "mixed", 2 * count, a.small)[count:], **{"hoodie.parquet.small.file.limit": 0})
    for job in made.values():
        job.remove()

    rows = a.sizes[0]
    made = tables(a, {str(commits): rows for commits in a.commits}, **{"hoodie.archive.automatic": "false", "hoodie.clean.automatic": "false"})
    by_commits = {name: {} for name in made}
    tiny = small_files(a, rows, "fresh", 1, 10)[0]
    updates = small_files(a, rows, "updates", count, a.small)
    with ExitStack() as stack:
        daemons = {name: stack.enter_context(Daemon(job)) for name, job in made.items()}
        for name, daemon in daemons.items():
            for _ in range(int(name) - 1):
                daemon.feed(tiny)
        for kind in ("many logs", "updates"):
            for name, block in zip(made, by_turns({daemon: updates for daemon in daemons.values()}).values()):
                by_commits[name][kind] = {"samples": block["samples"]}
            for job in made.values():
                job.compact()
    for job in made.values():
        job.remove()
    return {"rows": by_rows, "commits": by_commits}


def backlog(a):
    """One process, one run: the rows of the table, and ten times as many."""
    found = {}
    for times in (1, 10):
        files = many_trips(a, times * a.rows, 8 * times)
        for op in ("BULK_INSERT", "UPSERT"):
            job = Job(a, "cow")
            took = job.write(op, files)
            took["commits"] = len(took["rounds"])
            found[f"{op} {times}"] = {**compact([took]), "commits": took["commits"], "rows": times * a.rows}
            job.remove()
    return {"ours": found}


def peer(a):
    """hudi-core and we, on Arrow batches that are in memory already: a process appends, another one upserts a tenth."""
    other, unbuilt = a.hudi_core, None
    try:
        other = other or os.path.join(common.build(os.path.join(common.HERE, "hudi-core", "Cargo.toml")), "bench-hudi-core")
    except subprocess.CalledProcessError:
        unbuilt = "it could not be built"
    found = {}
    for name, program in (("ours", a.in_memory), ("hudi-core", other)):
        for kind in ("cow", "mor", "mor, new files"):
            # hudi-core knows no small files: what it does of its own accord.
            if name == "hudi-core" and kind == "mor, new files":
                found[f"{name} {kind}"] = found[f"{name} mor"]
                continue
            settings = ["hoodie.parquet.small.file.limit=0"] if kind == "mor, new files" else []
            if name == "hudi-core" and unbuilt:
                found[f"{name} {kind}"] = {"steps": {}, "failed": unbuilt}
                continue
            table, steps, failed = os.path.join(a.work, "in-memory"), {}, None
            for _ in range(a.runs):
                shutil.rmtree(table, ignore_errors=True)
                for step in ("append", "upsert"):
                    ran = subprocess.run([program, step, kind.split(',')[0], str(a.rows // 2), table, *settings], capture_output=True, text=True)
                    if ran.returncode:
                        failed = f"{step}: {ran.stderr.strip().splitlines()[-1]}"
                        break
                    line = json.loads(ran.stdout)
                    steps.setdefault(line.pop("step"), []).append(line)
                if failed:
                    break
            shutil.rmtree(table, ignore_errors=True)
            found[f"{name} {kind}"] = {"steps": steps, "failed": failed}
    return {"rows": a.rows // 2, **found}


def kernels(a):
    """What benches/src/kernels.rs takes, by criterion: ns of a call, and how many rows or bytes it was for."""
    home = os.path.join(a.work, "criterion")
    shutil.rmtree(home, ignore_errors=True)
    program = [a.kernels, "--bench"] if a.kernels else ["cargo", "bench", "--manifest-path", os.path.join(common.ROOT, "benches", "Cargo.toml"), "--"]
    subprocess.run([*program, "--warm-up-time", "0.5", "--measurement-time", "2"], check=True, stdout=subprocess.DEVNULL,
                   env={**os.environ, "CRITERION_HOME": home})
    found = []
    for path in sorted(glob.glob(os.path.join(home, "*", "*", "new", "benchmark.json"))):
        with open(path) as of, open(os.path.join(os.path.dirname(path), "estimates.json")) as taken:
            kernel, median = json.load(of), json.load(taken)["median"]
        found.append({"group": kernel["group_id"], "name": kernel["function_id"], "of": kernel["throughput"], "ns": round(median["point_estimate"])})
    return {"kernels": found}


PARTS = {"cow": cow, "mor": mor, "start": start, "sorted": sorted_keys, "follows": follows, "backlog": backlog, "peer": peer, "kernels": kernels}
