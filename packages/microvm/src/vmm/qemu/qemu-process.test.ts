import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { expect, onTestFinished, test } from 'vitest';
import { temporaryDirectory } from '../../../test/temporary-directory.ts';
import type { Confinement } from '../../jail/confinement.ts';
import { QemuProcess } from './qemu-process.ts';
import { Qmp } from './qmp.ts';

/** A control socket whose end at QEMU sends what it is told to, and its client. */
async function startQmp(answer = '"return":{}'): Promise<{ qmp: Qmp; end: Socket }> {
  const { path, remove } = await temporaryDirectory();
  const socketPath = join(path, 'qmp');
  const server = createServer((socket) => {
    let count = 0;
    createInterface(socket).on('line', () => {
      count += 1;
      // The first command enters command mode.
      socket.write(`{${count === 1 ? '"return":{}' : answer},"id":${count}}\n`);
    });
  }).listen(socketPath);
  await once(server, 'listening');
  const accepted = once(server, 'connection');
  const qmp = await Qmp.open(socketPath, AbortSignal.timeout(20_000));
  const [end] = (await accepted) as [Socket];
  onTestFinished(async () => {
    qmp.close();
    server.close();
    await remove();
  });
  return { qmp, end };
}

test('a process that cannot be ended is reported, and ends when it can', async () => {
  const { qmp, end } = await startQmp();
  // Reading its state fails: this is a directory.
  const identity = { pid: 'net' as unknown as number, startTicks: 1, bootId: '' };
  const faults: unknown[] = [];
  const process = new QemuProcess({
    confinement: {} as Confinement,
    identity,
    qmp,
    onFault: (error) => faults.push(error),
  });
  end.destroy();
  await expect.poll(() => faults).toMatchObject([{ code: 'EISDIR' }]);
  // No process has this number.
  identity.pid = 0;
  await process.exited;
});

test('an error without content from QEMU fails the command', async () => {
  const { qmp } = await startQmp('"error":null');
  await expect(qmp.execute('stop', {}, AbortSignal.timeout(20_000))).rejects.toMatchObject({
    code: 'internal',
  });
});

test('an error whose text is no text fails the command, and nothing else', async () => {
  const { qmp } = await startQmp('"error":{"desc":{"toString":1}}');
  await expect(qmp.execute('stop', {}, AbortSignal.timeout(5_000))).rejects.toMatchObject({
    message: 'QEMU: failed',
  });
});
