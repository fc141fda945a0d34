"""Trees of files on the guest channel: listing, reading and writing everything below one directory.

A path is bytes relative to the root of the tree. No symbolic link is followed, not even in the middle of a path: every
component is opened relative to the directory before it. Renaming or replacing files meanwhile cannot lead an operation
out of the tree.

All numbers on the wire are big endian. `libtrees.so`, compiled from `libraries/trees.c` of the recipe, has the loops
that run once per file.
"""

import ctypes
import errno
import fcntl
import hashlib
import itertools
import os
import secrets
import stat
import struct
import threading
import time

from events import Events

FILE, DIRECTORY, SYMLINK, DELETED, END = stat.S_IFREG >> 12, stat.S_IFDIR >> 12, stat.S_IFLNK >> 12, 0, 255
# What identifies the state of an entry: kind, mode, mtime, ctime, size, inode.
STATE = struct.Struct('>BIqqQQ')
# The last part of it: what the kernel tells of an inode, the lower half.
INODE = struct.Struct('>I')
INODE_BYTES = slice(STATE.size - INODE.size, STATE.size)
# The lengths of path and target. A record is a state, these, the path, and the target of a symbolic link.
LENGTHS = struct.Struct('>HH')
RECORD_HEAD = STATE.size + LENGTHS.size
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
# Room for the records of as many entries as are listed in one call, with the longest paths and targets.
LISTED = 1 << 21
# Records that are sent together.
RECORDS = 1000
# Writes that are closer together than this may leave the same times on a file.
CLOCK_TICK_NS = 50_000_000
# The kernel notices writes through a memory map at the latest this long after the last write it noticed: it writes
# changed pages to the disk after 30 s, and sees the next change of each.
SETTLED_NS = 60_000_000_000
# Inodes of deleted entries that are kept before the set is made anew.
MIN_INODES = 1000
LIST_SECONDS = 60
MAX_LISTINGS = 4

NO_FOLLOW = os.O_NOFOLLOW | os.O_CLOEXEC
UMASK = os.umask(0o022)
os.umask(UMASK)

native = ctypes.CDLL(os.path.join(os.path.dirname(os.path.abspath(__file__)), 'libtrees.so'))
native.list_entries.restype = ctypes.c_ssize_t
native.list_entries.argtypes = (ctypes.c_int, ctypes.c_uint64, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_void_p,
                                ctypes.c_size_t, ctypes.POINTER(ctypes.c_uint64))
native.read_files.restype = ctypes.c_size_t
native.read_files.argtypes = (ctypes.c_int, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_size_t,
                              ctypes.c_void_p, ctypes.c_size_t, ctypes.POINTER(ctypes.c_size_t))
native.create_files.restype = ctypes.c_size_t
native.create_files.argtypes = (ctypes.c_int, ctypes.c_size_t, ctypes.c_uint, ctypes.c_char_p, ctypes.c_size_t,
                                ctypes.c_size_t, ctypes.c_size_t, ctypes.POINTER(ctypes.c_size_t))


class Watched(ctypes.Structure):
    """What `native.answer_watch` needs to know of a tree, of which it is told in another thread."""

    _fields_ = (('pass_', ctypes.c_uint64), ('device', ctypes.c_uint64), ('inode', ctypes.c_uint64),
                ('generation', ctypes.c_uint8 * 16), ('is_closed', ctypes.c_uint32))


native.answer_watch.restype = None
native.answer_watch.argtypes = ctypes.c_int, ctypes.c_int, ctypes.c_char_p, ctypes.POINTER(Watched)


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
        self.buffer = Buffer(LISTED)
        with Directories(root) as directories:
            fd = directories.fds[0]
            self.device = os.fstat(fd).st_dev
            self.visit(fd, b'', 0)

    def visit(self, fd, prefix, depth):
        below = []
        while records := self.read_entries(fd, prefix):
            self.add(records, below)
        for path in below:
            try:
                inner = os.open(path[len(prefix):], os.O_RDONLY | os.O_DIRECTORY | NO_FOLLOW, dir_fd=fd)
            except OSError as error:
                # It was removed or replaced meanwhile. The next listing tells.
                if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
                    raise
                continue
            try:
                if depth + 1 < MAX_DEPTH and os.fstat(inner).st_dev == self.device:
                    self.visit(inner, path + b'/', depth + 1)
                else:
                    self.closed.append(path + b'/')
            finally:
                os.close(inner)

    def read_entries(self, fd, prefix):
        """The records of the next entries of a directory. Empty at its end."""
        skipped = ctypes.c_uint64()
        size = native.list_entries(fd, self.device, prefix, len(prefix), self.buffer.address, LISTED, skipped)
        if size < 0:
            raise OSError(-size, os.strerror(-size))
        self.skipped += skipped.value
        return self.buffer.taken(size)

    def add(self, records, directories):
        """Adds records to the listing, and the paths of its directories to `directories`."""
        known, seen, changed = self.known, self.seen, self.changed
        at, size = 0, len(records)
        while at < size:
            path_length, target_length = LENGTHS.unpack_from(records, at + STATE.size)
            start = at + RECORD_HEAD
            path = records[start:start + path_length]
            end = start + path_length + target_length
            record = records[at:end]
            at = end
            old = known.get(path)
            if old != record:
                if old is None:
                    if len(known) + self.added >= self.limit:
                        self.skipped += 1
                        if record[0] == DIRECTORY:
                            self.closed.append(path + b'/')
                        continue
                    self.added += 1
                changed[path] = record
            seen.add(path)
            if record[0] == DIRECTORY:
                directories.append(path)

    def missing(self):
        gone = self.known.keys() - self.seen
        closed = tuple(self.closed)
        return {path for path in gone if not path.startswith(closed)} if closed else gone


