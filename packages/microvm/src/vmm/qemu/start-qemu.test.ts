import { expect, test } from 'vitest';
import type { Confinement } from '../../jail/confinement.ts';
import { startQemu } from './start-qemu.ts';

/** Runs a shell command in the place of QEMU. */
const running = (script: string) =>
  ({
    socketDirectory: '/nonexistent',
    command: () => ['/bin/sh', ['-c', script]],
  }) as unknown as Confinement;

test.each([
  ['its message', 'echo no such machine >&2; exit 1', 'no such machine'],
  [
    'the end of many messages',
    'yes x | head -c 1000000 >&2; echo the last >&2',
    /^QEMU[^:]*: (x\n)+the last$/,
  ],
])('a QEMU that ends at once is reported with %s', async (_what, script, message) => {
  const options = { confinement: running(script), args: [], onFault: () => undefined };
  const failed = await startQemu(options, AbortSignal.timeout(60_000)).catch((error) => error);
  expect(failed).toMatchObject({ code: 'boot_failed', message: expect.stringMatching(message) });
  expect(failed.message.length).toBeLessThan(5_000);
});
