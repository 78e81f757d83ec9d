// Plots as SVG documents for reports and README pages: own background, units on the axes, colours and shapes that tell
// series apart without each other. The same data give the same bytes. What is no finite number is left out and counted
// in a note under the plot; labels may hold anything and are escaped and cut; what exceeds the limits below is thinned
// or left out, and the note says so.
#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace strata {

inline constexpr size_t kMaxPlotSeries = 16, kMaxPlotPoints = 512;  // points of a series
inline constexpr size_t kMaxPlotRows = 64, kMaxPlotColumns = 64;    // of heat maps, bars and ratio plots

enum class AxisScale { Linear, Log2 };

struct PlotAxis {
  std::string label = {};  // with its unit: "prompt (tokens)"
  AxisScale scale = AxisScale::Linear;
  bool from_zero = false;  // a linear axis that begins at 0
  bool binary = false;     // ticks as 512, 1K, 128K, 1M with K = 1024
};

struct PlotPoint {
  double x = 0, y = 0;
  // Interval around y, drawn where both ends are finite.
  double low = std::numeric_limits<double>::quiet_NaN(), high = std::numeric_limits<double>::quiet_NaN();
};

struct PlotSeries {
  std::string name;
  std::vector<PlotPoint> points;  // joined in this order
};

struct LineChart {
  std::string title = {}, subtitle = {};
  PlotAxis x = {}, y = {};
  std::vector<PlotSeries> series = {};
};
std::string line_chart_svg(const LineChart& chart);

// Paired trials: for each row the ratio of every pair, their median with its interval, and the gate.
struct RatioDot {
  double ratio = 1;
  bool flagged = false;  // a disturbed pair, drawn hollow
};
struct RatioRow {
  std::string label;  // "prefill@4K"
  std::vector<RatioDot> dots;
  double median = 1, low = 1, high = 1;
  std::optional<double> gate;  // the ratio that has to be reached
  std::string note;            // at the end of the row: "+8.7 %, pass"
};
struct RatioChart {
  std::string title = {}, subtitle = {};
  std::string label = {};  // of the axis, which counts per cent above or below 1: "speed of B against A (%)"
  std::vector<RatioRow> rows = {};
};
std::string ratio_chart_svg(const RatioChart& chart);

struct HeatMap {
  std::string title = {}, subtitle = {};
  std::string x_label = {}, y_label = {}, value_label = {};
  std::vector<std::string> columns = {}, rows = {};
  std::vector<double> values = {};            // [rows, columns]; not finite: not measured, drawn as a dash
  std::vector<std::string> texts = {};        // in the cells, [rows, columns]; empty: the values
  std::optional<double> low = {}, high = {};  // ends of the colours; else those of the values
};
// Error{Argument} when values or texts do not have the size of the map.
std::string heat_map_svg(const HeatMap& map);

struct StackedBar {
  std::string label;
  std::vector<double> parts;  // by names; not finite: missing. Negative ones are left out as well
};
struct StackedBars {
  std::string title = {}, subtitle = {};
  std::string label = {};               // of the axis, with its unit
  std::vector<std::string> names = {};  // of the parts
  std::vector<StackedBar> bars = {};
};
std::string stacked_bars_svg(const StackedBars& chart);

}  // namespace strata