class Buffer:
    """Memory that `native` writes to."""

    def __init__(self, size):
        self.bytes = bytearray(size)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.bytes))

    def taken(self, size):
        with memoryview(self.bytes) as view:
            return bytes(view[:size])


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

    def watch(self, request, connection, answer):
        """Tells again and again whether anything may have changed since a listing, in a fraction of the time."""
        root = request['root']
        with self.lock:
            listing = self.listings.get(root)
            events = None if listing is None else listing.watch.events
            watched = None if events is None else listing.watch.watched
            # The other one is closed when the tree is not watched any more.
            fd = None if events is None else os.dup(events.fd)
        answer({'ok': True, 'watched': fd is not None})
        if fd is None:
            return
        try:
            native.answer_watch(connection.fileno(), fd, os.fsencode(root), watched)
        finally:
            os.close(fd)


class Listing:
    """The last listing of a tree that the host has acknowledged, so that it is told only what differs."""

    def __init__(self, root):
        self.root = root
        self.generation = None
        self.known = {}
        # Those of `known`, and perhaps of entries that are gone.
        self.inodes = set()
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
        if is_latest and not request.get('full') and self.watch.is_quiet(self.inodes):
            self.watch.tell(generation)
            send(self.answer(generation, False, skipped, {}, ()), ())
            return
        self.walked = None, 0, 0
        self.watch.begin()
        changed, deleted, skipped = self.compare(limit)
        generation = secrets.token_hex(16)
        self.walked = generation, limit, skipped
        self.watch.tell(generation)
        self.pending = generation, changed, deleted
        complete = since is None or since != self.generation
        told = changed, deleted
        if request.get('silent'):
            self.acknowledge(generation)
            told = {}, ()
        send(self.answer(generation, complete, skipped, *told), records(*told))
        # The host does not wait for this.
        self.remember_inodes(changed)

    def remember_inodes(self, changed):
        if len(self.inodes) > 2 * len(self.known) + MIN_INODES:
            self.inodes = {record[INODE_BYTES] for record in self.known.values()}
        self.inodes.update(record[INODE_BYTES] for record in changed.values())

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
        self.generation, self.known, self.inodes = None, {}, set()

    def compare(self, limit):
        walk = Walk(self.root, self.known, limit)
        deleted = walk.missing()
        if deleted:
            # A file that was moved during the pass may have been missed in both places. It is in the new one by now.
            walk = Walk(self.root, self.known, limit)
            deleted &= walk.missing()
        return walk.changed, deleted, walk.skipped

    def answer(self, generation, complete, skipped, changed, deleted):
        size = sum(map(len, changed.values())) + RECORD_HEAD * len(deleted) + sum(map(len, deleted))
        return {'ok': True, 'generation': generation, 'complete': complete, 'skipped': skipped,
                'records': len(changed) + len(deleted), 'size': size}


class Watch:
    """Tells whether a tree is as it was when a pass over it began. Without events, it never says so."""

    def __init__(self, root):
        self.root = root
        self.identity = None
        self.events = None
        self.watched = Watched()
        self.passes = 0

    def close(self):
        self.watched.pass_ = 0
        self.watched.is_closed = 1
        self.watched = Watched()
        if self.events is not None:
            self.events.close()
        self.events = self.identity = None

    def tell(self, generation):
        """Nothing is known to have happened since the pass with this generation began."""
        if self.events is None:
            return
        self.passes += 1
        self.watched.device, self.watched.inode = self.identity
        self.watched.generation[:] = bytes.fromhex(generation)
        self.watched.pass_ = self.passes

    def take(self):
        # Before the events are gone, see `is_unchanged` in trees.c.
        self.watched.pass_ = 0
        return self.events.take()

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
        self.take()

    def is_quiet(self, known):
        """`known`: the inodes of the tree, as they are in a record."""
        # What is taken from the events is lost if this fails, so it comes first.
        if self.events is None or identity_of(os.stat(self.root, follow_symlinks=False)) != self.identity:
            return False
        inodes = self.take()
        if not inodes:
            return inodes is not None
        return self.identity[1] & 0xffffffff not in inodes and known.isdisjoint(map(INODE.pack, inodes))


def identity_of(status):
    return status.st_dev, status.st_ino


