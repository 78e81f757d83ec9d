#!/usr/bin/env bash
# Makes the tables of docs/performance.md that `./run bench` measured.
# usage: performance_page.sh RESULTS [PAGE]
# RESULTS holds kernels.json, models.json, ceilings-*.json and profile-*.json. Without PAGE the tables are printed; with
# it they replace what stands between its two markers, and roofline.svg is copied beside it as plots/roofline-cpu.svg.
set -euo pipefail
(($# == 1 || $# == 2)) || { echo "usage: performance_page.sh RESULTS [PAGE]" >&2; exit 2; }
results="$1"
for name in kernels models ceilings-before ceilings-after profile-qwen35 profile-moe; do
  [[ -s "$results/$name.json" ]] || { echo "performance_page.sh: $results/$name.json is missing: run ./run bench" >&2; exit 1; }
done

kernels() {
  jq -r '
    def percent: . * 100 | round | tostring + " %";
    def cell: if . == null then "-" else (.operations / .median_s / 1e9 | round | tostring) + ", " + (.share | percent)
      + (if .bound_by == "peak" then " p" else "" end) end;
    def giga: . / 1e8 | round / 10 | tostring;
    "\(.ceilings.threads) threads read \(.ceilings.read_bytes_per_s | giga) GB/s and multiply-add \(.ceilings.int8_operations_per_s / 1e9 | round) Gop/s in int8, \(.ceilings.f32_operations_per_s / 1e9 | round) in f32 (medians of the run).",
    "Gop/s and the share of the least possible time, by reading or, marked p, by multiply-adds:",
    "",
    "| weights | 1 row | 4 rows | 16 rows | 256 rows |",
    "|---|---:|---:|---:|---:|",
    (.rows | reduce .[] as $row ([]; if any(.[]; .[0].weights == $row.weights) then map(if .[0].weights == $row.weights then . + [$row] else . end) else . + [[$row]] end)
      | .[] | . as $type | "| \($type[0].weights) | " + ([1, 4, 16, 256] | map(. as $n | first($type[] | select(.rows == $n)) // null | cell) | join(" | ")) + " |"),
    "",
    "| aim | share | reached | |",
    "|---|---:|---:|---|",
    (.rows[] | select(.target) | "| \(.weights), \(if .rows == 1 then "one row" else "\(.rows) rows" end), of \(if .rows == 1 then "reading" else "the int8 peak" end) | \(.target | percent) | \(.share | percent) | \(if .holds then "holds" else "**missed**" end) |")
  ' "$results/kernels.json"
}

# Aims of a model of 604 MB (Q8_0) or 322 MB (Q4_0), where 33 GB/s are read: scaled by size, and for output by what is
# read here, the mean of before and after.
models() {
  jq -r --slurpfile before "$results/ceilings-before.json" --slurpfile after "$results/ceilings-after.json" '
    def reading: .[0].ceilings[] | select(.name == "read") | .bytes_per_s;
    ((($before | reading) + ($after | reading)) / 2) as $read
    | def tenth: . * 10 | round / 10;
    def aim: if .model_type | test("qwen35.*Q8_0") then {mb: 604, out: 45, prompt: 300}
      elif .model_type | test("qwen35.*Q4_0") then {mb: 322, out: 85, prompt: 508} else null end;
    "Reading gave \($before | reading / 1e9 | tenth) GB/s before these models and \($after | reading / 1e9 | tenth) after.",
    "",
    "| model | test | tokens/s | GB/s of weights | aim at 33 GB/s | aim here | |",
    "|---|---|---:|---:|---:|---:|---|",
    (.[] | aim as $aim | ((($aim.mb // 1) * 1e6 / .model_size)) as $size | (.n_gen > 0) as $out
      | (if $aim == null then null elif $out then $aim.out * $size else $aim.prompt * $size end) as $there
      | (if $there == null then null elif $out then $there * $read / 33e9 else $there end) as $here
      | "| \(.model_type), \(.model_size / 1048576 | round) MiB | \(if $out then "tg\(.n_gen)" else "pp\(.n_prompt)" end) | \(.avg_ts | tenth) ± \(.stddev_ts | tenth) | \(if $out then .avg_ts * .model_size / 1e9 | tenth else "" end) | \($there // "" | if . == "" then . else tenth end) | \($here // "" | if . == "" then . else tenth end) | \(if $here == null then "" elif .avg_ts >= $here then "holds" else "**missed**" end) |")
  ' "$results/models.json"
}

shares() {
  echo "| part of a prompt | qwen35, dense | qwen3moe |"
  echo "|---|---:|---:|"
  jq -rn --slurpfile dense "$results/profile-qwen35.json" --slurpfile moe "$results/profile-moe.json" '
    def parts: .[0].profile.stages[] | select(.stage == "prompt") | .parts
      | reduce .[] as $part ({}; .[$part.name] += ($part.share // 0));
    def percent: if . == null then "-" else . * 1000 | round / 10 | tostring + " %" end;
    ($dense | parts) as $d | ($moe | parts) as $m
    | (($d.matmul // 0) + ($d.experts // 0)) as $ds | (($m.matmul // 0) + ($m.experts // 0)) as $ms
    | "| products with weights (aim: 85 %) | \($ds | percent) | \($ms | percent) |",
      (($d + $m) | keys | map(select(. != "matmul" and . != "experts")) | map({name: ., d: $d[.], m: $m[.]})
       | sort_by(-([.d // 0, .m // 0] | max)) | .[] | select(([.d // 0, .m // 0] | max) >= 0.0005)
       | "| \(.name) | \(.d | percent) | \(.m | percent) |")
  '
}

tables() {
  jq -r '.[0] | "\(.cpu_info); build \(.build_commit)."' "$results/models.json"
  kernels
  echo
  models
  echo
  shares
}

if (($# == 1)); then
  tables
  exit
fi
page="$2"
grep -q '^<!-- bench: begin' "$page" && grep -q '^<!-- bench: end' "$page" ||
  { echo "performance_page.sh: $page has no markers <!-- bench: begin --> and <!-- bench: end -->" >&2; exit 1; }
made="$(mktemp)"
trap 'rm -f "$made"' EXIT
{
  sed '/^<!-- bench: begin/q' "$page"
  echo
  tables
  echo
  sed -n '/^<!-- bench: end/,$p' "$page"
} >"$made"
cp "$made" "$page"
cp "$results/roofline.svg" "$(dirname "$page")/plots/roofline-cpu.svg"
