#include "measure/disturbance.h"

#include <gtest/gtest.h>

namespace strata {
namespace {

LoadReading at(double wall) {
  return {.wall = wall, .own = 10, .busy = 100, .stolen = 1, .major_faults = 5, .megahertz = 3000};
}

TEST(Disturbance, QuietIntervalsHaveNoFlags) {
  LoadReading after = at(1);
  after.own += 2;  // two cores of this process
  after.busy += 2.03;
  after.megahertz = 2800;
  EXPECT_TRUE(disturbances(at(0), after, 3000).empty());
  EXPECT_TRUE(disturbances({}, {}, 0).empty());
}

TEST(Disturbance, EachKindIsNamedWithItsSize) {
  const auto flags = [](const LoadReading& after, double fastest = 3000) {
    return disturbances(at(0), after, fastest);
  };
  LoadReading faults = at(1), others = at(1), stolen = at(1), clock = at(1), unknown = at(1);
  faults.major_faults = 8;
  others.own += 1;
  others.busy += 1.5;
  stolen.stolen += 0.2;
  clock.megahertz = 2000;
  unknown.busy = unknown.megahertz = 0;
  EXPECT_EQ(flags(faults), std::vector<std::string>{"3 pages came from disk"});
  EXPECT_EQ(flags(others), std::vector<std::string>{"other processes took 50 % of a core"});
  EXPECT_EQ(flags(stolen), std::vector<std::string>{"the host took 20 % of a core"});
  EXPECT_EQ(flags(clock), std::vector<std::string>{"clock at 2000 MHz, 3000 before"});
  EXPECT_TRUE(flags(unknown).empty());
}

TEST(Disturbance, TicksOfTheSystemAreNoLoad) {
  LoadReading after = at(0.05);
  after.busy += 0.04;  // most of the interval, but four ticks
  EXPECT_TRUE(disturbances(at(0), after, 3000).empty());
}

TEST(Disturbance, ReadingsGoForward) {
  const LoadReading first = read_load();
  double sum = 0;
  for (int i = 0; i < 20000000; ++i) sum += i * 1e-9;
  const LoadReading second = read_load();
  EXPECT_GT(sum, 0);
  EXPECT_GT(second.wall, first.wall);
  EXPECT_GE(second.own, first.own);
  EXPECT_GE(second.busy, first.busy);
}

}  // namespace
}  // namespace strata
