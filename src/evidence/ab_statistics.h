// Intervals for the median of a few samples.
#pragma once

#include <cstdint>
#include <span>

namespace strata {

struct Interval {
  double low = 0, high = 0;
  double level = 0;  // the share of cases in which an interval made this way holds the median
};

// The narrowest pair of order statistics, as far from either end, that holds the median of the population with at least
// this confidence whatever its distribution: from the binomial distribution of how many samples lie below it, so that
// the rate of errors holds for five samples as for a thousand. Each end misses with at most half of 1 - confidence.
// Infinite ends when there are too few samples. Samples need not be drawn from one distribution, only each be as likely
// above the median as below.
Interval median_interval(std::span<const double> samples, double confidence);
int64_t samples_needed(double confidence);  // for finite ends

// Percentile bootstrap of the sample median. The medians of all resamples have a known distribution over the order
// statistics, so it is computed instead of drawn: no seed, no error of its own. Too narrow for few samples; `level` is
// the nominal one. At most 1000 samples; 0 for none.
Interval bootstrap_interval(std::span<const double> samples, double confidence);

}  // namespace strata
