#include "evidence/svg_axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace strata {
namespace {

constexpr double kLargest = 1e30;  // beyond it differences of two values are no longer safe to divide by
constexpr int kMaxTicks = 12;

// 1, 2 or 5 times a power of ten: the smallest that gives at most `count` steps.
double nice_step(double range, int count) {
  const double least = range / count, power = std::pow(10.0, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= least * (1 - 1e-9)) return factor * power;
  return 10 * power;
}

std::string tick_text(double value, double step) {
  if (std::abs(value) < step * 1e-6) return "0";
  if (std::abs(value) >= 1e7 || step < 1e-5) return fmt::format("{:.4g}", value);
  const int digits = std::clamp(static_cast<int>(std::ceil(-std::log10(step) - 1e-9)), 0, 6);
  return fmt::format("{:.{}f}", value, digits);
}

std::string binary_text(double value) {
  for (const auto& [unit, suffix] : {std::pair(1048576.0, "M"), std::pair(1024.0, "K")})
    if (value >= unit && std::fmod(value, unit) == 0) return fmt::format("{:.0f}{}", value / unit, suffix);
  return short_number(value);
}

}  // namespace

bool plottable(double value, AxisScale scale) {
  if (scale == AxisScale::Log2) return value >= 1 / kLargest && value <= kLargest;
  return std::abs(value) <= kLargest;
}

std::string short_number(double value) {
  if (!std::isfinite(value)) return "-";
  const double size = std::abs(value);
  if (size >= 1e7 || (size > 0 && size < 1e-3)) return fmt::format("{:.3g}", value);
  const int digits = size >= 1000 ? 0 : size >= 100 ? 1 : size >= 10 ? 2 : 3;
  std::string text = fmt::format("{:.{}f}", value, digits);
  if (text.find('.') != std::string::npos) text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text == "-0" ? "0" : text;
}

AxisMap::AxisMap(const PlotAxis& axis, const std::vector<double>& values, double from, double to)
    : scale_(axis.scale), from_(from), to_(to) {
  double low = INFINITY, high = -INFINITY;
  for (const double value : values)
    if (plottable(value, scale_)) {
      low = std::min(low, value);
      high = std::max(high, value);
    }
  const bool logarithmic = scale_ == AxisScale::Log2;
  if (low > high) {
    low = logarithmic ? 1 : 0;
    high = logarithmic ? 2 : 1;
  }
  if (logarithmic)
    octaves(low, high, axis.binary);
  else
    linear(low, high, axis.from_zero);
}

void AxisMap::linear(double low, double high, bool from_zero) {
  if (from_zero) {
    low = std::min(low, 0.0);
    high = std::max(high, 0.0);
  }
  // A range that the values' own precision cannot divide is widened.
  const double least = std::max({std::abs(low), std::abs(high), 1e-30}) * 1e-6;
  if (high - low < least) {
    const double room = std::max(std::abs(high) * 0.1, least);
    if (!from_zero || low < 0) low -= room;
    high += room;
  }
  const double step = nice_step(high - low, 6);
  low_ = std::floor(low / step + 1e-9) * step;
  high_ = std::ceil(high / step - 1e-9) * step;
  for (int i = 0; i < kMaxTicks; ++i) {
    const double value = low_ + i * step;
    if (value > high_ + step * 0.5) break;
    ticks_.push_back({place(value), tick_text(value, step)});
  }
}

void AxisMap::octaves(double low, double high, bool binary) {
  const double first = std::log2(low), last = std::log2(high), room = std::max(0.04 * (last - first), 0.05);
  low_ = first - room;
  high_ = last + room;
  const int every = std::max(1, static_cast<int>(std::ceil((last - first) / 10)));
  for (int exponent = static_cast<int>(std::ceil(low_)); exponent <= high_ + 1e-9; exponent += every) {
    const double value = std::exp2(exponent);
    ticks_.push_back({place(value), binary ? binary_text(value) : short_number(value)});
  }
  if (ticks_.size() > 1) return;
  ticks_.clear();  // within an octave: even steps
  const double step = nice_step(std::exp2(high_) - std::exp2(low_), 5);
  double value = std::ceil(std::exp2(low_) / step) * step;
  for (int i = 0; i < kMaxTicks && value <= std::exp2(high_); ++i, value += step)
    ticks_.push_back({place(value), binary ? binary_text(value) : tick_text(value, step)});
}

double AxisMap::scaled(double value) const { return scale_ == AxisScale::Log2 ? std::log2(value) : value; }

double AxisMap::place(double value) const {
  if (!plottable(value, scale_)) return NAN;
  return from_ + (to_ - from_) * (scaled(value) - low_) / (high_ - low_);
}

void draw_x_axis(SvgCanvas& canvas, const AxisMap& map, const PlotArea& area, std::string_view label) {
  for (const AxisMap::Tick& tick : map.ticks()) {
    canvas.line(tick.at, area.top, tick.at, area.bottom, SvgCanvas::kGrid);
    canvas.text(tick.at, area.bottom + 16, tick.text,
                {.size = 11, .anchor = SvgAnchor::Middle, .fill = SvgCanvas::kQuiet});
  }
  canvas.line(area.left, area.bottom, area.right, area.bottom, SvgCanvas::kInk);
  canvas.text((area.left + area.right) / 2, area.bottom + 36, label,
              {.anchor = SvgAnchor::Middle, .room = area.right - area.left});
}

void draw_y_axis(SvgCanvas& canvas, const AxisMap& map, const PlotArea& area, std::string_view label) {
  for (const AxisMap::Tick& tick : map.ticks()) {
    canvas.line(area.left, tick.at, area.right, tick.at, SvgCanvas::kGrid);
    canvas.text(area.left - 6, tick.at + 4, tick.text,
                {.size = 11, .anchor = SvgAnchor::End, .fill = SvgCanvas::kQuiet, .room = area.left - 26});
  }
  canvas.line(area.left, area.top, area.left, area.bottom, SvgCanvas::kInk);
  canvas.text(18, (area.top + area.bottom) / 2, label,
              {.anchor = SvgAnchor::Middle, .room = area.bottom - area.top, .upwards = true});
}

}  // namespace strata
