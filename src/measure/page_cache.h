// What of a file lies in the system's page cache: the difference between a cold and a warm start.
#pragma once

#include <string>

namespace strata {

// Asks the system to forget the pages of a model's files, which must not be mapped now. Where it cannot (pages in use
// elsewhere, a file system in memory) they stay: cached_share() tells.
void drop_cached_pages(const std::string& model);

// 0 .. 1: how much of the model's files is in memory; -1 where the system does not say. Errors as MappedFile's.
double cached_share(const std::string& model);

}  // namespace strata
