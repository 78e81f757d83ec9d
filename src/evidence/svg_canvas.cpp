#include "evidence/svg_canvas.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

namespace strata {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
constexpr size_t kMaxText = 400;     // characters of a text that are kept
constexpr double kCharacter = 0.58;  // mean width of a character in ems, on the wide side for common fonts

// Bytes of the character at the beginning of `text`; 0 when it is none.
size_t character_bytes(std::string_view text) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  const size_t bytes = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4) return 0;
  uint32_t code = first & (0xFFu >> (bytes + 1));
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3F);
  }
  const bool shorter_form = code < (bytes == 4 ? 0x10000u : bytes == 3 ? 0x800u : 0x80u);
  const bool no_character = (code >= 0xD800 && code < 0xE000) || code > 0x10FFFF || code == 0xFFFE || code == 0xFFFF;
  return shorter_form || no_character ? 0 : bytes;
}

size_t characters(std::string_view text) {
  size_t count = 0;
  for (; !text.empty(); ++count) text.remove_prefix(std::max<size_t>(character_bytes(text), 1));
  return count;
}

std::string cut(std::string_view text, size_t limit) {
  if (characters(text) <= limit) return std::string(text);
  size_t bytes = 0;
  for (size_t i = 0; i + 1 < limit; ++i) bytes += std::max<size_t>(character_bytes(text.substr(bytes)), 1);
  return std::string(text.substr(0, bytes)) + "…";
}

// One digit after the point, none when it is 0.
std::string number(double value) {
  std::string text = fmt::format("{:.1f}", value == 0 ? 0.0 : value);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text == "-0" ? "0" : text;
}

std::string_view anchor_name(SvgAnchor anchor) {
  switch (anchor) {
    case SvgAnchor::Start: return "start";
    case SvgAnchor::Middle: return "middle";
    case SvgAnchor::End: return "end";
  }
  return "start";
}

bool finite(std::initializer_list<double> values) {
  return std::all_of(values.begin(), values.end(), [](double value) { return std::isfinite(value); });
}

}  // namespace

std::string xml_text(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t bytes = character_bytes(text);
    const char c = text.front();
    if (bytes == 0 || (bytes == 1 && static_cast<unsigned char>(c) < 0x20) || c == 0x7F)
      out += c == '\t' || c == '\n' ? std::string_view(" ") : kReplacement;
    else if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else
      out += text.substr(0, bytes);
    text.remove_prefix(std::max<size_t>(bytes, 1));
  }
  return out;
}

std::string_view series_colour(size_t index) {
  constexpr std::array<std::string_view, 16> kColours{"#0072b2", "#d55e00", "#009e73", "#aa4499", "#b8860b", "#332288",
                                                      "#2a8fc9", "#666666", "#882255", "#2f8f80", "#117733", "#7a7a29",
                                                      "#c0505f", "#5580b0", "#994455", "#8a6a00"};
  return kColours[index % kColours.size()];
}

double text_width(std::string_view text, double size) {
  return static_cast<double>(std::min(characters(text), kMaxText)) * kCharacter * size;
}

SvgCanvas::SvgCanvas(double width, double height, std::string_view name) : width_(width), height_(height) {
  const std::string said = xml_text(cut(name, kMaxText));
  body_ = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" role=\"img\" "
      "aria-label=\"{2}\" font-family=\"system-ui, 'Segoe UI', 'DejaVu Sans', Helvetica, Arial, sans-serif\">\n"
      "<title>{2}</title>\n",
      number(width), number(height), said);
  rect(0, 0, width, height, kPaper);
}

std::string SvgCanvas::x_of(double x) const { return number(std::clamp(x, 0.0, width_)); }
std::string SvgCanvas::y_of(double y) const { return number(std::clamp(y, 0.0, height_)); }

