//! The documented contracts of providers, as data.
//!
//! `documented` holds what the provider's own documentation states, `assumed` what it does not state and a server has to
//! choose all the same. Everything else is the default. `beyond` says in words what is documented and has no switch.

use super::{Contract, Setting};
use std::str::FromStr;

/// A documented contract.
#[derive(Debug)]
pub struct Profile {
    /// Its name on the command line.
    pub name: &'static str,
    /// Whose contract it is.
    pub provider: &'static str,
    /// Where the facts were read.
    pub source: &'static str,
    /// The date of that document as YYYY-MM-DD, or that of its reading where it bears none.
    pub as_of: &'static str,
    /// The settings that the document states.
    pub documented: &'static [&'static str],
    /// The settings that a server has to choose although the document does not state them.
    pub assumed: &'static [&'static str],
    /// What is documented and has no switch.
    pub beyond: &'static str,
}

/// No profile has the name that was given.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no profile \"{given}\"; the profiles are: {}", names())]
pub struct UnknownProfile {
    given: String,
}

fn names() -> String {
    PROFILES.iter().map(|profile| profile.name).collect::<Vec<_>>().join(", ")
}

impl FromStr for &'static Profile {
    type Err = UnknownProfile;

    fn from_str(given: &str) -> Result<Self, Self::Err> {
        let found = PROFILES.iter().find(|profile| profile.name == given);
        found.ok_or_else(|| UnknownProfile { given: given.chars().take(80).collect() })
    }
}

impl Profile {
    /// All settings, the assumed ones first. A test sees to it that every one can be read.
    #[must_use]
    pub fn settings(&self) -> Vec<Setting> {
        self.assumed.iter().chain(self.documented).filter_map(|text| text.parse().ok()).collect()
    }

    /// The contract.
    #[must_use]
    pub fn contract(&self) -> Contract {
        Contract::default().with(&self.settings())
    }
}

