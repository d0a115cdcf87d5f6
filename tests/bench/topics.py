"""The parts of the report that need a broker; run by `report` with the Python of tests/peers/services, prints JSON.

sustained: JSON trips (about 330 bytes each) in a topic of four partitions, upserted into a new copy-on-write table partitioned by day,
in one commit and in ten; Hudi's defaults, no metadata table. Ours: the release build, process start included. Spark: Hudi 0.15.0
with its structured streaming source, a fresh JVM a run, its start not counted.

backlog: one process that is not told to cut anything, on a topic and on one of ten times as many messages.

live: a producer writes --rate events a second, updates of --keys keys, while a continuous job runs; a message is visible when the
commit that covers its offset is complete in the timeline. Measured from the time that the producer hands it to its client.
"""
import argparse
import glob
import json
import os
import signal
import subprocess
import sys
import threading
import time

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

import common
import parts

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


def job(a, broker, name, settings=()):
    """A copy-on-write table that is fed from a topic, and the arguments of its job."""
    made = common.Job(a, "cow", name, {"bootstrap.servers": broker, "auto.offset.reset": "earliest", **dict(settings)})
    argv = lambda topic, *flags, **more: made.argv("UPSERT", "JsonKafkaSource", {"hoodie.streamer.source.kafka.topic": topic, **more}, *flags)
    return made, argv


def until_the_end(a, broker, name, **settings):
    """A process that takes a topic to its end."""
    table, argv = job(a, broker, "ours-kafka")
    flags = ["--continuous", "--post-write-termination-strategy-class", "NoNewDataTerminationStrategy"]
    took = common.measure(argv(name, *flags, **{"max.rounds.without.new.data.to.shutdown": 1, **settings}), table.table + ".log")
    table.remove()
    return took


def sustained(a, broker):
    folder = common.trips(a.work, a.rows)
    name = topic(broker, f"ours-{os.getpid()}", 4)
    rows = fill(broker, name, sorted(glob.glob(os.path.join(folder, "base-*.json")))[:4])
    cut = lambda commits: {"hoodie.streamer.kafka.source.maxEvents": rows // commits, "hoodie.streamer.round.max.bytes": 0}
    ours, floor = {1: [], 10: []}, []
    for _ in range(a.runs):
        floor.append(common.measure([a.floor, "consume", broker, name, str(rows)]))
        for commits, samples in ours.items():
            samples.append(until_the_end(a, broker, name, **cut(commits)))
            assert len(samples[-1]["rounds"]) == commits, samples
    ours, floor = {str(commits): common.compact(samples) for commits, samples in ours.items()}, common.compact(floor)
    theirs = {}
    if not a.ours_only:
        theirs = common.spark(a, folder, a.rows, "--kinds", "cow", "--kafka", broker, setup=["kafka"])
        theirs = {str(n): theirs[f"kafka cow upsert, {n} commits"] for n in (1, 10)}
    return {"rows": rows, "ours": ours, "floor": floor, "spark": theirs}


def backlog(a, broker):
    """Processes at default settings, on a topic and on one of ten times as many messages."""
    found = {}
    for times in (1, 10):
        rows = times * a.rows // 2
        name = topic(broker, f"backlog-{times}-{os.getpid()}", 4)
        assert fill(broker, name, parts.many_trips(a, rows, 4 * times)) == rows
        took = until_the_end(a, broker, name)
        found[str(times)] = {**common.compact([took]), "rows": rows, "commits": len(took["rounds"])}
    return {"ours": found}


def live(a, broker):
    name = topic(broker, f"live-{os.getpid()}", 4)
    schema = os.path.join(a.work, "event.avsc")
    with open(schema, "w") as f:
        json.dump(EVENT, f)
    made, argv = job(a, broker, "ours-live", {
        "hoodie.streamer.schemaprovider.source.schema.file": schema, "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "", "hoodie.parquet.compression.codec": "snappy"})
    table = made.table
    with open(table + ".log", "w") as stderr:
        child = subprocess.Popen(argv(name, "--continuous"), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=stderr)
    watcher_of_memory = common.Watch(child.pid, 0.2)
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
    peak, cpu = common.peak_of(child.pid), common.cpu_of(child.pid)
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
    made.remove()
    return {"events": count, "rate": a.rate, "keys": a.keys, "commits": len(visible), "p50": round(at(0.5), 3), "p99": round(at(0.99), 3),
            "most": round(took[-1], 3), "peak": round(peak, 1), "cpu": round(cpu, 1), "points": watcher_of_memory.end()}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("part", choices=["sustained", "backlog", "live"])
    p.add_argument("--rate", type=int, default=5000)
    p.add_argument("--keys", type=int, default=100_000)
    p.add_argument("--settings", help="JSON: those of the report")
    a = p.parse_args()
    vars(a).update(json.loads(a.settings))
    peers = {**os.environ, "PEERS_DIR": os.path.join(a.work, "peers")}
    svc = os.path.join(common.PEERS, "services", "svc")
    held = subprocess.Popen([svc, "hold", "kafka"], env=peers, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    broker = held.stdout.readline().strip()
    try:
        print(json.dumps({"sustained": sustained, "backlog": backlog, "live": live}[a.part](a, broker)))
    finally:
        held.stdin.close()  # ends the broker, and its data
        held.wait()


if __name__ == "__main__":
    main()
