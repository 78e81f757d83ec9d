// The oracle and the portable arm against float64 results of an independent program.
#include <cstdlib>
#include <filesystem>

#include "support/gated_delta_case.h"
#include "support/safetensors_file.h"

namespace strata::test {
namespace {

Owned load(const SafetensorsFile& file, const std::string& name) {
  Owned owned(DType::F32, file.shape(name));
  assign(owned.t(), file.floats(name));
  return owned;
}

// Two float64 programs may each err as an f32 arm does, with the unit roundoff 2^-53 in place of 2^-24.
constexpr double kTwoFloat64 = 2 * 0x1p-29;

testing::AssertionResult close(const std::vector<double>& x, const std::vector<double>& y,
                               const std::vector<double>& bound, double share) {
  for (size_t i = 0; i < x.size(); ++i)
    if (!(std::fabs(x[i] - y[i]) <= share * bound[i]))
      return testing::AssertionFailure() << "element " << i << ": " << x[i] << " and " << y[i] << " +- "
                                         << share * bound[i];
  return testing::AssertionSuccess();
}

// Gates of the fixtures reach from -1e-5 over -30 to single tokens of -1e4; some are 0, some beta 0 or 1.
void check_group(const SafetensorsFile& file, const std::string& group, double state_storage) {
  const Owned q = load(file, group + ".q"), k = load(file, group + ".k"), v = load(file, group + ".v");
  const Owned g = load(file, group + ".g"), beta = load(file, group + ".beta");
  const std::vector<double> all_out = file.values(group + ".o");
  for (int64_t rows : {1, 37, 64, 65, 200}) {
    SCOPED_TRACE(group + ", " + std::to_string(rows) + " rows");
    const Owned state = load(file, group + ".h0");
    const Owned out(DType::F32, {rows, v.t().extent(1), v.t().extent(2)});
    GatedDeltaArgs args{q, k, v, g, beta, HeadMapping::Grouped, state, out};
    for (Tensor* tensor : {&args.q, &args.k, &args.v, &args.g, &args.beta}) *tensor = tensor->slice(0, rows);
    const GatedDeltaReference ref = gated_delta_reference(args);
    const std::vector<double> fixture_out(all_out.begin(), all_out.begin() + static_cast<int64_t>(ref.out.size()));
    const std::vector<double> fixture_state = file.values(group + ".h_final_T" + std::to_string(rows));

    EXPECT_TRUE(close(ref.out, fixture_out, ref.out_bound, kTwoFloat64)) << "oracle, out";
    std::vector<double> state_bound = ref.state_bound;
    for (size_t i = 0; i < state_bound.size(); ++i)
      state_bound[i] = kTwoFloat64 * state_bound[i] + state_storage * std::fabs(fixture_state[i]);
    EXPECT_TRUE(close(ref.state, fixture_state, state_bound, 1)) << "oracle, state";

    TestQueue queue;
    gated_delta(queue, args);
    for (size_t i = 0; i < state_bound.size(); ++i) state_bound[i] += ref.state_bound[i];
    std::vector<double> out_bound = ref.out_bound;
    for (double& bound : out_bound) bound *= 1 + kTwoFloat64;
    EXPECT_TRUE(within(out, fixture_out, out_bound)) << "out";
    EXPECT_TRUE(within(state, fixture_state, state_bound)) << "state";
  }
}

TEST(GatedDeltaFixture, IndependentFloat64Results) {
  const SafetensorsFile file(STRATA_SOURCE_DIR "/tests/fixtures/kernels/gdn_small.safetensors");
  check_group(file, "gdn_hk1_hv2_dk64_dv32_mild", 0);
  check_group(file, "gdn_hk1_hv2_dk64_dv32_hard", 0);
}

TEST(GatedDeltaFixture, FullFile) {
  const std::string path = STRATA_SOURCE_DIR "/../shared/fixtures/kernels/gdn.safetensors";
  if (std::getenv("TEST_ALL") == nullptr) GTEST_SKIP() << "set TEST_ALL=1 to run it";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "not here: " << path;
  const SafetensorsFile file(path);
  check_group(file, "gdn_hk1_hv2_dk64_dv32_mild", 0);
  check_group(file, "gdn_hk1_hv2_dk64_dv32_hard", 0);
  check_group(file, "gdn_hk2_hv6_dk128_dv128_mix", kU);  // final states are stored as f32
}

}  // namespace
}  // namespace strata::test
