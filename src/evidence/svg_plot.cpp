#include "evidence/svg_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "base/error.h"
#include "evidence/svg_axis.h"
#include "evidence/svg_canvas.h"

namespace strata {
namespace {

constexpr double kWidth = 760, kMargin = SvgCanvas::kMargin, kLegendRow = 20;

// What a plot leaves out, for the note under it.
struct LeftOut {
  size_t values = 0, items = 0, thinned = 0;
  std::string_view item = "rows";

  std::string note() const {
    std::string text;
    const auto add = [&](const std::string& part) { text += (text.empty() ? "" : "; ") + part; };
    if (values > 0) add(fmt::format("{} value{} not shown: no number on this axis", values, values == 1 ? "" : "s"));
    if (items > 0) add(fmt::format("{} more {} not shown", items, item));
    if (thinned > 0) add(fmt::format("{} points thinned out", thinned));
    return text;
  }
};

void draw_note(SvgCanvas& canvas, double y, const LeftOut& left_out) {
  canvas.text(kMargin, y, left_out.note(), {.size = 11, .fill = SvgCanvas::kQuiet});
}

// Names with their marks in as many lines as they need.
class Legend {
 public:
  explicit Legend(const std::vector<std::string>& names) {
    double x = kMargin, y = 0;
    for (const std::string& name : names) {
      const double room = std::min(text_width(name, 12), 300.0) + 34;
      if (x > kMargin && x + room > kWidth - kMargin) {
        x = kMargin;
        y += kLegendRow;
      }
      places_.push_back({x, y, name});
      x += room;
    }
    height_ = names.empty() ? 0 : y + kLegendRow;
  }

  double height() const { return height_; }
  template <class Mark>
  void draw(SvgCanvas& canvas, double top, Mark&& mark) const {
    for (size_t i = 0; i < places_.size(); ++i) {
      mark(places_[i].x + 8, top + places_[i].y + 10, i);
      canvas.text(places_[i].x + 20, top + places_[i].y + 14, places_[i].name, {.room = 310});
    }
  }

