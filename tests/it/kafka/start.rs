//! Where a job without a position begins, and that it then has one.

use super::*;

/// Case 02.
#[test]
fn latest_pins_the_position_with_the_first_round() {
    needs_peers!();
    let mut job = job("meter", 2);
    job.call = job.call.clone().op("BULK_INSERT").conf("auto.offset.reset", "latest");
    job.topic.send(0, &[event("old0", 1), event("old1", 1), event("old2", 1)]);
    job.commits(&job.call);
    job.stands_at(&[3, 0]);
    for reader in READERS {
        assert_eq!(ids_by(reader, &job.table), [""; 0], "{reader:?}");
    }
    job.makes_no_instant(&job.call);

    job.topic.send(0, &[event("m3", 1)]);
    job.topic.send(1, &[event("m4", 2)]);
    job.commits(&job.call);
    job.stands_at(&[4, 1]);
    for reader in READERS {
        assert_eq!(ids_by(reader, &job.table), ["m3", "m4"], "{reader:?}");
    }
    job.makes_no_instant(&job.call);
}

/// Case 02, variant B.
#[test]
fn an_empty_topic_makes_an_empty_table_with_a_position() {
    needs_peers!();
    let mut job = job("bare", 2);
    job.call = job.call.clone().op("BULK_INSERT");
    job.commits(&job.call);
    job.stands_at(&[0, 0]);
    for reader in READERS {
        assert_eq!(ids_by(reader, &job.table), [""; 0], "{reader:?}");
    }
    job.topic.send(1, &[event("b0", 1)]);
    job.commits(&job.call);
    job.stands_at(&[0, 1]);
    assert_eq!(ids(&job.table), ["b0"]);
}

/// Without a schema there is no table to keep the position, which counts all the same: what comes from now on is read.
#[test]
fn the_end_is_remembered_where_no_table_can_be_made() {
    needs_peers!();
    let mut job = job("later", 1);
    job.call = job.call.clone().without("--schemaprovider-class").without("auto.offset.reset");
    job.call = job.call.clone().without("hoodie.streamer.schemaprovider.source.schema.file").switch("--continuous");
    job.topic.send(0, &[event("old", 1)]);
    let running = job.call.start();
    wait_for("the first look at the topic", || running.said().contains("no commit keeps the position"));
    assert!(job.table.timeline().is_empty());
    job.topic.send(0, &[event("new", 2)]);
    wait_for("the commit of what came since", || job.table.commits().len() == 1);
    running.signal("TERM");
    let said = running.finish().ok().stderr;
    assert_eq!(said.matches("no commit keeps the position").count(), 1, "{said}");
    job.stands_at(&[2]);
    for reader in READERS {
        assert_eq!(ids_by(reader, &job.table), ["new"], "{reader:?}");
    }
}

/// A position given by hand is kept also where nothing is read from there, or it would be forgotten with the flag.
#[test]
fn a_position_at_the_end_counts() {
    needs_peers!();
    let job = job("skipped", 1);
    job.topic.send(0, &[event("a", 1), event("b", 2)]);
    job.commits(&job.call.clone().flag("--source-limit", "1"));
    let skips = job.call.clone().flag("--checkpoint", job.topic.position(&[2]));
    job.commits(&skips);
    job.stands_at(&[2]);
    job.makes_no_instant(&skips);
    job.makes_no_instant(&job.call);
    assert_eq!(ids(&job.table), ["a"]);
}

/// Hudi's default is the end, and it counts once: the position is in the table from then on.
#[test]
fn the_default_is_the_end_of_the_topic() {
    needs_peers!();
    let job = job("meter", 1);
    job.topic.send(0, &[event("old", 1)]);
    job.commits(&job.call.clone().without("auto.offset.reset"));
    job.stands_at(&[1]);
    assert_eq!(job.table.base_files().len(), 0);
}

#[test]
fn a_group_with_all_its_positions_is_continued() {
    needs_peers!();
    let job = job("meter", 2);
    let rows = [event("a", 1), event("b", 1), event("c", 1)];
    job.topic.send(0, &rows);
    job.topic.send(1, &[event("d", 1), event("e", 1)]);
    let call = job.call.clone().conf("auto.offset.reset", "group").conf("group.id", job.topic.name());
    job.topic.commit_group(job.topic.name(), &[(0, 2), (1, 1)]);
    job.commits(&call);
    job.stands_at(&[3, 2]);
    assert_eq!(ids(&job.table), ["c", "e"]);
}

/// As in Hudi: one partition without a position sends all to the end.
#[test]
fn a_group_that_lacks_a_position_starts_at_the_end() {
    needs_peers!();
    let job = job("meter", 2);
    job.topic.send(0, &[event("a", 1), event("b", 1)]);
    let call = job.call.clone().conf("auto.offset.reset", "group").conf("group.id", job.topic.name());
    job.topic.commit_group(job.topic.name(), &[(0, 1)]);
    job.commits(&call);
    job.stands_at(&[2, 0]);
    assert_eq!(job.table.base_files().len(), 0);
}

#[test]
fn a_time_or_a_single_offset_can_be_the_first_position() {
    needs_peers!();
    const T: i64 = 1_700_000_000_000;
    let job = job("meter", 1);
    let at = |id: &str, time: i64| Message::from(&event(id, 1)).at(T + time);
    job.topic.send(0, [at("a", 0), at("b", 1000), at("c", 2000)]);
    let kind = |kind: &str, checkpoint: String| {
        job.call
            .clone()
            .conf("hoodie.streamer.source.kafka.checkpoint.type", kind)
            .flag("--checkpoint", checkpoint)
            .flag("--target-base-path", job.scratch.path(kind))
    };
    for (name, checkpoint, want) in
        [("timestamp", (T + 1000).to_string(), vec!["b", "c"]), ("single_offset", "2".to_owned(), vec!["c"])]
    {
        let call = kind(name, checkpoint);
        let table = Table::at(job.scratch.path(name));
        call.run().ok();
        assert_eq!(
            (ids(&table), table.checkpoint()),
            (want.iter().map(|id| id.to_string()).collect(), job.topic.position(&[3]))
        );
        // The same call goes on from the table's own position.
        let before = table.timeline();
        call.run().ok();
        assert_eq!(before, table.timeline());
    }
    kind("timestamp", "17".into()).run().fails_with_any(&["timestamp", "17"]);
    job.topic.grow(2);
    kind("single_offset", "1".into()).run().fails_with_any(&["single offset", job.topic.name()]);
}
