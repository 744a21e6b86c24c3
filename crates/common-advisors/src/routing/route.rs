//! `Route`: a model with its price and its condition.

use std::fmt;
use std::sync::Arc;

use advisor_core::{ChatModel, ChatRequest};

use crate::{Money, Price};

type Condition = Arc<dyn Fn(&ChatRequest) -> bool + Send + Sync>;

/// A model among others, with what a [`RoutedModel`](crate::RoutedModel) has to know to choose it.
#[must_use]
#[derive(Clone)]
pub struct Route {
    pub(super) model: Arc<dyn ChatModel>,
    price: Option<Price>,
    condition: Option<Condition>,
}

impl Route {
    /// Creates a route to a model, for all requests and without a price.
    pub fn new(model: impl ChatModel) -> Self {
        Self { model: Arc::new(model), price: None, condition: None }
    }

    /// Sets the price, by which [`RouteOrder::Cost`](crate::RouteOrder) sorts.
    pub fn with_price(self, price: Price) -> Self {
        Self { price: Some(price), ..self }
    }

    /// Uses the route only for requests for which `condition` returns true, such as those with few messages, or those of
    /// some tenants.
    pub fn with_condition(self, condition: impl Fn(&ChatRequest) -> bool + Send + Sync + 'static) -> Self {
        Self { condition: Some(Arc::new(condition)), ..self }
    }

    pub(super) fn takes(&self, request: &ChatRequest) -> bool {
        self.condition.as_ref().is_none_or(|condition| condition(request))
    }

    /// Returns the price of a million tokens of requests and of answers. A model without a price is the dearest.
    pub(super) fn cost(&self) -> Money {
        self.price.map_or(Money::from_millionths(u64::MAX), Price::of_a_million_each)
    }
}

impl fmt::Debug for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let model = self.model.model_name().unwrap_or_else(|| self.model.name());
        f.debug_struct("Route").field("model", &model).field("price", &self.price).finish_non_exhaustive()
    }
}
