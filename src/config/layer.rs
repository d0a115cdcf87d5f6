//! Layers of settings, one over the other; aliases; values from the environment and from files; and what each key is.

use super::keys::{self, FIXED, IDLE_PREFIXES, Key, LATER_PREFIXES, REFUSED_PREFIXES, SAME_AS_FLAG};
use super::properties::{Line, Parsed};
use super::secrets::{mask_value, mask_value_with};
use super::{EffectiveSetting, Problem};
use regex::Regex;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::LazyLock;

/// How to ask for an environment variable.
pub(super) type Env<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Where the global defaults stand (`DFSPropertiesConfiguration`, 0.15).
const DEFAULTS_FOLDER: &str = "/etc/hudi/conf";
const DEFAULTS_FILE: &str = "hudi-defaults.conf";
/// Old and new prefix of the Streamer's keys.
const OLD_PREFIX: &str = "hoodie.deltastreamer.";
const NEW_PREFIX: &str = "hoodie.streamer.";
/// Words that make a key secret, besides those that always do (`HoodieWriteConfig`, 0.15).
const SENSITIVE_KEYS: &str = "hoodie.sensitive.config.keys";

static REFERENCE: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\$\{(env|file):([^}]*)\}").expect("a good pattern"));

/// A value and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Setting {
    pub value: String,
    pub origin: String,
}

/// All settings of a job, and what is to be said about them.
#[derive(Debug, Default)]
pub(super) struct Settings {
    map: BTreeMap<String, Setting>,
    pub warnings: Vec<String>,
    pub problems: Vec<Problem>,
}

impl Settings {
    /// defaults file < properties file < `--hoodie-conf`.
    pub fn load(props: Option<&str>, confs: &[String], env: Env) -> Settings {
        let folder = env("HUDI_CONF_DIR").unwrap_or_else(|| DEFAULTS_FOLDER.to_string());
        let defaults = Path::new(folder.strip_prefix("file://").unwrap_or(&folder)).join(DEFAULTS_FILE);
        let mut parsed = Parsed::default();
        if defaults.is_file() {
            parsed.file(&defaults);
        }
        if let Some(props) = props {
            parsed.file(Path::new(props.strip_prefix("file://").unwrap_or(props)));
        }
        for conf in confs {
            parsed.line(conf, "--hoodie-conf");
        }
        let mut settings = Settings { map: BTreeMap::new(), warnings: parsed.warnings, problems: parsed.problems };
        for line in parsed.lines {
            settings.put(line, env);
        }
        settings.rename_old_keys();
        settings
    }

    /// Told once, however many settings follow from the one that is wrong.
    pub fn problem(&mut self, code: &'static str, text: String) {
        let problem = Problem { code, text };
        if !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }

    fn put(&mut self, line: Line, env: Env) {
        let value = resolve(&line.value, env).unwrap_or_else(|why| {
            self.problem("config-reference", format!("{}: {}: {why}", line.origin, line.key));
            line.value.clone()
        });
        self.map.insert(line.key, Setting { value, origin: line.origin });
    }

    /// `hoodie.deltastreamer.X` is `hoodie.streamer.X`; where both are set the new name wins.
    fn rename_old_keys(&mut self) {
        let old: Vec<String> = self.map.keys().filter(|k| k.starts_with(OLD_PREFIX)).cloned().collect();
        for name in old {
            // The key generator's old names are aliases of names without the Streamer's prefix.
            if let Some(key) = keys::ALL.iter().find(|k| k.aliases.contains(&name.as_str())) {
                self.warn_of_old_name(&name, key.name);
                continue;
            }
            let new = name.replacen(OLD_PREFIX, NEW_PREFIX, 1);
            self.warn_of_old_name(&name, &new);
            let Some(setting) = self.map.remove(&name) else { continue };
            self.map.entry(new).or_insert(setting);
        }
    }

    fn warn_of_old_name(&mut self, old: &str, new: &str) {
        let origin = |name: &str| self.map.get(name).map_or("", |s| s.origin.as_str());
        let loses = match origin(new) {
            "" => String::new(),
            at => format!(", and has no effect: {new} is set too, at {at}"),
        };
        let text = format!("{}: {old} is the old name of {new}{loses}", origin(old));
        self.warnings.push(text);
    }

    /// The setting under its name or an alias.
    pub fn get(&self, key: &Key) -> Option<&Setting> {
        std::iter::once(&key.name).chain(key.aliases).find_map(|name| self.map.get(*name))
    }

    /// Everything that is set.
    pub fn all(&self) -> impl Iterator<Item = (&str, &Setting)> {
        self.map.iter().map(|(name, setting)| (name.as_str(), setting))
    }

    /// A setting that is no key of the registry (overrides of a transformer step).
    pub fn get_named(&self, name: &str) -> Option<&Setting> {
        self.map.get(name)
    }

