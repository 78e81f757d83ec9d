// Statistics of samples.
#pragma once

#include <span>

namespace strata {

double mean(std::span<const double> samples);                // 0 for none
double standard_deviation(std::span<const double> samples);  // of the population they are drawn from (n - 1); 0 for one
double median(std::span<const double> samples);              // of an even number: between the middle two. 0 for none
// share 0 .. 1, linear between the two nearest samples; 0 for none.
double quantile(std::span<const double> samples, double share);

}  // namespace strata
