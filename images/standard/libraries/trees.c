/*
 * The loops of trees.py that run once per file. Those that read and create files handle as many as are ordinary, and
 * stop before the first that is not, which trees.py then handles by itself.
 *
 * A name is opened relative to the descriptor of its directory, and no symbolic link is followed. All numbers in
 * buffers are big endian. trees.py defines the formats: STATE, LENGTHS, RANGE, ENTRY and LENGTH.
 */

#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#define KIND_FILE (S_IFREG >> 12)
#define KIND_DIRECTORY (S_IFDIR >> 12)
#define KIND_SYMLINK (S_IFLNK >> 12)

#define STATE_BYTES 37
#define LENGTHS_BYTES 4
#define RANGE_BYTES 50
#define ENTRY_BYTES 33
#define LENGTH_BYTES 4
#define STATUS_BYTES 1
#define GENERATION_BYTES 16

#define COMPLETE 0
#define OPEN 4

#define TEMPORARY ".svc-tree-"
#define MAX_PATH 4095
#define MAX_NAME 255
#define MAX_MODE 07777
#define SMALL (1 << 16)
#define HOLE (UINT32_C(1) << 31)
/* Enough for an entry with the longest name, and few enough entries that their records fit into a few MiB. */
#define DIRECTORY_BYTES 4096

#define NS_PER_SECOND INT64_C(1000000000)
/* The reasons for both are in trees.py. */
#define CLOCK_TICK_NS INT64_C(50000000)
#define SETTLED_NS INT64_C(60000000000)

static uint8_t *put(uint8_t *out, uint64_t value, int bytes)
{
    for (int at = bytes - 1; at >= 0; at--) {
        out[at] = (uint8_t)value;
        value >>= 8;
    }
    return out + bytes;
}

static uint64_t get(const uint8_t *in, int bytes)
{
    uint64_t value = 0;
    for (int at = 0; at < bytes; at++)
        value = value << 8 | in[at];
    return value;
}

static uint8_t *put_bytes(uint8_t *out, const void *bytes, size_t size)
{
    memcpy(out, bytes, size);
    return out + size;
}

/* Nanoseconds since 1970. A file system may keep times that these cannot express, which become the nearest one. */
static int64_t nanoseconds(struct timespec time)
{
    int64_t value;
    if (__builtin_mul_overflow((int64_t)time.tv_sec, NS_PER_SECOND, &value) ||
        __builtin_add_overflow(value, (int64_t)time.tv_nsec, &value))
        return time.tv_sec < 0 ? INT64_MIN : INT64_MAX;
    return value;
}

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/*
 * Writes the record of one entry, or nothing if it was removed or replaced meanwhile or is not part of a tree. Returns
 * the number of bytes, or a negative errno.
 */
static ssize_t list_entry(int directory, uint64_t device, const uint8_t *prefix, size_t prefix_length, const char *name,
                          uint8_t *out, size_t room, uint64_t *skipped)
{
    char target[MAX_PATH + 1];
    ssize_t target_length = 0;
    struct stat status;
    if (fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) != 0)
        return errno == ENOENT ? 0 : -errno;
    const unsigned kind = status.st_mode >> 12;
    const bool is_file = kind == KIND_FILE && status.st_dev == device;
    const size_t path_length = prefix_length + strlen(name);
    if (path_length > MAX_PATH || (!is_file && kind != KIND_DIRECTORY && kind != KIND_SYMLINK)) {
        *skipped += 1;
        return 0;
    }
    if (kind == KIND_SYMLINK) {
        target_length = readlinkat(directory, name, target, sizeof target);
        if (target_length < 0)
            return errno == ENOENT || errno == EINVAL ? 0 : -errno;
        if (target_length > MAX_PATH)
            return -ENAMETOOLONG;
    }
    const size_t size = STATE_BYTES + LENGTHS_BYTES + path_length + (size_t)target_length;
    if (size > room)
        return -ENOBUFS;
    out = put(out, kind, 1);
    out = put(out, status.st_mode & MAX_MODE, 4);
    out = put(out, (uint64_t)nanoseconds(status.st_mtim), 8);
    out = put(out, (uint64_t)nanoseconds(status.st_ctim), 8);
    out = put(out, is_file ? (uint64_t)status.st_size : 0, 8);
    out = put(out, status.st_ino, 8);
    out = put(out, path_length, 2);
    out = put(out, (uint64_t)target_length, 2);
    out = put_bytes(out, prefix, prefix_length);
    out = put_bytes(out, name, path_length - prefix_length);
    put_bytes(out, target, (size_t)target_length);
    return (ssize_t)size;
}

