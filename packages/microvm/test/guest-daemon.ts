import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { GuestAddress } from '../src/guest/connect-to-guest.ts';

const GUESTD = new URL('../../../images/standard/rootfs/usr/lib/svc/guestd', import.meta.url)
  .pathname;

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
  stop(): Promise<void>;
}

/** Starts the guest's daemon, which keeps its token in `directory`. */
export async function startGuestDaemon(directory: string): Promise<GuestDaemon> {
  const file = join(directory, 'token');
  const token = 'secret';
  await writeFile(file, token);
  const child = spawn('python3', ['-I', '-S', '-c', RUN, GUESTD, file], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [line] = await once(child.stdout, 'data');
  return {
    address: { host: '127.0.0.1', port: Number(line) },
    token,
    pid: child.pid ?? 0,
    async stop() {
      const ended = once(child, 'exit');
      child.kill('SIGKILL');
      await ended;
    },
  };
}
