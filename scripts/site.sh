#!/usr/bin/env bash
# Runs a script of website/, whose dependencies are its own and are installed only here. Usage: scripts/site.sh build|dev
set -euo pipefail
cd "$(dirname "$0")/../website"

if ! [ node_modules/.package-lock.json -nt package-lock.json ]; then
  # Not `npm ci`: the lock file has no optional packages of other platforms, and that refuses it.
  npm install --ignore-scripts --no-save
fi
exec npm run "$@"
