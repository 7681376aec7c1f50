#!/usr/bin/env bash
# Everything: static checks, build, all test projects, and the proof that every error code was seen. HOLDFAST_CHECKED=1
# says that `npm run check` has just passed: then only the rest.
set -euo pipefail
cd "$(dirname "$0")/.."

HOLDFAST_THROWN_CODES=$(mktemp)
export HOLDFAST_THROWN_CODES
# Hundreds of processes are started from the sources: what is compiled once need not be again.
export NODE_COMPILE_CACHE=${NODE_COMPILE_CACHE:-$PWD/node_modules/.cache/compiled}
HOLDFAST_FAILED_FILES=$(mktemp)
export HOLDFAST_FAILED_FILES
trap 'rm -f "$HOLDFAST_THROWN_CODES" "$HOLDFAST_FAILED_FILES"' EXIT

projects=()
if [[ -n "${HOLDFAST_CHECKED:-}" ]]; then projects=('--project=!unit'); else npm run check:static; fi
npm run build
# Processes that import our packages by name take what was built.
export HOLDFAST_BUILT=1
if ! npx vitest run "${projects[@]}" --reporter=default --reporter=./scripts/failed-files.ts \
  --reporter=./scripts/slow-files.ts; then
  # Three at a time keep two cores so busy that a few of thousands may come too late for what they wait for. Whoever
  # is right by itself is so three times in a row, alone; more than a few files are not bad luck.
  mapfile -t files <"$HOLDFAST_FAILED_FILES"
  ((${#files[@]} > 0))
  printf '\n=== failed among others, and now three times alone:\n'
  printf '    %s\n' "${files[@]}"
  for _ in 1 2 3; do npx vitest run --maxWorkers=1 "${files[@]}"; done
fi
node scripts/check-thrown-codes.ts "$HOLDFAST_THROWN_CODES"
