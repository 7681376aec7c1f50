#!/usr/bin/env bash
# Generates the Prisma client of every schema in the repository. Their output is not committed.
set -euo pipefail
cd "$(dirname "$0")/.."

# `prisma generate` fetches a schema engine that it does not use; a stand-in keeps it offline.
export PRISMA_SCHEMA_ENGINE_BINARY=/bin/true PRISMA_QUERY_ENGINE_LIBRARY=/bin/true PRISMA_HIDE_UPDATE_MESSAGE=1 CHECKPOINT_DISABLE=1

find . -name node_modules -prune -o -name schema.prisma -print | while read -r schema; do
  npx --no-install prisma generate --schema "$schema" </dev/null
done
