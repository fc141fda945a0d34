"""What has happened on a file system, so that a tree in which nothing has changed need not be looked at.

The kernel reports all changes of a file system, by whatever name or descriptor they are made: hard links, files without
a name, renamed directories. It does not report writes through a memory map, and not what is mounted over a directory.
"""

import ctypes
import os
import struct

# linux/fanotify.h
FAN_CLOEXEC, FAN_NONBLOCK, FAN_REPORT_FID = 0x1, 0x2, 0x200
FAN_MARK_ADD, FAN_MARK_FILESYSTEM = 0x1, 0x100
FAN_MODIFY, FAN_ATTRIB, FAN_CLOSE_WRITE = 0x2, 0x4, 0x8
FAN_MOVED_FROM, FAN_MOVED_TO, FAN_CREATE, FAN_DELETE = 0x40, 0x80, 0x100, 0x200
FAN_ONDIR = 0x40000000
FAN_Q_OVERFLOW = 0x4000
MASK = (FAN_MODIFY | FAN_ATTRIB | FAN_CLOSE_WRITE | FAN_MOVED_FROM | FAN_MOVED_TO | FAN_CREATE | FAN_DELETE | FAN_ONDIR)

# The lengths of an event and of its head, and its mask.
EVENT = struct.Struct('=IBBHQii')
# What follows the head: kind of information, padding, length; file system; size and kind of a file handle.
INFORMATION = struct.Struct('=BBHQIi')
FAN_EVENT_INFO_TYPE_FID = 1
# The inode and its generation, each in 32 bits.
FILEID_INO32_GEN, INO32_GEN_BYTES = 1, 8
INODE = struct.Struct('=I')

BUFFER = 1 << 16
# More than this is not worth telling apart. The kernel keeps 16,384 events, each of less than 100 bytes.
MAX_INODES = 4096
MAX_BYTES = 4 << 20

libc = ctypes.CDLL(None, use_errno=True)
libc.fanotify_mark.argtypes = (ctypes.c_int, ctypes.c_uint, ctypes.c_uint64, ctypes.c_int, ctypes.c_char_p)


class Events:
    """The changes of the file system that contains a directory, from now on. Fails where the kernel does not tell them."""

    def __init__(self, directory):
        self.fd = checked(libc.fanotify_init(FAN_CLOEXEC | FAN_NONBLOCK | FAN_REPORT_FID, os.O_RDONLY))
        try:
            checked(libc.fanotify_mark(self.fd, FAN_MARK_ADD | FAN_MARK_FILESYSTEM, MASK, directory, None))
        except OSError:
            self.close()
            raise

    def close(self):
        os.close(self.fd)

    def take(self):
        """The inodes to which something has happened since the last call. None if that is not known: too much has."""
        inodes = set()
        size = 0
        while size < MAX_BYTES:
            try:
                data = os.read(self.fd, BUFFER)
            except BlockingIOError:
                return inodes
            size += len(data)
            if inodes is not None and (not add_inodes(inodes, data) or len(inodes) > MAX_INODES):
                inodes = None
        return None


def add_inodes(inodes, data):
    """False if an event does not say to which inode it belongs."""
    at = 0
    while at < len(data):
        length, _version, _reserved, head, mask, _fd, _pid = EVENT.unpack_from(data, at)
        if mask & FAN_Q_OVERFLOW or length < head + INFORMATION.size + INO32_GEN_BYTES:
            return False
        kind, _padding, _length, _system, size, handle = INFORMATION.unpack_from(data, at + head)
        if (kind, size, handle) != (FAN_EVENT_INFO_TYPE_FID, INO32_GEN_BYTES, FILEID_INO32_GEN):
            return False
        inodes.add(INODE.unpack_from(data, at + head + INFORMATION.size)[0])
        at += length
    return True


def checked(result):
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result
