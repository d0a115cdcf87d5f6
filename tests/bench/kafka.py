"""Kafka JSON to a Hudi table: throughput side by side with Spark structured streaming, and latency. Asserts nothing.

    tests/bench/kafka [--rows 1000000] [--ours-only] [--rate 5000] [--seconds 60] [--skip throughput|latency] [--work FOLDER]

Throughput: --rows JSON trips (about 330 bytes each) in a topic of four partitions, upserted into a new copy-on-write table partitioned by
day, once in one commit and once in ten; Hudi's defaults, no metadata table. Ours: the release build, process start included. Spark: Hudi
0.15.0 with its structured streaming source, one JVM, its start not counted. Peak is the greatest resident memory of the process.

Latency: a producer writes --rate events a second, updates of --keys keys, while a continuous job runs; a message is visible when the
commit that covers its offset is complete in the timeline. Measured from the time that the producer hands it to its client.
"""
import argparse
import glob
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
PEERS = os.path.join(ROOT, "tests", "peers")
SVC = os.path.join(PEERS, "services", "svc")
CACHE = os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache"))
EVENT = {"type": "record", "name": "Event", "fields": [
    {"name": "id", "type": "string"}, {"name": "ts", "type": "long"}, {"name": "status", "type": "string"},
    {"name": "zone", "type": "int"}, {"name": "fare", "type": "double"}, {"name": "note", "type": ["null", "string"], "default": None}]}


def binary():
    subprocess.run(["cargo", "build", "--release"], cwd=ROOT, check=True)
    metadata = subprocess.run(["cargo", "metadata", "--format-version", "1", "--no-deps"], cwd=ROOT, check=True, capture_output=True)
    return os.path.join(json.loads(metadata.stdout)["target_directory"], "release", "hudi-streamer")


def topic(broker, name, partitions):
    admin = AdminClient({"bootstrap.servers": broker})
    for done in admin.create_topics([NewTopic(name, partitions, 1)]).values():
        done.result()
    return name


def fill(broker, name, files):
    producer = Producer({"bootstrap.servers": broker, "linger.ms": 50, "queue.buffering.max.messages": 500000})
    count = 0
    for path in files:
        with open(path, "rb") as lines:
            for line in lines:
                while True:
                    try:
                        producer.produce(name, line.rstrip(b"\n"), key=line[12:48])
                        break
                    except BufferError:
                        producer.poll(0.1)
                count += 1
                if count % 1000 == 0:
                    producer.poll(0)
    producer.flush()
    return count


def job(program, table, broker, name, schema, key, partition, conf, flags):
    conf = {"bootstrap.servers": broker, "auto.offset.reset": "earliest", "hoodie.streamer.source.kafka.topic": name,
            "hoodie.streamer.schemaprovider.source.schema.file": schema, "hoodie.datasource.write.recordkey.field": key,
            "hoodie.datasource.write.partitionpath.field": partition, **conf}
    return [program, "--table-type", "COPY_ON_WRITE", "--target-base-path", table, "--target-table", "trips", "--op", "UPSERT",
            "--source-class", "JsonKafkaSource", "--source-ordering-field", "ts", "--schemaprovider-class", "FilebasedSchemaProvider",
            "--no-progress", *flags, *[x for k, v in conf.items() for x in ("--hoodie-conf", f"{k}={v}")]]


def measure(argv):
    """Wall seconds, CPU seconds and peak resident megabytes of one process."""
    begin = time.monotonic()
    child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    log = child.stderr.read().decode(errors="replace")
    _, status, usage = os.wait4(child.pid, 0)
    wall = time.monotonic() - begin
    if status:
        sys.exit(f"{' '.join(argv)}\n{log[-4000:]}")
    return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, log.count("round committed")


