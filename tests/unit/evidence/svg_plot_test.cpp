#include "evidence/svg_plot.h"

#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "base/error.h"
#include "evidence/svg_axis.h"
#include "evidence/svg_canvas.h"
#include "support/xml_check.h"

namespace strata {
namespace {

using test::XmlCheck;
using test::XmlElement;

double of(const XmlElement& element, const std::string& key) { return std::stod(element.attributes.at(key)); }

void expect_inside(const XmlElement& element, double x, double y, const XmlElement& root) {
  EXPECT_TRUE(x >= 0 && x <= of(root, "width")) << element.name << " x " << x;
  EXPECT_TRUE(y >= 0 && y <= of(root, "height")) << element.name << " y " << y;
}

// Well-formed, and every shape and text inside the view box. A text's width is the estimate that also cuts it.
std::vector<XmlElement> checked(const std::string& svg) {
  std::vector<XmlElement> elements = XmlCheck::elements(svg);
  const XmlElement& root = elements.front();
  EXPECT_EQ(root.name, "svg");
  EXPECT_EQ(root.attributes.at("viewBox"), "0 0 " + root.attributes.at("width") + " " + root.attributes.at("height"));
  EXPECT_EQ(elements[1].name, "title");
  EXPECT_EQ(elements[2].name, "rect");  // the background, over everything
  EXPECT_EQ(elements[2].attributes.at("fill"), "#ffffff");
  EXPECT_EQ(of(elements[2], "width"), of(root, "width"));
  for (const XmlElement& element : elements) {
    for (const auto& [key, value] : element.attributes) {
      EXPECT_EQ(value.find("nan"), std::string::npos) << element.name << ' ' << key;
      EXPECT_EQ(value.find("inf"), std::string::npos) << element.name << ' ' << key;
    }
    if (element.name == "line") {
      expect_inside(element, of(element, "x1"), of(element, "y1"), root);
      expect_inside(element, of(element, "x2"), of(element, "y2"), root);
    } else if (element.name == "rect") {
      expect_inside(element, of(element, "x") + of(element, "width"), of(element, "y") + of(element, "height"), root);
    } else if (element.name == "circle") {
      expect_inside(element, of(element, "cx"), of(element, "cy"), root);
    } else if (element.name == "polyline" || element.name == "polygon") {
      std::istringstream points(element.attributes.at("points"));
      double x = 0, y = 0;
      for (char comma = 0; points >> x >> comma >> y;) expect_inside(element, x, y, root);
    } else if (element.name == "text") {
      const bool upwards = element.attributes.contains("transform");
      const double size = of(element, "font-size"), width = text_width(element.text, size);
      const std::string& anchor = element.attributes.at("text-anchor");
      const double before = anchor == "start" ? 0 : anchor == "middle" ? width / 2 : width;
      double x = of(element, "x"), y = of(element, "y");
      (upwards ? y : x) -= upwards ? width - before : before;
      expect_inside(element, x, y, root);
      (upwards ? y : x) += width;
      expect_inside(element, x, y, root);
    }
  }
  return elements;
}

int count(const std::vector<XmlElement>& elements, const std::string& name) {
  int found = 0;
  for (const XmlElement& element : elements) found += element.name == name;
  return found;
}

bool says(const std::vector<XmlElement>& elements, const std::string& text) {
  for (const XmlElement& element : elements)
    if (element.name == "text" && element.text.find(text) != std::string::npos) return true;
  return false;
}

LineChart speeds() {
  return {.title = "Prompt speed by length",
          .subtitle = "cpu-avx512, median of 5",
          .x = {.label = "prompt (tokens)", .scale = AxisScale::Log2, .binary = true},
          .y = {.label = "speed (tokens/s)", .from_zero = true},
          .series = {{"matmul = avx512", {{1024, 800, 780, 815}, {4096, 760, 751, 770}, {32768, 610}}},
                     {"matmul = portable", {{1024, 210, 208, 213}, {4096, 205}, {32768, 180}}}}};
}

TEST(SvgPlot, ALineChartHasItsLabelsTicksAndLegend) {
  const std::string svg = line_chart_svg(speeds());
  const auto elements = checked(svg);
  for (const char* text : {"Prompt speed by length", "cpu-avx512, median of 5", "prompt (tokens)", "speed (tokens/s)",
                           "matmul = avx512", "matmul = portable", "1K", "4K", "32K", "200", "800"})
    EXPECT_TRUE(says(elements, text)) << text;
  EXPECT_EQ(count(elements, "polyline"), 2);
  EXPECT_EQ(count(elements, "circle"), 4);  // three points and the legend
  EXPECT_EQ(line_chart_svg(speeds()), svg);
}

TEST(SvgPlot, PointsStandWhereTheirValuesAre) {
  const PlotAxis axis{.label = {}, .scale = AxisScale::Log2};
  const AxisMap map(axis, {1, 16}, 0, 1000);
  EXPECT_NEAR(map.place(4), 500, 1e-9);
  EXPECT_NEAR(map.place(2) - map.place(1), map.place(16) - map.place(8), 1e-9);
  const AxisMap up({.label = {}, .from_zero = true}, {10}, 100, 0);
  EXPECT_NEAR(up.place(0), 100, 1e-9);
  EXPECT_NEAR(up.place(5), 50, 1e-9);
}

TEST(SvgPlot, HostileLabelsAreEscapedAndCut) {
  LineChart chart = speeds();
  chart.title = "</title><script>alert(1)</script> & \"quoted\" 'text'";
  chart.x.label = std::string("nul \0 bell \a esc \x1b[31m", 22);
  chart.y.label = "\xff\xfe bad \xed\xa0\x80 \xc0\xaf \xf4\x90\x80\x80 cut \xe2\x82";
  chart.series[0].name = std::string(5000, '<');
  chart.series[1].name = "\xe6\xa8\xa1\xe5\x9e\x8b ]]> <!-- ";
  const auto elements = checked(line_chart_svg(chart));
  EXPECT_EQ(count(elements, "script"), 0);
  EXPECT_TRUE(says(elements, "</title><script>"));
  EXPECT_TRUE(says(elements, "\xe6\xa8\xa1\xe5\x9e\x8b ]]> <!-- "));
  EXPECT_EQ(xml_text("a<b>&\"\x01\xff\n"), "a&lt;b&gt;&amp;&quot;\xEF\xBF\xBD\xEF\xBF\xBD ");
}

TEST(SvgPlot, WhatIsNoNumberIsLeftOutAndCounted) {
  LineChart chart = speeds();
  chart.series[0].points.push_back({NAN, 1});
  chart.series[0].points.push_back({65536, INFINITY});
  chart.series[0].points.push_back({0, 5});  // not on a logarithmic axis
  chart.series[1].points = {{1024, -INFINITY}, {2048, 1e300}};
  EXPECT_TRUE(says(checked(line_chart_svg(chart)), "5 values not shown"));
  chart.series[0].points = {{1024, 7, NAN, 8}};  // a single point, half an interval
  checked(line_chart_svg(chart));
}

TEST(SvgPlot, EmptyDataSayItAndEqualValuesHaveARange) {
  EXPECT_TRUE(says(checked(line_chart_svg({})), "no data"));
  EXPECT_TRUE(says(checked(ratio_chart_svg({})), "no data"));
  EXPECT_TRUE(says(checked(heat_map_svg({})), "no data"));
  EXPECT_TRUE(says(checked(stacked_bars_svg({})), "no data"));
  for (const double value : {0.0, 1.0, -3.0, 1e-200, 1e29, -1e29, 123456789.0})
    for (const bool from_zero : {false, true}) {
      LineChart chart;
      chart.y.from_zero = from_zero;
      chart.series = {{"one", {{1, value}, {2, value}}}};
      const auto elements = checked(line_chart_svg(chart));
      EXPECT_EQ(count(elements, "circle"), 3) << value;
    }
}

TEST(SvgPlot, WideAndNarrowRangesHaveAFewTicks) {
  for (const auto& [low, high] : {std::pair(0.0, 1.0), std::pair(-1e29, 1e29), std::pair(1e6, 1e6 + 1e-6),
                                  std::pair(0.93, 1.07), std::pair(3.0, 3.5)})
    for (const AxisScale scale : {AxisScale::Linear, AxisScale::Log2}) {
      const AxisMap map({.label = {}, .scale = scale}, {low, high}, 0, 500);
      EXPECT_TRUE(map.ticks().size() >= 1 && map.ticks().size() <= 13) << low << ' ' << map.ticks().size();
      for (const AxisMap::Tick& tick : map.ticks()) EXPECT_TRUE(tick.at >= -1e-6 && tick.at <= 500 + 1e-6) << tick.text;
    }
}

TEST(SvgPlot, DocumentsAreBounded) {
  LineChart chart;
  for (int i = 0; i < 40; ++i) {
    chart.series.push_back({"series " + std::to_string(i), {}});
    for (int j = 0; j < 5000; ++j) chart.series.back().points.push_back({j * 1.0, j * 1.0 + i, j - 1.0, j + 1.0});
  }
  const std::string svg = line_chart_svg(chart);
  EXPECT_LT(svg.size(), 6u << 20);
  const auto elements = checked(svg);
  EXPECT_TRUE(says(elements, "24 more series not shown"));
  EXPECT_TRUE(says(elements, "points thinned out"));
  HeatMap map;
  map.columns.assign(300, "column");
  map.rows.assign(300, "row");
  map.values.assign(90000, 0.5);
  EXPECT_TRUE(says(checked(heat_map_svg(map)), "64 of 300 rows"));
}

TEST(SvgPlot, ARatioPlotShowsPairsMedianIntervalAndGate) {
  RatioChart chart{.title = "B against A", .label = "speed of B against A (%)"};
  chart.rows.push_back({"prefill@4K", {{1.07}, {1.08, true}, {1.09}}, 1.08, 1.07, 1.09, 1.05, "+8.0 %, pass"});
  chart.rows.push_back({"decode@4K", {{0.99}, {1.0}, {NAN}}, 0.99, -INFINITY, INFINITY, std::nullopt, "no gate"});
  const auto elements = checked(ratio_chart_svg(chart));
  for (const char* text :
       {"prefill@4K", "+8.0 %, pass", "disturbed pair", "gate", "speed of B against A (%)", "1 value not"})
    EXPECT_TRUE(says(elements, text)) << text;
  int hollow = 0, gates = 0;
  for (const XmlElement& element : elements) {
    hollow += element.name == "circle" && element.attributes.at("fill") == SvgCanvas::kPaper;
    gates += element.name == "line" && element.attributes.at("stroke") == "#c1121f";
  }
  EXPECT_EQ(hollow, 2);  // and in the legend
  EXPECT_EQ(gates, 2);
}

TEST(SvgPlot, AHeatMapHasEveryCellWithItsTextAndADashForWhatIsMissing) {
  HeatMap map{.title = "Needle", .x_label = "length (tokens)", .y_label = "depth (%)", .value_label = "found (share)"};
  map.columns = {"1K", "4K"};
  map.rows = {"0", "50", "100"};
  map.values = {1, 0.5, 0, 1, NAN, 1};
  const auto elements = checked(heat_map_svg(map));
  for (const char* text : {"1K", "50", "0.5", "length (tokens)", "depth (%)", "found (share)"})
    EXPECT_TRUE(says(elements, text)) << text;
  int dashes = 0;
  for (const XmlElement& element : elements) dashes += element.name == "text" && element.text == "-";
  EXPECT_EQ(dashes, 1);
  map.texts = {"20/20", "10/20", "0/20", "20/20", "", "20/20"};
  EXPECT_TRUE(says(checked(heat_map_svg(map)), "10/20"));
  map.values.pop_back();
  EXPECT_THROW(heat_map_svg(map), Error);
}

TEST(SvgPlot, StackedBarsShowPartsAndTheirSum) {
  StackedBars chart{.title = "Decode", .label = "time (ms)", .names = {"matmul", "attention", "rest"}};
  chart.bars = {{"A", {12, 6, 2}}, {"B", {9, NAN, -1}}};
  const auto elements = checked(stacked_bars_svg(chart));
  for (const char* text : {"matmul", "attention", "rest", "12", "20", "time (ms)", "2 parts missing"})
    EXPECT_TRUE(says(elements, text)) << text;
}

TEST(XmlCheck, Refuses) {
  for (const char* wrong : {"<a>", "<a></b>", "<a x=1/>", "<a>&</a>", "<a/><b/>", "<a x=\"1\" x=\"2\"/>", "<a>\x01</a>",
                            "<a>\xff</a>", "text", "<a x=\"<\"/>"})
    EXPECT_THROW(XmlCheck::elements(wrong), std::runtime_error) << wrong;
}

}  // namespace
}  // namespace strata
