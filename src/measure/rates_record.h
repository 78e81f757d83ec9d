// Records of rates: records/rates/NAME.json (schema version 1), a raw log of each cell beside it, NAME.LENGTH.log, and
// the tables that one record or several make.
#pragma once

#include <string>
#include <vector>

#include "evidence/ab.h"
#include "measure/rates.h"

namespace strata {

struct RatesRecord {
  std::string name;  // of the record, or empty
  RatesPlan plan;
  std::string prompt;    // what prompts are made of: "trace of seed 1", "text 0123456789abcdef"
  NamedValues model;     // file, hash, type, bytes, parameters
  NamedValues settings;  // that are not at their default
  NamedValues facts;     // program, binary_hash, compiler, device, instruction_sets, threads, began, ended, arms
  std::vector<RatesCell> cells;
  std::string stopped;  // why it ended early; empty: it did not
};

std::string rates_record_path(const std::string& folder, const std::string& name);
std::string rates_log_path(const std::string& record_path, int64_t length);

// Lines of a cell's raw log: of each run, and of the cell where something is missing.
std::string rates_run_line(const RatesCell& cell, size_t run);
std::string rates_missing_line(const RatesCell& cell);

std::string rates_record_text(const RatesRecord& record);
// Error{Format} for what is no such record; bounded depth, size and numbers. `name`: of the record.
RatesRecord parse_rates_record(const std::string& text, const std::string& where, const std::string& name = {});
RatesRecord read_rates_record(const std::string& path);
// Error{Format} unless the log holds exactly the runs of the cell.
void check_rates_log(const RatesCell& cell, const std::string& log, const std::string& where);

// Error{Usage} naming both records and what differs: tables do not mix builds, devices, or ways of measuring.
void check_same_table(const std::vector<RatesRecord>& records);

// Two tables, prompt and output, a row for each record; then why cells are empty, and what the rates are.
std::string rates_markdown(const std::vector<RatesRecord>& records);
std::string rates_json(const std::vector<RatesRecord>& records);

}  // namespace strata
