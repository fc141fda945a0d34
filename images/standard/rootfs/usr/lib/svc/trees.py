"""Trees of files on the guest channel: listing, reading and writing everything below one directory.

A path is bytes relative to the root of the tree. No symbolic link is followed, not even in the middle of a path: every
component is opened relative to the directory before it. Renaming or replacing files meanwhile cannot lead an operation
out of the tree.

All numbers on the wire are big endian.
"""

import errno
import fcntl
import hashlib
import os
import secrets
import stat
import struct
import threading
import time

from events import Events

FILE, DIRECTORY, SYMLINK, DELETED, END = stat.S_IFREG >> 12, stat.S_IFDIR >> 12, stat.S_IFLNK >> 12, 0, 255
# What identifies the state of an entry: kind, mode, mtime, ctime, size, inode. A symbolic link's target follows.
STATE = struct.Struct('>BIqqQQ')
# The last part of it: what the kernel tells of an inode, the lower half.
INODE = struct.Struct('>I')
# The lengths of path and target.
LENGTHS = struct.Struct('>HH')
# A range to read: offset, length, and the file it belongs to (size, inode, mtime, ctime, length of the path).
RANGE = struct.Struct('>QQQQqqH')
# An entry to write: kind, mode, mtime, offset, size, lengths of path and target.
ENTRY = struct.Struct('>BIqQQHH')
LENGTH = struct.Struct('>I')
HOLE = 1 << 31

COMPLETE, CHANGED, GONE, REFUSED, OPEN = range(5)

TEMPORARY = b'.svc-tree-'
MAX_DEPTH = 128
MAX_PATH = 4095
MAX_RANGES_BYTES = 1 << 20
SEGMENT = 1 << 20
# Contents up to this size are gathered in memory. Larger ones move without being copied into this process.
SMALL = 1 << 16
BUFFER = 1 << 18
# Writes that are closer together than this may leave the same times on a file.
CLOCK_TICK_NS = 50_000_000
# The kernel notices writes through a memory map at the latest this long after the last write it noticed: it writes
# changed pages to the disk after 30 s, and sees the next change of each.
SETTLED_NS = 60_000_000_000
LIST_SECONDS = 60
MAX_LISTINGS = 4

NO_FOLLOW = os.O_NOFOLLOW | os.O_CLOEXEC
UMASK = os.umask(0o022)
os.umask(UMASK)


