"""Serves OpenStack Swift with its S3 API from one process, for tests.

usage: serve_swift.py DIRECTORY ACCESS_KEY SECRET_KEY

DIRECTORY is empty and holds everything the server writes; its file system needs extended attributes. The server listens
on a free port of 127.0.0.1, prints `listening PORT` once it answers, and ends at the end of its standard input.
"""

import logging
import os
import sys

from swift.common.utils import eventlet_monkey_patch

eventlet_monkey_patch()

import eventlet  # noqa: E402
import swift.common.utils  # noqa: E402
import eventlet.tpool  # noqa: E402
import eventlet.wsgi  # noqa: E402
from swift.common.ring import RingBuilder  # noqa: E402
from swift.common.utils import set_swift_dir, validate_hash_conf  # noqa: E402
from swift.common.wsgi import SwiftHttpProtocol, loadapp  # noqa: E402



class ErrorHandler(logging.StreamHandler):
    """Writes warnings and errors to standard error, and nothing to the log of the machine."""

    LOG_LOCAL0 = None
    priority_map = {}

    def __init__(self, **_options):
        super().__init__(sys.stderr)
        self.setLevel(logging.WARNING)


class NoCache:
    """Stands for the memcached server that the proxy demands, and remembers nothing."""

    def get(self, *_args, **_options):
        return None

    def set(self, *_args, **_options):
        pass

    def delete(self, *_args, **_options):
        pass


swift.common.utils.ThreadSafeSysLogHandler = ErrorHandler

KINDS = ("account", "container", "object")

SWIFT_CONF = """
[swift-hash]
swift_hash_path_suffix = test
[storage-policy:0]
name = default
default = yes
"""

STORAGE_CONF = """
[DEFAULT]
swift_dir = {directory}
devices = {directory}/devices
mount_check = false
disable_fallocate = true
fallocate_reserve = 0
workers = 0
user = {user}
# A listing shows an object as soon as it is stored.
container_update_timeout = 120
[pipeline:main]
pipeline = server
[app:server]
use = egg:swift#{kind}
"""

PROXY_CONF = """
[DEFAULT]
swift_dir = {directory}
user = {user}
workers = 0
[pipeline:main]
pipeline = catch_errors gatekeeper listing_formats s3api tempauth copy slo dlo proxy-server
[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true
allow_account_management = true
conn_timeout = 20
node_timeout = 120
recoverable_node_timeout = 120
error_suppression_limit = 1000000
[filter:catch_errors]
use = egg:swift#catch_errors
[filter:gatekeeper]
use = egg:swift#gatekeeper
[filter:listing_formats]
use = egg:swift#listing_formats
[filter:s3api]
use = egg:swift#s3api
location = us-east-1
[filter:tempauth]
use = egg:swift#tempauth
user_{access_key} = {secret_key} .admin
[filter:copy]
use = egg:swift#copy
[filter:slo]
use = egg:swift#slo
[filter:dlo]
use = egg:swift#dlo
"""


def main(directory, access_key, secret_key):
    write(directory, "swift.conf", SWIFT_CONF)
    set_swift_dir(directory)
    validate_hash_conf()
    os.makedirs(os.path.join(directory, "devices", "d1"))
    user = os.popen("id -un").read().strip()
    # The rings name the ports of the servers, so the ports come first.
    sockets = {kind: eventlet.listen(("127.0.0.1", 0)) for kind in (*KINDS, "proxy")}
    for kind in KINDS:
        save_ring(directory, kind, sockets[kind].getsockname()[1])
        conf = STORAGE_CONF.format(directory=directory, kind=kind, user=user)
        write(directory, f"{kind}.conf", conf)
    write(
        directory,
        "proxy.conf",
        PROXY_CONF.format(
            directory=directory,
            user=user,
            access_key=access_key.replace(":", "_"),
            secret_key=secret_key,
        ),
    )
    for kind, socket in sockets.items():
        app = with_cache(loadapp(os.path.join(directory, f"{kind}.conf")))
        eventlet.spawn_n(
            eventlet.wsgi.server,
            socket,
            app,
            protocol=SwiftHttpProtocol,
            log_output=False,
            debug=False,
        )
    print("listening", sockets["proxy"].getsockname()[1], flush=True)
    eventlet.tpool.execute(sys.stdin.buffer.read)


def with_cache(app):
    def run(environ, start_response):
        environ["swift.cache"] = NoCache()
        return app(environ, start_response)

    return run


def write(directory, name, content):
    with open(os.path.join(directory, name), "w", encoding="utf-8") as file:
        file.write(content)


def save_ring(directory, kind, port):
    builder = RingBuilder(4, 1, 0)
    builder.add_dev(
        {"region": 1, "zone": 1, "ip": "127.0.0.1", "port": port, "device": "d1", "weight": 1}
    )
    builder.rebalance()
    builder.get_ring().save(os.path.join(directory, f"{kind}.ring.gz"))


main(*sys.argv[1:])
