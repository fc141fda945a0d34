import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { LIMITS } from '@svc/contract';
import { expect, test } from 'vitest';

const image = new URL('../../../../../images/standard/rootfs/', import.meta.url);
const PROTECTED = fileURLToPath(new URL('usr/lib/svc/protected', image));

/** Starts `true` with an environment of this many bytes, in values that a bundle may have. */
const PROGRAM = `
const [bytes, valueBytes] = process.argv.slice(1).map(Number);
const env = {};
for (let left = bytes, n = 0; left > 0; left -= valueBytes, n += 1)
  env['V' + n] = 'x'.repeat(Math.min(left, valueBytes) - 16);
const { error, status } = require('node:child_process').spawnSync('/bin/true', [], { env });
console.log(error?.code ?? status);
`;

test('the daemons of a sandbox can start programs with the largest environment of a session', async () => {
  const { stdout } = await promisify(execFile)('/bin/sh', [
    ...[PROTECTED, process.execPath, '-e', PROGRAM],
    ...[String(LIMITS.sessionEnvBytes), String(LIMITS.secretValueBytes)],
  ]);
  expect(stdout).toBe('0\n');
});