class Refusal(Exception):
    """A request that fails. The connection stays usable."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


class Directories:
    """Opens the directories of a tree one component at a time. Keeps the last path open, for the next one in order."""

    def __init__(self, root, create=False):
        root = os.fsencode(root)
        if create:
            make_directory(root)
        self.names = []
        self.fds = [os.open(root, os.O_RDONLY | os.O_DIRECTORY | NO_FOLLOW)]
        # The directory of the last path, which most paths share with the one before.
        self.last = b''

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        while self.fds:
            os.close(self.fds.pop())

    def parent(self, path, create=False):
        """The descriptor of the directory that contains `path`, and the name in it."""
        directory, _slash, name = path.rpartition(b'/')
        if directory == self.last and name not in (b'', b'.', b'..') and b'\0' not in name:
            return self.fds[-1], name
        self.last = None
        *names, name = path.split(b'/')
        if len(names) >= MAX_DEPTH or b'\0' in path or any(part in (b'', b'.', b'..') for part in (*names, name)):
            raise OSError(errno.EINVAL, 'this is not a path in a tree')
        common = 0
        while common < min(len(names), len(self.names)) and names[common] == self.names[common]:
            common += 1
        while len(self.names) > common:
            self.names.pop()
            os.close(self.fds.pop())
        for part in names[common:]:
            if create:
                make_directory(part, self.fds[-1])
            self.fds.append(os.open(part, os.O_RDONLY | os.O_DIRECTORY | NO_FOLLOW, dir_fd=self.fds[-1]))
            self.names.append(part)
        self.last = directory
        return self.fds[-1], name


def make_directory(name, fd=None):
    try:
        os.mkdir(name, 0o755, dir_fd=fd)
    except FileExistsError:
        return


class Walk:
    """One pass over a tree. `known` are the entries of an earlier listing, which keep their places when the tree has
    more than `limit` entries."""

    def __init__(self, root, known, limit):
        self.known = known
        self.limit = limit
        self.seen = set()
        self.changed = {}
        self.added = 0
        self.skipped = 0
        # Directories whose contents are out of reach. What is known of them stays as it is.
        self.closed = []
        with Directories(root) as directories:
            fd = directories.fds[0]
            self.device = os.fstat(fd).st_dev
            self.visit(fd, b'', 0)

    def visit(self, fd, prefix, depth):
        below = []
        with os.scandir(fd) as entries:
            for entry in entries:
                name = os.fsencode(entry.name)
                if name.startswith(TEMPORARY):
                    continue
                try:
                    status = entry.stat(follow_symlinks=False)
                    state = self.state_of(fd, name, status)
                except OSError as error:
                    # It was removed or replaced meanwhile. The next listing tells.
                    if error.errno not in (errno.ENOENT, errno.EINVAL):
                        raise
                    continue
                path = prefix + name
                if self.add(path, state) and state[0] == DIRECTORY:
                    if depth + 1 < MAX_DEPTH and status.st_dev == self.device:
                        below.append(name)
                    else:
                        self.closed.append(path + b'/')
        for name in below:
            try:
                inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | NO_FOLLOW, dir_fd=fd)
            except OSError as error:
                if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
                    raise
                continue
            try:
                self.visit(inner, prefix + name + b'/', depth + 1)
            finally:
                os.close(inner)

    def state_of(self, fd, name, status):
        """The state of an entry, or none for what is not part of a tree: devices, pipes, sockets, other disks."""
        kind = status.st_mode >> 12
        target = b''
        if kind == SYMLINK:
            target = os.readlink(name, dir_fd=fd)
        elif kind not in (FILE, DIRECTORY) or (kind == FILE and status.st_dev != self.device):
            return b'\0'
        return STATE.pack(kind, stat.S_IMODE(status.st_mode), status.st_mtime_ns, status.st_ctime_ns,
                          status.st_size if kind == FILE else 0, status.st_ino) + target

    def add(self, path, state):
        """Whether the entry is part of the listing."""
        old = self.known.get(path)
        if old == state:
            self.seen.add(path)
            return True
        if len(state) < STATE.size or len(path) > MAX_PATH or (
                old is None and len(self.known) + self.added >= self.limit):
            self.skipped += 1
            if state[0] == DIRECTORY:
                self.closed.append(path + b'/')
            return False
        self.seen.add(path)
        self.added += old is None
        self.changed[path] = state
        return True

    def missing(self):
        closed = tuple(self.closed)
        return {path for path in self.known if path not in self.seen and not path.startswith(closed)}


class Listings:
    """The listings of the trees that were listed last."""

    def __init__(self):
        self.lock = threading.Lock()
        self.listings = {}

    def list(self, request, send):
        """Lists a tree. The host acknowledges a listing by naming its generation in the next request."""
        if not self.lock.acquire(timeout=LIST_SECONDS):
            raise Refusal('internal', 'another listing is in progress')
        try:
            root = request['root']
            listing = self.listings.pop(root, None) or Listing(root)
            while len(self.listings) >= MAX_LISTINGS:
                self.listings.pop(next(iter(self.listings))).close()
            self.listings[root] = listing
            listing.list(request, send)
        finally:
            self.lock.release()


class Listing:
    """The last listing of a tree that the host has acknowledged, so that it is told only what differs."""

    def __init__(self, root):
        self.root = root
        self.generation = None
        self.known = {}
        self.pending = None
        self.watch = Watch(root)
        # The last pass: its generation, its limit, and what it skipped.
        self.walked = None, 0, 0

    def close(self):
        self.watch.close()

    def list(self, request, send):
        since, limit = request.get('since'), int(request['limit'])
        self.acknowledge(since)
        generation, walked_limit, skipped = self.walked
        is_latest = generation is not None and generation == self.generation and limit == walked_limit
        if is_latest and not request.get('full') and self.watch.is_quiet(self.known):
            send(self.answer(generation, False, skipped, {}, ()), ())
            return
        self.walked = None, 0, 0
        self.watch.begin()
        changed, deleted, skipped = self.compare(limit)
        generation = secrets.token_hex(16)
        self.walked = generation, limit, skipped
        self.pending = generation, changed, deleted
        complete = since is None or since != self.generation
        if request.get('silent'):
            self.acknowledge(generation)
            changed, deleted = {}, ()
        send(self.answer(generation, complete, skipped, changed, deleted), records(changed, deleted))

    def acknowledge(self, generation):
        pending, self.pending = self.pending, None
        if generation is not None and generation == self.generation:
            return
        if pending is not None and generation == pending[0]:
            self.generation, changed, deleted = pending
            self.known.update(changed)
            for path in deleted:
                del self.known[path]
            return
        self.generation, self.known = None, {}

    def compare(self, limit):
        walk = Walk(self.root, self.known, limit)
        deleted = walk.missing()
        if deleted:
            # A file that was moved during the pass may have been missed in both places. It is in the new one by now.
            walk = Walk(self.root, self.known, limit)
            deleted &= walk.missing()
        return walk.changed, deleted, walk.skipped

    def answer(self, generation, complete, skipped, changed, deleted):
        size = sum(LENGTHS.size + len(path) + len(state) for path, state in changed.items())
        size += sum(LENGTHS.size + STATE.size + len(path) for path in deleted)
        return {'ok': True, 'generation': generation, 'complete': complete, 'skipped': skipped,
                'records': len(changed) + len(deleted), 'size': size}


class Watch:
    """Tells whether a tree is as it was when a pass over it began. Without events, it never says so."""

    def __init__(self, root):
        self.root = root
        self.identity = None
        self.events = None

    def close(self):
        if self.events is not None:
            self.events.close()
        self.events = self.identity = None

    def begin(self):
        """Watches from here on. A pass over the tree follows, which sees what was before."""
        with Directories(self.root) as directories:
            identity = identity_of(os.fstat(directories.fds[0]))
            if identity != self.identity:
                self.close()
                try:
                    self.events = Events(directories.fds[0])
                except OSError:
                    # This file system does not report its changes.
                    return
                self.identity = identity
        self.events.take()

    def is_quiet(self, known):
        # What is taken from the events is lost if this fails, so it comes first.
        if self.events is None or identity_of(os.stat(self.root, follow_symlinks=False)) != self.identity:
            return False
        inodes = self.events.take()
        if not inodes:
            return inodes is not None
        inodes = {INODE.pack(inode) for inode in inodes}
        if INODE.pack(self.identity[1] & 0xffffffff) in inodes:
            return False
        start, end = STATE.size - INODE.size, STATE.size
        return not any(state[start:end] in inodes for state in known.values())


def identity_of(status):
    return status.st_dev, status.st_ino


def records(changed, deleted):
    nothing = bytes(STATE.size)
    for path in deleted:
        yield nothing + LENGTHS.pack(len(path), 0) + path
    for path, state in changed.items():
        target = state[STATE.size:]
        yield state[:STATE.size] + LENGTHS.pack(len(path), len(target)) + path + target


class Output:
    """Gathers small pieces, so that each does not cost a call of the kernel."""

    def __init__(self, connection):
        self.connection = connection
        self.parts = []
        self.size = 0

    def add(self, data):
        self.parts.append(data)
        self.size += len(data)
        if self.size >= BUFFER:
            self.flush()

    def flush(self):
        if self.parts:
            self.connection.sendall(b''.join(self.parts))
        self.parts, self.size = [], 0

    def add_file(self, fd, offset, size):
        """Sends one segment of a file, with zeros for what the file lacks. Returns the bytes that it had."""
        if size <= SMALL:
            data = os.pread(fd, size, offset)
            self.add(data)
            self.add(bytes(size - len(data)))
            return len(data)
        self.flush()
        sent = 0
        while sent < size:
            count = os.sendfile(self.connection.fileno(), fd, offset + sent, size - sent)
            if count == 0:
                self.connection.sendall(bytes(size - sent))
                break
            sent += count
        return sent


class Input:
    """Reads the records of a request. Content is moved into files without being copied into this process."""

    def __init__(self, wire):
        self.wire = wire
        self.buffer = wire.ahead
        self.at = 0
        wire.ahead = b''

    def exactly(self, size):
        end = self.at + size
        if end > len(self.buffer):
            parts = [self.buffer[self.at:]]
            have = len(parts[0])
            while have < size:
                data = self.wire.connection.recv(BUFFER)
                if not data:
                    raise EOFError
                parts.append(data)
                have += len(data)
            self.buffer, self.at, end = b''.join(parts), 0, size
        data = self.buffer[self.at:end]
        self.at = end
        return data

    def into_file(self, size, fd):
        """Moves content to the current position of the file. Consumes it all, then raises the failure to write."""
        if size <= SMALL:
            data = self.exactly(size)
            while data:
                data = data[os.write(fd, data):]
            return
        self.give_back()
        failure = self.wire.into_file(size, fd)
        self.buffer, self.at, self.wire.ahead = self.wire.ahead, 0, b''
        if failure is not None:
            raise failure

    def skip(self, size):
        self.give_back()
        self.wire.skip(size)
        self.buffer, self.at, self.wire.ahead = self.wire.ahead, 0, b''

    def give_back(self):
        self.wire.ahead = self.buffer[self.at:]
        self.buffer, self.at = b'', 0


class Content(Input):
    """The segments of a small file that were read before."""

    def __init__(self, content):
        self.buffer = (LENGTH.pack(len(content)) + content if content else b'') + LENGTH.pack(0)
        self.at = 0

    def skip(self, size):
        self.at += size


def read_tree(request, wire, answer):
    """Sends ranges of files, each as segments and a status. A range of a file that is not the expected one, or is
    written meanwhile, has the status `CHANGED`. One that a process has open for writing has the status `OPEN`: a write
    may be in progress, or later ones may leave no trace, so it has to be read again."""
    size = int(request['size'])
    if size > MAX_RANGES_BYTES:
        raise EOFError
    ranges = wire.exactly(size)
    with Directories(request['root']) as directories:
        answer({'ok': True})
        output = Output(wire.connection)
        at = 0
        while at < size:
            offset, length, *expected, path_length = RANGE.unpack_from(ranges, at)
            at += RANGE.size + path_length
            status = read_range(directories, ranges[at - path_length:at], (offset, length, tuple(expected)), output)
            output.add(LENGTH.pack(0) + bytes((status,)))
        output.flush()


def read_range(directories, path, wanted, output):
    offset, length, expected = wanted
    try:
        parent, name = directories.parent(path)
        # Without O_NONBLOCK, opening a pipe would block until its other end is opened.
        fd = os.open(name, os.O_RDONLY | os.O_NONBLOCK | NO_FOLLOW, dir_fd=parent)
    except OSError as error:
        return GONE if error.errno in (errno.ENOENT, errno.ENOTDIR) else REFUSED
    try:
        if offset == 0 and 0 < length == expected[0] <= SMALL:
            status = read_small(fd, expected, output)
            if status is not None:
                return status
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            return REFUSED
        if times_of(status) != expected:
            return CHANGED
        # A write in the same tick of the clock as the last one would leave no trace.
        age = time.time_ns() - status.st_ctime_ns
        if 0 <= age < CLOCK_TICK_NS:
            time.sleep((CLOCK_TICK_NS - age) / 1e9)
        is_open = 0 <= age < SETTLED_NS and has_writers(fd)
        whole = send_range(fd, status, offset, min(offset + length, status.st_size), output)
        if not whole or times_of(os.fstat(fd)) != expected:
            return CHANGED
        return OPEN if is_open else COMPLETE
    finally:
        os.close(fd)


def read_small(fd, expected, output):
    """Reads a small file in few calls of the kernel. None, without output, for one that is not in the usual state."""
    size, _inode, _mtime, ctime = expected
    age = time.time_ns() - ctime
    if age < CLOCK_TICK_NS:
        return None
    is_open = False
    if age < SETTLED_NS:
        try:
            # Whoever opens the file for writing waits until it is closed here, which releases the lease.
            fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        except OSError:
            is_open = True
    try:
        data = os.pread(fd, size, 0)
    except OSError:
        return None
    status = os.fstat(fd)
    # Times that are the expected ones now were so during the read.
    if (len(data) != size or not stat.S_ISREG(status.st_mode) or times_of(status) != expected
            or status.st_blocks * 512 < size):
        return None
    output.add(LENGTH.pack(size) + data)
    return OPEN if is_open else COMPLETE


def has_writers(fd):
    """Whether a process has the file open or mapped for writing. The kernel grants no lease on such a file."""
    try:
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except OSError:
        return True
    fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    return False


def times_of(status):
    return status.st_size, status.st_ino, status.st_mtime_ns, status.st_ctime_ns


def send_range(fd, status, offset, end, output):
    """Sends the bytes from `offset` to `end`. False when the file has become shorter."""
    sparse = status.st_blocks * 512 < status.st_size
    while offset < end:
        data = data_after(fd, offset, end) if sparse else offset
        while offset < data:
            size = min(data - offset, HOLE - 1)
            output.add(LENGTH.pack(HOLE | size))
            offset += size
        limit = hole_after(fd, offset, end) if sparse and offset < end else end
        while offset < limit:
            size = min(limit - offset, SEGMENT)
            output.add(LENGTH.pack(size))
            if output.add_file(fd, offset, size) < size:
                return False
            offset += size
    return True


def data_after(fd, offset, end):
    try:
        return min(os.lseek(fd, offset, os.SEEK_DATA), end)
    except OSError as error:
        if error.errno != errno.ENXIO:
            raise
        return end


def hole_after(fd, offset, end):
    try:
        return min(os.lseek(fd, offset, os.SEEK_HOLE), end)
    except OSError as error:
        # The file has become shorter. Reading it shows that.
        if error.errno != errno.ENXIO:
            raise
        return end


def write_tree(request, wire, answer, code_of):
    """Writes entries. Those that cannot be written are listed in the answer by their number."""
    stream = Input(wire)
    refused = []
    try:
        with Directories(request['root'], create=True) as directories:
            for index in range(int(request['limit']) + 1):
                kind, mode, mtime, offset, size, path_length, target_length = ENTRY.unpack(stream.exactly(ENTRY.size))
                if kind == END:
                    answer({'ok': True, 'refused': refused})
                    return
                path, target = stream.exactly(path_length), stream.exactly(target_length)
                try:
                    if kind == FILE:
                        write_part(directories, path, (mode, mtime, offset, size), stream)
                    else:
                        write_entry(directories, path, (kind, mode, mtime, target))
                except OSError as error:
                    refused.append([index, code_of(error)])
        raise EOFError
    finally:
        stream.give_back()


def write_entry(directories, path, entry):
    kind, mode, mtime, target = entry
    parent, name = directories.parent(path, create=kind != DELETED)
    if kind == DIRECTORY:
        make_directory(name, parent)
        fd = os.open(name, os.O_RDONLY | os.O_DIRECTORY | NO_FOLLOW, dir_fd=parent)
        try:
            os.fchmod(fd, mode)
            os.utime(fd, ns=(mtime, mtime))
        finally:
            os.close(fd)
    elif kind == SYMLINK:
        temporary = temporary_name(path)
        remove(temporary, parent)
        os.symlink(target, temporary, dir_fd=parent)
        os.utime(temporary, ns=(mtime, mtime), dir_fd=parent, follow_symlinks=False)
        os.rename(temporary, name, src_dir_fd=parent, dst_dir_fd=parent)
    elif kind == DELETED:
        try:
            os.unlink(name, dir_fd=parent)
        except IsADirectoryError:
            os.rmdir(name, dir_fd=parent)
    else:
        raise EOFError


def write_part(directories, path, part, stream):
    """Writes a part of a file under a temporary name. The part that reaches the size gives the file its name. A small
    file that is new needs no other name."""
    mode, mtime, offset, size = part
    if offset == 0 and size <= SMALL:
        content = small_content(size, stream)
        if len(content) == size and create_file(directories, path, (mode, mtime), content):
            return
        stream = Content(content)
    failure = fd = None
    temporary = temporary_name(path)
    try:
        parent, name = directories.parent(path, create=True)
        if offset == 0:
            remove(temporary, parent)
        flags = os.O_WRONLY | NO_FOLLOW | (os.O_CREAT | os.O_EXCL if offset == 0 else 0)
        fd = os.open(temporary, flags, 0o600, dir_fd=parent)
        if os.fstat(fd).st_size < offset:
            raise OSError(errno.ENOENT, 'the parts before this one are missing')
        # A broken transfer may have left some of this part.
        os.ftruncate(fd, offset)
        os.lseek(fd, offset, os.SEEK_SET)
    except OSError as error:
        failure = error
    try:
        at, failure = write_segments(fd, offset, size, failure, stream)
        if failure is not None:
            raise failure
        if at == size:
            os.fchmod(fd, mode)
            os.utime(fd, ns=(mtime, mtime))
            os.rename(temporary, name, src_dir_fd=parent, dst_dir_fd=parent)
    finally:
        if fd is not None:
            os.close(fd)
            if failure is not None:
                remove(temporary, parent)


def small_content(size, stream):
    """Reads all segments of a part of a small file."""
    content = b''
    while length := LENGTH.unpack(stream.exactly(LENGTH.size))[0]:
        is_hole, length = length & HOLE, length & (HOLE - 1)
        if len(content) + length <= size:
            content += bytes(length) if is_hole else stream.exactly(length)
        else:
            # Longer than the file, which is refused when it is written.
            content += bytes(size + 1 - len(content))
            if not is_hole:
                stream.skip(length)
    return content


def create_file(directories, path, attributes, content):
    """Writes a whole file at once. False if there is something of this name."""
    mode, mtime = attributes
    parent, name = directories.parent(path, create=True)
    try:
        fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_FOLLOW, mode & 0o777, dir_fd=parent)
    except FileExistsError:
        return False
    try:
        while content:
            content = content[os.write(fd, content):]
        if mode & (UMASK | 0o7000):
            os.fchmod(fd, mode)
        os.utime(fd, ns=(mtime, mtime))
    except OSError:
        remove(name, parent)
        raise
    finally:
        os.close(fd)
    return True


def write_segments(fd, at, size, failure, stream):
    """Consumes all segments even when writing fails. Returns the position after them, and the failure."""
    while length := LENGTH.unpack(stream.exactly(LENGTH.size))[0]:
        is_hole, length = length & HOLE, length & (HOLE - 1)
        at += length
        if failure is None and at > size:
            failure = OSError(errno.EINVAL, 'the content is longer than the file')
        if failure is not None:
            if not is_hole:
                stream.skip(length)
            continue
        try:
            if is_hole:
                os.ftruncate(fd, at)
                os.lseek(fd, at, os.SEEK_SET)
            else:
                stream.into_file(length, fd)
        except OSError as error:
            failure = error
    return at, failure


def temporary_name(path):
    return TEMPORARY + hashlib.blake2b(path, digest_size=12).hexdigest().encode()


def remove(name, fd):
    try:
        os.unlink(name, dir_fd=fd)
    except FileNotFoundError:
        return
