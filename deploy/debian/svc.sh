#!/bin/sh
# Root's commands use the data of svc.service, if it has been started and they name no other.
set -eu
if [ -z "${SVC_DATA_DIR:-}" ] && [ "$(id -u)" = 0 ] && [ -d /var/lib/svc ]; then
  SVC_DATA_DIR=/var/lib/svc
  SVC_IMAGE_DIR=${SVC_IMAGE_DIR:-/var/cache/svc/images}
  export SVC_DATA_DIR SVC_IMAGE_DIR
fi
exec /usr/lib/svc/bin/svc "$@"
