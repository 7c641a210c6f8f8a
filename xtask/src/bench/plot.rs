//! Bar charts on a logarithmic scale, as SVG.
//!
//! Drawn from rectangles and letters: groups of bars with names at their left are no chart of the
//! library's. They have a background of their own, for a page that is dark.

use anyhow::{Result, anyhow};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// Pixels: of the whole, of the names, of the space for the values behind bars.
const WIDTH: i32 = 860;
const NAMES: i32 = 150;
const VALUES: i32 = 90;

/// Pixels: of a bar with the space below it, of the space between groups, and of the top with its key.
const BAR: i32 = 13;
const GAP: i32 = 9;
const TOP: i32 = 58;

/// A subject has the same colour in every chart.
fn color(subject: &str) -> RGBColor {
    match subject {
        "Leveret" => RGBColor(37, 128, 230),
        "baseline" => RGBColor(150, 190, 235),
        "RabbitMQ" => RGBColor(232, 120, 23),
        _ => RGBColor(140, 140, 140),
    }
}

/// A group of bars.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) name: &'static str,
    /// One for each subject that has it, as a length and as what is written behind it.
    pub(super) bars: Vec<Option<(f64, String)>>,
}

/// The chart; `subjects` name the bars of every group in their order.
///
/// # Errors
/// When it cannot be drawn.
pub(super) fn bars(title: &str, subjects: &[&str], groups: &[Group]) -> Result<String> {
    let mut svg = String::new();
    draw(&mut svg, title, subjects, groups)
        .map_err(|error| anyhow!("cannot draw {title}: {error}"))?;
    svg.push('\n');
    Ok(svg)
}

fn draw(
    svg: &mut String,
    title: &str,
    subjects: &[&str],
    groups: &[Group],
) -> Result<(), Box<dyn std::error::Error>> {
    let present = |group: &Group| group.bars.iter().flatten().count();
    let heights = groups.iter().map(|group| i32::try_from(present(group)).unwrap_or(0) * BAR + GAP);
    let height = TOP + heights.sum::<i32>() + GAP;
    let size = (WIDTH.unsigned_abs(), height.unsigned_abs());
    let area = SVGBackend::with_string(svg, size).into_drawing_area();
    area.fill(&WHITE)?;
    let letters = |size: i32| TextStyle::from(("sans-serif", size).into_font()).color(&BLACK);
    let before = |size| letters(size).pos(Pos::new(HPos::Right, VPos::Center));
    let behind = |size| letters(size).pos(Pos::new(HPos::Left, VPos::Center));
    area.draw(&Text::new(title.to_owned(), (12, 18), behind(17)))?;
    let mut key = NAMES;
    for subject in subjects {
        area.draw(&Rectangle::new([(key, 36), (key + 12, 46)], color(subject).filled()))?;
        area.draw(&Text::new((*subject).to_owned(), (key + 18, 41), behind(13)))?;
        key += 40 + 8 * i32::try_from(subject.len()).unwrap_or(0);
    }
    let scale = Scale::of(groups);
    let mut y = TOP;
    for group in groups {
        let bars = i32::try_from(present(group)).unwrap_or(0);
        area.draw(&Text::new(group.name, (NAMES - 8, y + bars * BAR / 2), before(13)))?;
        for (bar, subject) in group.bars.iter().zip(subjects) {
            let Some((value, said)) = bar else {
                continue;
            };
            let end = NAMES + scale.length(*value, WIDTH - NAMES - VALUES);
            area.draw(&Rectangle::new([(NAMES, y), (end, y + BAR - 2)], color(subject).filled()))?;
            area.draw(&Text::new(said.clone(), (end + 5, y + BAR / 2), behind(11)))?;
            y += BAR;
        }
        y += GAP;
    }
    area.present()?;
    Ok(())
}

/// Powers of ten around all values.
struct Scale {
    low: f64,
    high: f64,
}

impl Scale {
    fn of(groups: &[Group]) -> Self {
        let values = || groups.iter().flat_map(|group| group.bars.iter().flatten());
        let logarithms = values().map(|(value, _)| value.log10()).filter(|log| log.is_finite());
        let (min, max) =
            logarithms.fold((f64::MAX, f64::MIN), |(min, max), log| (log.min(min), log.max(max)));
        if min > max {
            return Self { low: 0.0, high: 1.0 };
        }
        // The smallest has a bar, too.
        let low = (min - 0.2).floor();
        Self { low, high: max.max(low + 1.0) }
    }

    /// Pixels of a bar when the longest has `most`.
    fn length(&self, value: f64, most: i32) -> i32 {
        let part = (value.log10() - self.low) / (self.high - self.low);
        (part.clamp(0.0, 1.0) * f64::from(most)).round() as i32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(name: &'static str, values: &[Option<f64>]) -> Group {
        let bar = |value: &Option<f64>| value.map(|value| (value, format!("<{value}>")));
        Group { name, bars: values.iter().map(bar).collect() }
    }

    #[test]
    fn every_bar_has_its_value_behind_it() {
        let groups = [group("one", &[Some(1e6), None]), group("two", &[Some(2e3), Some(1e3)])];
        let svg = bars("Rates", &["Leveret", "RabbitMQ"], &groups).unwrap();
        for said in ["Rates", "Leveret", "RabbitMQ", "one", "two", "&lt;1000000&gt;"] {
            assert!(svg.contains(said), "{said}: {svg}");
        }
        // The background, two in the key, and three bars.
        assert_eq!(svg.matches("<rect").count(), 6, "{svg}");
    }

    #[test]
    fn lengths_are_logarithmic() {
        let scale = Scale::of(&[group("", &[Some(1e6), Some(1e3), Some(1e5)])]);
        let lengths = [1e6, 1e5, 1e3, 0.0].map(|value| scale.length(value, 400));
        assert_eq!(lengths, [400, 300, 100, 0]);
        assert_eq!(Scale::of(&[]).length(5.0, 0), 0);
    }
}
