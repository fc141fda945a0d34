#!/bin/sh
# Installs the missing dependencies of a checkout: the npm packages in the lock file and the Debian
# packages in host-packages.txt, for the tests also those in test-packages.txt. Returns immediately if nothing is missing.
# Requires only a POSIX shell, Node 14 or newer with npm, and root for the Debian packages.
#   bootstrap.sh            install the missing packages
#   bootstrap.sh --test     install the missing packages, with those of the tests
#   bootstrap.sh --stamp    only record that node_modules matches the lock file (called by npm)
#   bootstrap.sh --run STEP only run one step of the installation (called by this script)
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
cd "$root"
PATH=$PATH:/usr/sbin:/sbin
stamp=node_modules/.svc-lock
packages=scripts/host-packages.txt
if [ "${1:-}" = --test ]; then
  packages="$packages scripts/test-packages.txt"
  shift
fi

say() { printf 'svc: %s\n' "$*" >&2; }
die() {
  say "$1"
  [ -z "${2:-}" ] || say "next: $2"
  exit 1
}

lock_hash() { sha256sum <package-lock.json | cut -d' ' -f1; }
write_stamp() { lock_hash >"$stamp"; }
npm_ready() {
  [ -x node_modules/node/bin/node ] && [ -r "$stamp" ] && [ "$(cat "$stamp")" = "$(lock_hash)" ]
}