/*
 * Writes the records of the next entries of a directory, whose path in the tree with its slash is `prefix`. Adds to
 * `skipped` the number of those that cannot be part of a tree: special files, files of other disks, paths that are too
 * long. Returns the number of bytes, 0 at the end of the directory, or a negative errno: ENOBUFS if `size` is too
 * small.
 */
ssize_t list_entries(int directory, uint64_t device, const uint8_t *prefix, size_t prefix_length, uint8_t *out,
                     size_t size, uint64_t *skipped)
{
    union {
        struct dirent64 alignment;
        char bytes[DIRECTORY_BYTES];
    } entries;
    size_t used = 0;
    while (used == 0) {
        const ssize_t read = getdents64(directory, entries.bytes, sizeof entries.bytes);
        if (read <= 0)
            return read == 0 ? 0 : -errno;
        for (ssize_t at = 0; at < read;) {
            const struct dirent64 *entry = (const struct dirent64 *)(entries.bytes + at);
            at += entry->d_reclen;
            if (is_dots(entry->d_name) || strncmp(entry->d_name, TEMPORARY, strlen(TEMPORARY)) == 0)
                continue;
            const ssize_t written = list_entry(directory, device, prefix, prefix_length, entry->d_name, out + used,
                                               size - used, skipped);
            if (written < 0)
                return written;
            used += (size_t)written;
        }
    }
    return (ssize_t)used;
}

/* The name of an entry whose directory is `prefix`, in `name`. False if it is in another one, or is no name. */
static bool name_below(const uint8_t *path, size_t path_length, const uint8_t *prefix, size_t prefix_length,
                       char name[MAX_NAME + 1])
{
    if (path_length <= prefix_length || path_length - prefix_length > MAX_NAME)
        return false;
    const uint8_t *start = path + prefix_length;
    const size_t length = path_length - prefix_length;
    if (memcmp(path, prefix, prefix_length) != 0 || memchr(start, '/', length) != NULL ||
        memchr(start, '\0', length) != NULL)
        return false;
    memcpy(name, start, length);
    name[length] = '\0';
    return !is_dots(name);
}

/* A file that was listed: its part of a RANGE. */
struct listed {
    uint64_t size;
    uint64_t inode;
    int64_t mtime;
    int64_t ctime;
};

/* Reads a whole file and says how. False if it is not the file that was listed, or its content has holes. */
static bool read_file(int file, const struct listed *listed, int64_t now, uint8_t *content, uint8_t *reading)
{
    *reading = COMPLETE;
    /* Whoever opens the file for writing waits until it is closed here, which releases the lease. */
    if (listed->ctime > now - SETTLED_NS && fcntl(file, F_SETLEASE, F_RDLCK) != 0)
        *reading = OPEN;
    const ssize_t size = TEMP_FAILURE_RETRY(pread(file, content, listed->size, 0));
    struct stat status;
    /* Times that are the expected ones now were so during the read. */
    return size >= 0 && (uint64_t)size == listed->size && fstat(file, &status) == 0 && S_ISREG(status.st_mode) &&
           (uint64_t)status.st_size == listed->size && status.st_ino == listed->inode &&
           nanoseconds(status.st_mtim) == listed->mtime && nanoseconds(status.st_ctim) == listed->ctime &&
           (uint64_t)status.st_blocks * 512 >= listed->size;
}

