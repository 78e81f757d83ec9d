// Heat maps and stacked bars.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "evidence/svg_axis.h"
#include "evidence/svg_canvas.h"
#include "evidence/svg_plot.h"

namespace strata {
namespace {

constexpr double kWidth = 760, kMargin = SvgCanvas::kMargin;

struct Colour {
  double red, green, blue;
};

// From pale to dark, evenly in lightness, so that it survives greyscale.
Colour ramp(double share) {
  constexpr std::array<Colour, 4> kStops{{{253, 243, 208}, {140, 202, 178}, {45, 125, 159}, {32, 42, 104}}};
  const double place = std::clamp(share, 0.0, 1.0) * (kStops.size() - 1);
  const auto below = std::min(static_cast<size_t>(place), kStops.size() - 2);
  const double part = place - static_cast<double>(below);
  const auto mix = [&](double Colour::*channel) {
    return kStops[below].*channel + (kStops[below + 1].*channel - kStops[below].*channel) * part;
  };
  return {mix(&Colour::red), mix(&Colour::green), mix(&Colour::blue)};
}

std::string hex(const Colour& colour) {
  return fmt::format("#{:02x}{:02x}{:02x}", static_cast<int>(colour.red + 0.5), static_cast<int>(colour.green + 0.5),
                     static_cast<int>(colour.blue + 0.5));
}

bool dark(const Colour& colour) { return 0.299 * colour.red + 0.587 * colour.green + 0.114 * colour.blue < 140; }

double top_of(const std::string& subtitle) { return SvgCanvas::head_height(subtitle) + 8; }

double label_room(const std::vector<std::string>& labels, size_t count) {
  double room = 40;
  for (size_t i = 0; i < count; ++i) room = std::max(room, std::min(text_width(labels[i], 12), 200.0));
  return room;
}

struct Range {
  double low = 0, high = 1;
  double share(double value) const { return high > low ? (value - low) / (high - low) : 0.5; }
};

Range colour_range(const HeatMap& map) {
  double low = INFINITY, high = -INFINITY;
  for (const double value : map.values)
    if (plottable(value)) {
      low = std::min(low, value);
      high = std::max(high, value);
    }
  if (low > high) low = high = 0;
  return {map.low.value_or(low), map.high.value_or(high)};
}

void draw_scale(SvgCanvas& canvas, const Range& range, const std::string& label, double y) {
  constexpr int kSteps = 24;
  constexpr double kStep = 8;
  canvas.text(kMargin, y + 11, label, {.room = 260});
  const double left = kMargin + std::min(text_width(label, 12), 260.0) + 16 + text_width(short_number(range.low), 12);
  canvas.text(left - 6, y + 11, short_number(range.low), {.anchor = SvgAnchor::End});
  for (int i = 0; i < kSteps; ++i) canvas.rect(left + i * kStep, y, kStep, 14, hex(ramp(i / (kSteps - 1.0))));
  canvas.text(left + kSteps * kStep + 6, y + 11, short_number(range.high));
}

void draw_cell(SvgCanvas& canvas, const Range& range, double value, const std::string& text, double x, double y,
               double width, double height) {
  if (!plottable(value)) {
    canvas.rect(x, y, width, height, "#eef0f2", SvgCanvas::kPaper);
    canvas.text(x + width / 2, y + height / 2 + 4, "-", {.anchor = SvgAnchor::Middle, .fill = SvgCanvas::kQuiet});
    return;
  }
  const Colour colour = ramp(range.share(value));
  canvas.rect(x, y, width, height, hex(colour), SvgCanvas::kPaper);
  canvas.text(x + width / 2, y + height / 2 + 4, text.empty() ? short_number(value) : text,
              {.size = width < 40 ? 9.0 : 12.0,
               .anchor = SvgAnchor::Middle,
               .fill = dark(colour) ? SvgCanvas::kPaper : SvgCanvas::kInk,
               .room = width - 2});
}

}  // namespace

std::string heat_map_svg(const HeatMap& map) {
  const size_t cells = map.columns.size() * map.rows.size();
  if (map.values.size() != cells || (!map.texts.empty() && map.texts.size() != cells))
    throw Error(ErrorKind::Argument, "a heat map of " + std::to_string(map.rows.size()) + " rows and " +
                                         std::to_string(map.columns.size()) + " columns needs as many values");
  const size_t columns = std::min(map.columns.size(), kMaxPlotColumns), rows = std::min(map.rows.size(), kMaxPlotRows);
  const Range range = colour_range(map);
  const double left = kMargin + 24 + label_room(map.rows, rows), top = top_of(map.subtitle), row_height = 32;
  const double column_width = (kWidth - kMargin - left) / static_cast<double>(std::max<size_t>(columns, 1));
  const double bottom = top + row_height * static_cast<double>(std::max<size_t>(rows, 1));
  SvgCanvas canvas(kWidth, bottom + 82, map.title);
  canvas.head(map.title, map.subtitle);
  for (size_t row = 0; row < rows; ++row) {
    const double y = top + row_height * static_cast<double>(row);
    canvas.text(left - 8, y + row_height / 2 + 4, map.rows[row], {.anchor = SvgAnchor::End, .room = left - 40});
    for (size_t column = 0; column < columns; ++column) {
      const size_t at = row * map.columns.size() + column;
      draw_cell(canvas, range, map.values[at], map.texts.empty() ? std::string() : map.texts[at],
                left + column_width * static_cast<double>(column), y, column_width, row_height);
    }
  }
  for (size_t column = 0; column < columns; ++column)
    canvas.text(left + column_width * (static_cast<double>(column) + 0.5), bottom + 16, map.columns[column],
                {.size = 11, .anchor = SvgAnchor::Middle, .fill = SvgCanvas::kQuiet, .room = column_width});
  if (cells == 0) canvas.text(left + 40, top + 20, "no data", {.fill = SvgCanvas::kQuiet});
  canvas.text((left + kWidth - kMargin) / 2, bottom + 36, map.x_label, {.anchor = SvgAnchor::Middle, .room = 500});
  canvas.text(18, (top + bottom) / 2, map.y_label,
              {.anchor = SvgAnchor::Middle, .room = bottom - top, .upwards = true});
  draw_scale(canvas, range, map.value_label, bottom + 50);
  if (columns < map.columns.size() || rows < map.rows.size())
    canvas.text(
        kWidth - kMargin, bottom + 61,
        fmt::format("{} of {} rows, {} of {} columns shown", rows, map.rows.size(), columns, map.columns.size()),
        {.size = 11, .anchor = SvgAnchor::End, .fill = SvgCanvas::kQuiet});
  return canvas.finish();
}

namespace {

bool drawable_part(double value) { return plottable(value) && value >= 0; }

// Parts of the bar that are drawn; the others are counted.
double bar_sum(const StackedBar& bar, size_t names, size_t& missing) {
  double sum = 0;
  for (size_t i = 0; i < names; ++i)
    if (i < bar.parts.size() && drawable_part(bar.parts[i]))
      sum += bar.parts[i];
    else
      ++missing;
  return sum;
}

void draw_bar(SvgCanvas& canvas, const AxisMap& x, const StackedBar& bar, size_t names, double y, double height) {
  double done = 0;
  for (size_t i = 0; i < std::min(names, bar.parts.size()); ++i) {
    if (!drawable_part(bar.parts[i])) continue;
    const double from = x.place(done), to = x.place(done + bar.parts[i]);
    done += bar.parts[i];
    canvas.rect(from, y, to - from, height, series_colour(i), SvgCanvas::kPaper);
    const std::string text = short_number(bar.parts[i]);
    if (to - from > text_width(text, 11) + 6)
      canvas.text((from + to) / 2, y + height / 2 + 4, text,
                  {.size = 11, .anchor = SvgAnchor::Middle, .fill = SvgCanvas::kPaper});
  }
  canvas.text(x.place(done) + 6, y + height / 2 + 4, short_number(done), {.size = 11, .bold = true, .room = 64});
}

}  // namespace

std::string stacked_bars_svg(const StackedBars& chart) {
  const size_t names = std::min(chart.names.size(), kMaxPlotSeries), bars = std::min(chart.bars.size(), kMaxPlotRows);
  std::vector<std::string> labels;
  std::vector<double> sums;
  size_t missing = 0;
  for (size_t i = 0; i < bars; ++i) {
    labels.push_back(chart.bars[i].label);
    sums.push_back(bar_sum(chart.bars[i], names, missing));
  }
  constexpr double kRow = 36, kLegendWidth = 180;
  const double lines = static_cast<double>((names + 3) / 4);
  const double top = top_of(chart.subtitle) + lines * 20, left = kMargin + label_room(labels, bars) + 8;
  const PlotArea area{left, top, kWidth - 76, top + kRow * static_cast<double>(std::max<size_t>(bars, 1))};
  SvgCanvas canvas(kWidth, area.bottom + 62, chart.title);
  canvas.head(chart.title, chart.subtitle);
  for (size_t i = 0; i < names; ++i) {
    const double x = kMargin + kLegendWidth * static_cast<double>(i % 4),
                 y = top_of(chart.subtitle) - 8 + 20 * static_cast<double>(i / 4);
    canvas.rect(x, y, 12, 12, series_colour(i));
    canvas.text(x + 18, y + 10, chart.names[i], {.room = kLegendWidth - 24});
  }
  const AxisMap x({.label = {}, .from_zero = true}, sums, area.left, area.right);
  draw_x_axis(canvas, x, area, chart.label);
  for (size_t i = 0; i < bars; ++i) {
    const double y = area.top + kRow * static_cast<double>(i) + 5;
    canvas.text(left - 8, y + 17, labels[i], {.anchor = SvgAnchor::End, .room = left - kMargin});
    draw_bar(canvas, x, chart.bars[i], names, y, kRow - 10);
  }
  if (bars == 0) canvas.text(left + 40, top + 22, "no data", {.fill = SvgCanvas::kQuiet});
  std::string note;
  if (missing > 0) note = fmt::format("{} part{} missing", missing, missing == 1 ? "" : "s");
  if (bars < chart.bars.size() || names < chart.names.size())
    note += fmt::format("{}{} of {} bars, {} of {} parts shown", note.empty() ? "" : "; ", bars, chart.bars.size(),
                        names, chart.names.size());
  canvas.text(kMargin, area.bottom + 54, note, {.size = 11, .fill = SvgCanvas::kQuiet});
  return canvas.finish();
}

}  // namespace strata
