//! `advisor conversations`, `export` and `import`: the conversations in a file.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::pin::pin;

use advisor_chain::memory::store::{Page, ReadRange, export, import};
use advisor_chain::memory::{ConversationStore, StoreError};
use advisor_chain::{ConversationKey, Error, ErrorKind};
use chat_memory_sqlite::SqliteStore;
use futures::TryStreamExt;
use tokio::io::BufReader;

use crate::failure::Failure;
use crate::printable::{escaped, escaped_json};

#[derive(Debug, clap::Args)]
pub(crate) struct ListArguments {
    /// The file that holds the conversations.
    file: PathBuf,
    /// The tenant that owns the conversations.
    #[arg(long, value_name = "ID", default_value = "default")]
    tenant: String,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ExportArguments {
    /// The file that holds the conversation.
    file: PathBuf,
    /// The conversation.
    #[arg(long, value_name = "ID")]
    conversation: String,
    /// The tenant that owns the conversation.
    #[arg(long, value_name = "ID", default_value = "default")]
    tenant: String,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ImportArguments {
    /// The file to import into. It is created if it does not exist.
    file: PathBuf,
    /// Another id for the conversation than the exported one.
    #[arg(long, value_name = "ID")]
    conversation: Option<String>,
    /// Another tenant for the conversation. One that was exported from another tenant than `default` needs it.
    #[arg(long, value_name = "ID", requires = "conversation")]
    tenant: Option<String>,
}

/// Prints the ids of a tenant's conversations, one per line, with control characters escaped.
pub(crate) async fn list(arguments: ListArguments, out: &mut impl Write) -> Result<(), Failure> {
    const PAGE: usize = 256;
    let store = existing(&arguments.file).await?;
    let mut page = Page::first(arguments.tenant.as_str(), PAGE);
    loop {
        let keys = store.list(&page).await.map_err(|error| unread(&arguments.file, error))?;
        for key in &keys {
            writeln!(out, "{}", escaped(key.conversation()))?;
        }
        match keys.into_iter().nth(PAGE - 1) {
            Some(last) => page.after = Some(last),
            None => break,
        }
    }
    store.close().await;
    Ok(())
}

/// Prints a conversation as JSON Lines.
pub(crate) async fn write_out(arguments: ExportArguments, out: &mut impl Write) -> Result<(), Failure> {
    let store = existing(&arguments.file).await?;
    let key = ConversationKey::in_tenant(&arguments.tenant, &arguments.conversation)?;
    let version = store.load(&key, ReadRange::LastEntries(0)).await;
    if version.map_err(|error| unread(&arguments.file, error))?.version.0 == 0 {
        let message = format!(
            "{}: there is no conversation `{}`; `advisor conversations` lists the existing ones",
            arguments.file.display(),
            escaped(key.conversation())
        );
        return Err(Error::new(ErrorKind::Store, message).into());
    }
    let mut lines = pin!(export(store.clone(), key));
    while let Some(line) = lines.try_next().await.map_err(|error| unread(&arguments.file, error))? {
        out.write_all(escaped_json(&line).as_bytes())?;
    }
    out.flush()?;
    store.close().await;
    Ok(())
}

/// Reads a conversation from standard input, as JSON Lines.
pub(crate) async fn read_in(arguments: ImportArguments, out: &mut impl Write) -> Result<(), Failure> {
    let renamed = match (&arguments.tenant, &arguments.conversation) {
        (Some(tenant), Some(conversation)) => Some(ConversationKey::in_tenant(tenant, conversation)?),
        (None, Some(conversation)) => Some(ConversationKey::new(conversation)?),
        _ => None,
    };
    let store = opened(&arguments.file).await?;
    let imported = import(&store, BufReader::new(tokio::io::stdin()), renamed).await;
    store.close().await;
    let imported = imported.map_err(|error| {
        let message = "the conversation was not imported, or not all of it";
        Error::new(ErrorKind::Store, message).with_source(error)
    })?;
    writeln!(out, "{}: {} entries", escaped(imported.key.conversation()), imported.entries)?;
    Ok(())
}

/// Opens the store in an existing file. Does not create the file.
async fn existing(file: &Path) -> Result<SqliteStore, Failure> {
    match std::fs::metadata(file) {
        Ok(_) => Ok(opened(file).await?),
        Err(source) => Err(Failure::Unreadable { file: file.display().to_string(), source }),
    }
}

/// Opens the store in a file, which is created if it does not exist.
pub(crate) async fn opened(file: &Path) -> Result<SqliteStore, Error> {
    SqliteStore::open(file).await.map_err(|error| {
        Error::configuration(format!("{}: the conversations in it cannot be used", file.display()))
            .with_source(error)
    })
}

fn unread(file: &Path, error: StoreError) -> Error {
    let message = format!("{}: the conversations in it cannot be read", file.display());
    Error::new(ErrorKind::Store, message).with_source(error)
}
