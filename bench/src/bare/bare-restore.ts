// The comparison for creates: a program that runs inside a network namespace with a tap device, restores the
// snapshot with nothing but QEMU, its control socket and an SSH client, and reports the duration of each restore.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFile, mkdir, open, rm } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from 'ssh2';
import { qemuArguments } from './qemu-arguments.ts';
import { type Snapshot, snapshotFile } from './snapshot.ts';

const GUEST = '172.30.0.2';
const RETRY_MS = 2;
const LONGEST_MS = 60_000;

/** The parent's request to measure one restore. */
export interface RestoreOrder {
  readonly snapshot: Snapshot;
  /** A directory that the restore creates. */
  readonly directory: string;
}

/** Milliseconds from the start until the VM was restored, and until its SSH server answered. */
export interface RestoreTimes {
  readonly restoredMs: number;
  readonly answeredMs: number;
}

process.on('message', (order: RestoreOrder) => {
  void restore(order).then((times) => process.send?.(times));
});
process.once('disconnect', () => process.exit());

async function restore({ snapshot, directory }: RestoreOrder): Promise<RestoreTimes> {
  const start = performance.now();
  await mkdir(directory);
  await copyFile(snapshotFile(snapshot, 'disk.qcow2'), `${directory}/disk.qcow2`);
  const state = await open(snapshotFile(snapshot, 'state'), 'r');
  const qemu = spawn(snapshot.qemu, qemuArguments(snapshot, directory), {
    stdio: ['ignore', 'inherit', 'inherit', state.fd],
  });
  const exited = once(qemu, 'exit');
  try {
    await load(`${directory}/qmp`);
    const restoredMs = performance.now() - start;
    await sshAnswers();
    return { restoredMs, answeredMs: performance.now() - start };
  } finally {
    qemu.kill('SIGKILL');
    await exited;
    await state.close();
    await rm(directory, { recursive: true });
  }
}

/** Lets QEMU load the device state from descriptor 3 and run the VM. */
async function load(path: string): Promise<void> {
  const control = await retried(() => openSocket(path));
  const commands = [
    { execute: 'qmp_capabilities' },
    {
      execute: 'migrate-set-capabilities',
      arguments: {
        capabilities: [
          { capability: 'x-ignore-shared', state: true },
          { capability: 'events', state: true },
        ],
      },
    },
    { execute: 'migrate-incoming', arguments: { uri: 'fd:3' } },
  ];
  control.write(commands.map((command) => JSON.stringify(command)).join(''));
  let heard = '';
  for await (const text of control.setEncoding('utf8').iterator({ destroyOnReturn: false })) {
    heard += text;
    if (heard.includes('"error"') || heard.includes('"failed"')) throw new Error(heard);
    if (heard.includes('"completed"')) break;
  }
  control.end(JSON.stringify({ execute: 'cont' }));
}

/** Resolves when the SSH server has refused an authentication request. It knows no key that would be accepted. */
async function sshAnswers(): Promise<void> {
  const socket = await retried(() => openSocket({ host: GUEST, port: 22 }));
  socket.setNoDelay();
  const client = new Client();
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  client.on('error', (error) =>
    error.level === 'client-authentication' ? resolve() : reject(error),
  );
  client.on('ready', () => reject(new Error('the guest accepted a login without a key')));
  client.on('close', () => reject(new Error('the guest closed the connection')));
  client.connect({
    sock: socket,
    username: 'root',
    // Refused immediately, whereas the server delays its answer to a refused key.
    authHandler: ['none'],
    readyTimeout: LONGEST_MS,
    algorithms: { serverHostKey: ['ssh-ed25519'], kex: ['curve25519-sha256'] },
  });
  await promise;
  client.destroy();
}

function openSocket(
  where: string | { readonly host: string; readonly port: number },
): Promise<Socket> {
  const { promise, resolve, reject } = Promise.withResolvers<Socket>();
  const socket = typeof where === 'string' ? connect(where) : connect(where);
  socket.once('connect', () => {
    socket.off('error', reject);
    resolve(socket);
  });
  socket.once('error', reject);
  return promise;
}

async function retried<T>(work: () => Promise<T>): Promise<T> {
  const deadline = performance.now() + LONGEST_MS;
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (performance.now() > deadline) throw error;
      await sleep(RETRY_MS);
    }
  }
}
