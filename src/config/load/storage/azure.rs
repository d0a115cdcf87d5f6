//! `fs.azure.*`: each with the account's host name behind it, or without for all accounts.

use super::super::super::{AzureConfig, AzureSettings, Secret};
use super::{Hadoop, Loader};

const AUTH_TYPE: &str = "fs.azure.account.auth.type";
const PROVIDER: &str = "fs.azure.account.oauth.provider.type";

type Put = fn(&mut AzureSettings, String);

const SETTINGS: [(&str, Put); 6] = [
    ("fs.azure.account.key", |s, v| s.key = Some(Secret::new(v))),
    ("fs.azure.sas.fixed.token", |s, v| s.sas = Some(Secret::new(v))),
    ("fs.azure.account.oauth2.client.id", |s, v| s.client_id = Some(v)),
    ("fs.azure.account.oauth2.client.secret", |s, v| s.client_secret = Some(Secret::new(v))),
    ("fs.azure.account.oauth2.msi.tenant", |s, v| s.tenant = Some(v)),
    ("fs.azure.account.oauth2.client.endpoint", |s, v| {
        if let Some((authority, tenant)) = taken_apart(&v) {
            s.authority = Some(authority);
            s.tenant = Some(tenant);
        }
    }),
];

/// Values that are done, of the settings that say which of the others counts.
const CHOICES: [(&str, &[&str], &str); 2] = [
    (AUTH_TYPE, &["SharedKey", "OAuth", "SAS"], "what is done: SharedKey, OAuth, SAS"),
    (
        PROVIDER,
        &["ClientCredsTokenProvider", "MsiTokenProvider", "WorkloadIdentityTokenProvider"],
        "what is done: ClientCredsTokenProvider, MsiTokenProvider, WorkloadIdentityTokenProvider",
    ),
];

impl Loader<'_> {
    pub(super) fn azure(&mut self, hadoop: &mut Hadoop) -> AzureConfig {
        let mut config = AzureConfig::default();
        for (base, put) in SETTINGS {
            for (account, value) in taken(base, hadoop) {
                let settings = match account {
                    None => &mut config.all,
                    Some(account) => config.accounts.entry(account).or_default(),
                };
                put(settings, value);
            }
        }
        for (base, done, hint) in CHOICES {
            for (_, value) in taken(base, hadoop) {
                let short = value.rsplit('.').next().unwrap_or(&value);
                if !done.contains(&short) {
                    self.problem("config-unsupported", format!("{base}={value} is not done: {hint}"));
                }
            }
        }
        config
    }
}

/// The values of a setting, with the account that each is for.
fn taken(base: &str, hadoop: &mut Hadoop) -> Vec<(Option<String>, String)> {
    let is_of = |name: &str| name.strip_prefix(base).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    let names: Vec<String> = hadoop.keys().filter(|name| is_of(name)).cloned().collect();
    let take = |name: String| {
        let value = hadoop.remove(&name)?.value.trim().to_owned();
        let account = name[base.len()..].strip_prefix('.').and_then(|host| host.split('.').next());
        Some((account.map(str::to_owned), value))
    };
    names.into_iter().filter_map(take).collect()
}

/// `https://login.microsoftonline.com/<tenant>/oauth2/token`
fn taken_apart(endpoint: &str) -> Option<(String, String)> {
    let url = url::Url::parse(endpoint).ok()?;
    let tenant = url.path_segments()?.next().filter(|tenant| !tenant.is_empty())?.to_owned();
    Some((url.origin().ascii_serialization(), tenant))
}
