import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { guestPrograms } from '../../../test/guest-programs.ts';
import { temporaryDirectory } from '../../../test/temporary-directory.ts';

/** Has the guest's daemon handle one child process, whose page it may wipe, and prints the page before and after. */
const RUN = `
import ctypes, mmap, os, sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
sys.dont_write_bytecode = True
loader = SourceFileLoader('guestd', sys.argv[1])
guestd = module_from_spec(spec_from_loader('guestd', loader))
loader.exec_module(guestd)
MADV_WIPEONFORK = 18
ready, tell, ask, go = *os.pipe(), *os.pipe()
child = os.fork()
if child == 0:
    page, other = mmap.mmap(-1, mmap.PAGESIZE, flags=mmap.MAP_PRIVATE), mmap.mmap(-1, mmap.PAGESIZE, flags=mmap.MAP_PRIVATE)
    page.madvise(MADV_WIPEONFORK)
    page[0] = other[0] = 1
    os.write(tell, b'.')
    os.read(ask, 1)
    print(page[0], other[0], flush=True)
    os._exit(0)
os.read(ready, 1)
found = [page for page in guestd.find_fork_pages() if page[0] == child]
guestd.fork_pages.extend(found)
guestd.wipe_fork_pages()
print(len(found), len(guestd.fork_pages), flush=True)
os.write(go, b'.')
os.waitpid(child, 0)
`;

test('a clone wipes the pages that programs have wiped in a fork, and no others', async () => {
  const { path, remove } = await temporaryDirectory();
  try {
    const guestd = await guestPrograms(path);
    const { stdout } = await promisify(execFile)('python3', ['-I', '-S', '-c', RUN, guestd]);
    expect(stdout).toBe('1 0\n0 1\n');
  } finally {
    await remove();
  }
});
