// The parity runner itself: a right arm passes, each kind of defect fails, what cannot run is not a pass.
#include "evidence/parity.h"

#include <gtest/gtest.h>

#include "base/half.h"
#include "evidence/parity_case.h"
#include "ops/registry.h"

namespace strata {
namespace {

// y = 2 x, row by row; the defects of the arms are in their names.
struct DoubleArgs {
  Tensor x, y;  // f32 [rows, width]
};

void twice(const DoubleArgs& args, int64_t dropped_lane, float factor) {
  for (int64_t t = 0; t < args.x.extent(0); ++t)
    for (int64_t i = 0; i < args.x.extent(1); ++i)
      args.y.row<float>(t)[i] = i % 16 == dropped_lane ? 0.0f : args.x.row<float>(t)[i] * factor;
}
void right(Queue&, const DoubleArgs& args) { twice(args, -1, 2); }
void drops_a_lane(Queue&, const DoubleArgs& args) { twice(args, 3, 2); }
void imprecise(Queue&, const DoubleArgs& args) { twice(args, -1, 2.0001f); }
void writes_past_the_end(Queue&, const DoubleArgs& args) {
  twice(args, -1, 2);
  args.y.row<float>(args.y.extent(0) - 1)[args.y.extent(1)] = 1;
}
void leaves_a_row(Queue&, const DoubleArgs& args) { twice({args.x.slice(0, args.x.extent(0) - 1), args.y}, -1, 2); }
void depends_on_the_batch(Queue&, const DoubleArgs& args) {
  twice(args, -1, args.x.extent(0) > 1 ? 2.0000002f : 2);  // within the bound, other bits
}
void writes_its_input(Queue&, const DoubleArgs& args) {
  twice(args, -1, 2);
  args.x.row<float>(0)[0] = 0;
}
std::string needs_a_card(const DoubleArgs&) { return "needs a card"; }

constexpr Arm<DoubleArgs> kArms[] = {
    {"right", always_runs<DoubleArgs>, right},
    {"drops_a_lane", always_runs<DoubleArgs>, drops_a_lane},
    {"imprecise", always_runs<DoubleArgs>, imprecise},
    {"writes_past_the_end", always_runs<DoubleArgs>, writes_past_the_end},
    {"leaves_a_row", always_runs<DoubleArgs>, leaves_a_row},
    {"depends_on_the_batch", always_runs<DoubleArgs>, depends_on_the_batch},
    {"writes_its_input", always_runs<DoubleArgs>, writes_its_input},
    {"on_a_card", needs_a_card, right},
};

void run_double(Queue& queue, const DoubleArgs& args) {
  choose_arm<DoubleArgs>(queue, "double", kArms, args).run(queue, args);
}

std::vector<std::function<ParityCase()>> cases(uint64_t seed) {
  return {[seed] {
    Random random(seed);
    CaseBuilder<DoubleArgs> build("5 rows of 40", run_double, kArms);
    build.args().x = build.memory().f32({5, 40}, random);
    build.args().y = build.memory().tensor(DType::F32, {5, 40}, {3});
    std::vector<double> expected, bound;
    for (int64_t t = 0; t < 5; ++t)
      for (int64_t i = 0; i < 40; ++i) {
        expected.push_back(2 * static_cast<double>(build.args().x.row<float>(t)[i]));
        bound.push_back(std::fabs(expected.back()) * 0x1p-22);
      }
    build.input("x", &DoubleArgs::x);
    build.output("y", &DoubleArgs::y, expected, bound);
    build.rows({&DoubleArgs::x, &DoubleArgs::y});
    return build.build();
  }};
}

ParityReport report_of(const std::string& name) {
  const OperatorEvidence evidence{"double", arm_infos(std::span<const Arm<DoubleArgs>>(kArms)), cases};
  for (const ArmInfo& arm : evidence.arms)
    if (arm.name == name) return run_parity(evidence, arm, {});
  return {};
}

TEST(Parity, ARightArmPasses) {
  const ParityReport report = report_of("right");
  EXPECT_TRUE(report.passed()) << (report.failures.empty() ? "did not run" : report.failures[0].what);
  EXPECT_EQ(report.elements, 200);
  EXPECT_EQ(report.controls, 1);
  EXPECT_EQ(report.mutants, 3);
  EXPECT_EQ(report.mutants_caught, 3);
  EXPECT_GE(report.variants, 5);  // again, 1 and 3 threads, rows by 1 and 3
}

TEST(Parity, EachDefectFails) {
  for (const char* arm :
       {"drops_a_lane", "imprecise", "writes_past_the_end", "leaves_a_row", "depends_on_the_batch", "writes_its_input"})
    EXPECT_FALSE(report_of(arm).passed()) << arm;
}

TEST(Parity, WhatCannotRunIsNotAPass) {
  const ParityReport report = report_of("on_a_card");
  EXPECT_FALSE(report.ran());
  EXPECT_FALSE(report.passed());
  EXPECT_EQ(report.refusals, std::vector<std::string>{"needs a card"});
}

// y = x, rounded to 16 bits: outputs of 2 bytes are compared, guarded and perturbed like those of 4.
void narrow(const DoubleArgs& args, uint16_t added, bool one_more) {
  for (int64_t t = 0; t < args.x.extent(0); ++t) {
    for (int64_t i = 0; i < args.x.extent(1); ++i) {
      const float x = args.x.row<float>(t)[i];
      const uint16_t rounded = args.y.dtype == DType::BF16 ? f32_to_bf16(x) : f32_to_f16(x);
      args.y.row<uint16_t>(t)[i] = static_cast<uint16_t>(rounded + added);
    }
    if (one_more) args.y.row<uint16_t>(t)[args.x.extent(1)] = 7;
  }
}
constexpr Arm<DoubleArgs> kNarrowArms[] = {
    {"right", always_runs<DoubleArgs>, [](Queue&, const DoubleArgs& args) { narrow(args, 0, false); }},
    {"one_ulp_off", always_runs<DoubleArgs>, [](Queue&, const DoubleArgs& args) { narrow(args, 1, false); }},
    {"one_more", always_runs<DoubleArgs>, [](Queue&, const DoubleArgs& args) { narrow(args, 0, true); }},
};
void run_narrow(Queue& queue, const DoubleArgs& args) {
  choose_arm<DoubleArgs>(queue, "narrow", kNarrowArms, args).run(queue, args);
}
ParityCase narrow_case(DType type, bool exact, uint64_t seed) {
  Random random(seed);
  CaseBuilder<DoubleArgs> build(std::string(to_string(type)), run_narrow, kNarrowArms);
  DoubleArgs& args = build.args();
  args.x = build.memory().f32({5, 33}, random);
  args.y = build.memory().tensor(type, {5, 34}, {3});  // the last column is not written
  std::vector<double> expected, bound;
  std::vector<uint8_t> written;
  for (int64_t t = 0; t < 5; ++t)
    for (int64_t i = 0; i < 34; ++i) {
      const float x = i < 33 ? args.x.row<float>(t)[i] : 0;
      const float rounded = type == DType::BF16 ? bf16_to_f32(f32_to_bf16(x)) : f16_to_f32(f32_to_f16(x));
      expected.push_back(static_cast<double>(exact ? rounded : x));
      bound.push_back(exact ? 0
                            : static_cast<double>(std::fabs(x)) * (type == DType::BF16 ? 0x1p-8 : 0x1p-11) + 0x1p-25);
      written.push_back(i < 33);
    }
  build.input("x", &DoubleArgs::x);
  build.output("y", &DoubleArgs::y, expected, bound, written);
  build.rows({&DoubleArgs::x, &DoubleArgs::y});
  return build.build();
}
std::vector<std::function<ParityCase()>> narrow_cases(uint64_t seed) {
  std::vector<std::function<ParityCase()>> list;
  for (DType type : {DType::BF16, DType::F16})
    for (bool exact : {true, false}) list.push_back([=] { return narrow_case(type, exact, seed); });
  return list;
}

TEST(Parity, OutputsOfTwoBytes) {
  const OperatorEvidence evidence{"narrow", arm_infos(std::span<const Arm<DoubleArgs>>(kNarrowArms)), narrow_cases};
  for (const ArmInfo& arm : evidence.arms) {
    const ParityReport report = run_parity(evidence, arm, {});
    EXPECT_EQ(report.passed(), arm.name == "right")
        << arm.name << (report.failures.empty() ? "" : report.failures[0].what);
    if (arm.name != "right") continue;
    EXPECT_EQ(report.elements, 4 * 5 * 33);
    EXPECT_EQ(report.controls, 4);
    EXPECT_GT(report.utilisation, 0.9);
  }
}

TEST(Parity, EveryOperatorHasArmsAndCases) {
  for (const OperatorEvidence& evidence : operator_evidence()) {
    EXPECT_FALSE(evidence.arms.empty()) << evidence.op;
    EXPECT_FALSE(evidence.cases(1).empty()) << evidence.op;
  }
}

}  // namespace
}  // namespace strata
