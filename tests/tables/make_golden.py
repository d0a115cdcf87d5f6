"""Makes the golden tables with Spark, one Hudi version a process; run it with the python of the peers' venv.

    make_golden.py --hudi 0.15.0 NAME ...     writes NAME.tar.zst and NAME.json next to this file (no name: all that it knows, an hour)

The clone keeps those tables that a test opens.

NAME.json holds everything: the options, the steps in order with their input rows, the instants they made, and the rows a reader must
find. Tables are made under /tmp/hudi-golden because Hudi writes full paths into clean and rollback files; unpack there to replay those.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "peers", "py"))
import oracle
import rows
import session
import validate

ROOT = "/tmp/hudi-golden"
DDL = "id string, rider string, fare double, qty int, ts bigint, dt string"
W = "hoodie.datasource.write."


def r(i, ts, dt="2024-01-01", **over):
    row = {"id": f"k{i:02d}", "rider": f"rider-{i}-{ts}", "fare": i + ts / 100, "qty": i * 10 + ts % 1000, "ts": ts, "dt": dt}
    row.update(over)
    return row


def day(i):
    return f"2024-01-0{1 + i % 3}"


def keyed(key="id", part="dt", ts="ts", gen=None, **more):
    out = {W + "recordkey.field": key, W + "partitionpath.field": part, W + "precombine.field": ts}
    if gen:
        out[W + "keygenerator.class"] = "org.apache.hudi.keygen." + gen
    return {**out, **{k.replace("__", "."): v for k, v in more.items()}}


NONPART = keyed(part="", gen="NonpartitionedKeyGenerator")
PARTED = keyed()
FIVE = [r(i, 1, day(i)) for i in range(5)]
UPD = [r(1, 2, day(1)), r(3, 2, day(3)), r(7, 2, day(7))]
DEL = [r(2, 3, day(2))]
INS_UPD_DEL = [("insert", FIVE), ("upsert", UPD), ("delete", DEL)]
FAIL = {"hoodie.precommit.validators": "org.apache.hudi.client.validator.SqlQuerySingleResultPreCommitValidator",
        "hoodie.precommit.validators.single.value.sql.queries": "select count(*) from <TABLE_NAME>#-1"}
SMALL_ARCHIVE = {"hoodie.keep.min.commits": "3", "hoodie.keep.max.commits": "4", "hoodie.clean.commits.retained": "2",
                 "hoodie.cleaner.commits.retained": "2", "hoodie.metadata.compact.max.delta.commits": "4"}
INLINE = {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "2"}
CLUSTER = {"hoodie.clustering.inline": "true", "hoodie.clustering.inline.max.commits": "2",
           "hoodie.clustering.plan.strategy.sort.columns": "rider", "hoodie.parquet.small.file.limit": "0"}
PAYLOAD = lambda name: {W + "payload.class": "org.apache.hudi.common.model." + name}
EVENT_TIME = {**PAYLOAD("DefaultHoodieRecordPayload"), "hoodie.payload.ordering.field": "ts", "hoodie.payload.event.time.field": "ts",
              "hoodie.write.track.event.time.watermark": "true"}
NOW = 1_700_000_000_000
EVENTS = [("insert", [r(i, NOW + 100 + i, day(i)) for i in range(5)]), ("upsert", [r(1, NOW + 50, day(1)), r(3, NOW + 200, day(3))])]
many = lambda n: [("upsert", [r(1, t, day(1)), r(10 + t, t, day(t))]) for t in range(2, 2 + n)]

TYPES_DDL = ("id string, dt string, ts bigint, bo boolean, ti tinyint, si smallint, i int, l bigint, f float, d double, s string, "
             "de decimal(10,2), db decimal(38,18), bi binary, da date, tm timestamp, ar array<string>, ai array<int>, "
             "m map<string,bigint>, st struct<a:int,b:string,n:struct<x:double,y:array<string>>>, "
             "am array<struct<k:string,v:decimal(6,3)>>, mm map<string,struct<q:int>>")


def typed(i, ts, dt="2024-01-01", empty=False, null_elements=False):
    row = {"id": f"k{i}", "dt": dt, "ts": ts}
    if not empty:
        row.update(bo=i % 2 == 0, ti=-i, si=300 + i, i=-70000 - i, l=2 ** 40 + i, f=i + 0.1, d=i / 3, s=f"Grüße {i} 数", de=f"{i}.25",
                   db=f"-{i}.123456789012345678", bi="AAH/" , da="1969-12-3%d" % (i % 2), tm="2024-02-29T23:59:59.123456Z",
                   ar=["a", f"x{i}"] + [None] * null_elements, ai=[i, 2], m={"one": 1, "none": None},
                   st={"a": i, "b": None, "n": {"x": 0.5, "y": []}}, am=[{"k": "p", "v": "1.500"}, {"k": None, "v": None}], mm={"z": {"q": i}})
    return row


# name: (about, hudi versions, cow|mor, ddl, options, steps). A step is (op, rows[, options[, ddl]]) or (action, None[, options]) or
# ("failing " + op, rows): a write whose pre-commit check fails, leaving an inflight instant, its data files and its markers.
TABLES = {
    # -- the plain ones, in every table version
    "cow_nonpart": ("no partitions; insert, upsert, delete", "all", "cow", DDL, NONPART, INS_UPD_DEL),
    "cow_part": ("three partitions, not hive style", "all", "cow", DDL, PARTED, INS_UPD_DEL),
    "cow_hive": ("hive style, URL encoding, an odd and a null partition value", "0.15.0", "cow", DDL,
                 {**PARTED, W + "hive_style_partitioning": "true", W + "partitionpath.urlencode": "true"},
                 [("insert", FIVE), ("upsert", [r(1, 2, day(1)), r(5, 2, "a b/c=ü"), r(6, 2, None)])]),
    "mor_logs": ("base files, then an Avro data block and a delete block, not compacted", "all", "mor", DDL, PARTED, INS_UPD_DEL),
    "mor_nonpart": ("MOR without partitions", "0.15.0", "mor", DDL, NONPART, INS_UPD_DEL),
    "mor_compacted": ("inline compaction after two delta commits, then one more upsert", "all", "mor", DDL, {**PARTED, **INLINE},
                      INS_UPD_DEL + [("upsert", [r(1, 4, day(1)), r(8, 4, day(8))])]),
    "mor_compaction_pending": ("compaction requested, not run; then an upsert into the new file slice", "0.15.0", "mor", DDL, PARTED,
                               INS_UPD_DEL + [("schedule_compact", None, {"hoodie.compact.inline.max.delta.commits": "1"}),
                                              ("upsert", [r(1, 4, day(1)), r(3, 4, day(3)), r(9, 4, day(9))], {"hoodie.compact.inline": "false"})]),
    "mor_parquet_log": ("log data blocks in Parquet", "0.15.0", "mor", DDL,
                        {**PARTED, "hoodie.logfile.data.block.format": "parquet"}, INS_UPD_DEL),
    # -- operations
    "cow_bulk_insert": ("bulk_insert (row writer), then upsert", "0.15.0", "cow", DDL, PARTED, [("bulk_insert", FIVE), ("upsert", UPD)]),
    "mor_bulk_insert": ("bulk_insert into MOR, then upsert", "0.15.0", "mor", DDL, PARTED, [("bulk_insert", FIVE), ("upsert", UPD)]),
    "cow_insert_dups": ("insert keeps duplicate keys; two batches with the same key", "0.15.0", "cow", DDL, PARTED,
                        [("insert", FIVE), ("insert", [r(1, 2, day(1)), r(1, 3, day(1))])]),
    "cow_insert_overwrite": ("insert_overwrite of one partition, then insert_overwrite_table", "0.15.0", "cow", DDL, PARTED,
                             [("insert", FIVE), ("insert_overwrite", [r(20, 2, day(1))]), ("insert", [r(21, 3, day(0))])]),
    "cow_delete_partition": ("delete_partition", "0.15.0", "cow", DDL, PARTED,
                             [("insert", FIVE), ("delete_partition", [r(0, 1, day(0))], {W + "partitions.to.delete": day(0)})]),
    "cow_precombine": ("one batch with the same key three times and an older row for a stored key", "0.15.0", "cow", DDL, PARTED,
                       [("upsert", [r(1, 5), r(1, 9), r(1, 7), r(2, 5)]), ("upsert", [r(2, 3), r(1, 10)])]),
    "cow_file_groups": ("several file groups in a partition: small file limit 0, one insert split by size", "0.15.0", "cow", DDL,
                        {**PARTED, "hoodie.parquet.small.file.limit": "0", "hoodie.copyonwrite.insert.split.size": "3",
                         "hoodie.copyonwrite.insert.auto.split": "false"},
                        [("insert", [r(i, 1) for i in range(8)]), ("insert", [r(i, 2) for i in range(8, 10)]), ("upsert", [r(2, 3), r(9, 3)])]),
    # -- table services
    "cow_clustering": ("inline clustering, sorted by rider: replacecommit", "0.15.0,1.0.2", "cow", DDL, {**PARTED, **CLUSTER},
                       [("insert", [r(i, 1) for i in range(4)]), ("insert", [r(i, 2) for i in range(4, 8)]), ("upsert", [r(1, 3)])]),
    "cow_rollback": ("a failed upsert, rolled back by the next one", "0.15.0,1.0.2", "cow", DDL, PARTED,
                     [("insert", FIVE), ("failing upsert", UPD), ("upsert", [r(1, 4, day(1))])]),
    "cow_inflight": ("a failed upsert left behind: inflight instant, data files, markers", "0.15.0,1.0.2", "cow", DDL, PARTED,
                     [("insert", FIVE), ("failing upsert", UPD)]),
    "cow_inflight_direct_markers": ("a failed upsert left behind, hoodie.write.markers.type=DIRECT", "0.15.0", "cow", DDL,
                                    {**PARTED, "hoodie.write.markers.type": "DIRECT"}, [("insert", FIVE), ("failing upsert", UPD)]),
    "mor_rollback": ("a failed delta commit, rolled back by the next one, and one more commit", "0.15.0,1.0.2", "mor", DDL, PARTED,
                     [("insert", FIVE), ("upsert", [r(1, 2, day(1))]), ("failing upsert", UPD), ("upsert", [r(1, 4, day(1))]),
                      ("upsert", [r(2, 5, day(2))])]),
    "mor_rollback_hides": ("as mor_rollback without its last commit: Hudi 0.15.0's own reader then stops at the rollback block, whose instant is later than "
                           "the commit that follows it in the log, and shows k01 of ts 2 instead of ts 4", "0.15.0", "mor", DDL, PARTED,
                           [("insert", FIVE), ("upsert", [r(1, 2, day(1))]), ("failing upsert", UPD), ("upsert", [r(1, 4, day(1))])]),
    "mor_inflight": ("a failed delta commit left behind", "0.15.0", "mor", DDL, PARTED, [("insert", FIVE), ("failing upsert", UPD)]),
    "cow_rollback_completed": ("a completed commit rolled back by request", "0.15.0", "cow", DDL, PARTED,
                               [("insert", FIVE), ("upsert", UPD), ("rollback", None)]),
    "mor_rollback_completed": ("a completed delta commit rolled back by request", "0.15.0", "mor", DDL, PARTED,
                               [("insert", FIVE), ("upsert", UPD), ("rollback", None)]),
    "cow_restore": ("savepoint kept while later commits are cleaned", "0.15.0", "cow", DDL,
                    {**PARTED, "hoodie.clean.commits.retained": "1", "hoodie.cleaner.commits.retained": "1"},
                    [("insert", FIVE), ("savepoint", None)] + many(3)),
    "cow_archived": ("keep.min.commits=3, keep.max.commits=4: archived timeline", "all", "cow", DDL, {**PARTED, **SMALL_ARCHIVE},
                     [("insert", FIVE)] + many(8)),
    "mor_archived": ("archived timeline on MOR with inline compaction", "0.15.0", "mor", DDL, {**PARTED, **SMALL_ARCHIVE, **INLINE},
                     [("insert", FIVE)] + many(8)),
    "cow_cleaned": ("cleaner KEEP_LATEST_COMMITS, one retained", "0.15.0,1.0.2", "cow", DDL,
                    {**PARTED, "hoodie.clean.commits.retained": "1", "hoodie.cleaner.commits.retained": "1"}, [("insert", FIVE)] + many(3)),
    "cow_cleaned_versions": ("cleaner KEEP_LATEST_FILE_VERSIONS, one retained", "0.15.0", "cow", DDL,
                             {**PARTED, "hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.cleaner.policy": "KEEP_LATEST_FILE_VERSIONS",
                              "hoodie.cleaner.fileversions.retained": "1", "hoodie.clean.fileversions.retained": "1"}, [("insert", FIVE)] + many(2)),
    "cow_no_mdt": ("hoodie.metadata.enable=false", "0.15.0,1.0.2", "cow", DDL, {**PARTED, "hoodie.metadata.enable": "false"}, INS_UPD_DEL),
    "mor_no_mdt": ("hoodie.metadata.enable=false, MOR", "0.15.0", "mor", DDL, {**PARTED, "hoodie.metadata.enable": "false"}, INS_UPD_DEL),
    "cow_mdt_all": ("metadata table with column_stats, bloom_filters, record_index", "0.15.0,1.0.2", "cow", DDL,
                    {**PARTED, "hoodie.metadata.index.column.stats.enable": "true", "hoodie.metadata.index.bloom.filter.enable": "true",
                     "hoodie.metadata.record.index.enable": "true", "hoodie.index.type": "RECORD_INDEX",
                     "hoodie.metadata.record.index.min.filegroup.count": "1", "hoodie.metadata.index.column.stats.file.group.count": "1",
                     "hoodie.metadata.index.bloom.filter.file.group.count": "1"}, INS_UPD_DEL),
    "cow_mdt_compacted": ("metadata table compacted (HFile base of several entries)", "0.15.0", "cow", DDL,
                          {**PARTED, "hoodie.metadata.compact.max.delta.commits": "2"}, [("insert", FIVE)] + many(3)),
    # -- indexes
    "cow_bloom_simple": ("bloom index, filter type SIMPLE with 1000 entries", "0.15.0", "cow", DDL,
                         {**PARTED, "hoodie.index.type": "BLOOM", "hoodie.bloom.index.filter.type": "SIMPLE", "hoodie.index.bloom.num_entries": "1000"},
                         INS_UPD_DEL),
    "cow_simple_index": ("simple index", "0.15.0", "cow", DDL, {**PARTED, "hoodie.index.type": "SIMPLE"}, INS_UPD_DEL),
    "cow_global_simple": ("global simple index; a key moves to another partition", "0.15.0", "cow", DDL,
                          {**PARTED, "hoodie.index.type": "GLOBAL_SIMPLE", "hoodie.simple.index.update.partition.path": "true"},
                          [("insert", FIVE), ("upsert", [r(1, 2, "2024-01-09")])]),
    "cow_global_bloom": ("global bloom index, key keeps its partition", "0.15.0", "cow", DDL,
                         {**PARTED, "hoodie.index.type": "GLOBAL_BLOOM", "hoodie.bloom.index.update.partition.path": "false"},
                         [("insert", FIVE), ("upsert", [r(1, 2, "2024-01-09")])]),
    "cow_bucket_index": ("simple bucket index, 4 buckets", "0.15.0", "cow", DDL,
                         {**PARTED, "hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "4"}, INS_UPD_DEL),
    "mor_bucket_index": ("simple bucket index on MOR: inserts go to log files without a base file", "0.15.0,1.0.2", "mor", DDL,
                         {**PARTED, "hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "4"}, INS_UPD_DEL),
    "cow_record_index": ("record index", "0.15.0", "cow", DDL,
                         {**PARTED, "hoodie.index.type": "RECORD_INDEX", "hoodie.metadata.record.index.enable": "true",
                          "hoodie.metadata.record.index.min.filegroup.count": "2"}, INS_UPD_DEL),
    # -- schemas and types
    "cow_evolution": ("a column added, int -> long", "0.15.0,1.0.2", "cow", DDL, PARTED,
                      [("insert", FIVE), ("upsert", [dict(r(1, 2, day(1)), qty=2 ** 40, note="new")], {},
                                          DDL.replace("qty int", "qty bigint") + ", note string")]),
    "mor_evolution": ("a column added, int -> long, on MOR: old base files and new log blocks", "0.15.0", "mor", DDL, PARTED,
                      [("insert", FIVE), ("upsert", [dict(r(1, 2, day(1)), qty=2 ** 40, note="new")], {},
                                          DDL.replace("qty int", "qty bigint") + ", note string")]),
    "cow_types": ("all types", "all", "cow", TYPES_DDL, PARTED,
                  [("insert", [typed(i, 1) for i in range(3)] + [typed(9, 1, empty=True)]), ("upsert", [typed(1, 2), typed(4, 2)])]),
    "mor_types": ("all types, in log blocks", "all", "mor", TYPES_DDL, PARTED,
                  [("insert", [typed(i, 1) for i in range(3)] + [typed(9, 1, empty=True)]), ("upsert", [typed(1, 2), typed(9, 2)])]),
    "cow_types_null_elements": ("a null inside an array: fails unless parquet.avro.write-old-list-structure=false (three-level lists)", "all", "cow",
                                TYPES_DDL, {**PARTED, "hadoop:parquet.avro.write-old-list-structure": "false"},
                                [("insert", [typed(i, 1, null_elements=True) for i in range(2)]), ("upsert", [typed(1, 2, null_elements=True)])]),
    # -- key generators
    "cow_complex_key": ("ComplexKeyGenerator, two key and two partition fields", "0.15.0", "cow", DDL,
                        keyed("id,qty", "dt,rider", gen="ComplexKeyGenerator"),
                        [("insert", [r(i, 1, day(i), rider=f"x{i % 2}", qty=i) for i in range(4)]), ("upsert", [r(1, 2, day(1), rider="x1", qty=1)])]),
    "cow_complex_one_key": ("ComplexKeyGenerator with a single key field", "0.15.0,1.0.2,1.1.1", "cow", DDL, keyed(gen="ComplexKeyGenerator"), INS_UPD_DEL),
    "cow_composite_nonpart": ("NonpartitionedKeyGenerator with a composite key", "0.15.0", "cow", DDL,
                              keyed("id,qty", "", gen="NonpartitionedKeyGenerator"),
                              [("insert", [r(i, 1, qty=i) for i in range(3)]), ("upsert", [r(1, 2, qty=1)])]),
    "cow_timestamp_key": ("TimestampBasedKeyGenerator, epoch millis -> yyyy/MM/dd", "0.15.0", "cow",
                          DDL.replace("dt string", "dt bigint"),
                          {**keyed(gen="TimestampBasedKeyGenerator"), "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
                           "hoodie.keygen.timebased.output.dateformat": "yyyy/MM/dd", "hoodie.keygen.timebased.timezone": "UTC"},
                          [("insert", [r(i, 1, 1704067200000 + i * 43200000) for i in range(4)]), ("upsert", [r(1, 2, 1704067200000 + 43200000)])]),
    "cow_timestamp_key_string": ("TimestampBasedKeyGenerator, DATE_STRING -> yyyy-MM-dd HH, hive style", "0.15.0", "cow", DDL,
                                 {**keyed(gen="TimestampBasedKeyGenerator"), "hoodie.keygen.timebased.timestamp.type": "DATE_STRING",
                                  "hoodie.keygen.timebased.input.dateformat": "yyyy-MM-dd'T'HH:mm:ssZ",
                                  "hoodie.keygen.timebased.output.dateformat": "yyyy-MM-dd HH", "hoodie.keygen.timebased.timezone": "UTC",
                                  W + "hive_style_partitioning": "true"},
                                 [("insert", [r(i, 1, f"2024-01-01T0{i}:30:00+0000") for i in range(3)])]),
    "cow_custom_key": ("CustomKeyGenerator, a simple and a timestamp partition field", "0.15.0", "cow", DDL,
                       {**keyed(part="dt:SIMPLE,ts:TIMESTAMP", gen="CustomKeyGenerator"), "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
                        "hoodie.keygen.timebased.output.dateformat": "yyyyMMdd", "hoodie.keygen.timebased.timezone": "UTC"},
                       [("insert", [r(i, 86400000 * i, day(i)) for i in range(4)])]),
    # -- payload classes
    "cow_overwrite_nondefaults": ("OverwriteNonDefaultsWithLatestAvroPayload: nulls keep the stored value", "0.15.0", "cow", DDL,
                                  {**PARTED, **PAYLOAD("OverwriteNonDefaultsWithLatestAvroPayload")},
                                  [("insert", FIVE), ("upsert", [r(1, 2, day(1), rider=None), r(3, 0, day(3), fare=None)])]),
    "mor_overwrite_nondefaults": ("OverwriteNonDefaultsWithLatestAvroPayload on MOR", "0.15.0", "mor", DDL, {**PARTED, **PAYLOAD("OverwriteNonDefaultsWithLatestAvroPayload")},
                                  [("insert", FIVE), ("upsert", [r(1, 2, day(1), rider=None), r(3, 0, day(3), fare=None)])]),
    "cow_partial_update": ("PartialUpdateAvroPayload, with an older and a newer row", "0.15.0", "cow", DDL,
                           {**PARTED, **PAYLOAD("PartialUpdateAvroPayload")},
                           [("insert", FIVE), ("upsert", [r(1, 2, day(1), rider=None), r(3, 0, day(3), fare=None)])]),
    "mor_partial_update": ("PartialUpdateAvroPayload on MOR", "0.15.0", "mor", DDL, {**PARTED, **PAYLOAD("PartialUpdateAvroPayload")},
                           [("insert", FIVE), ("upsert", [r(1, 2, day(1), rider=None), r(3, 0, day(3), fare=None)])]),
    "cow_event_time": ("DefaultHoodieRecordPayload with ordering and event time field: older rows lose", "0.15.0,1.0.2", "cow", DDL,
                       {**PARTED, **EVENT_TIME}, EVENTS),
    "mor_event_time": ("DefaultHoodieRecordPayload with ordering and event time field, on MOR", "0.15.0,1.0.2", "mor", DDL, {**PARTED, **EVENT_TIME}, EVENTS),
    "cow_is_deleted": ("_hoodie_is_deleted in an upsert", "0.15.0", "cow", DDL + ", _hoodie_is_deleted boolean", PARTED,
                       [("insert", [r(i, 1, day(i), _hoodie_is_deleted=False) for i in range(5)]),
                        ("upsert", [r(1, 2, day(1), _hoodie_is_deleted=True), r(3, 2, day(3), _hoodie_is_deleted=False)])]),
    "mor_is_deleted": ("_hoodie_is_deleted on MOR: a data block and a delete block in one commit", "0.15.0", "mor", DDL + ", _hoodie_is_deleted boolean", PARTED,
                       [("insert", [r(i, 1, day(i), _hoodie_is_deleted=False) for i in range(5)]),
                        ("upsert", [r(1, 2, day(1), _hoodie_is_deleted=True), r(4, 2, day(4), _hoodie_is_deleted=False)])]),
    # -- table settings
    "cow_no_meta_fields": ("populateMetaFields=false", "0.15.0", "cow", DDL, {**PARTED, "hoodie.populate.meta.fields": "false",
                           "hoodie.index.type": "SIMPLE"}, [("insert", FIVE), ("upsert", UPD)]),
    "cow_drop_partition_columns": ("drop.partition.columns=true", "0.15.0", "cow", DDL,
                                   {**PARTED, W + "drop.partition.columns": "true", W + "hive_style_partitioning": "true"}, [("insert", FIVE), ("upsert", UPD)]),
    "cow_checkpoint": ("streamer-like checkpoints in the extra metadata of the commits", "0.15.0,1.0.2,1.1.1", "cow", DDL,
                       {**PARTED, W + "commitmeta.key.prefix": "deltastreamer."},
                       [("insert", FIVE, {"deltastreamer.checkpoint.key": "trips,0:3,1:2"}),
                        ("upsert", UPD, {"deltastreamer.checkpoint.key": "trips,0:5,1:3", "deltastreamer.checkpoint.reset_key": "trips,0:0,1:0"})]),
    "cow_no_precombine": ("no precombine field", "0.15.0", "cow", DDL, {k: v for k, v in PARTED.items() if "precombine" not in k}, INS_UPD_DEL),
    # -- across versions
    "cow_v6_by_1x": ("table version 6 written by a 1.x writer (hoodie.write.table.version=6)", "1.0.2,1.1.1", "cow", DDL,
                     {**PARTED, "hoodie.write.table.version": "6", "hoodie.write.auto.upgrade": "false"}, INS_UPD_DEL),
    "mor_v6_by_1x": ("table version 6 written by a 1.x writer, MOR", "1.0.2,1.1.1", "mor", DDL,
                     {**PARTED, "hoodie.write.table.version": "6", "hoodie.write.auto.upgrade": "false"}, INS_UPD_DEL),
}
PREFIX = {"0.15.0": "v6", "1.0.2": "v8", "1.1.1": "v9"}


def names(hudi):
    for name, spec in TABLES.items():
        if spec[1] == "all" or hudi in spec[1].split(","):
            yield (f"{name}_{hudi}" if "_by_1x" in name else f"{PREFIX[hudi]}_{name}"), spec


def instants(spark, path):
    return [f"{oracle.stamp(i)}.{i.getAction()}.{i.getState().name().lower()}" for i in oracle.meta_client(spark, path).getActiveTimeline().getInstants()]


def one_step(spark, path, kind, options, ddl, step):
    op, data = step[0], step[1]
    extra = step[2] if len(step) > 2 else {}
    ddl = step[3] if len(step) > 3 else ddl
    out = {"op": op, "options": extra, **({"schema": ddl} if len(step) > 3 else {}), **({"rows": data} if data else {})}
    before = set(instants(spark, path)) if os.path.exists(path) else set()
    if data is None:
        last = oracle.last_instant(spark, path)["instant"]
        if op in ("rollback", "savepoint"):
            out["instant"] = last
        oracle.run_action(spark, path, op, {**options, **extra}, last)
    else:
        lines = [json.dumps(x) for x in data]
        try:
            oracle.write(spark, path, op.split()[-1], kind, lines, {**options, **extra, **(FAIL if op.startswith("failing") else {})}, ddl)
            if op.startswith("failing"):
                raise SystemExit("the write was meant to fail")
        except Exception as e:
            if not op.startswith("failing"):
                raise
            out["failed_with"] = oracle.words(e, 200)
    out["timeline_after"] = sorted(set(instants(spark, path)) - before)
    gone = sorted(x for x in before - set(instants(spark, path)))
    if gone:
        out["left_the_timeline"] = gone
    return out


def make(spark, hudi, name, spec):
    about, _, kind, ddl, options, steps = spec
    path = os.path.join(ROOT, name)
    shutil.rmtree(path, ignore_errors=True)
    options = {"hoodie.table.name": name, **options}
    hadoop = {k[7:]: v for k, v in options.items() if k.startswith("hadoop:")}
    conf = spark.sparkContext._jsc.hadoopConfiguration()
    for k, v in hadoop.items():
        conf.set(k, v)
    try:
        return make_with(spark, hudi, name, path, about, kind, ddl, {k: v for k, v in options.items() if not k.startswith("hadoop:")}, steps, hadoop)
    finally:
        for k in hadoop:
            conf.unset(k)


def make_with(spark, hudi, name, path, about, kind, ddl, options, steps, hadoop):
    done = [one_step(spark, path, kind, options, ddl, s) for s in steps]
    read = lambda q, **o: [json.loads(x) for x in rows.lines_of(
        spark.read.format("hudi").options(**{"hoodie.datasource.query.type": q, **o}).load(path)._collect_as_arrow())]
    expected = {"snapshot": read("snapshot")}
    if kind == "mor":
        expected["read_optimized"] = read("read_optimized")
    report = validate.run(spark, path, hudi, allow_duplicates="insert_dups" in name)
    with open(os.path.join(HERE, name + ".json"), "w") as f:
        f.write("{" + ",\n ".join(f"{json.dumps(k)}: {v}" for k, v in {
            "name": json.dumps(name), "about": json.dumps(about), "hudi": json.dumps(hudi), "table_version": report["table"]["version"],
            "type": json.dumps(kind), "schema": json.dumps(ddl), "options": json.dumps(options, indent=2),
            **({"hadoop_options": json.dumps(hadoop)} if hadoop else {}),
            "steps": compact(done), "expected": compact(expected),
            "validate": json.dumps({"faults": report["faults"], "notes": report["notes"]}, indent=2)}.items()) + "}\n")
    subprocess.run(["tar", "--sort=name", "--owner=0", "--group=0", "--numeric-owner", "-C", ROOT, "-I", "zstd -19 -q",
                    "-cf", os.path.join(HERE, name + ".tar.zst"), name], check=True)
    return report


def compact(value):
    """JSON with one row a line."""
    def level(v, depth):
        pad = "  " * depth
        if isinstance(v, dict) and any(isinstance(x, (dict, list)) and x for x in v.values()) and depth < 4 and "_hoodie_commit_time" not in v and "id" not in v:
            return "{\n" + ",\n".join(f"{pad}  {json.dumps(k)}: {level(x, depth + 1)}" for k, x in v.items()) + "}"
        if isinstance(v, list) and v and isinstance(v[0], dict):
            return "[\n" + ",\n".join(f"{pad}  {level(x, depth + 1)}" for x in v) + "]"
        return json.dumps(v, ensure_ascii=False)
    return level(value, 0)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--hudi", required=True, choices=session.VERSIONS)
    p.add_argument("names", nargs="*")
    a = p.parse_args()
    spark = session.start(a.hudi)
    bad = []
    for name, spec in names(a.hudi):
        if a.names and name not in a.names:
            continue
        try:
            report = make(spark, a.hudi, name, spec)
            print(name, "faults:", report["faults"], "notes:", len(report["notes"]), flush=True)
        except BaseException as e:
            bad.append(name)
            print(name, "FAILED", oracle.words(e, 1500), flush=True)
    spark.stop()
    print("failed:", bad)


if __name__ == "__main__":
    main()
