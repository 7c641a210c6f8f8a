//! Links that take the place of open ones: the sign of two processes with the name of one node.
//!
//! A peer that has lost a link opens another one before this node has noticed, now and then. Two processes with copies of
//! one data directory do so again and again, each in turn.

use std::collections::VecDeque;

use crate::limits::{LINKS_REPLACED_INTERVAL, LINKS_REPLACED_MAX};

/// The last times at which a link took the place of an open one, in microseconds of the node's clock.
#[derive(Default, Debug)]
pub(crate) struct Replaced {
    at_us: VecDeque<u64>,
    /// True while it is often, and the operator was told.
    is_told: bool,
}

/// The judgement about a link that took the place of an open one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ReplacementRate {
    /// Links are replaced seldom.
    Seldom,
    /// Links are replaced too often, as the operator is to be told.
    TooOften,
    /// Links are replaced too often, as the operator was told.
    TooOftenReported,
}

impl Replaced {
    pub(in crate::cluster) fn note(&mut self, now_us: u64) -> ReplacementRate {
        if self.at_us.len() > LINKS_REPLACED_MAX {
            self.at_us.pop_front();
        }
        self.at_us.push_back(now_us);
        let is_often = self.is_often(now_us);
        let was_told = std::mem::replace(&mut self.is_told, is_often);
        match (is_often, was_told) {
            (false, _) => ReplacementRate::Seldom,
            (true, false) => ReplacementRate::TooOften,
            (true, true) => ReplacementRate::TooOftenReported,
        }
    }

    /// True if it happened more than [`LINKS_REPLACED_MAX`] times within [`LINKS_REPLACED_INTERVAL`].
    pub(super) fn is_often(&self, now_us: u64) -> bool {
        let interval_us = u64::try_from(LINKS_REPLACED_INTERVAL.as_micros()).unwrap_or(u64::MAX);
        self.at_us.len() > LINKS_REPLACED_MAX
            && self.at_us.front().is_some_and(|at| now_us.saturating_sub(*at) < interval_us)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_that_replace_each_other_often_are_told_once() {
        let (mut replaced, second_us) = (Replaced::default(), 1_000_000);
        let mut noted = Vec::new();
        for at in 0..=LINKS_REPLACED_MAX as u64 + 1 {
            noted.push(replaced.note(at * second_us));
        }
        let seldom = noted.iter().filter(|it| **it == ReplacementRate::Seldom).count();
        assert_eq!(seldom, LINKS_REPLACED_MAX);
        assert_eq!(noted[seldom..], [ReplacementRate::TooOften, ReplacementRate::TooOftenReported]);
        assert!(replaced.is_often(20 * second_us));
        assert!(!replaced.is_often(3600 * second_us));
        // Once a minute is no sign.
        for at in 100..200 {
            assert_eq!(replaced.note(at * 60 * second_us), ReplacementRate::Seldom);
        }
    }
}
