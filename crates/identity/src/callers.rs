//! From verified credentials to the caller behind them.

use std::collections::HashMap;
use std::sync::Arc;

use config::{CallerMatch, CallerSpec, JwtProvider};
use types::{Priority, TenantName};

use crate::token::{Claims, has_value, text};
use crate::{Caller, Certificate, Denied, ModelAccess};

/// Longest name that comes from a token, bytes.
const NAME_BYTES_MAX: usize = 128;

/// The callers of a document.
#[derive(Debug, Default)]
pub(crate) struct Callers {
    callers: Vec<CallerSpec>,
    by_name: HashMap<String, usize>,
    by_key: HashMap<String, usize>,
    any: Option<usize>,
}

impl Callers {
    pub(crate) fn new(callers: &[CallerSpec]) -> Self {
        let mut found = Self { callers: callers.to_vec(), ..Self::default() };
        for (index, caller) in callers.iter().enumerate() {
            found.by_name.entry(caller.name.clone()).or_insert(index);
            match &caller.matches {
                CallerMatch::Key(name) => {
                    found.by_key.entry(name.clone()).or_insert(index);
                }
                CallerMatch::Any => {
                    found.any.get_or_insert(index);
                }
                _ => {}
            }
        }
        found
    }

    /// * `caller`: the caller that the key itself names.
    pub(crate) fn of_key(&self, name: &str, caller: Option<&str>) -> Result<Arc<Caller>, Denied> {
        let named = match caller {
            Some(caller) => Some(*self.by_name.get(caller).ok_or(Denied::NoCaller)?),
            None => match (self.by_key.get(name).copied(), self.any) {
                (Some(key), Some(any)) => Some(key.min(any)),
                (key, any) => key.or(any),
            },
        };
        let credential = Some(Arc::from(name));
        match named {
            Some(index) => Ok(Arc::new(self.caller(index, None, name, credential)?)),
            None if self.callers.is_empty() => Ok(Arc::new(unrestricted(name, credential))),
            None => Err(Denied::NoCaller),
        }
    }

    /// The caller of this name, without a credential.
    pub(crate) fn named(&self, name: &str) -> Option<Arc<Caller>> {
        self.caller(*self.by_name.get(name)?, None, name, None).ok().map(Arc::new)
    }

    pub(crate) fn of_token(
        &self,
        provider: &JwtProvider,
        claims: &Claims,
    ) -> Result<Arc<Caller>, Denied> {
        let tenant = match &provider.tenant_claim {
            None => provider.name.as_str(),
            Some(claim) => name_in(claims, claim)?,
        };
        let subject = name_in(claims, "sub").ok();
        let credential = match subject {
            Some(subject) => format!("{}:{subject}", provider.name),
            None => provider.name.clone(),
        };
        let credential = Some(Arc::from(credential));
        let index = self.callers.iter().position(|caller| match &caller.matches {
            CallerMatch::Any => true,
            CallerMatch::Provider(name) => *name == provider.name,
            CallerMatch::Claim { provider: only, name, value } => {
                only.as_ref().is_none_or(|only| *only == provider.name)
                    && has_value(claims, name, value)
            }
            _ => false,
        });
        match index {
            Some(index) => {
                let by_claim = provider.tenant_claim.as_ref().map(|_| tenant);
                Ok(Arc::new(self.caller(
                    index,
                    Some(claims),
                    by_claim.unwrap_or(""),
                    credential,
                )?))
            }
            None if self.callers.is_empty() => Ok(Arc::new(unrestricted(tenant, credential))),
            None => Err(Denied::NoCaller),
        }
    }

    pub(crate) fn of_certificate(&self, certificate: &Certificate) -> Result<Arc<Caller>, Denied> {
        let name = certificate.name().ok_or(Denied::NoCaller)?;
        let credential = Some(Arc::from(name));
        let index = self.callers.iter().position(|caller| match &caller.matches {
            CallerMatch::Any => true,
            CallerMatch::Certificate(name) => certificate.is(name),
            _ => false,
        });
        match index {
            Some(index) => Ok(Arc::new(self.caller(index, None, name, credential)?)),
            None if self.callers.is_empty() => Ok(Arc::new(unrestricted(name, credential))),
            None => Err(Denied::NoCaller),
        }
    }

    /// Somebody without credentials, beside others who have some: without a caller of their own they
    /// cannot go before those.
    pub(crate) fn anonymous(&self) -> Arc<Caller> {
        let index = self.callers.iter().position(|caller| caller.matches == CallerMatch::Anonymous);
        let found = index.and_then(|index| self.caller(index, None, "", None).ok());
        Arc::new(found.unwrap_or_else(|| Caller {
            priority_max: Priority::STANDARD,
            ..Caller::clone(&Caller::anonymous())
        }))
    }

    /// * `fallback`: tenant where the caller states none, rather than the caller's name: for the
    ///   catch-all, which is no tenant of its own. Empty: none.
    fn caller(
        &self,
        index: usize,
        claims: Option<&Claims>,
        fallback: &str,
        credential: Option<Arc<str>>,
    ) -> Result<Caller, Denied> {
        let spec = &self.callers[index];
        let tenant = match (&spec.tenant, &spec.tenant_claim, claims) {
            (Some(tenant), ..) => tenant.clone(),
            (None, Some(claim), Some(claims)) => TenantName::new(name_in(claims, claim)?),
            // A claim of the provider's names the tenant of all its tokens.
            (None, None, Some(_)) if !fallback.is_empty() => TenantName::new(fallback),
            (None, _, None) if spec.matches == CallerMatch::Any && !fallback.is_empty() => {
                TenantName::new(fallback)
            }
            _ => TenantName::new(&spec.name),
        };
        Ok(Caller {
            tenant,
            credential,
            priority_max: spec.priority_max.unwrap_or(Priority(i32::MAX)),
            objective: spec.objective.clone(),
            fairness_id: spec.fairness_id.as_deref().map(Arc::from),
            models: spec.models.clone().map_or(ModelAccess::All, ModelAccess::Only),
        })
    }
}

/// The document says nothing of callers: whoever has credentials may do everything.
fn unrestricted(tenant: &str, credential: Option<Arc<str>>) -> Caller {
    Caller {
        tenant: TenantName::new(tenant),
        credential,
        priority_max: Priority(i32::MAX),
        objective: None,
        fairness_id: None,
        models: ModelAccess::All,
    }
}

/// A name from a claim that can be shown and counted.
fn name_in<'a>(claims: &'a Claims, claim: &str) -> Result<&'a str, Denied> {
    let name = text(claims, claim).ok_or(Denied::Claims)?;
    let fits = !name.is_empty()
        && name.len() <= NAME_BYTES_MAX
        && name.bytes().all(|byte| byte.is_ascii_graphic());
    if fits { Ok(name) } else { Err(Denied::Claims) }
}
