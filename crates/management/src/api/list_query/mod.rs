//! The query of a list: filter, order, page, columns, and ranges of time.
//!
//! As in RabbitMQ, a filter applies to pages only, names are compared without regard to case, and an invalid
//! pattern matches nothing. `Pattern::filter` bounds the work of a pattern per name.

mod columns;
mod merge;
mod page;
mod rows;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use serde_json::{Map, Value, json};
use server::history::{TimeRange, TimeRanges};

pub(crate) use crate::api::list_query::merge::Place;
pub(crate) use crate::api::list_query::page::as_count;
pub(crate) use crate::api::list_query::rows::{List, PART, PartCounts};

use crate::api::list_query::columns::{at, compare, selected};
use crate::api::list_query::page::{Filter, Page};
use crate::api::list_query::rows::Rows;
use crate::api::row::Part;
use crate::http::allowance::Allowance;
use crate::http::answer::ApiError;
use crate::http::forward::PartOfList;
use crate::http::listed::Listed;
use crate::limits::{AGE_S_MAX, LIST_KEYS_AT_ONCE, MOMENTS_MAX};

/// The decoded query of a list.
#[derive(Default, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a parameter of its own")]
pub(crate) struct Query {
    page: Option<Page>,
    sort: Option<String>,
    sort_reverse: bool,
    columns: Option<Vec<String>>,
    /// Leaves out statistics.
    pub(crate) disable_stats: bool,
    /// Keeps the numbers of messages although statistics are left out.
    pub(crate) enable_queue_totals: bool,
    /// Adds the memory by use.
    pub(crate) with_memory: bool,
    /// Ranges of time of the samples.
    pub(crate) ranges: TimeRanges,
    /// The memory that the answer takes.
    allowance: Allowance,
    /// True if the answer is the part of this node in a list of all nodes.
    is_part: bool,
}

/// DeleteConditions on a deletion.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeleteConditions {
    /// Delete only if unused.
    pub(crate) if_unused: bool,
    /// Delete only if empty.
    pub(crate) if_empty: bool,
}

impl<S: Sync> FromRequestParts<S> for DeleteConditions {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let query = parts.uri.query().unwrap_or_default();
        let is_set = |wanted: &str| {
            let pairs = form_urlencoded::parse(query.as_bytes());
            pairs.into_iter().any(|(name, value)| name == wanted && value == "true")
        };
        Ok(Self { if_unused: is_set("if-unused"), if_empty: is_set("if-empty") })
    }
}

impl<S: Sync> FromRequestParts<S> for Query {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let part = parts.extensions.get::<PartOfList>();
        let asked = part
            .map(|PartOfList(query)| &**query)
            .or_else(|| parts.uri.query())
            .unwrap_or_default();
        let query = Self::parse(asked)?;
        let allowance = Allowance::of(&parts.extensions);
        Ok(Self { allowance, is_part: part.is_some(), ..query })
    }
}

/// A query of a list that always has pages: the first by default.
#[derive(Debug)]
pub(crate) struct PagedQuery(pub(crate) Query);

impl<S: Sync> FromRequestParts<S> for PagedQuery {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        Self::parse(parts.uri.query().unwrap_or_default())
    }
}

impl PagedQuery {
    /// Reads the query of a URI.
    ///
    /// # Errors
    /// [`ApiError`] for a parameter that is out of its range.
    pub(crate) fn parse(query: &str) -> Result<Self, ApiError> {
        let has_page = form_urlencoded::parse(query.as_bytes()).any(|(name, _)| name == "page");
        let first = if has_page { "" } else { "page=1&" };
        Query::parse(&format!("{first}{query}")).map(Self)
    }
}