def throughput(a, program, broker):
    folder = os.path.join(a.work, f"trips-{2 * a.rows}")
    if not os.path.exists(os.path.join(folder, "fresh")):
        subprocess.run([os.path.join(PEERS, "bench", "data"), folder, str(2 * a.rows)], check=True)
    schema = os.path.join(folder, "trip.avsc")
    with open(schema, "w") as f:
        subprocess.run([sys.executable, os.path.join(PEERS, "gen"), "--avro-schema"], stdout=f, check=True)
    name = topic(broker, f"ours-{os.getpid()}", 4)
    begin = time.monotonic()
    rows = fill(broker, name, sorted(glob.glob(os.path.join(folder, "base-*.json")))[:4])
    print(f"{rows:,} messages produced in {time.monotonic() - begin:.1f} s", file=sys.stderr)
    found, table = {}, os.path.join(a.work, "ours-kafka")
    for commits in (1, 10):
        shutil.rmtree(table, ignore_errors=True)
        flags = ["--continuous", "--source-limit", str(rows // commits), "--post-write-termination-strategy-class",
                 "NoNewDataTerminationStrategy"]
        conf = {"max.rounds.without.new.data.to.shutdown": 1, "hoodie.streamer.source.kafka.round.max.bytes": 0}
        wall, cpu, peak, made = measure(job(program, table, broker, name, schema, "trip_id", "dt", conf, flags))
        assert made == commits, (made, commits)
        found[commits] = (wall, cpu, peak)
    shutil.rmtree(table, ignore_errors=True)
    theirs = {} if a.ours_only else spark(a, folder, broker)
    print(f"\n{os.cpu_count()} cores; load {os.getloadavg()[0]:.1f}; a cell: wall s / CPU s / peak MB, rows a second\n")
    print("| commits | rows | hudi-streamer | Hudi 0.15.0 on Spark | times as fast | CPU | memory |\n|---:|---:|---|---|---:|---:|---:|")
    cell = lambda x: f"{x[0]:.2f} / {x[1]:.1f} / {x[2]:,.0f}, {rows / x[0]:,.0f}/s"
    for commits, mine in found.items():
        other, ratios = "", ["", "", ""]
        if commits in theirs:
            its = theirs[commits]
            other, ratios = cell(its), [f"{its[0] / mine[0]:.1f}", f"1/{its[1] / mine[1]:.1f}", f"1/{its[2] / mine[2]:.1f}"]
        print(f"| {commits} | {rows:,} | {cell(mine)} | {other} | {' | '.join(ratios)} |")


def spark(a, folder, broker):
    peers = os.environ.get("HUDI_PEERS") or os.path.join(CACHE, "hudi-peers")
    subprocess.run([os.path.join(PEERS, "setup"), "kafka"], check=True)
    results = os.path.join(a.work, "spark-kafka.jsonl")
    if os.path.exists(results):
        os.remove(results)
    subprocess.run([os.path.join(peers, "venv", "bin", "python"), os.path.join(PEERS, "bench", "spark_bench.py"), "--hudi", "0.15.0",
                    "--metadata", "off", "--records", str(2 * a.rows), "--kinds", "cow", "--data", folder, "--work", a.work, "--results", results,
                    "--kafka", broker], check=True, stdout=subprocess.DEVNULL, env={**os.environ, "ORACLE_LOG": "OFF", "HUDI_PEERS": peers})
    lines = {x["step"]: x for x in map(json.loads, open(results))}
    return {n: tuple(lines[f"kafka cow upsert, {n} commits"][k] for k in ("wall_s", "cpu_s", "peak_rss_mb")) for n in (1, 10)}


def latency(a, program, broker):
    name = topic(broker, f"live-{os.getpid()}", 4)
    table, schema = os.path.join(a.work, "ours-live"), os.path.join(a.work, "event.avsc")
    shutil.rmtree(table, ignore_errors=True)
    with open(schema, "w") as f:
        json.dump(EVENT, f)
    child = subprocess.Popen(job(program, table, broker, name, schema, "id", "", {"hoodie.parquet.compression.codec": a.codec}, ["--continuous"]),
                             stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=open(os.path.join(a.work, "live.log"), "w"))
    sent = {}  # (partition, offset) -> seconds
    lock = threading.Lock()

    def delivered(at):
        def note(error, message):
            assert error is None, error
            with lock:
                sent[(message.partition(), message.offset())] = at
        return note

    visible, stop = [], threading.Event()  # (seconds, {partition: next offset})

    def watch():
        seen, timeline = set(), os.path.join(table, ".hoodie")
        while not stop.is_set():
            for entry in os.listdir(timeline) if os.path.isdir(timeline) else []:
                if entry.endswith(".commit") and entry not in seen:
                    now = time.monotonic()
                    text = json.load(open(os.path.join(timeline, entry)))["extraMetadata"]["deltastreamer.checkpoint.key"]
                    seen.add(entry)
                    visible.append((now, {int(p): int(o) for p, o in (x.split(":") for x in text.split(",")[1:])}))
            time.sleep(0.002)

    watcher = threading.Thread(target=watch)
    watcher.start()
    producer = Producer({"bootstrap.servers": broker, "linger.ms": 1})
    begin, count = time.monotonic(), 0
    while (elapsed := time.monotonic() - begin) < a.seconds:
        while count < elapsed * a.rate:
            event = {"id": f"vehicle-{(count * 7919) % a.keys:07}", "ts": count, "status": "moving", "zone": count % 97, "fare": count / 7, "note": "x" * 120}
            producer.produce(name, json.dumps(event).encode(), key=event["id"].encode(), callback=delivered(time.monotonic()))
            count += 1
        producer.poll(0)
        time.sleep(0.002)
    producer.flush()
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and (not visible or sum(max(visible)[1].values()) < count):
        time.sleep(0.05)
    stop.set()
    watcher.join()
    peak = next(int(x.split()[1]) for x in open(f"/proc/{child.pid}/status") if x.startswith("VmHWM")) / 1024
    cpu = sum(map(int, open(f"/proc/{child.pid}/stat").read().rpartition(")")[2].split()[11:13])) / os.sysconf("SC_CLK_TCK")
    child.send_signal(signal.SIGTERM)
    assert child.wait() == 0
    visible.sort()
    took = []
    for partition in range(4):
        commits = iter(visible)
        at, next_offset = next(commits)
        for (_, offset), sent_at in sorted(x for x in sent.items() if x[0][0] == partition):
            while next_offset.get(partition, 0) <= offset:
                at, next_offset = next(commits)
            if sent_at - begin > 5:  # the table is made, the first files are written
                took.append(at - sent_at)
    took.sort()
    at = lambda q: took[min(len(took) - 1, int(len(took) * q))]
    print(f"\n{count:,} events at {a.rate:,}/s over {a.keys:,} keys, {len(visible)} commits: produce to visible "
          f"p50 {at(0.5):.3f} s, p99 {at(0.99):.3f} s, max {took[-1]:.3f} s; peak {peak:,.0f} MB, {cpu:.1f} CPU s")
    shutil.rmtree(table, ignore_errors=True)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--rows", type=int, default=1_000_000)
    p.add_argument("--ours-only", action="store_true")
    p.add_argument("--rate", type=int, default=5000)
    p.add_argument("--seconds", type=int, default=60)
    p.add_argument("--keys", type=int, default=100_000)
    p.add_argument("--codec", default="snappy")
    p.add_argument("--skip", choices=["throughput", "latency"])
    p.add_argument("--binary", help="instead of building one")
    p.add_argument("--work", default=os.path.join(CACHE, "hudi-streamer", "bench"))
    a = p.parse_args()
    os.makedirs(a.work, exist_ok=True)
    program = a.binary or binary()
    peers = {**os.environ, "PEERS_DIR": os.path.join(a.work, "peers")}
    held = subprocess.Popen([SVC, "hold", "kafka"], env=peers, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    broker = held.stdout.readline().strip()
    try:
        if a.skip != "throughput":
            throughput(a, program, broker)
        if a.skip != "latency":
            latency(a, program, broker)
    finally:
        held.stdin.close()  # ends the broker, and its data
        held.wait()


if __name__ == "__main__":
    main()
