#!/usr/bin/env bash
# The parity suite of every operator under the four tools of compute-sanitizer, in parts that run side by side. What has
# ended is kept in OUT/sanitizer.lines: a second call goes on with the rest.
#   gpu_sanitize.sh STRATA OUT DEVICE SECONDS [TOOL:OPERATOR ...]: the program, a folder, the device, how long; all
#   operators with all tools, or those named
set -uo pipefail
strata="$1" out="$2" device="$3" seconds="$4"
shift 4
jobs="$(nproc)"
logs="$(mktemp -d)"
trap 'rm -rf "$logs"' EXIT
mkdir -p "$out/records/sanitizer"
touch "$out/sanitizer.lines"
if (($# == 0)); then
  for tool in memcheck racecheck initcheck synccheck; do
    for op in $("$strata" evidence --json | grep -o '"operator": *"[^"]*"' | cut -d'"' -f4 | sort -u); do
      set -- "$@" "$tool:$op"
    done
  done
fi

# Into how many parts an operator's cases go with a tool: one should end within a few minutes.
most_parts=40
parts_of() {
  case "$1:$2" in
    racecheck:gated_delta_anchored | racecheck:qsa_score | racecheck:qsa_select) echo "$most_parts" ;;
    *:attention | *:causal_conv | *:experts | *:gated_delta | *:gated_delta_anchored) echo 8 ;;
    *:matmul | *:qsa_* | *:sparse_attention) echo 8 ;;
    *) echo 1 ;;
  esac
}

# A line "tool operator part parts errors"; what is not at its end when the time is up has none.
sanitize() {
  local tool="$1" op="$2" part="$3" parts="$4" log="$logs/$1.$2.$3" left=$((seconds - SECONDS)) errors
  ((left > 5)) || return
  timeout "$left" compute-sanitizer --tool "$tool" "$strata" parity --op "$op" --device "$device" \
    --part "$part/$parts" >"$log" 2>&1
  errors="$(sed -n 's/.*ERROR SUMMARY: \([0-9]*\) error.*/\1/p; s/.*RACECHECK SUMMARY: \([0-9]*\) hazard.*/\1/p' "$log" | tail -n 1)"
  [ -n "$errors" ] || return
  echo "$tool $op $part $parts $errors" >>"$out/sanitizer.lines"
  ((errors == 0)) || head -n 200 "$log" >"$out/sanitizer.$tool.$op.$part.txt"
}
for ((part = 1; part <= most_parts; ++part)); do
  for run in "$@"; do
    tool="${run%%:*}" op="${run#*:}"
    parts="$(parts_of "$tool" "$op")"
    ((part <= parts)) || continue
    grep -q "^$tool $op $part $parts " "$out/sanitizer.lines" && continue
    while (($(jobs -rp | wc -l) >= jobs)); do wait -n; done
    sanitize "$tool" "$op" "$part" "$parts" &
  done
done
wait

# Sums of the parts; null where one is missing.
found="$("$strata" devices | grep "^$device: " | head -n 1)"
class="$(grep -o 'sm_[0-9]*\|gfx[0-9a-f]*' <<<"$found" | head -n 1)"
{
  printf '{\n  "class": "%s",\n  "commit": "%s",\n  "date": "%s",\n  "device": "%s",\n  "errors": {' "$class" \
    "$("$strata" --version | head -n 1)" "$(date -u +%F)" "$(cut -d, -f1-2 <<<"$found")"
  awk '{ n[$2 " " $1]++; parts[$2 " " $1] = $4; sum[$2 " " $1] += $5 }
    END { for (key in n) print key, n[key] == parts[key] ? sum[key] : "null" }' "$out/sanitizer.lines" | sort |
    awk '{ if ($1 != last) { printf "%s\n    \"%s\": {", last == "" ? "" : "},", $1; first = 1; last = $1 }
           printf "%s\"%s\": %s", first ? "" : ", ", $2, $3; first = 0 } END { if (last != "") print "}" }'
  printf '  }\n}\n'
} >"$out/records/sanitizer/$class.json"
awk -v runs="$#" '{ if (!n[$1 $2]++) ++begun; if (n[$1 $2] == $4) ++done; if ($5 > 0) print "errors:", $0 }
  END { printf "%d of %d runs at their end, %d begun\n", done, runs, begun - done }' "$out/sanitizer.lines"
! awk '$5 > 0 { found = 1 } END { exit !found }' "$out/sanitizer.lines"