 private:
  struct Place {
    double x, y;
    std::string name;
  };
  std::vector<Place> places_;
  double height_ = 0;
};

// Every k-th point and the last.
std::vector<PlotPoint> thinned(const std::vector<PlotPoint>& points, LeftOut& left_out) {
  if (points.size() <= kMaxPlotPoints) return points;
  const size_t every = (points.size() + kMaxPlotPoints - 2) / (kMaxPlotPoints - 1);
  std::vector<PlotPoint> kept;
  for (size_t i = 0; i < points.size(); i += every) kept.push_back(points[i]);
  if ((points.size() - 1) % every != 0) kept.push_back(points.back());
  left_out.thinned += points.size() - kept.size();
  return kept;
}

void draw_interval(SvgCanvas& canvas, double x, double low, double high, std::string_view colour) {
  canvas.line(x, low, x, high, colour, 1.5);
  canvas.line(x - 4, low, x + 4, low, colour, 1.5);
  canvas.line(x - 4, high, x + 4, high, colour, 1.5);
}

// The series as they are drawn: bounded, without what the axes cannot show.
std::vector<PlotSeries> shown_series(const LineChart& chart, LeftOut& left_out) {
  std::vector<PlotSeries> shown;
  for (const PlotSeries& one : chart.series) {
    if (shown.size() == kMaxPlotSeries) break;
    PlotSeries kept{one.name, {}};
    for (const PlotPoint& point : one.points)
      if (plottable(point.x, chart.x.scale) && plottable(point.y, chart.y.scale))
        kept.points.push_back(point);
      else
        ++left_out.values;
    kept.points = thinned(kept.points, left_out);
    shown.push_back(std::move(kept));
  }
  left_out.items = chart.series.size() - shown.size();
  return shown;
}

bool has_interval(const PlotPoint& point, AxisScale scale) {
  return plottable(point.low, scale) && plottable(point.high, scale);
}

}  // namespace

std::string line_chart_svg(const LineChart& chart) {
  LeftOut left_out{.item = "series"};
  const std::vector<PlotSeries> series = shown_series(chart, left_out);
  std::vector<std::string> names;
  std::vector<double> xs, ys;
  for (const PlotSeries& one : series) {
    names.push_back(one.name);
    for (const PlotPoint& point : one.points) {
      xs.push_back(point.x);
      ys.push_back(point.y);
      if (has_interval(point, chart.y.scale)) ys.insert(ys.end(), {point.low, point.high});
    }
  }
  const Legend legend(names);
  const double top = SvgCanvas::head_height(chart.subtitle) + legend.height() + 8;
  const PlotArea area{76, top, kWidth - 28, top + 300};
  SvgCanvas canvas(kWidth, area.bottom + 62, chart.title);
  canvas.head(chart.title, chart.subtitle);
  const AxisMap x(chart.x, xs, area.left, area.right), y(chart.y, ys, area.bottom, area.top);
  draw_x_axis(canvas, x, area, chart.x.label);
  draw_y_axis(canvas, y, area, chart.y.label);
  for (size_t i = 0; i < series.size(); ++i) {
    SvgCanvas::Points line;
    for (const PlotPoint& point : series[i].points) line.emplace_back(x.place(point.x), y.place(point.y));
    canvas.path(line, series_colour(i));
    for (const PlotPoint& point : series[i].points) {
      if (has_interval(point, chart.y.scale))
        draw_interval(canvas, x.place(point.x), y.place(point.low), y.place(point.high), series_colour(i));
      canvas.marker(x.place(point.x), y.place(point.y), i, series_colour(i));
    }
  }
  legend.draw(canvas, SvgCanvas::head_height(chart.subtitle), [&](double at_x, double at_y, size_t i) {
    canvas.line(at_x - 8, at_y, at_x + 8, at_y, series_colour(i), 2);
    canvas.marker(at_x, at_y, i, series_colour(i));
  });
  if (xs.empty())
    canvas.text((area.left + area.right) / 2, (area.top + area.bottom) / 2, "no data",
                {.anchor = SvgAnchor::Middle, .fill = SvgCanvas::kQuiet});
  draw_note(canvas, area.bottom + 54, left_out);
  return canvas.finish();
}

namespace {

double per_cent(double ratio) { return (ratio - 1) * 100; }

// Dots of one row, spread in three lanes so that equal ratios stay apart.
void draw_ratio_row(SvgCanvas& canvas, const AxisMap& x, const RatioRow& row, double middle, LeftOut& left_out) {
  const double low = x.place(per_cent(row.low)), high = x.place(per_cent(row.high));
  if (std::isfinite(low) && std::isfinite(high))
    canvas.rect(std::min(low, high), middle - 12, std::abs(high - low), 24, "#cfe3f3");
  if (row.gate)
    canvas.line(x.place(per_cent(*row.gate)), middle - 17, x.place(per_cent(*row.gate)), middle + 17, "#c1121f", 2);
  const size_t count = std::min(row.dots.size(), kMaxPlotPoints);
  left_out.thinned += row.dots.size() - count;
  for (size_t i = 0; i < count; ++i) {
    const double lane = middle + (static_cast<double>(i % 3) - 1) * 6;
    if (!plottable(per_cent(row.dots[i].ratio)))
      ++left_out.values;
    else
      canvas.marker(x.place(per_cent(row.dots[i].ratio)), lane, row.dots[i].flagged ? 5 : 0, series_colour(0), 3.5);
  }
  canvas.line(x.place(per_cent(row.median)), middle - 14, x.place(per_cent(row.median)), middle + 14, SvgCanvas::kInk,
              3);
}

void draw_ratio_legend(SvgCanvas& canvas, double top) {
  const Legend legend({"one pair", "disturbed pair", "median", "interval", "gate"});
  legend.draw(canvas, top, [&](double x, double y, size_t i) {
    switch (i) {
      case 0: return canvas.marker(x, y, 0, series_colour(0), 3.5);
      case 1: return canvas.marker(x, y, 5, series_colour(0), 3.5);
      case 2: return canvas.line(x, y - 7, x, y + 7, SvgCanvas::kInk, 3);
      case 3: return canvas.rect(x - 8, y - 6, 16, 12, "#cfe3f3");
      default: return canvas.line(x, y - 7, x, y + 7, "#c1121f", 2);
    }
  });
}

}  // namespace

std::string ratio_chart_svg(const RatioChart& chart) {
  LeftOut left_out;
  const size_t rows = std::min(chart.rows.size(), kMaxPlotRows);
  left_out.items = chart.rows.size() - rows;
  std::vector<double> values{0};
  double label_room = 60;
  for (size_t i = 0; i < rows; ++i) {
    const RatioRow& row = chart.rows[i];
    for (const RatioDot& dot : row.dots) values.push_back(per_cent(dot.ratio));
    for (const double value : {row.median, row.low, row.high, row.gate.value_or(1)}) values.push_back(per_cent(value));
    label_room = std::max(label_room, std::min(text_width(row.label, 12), 180.0));
  }
  const double top = SvgCanvas::head_height(chart.subtitle) + kLegendRow + 12;
  const PlotArea area{kMargin + label_room + 8, top, kWidth - 200,
                      top + 44 * static_cast<double>(std::max<size_t>(rows, 1))};
  SvgCanvas canvas(kWidth, area.bottom + 62, chart.title);
  canvas.head(chart.title, chart.subtitle);
  draw_ratio_legend(canvas, SvgCanvas::head_height(chart.subtitle));
  const AxisMap x({.label = {}}, values, area.left, area.right);
  draw_x_axis(canvas, x, area, chart.label);
  canvas.line(x.place(0), area.top, x.place(0), area.bottom, SvgCanvas::kQuiet, 1, true);
  for (size_t i = 0; i < rows; ++i) {
    const double middle = area.top + 44 * (static_cast<double>(i) + 0.5);
    draw_ratio_row(canvas, x, chart.rows[i], middle, left_out);
    canvas.text(area.left - 8, middle + 4, chart.rows[i].label, {.anchor = SvgAnchor::End, .room = label_room + 4});
    canvas.text(area.right + 10, middle + 4, chart.rows[i].note, {.room = kWidth - area.right - 14});
  }
  if (rows == 0)
    canvas.text((area.left + area.right) / 2, area.top + 26, "no data",
                {.anchor = SvgAnchor::Middle, .fill = SvgCanvas::kQuiet});
  draw_note(canvas, area.bottom + 54, left_out);
  return canvas.finish();
}

}  // namespace strata