    /// Marks a name as used, so that it is not reported.
    pub fn check_names(&mut self, used: &BTreeSet<String>, flags: &BTreeMap<&str, String>) {
        let names: Vec<(String, Setting)> = self.map.iter().map(|(k, s)| (k.clone(), s.clone())).collect();
        let (mut idle, mut spark) = (Vec::new(), Vec::new());
        for (name, setting) in names {
            let is_ours = keys::ALL.iter().any(|k| k.name == name || k.aliases.contains(&name.as_str()));
            if is_ours || used.contains(&name) {
                continue;
            }
            if name.starts_with("spark.") {
                spark.push(name);
            } else if is_idle(&name) {
                idle.push(name);
            } else {
                self.check_name(&name, &setting, flags);
            }
        }
        if !spark.is_empty() {
            self.warnings.push(format!("settings of Spark have no effect: {}", spark.join(", ")));
        }
        if !idle.is_empty() {
            self.warnings.push(format!("settings that change nothing here: {}", idle.join(", ")));
        }
    }

    fn check_name(&mut self, name: &str, setting: &Setting, flags: &BTreeMap<&str, String>) {
        let at = &setting.origin;
        if let Some((_, value, why)) = FIXED.iter().find(|(n, _, _)| *n == name) {
            let same = |v: &str| v.eq_ignore_ascii_case(value) || value.rsplit('.').next() == Some(v);
            if !same(setting.value.trim()) {
                self.problem(
                    "config-unsupported",
                    format!("{at}: {name}={} is not done: {why}; set it to {value}, or leave it out", setting.value),
                );
            }
            return;
        }
        if let Some((_, flag)) = SAME_AS_FLAG.iter().find(|(n, _)| *n == name) {
            let wanted = flags.get(flag).map(String::as_str).unwrap_or_default();
            if !setting.value.eq_ignore_ascii_case(wanted) {
                self.problem(
                    "config-conflict",
                    format!("{at}: {name}={} contradicts {flag}, which says {wanted}", setting.value),
                );
            }
            return;
        }
        if let Some((_, instead)) = REFUSED_PREFIXES.iter().find(|(prefix, _)| name.starts_with(prefix)) {
            self.problem("config-unsupported", format!("{at}: {name} is not done: {instead}"));
            return;
        }
        if let Some((_, what)) = LATER_PREFIXES.iter().find(|(prefix, _)| name.starts_with(prefix)) {
            self.warnings.push(format!("{at}: {name} has no effect: {what} is not done yet"));
            return;
        }
        let nearest = keys::nearest(name);
        let hint = nearest.map(|n| format!("; did you mean {n}?")).unwrap_or_default();
        if !name.starts_with("hoodie.") {
            self.warnings.push(format!("{at}: {name} has no effect: it is a setting for a Kafka client{hint}"));
        } else if keys::known_to_hudi().any(|known| known == name) {
            self.problem(
                "config-unsupported",
                format!("{at}: {name} is a key of Hudi that is not done yet: leave it out"),
            );
        } else {
            self.problem("config-unknown-key", format!("{at}: {name} is not a key of Hudi or ours{hint}"));
        }
    }

    /// What counts, masked and sorted, for the log.
    pub fn effective(&self, flags: &BTreeMap<&str, String>) -> Vec<EffectiveSetting> {
        let flags = flags.iter().map(|(flag, value)| EffectiveSetting {
            key: flag.to_string(),
            value: mask_value(flag, value),
            origin: "flag".into(),
        });
        let words = self.map.get(SENSITIVE_KEYS).map_or("", |s| s.value.as_str());
        let set = self.map.iter().map(|(key, s)| EffectiveSetting {
            key: key.clone(),
            value: mask_value_with(words, key, &s.value),
            origin: s.origin.clone(),
        });
        let unset = keys::ALL.iter().filter(|k| self.get(k).is_none() && !k.default.is_empty());
        let defaults =
            unset.map(|k| EffectiveSetting { key: k.name.into(), value: k.default.into(), origin: "default".into() });
        let mut all: Vec<_> = flags.chain(set).chain(defaults).collect();
        all.sort_by(|a, b| a.key.cmp(&b.key));
        all
    }
}

fn is_idle(name: &str) -> bool {
    name.ends_with(".parallelism") || IDLE_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// `${env:X}` and `${file:path}` in a value.
fn resolve(value: &str, env: Env) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = 0;
    for found in REFERENCE.captures_iter(value) {
        let whole = found.get(0).expect("the match itself");
        out.push_str(&value[rest..whole.start()]);
        let name = &found[2];
        match &found[1] {
            "env" => out.push_str(&env(name).ok_or_else(|| format!("environment variable {name} is not set"))?),
            _ => {
                let text = std::fs::read_to_string(name).map_err(|e| format!("cannot read {name}: {e}"))?;
                out.push_str(text.trim_end_matches(['\n', '\r']));
            }
        }
        rest = whole.end();
    }
    out.push_str(&value[rest..]);
    Ok(out)
}
