// Records of paired trials: records/ab/NAME.json (schema version 1) and the raw log beside it, NAME.log.
#pragma once

#include <string>
#include <vector>

#include "evidence/ab.h"

namespace strata {

std::string ab_record_path(const std::string& folder, const std::string& name);
// Error{Usage} unless the name is made of letters, digits, '.', '-' and '_', and does not begin with '.' or '-'.
void check_record_name(const std::string& name);

// One line of the raw log.
std::string plan_line(const AbPlan& plan);  // "plan 0123456789abcdef"
std::string cell_line(const AbCell& cell);

// The document, with the plan's hash and the verdict.
std::string ab_record_text(const AbTrial& trial, const AbJudgement& judgement);

struct AbRecord {
  AbTrial trial;
  std::string hash;     // of the plan, as it was before the first run
  std::string verdict;  // as recorded
};
// Error{Format} for what is no record of this schema, or holds a trial that cannot be: a plan that does not have the
// recorded hash (gates changed after the fact), cells that are not those of the plan. Takes no hostile text further
// than that: bounded depth, size and numbers.
AbRecord parse_ab_record(const std::string& text, const std::string& where);
AbRecord read_ab_record(const std::string& path);
// Error{Format} unless the raw log holds this plan and exactly these cells, in their order.
void check_raw_log(const AbRecord& record, const std::string& log, const std::string& where);

// As tables for people.
std::string ab_report_text(const AbTrial& trial, const AbJudgement& judgement);
// Ratios of every pair with medians, intervals and gates.
std::string ab_report_svg(const AbTrial& trial, const AbJudgement& judgement, const std::string& name);

}  // namespace strata