# Prints the Debian packages whose program or file is missing on this machine.
missing_packages() {
  # shellcheck disable=SC2086 # one word per list
  cat $packages | while read -r package shows; do
    case $package in '' | \#*) continue ;; esac
    case $shows in
      /*) [ -e "$shows" ] || printf '%s\n' "$package" ;;
      *) command -v "$shows" >/dev/null 2>&1 || printf '%s\n' "$package" ;;
    esac
  done
}

# step TITLE COMMAND…: runs a function of this script with its output in a log, shows its progress and
# duration, and shows the end of the log if it fails. The function runs in a separate session, so that
# an interrupt ends all of its processes.
step() {
  title=$1
  shift
  log=$work/step.log
  started=$(date +%s)
  setsid sh scripts/bootstrap.sh --run "$@" >"$log" 2>&1 8>&- 9>&- &
  pid=$!
  [ -t 2 ] || say "$title …"
  ticks=0
  while kill -0 "$pid" 2>/dev/null; do
    spent=$(($(date +%s) - started))
    if [ -t 2 ]; then
      printf '\rsvc: %s … %ss ' "$title" "$spent" >&2
    elif [ "$ticks" -gt 0 ] && [ $((ticks % 75)) -eq 0 ]; then
      say "$title … ${spent}s"
    fi
    ticks=$((ticks + 1))
    sleep 0.2
  done
  status=0
  wait "$pid" || status=$?
  pid=
  spent=$(($(date +%s) - started))
  [ ! -t 2 ] || printf '\r' >&2
  if [ "$status" -eq 0 ]; then
    say "$title: done in ${spent}s"
  else
    say "$title: failed after ${spent}s; the end of its output:"
    tail -n 25 "$log" | sed 's/^/  | /' >&2
  fi
  return "$status"
}

clean_up() {
  [ -z "${pid:-}" ] || kill -s TERM -- "-$pid" 2>/dev/null || true
  [ -z "${work:-}" ] || rm -rf "$work"
}

# --- npm packages ---------------------------------------------------------------------------------

npm_ci() {
  version=$(npm --version 2>/dev/null || echo 0)
  if [ "${version%%.*}" -ge 7 ]; then
    npm ci --no-audit --no-fund --loglevel=error
  else
    # npm 6 supports neither workspaces nor this version of the lock file: use a temporary newer npm.
    npx --quiet -p npm@8.19.4 npm ci --no-audit --no-fund --loglevel=error
  fi
}

install_npm_packages() {
  command -v npm >/dev/null 2>&1 ||
    die "npm is not on the PATH" 'install Node.js 14 or newer with npm, for example: apt-get install npm'
  step 'installing the npm packages' npm_ci ||
    die 'npm ci failed' 'see the output above; check that this machine can reach its npm registry, then try again'
  [ -x node_modules/node/bin/node ] ||
    die 'npm did not install the pinned Node (its install script did not run)' 'run: npm rebuild node'
  write_stamp
}

# --- Debian packages ------------------------------------------------------------------------------

apt() {
  DEBIAN_FRONTEND=noninteractive apt-get -y -q -o DPkg::Lock::Timeout=600 -o Acquire::Retries=3 \
    -o Acquire::http::Timeout=60 -o Acquire::https::Timeout=60 -o Dpkg::Use-Pty=0 \
    -o Dpkg::Options::=--force-confold "$@"
}

# Some packages start a service when they are installed, which nothing here needs. The file is described in
# invoke-rc.d(8). One that the machine has already stays, unless an installation that was killed has left it.
forbid_services() {
  policy=/usr/sbin/policy-rc.d
  mark='# From scripts/bootstrap.sh of svc, until its installation has ended.'
  [ ! -e "$policy" ] || grep -qxF "$mark" "$policy" || return 0
  trap 'rm -f "$policy"' EXIT
  trap 'exit 143' TERM
  printf '#!/bin/sh\n%s\nexit 101\n' "$mark" >"$policy"
  chmod 755 "$policy"
}

# apt_install ARGUMENT…: installs packages. Before, it completes an installation that was interrupted, since apt-get
# refuses to install anything until that is done.
apt_install() {
  forbid_services
  DEBIAN_FRONTEND=noninteractive dpkg --force-confold --configure -a || echo 'dpkg reported errors'
  apt install --no-install-recommends "$@"
}

# Debian 12 has QEMU 7.2; its backports have a newer version, with which svc is faster and keeps its
# templates read-only. The machine's list of sources stays unchanged: this uses a temporary list with
# the same mirror.
install_backported_qemu() {
  keyring=/usr/share/keyrings/debian-archive-keyring.gpg
  options=
  [ ! -e "$keyring" ] || options="[signed-by=$keyring]"
  # shellcheck disable=SC2016 # apt-get expands these
  apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' \
    'Created-By: Packages' 'Origin: Debian' 'Component: main' |
    sort -u | while read -r uri release component; do
    case $release in
      bookworm)
        printf 'deb %s %s %s %s\n' "$options" "$uri" "$release" "$component"
        printf 'deb %s %s %s-backports %s\n' "$options" "$uri" "$release" "$component"
        ;;
      bookworm-updates | bookworm-security)
        printf 'deb %s %s %s %s\n' "$options" "$uri" "$release" "$component"
        ;;
    esac
  done >"$work/backports.list"
  grep -q backports "$work/backports.list" || {
    echo 'the apt sources contain no Debian mirror'
    return 1
  }
  mkdir -p "$work/lists/partial"
  chmod 755 "$work" "$work/lists"
  set -- -o "Dir::Etc::sourcelist=$work/backports.list" -o Dir::Etc::sourceparts=/dev/null \
    -o "Dir::State::lists=$work/lists" -o APT::Sandbox::User=root
  apt "$@" --error-on=any update || apt "$@" update || return 1
  apt_install "$@" -t bookworm-backports qemu-system-x86 qemu-utils
}

# An update may fail because of an unrelated source; only the installation itself decides.
install_debian_packages() {
  apt update || echo 'apt-get update reported errors'
  # shellcheck disable=SC2086 # one word per package
  apt_install $1
}

install_host_packages() {
  list=$(missing_packages | paste -sd ' ' -)
  command -v apt-get >/dev/null 2>&1 ||
    die "these packages are missing and this machine has no apt-get: $list" 'install them manually; svc runs on Debian 12 and 13'
  [ "$(id -u)" -eq 0 ] ||
    die "these Debian packages are missing, and installing them requires root: $list" "run as root: apt-get install -y --no-install-recommends $list"
  wait_for_lock 8 /run/lock/svc-host-packages.lock
  others=$(missing_packages | grep -v '^qemu-' | paste -sd ' ' -)
  if [ -n "$others" ]; then
    step "installing from Debian: $others" install_debian_packages "$others" ||
      die 'apt-get failed' 'see the output above; apt-get update and apt-get -f install may help'
  fi
  [ -n "$(missing_packages)" ] || return 0
  codename=$(. /etc/os-release && printf '%s' "${VERSION_CODENAME:-}")
  if [ "$codename" = bookworm ]; then
    [ -n "$others" ] || step 'reading the package lists of Debian' apt update || true
    step 'installing QEMU from Debian backports' install_backported_qemu ||
      say 'QEMU from backports is not available: using the one in Debian 12, which works but is slower'
  fi
  list=$(missing_packages | paste -sd ' ' -)
  [ -n "$list" ] || return 0
  step "installing from Debian: $list" install_debian_packages "$list" ||
    die 'apt-get failed' 'see the output above; apt-get update and apt-get -f install may help'
  list=$(missing_packages | paste -sd ' ' -)
  [ -z "$list" ] || die "still missing after the installation: $list" 'install these Debian packages manually'
}

# wait_for_lock FD FILE: takes a lock and holds it until this script ends, so that two installations
# run one after the other.
wait_for_lock() {
  mkdir -p "$(dirname -- "$2")"
  eval "exec $1>\"\$2\""
  flock -n "$1" && return 0
  say 'waiting for another installation to finish'
  flock -w 1800 "$1" || die 'another installation did not finish within 30 minutes' "find its process: fuser $2"
}

if [ "${1:-}" = --stamp ]; then
  write_stamp
  exit 0
fi
if [ "${1:-}" = --run ]; then
  shift
  "$@"
  exit
fi
if npm_ready && [ -z "$(missing_packages)" ]; then exit 0; fi

work=$(mktemp -d)
export work
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

wait_for_lock 9 "$root/.cache/bootstrap.lock"
npm_ready || install_npm_packages
[ -z "$(missing_packages)" ] || install_host_packages