/*
 * Reads the files of the next ranges, as long as they are whole small files in the directory of the first one, whose
 * path with its slash has `prefix_length` bytes. Writes for each its content as one segment, and its status. Stops
 * before a file that cannot be opened, is not the one that was listed, was changed just now, has holes, or does not
 * fit. Returns the number of bytes of the ranges that are done.
 */
size_t read_files(int directory, size_t prefix_length, const uint8_t *ranges, size_t at, size_t end, uint8_t *out,
                  size_t size, size_t *written)
{
    const size_t start = at;
    const uint8_t *prefix = ranges + start + RANGE_BYTES;
    struct timespec time;
    *written = 0;
    if (clock_gettime(CLOCK_REALTIME, &time) != 0)
        return 0;
    const int64_t now = nanoseconds(time);
    while (at + RANGE_BYTES <= end) {
        const uint8_t *range = ranges + at;
        const uint64_t offset = get(range, 8), length = get(range + 8, 8);
        const struct listed listed = {get(range + 16, 8), get(range + 24, 8), (int64_t)get(range + 32, 8),
                                      (int64_t)get(range + 40, 8)};
        const size_t path_length = get(range + 48, 2);
        char name[MAX_NAME + 1];
        if (path_length > end - at - RANGE_BYTES ||
            !name_below(range + RANGE_BYTES, path_length, prefix, prefix_length, name))
            break;
        if (offset != 0 || length == 0 || length != listed.size || length > SMALL)
            break;
        if (LENGTH_BYTES + length + LENGTH_BYTES + STATUS_BYTES > size - *written)
            break;
        /* A write in the same tick of the clock as the last one would leave no trace. */
        if (listed.ctime > now - CLOCK_TICK_NS)
            break;
        /* Without O_NONBLOCK, opening a pipe would block until its other end is opened. */
        const int flags = O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC;
        const int file = TEMP_FAILURE_RETRY(openat(directory, name, flags));
        if (file < 0)
            break;
        uint8_t *segment = out + *written;
        uint8_t reading;
        const bool is_read = read_file(file, &listed, now, segment + LENGTH_BYTES, &reading);
        close(file);
        if (!is_read)
            break;
        uint8_t *next = put(segment, length, LENGTH_BYTES) + length;
        next = put(next, 0, LENGTH_BYTES);
        next = put(next, reading, STATUS_BYTES);
        *written = (size_t)(next - out);
        at += RANGE_BYTES + path_length;
    }
    return at - start;
}

/* The segments of a file, up to and with the length of 0 that ends them. */
struct segments {
    const uint8_t *first;
    size_t size;
};

/* Finds the segments of a file of `size` bytes. False if they are not complete, have holes, or are of another size. */
static bool find_segments(const uint8_t *in, size_t available, uint64_t size, struct segments *found)
{
    uint64_t content = 0;
    size_t at = 0;
    while (available - at >= LENGTH_BYTES) {
        const uint64_t length = get(in + at, LENGTH_BYTES);
        at += LENGTH_BYTES;
        if (length == 0) {
            *found = (struct segments){in, at};
            return content == size;
        }
        if (length >= HOLE || length > size - content || length > available - at)
            return false;
        content += length;
        at += length;
    }
    return false;
}

static bool write_segments(int file, const struct segments *segments)
{
    const uint8_t *in = segments->first;
    for (;;) {
        size_t length = get(in, LENGTH_BYTES);
        in += LENGTH_BYTES;
        if (length == 0)
            return true;
        while (length > 0) {
            const ssize_t written = TEMP_FAILURE_RETRY(write(file, in, length));
            if (written <= 0)
                return false;
            in += written;
            length -= (size_t)written;
        }
    }
}

