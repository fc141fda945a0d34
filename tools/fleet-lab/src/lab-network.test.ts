import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { LabNetwork } from './lab-network.ts';

const run = promisify(execFile);
const SERVER = `require('node:http').createServer((_, answer) => answer.end(process.argv[1]))
  .listen(8080, '0.0.0.0', () => console.log('ready'))`;

test('labs that run at once have networks of their own', async () => {
  await using first = await LabNetwork.open();
  await using second = await LabNetwork.open();
  expect(first.ownAddress).not.toBe(second.ownAddress);
  for (const [name, network] of Object.entries({ first, second })) {
    const { launcher, address } = await network.addMachine('server');
    const [program = '', ...args] = [...launcher, process.execPath, '-e', SERVER, name];
    const server = spawn(program, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    try {
      await once(server.stdout, 'data');
      expect(await (await fetch(`http://${address}:8080`)).text()).toBe(name);
    } finally {
      server.kill('SIGKILL');
      await once(server, 'exit');
    }
  }
});

test('a lab leaves nothing behind', async () => {
  const network = await LabNetwork.open();
  await network.addMachine('server');
  await network[Symbol.asyncDispose]();
  const { stdout: addresses } = await run('ip', ['-o', 'addr']);
  expect(addresses).not.toContain(network.ownAddress);
});
