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

import common

SVC = os.path.join(common.PEERS, "services", "svc")
EVENT = {"type": "record", "name": "Event", "fields": [
    {"name": "id", "type": "string"}, {"name": "ts", "type": "long"}, {"name": "status", "type": "string"},
    {"name": "zone", "type": "int"}, {"name": "fare", "type": "double"}, {"name": "note", "type": ["null", "string"], "default": None}]}


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
            "--no-progress", *flags, *common.conf(conf)]


def throughput(a, program, broker):
    folder = common.trips(a.work, 2 * a.rows)
    schema = os.path.join(folder, "trip.avsc")
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
        found[commits], log = common.measure(job(program, table, broker, name, schema, "trip_id", "dt", conf, flags))
        made = log.count("round committed")
        assert made == commits, (made, commits)
    shutil.rmtree(table, ignore_errors=True)
    theirs = {}
    if not a.ours_only:
        theirs = common.spark(folder, a.work, 2 * a.rows, "--kinds", "cow", "--kafka", broker, setup=["kafka"])
        theirs = {n: theirs[f"kafka cow upsert, {n} commits"] for n in found}
    common.print_table("commits", [(n, rows) for n in found], found, theirs)


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
    p.add_argument("--work", default=common.WORK)
    a = p.parse_args()
    os.makedirs(a.work, exist_ok=True)
    program = a.binary or common.binary()
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
