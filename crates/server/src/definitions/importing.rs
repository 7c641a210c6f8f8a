//! Imports and their dry runs: definitions are read, checked against the node, and applied or compared with it.

use std::collections::BTreeSet;
use std::path::Path;

use super::plan::{self, Plan};
use super::problems::Problems;
use super::{
    DefinitionsError, Document, Durable, ItemError, Scope, apply, lines, parts, preview, read,
    validate,
};
use crate::node::Node;
use crate::requests::{ImportItems, ImportPreview};

/// The result of an import.
#[derive(Debug)]
pub(crate) struct Imported {
    pub(crate) durable: Durable,
    /// The definitions of vhosts that other nodes lead, and have to import, by vhost.
    pub(crate) elsewhere: Vec<(String, Document)>,
    /// The items that are left out of the definitions.
    pub(crate) left_out: ImportItems,
}

/// Imports the definitions in the file at `path`. On a node of a cluster, the file is only checked: users and vhosts have
/// no leader yet, and [`import_in_cluster`] does the rest.
///
/// # Errors
/// [`DefinitionsError`], which names the items and their lines.
pub(crate) fn load(node: &Node, path: &Path) -> Result<(), DefinitionsError> {
    let (text, root) = read(path)?;
    let rules = ImportRules::default();
    let result = match node.metadata {
        None => import(node, &root, Scope::Node, &BTreeSet::new(), rules).map(drop),
        Some(_) => {
            let read = read_plan(node, &root, Scope::Node, rules);
            let unknown = node.vhosts.all().into_iter().filter(|handle| !handle.has_contents());
            let unknown = unknown.map(|handle| handle.name().to_owned()).collect();
            checked_plan(node, read, &unknown, rules).map(drop)
        }
    };
    result.map_err(|problems| {
        let problems = in_lines(&text, &problems);
        DefinitionsError::Items { path: path.to_owned(), problems }
    })
}

/// Problems with the lines of their items, to follow the name of the file.
fn in_lines(text: &[u8], problems: &Problems) -> String {
    let one = |error: &ItemError| {
        let line = lines::line_of(text, error.place);
        let line = line.map(|line| format!(", line {line}")).unwrap_or_default();
        format!("{line}: {error}")
    };
    let mut all: Vec<String> = problems.named().iter().map(one).collect();
    if problems.unnamed() > 0 {
        all.push(format!(" and {} more", problems.unnamed()));
    }
    all.join(";")
}

/// The rules of an import.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct ImportRules<'a> {
    /// The user who imports, and gets all permissions in vhosts that are new; nobody imports at the start of the node.
    pub(crate) importer: Option<&'a str>,
    /// True if items that need what Leveret does not have are left out; otherwise they are problems.
    pub(crate) skips_unsupported: bool,
}

/// Reads the definitions, with the problems of single items.
fn read_plan(
    node: &Node,
    root: &Document,
    scope: Scope<'_>,
    rules: ImportRules<'_>,
) -> (Plan, Problems) {
    let mut problems = Problems::default();
    let (users, skips) = (node.auth.to_change(), rules.skips_unsupported);
    let plan = plan::read(root, scope, &users, skips, &mut problems);
    (plan, problems)
}

/// Checks a plan against the node; other nodes have checked the contents of the vhosts in `checked`.
fn checked_plan(
    node: &Node,
    (mut plan, mut problems): (Plan, Problems),
    checked: &BTreeSet<String>,
    rules: ImportRules<'_>,
) -> Result<Plan, Problems> {
    plan.grant_to_importer(node, rules.importer);
    validate::validate(node, &mut plan, checked, rules.skips_unsupported, &mut problems);
    problems.none().map(|()| plan)
}

/// Imports all definitions or none; other nodes have checked the contents of the vhosts in `checked`. Hashes passwords and
/// writes files, so it may take seconds.
///
/// # Errors
/// [`Problems`], which name the invalid items. Nothing has changed then, unless the disk refused a write.
pub(crate) fn import(
    node: &Node,
    root: &Document,
    scope: Scope<'_>,
    checked: &BTreeSet<String>,
    rules: ImportRules<'_>,
) -> Result<Imported, Problems> {
    let read = read_plan(node, root, scope, rules);
    // Imports run one after the other, so that each is validated against the result of the previous one.
    let _turn = node.importing.lock();
    let plan = checked_plan(node, read, checked, rules)?;
    let (durable, elsewhere, left_out) = apply::apply(node, plan)?;
    let part = |vhost: String| {
        let part = parts::part_of_vhost(root, &vhost);
        (vhost, part)
    };
    let elsewhere = elsewhere.into_iter().map(part).collect();
    Ok(Imported { durable, elsewhere, left_out })
}

/// Computes the changes that an import would make, but for the contents of the vhosts `elsewhere`, and makes none. Takes as
/// long as an import.
///
/// # Errors
/// The error of the import.
pub(crate) fn dry_run(
    node: &Node,
    root: &Document,
    scope: Scope<'_>,
    elsewhere: &BTreeSet<String>,
    rules: ImportRules<'_>,
) -> Result<ImportPreview, Problems> {
    let read = read_plan(node, root, scope, rules);
    let _turn = node.importing.lock();
    let mut plan = checked_plan(node, read, elsewhere, rules)?;
    plan.retain_vhosts(&|vhost| !elsewhere.contains(vhost));
    Ok(preview::preview(node, plan)?)
}
