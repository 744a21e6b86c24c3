//! `Budget`: admits requests, charges answers to accounts and ends turns; `Spent`, the sums of an account.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use advisor_core::{
    AdvisorChain, AdvisorInfo, AdvisorRole, ChatRequest, ChatResponse, ChunkStream, Error, FinishReason,
    Limit, Message, OncePerTurn, Phase, Placement, Result, StreamAdvisor, Text, Turn, Usage, async_trait,
};

use crate::money::{Money, Price, price_of};
use crate::per_tenant::PerTenant;

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
/// [`Configuration`](advisor_core::ErrorKind::Configuration), unless [`ignoring_unknown_cost`](Self::ignoring_unknown_cost) is set.
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
/// assert!(matches!(refused.finish.reason, FinishReason::Limit(_)));
/// budget.reset(); // a new month
/// # Ok(()) }
/// ```
#[must_use]
#[derive(Debug, Clone)]
pub struct Budget {
    name: Text,
    accounts: Arc<Accounts>,
    tokens: Option<u64>,
    money: Option<(Money, Prices)>,
    ignores_unknown_cost: bool,
    begun: OncePerTurn<Arc<Begun>>,
}

/// The prices of models, by their names.
type Prices = Arc<[(Text, Price)]>;

/// The accounts that turns share; `None`: each turn has its own.
type Accounts = Option<PerTenant<Account>>;

/// The tokens and the money that were spent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Spent {
    /// The tokens of requests and answers.
    pub tokens: u64,
    /// The money, by the prices of the budget; 0 without prices.
    pub money: Money,
}

/// The account of a turn, of a tenant or of all turns.
#[derive(Debug, Default)]
struct Account(Mutex<Spent>);

impl Account {
    /// Changes the sums, and returns them.
    fn update(&self, change: impl FnOnce(&mut Spent)) -> Spent {
        let mut spent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut spent);
        *spent
    }

    fn spent(&self) -> Spent {
        self.update(|_| {})
    }
}

/// What a turn uses of a budget.
struct Begun {
    account: Arc<Account>,
    end: Mutex<End>,
}

/// The end of a turn by the budget.
struct End {
    /// The limit at which the turn ends. An answer was complete when it was reached, or the turn began at it.
    limit: Option<Limit>,
    /// Whether no answer may follow: the last one, without tools, was given.
    is_final: bool,
}

impl Begun {
    fn end(&self) -> MutexGuard<'_, End> {
        self.end.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the limit for which the turn may not call the model. A tool loop may ask for one last answer.
    fn refusal(&self, is_last: bool) -> Option<Limit> {
        let end = self.end();
        end.limit.clone().filter(|_| end.is_final || !is_last)
    }
}

impl Budget {
    /// Creates a budget that each turn has for itself.
    pub fn for_each_turn() -> Self {
        Self::new(None)
    }

    /// Creates a budget that each tenant has for all its turns. A turn without a conversation is one of the tenant
    /// `default`. The number of tenants [is bounded](Self::with_tenants).
    pub fn for_each_tenant() -> Self {
        Self::new(Some(PerTenant::new(false)))
    }

    /// Creates a budget that all turns share.
    pub fn for_all() -> Self {
        Self::new(Some(PerTenant::new(true)))
    }

    fn new(accounts: Accounts) -> Self {
        Self {
            name: "budget".into(),
            accounts: Arc::new(accounts),
            tokens: None,
            money: None,
            ignores_unknown_cost: false,
            begun: OncePerTurn::default(),
        }
    }

    /// Sets the maximum number of tokens, those of requests and of answers. The tokens of earlier rounds count again in
    /// each request that repeats them.
    pub fn with_tokens(self, tokens: u64) -> Self {
        Self { tokens: Some(tokens), ..self }
    }

    /// Sets the maximum amount of money, by the prices of the models, under the names that providers report with an
    /// answer.
    ///
    /// A name with `*` at its end is that of all models whose names begin with the part before it. The longest name
    /// takes precedence. A model without a known name has an empty one.
    pub fn with_money<N: Into<Text>>(
        self,
        money: Money,
        prices: impl IntoIterator<Item = (N, Price)>,
    ) -> Self {
        let prices = prices.into_iter().map(|(model, price)| (model.into(), price)).collect();
        Self { money: Some((money, prices)), ..self }
    }

    /// Sets the name that [`explain`](AdvisorChain::explain) shows, `budget` by default. It distinguishes several
    /// budgets of a chain.
    pub fn with_name(self, name: impl Into<Text>) -> Self {
        Self { name: name.into(), ..self }
    }

    /// Sets the maximum number of tenants, 10,000 by default, and gives the budget accounts of its own, apart from those of
    /// earlier clones. Beyond it, accounts of which nothing is spent are removed first; further tenants get an error of kind
    /// [`TooLarge`](advisor_core::ErrorKind::TooLarge).
    pub fn with_tenants(self, tenants: usize) -> Self {
        match &*self.accounts {
            Some(accounts) if !accounts.is_shared() => {
                let accounts = Arc::new(Some(PerTenant::new(false).with_most(tenants)));
                Self { accounts, begun: OncePerTurn::default(), ..self }
            }
            _ => self,
        }
    }

