//! A list put together from the parts of all nodes, each of which is in the order of the query.

use std::cmp::Ordering;

use serde_json::Value;

use crate::api::list_query::Query;
use crate::api::list_query::columns::{at, compare};
use crate::api::list_query::rows::{List, PartCounts};
use crate::http::answer::ApiError;

/// Fields that parts are put together by.
const OF_PLACE: [&str; 3] = ["vhost", "name", "node"];

/// The place of a row in a list of all nodes.
#[derive(Debug)]
pub(crate) struct Place {
    /// The value to sort by, if the query has one.
    key: Option<Value>,
    names: [Option<String>; 3],
}

impl Query {
    /// The place of a row.
    pub(crate) fn place(&self, row: &Value) -> Place {
        let text = |name| row.get(name).and_then(Value::as_str).map(str::to_owned);
        let key = self.sort.as_ref().and_then(|path| at(row, path).cloned());
        Place { key, names: OF_PLACE.map(text) }
    }

    /// The order of two rows.
    pub(crate) fn order_of(&self, a: &Place, b: &Place) -> Ordering {
        let order = compare(a.key.as_ref(), b.key.as_ref()).then_with(|| a.names.cmp(&b.names));
        if self.sort_reverse { order.reverse() } else { order }
    }

    /// The columns to ask for in parts: those of the list, and those that the parts are put together by.
    pub(crate) fn columns_of_parts(&self) -> Option<Vec<&str>> {
        let columns = self.columns.as_ref()?.iter().map(String::as_str);
        Some(columns.chain(OF_PLACE).chain(self.sort.as_deref()).collect())
    }

    /// A part of a node that knows only whole lists: as the query has it.
    pub(crate) fn part_of_items(
        &self,
        mut items: Vec<Value>,
        paths: &[&str],
    ) -> (Vec<Value>, PartCounts) {
        let total = items.len();
        if let Some(page) = &self.page {
            items.retain(|item| page.filter.finds(item, paths));
        }
        let placed = items.into_iter().map(|item| (self.place(&item), item));
        let mut placed: Vec<(Place, Value)> = placed.collect();
        placed.sort_by(|(a, _), (b, _)| self.order_of(a, b));
        let items: Vec<Value> = placed.into_iter().map(|(_, item)| item).collect();
        let filtered = items.len();
        (items, PartCounts { filtered, total })
    }

    /// The numbers of the first row of the page and of the first behind it; none for a list without pages.
    pub(crate) fn rows_of_page(&self) -> Option<(usize, usize)> {
        self.page.as_ref().map(|page| (page.start(), page.end()))
    }

    /// A page of the rows of all nodes.
    ///
    /// # Errors
    /// [`ApiError`] if the page is behind the end of the list.
    pub(crate) fn merged_page(
        &self,
        rows: Vec<Value>,
        counts: PartCounts,
    ) -> Result<List, ApiError> {
        let Some(page) = &self.page else { return Ok(List::Page(Value::Array(rows))) };
        page.check(counts.filtered)?;
        Ok(self.page_of(page, rows, counts.filtered, counts.total))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn parts_of_nodes_that_know_whole_lists_are_filtered_and_ordered() {
        let query = Query::parse("page=1&page_size=2&name=a&sort=n&sort_reverse=true").unwrap();
        let item = |name: &str, n: u32| json!({"name": name, "vhost": "v", "n": n});
        let items = vec![item("a1", 1), item("b", 9), item("a2", 3), item("a0", 3)];
        let (rows, counts) = query.part_of_items(items, &["name"]);
        let names: Vec<&str> = rows.iter().map(|row| row["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["a2", "a0", "a1"]);
        assert_eq!(counts, PartCounts { filtered: 3, total: 4 });
        assert_eq!(query.rows_of_page(), Some((0, 2)));
        let columns = Query::parse("columns=x&sort=n").unwrap();
        assert_eq!(columns.columns_of_parts().unwrap(), ["x", "vhost", "name", "node", "n"]);
    }
}