impl Query {
    /// Reads the query of a URI.
    ///
    /// # Errors
    /// [`ApiError`] for a parameter that is out of its range.
    pub(crate) fn parse(query: &str) -> Result<Self, ApiError> {
        let find = |wanted: &str| {
            let mut pairs = form_urlencoded::parse(query.as_bytes());
            pairs.find(|(name, _)| name == wanted).map(|(_, value)| value.into_owned())
        };
        let is_true = |name| find(name).is_some_and(|value| value == "true");
        let number = |name| match find(name).map(|value| value.parse::<i64>()) {
            Some(Err(_)) => Err(ApiError::bad_request("Pagination parameters are invalid")),
            found => Ok(found.and_then(Result::ok)),
        };
        let (page, size) = (number("page")?, number("page_size")?);
        let filter = || Filter::new(&find("name").unwrap_or_default(), is_true("use_regex"));
        Ok(Self {
            page: page.map(|page| Page::new(page, size, filter)).transpose()?,
            sort: find("sort").filter(|path| !path.is_empty()),
            sort_reverse: is_true("sort_reverse"),
            columns: find("columns").map(|names| names.split(',').map(str::to_owned).collect()),
            disable_stats: is_true("disable_stats"),
            enable_queue_totals: is_true("enable_queue_totals"),
            with_memory: is_true("memory"),
            ranges: TimeRanges {
                lengths: time_range(&find, "lengths")?,
                messages: time_range(&find, "msg_rates")?,
                data: time_range(&find, "data_rates")?,
                node: time_range(&find, "node_stats")?,
            },
            allowance: Allowance::default(),
            is_part: false,
        })
    }

    /// The query without its page, for a list that is always complete.
    pub(crate) fn unpaged(self) -> Self {
        Self { page: None, ..self }
    }

    /// Answers with a list of things, whose rows `show` makes while the list is sent; null for a thing that is gone. On
    /// pages, those that `is_wanted` selects are listed, and only the rows of the page are made whole; of the others, `show`
    /// makes the field to sort by.
    pub(crate) fn answer_lazily<T: Listed>(
        &self,
        things: Vec<T>,
        is_wanted: impl Fn(&T) -> bool,
        show: impl Fn(&[T], Part<'_>) -> Vec<Value> + Send + 'static,
    ) -> Result<List, ApiError> {
        self.allowance.hold(things.iter().map(Listed::bytes).sum())?;
        if self.is_part {
            let total_count = things.len();
            let (things, filtered_count) = self.part_of(things, is_wanted, &show)?;
            let rows = self.rows(things, move |some| show(some, Part::Whole));
            return Ok(List::Rows(rows.into_part(filtered_count, total_count)));
        }
        if let Some(page) = &self.page {
            return self.answer_page(page, things, is_wanted, show);
        }
        let things = self.in_order(things, &show)?;
        Ok(List::Rows(self.rows(things, move |some| show(some, Part::Whole))))
    }

    /// Rows of things, which are made while they are sent.
    fn rows<T: Send + 'static>(
        &self,
        things: Vec<T>,
        show: impl Fn(&[T]) -> Vec<Value> + Send + 'static,
    ) -> Rows {
        let mut things = things.into_iter();
        Rows::new(self.columns.clone(), move |count| {
            let some: Vec<T> = things.by_ref().take(count).collect();
            (!some.is_empty()).then(|| show(&some))
        })
    }