    /// Lets an answer count nothing whose tokens or price are not known, as far as they are not. So the limit may never
    /// be reached. By default such an answer fails: it was shown, no tool of it runs, and the turn ends with the error.
    pub fn ignoring_unknown_cost(self) -> Self {
        Self { ignores_unknown_cost: true, ..self }
    }

    /// Returns the amounts that were spent from the shared accounts, with the tenants in no order. The account of all
    /// turns has an empty name.
    #[must_use]
    pub fn accounts(&self) -> Vec<(Text, Spent)> {
        let accounts = self.accounts.iter().flat_map(PerTenant::all);
        accounts.map(|(tenant, account)| (tenant, account.spent())).collect()
    }

    /// Empties the shared accounts, such as for a new month.
    pub fn reset(&self) {
        for (_, account) in self.accounts.iter().flat_map(PerTenant::all) {
            account.update(|spent| *spent = Spent::default());
        }
    }

    /// Begins a turn. One that begins when its account is spent gets no answer.
    fn begin(&self, request: &ChatRequest) -> Result<Arc<Begun>> {
        let is_idle = |account: &Account| account.spent() == Spent::default();
        let account = match &*self.accounts {
            None => Arc::default(),
            Some(shared) => shared.of(request, Account::default, is_idle)?,
        };
        let limit = self.reached(&account);
        let end = Mutex::new(End { is_final: limit.is_some(), limit });
        Ok(Arc::new(Begun { account, end }))
    }

    /// Charges an answer to the account, as far as its cost is known.
    fn charge(
        &self,
        account: &Account,
        response: &ChatResponse,
        requested_model: Option<&str>,
    ) -> Result<()> {
        let usage = response.usage.unwrap_or_default();
        if usage.total() == Some(0) {
            return Ok(());
        }
        let model = response.model.as_deref().or(requested_model).unwrap_or_default();
        let (tokens, money) = (self.check_tokens(&usage), self.money_of(&usage, model));
        let known_parts = [usage.input_tokens, usage.output_tokens].into_iter().flatten();
        let known_tokens = usage.total().unwrap_or_else(|| known_parts.fold(0, u64::saturating_add));
        let known_money = *money.as_ref().unwrap_or(&Money::default());
        account.update(|spent| {
            spent.tokens = spent.tokens.saturating_add(known_tokens);
            spent.money = spent.money.saturating_add(known_money);
        });
        if self.ignores_unknown_cost { Ok(()) } else { tokens.and(money).map(drop) }
    }

    fn check_tokens(&self, usage: &Usage) -> Result<()> {
        let is_known = self.tokens.is_none() || usage.total().is_some();
        if is_known { Ok(()) } else { Err(Error::configuration(UNKNOWN_TOKENS)) }
    }

    fn money_of(&self, usage: &Usage, model: &str) -> Result<Money> {
        let Some((_, prices)) = &self.money else { return Ok(Money::default()) };
        let price = price_of(prices, model).ok_or_else(|| {
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
        let limit = tokens.or_else(|| money.map(|(money, _)| format!("the budget of {money}")))?;
        let scope = match &*self.accounts {
            None => "one turn",
            Some(accounts) if accounts.is_shared() => "all turns",
            Some(_) => "one tenant",
        };
        Some(Limit::Other(format!("{limit} for {scope}").into()))
    }

    fn end_if_spent(&self, account: &Account, turn: &Turn) -> Option<Limit> {
        let reached = self.reached(account)?;
        turn.request_end(reached.clone());
        Some(reached)
    }
}

/// Returns the answer in place of the model. It has no tokens, so other budgets count none.
fn refuse(limit: Limit) -> ChatResponse {
    let text = format!("I cannot answer: {limit} was reached.");
    let mut refused = ChatResponse::new(0, Message::assistant(text), FinishReason::Limit(limit));
    refused.usage = Some(Usage::new(0, 0));
    refused
}

const UNKNOWN_TOKENS: &str = "the model reported no tokens, so its answer cannot be counted; let it report them, or set \
                              `ignoring_unknown_cost` of the budget";

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
        let (turn, model) = (Arc::clone(&request.turn), request.options.model.clone());
        let begun = self.begun.get_or_try_init(&turn, async { self.begin(&request) }).await?;
        if let Some(limit) = begun.refusal(turn.facts(|facts| facts.is_last_answer)) {
            return Ok(request.answer(refuse(limit)));
        }
        // Another turn may have spent the account. A turn that has begun ends at the boundary of its round.
        self.end_if_spent(&begun.account, &turn);
        let answer = next.next_stream(request).await?;
        Ok(answer.on_completed(move |response| async move {
            let charged = self.charge(&begun.account, &response, model.as_deref());
            let reached = self.end_if_spent(&begun.account, &turn);
            let is_last = turn.facts(|facts| facts.is_last_answer);
            let mut end = begun.end();
            end.limit = reached.or_else(|| end.limit.take());
            end.is_final |= is_last;
            charged.map(|()| response)
        }))
    }
}
