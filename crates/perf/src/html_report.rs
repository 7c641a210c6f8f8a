//! A report with plots, in one file that needs no other.
//!
//! Plots are SVG without a background; the page's style gives lines and letters the colour of its text,
//! so that they can be read on a light and on a dark screen.

use std::fmt::Write as _;
use std::ops::Range;

use anyhow::{Result, anyhow};
use plotters::coord::Shift;
use plotters::prelude::*;

use crate::format::{Short, Time};
use crate::measurement::Second;
use crate::report::Outcome;

/// Width and height of a plot, in pixels.
const SIZE: (u32, u32) = (800, 280);

/// Colour of all elements except the plotted lines; the page's style replaces it.
const INK: RGBColor = BLACK;

/// Colours of lines, distinguishable on white and on black.
const COLORS: [RGBColor; 6] = [
    RGBColor(37, 128, 230),
    RGBColor(232, 120, 23),
    RGBColor(40, 160, 90),
    RGBColor(200, 70, 160),
    RGBColor(150, 110, 60),
    RGBColor(120, 120, 200),
];

const HEAD: &str = "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
    <meta name=\"viewport\" content=\"width=device-width\">\n<title>leveret-perf</title>\n<style>\n\
    :root { color-scheme: light dark }\n\
    body { font-family: system-ui, sans-serif; margin: 2em auto; max-width: 52em; padding: 0 1em }\n\
    pre { overflow-x: auto; line-height: 1.4 }\n\
    h3 { font-size: 1em; margin: 2em 0 0 }\n\
    .key { margin: 0.2em 0; font-size: 0.9em }\n\
    .key span { margin-right: 1.2em; white-space: nowrap }\n\
    svg { max-width: 100%; height: auto }\n\
    svg text { font-family: inherit; fill: currentColor }\n\
    svg [stroke=\"#000000\"] { stroke: currentColor }\n\
    </style>\n<h1>leveret-perf</h1>\n";

/// The page.
///
/// # Errors
/// When a plot cannot be drawn.
pub(crate) fn report(outcomes: &[Outcome]) -> Result<String> {
    let mut page = HEAD.to_owned();
    for outcome in outcomes {
        let (run, figures) = (escaped(&outcome.run), escaped(&outcome.to_string()));
        writeln!(page, "<h2>{run}</h2>\n<pre>{figures}</pre>")?;
        page.push_str(&rates(&outcome.seconds)?);
        page.push_str(&latencies(&outcome.seconds)?);
    }
    page.push_str("</html>\n");
    Ok(page)
}

/// A line of a plot: its name and its points.
type Line = (String, Vec<(f64, f64)>);

/// Kind of a vertical axis.
#[derive(Clone, Copy)]
enum Axis {
    /// From 0 to a bit more than the largest, in numbers.
    Numbers,
    /// Over the powers of ten that the values are in, in times.
    LogarithmicTimes,
}

fn rates(seconds: &[Second]) -> Result<String> {
    let mut lines: Vec<Line> = Vec::new();
    for second in seconds {
        for (at, (name, rate)) in second.rates.named().into_iter().enumerate() {
            if lines.len() <= at {
                lines.push((name.replace('_', " "), Vec::new()));
            }
            if let Some((_, points)) = lines.get_mut(at) {
                points.push((second.at_s, rate as f64));
            }
        }
    }
    // Bytes have another scale than messages.
    lines.retain(|(name, points)| {
        name != "consumed bytes" && points.iter().any(|(_, rate)| *rate > 0.0)
    });
    plot("Per second", &lines, Axis::Numbers)
}

fn latencies(seconds: &[Second]) -> Result<String> {
    let line = |which: usize| {
        let point = |second: &Second| Some((second.at_s, second.latency_us?.get(which)?.max(1.0)));
        seconds.iter().filter_map(point).collect()
    };
    let lines = [("p50".to_owned(), line(0)), ("p99".to_owned(), line(1))];
    plot("Latency", &lines, Axis::LogarithmicTimes)
}

