//! The queries of requests for scheduled messages.

use std::fmt;
use std::str::FromStr;

use broker::{ScheduleId, ScheduledCursor};
use server::requests::ScheduleQuery;

use crate::http::answer::ApiError;

/// The parameters of a query. Unknown ones are refused: a misspelt filter must not select more messages than intended.
#[derive(Debug)]
pub(super) struct Parameters(Vec<(String, String)>);

impl Parameters {
    /// Reads the filters of scheduled messages and `others` from a query.
    pub(super) fn parse(query: &str, others: &[&str]) -> Result<Self, ApiError> {
        let pairs = form_urlencoded::parse(query.as_bytes()).into_owned();
        let pairs: Vec<(String, String)> = pairs.collect();
        let known = || FILTERS.iter().chain(others);
        match pairs.iter().find(|(name, _)| !known().any(|known| known == name)) {
            None => Ok(Self(pairs)),
            Some((name, _)) => {
                let known: Vec<&str> = known().copied().collect();
                let reason = format!("{name} is not known; known are {}", known.join(", "));
                Err(ApiError::bad_request(reason))
            }
        }
    }

    /// The value of a parameter; none if it is missing or empty.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(known, value)| known == name && !value.is_empty());
        found.map(|(_, value)| value.as_str())
    }

    /// A whole number.
    pub(super) fn number(&self, name: &str) -> Result<Option<u64>, ApiError> {
        let number = |text: &str| {
            let reason = || format!("{name} must be a whole number, not less than 0");
            text.parse().map_err(|_| ApiError::bad_request(reason()))
        };
        self.get(name).map(number).transpose()
    }

    /// A whole number from 1 to `max`.
    pub(super) fn count(&self, name: &str, default: usize, max: usize) -> Result<usize, ApiError> {
        let Some(count) = self.number(name)? else { return Ok(default) };
        let count = usize::try_from(count).ok().filter(|count| (1..=max).contains(count));
        count.ok_or_else(|| ApiError::bad_request(format!("{name} must be from 1 to {max}")))
    }

    /// The filters.
    pub(super) fn filters(&self) -> Result<ScheduleQuery, ApiError> {
        let target = self.get("target").map(str::parse).transpose();
        let target = target
            .map_err(|_| ApiError::bad_request("target must be queue/NAME or exchange/NAME"))?;
        let id = self.get("id").map(|id| {
            let reason = "id must have 1 to 255 bytes";
            ScheduleId::new(id).ok_or_else(|| ApiError::bad_request(reason))
        });
        let (after_ms, before_ms) = (self.number("after")?, self.number("before")?);
        Ok(ScheduleQuery { target, id: id.transpose()?, after_ms, before_ms })
    }

    /// The position from which a list continues.
    pub(super) fn cursor(&self) -> Result<Option<Cursor>, ApiError> {
        self.get("cursor").map(str::parse).transpose()
    }
}

/// The filters of all requests.
const FILTERS: [&str; 4] = ["target", "id", "after", "before"];

/// A position in a list of the scheduled messages of vhosts, which are ordered by delivery time, then by vhost.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Cursor {
    pub(super) vhost: String,
    pub(super) place: ScheduledCursor,
}

impl Cursor {
    /// The position in the list of one vhost.
    pub(super) fn within(&self, vhost: &str) -> ScheduledCursor {
        let at = self.place.ready_at();
        match vhost.cmp(&self.vhost) {
            std::cmp::Ordering::Less => ScheduledCursor::behind(at),
            std::cmp::Ordering::Equal => self.place,
            std::cmp::Ordering::Greater => ScheduledCursor::behind(at.just_before()),
        }
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}_", self.place)?;
        self.vhost.bytes().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for Cursor {
    type Err = ApiError;

    fn from_str(text: &str) -> Result<Self, ApiError> {
        let read = || {
            let (place, vhost) = text.split_once('_')?;
            let digit = |digit: &u8| char::from(*digit).to_digit(16);
            let byte = |pair: &[u8]| match pair {
                [high, low] => u8::try_from(digit(high)? * 16 + digit(low)?).ok(),
                _ => None,
            };
            let digits = vhost.as_bytes().chunks(2).map(byte);
            let vhost = String::from_utf8(digits.collect::<Option<Vec<u8>>>()?).ok()?;
            Some(Self { vhost, place: place.parse().ok()? })
        };
        read().ok_or_else(|| ApiError::bad_request("the cursor is none that was given"))
    }
}

#[cfg(test)]
mod tests {
    use broker::ScheduleTarget;
    use broker::time::Time;

    use super::*;

    fn filters(query: &str) -> Result<ScheduleQuery, ApiError> {
        Parameters::parse(query, &["limit"])?.filters()
    }

    #[test]
    fn schedule_query_is_parsed() {
        assert_eq!(filters("limit=5&id=&target="), Ok(ScheduleQuery::default()));
        let expected = ScheduleQuery {
            target: Some(ScheduleTarget::Queue("a/b".into())),
            id: ScheduleId::new("ä"),
            after_ms: Some(0),
            before_ms: Some(u64::MAX),
        };
        let query = "target=queue%2Fa/b&id=%C3%A4&after=0&before=18446744073709551615";
        assert_eq!(filters(query), Ok(expected));
    }

    #[test]
    fn schedule_query_refuses_invalid_values() {
        let long = format!("id={}", "x".repeat(256));
        for (query, reason) in [
            ("targets=queue/q", "targets is not known; known are target, id, after, before, limit"),
            ("target=q", "target must be queue/NAME or exchange/NAME"),
            ("target=topic/q", "target must be queue/NAME or exchange/NAME"),
            (&long, "id must have 1 to 255 bytes"),
            ("after=-1", "after must be a whole number, not less than 0"),
            ("before=soon", "before must be a whole number, not less than 0"),
        ] {
            assert_eq!(filters(query).unwrap_err().reason(), reason, "{query}");
        }
        let limit = |query| Parameters::parse(query, &["limit"])?.count("limit", 7, 500);
        assert_eq!((limit(""), limit("limit=500")), (Ok(7), Ok(500)));
        for query in ["limit=0", "limit=501", "limit=99999999999999999999"] {
            assert!(limit(query).is_err(), "{query}");
        }
    }

    #[test]
    fn cursor_orders_by_time_then_by_vhost() {
        let place = "10.2.3".parse().unwrap();
        let cursor = Cursor { vhost: "m/ü".to_owned(), place };
        assert_eq!(cursor.to_string().parse(), Ok(cursor.clone()));
        assert_eq!(cursor.within("m/ü"), place);
        assert_eq!(cursor.within("a"), ScheduledCursor::behind(Time::from_micros(16)));
        assert_eq!(cursor.within("z"), ScheduledCursor::behind(Time::from_micros(15)));
        for text in ["", "10.2.3", "10.2_61", "10.2.3_6", "10.2.3_ff", "10.2.3_+1"] {
            assert!(text.parse::<Cursor>().is_err(), "{text}");
        }
    }
}
