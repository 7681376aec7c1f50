#!/usr/bin/env bash
# Everything: build, static checks, all test projects, and the proof that every error code was seen.
set -euo pipefail
cd "$(dirname "$0")/.."

HOLDFAST_THROWN_CODES=$(mktemp)
export HOLDFAST_THROWN_CODES
# Hundreds of processes are started from the sources: what is compiled once need not be again.
export NODE_COMPILE_CACHE=${NODE_COMPILE_CACHE:-$PWD/node_modules/.cache/compiled}
trap 'rm -f "$HOLDFAST_THROWN_CODES"' EXIT

npm run build
npm run check:static
npx vitest run
node scripts/check-thrown-codes.ts "$HOLDFAST_THROWN_CODES"
