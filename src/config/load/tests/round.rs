//! Where rounds are cut, and what shares the memory.

use super::*;

#[test]
fn what_bounds_a_round_follows_from_the_job() {
    const QUARTER: u64 = 128 << 20;
    let one_shot = Call::new();
    let continuous = one_shot.clone().switch("--continuous");
    let bulk = one_shot.clone().flag("--op", "BULK_INSERT");
    let bytes = "hoodie.streamer.round.max.bytes=7";
    let seconds = |seconds| Some(Duration::from_secs(seconds));
    let round = |input, held, time| RoundConfig { input, held, time };
    for (name, call, want) in [
        ("one-shot", one_shot.clone(), round(None, Some(QUARTER), None)),
        ("continuous", continuous.clone(), round(None, Some(QUARTER), seconds(60))),
        ("a limit is taken at its word", one_shot.clone().flag("--source-limit", "9"), round(None, None, None)),
        (
            "but not round after round",
            continuous.clone().flag("--source-limit", "9"),
            round(None, Some(QUARTER), seconds(60)),
        ),
        ("streams", bulk.clone(), round(None, None, None)),
        ("looks keys up", bulk.clone().switch("--filter-dupes"), round(None, Some(QUARTER), None)),
        ("by bytes", one_shot.clone().conf(bytes), round(Some(7), None, None)),
        ("streams, by bytes", bulk.conf(bytes), round(Some(7), None, None)),
        (
            "by its older name",
            continuous.clone().conf("hoodie.streamer.source.kafka.round.max.bytes=7"),
            round(Some(7), None, seconds(60)),
        ),
        (
            "no bounds",
            continuous.conf("hoodie.streamer.round.max.bytes=0").conf("hoodie.streamer.round.max.seconds=0"),
            round(None, None, None),
        ),
        (
            "a position that is not kept",
            one_shot.clone().conf("hoodie.streamer.checkpoint.force.skip=true"),
            round(None, None, None),
        ),
        ("only looks", one_shot.clone().switch("--dry-run").switch("--continuous"), round(None, None, None)),
        ("less memory", one_shot.conf("hoodie.streamer.memory.max.bytes=1000"), round(None, Some(250), None)),
    ] {
        assert_eq!(call.ok().round, want, "{name}");
    }
}

#[test]
fn one_budget_is_shared_out() {
    let call = Call::new().conf("hoodie.streamer.memory.max.bytes=1000");
    let config = call.ok();
    assert_eq!(config.memory, MemoryConfig { round: 250, rows: 500, open_files: 250, merge: 250 });
    assert_eq!((config.write.memory, config.compaction.memory), (config.memory, 250));
    assert_eq!(call.conf("hoodie.memory.compaction.max.size=9").ok().compaction.memory, 9);
    let problem =
        Call::new().conf("hoodie.streamer.memory.max.bytes=0").load().expect_err("nothing works with no memory");
    let codes: Vec<_> = problem.problems.iter().map(|problem| problem.code).collect();
    assert_eq!(codes, ["config-bad-value"], "{problem}");
}
