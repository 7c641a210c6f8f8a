//! A page of a list, and the filter of names.

use axum::http::StatusCode;
use broker::Pattern;
use broker::limits::PATTERN_BYTES_MAX;
use serde_json::{Map, Value, json};

use crate::api::list_query::columns::at;
use crate::api::rates::object;
use crate::http::answer::ApiError;
use crate::limits::{PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX};

/// A page of a list.
#[derive(Debug)]
pub(super) struct Page {
    number: u64,
    size: u64,
    pub(super) filter: Filter,
}

/// A filter of names.
#[derive(Debug)]
pub(super) enum Filter {
    All,
    None,
    /// Lower-case text in the name.
    Containing(String),
    Matching(Pattern),
}

fn bad_page(reason: impl Into<Value>) -> ApiError {
    ApiError::new(StatusCode::BAD_REQUEST, "invalid_pagination_parameters", reason)
}

impl Page {
    /// Checks the parameters of a page.
    pub(super) fn new(
        number: i64,
        size: Option<i64>,
        filter: impl FnOnce() -> Result<Filter, ApiError>,
    ) -> Result<Self, ApiError> {
        let positive = |value: i64| u64::try_from(value).ok().filter(|value| *value > 0);
        let wanted_size = size.map_or(Some(PAGE_SIZE_DEFAULT), positive);
        match (positive(number), wanted_size.filter(|size| *size <= PAGE_SIZE_MAX)) {
            (Some(number), Some(size)) => Ok(Self { number, size, filter: filter()? }),
            _ => {
                let size = size.map_or_else(|| "undefined".to_owned(), |size| size.to_string());
                let what = format!("page number {number}, page size {size}");
                Err(bad_page(format!("Invalid pagination parameters: {what}")))
            }
        }
    }

    /// The position of the page.
    pub(super) fn position(
        &self,
        item_count: usize,
        filtered_count: usize,
        total_count: usize,
    ) -> Map<String, Value> {
        let position = json!({
            "filtered_count": filtered_count,
            "item_count": item_count,
            "page": self.number,
            "page_count": self.count(filtered_count),
            "page_size": self.size,
            "total_count": total_count,
        });
        object(position)
    }

    fn count(&self, items: usize) -> u64 {
        (items as u64).div_ceil(self.size)
    }

    /// The items of the page. The first page exists even if it is empty.
    pub(super) fn cut<T>(&self, items: Vec<T>) -> Result<impl Iterator<Item = T>, ApiError> {
        let len = items.len();
        self.cut_of(items, len)
    }

    /// The items of the page, of `len` items, of which those behind the page may be missing.
    pub(super) fn cut_of<T>(
        &self,
        items: Vec<T>,
        len: usize,
    ) -> Result<impl Iterator<Item = T>, ApiError> {
        self.check(len)?;
        Ok(items.into_iter().skip(self.start()).take(as_count(self.size)))
    }

    /// Refuses a page behind the end of a list of this length.
    pub(super) fn check(&self, len: usize) -> Result<(), ApiError> {
        let Self { number, size, .. } = self;
        if *number > self.count(len).max(1) {
            let reason = format!("Page out of range, page: {number} page size: {size}, len: {len}");
            return Err(ApiError::new(StatusCode::BAD_REQUEST, "page_out_of_range", reason));
        }
        Ok(())
    }

    /// Number of the items of all pages before.
    pub(super) fn start(&self) -> usize {
        as_count((self.number - 1).saturating_mul(self.size))
    }

    /// Number of the items of this page and all before.
    pub(super) fn end(&self) -> usize {
        as_count(self.number.saturating_mul(self.size))
    }
}

/// A count that a list can have.
pub(crate) fn as_count(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

impl Filter {
    /// A filter for names that contain `name`, or match it as a pattern.
    pub(super) fn new(name: &str, is_pattern: bool) -> Result<Self, ApiError> {
        if name.is_empty() {
            return Ok(Self::All);
        }
        if !is_pattern {
            return Ok(Self::Containing(name.to_lowercase()));
        }
        if name.len() > PATTERN_BYTES_MAX {
            return Err(bad_page("name filter regex is too long"));
        }
        Ok(Pattern::filter(name).map_or(Self::None, Self::Matching))
    }

    /// True if the filter matches everything.
    fn is_all(&self) -> bool {
        matches!(self, Self::All)
    }

    /// True if the filter matches a text at one of the paths.
    pub(super) fn finds(&self, item: &Value, paths: &[&str]) -> bool {
        let mut texts = paths.iter().filter_map(|path| at(item, path)?.as_str());
        self.is_all() || texts.any(|text| self.matches(text))
    }

    /// True if the filter matches the name.
    pub(super) fn matches(&self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::None => false,
            Self::Containing(part) => name.to_lowercase().contains(part),
            Self::Matching(pattern) => pattern.matches(name),
        }
    }
}
