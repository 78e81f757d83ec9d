#include <string_view>
#include <unordered_map>

#include "device/amdsim/lanes.h"

namespace strata::amdsim {
namespace {

using Table = std::unordered_map<std::string_view, OpEntry>;

Table make_table() {
  Table table;
  for (const auto& group :
       {scalar_ops(), scalar_control_ops(), vector_ops(), vector_compare_ops(), vector_half_ops(), vector_lane_ops(),
        packed_ops(), matrix_ops(), local_ops(), global_ops(), scalar_memory_ops()})
    for (const OpEntry& entry : group) table.emplace(entry.name, entry);
  return table;
}

}  // namespace

const OpEntry* find_op(const char* name) {
  static const Table table = make_table();
  const auto found = table.find(name);
  return found == table.end() ? nullptr : &found->second;
}

}  // namespace strata::amdsim