/// Every profile; the first is the default one.
pub static PROFILES: &[Profile] = &[
    Profile {
        name: "draft",
        provider: "draft-ietf-httpapi-idempotency-key-header-07",
        source: "sections 2.1, 2.4, 2.6 and 2.7",
        as_of: "2025-10-15",
        documented: &[
            "key.syntax=sf-string",
            "mismatch=422",
            "inflight=409",
            "missing.status=400",
            "err.format=problem+json",
        ],
        assumed: &[],
        beyond: "",
    },
    Profile {
        name: "stripe-v1",
        provider: "Stripe API v1",
        source: "docs.stripe.com/api/idempotent_requests, docs.stripe.com/error-low-level",
        as_of: "2026-09-30",
        documented: &[
            "key.syntax=bare",
            "key.max=255",
            "required=no",
            "methods=POST",
            "mismatch=400",
            "inflight=409",
            "store.4xx_validation=release",
            "store.4xx_auth=release",
            "store.5xx_pre=store",
            "store.5xx_post=store",
            "marker=Idempotent-Replayed: true",
            "ttl=24h",
            "ttl.after=new",
        ],
        assumed: &["inflight.retry_after=no", "err.format=json"],
        beyond: "keys may be pruned later than 24 h after their first use; 429 is decided before a key is looked at",
    },
    Profile {
        name: "adyen",
        provider: "Adyen Checkout API",
        source: "docs.adyen.com/development-resources/api-idempotency",
        as_of: "2026-11-30",
        documented: &[
            "key.syntax=bare",
            "key.max=64",
            "required=no",
            "methods=POST",
            "inflight=422",
            "scope=tenant",
            "ttl=7d",
        ],
        assumed: &["marker=none", "err.format=json"],
        beyond: "older copies keep keys for 31 days; regional endpoints do not share keys; the key is echoed on the answer; in flight may be 409 too",
    },
    Profile {
        name: "paypal-orders-v2",
        provider: "PayPal Orders v2",
        source: "developer.paypal.com/reference/guidelines/idempotency",
        as_of: "2026-11-30",
        documented: &[
            "key.loc=header:PayPal-Request-Id",
            "key.syntax=bare",
            "required=no",
            "inflight=409",
            "replay.kind=current-state",
            "replay.status=200",
            "marker=none",
            "ttl=6h",
        ],
        assumed: &["err.format=json", "mismatch=422"],
        beyond: "retention differs per API: 72 h for Subscriptions v1, 45 days for refunds of captures",
    },
    Profile {
        name: "square",
        provider: "Square",
        source: "developer.squareup.com/docs/working-with-apis/idempotency",
        as_of: "2026-11-30",
        documented: &[
            "key.loc=body:idempotency_key",
            "key.syntax=bare",
            "required=yes",
            "store.5xx_pre=release",
            "store.5xx_post=release",
        ],
        assumed: &["marker=none", "err.format=json", "mismatch=400", "fp.ignore=idempotency_key"],
        beyond: "retention is not documented; a member of staff said in 2019 that keys do not expire",
    },
    Profile {
        name: "aws-ec2",
        provider: "AWS EC2 ClientToken",
        source: "docs.aws.amazon.com ec2-api-idempotency",
        as_of: "2026-11-30",
        documented: &[
            "key.loc=query:ClientToken",
            "key.syntax=bare",
            "key.max=64",
            "required=no",
            "mismatch=400",
            "replay.kind=current-state",
            "marker=none",
            "store.5xx_pre=release",
            "store.5xx_post=release",
            "err.format=xml",
        ],
        assumed: &[],
        beyond: "tokens are regional, and zonal where a zone is given; the status of a mismatch is not documented",
    },
    Profile {
        name: "dwolla",
        provider: "Dwolla",
        source: "Dwolla API documentation, as kept by a mirror",
        as_of: "2026-11-30",
        documented: &["key.syntax=bare", "required=no", "inflight=409", "ttl=24h"],
        assumed: &["marker=none", "err.format=json"],
        beyond: "",
    },
    Profile {
        name: "worldpay-wpg",
        provider: "Worldpay WPG",
        source: "developer.worldpay.com/docs/wpg/idempotency",
        as_of: "2026-11-30",
        documented: &[
            "key.syntax=bare",
            "key.format=uuid",
            "required=no",
            "store.down=open",
            "err.format=xml",
            "ttl.after=new",
            "ttl=1d",
        ],
        assumed: &["marker=none", "inflight=409"],
        beyond: "each customer chooses a retention of 1 to 365 days; all idempotency errors are XML error code 9",
    },
    Profile {
        name: "google-standard-payments",
        provider: "Google Standard Payments",
        source: "developers.google.com/standard-payments, reference/http-api-standards and /idempotency",
        as_of: "2026-11-30",
        documented: &[
            "key.loc=body:requestId",
            "key.syntax=bare",
            "required=yes",
            "mismatch=412",
            "inflight=409",
            "store.4xx_validation=release",
            "store.5xx_pre=release",
            "store.5xx_post=release",
            "marker=none",
        ],
        assumed: &["err.format=json", "fp.ignore=requestId"],
        beyond: "declined payments are 200 and stored",
    },
    Profile {
        name: "open-banking-uk",
        provider: "Open Banking UK read/write API",
        source: "OpenBankingUK/read-write-api-docs-pub, read-write-data-api-profile v3.1",
        as_of: "2026-11-30",
        documented: &[
            "key.loc=header:x-idempotency-key",
            "key.syntax=bare",
            "key.max=40",
            "key.malformed=reject",
            "key.malformed_status=400",
            "required=yes",
            "replay.kind=current-state",
            "marker=none",
            "ttl=24h",
        ],
        assumed: &["mismatch=400", "err.format=json"],
        beyond: "a changed body must not change the resource, and may be treated as fraud; its status is not documented",
    },
    Profile {
        name: "razorpay-payouts",
        provider: "Razorpay payouts",
        source: "razorpay.com/docs/api/x/payout-idempotency",
        as_of: "2025-03-15",
        documented: &[
            "key.loc=header:X-Payout-Idempotency",
            "key.syntax=bare",
            "key.min=4",
            "key.max=36",
            "key.charset=name-or-space",
            "required=yes",
            "mismatch=400",
        ],
        assumed: &["marker=none", "err.format=json"],
        beyond: "a payout that failed needs a new key",
    },
    Profile {
        name: "chargebee",
        provider: "Chargebee",
        source: "apidocs.chargebee.com/docs/api/idempotency",
        as_of: "2026-11-30",
        documented: &[
            "key.loc=header:chargebee-idempotency-key",
            "key.syntax=bare",
            "key.max=100",
            "required=no",
            "fp.inputs=method+path+query+body+headers",
            "marker=chargebee-idempotency-replayed: true",
            "ttl=30m",
        ],
        assumed: &["err.format=json", "mismatch=400"],
        beyond: "the Estimate APIs ignore keys; the status of a mismatch is not documented",
    },
    Profile {
        name: "modern-treasury",
        provider: "Modern Treasury",
        source: "docs.moderntreasury.com/reference/idempotent-requests",
        as_of: "2026-11-30",
        documented: &[
            "key.syntax=bare",
            "required=no",
            "methods=POST",
            "fp.inputs=none",
            "mismatch=replay-original",
            "inflight=409",
            "store.4xx_validation=release",
            "store.4xx_business=release",
            "store.5xx_pre=release",
            "store.5xx_post=release",
            "scope=tenant",
            "ttl=24h",
        ],
        assumed: &["marker=none", "err.format=json"],
        beyond: "",
    },
    Profile {
        name: "increase",
        provider: "Increase",
        source: "increase.com/documentation/idempotency-keys",
        as_of: "2026-11-30",
        documented: &[
            "key.syntax=bare",
            "key.max=200",
            "required=no",
            "mismatch=409",
            "marker=Idempotent-Replayed: true",
        ],
        assumed: &["err.format=json"],
        beyond: "the refusal of a mismatch names the resource that was made",
    },
    Profile {
        name: "mollie",
        provider: "Mollie",
        source: "mollie/api-documentation api-idempotency.rst, docs.mollie.com",
        as_of: "2026-11-30",
        documented: &[
            "key.syntax=bare",
            "required=no",
            "methods=POST",
            "mismatch=400",
            "inflight=409",
            "marker=Idempotent-Replayed: true",
            "ttl=24h",
            "ttl.after=new",
        ],
        assumed: &["err.format=json"],
        beyond: "",
    },
    Profile {
        name: "gocardless",
        provider: "GoCardless",
        source: "gocardless.com/blog/idempotency-keys, code of the gocardless-pro clients",
        as_of: "2026-11-30",
        documented: &["key.syntax=bare", "required=no", "replay.kind=409+resource-id", "mismatch=409", "marker=none"],
        assumed: &["err.format=json"],
        beyond: "",
    },
    Profile {
        name: "checkout-com",
        provider: "Checkout.com",
        source: "checkout.com/docs, idempotency",
        as_of: "2026-01-31",
        documented: &[
            "key.loc=header:Cko-Idempotency-Key",
            "key.syntax=bare",
            "required=no",
            "inflight=409",
            "store.4xx_validation=release",
            "store.4xx_business=release",
            "store.5xx_pre=release",
            "store.5xx_post=release",
            "ttl=24h",
        ],
        assumed: &["marker=none", "err.format=json"],
        beyond: "older documentation has 429 in flight; declined payments are 2xx and stored",
    },
    Profile {
        name: "yandex-cloud",
        provider: "Yandex Cloud",
        source: "yandex.cloud api-design-guide/concepts/idempotency",
        as_of: "2026-11-30",
        documented: &["key.syntax=bare", "key.format=uuid", "required=no", "replay.kind=current-state", "marker=none"],
        assumed: &["err.format=json"],
        beyond: "a duplicate in flight gets the running Operation",
    },
    Profile {
        name: "whop",
        provider: "Whop",
        source: "docs.whop.com/developer/api/idempotency",
        as_of: "2026-11-30",
        documented: &[
            "key.syntax=bare",
            "key.max=255",
            "required=no",
            "methods=POST",
            "mismatch=400",
            "inflight=409",
            "crash=hold-until-retention",
            "marker=Idempotent-Replayed: true",
            "scope=tenant",
            "ttl=24h",
        ],
        assumed: &["err.format=json", "store.4xx_validation=store", "store.5xx_pre=store", "store.5xx_post=store"],
        beyond: "the field Api-Version-Date is compared as well",
    },
    Profile {
        name: "telnyx",
        provider: "Telnyx",
        source: "developers.telnyx.com, idempotency",
        as_of: "2026-11-30",
        documented: &[
            "key.syntax=bare",
            "key.charset=name",
            "key.max=255",
            "required=no",
            "fp.canon=bytes",
            "mismatch=422",
            "store.4xx_validation=release",
            "store.4xx_business=release",
            "store.5xx_pre=release",
            "store.5xx_post=release",
            "ttl=24h",
        ],
        assumed: &["marker=none", "err.format=json"],
        beyond: "the order of the query's parameters does not matter",
    },
    Profile {
        name: "solidgate",
        provider: "Solidgate",
        source: "api-docs.solidgate.com",
        as_of: "2026-11-30",
        documented: &[
            "key.syntax=bare",
            "key.charset=visible",
            "key.max=255",
            "key.malformed_status=400",
            "required=no",
            "mismatch=422",
        ],
        assumed: &["marker=none", "err.format=json"],
        beyond: "endpoints without keys answer Idempotency-Status: ignored",
    },
    Profile {
        name: "qonto",
        provider: "Qonto",
        source: "docs.qonto.com",
        as_of: "2026-11-30",
        documented: &[
            "key.syntax=bare",
            "required=no",
            "fp.inputs=none",
            "mismatch=replay-original",
            "store.4xx_validation=release",
            "store.5xx_pre=release",
            "store.5xx_post=release",
            "ttl=30m",
        ],
        assumed: &["marker=none", "err.format=json"],
        beyond: "",
    },
    Profile {
        name: "checkbook",
        provider: "Checkbook",
        source: "docs.checkbook.io",
        as_of: "2026-11-30",
        documented: &["key.syntax=bare", "required=no", "mismatch=execute-as-new"],
        assumed: &["marker=none", "err.format=json"],
        beyond: "",
    },
    Profile {
        name: "mangopay",
        provider: "Mangopay",
        source: "Mangopay documentation, idempotency",
        as_of: "2026-11-30",
        documented: &[
            "key.syntax=bare",
            "key.min=16",
            "key.max=36",
            "key.charset=name",
            "required=no",
            "replay.kind=409+resource-id",
            "mismatch=409",
            "ttl=24h",
        ],
        assumed: &["marker=none", "err.format=json"],
        beyond: "",
    },
    Profile {
        name: "novu",
        provider: "Novu",
        source: "novuhq/docs#202",
        as_of: "2026-11-30",
        documented: &[
            "key.syntax=bare",
            "key.max=255",
            "key.malformed_status=400",
            "required=no",
            "mismatch=422",
            "inflight=409",
            "inflight.retry_after=yes",
            "store.4xx_validation=store",
            "store.5xx_pre=store",
            "store.5xx_post=store",
            "marker=Idempotent-Replay: true",
            "ttl=24h",
        ],
        assumed: &["err.format=json"],
        beyond: "",
    },
    Profile {
        name: "coinbase-cdp",
        provider: "Coinbase CDP",
        source: "docs.cdp.coinbase.com",
        as_of: "2026-11-30",
        documented: &[
            "key.loc=header:X-Idempotency-Key",
            "key.syntax=bare",
            "key.format=uuid4",
            "key.malformed=reject",
            "required=no",
            "ttl=24h",
        ],
        assumed: &["marker=none", "err.format=json", "mismatch=422"],
        beyond: "",
    },
    Profile {
        name: "helcim",
        provider: "Helcim",
        source: "devdocs.helcim.com",
        as_of: "2026-11-30",
        documented: &["key.syntax=bare", "required=yes", "ttl=5m"],
        assumed: &["marker=none", "err.format=json", "mismatch=409"],
        beyond: "",
    },
    Profile {
        name: "ppro",
        provider: "PPRO",
        source: "developerhub.ppro.com",
        as_of: "2026-11-30",
        documented: &[
            "key.loc=header:Request-Idempotency-Key",
            "key.syntax=bare",
            "required=no",
            "inflight=409",
            "store.4xx_validation=release",
            "store.4xx_business=release",
            "marker=Request-Idempotency: true",
            "ttl=24h",
        ],
        assumed: &["err.format=json", "mismatch=422"],
        beyond: "",
    },
];

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn every_setting_of_every_profile_can_be_read_and_stands_once() {
        for profile in PROFILES {
            let mut seen = std::collections::BTreeSet::new();
            for text in profile.documented.iter().chain(profile.assumed) {
                let setting: Setting = text.parse().unwrap_or_else(|error| panic!("{}: {error}", profile.name));
                assert!(seen.insert(setting.name()), "{} sets {} twice", profile.name, setting.name());
            }
            assert!(profile.as_of.len() == 10 && profile.as_of.split('-').all(|part| part.parse::<u16>().is_ok()));
            assert!(!profile.source.is_empty() && !profile.provider.is_empty());
            assert!(std::ptr::eq(profile.name.parse::<&Profile>().unwrap(), profile));
        }
    }

    #[test]
    fn the_draft_is_the_default() {
        assert_eq!(PROFILES[0].contract(), Contract::default());
        assert!("strype".parse::<&Profile>().unwrap_err().to_string().contains("stripe-v1"));
    }
}