    /// The wanted things in order, those of the page and of all before, and the number of wanted ones.
    fn part_of<T>(
        &self,
        mut things: Vec<T>,
        is_wanted: impl Fn(&T) -> bool,
        show: &impl Fn(&[T], Part<'_>) -> Vec<Value>,
    ) -> Result<(Vec<T>, usize), ApiError> {
        if self.page.is_some() {
            things.retain(is_wanted);
        }
        let filtered_count = things.len();
        let mut things = self.in_order(things, show)?;
        if let Some(page) = &self.page {
            things.truncate(page.end());
        }
        Ok((things, filtered_count))
    }

    /// The same for things that are borrowed: a list without pages is made as a whole.
    pub(crate) fn answer_borrowed<T>(
        &self,
        things: Vec<T>,
        is_wanted: impl Fn(&T) -> bool,
        show: impl Fn(&[T], Part<'_>) -> Vec<Value>,
    ) -> Result<List, ApiError> {
        match &self.page {
            Some(page) if !self.is_part => self.answer_page(page, things, is_wanted, show),
            _ => self.answer(show(&things, Part::Whole)),
        }
    }

    fn answer_page<T>(
        &self,
        page: &Page,
        mut things: Vec<T>,
        is_wanted: impl Fn(&T) -> bool,
        show: impl Fn(&[T], Part<'_>) -> Vec<Value>,
    ) -> Result<List, ApiError> {
        let total_count = things.len();
        things.retain(is_wanted);
        let filtered_count = things.len();
        let things = self.in_order(things, &show)?;
        let things: Vec<T> = page.cut(things)?.collect();
        let mut items = show(&things, Part::Whole);
        items.retain(|item| !item.is_null());
        Ok(self.page_of(page, items, filtered_count, total_count))
    }

    /// The things in the order of the query.
    fn in_order<T>(
        &self,
        mut things: Vec<T>,
        show: &impl Fn(&[T], Part<'_>) -> Vec<Value>,
    ) -> Result<Vec<T>, ApiError> {
        if let Some(path) = &self.sort {
            self.allowance.hold(things.len() * size_of::<(Option<Value>, T)>())?;
            let mut keys = Vec::with_capacity(things.len());
            for some in things.chunks(LIST_KEYS_AT_ONCE) {
                let rows = show(some, Part::At(path));
                keys.extend(rows.iter().map(|row| at(row, path).cloned()));
            }
            let mut keyed: Vec<(Option<Value>, T)> = keys.into_iter().zip(things).collect();
            keyed.sort_by(|(a, _), (b, _)| compare(a.as_ref(), b.as_ref()));
            things = keyed.into_iter().map(|(_, one)| one).collect();
        }
        if self.sort_reverse {
            things.reverse();
        }
        Ok(things)
    }

    /// True if the filter matches the name.
    pub(crate) fn matches_name(&self, name: &str) -> bool {
        self.page.as_ref().is_none_or(|page| page.filter.matches(name))
    }

    /// The page of filtered items, and its position. `total_count` is the number before the filter.
    pub(crate) fn cut<T>(
        &self,
        things: Vec<T>,
        total_count: usize,
    ) -> Result<(Vec<T>, Map<String, Value>), ApiError> {
        let filtered_count = things.len();
        self.cut_of(things, filtered_count, total_count)
    }

    /// The page of `filtered_count` items, of which those behind the page may be missing, and its position.
    pub(crate) fn cut_of<T>(
        &self,
        things: Vec<T>,
        filtered_count: usize,
        total_count: usize,
    ) -> Result<(Vec<T>, Map<String, Value>), ApiError> {
        let Some(page) = &self.page else {
            return Ok((things, Map::new()));
        };
        let things: Vec<T> = page.cut_of(things, filtered_count)?.collect();
        let position = page.position(things.len(), filtered_count, total_count);
        Ok((things, position))
    }

    /// The items of the page and of all before, and the number of items: what a node adds to a page of all nodes.
    pub(crate) fn part<T>(&self, mut things: Vec<T>) -> (Vec<T>, Map<String, Value>) {
        let filtered_count = things.len();
        if let Some(page) = &self.page {
            things.truncate(page.end());
        }
        (things, Map::from_iter([("filtered_count".to_owned(), json!(filtered_count))]))
    }

    /// Orders things by a field of their JSON if the query has a field to sort by.
    pub(crate) fn order_by_json<T>(&self, things: Vec<T>, json: impl Fn(&T) -> Value) -> Vec<T> {
        let Some(path) = &self.sort else { return things };
        let mut things: Vec<(Option<Value>, T)> =
            things.into_iter().map(|one| (at(&json(&one), path).cloned(), one)).collect();
        things.sort_by(|(a, _), (b, _)| compare(a.as_ref(), b.as_ref()));
        if self.sort_reverse {
            things.reverse();
        }
        things.into_iter().map(|(_, one)| one).collect()
    }

    fn order(&self, items: &mut [Value]) {
        if let Some(path) = &self.sort {
            items.sort_by(|a, b| compare(at(a, path), at(b, path)));
        }
        if self.sort_reverse {
            items.reverse();
        }
    }

    /// Answers with a list. `items` have names and are in order.
    pub(crate) fn answer(&self, items: Vec<Value>) -> Result<List, ApiError> {
        self.answer_found_by(items, &["name"])
    }

    /// Answers with a list. `items` are in order; the filter looks for the name in the texts at `paths`.
    pub(crate) fn answer_found_by(
        &self,
        mut items: Vec<Value>,
        paths: &[&str],
    ) -> Result<List, ApiError> {
        let total_count = items.len();
        if let Some(page) = &self.page {
            items.retain(|item| page.filter.finds(item, paths));
        }
        self.order(&mut items);
        let filtered_count = items.len();
        if self.is_part {
            items.truncate(self.page.as_ref().map_or(usize::MAX, Page::end));
            let rows = self.rows(items, <[Value]>::to_vec);
            return Ok(List::Rows(rows.into_part(filtered_count, total_count)));
        }
        let Some(page) = &self.page else {
            return Ok(List::Rows(self.rows(items, <[Value]>::to_vec)));
        };
        let items = page.cut(items)?.collect();
        Ok(self.page_of(page, items, filtered_count, total_count))
    }

    /// A page of items with its position.
    fn page_of(
        &self,
        page: &Page,
        items: Vec<Value>,
        filtered_count: usize,
        total_count: usize,
    ) -> List {
        let mut json = page.position(items.len(), filtered_count, total_count);
        let items = items.into_iter().map(|item| self.select_columns(item)).collect();
        // RabbitMQ's order of fields.
        json.shift_insert(2, "items".to_owned(), items);
        List::Page(Value::Object(json))
    }

    /// The requested columns of an item.
    pub(crate) fn select_columns(&self, item: Value) -> Value {
        selected(item, self.columns.as_deref())
    }
}

/// The range of time in `_age` and `_incr`, in seconds.
fn time_range(
    find: &impl Fn(&str) -> Option<String>,
    of: &str,
) -> Result<Option<TimeRange>, ApiError> {
    let (age, step) = (find(&format!("{of}_age")), find(&format!("{of}_incr")));
    let (Some(age), Some(step)) = (age, step) else {
        return Ok(None);
    };
    // As in RabbitMQ, values that are no numbers are ignored.
    if !is_integer(&age) || !is_integer(&step) {
        return Ok(None);
    }
    let seconds = |text: &str| text.parse::<u64>().ok().filter(|s| (1..=AGE_S_MAX).contains(s));
    match seconds(&age).zip(seconds(&step)) {
        Some((age_s, step_s)) if age_s / step_s <= MOMENTS_MAX => {
            Ok(Some(TimeRange { age_ms: age_s * 1000, step_ms: step_s * 1000 }))
        }
        _ => {
            let reason = format!("Invalid range parameters: age {age}, incr {step}");
            Err(ApiError::bad_request(reason))
        }
    }
}

fn is_integer(text: &str) -> bool {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use broker::limits::PATTERN_BYTES_MAX;

    use super::*;
    use crate::api::row::Row;
    use crate::limits::PAGE_SIZE_MAX;

    fn answer(query: &str, items: Vec<Value>) -> Value {
        Query::parse(query).and_then(|query| query.answer(items)).expect("a list").into_json()
    }

    fn named(names: &[&str]) -> Vec<Value> {
        names.iter().map(|name| json!({"name": name})).collect()
    }

    #[test]
    fn page_is_cut_from_filtered_items() {
        let all = named(&["a1", "b", "A2", "a.3", "a4"]);
        let page = answer("page=2&page_size=3&name=A", all.clone());
        let expected = r#"{"filtered_count":4,"item_count":1,"items":[{"name":"a4"}],"page":2,"#;
        let rest = r#""page_count":2,"page_size":3,"total_count":5}"#;
        assert_eq!(page.to_string(), format!("{expected}{rest}"));
        let found = |query| answer(query, all.clone())["filtered_count"].clone();
        assert_eq!(
            (found("page=1&name=a."), found("page=1&name=a.&use_regex=true")),
            (json!(1), json!(4))
        );
        assert_eq!(found("page=1&name=%28&use_regex=true"), json!(0));
        assert_eq!(answer("name=b", all.clone()), Value::Array(all));
    }

    #[test]
    fn page_formats_its_own_items_only() {
        let all: Vec<Value> = [("a1", 3), ("b", 9), ("a2", 3), ("a3", 1), ("a4", 7)]
            .map(|(name, n)| json!({"name": name, "n": n, "x": {"y": -n}}))
            .into();
        let whole = Cell::new(0);
        let page = |query: &str| {
            let query = Query::parse(query).unwrap();
            let is_wanted = |one: &Value| query.matches_name(one["name"].as_str().unwrap());
            let answer = query.answer_borrowed(all.clone(), is_wanted, |items, part| {
                whole.set(whole.get() + if part == Part::Whole { items.len() } else { 0 });
                let show = |item: &Value| {
                    let mut row = Row::new(part);
                    row.put("name", || item["name"].clone());
                    row.put("n", || item["n"].clone());
                    row.put_object("x", |x| x.put("y", || item["x"]["y"].clone()));
                    row.into_json()
                };
                items.iter().map(show).collect()
            });
            answer.unwrap().into_json()
        };
        for (query, formatted) in [
            ("page=2&page_size=2&name=a", 2),
            ("page=1&page_size=3&sort_reverse=true", 3),
            ("page=1&page_size=1&sort=name", 1),
            ("page=2&page_size=2&sort=name&sort_reverse=true", 2),
            ("page=1&page_size=2&sort=n", 2),
            ("page=2&page_size=2&sort=n&sort_reverse=true", 2),
            ("page=1&page_size=3&sort=x.y&name=a", 3),
            ("page=2&page_size=4&sort=nope", 1),
        ] {
            whole.set(0);
            assert_eq!(page(query), answer(query, all.clone()), "{query}");
            assert_eq!(whole.get(), formatted, "{query}");
        }
    }

    #[test]
    fn page_is_cut_from_items_filtered_elsewhere() {
        let query = Query::parse("page=2&page_size=2&name=a").unwrap();
        let (page, place) = query.cut(vec![1, 2, 3], 5).unwrap();
        assert_eq!((page, place["page_count"].clone()), (vec![3], json!(2)));
        assert_eq!((&place["filtered_count"], &place["total_count"]), (&json!(3), &json!(5)));
        assert!(query.cut(vec![1], 5).is_err());
        assert!(query.matches_name("BAR") && !query.matches_name("b"));
        assert!(
            Query::parse("name=a").unwrap().matches_name("b"),
            "without a page there is no filter"
        );
    }

    #[test]
    fn filter_looks_into_the_given_texts() {
        let items = || {
            vec![
                json!({"user": "ada", "of": {"vhost": "shop"}}),
                json!({"user": "eve", "of": {"vhost": 1}}),
                json!({"user": "joe"}),
            ]
        };
        let found = |query: &str| {
            let query = Query::parse(query).unwrap();
            query.answer_found_by(items(), &["user", "of.vhost"]).unwrap().into_json()
        };
        assert_eq!(found("page=1")["filtered_count"], json!(3));
        assert_eq!(found("page=1&name=SHO")["items"][0]["user"], json!("ada"));
        assert_eq!(found("page=1&name=%5Ej&use_regex=true")["items"][0]["user"], json!("joe"));
        assert_eq!(found("page=1&name=1")["total_count"], json!(3));
        assert_eq!(found("page=1&name=1")["items"], json!([]));
        assert_eq!(found("name=ada").as_array().map(Vec::len), Some(3));
    }

    #[test]
    fn things_are_ordered_by_their_json() {
        let ordered = |query: &str| {
            let query = Query::parse(query).unwrap();
            query.order_by_json(vec![2, 3, 1], |n| json!({"n": n, "x": -n}))
        };
        assert_eq!(ordered("page=1&sort_reverse=true"), [2, 3, 1]);
        assert_eq!(ordered("sort=n"), [1, 2, 3]);
        assert_eq!(ordered("sort=x"), [3, 2, 1]);
        assert_eq!(ordered("sort=n&sort_reverse=true"), [3, 2, 1]);
    }

    #[test]
    fn pattern_length_is_limited() {
        let status =
            |bytes| Query::parse(&format!("page=1&use_regex=true&name={}", "a".repeat(bytes)));
        assert!(status(PATTERN_BYTES_MAX).is_ok());
        assert_eq!(
            status(PATTERN_BYTES_MAX + 1).unwrap_err().reason(),
            "name filter regex is too long"
        );
    }

    #[test]
    fn pattern_with_too_much_work_matches_nothing() {
        let all = named(&[&"a".repeat(40)]);
        let page = answer("page=1&use_regex=true&name=(a*)*\\1b", all);
        assert_eq!(page["filtered_count"], json!(0));
    }

    #[test]
    fn time_range_has_age_and_step() {
        let ranges = |query: &str| Query::parse(query).map(|query| query.ranges);
        let span = TimeRange { age_ms: 60_000, step_ms: 5000 };
        let expected = TimeRanges { messages: Some(span), ..TimeRanges::default() };
        assert_eq!(ranges("msg_rates_age=60&msg_rates_incr=5").unwrap(), expected);
        assert_eq!(ranges("msg_rates_age=60").unwrap(), TimeRanges::default());
        for nothing in ["x&lengths_age=60", "5&lengths_age=", "5&lengths_age=-"] {
            assert_eq!(ranges(&format!("lengths_incr={nothing}")).unwrap(), TimeRanges::default());
        }
        let most = format!("lengths_incr=2&lengths_age={}", 2 * MOMENTS_MAX + 1);
        assert!(ranges(&most).is_ok());
        for (step, age) in [("1", "501"), ("0", "60"), ("5", "-1"), ("9", "99999999999999999999")] {
            let error = ranges(&format!("lengths_incr={step}&lengths_age={age}")).unwrap_err();
            let expected = format!("Invalid range parameters: age {age}, incr {step}");
            assert_eq!(error.reason(), expected.as_str());
        }
    }

    #[test]
    fn page_out_of_range_is_refused() {
        for query in ["page=0", "page=-1", "page=1&page_size=0", "page=1&page_size=501", "page=x"] {
            assert!(Query::parse(query).is_err(), "{query}");
        }
        let last = i64::MAX;
        for query in [format!("page=2&page_size={PAGE_SIZE_MAX}"), format!("page={last}")] {
            assert!(Query::parse(&query).unwrap().answer(named(&["a"])).is_err(), "{query}");
        }
        assert_eq!(answer("page=1", Vec::new())["page_count"], json!(0));
    }

    #[test]
    fn sort_puts_missing_values_first_and_strings_last() {
        let item = |number: i32, value: Value| json!({"n": number, "a": {"b": value}});
        let items = vec![
            item(5, json!("x")),
            item(3, json!(10)),
            item(4, json!(null)),
            item(2, json!(-2.5)),
            json!({"n": 1}),
        ];
        let numbers = |query| {
            let list = answer(query, items.clone());
            let list = list.as_array().unwrap().iter().map(|item| item["n"].as_i64().unwrap());
            list.collect::<Vec<_>>()
        };
        assert_eq!(numbers("sort=a.b"), [1, 2, 3, 4, 5]);
        assert_eq!(numbers("sort=a.b&sort_reverse=true"), [5, 4, 3, 2, 1]);
        assert_eq!(numbers("sort_reverse=true"), [1, 2, 4, 3, 5]);
        assert_eq!(numbers("sort=nope"), [5, 3, 4, 2, 1]);
    }

    #[test]
    fn columns_lead_into_objects_and_lists_but_not_into_arguments() {
        let item = json!({
            "name": "q", "type": "classic", "arguments": {"a.b": 1, "c": 2},
            "stats": {"publish": 7, "ack": 1}, "consumers": [{"tag": "t", "x": 1}],
        });
        let query = "columns=name,arguments.c,stats.publish,consumers.tag,nope,stats.nope";
        let expected = json!({
            "name": "q", "arguments": {"a.b": 1, "c": 2}, "stats": {"publish": 7},
            "consumers": [{"tag": "t"}],
        });
        assert_eq!(answer(query, vec![item.clone()]), json!([expected]));
        assert_eq!(answer("columns=nope", vec![item.clone()]), json!([{}]));
        assert_eq!(
            answer("columns=stats,stats.ack", vec![item.clone()])[0]["stats"],
            item["stats"]
        );
    }
}
