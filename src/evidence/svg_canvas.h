// What the plots draw on: an SVG document with a background of its own, so that it reads the same on light and dark
// pages. Texts are escaped and cut to the room they have; coordinates that are no numbers are not drawn.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace strata {

// `text` for element content and attributes: markup escaped, what XML cannot hold (control characters, bytes that are
// no UTF-8) written as U+FFFD.
std::string xml_text(std::string_view text);

enum class SvgAnchor { Start, Middle, End };

struct SvgText {
  double size = 12;
  SvgAnchor anchor = SvgAnchor::Start;
  bool bold = false;
  std::string_view fill = "#1f2328";
  double room = 1e9;  // width in pixels; a longer text ends in an ellipsis
  bool upwards = false;
};

class SvgCanvas {
 public:
  using Points = std::vector<std::pair<double, double>>;
  static constexpr std::string_view kInk = "#1f2328", kQuiet = "#59636e", kGrid = "#dfe3e8", kPaper = "#ffffff";

  // `name` is what screen readers say.
  SvgCanvas(double width, double height, std::string_view name);

  double width() const { return width_; }
  void rect(double x, double y, double width, double height, std::string_view fill, std::string_view stroke = "none");
  void line(double x1, double y1, double x2, double y2, std::string_view stroke, double thickness = 1,
            bool dashed = false);
  void path(const Points& points, std::string_view stroke, double thickness = 2);
  void text(double x, double y, std::string_view text, const SvgText& style = {});
  // Shapes that differ without colour: 0 disc, 1 square, 2 triangle, 3 diamond, 4 triangle down; then again, hollow.
  void marker(double x, double y, size_t shape, std::string_view colour, double radius = 4);
  std::string finish();  // the document

  // Title and subtitle, in the first head_height() pixels.
  static constexpr double kMargin = 20;
  static double head_height(std::string_view subtitle) { return subtitle.empty() ? 40 : 58; }
  void head(std::string_view title, std::string_view subtitle);

 private:
  std::string x_of(double x) const;  // kept inside the view box
  std::string y_of(double y) const;
  double width_, height_;
  std::string body_;
};

// Sixteen, the first eight distinct for the colour-blind too. White text is readable on all.
std::string_view series_colour(size_t index);
double text_width(std::string_view text, double size);  // estimated, in pixels

}  // namespace strata
