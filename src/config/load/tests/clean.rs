//! Who cleans, and what stays.

use super::*;

fn clean(call: &Call) -> CleanConfig {
    let config = call.ok();
    assert!(config.warnings.is_empty(), "{:?}", config.warnings);
    config.clean
}

#[test]
fn who_cleans_follows_from_the_job() {
    use CleanMode::*;
    let one_shot = Call::new();
    let continuous = one_shot.clone().switch("--continuous");
    for (name, call, want) in [
        ("one-shot", one_shot.clone(), Inline),
        ("continuous", continuous.clone(), Inline),
        ("asynchronously", continuous.clone().conf("hoodie.clean.async=true"), Beside),
        ("by the newer name", continuous.clone().conf("hoodie.clean.async.enabled=true"), Beside),
        ("a one-shot job has nothing else to do meanwhile", one_shot.clone().conf("hoodie.clean.async=true"), Inline),
        ("off", continuous.clone().conf("hoodie.clean.automatic=false").conf("hoodie.clean.async=true"), Off),
        ("no services", one_shot.conf("hoodie.table.services.enabled=false"), Off),
    ] {
        assert_eq!(clean(&call).mode, want, "{name}");
    }
}

#[test]
fn what_stays_is_read_by_old_and_new_names() {
    use CleanPolicy::*;
    let defaults = clean(&Call::new());
    let want = CleanConfig {
        mode: CleanMode::Inline,
        policy: KeepLatestCommits { commits: 10 },
        max_commits: 1,
        incremental: true,
        allow_multiple: false,
        parallelism: 32,
    };
    assert_eq!(defaults, want);
    for (confs, want) in [
        (&["hoodie.cleaner.commits.retained=3"][..], KeepLatestCommits { commits: 3 }),
        (&["hoodie.clean.commits.retained=3"], KeepLatestCommits { commits: 3 }),
        (&["hoodie.cleaner.hours.retained=6"], KeepLatestByHours { hours: 6 }),
        (&["hoodie.clean.fileversions.retained=2"], KeepLatestFileVersions { versions: 2 }),
        (&["hoodie.clean.policy=keep_latest_by_hours"], KeepLatestByHours { hours: 24 }),
        (&["hoodie.cleaner.policy=KEEP_LATEST_FILE_VERSIONS"], KeepLatestFileVersions { versions: 3 }),
    ] {
        let call = confs.iter().fold(Call::new(), |call, conf| call.conf(conf));
        assert_eq!(clean(&call).policy, want, "{confs:?}");
    }
    let others = Call::new()
        .conf("hoodie.clean.trigger.max.commits=4")
        .conf("hoodie.clean.incremental.enabled=false")
        .conf("hoodie.clean.multiple.enabled=true")
        .conf("hoodie.clean.parallelism=2");
    let want = CleanConfig { max_commits: 4, incremental: false, allow_multiple: true, parallelism: 2, ..want };
    assert_eq!(clean(&others), want);
}

#[test]
fn what_cannot_be_is_told() {
    let both = Call::new().conf("hoodie.cleaner.commits.retained=3").conf("hoodie.cleaner.hours.retained=6").ok();
    assert_eq!(
        both.clean.policy,
        CleanPolicy::KeepLatestCommits { commits: 3 },
        "as in Hudi, two of them name no policy"
    );
    assert!(matches!(&both.warnings[..], [w] if w.contains("hours.retained")), "{:?}", both.warnings);
    for (conf, code) in [
        ("hoodie.cleaner.commits.retained=0", "config-bad-value"),
        ("hoodie.cleaner.policy=KEEP_ALL", "config-bad-value"),
        ("hoodie.clean.trigger.strategy=TIME", "config-unsupported"),
        ("hoodie.cleaner.delete.bootstrap.base.file=true", "config-unsupported"),
        ("hoodie.cleaner.comits.retained=3", "config-unknown-key"),
    ] {
        let problem = Call::new().conf(conf).problem();
        assert_eq!(problem.code, code, "{conf}: {}", problem.text);
    }
}
