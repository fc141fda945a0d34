import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, test } from 'vitest';

const MODULE = new URL('foreground.ts', import.meta.url).href;

/** The exit code of a process that went on to its end. */
const ALIVE = 7;

/** A process that waits for `event`, reports that it is ready, and goes on. */
function serviceAfter(event: 'message' | 'disconnect'): ChildProcess {
  const script = `
    const { reportReady } = await import('${MODULE}');
    process.once('${event}', () => {
      reportReady({ state: 'ready' });
      process.exitCode = ${ALIVE};
    });
    process.send('listening');`;
  return spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
}

test('a service that is ready tells the process that started it, and lets it go', async () => {
  const service = serviceAfter('message');
  await once(service, 'message');
  const exited = once(service, 'exit');
  service.send('go on');
  expect(await once(service, 'message')).toEqual([{ ready: { state: 'ready' } }, undefined]);
  expect(await exited).toEqual([ALIVE, null]);
});

test('a service that is ready goes on when the process that started it is gone', async () => {
  const service = serviceAfter('disconnect');
  await once(service, 'message');
  const exited = once(service, 'exit');
  service.disconnect();
  expect(await exited).toEqual([ALIVE, null]);
});
