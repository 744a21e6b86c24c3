use std::sync::Arc;

use advisor_core::{AdvisorChain, Result, ToolSet};

use super::McpTools;
use super::catalog::{Catalog, Listed};
use super::failure;

impl McpTools {
    /// Returns the tools of a round: those of `base`, and those of the server that the chain accepts.
    ///
    /// # Errors
    /// [`DuplicateTool`](crate::DuplicateTool) if `base` has the name of a tool of the server's first list.
    pub(super) fn offered(
        &self,
        base: &ToolSet,
        catalog: &Arc<Catalog>,
        chain: &AdvisorChain,
    ) -> Result<ToolSet> {
        let accepts = |set: &ToolSet| chain.validate_tools(set).is_ok();
        let known = self.listing().merged.find(base, catalog);
        if let Some(set) = known.into_iter().find(accepts) {
            return Ok(set);
        }
        let server = &self.link.server;
        let first = self.listing().first.clone();
        let is_free = |listed: &Listed| self.is_free(listed, base, first.as_deref());
        let mut set = catalog.added_to(base, server, is_free)?;
        if !accepts(&set) {
            set = catalog
                .added_to(base, server, |listed| is_free(listed) && self.is_accepted(listed, chain))?;
        }
        self.listing().merged.keep(base, Arc::clone(catalog), set.clone());
        Ok(set)
    }

    /// Checks that a tool of a later list does not take the name of another tool. The first list may fail by it.
    fn is_free(&self, listed: &Listed, base: &ToolSet, first: Option<&Catalog>) -> bool {
        let name = &listed.tool.definition.name;
        let is_free = base.find(name).is_none() || first.is_none_or(|first| first.set.find(name).is_some());
        if !is_free {
            self.warn(listed, "another tool has its name");
        }
        is_free
    }

    /// Checks a tool alone. Warns about a refused one.
    fn is_accepted(&self, listed: &Listed, chain: &AdvisorChain) -> bool {
        let Err(error) = chain.validate_tools(&listed.alone) else { return true };
        self.warn(listed, &error.to_string());
        false
    }

    fn warn(&self, listed: &Listed, reason: &str) {
        listed.warning.call_once(|| {
            let server = self.link.server.settings.name.as_str();
            let (tool, reason) = (failure::logged(&listed.tool.name), failure::logged(reason));
            tracing::warn!(server, tool, reason, "a tool of an MCP server is left out");
        });
    }
}