/// A plot with its title and the names of its lines, or nothing when there is nothing to draw.
fn plot(title: &str, lines: &[Line], axis: Axis) -> Result<String> {
    let points = || lines.iter().flat_map(|(_, points)| points.iter().copied());
    if lines.iter().all(|(_, points)| points.len() < 2) {
        return Ok(String::new());
    }
    let x_max = points().fold(0.0, |max: f64, (x, _)| max.max(x));
    let y_min = points().fold(f64::MAX, |min: f64, (_, y)| min.min(y));
    let y_max = points().fold(1.0, |max: f64, (_, y)| max.max(y));
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        match axis {
            Axis::Numbers => draw_numbers(&area, lines, x_max, y_max * 1.1),
            Axis::LogarithmicTimes => draw_times(&area, lines, x_max, decades(y_min, y_max)),
        }
        .and_then(|()| area.present().map_err(Into::into))
        .map_err(|error| anyhow!("cannot plot {title}: {error}"))?;
    }
    let mut plot = format!("<h3>{title}</h3>\n<p class=\"key\">");
    for ((name, _), RGBColor(red, green, blue)) in lines.iter().zip(COLORS.iter().cycle()) {
        let color = format!("rgb({red},{green},{blue})");
        write!(plot, "<span><b style=\"color:{color}\">&#9473;</b> {}</span>", escaped(name))?;
    }
    Ok(format!("{plot}</p>\n{svg}\n"))
}

/// The powers of ten around values.
fn decades(min: f64, max: f64) -> Range<f64> {
    let (low, high) = (min.log10().floor(), max.log10().ceil());
    10_f64.powf(low)..10_f64.powf(high.max(low + 1.0))
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = Result<(), Box<dyn std::error::Error>>;

/// The two kinds of plots differ in a type, so that what they have alike is a macro.
macro_rules! draw {
    ($area:expr, $lines:expr, $x:expr, $y:expr, $label:expr) => {{
        let mut chart = ChartBuilder::on($area)
            .margin(10)
            .x_label_area_size(36)
            .y_label_area_size(64)
            .build_cartesian_2d($x, $y)?;
        chart
            .configure_mesh()
            .x_desc("seconds")
            .x_label_formatter(&|x: &f64| Short(*x).to_string())
            .y_label_formatter(&$label)
            .axis_style(INK)
            .bold_line_style(INK.mix(0.15))
            .light_line_style(TRANSPARENT)
            .label_style(("sans-serif", 13))
            .draw()?;
        for ((_, points), color) in $lines.iter().zip(COLORS.iter().cycle()) {
            chart.draw_series(LineSeries::new(points.iter().copied(), color.stroke_width(2)))?;
        }
        Ok(())
    }};
}

fn draw_numbers(area: &Area<'_>, lines: &[Line], x_max: f64, y_max: f64) -> Drawn {
    draw!(area, lines, 0.0..x_max, 0.0..y_max, |y: &f64| Short(*y).to_string())
}

fn draw_times(area: &Area<'_>, lines: &[Line], x_max: f64, y: Range<f64>) -> Drawn {
    draw!(area, lines, 0.0..x_max, y.log_scale(), |y: &f64| Time(*y).to_string().replace(".00", ""))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Counts;

    #[test]
    fn plots_show_the_measured_values_only() {
        let second = |at_s: f64, published| Second {
            at_s,
            rates: Counts { published, consumed_bytes: 1 << 30, ..Counts::default() },
            latency_us: Some([80.0, 2_000.0]),
        };
        let seconds = [second(1.0, 2_000_000), second(2.0, 2_500_000)];
        let plot = rates(&seconds).expect("a plot");
        assert!(plot.contains("<svg") && plot.contains("published"), "{plot}");
        assert!(plot.contains("2.5M") && !plot.contains("consumed"), "{plot}");
        let plot = latencies(&seconds).expect("a plot");
        assert!(plot.contains("10 us") && plot.contains("10 ms"), "{plot}");
        assert_eq!(rates(&seconds[..1]).expect("no plot"), "");
        assert_eq!(latencies(&[]).expect("no plot"), "");
    }

    #[test]
    fn axis_of_times_ends_at_powers_of_ten() {
        assert_eq!(decades(80.0, 2_000.0), 10.0..10_000.0);
        assert_eq!(decades(100.0, 100.0), 100.0..1_000.0);
        assert_eq!(escaped("<a&b>"), "&lt;a&amp;b>");
    }
}
