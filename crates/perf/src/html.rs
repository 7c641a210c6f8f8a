//! A report with plots, in one file.

use std::fmt::Write as _;

use anyhow::{Result, anyhow};
use plotters::prelude::*;

use crate::measure::Second;
use crate::outcome::Outcome;

/// Width and height of a plot, in pixels.
const SIZE: (u32, u32) = (800, 300);

const HEAD: &str = "<!doctype html>\n<meta charset=\"utf-8\">\n<title>leveret-perf</title>\n\
    <style>body { font-family: system-ui, sans-serif; margin: 2em auto; max-width: 52em }\n\
    pre { overflow-x: auto }</style>\n<h1>leveret-perf</h1>\n";

/// The page.
///
/// # Errors
/// When a plot cannot be drawn.
pub(crate) fn report(outcomes: &[Outcome]) -> Result<String> {
    let mut page = HEAD.to_owned();
    for outcome in outcomes {
        writeln!(
            page,
            "<h2>{}</h2>\n<pre>{}</pre>",
            escaped(&outcome.run),
            escaped(&outcome.to_string())
        )?;
        page.push_str(&rates(&outcome.seconds)?);
        page.push_str(&latencies(&outcome.seconds)?);
    }
    Ok(page)
}

/// A line of a plot: its name and its points.
type Line = (&'static str, Vec<(f64, f64)>);

fn rates(seconds: &[Second]) -> Result<String> {
    let mut lines: Vec<Line> = Vec::new();
    for second in seconds {
        for (at, (name, rate)) in second.rates.named().into_iter().enumerate() {
            if lines.len() <= at {
                lines.push((name, Vec::new()));
            }
            if let Some((_, points)) = lines.get_mut(at) {
                points.push((second.at_s, rate as f64));
            }
        }
    }
    lines.retain(|(name, points)| {
        *name != "consumed_bytes" && points.iter().any(|(_, rate)| *rate > 0.0)
    });
    plot("per second", &lines)
}

fn latencies(seconds: &[Second]) -> Result<String> {
    let line = |which: usize| {
        let point = |second: &Second| Some((second.at_s, *second.latency_us?.get(which)?));
        seconds.iter().filter_map(point).collect()
    };
    plot("latency in microseconds", &[("p50", line(0)), ("p99", line(1))])
}

/// An SVG with the lines, or nothing when there is nothing to draw.
fn plot(title: &str, lines: &[Line]) -> Result<String> {
    let points = || lines.iter().flat_map(|(_, points)| points);
    let max =
        points().fold((0.0_f64, 0.0_f64), |max, point| (max.0.max(point.0), max.1.max(point.1)));
    if points().count() < 2 {
        return Ok(String::new());
    }
    let mut svg = String::new();
    draw(&mut svg, title, lines, max).map_err(|error| anyhow!("cannot plot {title}: {error}"))?;
    Ok(svg)
}

fn draw(
    svg: &mut String,
    title: &str,
    lines: &[Line],
    (x_max, y_max): (f64, f64),
) -> Result<(), Box<dyn std::error::Error>> {
    let area = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    let mut chart = ChartBuilder::on(&area)
        .caption(title, ("sans-serif", 16))
        .margin(10)
        .x_label_area_size(30)
        .y_label_area_size(70)
        .build_cartesian_2d(0.0..x_max, 0.0..y_max * 1.1)?;
    chart.configure_mesh().x_desc("seconds").light_line_style(WHITE).draw()?;
    for (at, (name, points)) in lines.iter().enumerate() {
        let color = Palette99::pick(at).to_rgba();
        chart
            .draw_series(LineSeries::new(points.iter().copied(), color.stroke_width(2)))?
            .label(*name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], color));
    }
    chart.configure_series_labels().background_style(WHITE.mix(0.8)).border_style(BLACK).draw()?;
    area.present()?;
    Ok(())
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}
