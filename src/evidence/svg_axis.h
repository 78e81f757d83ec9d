// Axes of plots: from values to pixels, and where ticks stand.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "evidence/svg_canvas.h"
#include "evidence/svg_plot.h"

namespace strata {

// Values that an axis can show.
bool plottable(double value, AxisScale scale = AxisScale::Linear);

// Four significant digits, without an exponent where that is readable.
std::string short_number(double value);

class AxisMap {
 public:
  // The range of plottable values (none: 0 to 1, or 1 to 2) between two pixels; from > to for an axis upwards.
  AxisMap(const PlotAxis& axis, const std::vector<double>& values, double from, double to);

  double place(double value) const;
  struct Tick {
    double at = 0;  // pixel
    std::string text;
  };
  const std::vector<Tick>& ticks() const { return ticks_; }

 private:
  void linear(double low, double high, bool from_zero);
  void octaves(double low, double high, bool binary);
  double scaled(double value) const;

  AxisScale scale_;
  double from_, to_;
  double low_ = 0, high_ = 1;  // scaled
  std::vector<Tick> ticks_;
};

struct PlotArea {
  double left, top, right, bottom;
};
// Grid lines, tick labels and the label of the axis.
void draw_x_axis(SvgCanvas& canvas, const AxisMap& map, const PlotArea& area, std::string_view label);
void draw_y_axis(SvgCanvas& canvas, const AxisMap& map, const PlotArea& area, std::string_view label);

}  // namespace strata
