#include "evidence/ab_record.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "support/xml_check.h"
#include "unit/evidence/ab_case.h"

namespace strata {
namespace {

using nlohmann::ordered_json;

AbTrial full_trial() {
  AbPlan plan = test::ab_plan("prefill@1k>=+5%,decode>=-3%,holdout prefill@4k>=+2.5%");
  plan.lengths = {1024, 4096};
  AbTrial trial = test::steady_trial(plan, 1.0731234567891);
  trial.facts = {{"device", "a \"processor\"\n"}, {"date", "2026-11-29"}};
  trial.cells[0].flags = {"load of others: 12 %", "two\nlines"};
  trial.outputs[1] = {4096, false, 3, 2, HUGE_VAL};
  return trial;
}

std::string text_of(const AbTrial& trial) { return ab_record_text(trial, judge(trial)); }

TEST(AbRecord, ComesBackAsItWasWithTheSameVerdict) {
  const AbTrial trial = full_trial();
  const std::string text = text_of(trial);
  const AbRecord record = parse_ab_record(text, "record");
  EXPECT_EQ(record.hash, plan_hash(trial.plan));
  EXPECT_EQ(record.verdict, "PROMOTE");
  EXPECT_EQ(to_string(judge(record.trial).verdict), record.verdict);
  EXPECT_EQ(text_of(record.trial), text);
  EXPECT_EQ(ab_report_text(record.trial, judge(record.trial)), ab_report_text(trial, judge(trial)));
}

std::string refusal(const std::string& text) {
  try {
    parse_ab_record(text, "x.json");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Format);
    EXPECT_EQ(error.where(), "x.json");
    return error.message();
  }
  return "nothing was refused";
}

void expect_refused(const std::function<void(ordered_json&)>& change, const std::string& with) {
  ordered_json document = ordered_json::parse(text_of(full_trial()));
  change(document);
  const std::string what = refusal(document.dump());
  EXPECT_NE(what.find(with), std::string::npos) << what << "\nexpected: " << with;
}

TEST(AbRecord, ChangesAfterTheFactAreRefusedByName) {
  expect_refused([](auto& d) { d["plan"]["gates"][0] = "prefill@1k>=+4%"; },
                 "the plan was changed after the trial began");
  expect_refused([](auto& d) { d["plan"]["pairs"] = 4; }, "the plan was changed");
  expect_refused([](auto& d) { d["plan"]["lengths"].push_back(8192); }, "the plan was changed");
  expect_refused([](auto& d) { d["plan_hash"] = "0000000000000000"; }, "the plan was changed");
  expect_refused([](auto& d) { d["schema"] = 2; }, "schema version 2, this program reads 1");
  expect_refused([](auto& d) { d["kind"] = "parity"; }, "is no record of a paired trial");
  expect_refused([](auto& d) { d["cells"].push_back(d["cells"][0]); }, "is there twice");
  expect_refused([](auto& d) { d["cells"][0]["attempt"] = 1; }, "repeats an attempt that did not fail");
}

// With a hash that fits, as somebody who edits both would write it.
TEST(AbRecord, ARecordThatNoTrialCanMakeIsRefused) {
  const auto with_hash = [](const std::function<void(AbPlan&)>& change) {
    AbTrial trial = full_trial();
    change(trial.plan);
    return refusal(text_of(trial));
  };
  EXPECT_NE(with_hash([](AbPlan& plan) { plan.overrides[1].clear(); }).find("do not differ"), std::string::npos);
  EXPECT_NE(with_hash([](AbPlan& plan) { plan.gates.clear(); }).find("without gates"), std::string::npos);
  EXPECT_NE(with_hash([](AbPlan& plan) { plan.lengths = {1024}; }).find("its length is none"), std::string::npos);
  EXPECT_NE(with_hash([](AbPlan& plan) { plan.pairs = 4; }).find("outside the planned pairs"), std::string::npos);
}

TEST(AbRecord, HostileTextsAreOneClearError) {
  for (const char* text :
       {"", "[]", "null", "{", "\"strata ab\"", "{\"kind\":\"strata ab\"}", "\xff\xfe", "{\"kind\":7}"})
    EXPECT_NE(refusal(text), "nothing was refused") << text;
  EXPECT_NE(refusal(std::string(100000, '[')).find("deep"), std::string::npos) << refusal(std::string(100000, '['));
  expect_refused([](auto& d) { d["cells"] = 3; }, "a list");
  expect_refused([](auto& d) { d["cells"][1]["pair"] = 1.5; }, "whole number");
  expect_refused([](auto& d) { d["cells"][1]["pair"] = 1e300; }, "whole number");
  expect_refused([](auto& d) { d["cells"][1]["seconds"] = "fast"; }, "is no record");
  expect_refused([](auto& d) { d["cells"][1]["seconds"] = -1; }, "a time that is none");
  expect_refused([](auto& d) { d["cells"][1]["side"] = "C"; }, "there is no side \"C\"");
  expect_refused([](auto& d) { d["cells"][1]["metric"] = nullptr; }, "is no record");
  expect_refused([](auto& d) { d["plan"]["gates"][0] = "rm -rf"; }, "expected prefill or decode");
  expect_refused([](auto& d) { d["plan"].erase("pairs"); }, "is no record");
  expect_refused([](auto& d) { d["plan"]["same_bits"] = 1; }, "is no record");
  expect_refused([](auto& d) { d["facts"] = {{"device", 3}}; }, "is no record");
}

TEST(AbRecord, TheRawLogHasToSayTheSame) {
  const AbRecord record = parse_ab_record(text_of(full_trial()), "record");
  std::string log = "strata ab\n" + plan_line(record.trial.plan) + "\narm matmul = avx2\n";
  for (const AbCell& cell : record.trial.cells) log += cell_line(cell) + "\n";
  EXPECT_NO_THROW(check_raw_log(record, log, "log"));
  std::string other = log;
  other[other.find(" s, output")] = '9';
  EXPECT_THROW(check_raw_log(record, other, "log"), Error);
  EXPECT_THROW(check_raw_log(record, log.substr(0, log.size() - 10), "log"), Error);
  EXPECT_THROW(check_raw_log(record, log + cell_line(record.trial.cells[0]) + "\n", "log"), Error);
  EXPECT_THROW(check_raw_log(record, "plan 0000000000000000\n", "log"), Error);
  EXPECT_THROW(check_raw_log(record, "", "log"), Error);
}

TEST(AbRecord, NamesStayInTheirFolder) {
  for (const char* name : {"wy-prefill.2", "A_1"}) EXPECT_NO_THROW(check_record_name(name)) << name;
  for (const char* name : {"", "..", "../x", "a/b", ".hidden", "-o", "a b", "a\nb"})
    EXPECT_THROW(check_record_name(name), Error) << name;
  EXPECT_THROW(check_record_name(std::string(101, 'a')), Error);
}

TEST(AbReport, SaysWhatDecidedAndDrawsIt) {
  AbTrial trial = full_trial();
  const std::string text = ab_report_text(trial, judge(trial));
  for (const char* part :
       {"B: arm.matmul=avx2", "prefill@4K", "+7.3 %", "gate holdout prefill@4K>=+2.5%", "pass", "verdict: PROMOTE",
        "outputs@1K: the same bits", "arms of matmul@1K: A avx512, B avx2", "1/10"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  const auto elements = test::XmlCheck::elements(ab_report_svg(trial, judge(trial), "trial"));
  int gates = 0;
  for (const auto& element : elements) gates += element.name == "line" && element.attributes.at("stroke") == "#c1121f";
  EXPECT_EQ(gates, 1 + 4);  // the legend and every row
  trial.cells.clear();
  EXPECT_NE(ab_report_text(trial, judge(trial)).find("not measured"), std::string::npos);
  test::XmlCheck::elements(ab_report_svg(trial, judge(trial), "trial"));
}

}  // namespace
}  // namespace strata