def records(changed, deleted):
    """The records of a listing, many at a time. The state of a deleted entry is all zeros."""
    nothing = bytes(STATE.size)
    gone = (nothing + LENGTHS.pack(len(path), 0) + path for path in deleted)
    left = itertools.chain(gone, changed.values())
    while some := b''.join(itertools.islice(left, RECORDS)):
        yield some


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
        """Sends one segment of a file, with zeros for what the file lacks. Returns the bytes that it had. Copies them:
        sendfile would send what the file holds when the host takes it, which may be later than the check of its times."""
        sent = 0
        while sent < size:
            data = os.pread(fd, min(size - sent, BUFFER), offset + sent)
            if not data:
                self.add(bytes(size - sent))
                break
            self.add(data)
            sent += len(data)
        return sent


class Input:
    """Reads the records of a request. Content is moved into files without being copied into this process."""

    def __init__(self, wire):
        self.wire = wire
        self.buffer = wire.ahead
        self.at = 0
        wire.ahead = b''

    def fill(self, size):
        """Waits until this many bytes are in the buffer."""
        if self.at + size <= len(self.buffer):
            return
        parts = [self.buffer[self.at:]]
        have = len(parts[0])
        while have < size:
            data = self.wire.connection.recv(BUFFER)
            if not data:
                raise EOFError
            parts.append(data)
            have += len(data)
        self.buffer, self.at = b''.join(parts), 0

    def exactly(self, size):
        self.fill(size)
        data = self.buffer[self.at:self.at + size]
        self.at += size
        return data

    def fill_entry(self):
        """Waits until the next entry is in the buffer and returns its path. None if it is not a whole small file."""
        self.fill(ENTRY.size)
        kind, _mode, _mtime, offset, size, path_length, target_length = ENTRY.unpack_from(self.buffer, self.at)
        if kind != FILE or offset != 0 or size > SMALL:
            return None
        end = ENTRY.size + path_length + target_length
        while True:
            self.fill(end + LENGTH.size)
            length = LENGTH.unpack_from(self.buffer, self.at + end)[0]
            end += LENGTH.size
            if length == 0:
                return self.buffer[self.at + ENTRY.size:self.at + ENTRY.size + path_length]
            if length > size:
                # Such a length means a hole, or more than the file has.
                return None
            size -= length
            end += length
            self.fill(end)

    def create_files(self, directories, most):
        """Makes the files of the next entries, unless they are not new or not small. Returns their number."""
        path = self.fill_entry()
        if path is None or most == 0:
            return 0
        try:
            parent, name = directories.parent(path, create=True)
        except OSError:
            # It is refused when it is written.
            return 0
        count = ctypes.c_size_t()
        self.at += native.create_files(parent, len(path) - len(name), UMASK, self.buffer, self.at, len(self.buffer),
                                       most, count)
        return count.value

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
        buffer = Buffer(BUFFER)
        at = 0
        while at < size:
            offset, length, *expected, path_length = RANGE.unpack_from(ranges, at)
            path = ranges[at + RANGE.size:at + RANGE.size + path_length]
            done = read_files(directories, path, (ranges, at, size), buffer, output)
            at += done
            if done == 0:
                at += RANGE.size + path_length
                status = read_range(directories, path, (offset, length, tuple(expected)), output)
                output.add(LENGTH.pack(0) + bytes((status,)))
        output.flush()


def read_files(directories, path, ranges, buffer, output):
    """Reads the files of the next ranges, if they are whole small files in the usual state. Returns how many bytes of
    the ranges are done."""
    try:
        parent, name = directories.parent(path)
    except OSError:
        # It is refused when it is read.
        return 0
    written = ctypes.c_size_t()
    done = native.read_files(parent, len(path) - len(name), *ranges, buffer.address, BUFFER, written)
    output.add(buffer.taken(written.value))
    return done


def read_range(directories, path, wanted, output):
    offset, length, expected = wanted
    try:
        parent, name = directories.parent(path)
        # Without O_NONBLOCK, opening a pipe would block until its other end is opened.
        fd = os.open(name, os.O_RDONLY | os.O_NONBLOCK | NO_FOLLOW, dir_fd=parent)
    except OSError as error:
        return GONE if error.errno in (errno.ENOENT, errno.ENOTDIR) else REFUSED
    try:
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


def has_writers(fd):
    """Whether a process has the file open or mapped for writing. The kernel grants no lease on such a file."""
    try:
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except OSError:
        return True
    fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    return False


def times_of(status):
    return status.st_size, status.st_ino, in_64_bits(status.st_mtime_ns), in_64_bits(status.st_ctime_ns)


def in_64_bits(time):
    """Nanoseconds as a listing has them. A file system may keep times that these cannot express."""
    return max(-1 << 63, min(time, (1 << 63) - 1))


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
            index, limit = 0, int(request['limit'])
            while index <= limit:
                if created := stream.create_files(directories, limit - index):
                    index += created
                    continue
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
                index += 1
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
    """Writes a part of a file under a temporary name. The part that reaches the size gives the file its name."""
    mode, mtime, offset, size = part
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
    except OSError as error:
        failure = error
        raise
    finally:
        if fd is not None:
            os.close(fd)
            if failure is not None:
                remove(temporary, parent)


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
