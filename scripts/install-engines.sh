#!/usr/bin/env bash
# Installs the servers of the other engines that the tests run against, and the client better-sqlite3: MariaDB 10.11 from
# Debian 12, MySQL 9 and MariaDB 11 from Debian's newest suite, extracted beside the system with their own C library and never installed into
# it. Safe to run again: it only adds what is missing. Where a server cannot be had, that is said, and is not the end:
# the tests of that server then say that they did not run.
set -euo pipefail

# Keep in step with serversFolder() in testkit/src/servers/server-binaries.ts.
if [[ -n "${HOLDFAST_SERVERS:-}" ]]; then
  servers=$HOLDFAST_SERVERS
elif [[ $(id -u) == 0 ]]; then
  servers=/var/cache/holdfast/servers
else
  servers=$HOME/.cache/holdfast/servers
fi

missing() { echo "!!! $1 is missing: its tests will not run ($2)" >&2; }

install_mariadb_10() {
  if [[ -x /usr/sbin/mariadbd ]]; then
    echo "MariaDB $(/usr/sbin/mariadbd --version | sed 's/.*Ver \([0-9.]*\).*/\1/') is in /usr/sbin"
  elif [[ $(id -u) != 0 ]]; then
    missing 'MariaDB 10.11' 'sudo apt-get install mariadb-server-core'
  else
    # The server alone: that package starts no service.
    apt-get update --quiet
    DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends mariadb-server-core \
      || missing 'MariaDB 10.11' 'apt-get failed'
  fi
}

work=$servers/apt
apt_options=(
  -o Dir::Etc::sourcelist=/dev/null -o "Dir::Etc::sourceparts=$work/etc" -o "Dir::State=$work"
  -o "Dir::State::lists=$work/lists" -o "Dir::State::status=$work/status" -o "Dir::Cache=$work/cache"
  -o "APT::Sandbox::User=$(id -un)" -o APT::Get::List-Cleanup=0
)

# The system's own mirror and keys, with one other suite.
open_newest_suite() {
  [[ -z ${opened:-} ]] || return 0
  local system=/etc/apt/sources.list.d/debian.sources
  [[ -e $system ]] || return 1
  mkdir -p "$work"/{lists/partial,cache/archives/partial,etc}
  : >"$work/status"
  {
    echo 'Types: deb'
    grep -m1 '^URIs:' "$system"
    echo 'Suites: sid'
    echo 'Components: main'
    grep -m1 '^Signed-By:' "$system"
  } >"$work/etc/newest.sources"
  apt-get "${apt_options[@]}" update --quiet
  opened=yes
}

# Perl is only for the packages' scripts.
libraries_of() {
  apt-cache "${apt_options[@]}" depends --recurse --no-recommends --no-suggests --no-conflicts --no-breaks \
    --no-replaces --no-enhances "$1" | grep '^[a-z]' | grep -v 'perl\|gdbm' | sort -u
}

install_newest() {
  local name=$1 package=$2 folder=$servers/$1 version packages
  if [[ -e $folder/installed ]]; then
    echo "$name ($(cat "$folder/installed")) is in $folder"
    return 0
  fi
  [[ $(uname -m) == x86_64 ]] && command -v apt-get >/dev/null && open_newest_suite || return 1
  version=$(apt-cache "${apt_options[@]}" policy "$package" | awk '/Candidate:/{print $2}')
  echo "extracting $package $version into $folder"
  rm -rf "$folder"
  mkdir -p "$folder/packages"
  mapfile -t packages < <(libraries_of "$package")
  (cd "$folder/packages" && apt-get "${apt_options[@]}" download --quiet "${packages[@]}" >/dev/null)
  local each
  for each in "$folder"/packages/*.deb; do dpkg-deb -x "$each" "$folder"; done
  rm -rf "$folder/packages"
  chmod -R a+rX "$servers"
  # Last: without it the folder is an installation that was cut short.
  echo "$version" >"$folder/installed"
}

# A client with a part in C++, which comes compiled for all versions of Node that we support.
install_better_sqlite3() {
  local folder=$servers/better-sqlite3-13
  if [[ -e $folder/installed ]]; then
    echo "better-sqlite3 ($(cat "$folder/installed")) is in $folder"
    return 0
  fi
  rm -rf "$folder"
  mkdir -p "$folder"
  echo '{ "private": true }' >"$folder/package.json"
  (
    cd "$folder"
    npm install --no-audit --no-fund --save-exact better-sqlite3@13
    node -e 'new (require("better-sqlite3"))(":memory:")'
  ) >"$folder/install.log" 2>&1 || return 1
  node -p "require('$folder/node_modules/better-sqlite3/package.json').version" >"$folder/installed"
}

install_mariadb_10
install_better_sqlite3 || missing better-sqlite3 'npm could not install it: see install.log in its folder'
install_newest mysql-9 mysql-server-core || missing 'MySQL 9' 'not in the newest suite, or no apt'
install_newest mariadb-11 mariadb-server-core || missing 'MariaDB 11' 'not in the newest suite, or no apt'
install_newest pgbouncer-1 pgbouncer || missing 'PgBouncer 1.21 or later' 'not in the newest suite, or no apt'
