//! `Budget`: the advisor; admits requests, charges answers and ends turns. `OnUnknownCost`.

pub(crate) mod accounts;
pub(crate) mod money;
pub(crate) mod prices;
pub(crate) mod spent;

use std::sync::Arc;

use advisor_core::{
    AdvisorChain, AdvisorInfo, AdvisorRole, ChatRequest, ChatResponse, ChunkStream, Error, FinishReason,
    Limit, Message, Phase, Placement, Result, StreamAdvisor, Text, Turn, Usage, async_trait,
};

use self::accounts::{Accounts, Shared};
use self::money::Money;
use self::prices::Prices;
use self::spent::{Account, Spent};
use crate::per_tenant::{MOST_TENANTS, PerTenant};

/// Limits the tokens and the money of a turn, of each tenant or of all turns together.
///
/// An answer counts when it is complete, since providers report tokens at its end. So the answer that reaches the
/// limit is still shown. Turns that run at the same time may exceed a shared account by one answer each. An answer
/// that fails or is dropped counts nothing, since its tokens are not known.
///
/// A turn that reaches the limit ends at the next boundary of a round, by [`Turn::request_end`]. The tool loop then starts no tool
/// and asks no more, or asks for a last answer without tools; the setting is `OnLimit` of its limits. The finish reason
/// is [`FinishReason::Limit`]. Further calls within a round do not reach the model, such as those of an advisor that asks
/// again. Neither does a turn that begins when a shared account is spent. They are answered by a sentence with the same
/// finish reason, which memory stores. In a typed turn the sentence is no value, so the turn ends with an error of kind
/// [`InvalidOutput`](advisor_core::ErrorKind::InvalidOutput).
///
/// Its position is [beside the model](advisor_core::AdvisorRole::BesideModel). So each call of the model counts, also the repeated
/// ones of other advisors, and a cached answer counts nothing. A model's own retries are not visible here. A turn inside
/// a tool has its own budget, and uses the same shared accounts.
///
/// Clones have the same accounts, which are in memory. Accounts end with the process.
///
/// # Errors
/// An answer whose tokens or price are not known fails with kind
/// [`Configuration`](advisor_core::ErrorKind::Configuration), unless [`OnUnknownCost`] says otherwise.
///
/// # Example
/// ```
/// use advisor_core::{ChatClient, FinishReason};
/// use advisor_testkit::{Answer, ScriptedModel};
/// use common_advisors::Budget;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> advisor_core::Result<()> {
/// let answer = Answer::new().text("A long story.").usage(40, 960).finish(FinishReason::Stop);
/// let budget = Budget::for_each_tenant().with_tokens(1_000);
/// let client = ChatClient::builder(ScriptedModel::new([answer])).advisor(budget.clone()).build()?;
/// assert_eq!(client.prompt().user("Tell me a story.").call().await?.text(), "A long story.");
///
/// let refused = client.prompt().user("Another one.").call().await?;
/// assert!(matches!(refused.finish().reason, FinishReason::Limit(_)));
/// budget.reset(); // a new month
/// # Ok(()) }
/// ```
#[must_use]
#[derive(Debug, Clone)]
pub struct Budget {
    name: Text,
    accounts: Arc<Accounts>,
    tokens: Option<u64>,
    money: Option<(Money, Arc<Prices>)>,
    on_unknown_cost: OnUnknownCost,
    refusal: Option<Text>,
}

/// The reaction to an answer whose tokens or price are not known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OnUnknownCost {
    /// The answer fails. It was shown, no tool of it runs, and the turn ends with the error.
    #[default]
    Fail,
    /// The unknown part counts nothing. So the limit may never be reached.
    Ignore,
}

/// Whether a request may go to the model.
enum Admission {
    /// It may, and this account pays.
    Admitted(Arc<Account>),
    /// It may not, since the account is spent.
    Refused(Limit),
}

impl Budget {
    /// Creates a budget that each turn has for itself.
    pub fn for_each_turn() -> Self {
        Self::new(Accounts::PerTurn)
    }

