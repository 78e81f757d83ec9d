#include "cli/version.h"

#include "version_commit.h"  // written at build time: STRATA_COMMIT, STRATA_BUILD_NUMBER

namespace strata::cli {

std::string build_commit() { return STRATA_COMMIT; }
int build_number() { return STRATA_BUILD_NUMBER; }

std::string version_text() {
  const std::string commit = build_commit();
  return commit.empty() ? STRATA_VERSION : STRATA_VERSION " (" + commit + ")";
}

}  // namespace strata::cli