/* Makes a file. False, and leaves nothing, if there is something of this name or it cannot be written. */
static bool create_file(int directory, const char *name, mode_t mode, mode_t mask, int64_t mtime,
                        const struct segments *segments)
{
    const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    const int file = TEMP_FAILURE_RETRY(openat(directory, name, flags, mode & 0777));
    if (file < 0)
        return false;
    struct timespec time = {.tv_sec = mtime / NS_PER_SECOND, .tv_nsec = mtime % NS_PER_SECOND};
    if (time.tv_nsec < 0) {
        time.tv_sec -= 1;
        time.tv_nsec += NS_PER_SECOND;
    }
    const bool has_mode = (mode & (mask | 07000)) == 0;
    const struct timespec times[2] = {time, time};
    const bool is_made = write_segments(file, segments) && (has_mode || fchmod(file, mode) == 0) &&
                         futimens(file, times) == 0;
    close(file);
    if (!is_made)
        unlinkat(directory, name, 0);
    return is_made;
}

/*
 * Makes the files of the next entries, at most `most`, as long as they are small, new and in the directory of the
 * first one, whose path with its slash has `prefix_length` bytes, and as long as their content is there, without
 * holes. `mask` is the umask of this process. Returns the number of bytes that are done, and in `count` the number of
 * files.
 */
size_t create_files(int directory, size_t prefix_length, mode_t mask, const uint8_t *entries, size_t at, size_t end,
                    size_t most, size_t *count)
{
    const size_t start = at;
    const uint8_t *prefix = entries + start + ENTRY_BYTES;
    for (*count = 0; *count < most && at + ENTRY_BYTES <= end; *count += 1) {
        const uint8_t *entry = entries + at;
        const uint64_t mode = get(entry + 1, 4), offset = get(entry + 13, 8), size = get(entry + 21, 8);
        const int64_t mtime = (int64_t)get(entry + 5, 8);
        const size_t path_length = get(entry + 29, 2), target_length = get(entry + 31, 2);
        char name[MAX_NAME + 1];
        struct segments segments;
        if (entry[0] != KIND_FILE || offset != 0 || size > SMALL || mode > MAX_MODE || target_length != 0)
            break;
        if (path_length > end - at - ENTRY_BYTES ||
            !name_below(entry + ENTRY_BYTES, path_length, prefix, prefix_length, name))
            break;
        const size_t head = ENTRY_BYTES + path_length;
        if (!find_segments(entry + head, end - at - head, size, &segments) ||
            !create_file(directory, name, (mode_t)mode, mask, mtime, &segments))
            break;
        at += head + segments.size;
    }
    return at - start;
}

/* What trees.py knows of a tree that it watches. It is the class of the same name there. */
struct watched {
    /* Counts the passes over the tree; 0 while what has happened is not known. */
    uint64_t pass;
    uint64_t device;
    uint64_t inode;
    uint8_t generation[GENERATION_BYTES];
    uint32_t is_closed;
};

/* trees.py resets the pass before it takes events. An event that it takes meanwhile is seen in one of the two places. */
static bool is_unchanged(int events, const char *root, struct watched *watched, const uint8_t *generation)
{
    struct stat status;
    int pending;
    uint64_t pass = __atomic_load_n(&watched->pass, __ATOMIC_SEQ_CST);
    return pass != 0 && memcmp(watched->generation, generation, GENERATION_BYTES) == 0 &&
           ioctl(events, FIONREAD, &pending) == 0 && pending == 0 && lstat(root, &status) == 0 &&
           (uint64_t)status.st_dev == watched->device && (uint64_t)status.st_ino == watched->inode &&
           __atomic_load_n(&watched->pass, __ATOMIC_SEQ_CST) == pass;
}

/*
 * Answers a question again and again: the generation of a listing; a byte, whether nothing has happened in the whole file
 * system since. Returns when the connection ends, or when the tree is not watched any more.
 */
void answer_watch(int connection, int events, const char *root, struct watched *watched)
{
    uint8_t generation[GENERATION_BYTES], answer;
    do {
        if (recv(connection, generation, sizeof(generation), MSG_WAITALL) != sizeof(generation))
            return;
        answer = is_unchanged(events, root, watched, generation);
    } while (send(connection, &answer, sizeof(answer), MSG_NOSIGNAL) == sizeof(answer) &&
             !__atomic_load_n(&watched->is_closed, __ATOMIC_SEQ_CST));
}
