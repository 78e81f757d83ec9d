#include "measure/affinity.h"

#include <sched.h>

#include "base/error.h"
#include "base/settings_text.h"

namespace strata {
namespace {

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

// False when the text is no hexadecimal number of at most CPU_SETSIZE bits.
bool parse_mask(const std::string& mask, cpu_set_t& set) {
  CPU_ZERO(&set);
  const std::string digits = mask.starts_with("0x") || mask.starts_with("0X") ? mask.substr(2) : mask;
  if (digits.empty() || digits.size() > CPU_SETSIZE / 4) return false;
  for (size_t i = 0; i < digits.size(); ++i) {
    const int value = hex_value(digits[digits.size() - 1 - i]);
    if (value < 0) return false;
    for (size_t bit = 0; bit < 4; ++bit)
      if ((value >> bit & 1) != 0) CPU_SET(i * 4 + bit, &set);
  }
  return true;
}

}  // namespace

struct CpuMask::Saved {
  cpu_set_t set;
};

CpuMask::CpuMask(const std::string& mask) {
  cpu_set_t wanted;
  if (!parse_mask(mask, wanted))
    throw Error(ErrorKind::Usage, quoted_text(mask) + " is no mask of processors, such as 0x3", "-C");
  if (CPU_COUNT(&wanted) == 0) return;
  auto saved = std::make_unique<Saved>();
  if (::sched_getaffinity(0, sizeof saved->set, &saved->set) != 0 ||
      ::sched_setaffinity(0, sizeof wanted, &wanted) != 0)
    throw Error(ErrorKind::Usage, "the mask " + quoted_text(mask) + " has no processor that this program may use",
                "-C");
  saved_ = std::move(saved);
}

CpuMask::~CpuMask() {
  if (saved_ != nullptr) ::sched_setaffinity(0, sizeof saved_->set, &saved_->set);
}

}  // namespace strata
