import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { GuestAddress } from '../src/guest/connect-to-guest.ts';
import { GuestTree } from '../src/guest/tree/guest-tree.ts';
import { guestPrograms } from './guest-programs.ts';
import { temporaryDirectory } from './temporary-directory.ts';

/**
 * Runs the guest's daemon on this machine, with a token of the test and on any free port, which it prints. No test uses
 * it to set a clock.
 */
const RUN = `
import socket, sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
sys.dont_write_bytecode = True
loader = SourceFileLoader('guestd', sys.argv[1])
guestd = module_from_spec(spec_from_loader('guestd', loader))
loader.exec_module(guestd)
guestd.TOKEN, guestd.PORT = sys.argv[2], 0
create_server = socket.create_server
def announced(*args, **options):
    server = create_server(*args, **options)
    print(server.getsockname()[1], flush=True)
    return server
socket.create_server = announced
guestd.main()
`;

/** The guest's daemon as a process of this machine. */
export interface GuestDaemon {
  readonly address: GuestAddress;
  readonly token: string;
  readonly pid: number;
  /** A temporary directory for the test. */
  readonly directory: string;
  /** A tree in this guest, which `closeTrees` closes. */
  tree(root: string): GuestTree;
  closeTrees(): void;
  /** Also removes the directory. */
  stop(): Promise<void>;
}

/** Starts the guest's daemon with a temporary directory. */
export async function startGuestDaemon(): Promise<GuestDaemon> {
  const { path: directory, remove } = await temporaryDirectory();
  const file = join(directory, 'token');
  const token = 'secret';
  await writeFile(file, token);
  const guestd = await guestPrograms(directory);
  const child = spawn('python3', ['-I', '-S', '-c', RUN, guestd, file], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [line] = await once(child.stdout, 'data');
  const address = { host: '127.0.0.1', port: Number(line) };
  const trees: GuestTree[] = [];
  const closeTrees = () => {
    for (const tree of trees.splice(0)) tree.close();
  };
  return {
    address,
    token,
    pid: child.pid ?? 0,
    directory,
    tree(root) {
      const tree = new GuestTree({ address, token, root });
      trees.push(tree);
      return tree;
    },
    closeTrees,
    async stop() {
      closeTrees();
      const ended = once(child, 'exit');
      child.kill('SIGKILL');
      await ended;
      await remove();
    },
  };
}
