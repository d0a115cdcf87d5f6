"""REPORT.md and its pictures, from what the parts have left in results/."""
import glob
import json
import os
import statistics

import common
from common import medians, plot

# What a row of the table compares: its name, rows (as a function of the settings), ours, Spark's step, how many times as fast we are to be,
# the floor, and how many times the floor's time we may take. A place is (part, of whom, step).
AGAINST = [
    ("bulk_insert, copy-on-write", lambda s: s["rows"], ("cow", "ours", "bulk_insert"), "cow bulk_insert", 10, ("cow", "floor", "bulk_insert"), 1.4),
    ("upsert, half updates, copy-on-write", lambda s: s["rows"] // 10, ("cow", "ours", "upsert"), "cow upsert", 10, ("cow", "floor", "rewrite"), 1.4),
    ("upsert, half updates, merge-on-read (delta commit)", lambda s: s["rows"] // 10, ("mor", "ours", "upsert"), "mor upsert", 15, None, None),
    ("compaction of that delta commit", lambda s: s["rows"] // 10, ("mor", "ours", "compaction"), "mor compaction", 10, ("mor", "floor", "rewrite"), 1.4),
    ("small commit, half new, 10 partitions, merge-on-read, warm", lambda s: s["small"], ("mor", "ours", "small"), "mor micro", 50, None, None),
    ("small commit, half new, 10 partitions, copy-on-write, warm", lambda s: s["small"], ("cow", "ours", "small"), "cow micro", 10, None, None),
    ("Kafka JSON, upsert, one commit", lambda s: s["rows"] // 2, ("sustained", "ours", "1"), "1", 12, ("sustained", "floor", None), 1.5),
    ("Kafka JSON, upsert, ten commits", lambda s: s["rows"] // 2, ("sustained", "ours", "10"), "10", 12, ("sustained", "floor", None), 1.5),
]
# What is looked at closely: part, step, name, whether there are pictures of it alone.
STEPS = [
    ("cow", "bulk_insert", "bulk_insert", True),
    ("cow", "upsert", "upsert, copy-on-write", True),
    ("mor", "upsert", "upsert, merge-on-read", True),
    ("mor", "compaction", "compaction", True),
    ("cow", "small", "small, copy-on-write", False),
    ("mor", "small", "small, half new", False),
    ("mor", "updates", "small, updates", False),
    ("mor", "new files", "small, small.file.limit=0", False),
    ("sustained", "1", "Kafka, one commit", False),
    ("sustained", "10", "Kafka, ten commits", True),
    ("backlog", "UPSERT 10", "DFS, ten times the rows", True),
    ("kafka-backlog", "10", "Kafka, ten times the messages", True),
]
MB = 600


def write(out, folder):
    found = {}
    for path in glob.glob(os.path.join(folder, "*.json")):
        with open(path) as f:
            found[os.path.basename(path)[:-5]] = json.load(f)
    if not found:
        raise SystemExit(f"nothing has been measured yet: no results in {folder}")
    lines = head(found) + against_spark(found) + limits(found) + sorted_keys(found) + follows(found) + memory(found) + peer(found)
    lines += stages(found) + kernels(found) + pictures(out, found)
    with open(os.path.join(out, "REPORT.md"), "w") as f:
        f.write("\n".join(lines) + "\n")
    print(f"written: {os.path.join(out, 'REPORT.md')}")


def head(found):
    newest = max(found.values(), key=lambda part: part["date"])["machine"]
    lines = ["# Speed and memory", "",
             f"{newest['cpu']}, {newest['cores']} cores, {newest['memory_gb']:g} GB, {newest['system']}, {newest['disk']}; {newest['rustc']}, release build. "
             "Peers: Hudi 0.15.0 on Spark 3.5.9 `local[2]`, 6 GB, no metadata table; hudi-core 0.6.0-rc.1. "
             "Made by `tests/bench/report`, which says how each figure is taken; data in `results/`.", "",
             "| part | command | date | commit | load before | took |", "| --- | --- | --- | --- | ---: | ---: |"]
    for name, part in sorted(found.items()):
        lines.append(f"| {name} | `{part['command']}` | {part['date']} | {part['machine']['commit']} | {part['load']} | {part['took']} s |")
    return lines + ["", "A cell: median wall s (least–most, number of runs) / median CPU s / peak MB. `×`: how many times as fast we are, by wall and by CPU."]


def at(found, place):
    part, who, step = place
    samples = found.get(part, {}).get(who, {})
    samples = samples if step is None else samples.get(step)
    return samples.get("samples") if isinstance(samples, dict) else samples


def cell(samples):
    if not samples:
        return ""
    m, walls = medians(samples), [sample["wall"] for sample in samples]
    digits = 3 if m["wall"] < 1 else 2
    spread = f" ({min(walls):.{digits}f}–{max(walls):.{digits}f}, {len(walls)})"
    return f"{m['wall']:.{digits}f}{spread} / {m['cpu']:.{digits}f} / {m['peak']:,.0f}"


def met(holds):
    return "yes" if holds else "**no**"


def against_spark(found):
    lines = ["", "## Against Hudi on Spark, and against our own floor", "",
             "The floor is a bare loop with our decoder and our encoder on all cores: decode and encode of the same rows; for rewrites, read and encode of all "
             "base files; for Kafka, consume, decode and encode. No keys, no bloom filter, no storage, no commit.", "",
             "| work | rows | hudi-streamer | Hudi 0.15 on Spark | × wall | × CPU | asked | met | floor | times the floor, wall / CPU | asked | met |",
             "| --- | ---: | --- | --- | ---: | ---: | ---: | --- | --- | ---: | ---: | --- |"]
    for name, rows, place, step, wanted, floor, most in AGAINST:
        ours = at(found, place)
        if not ours:
            continue
        mine, theirs = medians(ours), at(found, (place[0], "spark", step))
        row = [name, f"{rows(found[place[0]]['settings']):,}", cell(ours), cell(theirs), "", "", f"≥ {wanted}", ""]
        if theirs:
            its = medians(theirs)
            ratio = its["wall"] / mine["wall"]
            row[4:8] = [f"{ratio:.1f}", f"{its['cpu'] / mine['cpu']:.1f}", f"≥ {wanted}", met(ratio >= wanted)]
        least = floor and at(found, floor)
        if least:
            bare = medians(least)
            ratio = mine["wall"] / bare["wall"]
            row += [cell(least), f"{ratio:.2f} / {mine['cpu'] / bare['cpu']:.2f}", f"≤ {most}", met(ratio <= most)]
        else:
            row += ["", "", "", ""]
        lines.append(f"| {' | '.join(row)} |")
    return lines


def limits(found):
    """What is asked in milliseconds."""
    rows = []
    for name, place, most in (("updates, merge-on-read, warm", ("mor", "ours", "updates"), 50),
                              ("half new, small.file.limit=0, merge-on-read, warm", ("mor", "ours", "new files"), 100)):
        samples = at(found, place)
        if samples:
            ms = statistics.median(sample["wall"] for sample in samples) * 1000
            latency = [x * 1000 for x in found[place[0]][place[1]][place[2]]["latency"]]
            rows.append(f"| small commit: {name} | {cell(samples)} | {ms:.0f} ms, from file to commit {statistics.median(latency):.0f} "
                        f"(at most {max(latency):.0f}) | ≤ {most} ms | {met(ms <= most)} |")
    jvm = [sample["wall"] for part in ("cow", "mor", "sustained") for sample in found.get(part, {}).get("spark", {}).get("jvm_start", [])]
    for name in ("new table", "large table"):
        samples = at(found, ("start", "ours", name))
        if samples:
            wall = medians(samples)["wall"]
            than = f"; Spark's JVM needs {statistics.median(jvm):.1f} s before its first row, {statistics.median(jvm) / wall:.0f} times that" if jvm else ""
            rows.append(f"| a process, from its start to its first small commit, {name} | {cell(samples)} | {wall * 1000:.0f} ms{than} | ≤ 500 ms, 20 times | "
                        f"{met(wall <= 0.5 and (not jvm or statistics.median(jvm) >= 20 * wall))} |")
    live = found.get("live")
    if live:
        rows.append(f"| Kafka, {live['rate']:,} events/s over {live['keys']:,} keys, {live['commits']} commits | {live['cpu']} CPU s / {live['peak']:,.0f} MB | "
                    f"produced to visible: p50 {live['p50']:.3f} s, p99 {live['p99']:.3f} s, at most {live['most']:.3f} s | | |")
    if not rows:
        return []
    return ["", "## Latency", "", "| work | wall s / CPU s / peak MB | median | asked | met |", "| --- | --- | --- | --- | --- |", *rows]


def sorted_keys(found):
    part = found.get("sorted")
    if not part:
        return []
    lines = ["", "## Sorted keys: the cost of the row groups touched", "",
             f"Copy-on-write, not partitioned, bulk insert sorted by key, `hoodie.parquet.block.size={part['block_size']}`; files of {part['file_mb']} MB. "
             "As many updates, of keys that stand side by side and of keys all over the table.", "", "| updates | round |", "| --- | --- |"]
    lines += [f"| {name} | {cell(block['samples'])} |" for name, block in part["ours"].items()]
    beside, anywhere = (medians(block["samples"]) for block in part["ours"].values())
    return lines + ["", f"Side by side they take {beside['cpu'] / anywhere['cpu']:.0%} of the CPU and {beside['wall'] / anywhere['wall']:.0%} of the time."]


def follows(found):
    part = found.get("follows")
    if not part:
        return []
    lines = ["", "## Cost follows the batch", "", f"Rounds of {part['settings']['small']:,} rows, merge-on-read, warm. Asked: all within 1.3 times. "
             "The tables have one file group a partition, whatever their size, and take their files by turns. By commits: right after a compaction, and before it, when each slice has a log file of nearly every "
             "commit and, as Hudi's format has it, each commit names them all.", "",
             "| | " + " | ".join(["updates", "half new, filling small files", "half new, small.file.limit=0"]) + " |", "| --- | --- | --- | --- |"]
    kinds = ("updates", "mixed", "new files")
    uncompacted = {size: {"updates": blocks["many logs"]} for size, blocks in part["commits"].items() if "many logs" in blocks}
    for group, unit in ((part["rows"], "rows in the table"), (part["commits"], "commits on the timeline"), (uncompacted, "commits, not compacted")):
        for size, blocks in group.items():
            lines.append(f"| {int(size):,} {unit} | " + " | ".join(cell(blocks.get(kind, {}).get("samples")) for kind in kinds) + " |")
        cells = []
        for kind in kinds:
            walls = [medians(blocks[kind]["samples"])["wall"] for blocks in group.values() if kind in blocks]
            cells.append(f"{max(walls) / min(walls):.2f}: {met(max(walls) <= 1.3 * min(walls))}" if walls else "")
        lines.append(f"| most over least | {' | '.join(cells)} |")
    return lines


def memory(found):
    peaks = {}
    for name, part in found.items():
        for step, of in (part.get("ours") or {}).items() if name != "peer" else ():
            if isinstance(of, dict) and "samples" in of:
                peaks[f"{name}: {step}"] = max(sample["peak"] for sample in of["samples"])
    if not peaks:
        return []
    theirs = [sample["peak"] for part in found.values() for samples in (part.get("spark") or {}).values() for sample in samples]
    most = max(peaks, key=peaks.get)
    lines = ["", "## Memory", "", f"The most of all is {peaks[most]:,.0f} MB ({most}); asked: ≤ {MB} MB: {met(peaks[most] <= MB)}."]
    if theirs:
        lines[-1] += f" Spark: {max(theirs):,.0f} MB, {max(theirs) / peaks[most]:.1f} times that (asked: 8): {met(max(theirs) >= 8 * peaks[most])}."
    rows = []
    for part, label in (("backlog", "DFS, one run of one process"), ("kafka-backlog", "Kafka")):
        ours = found.get(part, {}).get("ours", {})
        for small, large in ([("1", "10")] if part == "kafka-backlog" else [(f"{op} 1", f"{op} 10") for op in ("BULK_INSERT", "UPSERT")]):
            if small in ours:
                ratio = ours[large]["samples"][0]["peak"] / ours[small]["samples"][0]["peak"]
                named = f"{label}, {small.split()[0]}" if " " in small else f"{label}, UPSERT"
                texts = [f"{o['rows']:,} rows in {o['commits']} commits: {cell(o['samples'])}" for o in (ours[small], ours[large])]
                rows.append(f"| {named} | {texts[0]} | {texts[1]} | {ratio:.2f} |")
    if rows:
        lines += ["", "A backlog, and one ten times as large, at default settings:", "", "| | backlog | ten times | peak, times |", "| --- | --- | --- | ---: |", *rows]
    return lines


def peer(found):
    part = found.get("peer")
    if not part:
        return []
    lines = ["", "## Against hudi-core", "",
             f"Arrow batches in memory, {part['rows']:,} rows appended and a tenth as many upserted, half of them updates. Both: gzip, bloom filters, a simple index, no "
             "metadata table, no fsync, the same allocator. A process a step; memory: what the call took on top of the batches. Merge-on-read, hudi-core puts new rows into new files; ours "
             "fills small ones, as Hudi does, and with `hoodie.parquet.small.file.limit=0` (\"new files\") does what hudi-core does. "
             "Asked: 1.5 times as fast, half the memory.", "",
             "| work | hudi-streamer: wall s / CPU s / MB | hudi-core | × wall | × CPU | memory | met |", "| --- | --- | --- | ---: | ---: | ---: | --- |"]
    text = lambda samples: "{wall:.2f} / {cpu:.2f} / {peak:,.0f}".format(**medians(samples))
    for kind in (kind for kind in ("cow", "mor", "mor, new files") if f"ours {kind}" in part):
        mine, theirs = part[f"ours {kind}"], part[f"hudi-core {kind}"]
        for step in ("append", "upsert"):
            m, t = mine["steps"].get(step), theirs["steps"].get(step)
            row = [f"{step}, {kind}", text(m) if m else f"fails: {mine['failed']}", text(t) if t else f"fails: {theirs['failed']}", "", "", "", ""]
            if m and t:
                m, t = medians(m), medians(t)
                wall, less = t["wall"] / m["wall"], m["peak"] / max(t["peak"], 0.1)
                row[3:] = [f"{wall:.1f}", f"{t['cpu'] / m['cpu']:.1f}", f"{less:.2f}", met(wall >= 1.5 and less <= 0.5)]
            lines.append(f"| {' | '.join(row)} |")
    return lines


def step_of(found, part, step):
    return found.get(part, {}).get("ours", {}).get(step) or {}


def stages(found):
    rows, names = [], []
    for part, step, label, _ in STEPS:
        rounds = step_of(found, part, step).get("rounds")
        if rounds:
            times = {}
            for round in rounds:
                for name, ms in round["stages"].items():
                    times.setdefault(name, []).append(ms)
            names += [name for name in times if name not in names]
            rows.append((label, statistics.median(r["ms"] for r in rounds), {name: statistics.median(ms) for name, ms in times.items()}))
    if not rows:
        return []
    lines = ["", "## Where the time goes", "", "Median ms of a round, by its stages.", "", f"| round | all | {' | '.join(names)} |", "| --- |" + " ---: |" * (len(names) + 1)]
    return lines + [f"| {label} | {total:,.0f} | {' | '.join(f'{times[n]:,.0f}' if n in times else '' for n in names)} |" for label, total, times in rows]


def kernels(found):
    part = found.get("kernels")
    if not part:
        return []
    lines = ["", "## Kernels", "", "One core each, trips; medians by criterion.", "", "| kernel | a call | a row | a second |", "| --- | ---: | ---: | ---: |"]
    for kernel in part["kernels"]:
        [(unit, count)] = kernel["of"].items()
        row = f"{kernel['ns'] / count:,.0f} ns" if unit == "Elements" else ""
        rate = f"{count / kernel['ns'] * 1000:,.2f} M rows" if unit == "Elements" else f"{count / kernel['ns'] * 1000:,.0f} MB"
        lines.append(f"| {kernel['group']}: {kernel['name']} | {kernel['ns'] / 1e6:,.2f} ms | {row} | {rate} |")
    return lines


def pictures(out, found):
    """Memory and throughput over time."""
    lines = []

    def picture(name, title, below, series):
        series = {label: points for label, points in series.items() if points}
        if series:
            plot(os.path.join(out, f"report-{name}.svg"), title, below, series)
            lines.append(f"![{title}](report-{name}.svg)")

    for part, step, title, pictured in STEPS:
        of = step_of(found, part, step) if pictured else {}
        points, name = of.get("points") or [], f"{part}-{step.replace(' ', '-').lower()}"
        picture(f"{name}-memory", f"{title}: MB of resident memory", "seconds", {"MB": [(p[0], p[1]) for p in points]})
        rounds = of.get("rounds") or []
        if len(rounds) > 2:
            picture(f"{name}-rate", f"{title}: rows a second, by round", "seconds",
                    {"rows/s": [(r["at"], r["rows"] / max(r["ms"], 1) * 1000) for r in rounds]})
        else:
            rate = lambda column: [(q[0], max(0, q[column] - p[column]) / max(q[0] - p[0], 1e-3)) for p, q in zip(points, points[1:])]
            picture(f"{name}-rate", f"{title}: MB a second", "seconds", {"read": rate(2), "written": rate(3)})
    picture("small-memory", "small commits: MB of resident memory", "seconds",
            {name: [(p[0], p[1]) for p in step_of(found, part, "small").get("points") or []] for part, name in (("cow", "copy-on-write"), ("mor", "merge-on-read"))})
    if os.path.exists(os.path.join(out, "SOAK.md")):
        lines.append("\n300 rounds of a daemon, with cleaner, archiver and compactions: [SOAK.md](SOAK.md).")
    return ["", "## Over time", "", *lines] if lines else []