void SvgCanvas::rect(double x, double y, double width, double height, std::string_view fill, std::string_view stroke) {
  if (!finite({x, y, width, height}) || width < 0 || height < 0) return;
  const double right = std::clamp(x + width, 0.0, width_), bottom = std::clamp(y + height, 0.0, height_);
  x = std::clamp(x, 0.0, width_);
  y = std::clamp(y, 0.0, height_);
  body_ += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\" stroke=\"{}\"/>\n", number(x),
                       number(y), number(std::max(0.0, right - x)), number(std::max(0.0, bottom - y)), fill, stroke);
}

void SvgCanvas::line(double x1, double y1, double x2, double y2, std::string_view stroke, double thickness,
                     bool dashed) {
  if (!finite({x1, y1, x2, y2})) return;
  body_ +=
      fmt::format("<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" stroke=\"{}\" stroke-width=\"{}\"{}/>\n", x_of(x1),
                  y_of(y1), x_of(x2), y_of(y2), stroke, number(thickness), dashed ? " stroke-dasharray=\"5 4\"" : "");
}

void SvgCanvas::path(const Points& points, std::string_view stroke, double thickness) {
  std::string places;
  for (const auto& [x, y] : points)
    if (finite({x, y})) places += fmt::format("{}{},{}", places.empty() ? "" : " ", x_of(x), y_of(y));
  if (places.empty()) return;
  body_ += fmt::format(
      "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\" stroke-linejoin=\"round\"/>\n", places,
      stroke, number(thickness));
}

void SvgCanvas::text(double x, double y, std::string_view text, const SvgText& style) {
  if (text.empty() || !finite({x, y})) return;
  const double fits = std::max(2.0, style.room / (kCharacter * style.size));
  const std::string shown = cut(text, fits < static_cast<double>(kMaxText) ? static_cast<size_t>(fits) : kMaxText);
  body_ += fmt::format(
      "<text x=\"{0}\" y=\"{1}\" font-size=\"{2}\" text-anchor=\"{3}\" fill=\"{4}\"{5}{6}>{7}</text>\n", x_of(x),
      y_of(y), number(style.size), anchor_name(style.anchor), style.fill, style.bold ? " font-weight=\"600\"" : "",
      style.upwards ? fmt::format(" transform=\"rotate(-90 {} {})\"", x_of(x), y_of(y)) : std::string(),
      xml_text(shown));
}

void SvgCanvas::marker(double x, double y, size_t shape, std::string_view colour, double radius) {
  if (!finite({x, y})) return;
  const std::string_view fill = shape % 10 < 5 ? colour : kPaper;
  if (shape % 5 == 0) {
    body_ += fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"{}\" fill=\"{}\" stroke=\"{}\"/>\n", x_of(x), y_of(y),
                         number(radius), fill, colour);
    return;
  }
  Points corners;
  const double r = radius * 1.1;
  switch (shape % 5) {
    case 1:
      corners = {
          {x - radius, y - radius}, {x + radius, y - radius}, {x + radius, y + radius}, {x - radius, y + radius}};
      break;
    case 2: corners = {{x, y - r}, {x + r, y + r}, {x - r, y + r}}; break;
    case 3: corners = {{x, y - r * 1.2}, {x + r, y}, {x, y + r * 1.2}, {x - r, y}}; break;
    default: corners = {{x, y + r}, {x + r, y - r}, {x - r, y - r}}; break;
  }
  std::string places;
  for (const auto& [cx, cy] : corners) places += fmt::format("{}{},{}", places.empty() ? "" : " ", x_of(cx), y_of(cy));
  body_ += fmt::format("<polygon points=\"{}\" fill=\"{}\" stroke=\"{}\"/>\n", places, fill, colour);
}

void SvgCanvas::head(std::string_view title, std::string_view subtitle) {
  text(kMargin, 28, title, {.size = 16, .bold = true, .room = width_ - 2 * kMargin});
  text(kMargin, 47, subtitle, {.size = 12, .fill = kQuiet, .room = width_ - 2 * kMargin});
}

std::string SvgCanvas::finish() { return std::move(body_) + "</svg>\n"; }

}  // namespace strata
