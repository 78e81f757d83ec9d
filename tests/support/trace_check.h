// What must hold of every trace: bars of one line are disjoint or one lies inside the other.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace strata::test {

struct TraceBar {
  int64_t begin, end;  // nanoseconds
  std::string name, kind;
  nlohmann::json args;
  std::string parent;  // name of the innermost bar around it
};

// Bars by the name of their line, in the order of the file. Fails when one has no line, no time, or does not nest.
inline std::map<std::string, std::vector<TraceBar>> check_trace(const std::string& text) {
  std::map<std::string, std::vector<TraceBar>> lines;
  const nlohmann::json trace = nlohmann::json::parse(text, nullptr, false);
  if (trace.is_discarded()) {
    ADD_FAILURE() << "not JSON: " << text.substr(0, 400);
    return lines;
  }
  std::map<int64_t, std::string> names;
  std::map<int64_t, std::vector<TraceBar>> open;
  for (const nlohmann::json& event : trace.at("traceEvents")) {
    EXPECT_EQ(event.at("pid"), 1);
    if (event.at("ph") == "M") {
      if (event.at("name") == "thread_name") names[event.at("tid")] = event.at("args").at("name");
      continue;
    }
    EXPECT_EQ(event.at("ph"), "X");
    const auto nanoseconds = [&](const char* key) { return std::llround(event.at(key).get<double>() * 1e3); };
    const int64_t begin = nanoseconds("ts"), length = nanoseconds("dur"), line = event.at("tid");
    EXPECT_GE(begin, 0);
    EXPECT_GE(length, 0);
    EXPECT_TRUE(names.contains(line)) << "line without a name";
    TraceBar bar{begin, begin + length, event.at("name"), event.at("cat"), event.at("args"), ""};
    std::vector<TraceBar>& around = open[line];
    while (!around.empty() && around.back().end <= bar.begin) around.pop_back();
    if (!around.empty()) {
      bar.parent = around.back().name;
      EXPECT_GE(bar.begin, around.back().begin) << bar.name;
      EXPECT_LE(bar.end, around.back().end) << bar.name << " ends after " << bar.parent;
    }
    around.push_back(bar);
    lines[names[line]].push_back(bar);
  }
  return lines;
}

}  // namespace strata::test
