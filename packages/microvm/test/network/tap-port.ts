import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A tap device, and the user that may open it. */
export interface Tap {
  readonly netns: string;
  readonly tap: string;
  readonly uid: number;
}

/** An open tap device. `socket` carries its frames, each preceded by its length in four bytes. */
export interface TapPort {
  readonly socket: Socket;
  close(): Promise<void>;
}

/**
 * Opens a tap device as a VM does: with a QEMU, without a machine in it, that runs as the slot's user in the slot's
 * namespace.
 */
export async function openTapPort(tap: Tap): Promise<TapPort> {
  const dir = await mkdtemp(join(tmpdir(), 'tap-port-'));
  const path = join(dir, 'frames');
  const server = createServer();
  server.listen({ path, writableAll: true });
  await once(server, 'listening');
  await chmod(dir, 0o711);
  const qemu = spawn('nsenter', [`--net=/run/netns/${tap.netns}`, ...qemuCommand(tap, path)], {
    stdio: 'ignore',
  });
  const ended = once(qemu, 'exit');
  const [socket] = await Promise.race([
    once(server, 'connection', { signal: AbortSignal.timeout(30_000) }),
    ended.then(([status]) => Promise.reject(new Error(`QEMU ended with status ${status}`))),
  ]);
  let closed = false;
  return {
    socket,
    async close() {
      if (closed) return;
      closed = true;
      qemu.kill('SIGKILL');
      await ended;
      socket.destroy();
      server.close();
      await rm(dir, { recursive: true });
    },
  };
}

function qemuCommand({ tap, uid }: Tap, path: string): string[] {
  return [
    ...[
      'setpriv',
      `--reuid=${uid}`,
      `--regid=${uid}`,
      '--clear-groups',
      '--no-new-privs',
      '--pdeathsig=KILL',
    ],
    ...['qemu-system-x86_64', '-M', 'none', '-nodefaults', '-display', 'none'],
    ...['-netdev', `tap,id=tap,ifname=${tap},script=no,downscript=no`],
    ...['-netdev', `stream,id=test,server=off,addr.type=unix,addr.path=${path}`],
    ...['-netdev', 'hubport,id=port0,hubid=0,netdev=tap'],
    ...['-netdev', 'hubport,id=port1,hubid=0,netdev=test'],
  ];
}