    /// Creates a budget that each tenant has for all its turns. A turn without a conversation is one of the tenant
    /// `default`.
    pub fn for_each_tenant() -> Self {
        Self::new(Accounts::Shared(Shared::PerTenant(PerTenant::new(MOST_TENANTS))))
    }

    /// Creates a budget that all turns share.
    pub fn for_all() -> Self {
        Self::new(Accounts::Shared(Shared::One(Arc::default())))
    }

    fn new(accounts: Accounts) -> Self {
        Self {
            name: "budget".into(),
            accounts: Arc::new(accounts),
            tokens: None,
            money: None,
            on_unknown_cost: OnUnknownCost::Fail,
            refusal: None,
        }
    }

    /// Sets the maximum number of tokens, those of requests and of answers. The tokens of earlier rounds count again in
    /// each request that repeats them.
    pub fn with_tokens(self, tokens: u64) -> Self {
        Self { tokens: Some(tokens), ..self }
    }

    /// Sets the maximum amount of money, by the prices of the models.
    pub fn with_money(self, money: Money, prices: Prices) -> Self {
        Self { money: Some((money, Arc::new(prices))), ..self }
    }

    /// Sets the name that [`explain`](AdvisorChain::explain) shows, `budget` by default. It distinguishes several
    /// budgets of a chain.
    pub fn with_name(self, name: impl Into<Text>) -> Self {
        Self { name: name.into(), ..self }
    }

    /// Sets the maximum number of tenants, 10,000 by default, and empties all shared accounts. Accounts of which nothing
    /// is spent are removed first. Further tenants get an error of kind
    /// [`TooLarge`](advisor_core::ErrorKind::TooLarge).
    pub fn with_tenants(self, tenants: usize) -> Self {
        match &*self.accounts {
            Accounts::Shared(Shared::PerTenant(_)) => {
                let accounts = Accounts::Shared(Shared::PerTenant(PerTenant::new(tenants)));
                Self { accounts: Arc::new(accounts), ..self }
            }
            _ => self,
        }
    }

    /// Sets the reaction to an answer whose tokens or price are not known.
    pub fn with_on_unknown_cost(self, on_unknown_cost: OnUnknownCost) -> Self {
        Self { on_unknown_cost, ..self }
    }

    /// Sets the answer to a turn that begins when a shared account is spent, and to further calls within a round. By
    /// default it is an English sentence with the limit.
    pub fn with_refusal(self, refusal: impl Into<Text>) -> Self {
        Self { refusal: Some(refusal.into()), ..self }
    }

    /// Returns the amount that was spent from the account of a turn. A shared account has the amounts of other turns,
    /// too. For a turn that the budget refused it is 0.
    #[must_use]
    pub fn spent_in(&self, turn: &Turn) -> Spent {
        self.accounts.noted(turn).map(|account| account.spent()).unwrap_or_default()
    }

    /// Returns the amounts that were spent from the shared accounts, with the tenants in no order. The account of all
    /// turns has an empty name.
    #[must_use]
    pub fn accounts(&self) -> Vec<(Text, Spent)> {
        self.accounts.all().into_iter().map(|(tenant, account)| (tenant, account.spent())).collect()
    }

    /// Empties the shared accounts, such as for a new month.
    pub fn reset(&self) {
        self.accounts.all().iter().for_each(|(_, account)| account.reset());
    }

    fn admit(&self, request: &ChatRequest) -> Result<Admission> {
        let turn = &request.turn;
        if let Some(account) = self.accounts.noted(turn) {
            if let Some(limit) = self.accounts.refusal(turn) {
                return Ok(Admission::Refused(limit));
            }
            // Another turn may have spent the account. A turn that has begun ends at the boundary of its round.
            self.end_if_spent(&account, turn);
            return Ok(Admission::Admitted(account));
        }
        let account = self.accounts.of(request)?;
        if let Some(limit) = self.reached(&account) {
            return Ok(Admission::Refused(limit));
        }
        Ok(Admission::Admitted(self.accounts.note(turn, account)))
    }

