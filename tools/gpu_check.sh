#!/usr/bin/env bash
# What a card has to show, in one go of about eight minutes: parity of every operator with records, the four tools of
# compute-sanitizer, a model against the CPU, benchmarks of operators, and of whole models made on the spot.
#   gpu_check.sh STRATA OUT [DEVICE [OPERATORS]]: the program, a folder for records and tables, the device (cuda:0);
#   OPERATORS, with commas: parity of these, and nothing else
set -uo pipefail
strata="$1" out="$2" device="${3:-cuda:0}" only="${4:-}"
logs="$(mktemp -d)"
trap 'rm -rf "$logs"' EXIT
mkdir -p "$out/records"
failed=0

say() { printf '\n== %s\n' "$*"; }
operators() { "$strata" evidence --json | grep -o '"operator": *"[^"]*"' | cut -d'"' -f4 | sort -u; }

"$strata" devices | tee "$out/devices.txt"
grep -q "^$device" "$out/devices.txt" || {
  echo "gpu-check: error: there is no $device here" >&2
  exit 1
}
if [ -n "$only" ]; then IFS=, read -ra ops <<<"$only"; else mapfile -t ops < <(operators); fi

say "parity"
for op in "${ops[@]}"; do
  {
    timeout 300 "$strata" parity --op "$op" --device "$device" --records "$out/records" --record >"$logs/parity.$op" 2>&1
    echo "$op $?" >"$logs/ended.$op"
  } &
done
wait
awk 'FNR == 1 && NR > 1 { next } { print }' "$logs"/parity.* | tee "$out/parity.txt"
# 0: all passed; 3: an arm that this device cannot run, with the reason in its row.
while read -r op code; do
  ((code == 0 || code == 3)) && continue
  failed=1
  echo "gpu-check: parity of $op ended with $code$( ((code == 124)) && echo ', its time is up')" | tee -a "$out/parity.txt"
done < <(cat "$logs"/ended.*)
echo "records to send: $out/records/parity"
[ -n "$only" ] && exit "$failed"

say "a model: greedy tokens as on the CPU"
for where in cpu "$device"; do
  "$strata" generate --device "$where" --matmul-activations f32 -p 'The Linux kernel' -n 64 --temp 0 \
    >"$logs/text.$where" 2>"$logs/err.$where"
done
if cmp -s "$logs/text.cpu" "$logs/text.$device"; then echo "the same text"; else
  echo "other text"
  failed=1
fi | tee "$out/model.txt"

say "a model of each family in f32: greedy tokens as on the CPU"
family() {
  local model="$logs/$1.gguf" where
  "$strata" synth --arch "$1" --quant F32 -o "$model" >"$logs/synth.$1" 2>&1
  for where in cpu "$device"; do
    "$strata" generate -m "$model" --device "$where" -ctk f32 -ctv f32 -p 'The Linux kernel' -n 64 --temp 0 --ignore-eos \
      >"$logs/family.$1.$where" 2>"$logs/family.err.$1.$where"
  done
  if [ -s "$logs/family.$1.cpu" ] && cmp -s "$logs/family.$1.cpu" "$logs/family.$1.$device"; then echo "$1: the same text"; else
    echo "$1: other text"
    tail -n 1 "$logs/family.err.$1.$device"
  fi
}
for arch in llama qwen3 qwen3moe qwen3next qwen35 qwen35moe qwen4exp; do family "$arch" >"$logs/line.$arch" & done
wait
cat "$logs"/line.* | tee "$out/families.txt"
grep -q other "$out/families.txt" && failed=1

say "operators"
bench() { timeout 60 "$strata" bench --op "$1" --device "$device" --samples 7 "${@:2}" 2>&1; }
{
  bench matmul --shape '[1, 5120] x [17408]'
  bench attention --shape '1 rows, 131072 cells, 32/8 heads of 128, BF16' --shape '1 rows, 131072 cells, 24/2 heads of 256, BF16'
  bench qsa_score --shape '256 queries' --shape '8 queries'
  bench qsa_select --shape '1 row'
  bench sparse_attention --shape 'BF16'
  bench gated_delta --shape '32768 rows' --shape '1 row,'
  bench gated_delta_anchored --shape '32768 rows'
} >"$out/operators.txt"
grep -v '^#' "$out/operators.txt" | cut -c1-140 | head -n 40

say "whole models, made on the spot"
for model in synth:qwen35-9b:Q4_K synth:qwen3-30b-a3b:Q4_K synth:qwen4exp-mini:Q4_K; do
  timeout 100 "$strata" bench -m "$model" --device "$device" --rope-scaling yarn --rope-scale 64 -p 512 -n 32 \
    -d 1024,4096,32768,131072 -r 1 --no-warmup -o jsonl 2>"$logs/err" >"$out/${model//:/-}.jsonl"
  timeout 60 "$strata" profile -m "$model" --device "$device" -p 'The Linux kernel' -n 8 --temp 0 >"$out/${model//:/-}.profile.txt" 2>&1
  sed 's/.*"model_type":"\([^"]*\)".*"n_prompt":\([0-9]*\),"n_gen":\([0-9]*\),"n_depth":\([0-9]*\).*"avg_ts":\([0-9.]*\).*/\1 pp\2 tg\3 @ d\4: \5 tokens\/s/' "$out/${model//:/-}.jsonl"
done
if command -v compute-sanitizer >/dev/null; then
  say "compute-sanitizer: the parity suite of every operator, as far as it comes; tools/gpu_sanitize.sh goes on"
  "$(dirname "$0")/gpu_sanitize.sh" "$strata" "$out" "$device" "$((500 - SECONDS))" || failed=1
  "$strata" evidence --records "$out/records" --sanitizer "$out"/records/sanitizer/*.json >/dev/null
fi

exit "$failed"