    /// Charges an answer to the account, as far as its cost is known.
    fn charge(
        &self,
        account: &Account,
        response: &ChatResponse,
        requested_model: Option<&str>,
    ) -> Result<()> {
        let usage = response.usage().copied().unwrap_or_default();
        if usage.total() == Some(0) {
            return Ok(());
        }
        let model = response.model().or(requested_model).unwrap_or_default();
        let (tokens, money) = (self.check_tokens(&usage), self.money_of(&usage, model));
        let known_parts = [usage.input_tokens, usage.output_tokens].into_iter().flatten();
        account.charge(Spent {
            tokens: usage.total().unwrap_or_else(|| known_parts.fold(0, u64::saturating_add)),
            money: *money.as_ref().unwrap_or(&Money::default()),
        });
        match self.on_unknown_cost {
            OnUnknownCost::Fail => tokens.and(money).map(drop),
            OnUnknownCost::Ignore => Ok(()),
        }
    }

    fn check_tokens(&self, usage: &Usage) -> Result<()> {
        let is_known = self.tokens.is_none() || usage.total().is_some();
        if is_known { Ok(()) } else { Err(Error::configuration(UNKNOWN_TOKENS)) }
    }

    fn money_of(&self, usage: &Usage, model: &str) -> Result<Money> {
        let Some((_, prices)) = &self.money else { return Ok(Money::default()) };
        let price = prices.of(model).ok_or_else(|| {
            Error::configuration(format!(
                "the prices of the budget have none for the model `{model}`; add it"
            ))
        })?;
        price.of(usage).ok_or_else(|| Error::configuration(UNKNOWN_TOKENS))
    }

    /// Returns the limit that the account has reached.
    fn reached(&self, account: &Account) -> Option<Limit> {
        let spent = account.spent();
        let tokens = self.tokens.filter(|tokens| spent.tokens >= *tokens);
        let money = self.money.as_ref().filter(|(money, _)| spent.money >= *money);
        let tokens = tokens.map(|tokens| format!("the budget of {tokens} tokens"));
        let limit = tokens.or_else(|| money.map(|(money, _)| format!("the budget of {money}")));
        limit.map(|limit| Limit::Other(format!("{limit}{}", self.accounts.scope()).into()))
    }

    fn end_if_spent(&self, account: &Account, turn: &Turn) {
        if let Some(limit) = self.reached(account) {
            turn.request_end(limit);
        }
    }

    /// Returns the answer in place of the model. It has no tokens, so other budgets count none.
    fn refuse(&self, limit: Limit) -> ChatResponse {
        let text = self
            .refusal
            .as_ref()
            .map_or_else(|| format!("I cannot answer: {limit} was reached."), Text::to_string);
        ChatResponse::new(0, Message::assistant(text), FinishReason::Limit(limit))
            .with_usage(Some(Usage::new(0, 0)))
    }
}

const UNKNOWN_TOKENS: &str = "the model reported no tokens, so its answer cannot be counted; let it report them, or set \
                              `OnUnknownCost::Ignore` of the budget";

impl AdvisorInfo for Budget {
    fn name(&self) -> &str {
        &self.name
    }

    fn placement(&self) -> Placement {
        Placement { phase: Phase::ModelCall, role: AdvisorRole::BesideModel }
    }
}

#[async_trait]
impl StreamAdvisor for Budget {
    async fn advise_stream(self: Arc<Self>, request: ChatRequest, next: AdvisorChain) -> Result<ChunkStream> {
        let account = match self.admit(&request)? {
            Admission::Admitted(account) => account,
            Admission::Refused(limit) => return Ok(request.answer(self.refuse(limit))),
        };
        let (turn, model) = (Arc::clone(&request.turn), request.options.model.clone());
        let answer = next.next_stream(request).await?;
        Ok(answer.on_completed(move |response| async move {
            let charged = self.charge(&account, &response, model.as_deref());
            self.end_if_spent(&account, &turn);
            self.accounts.note_answer(&turn, self.reached(&account));
            charged.map(|()| response)
        }))
    }
}
