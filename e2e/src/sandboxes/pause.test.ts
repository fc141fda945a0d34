import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { SandboxRecord } from '@svc/contract';
import { expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { expectValid } from '../../test/assertions.ts';
import { shared } from '../../test/shared-service.ts';
import { useSandbox } from '../../test/test-sandbox.ts';

const sandbox = useSandbox();
const api = () => sandbox().account.client.sandboxes;
const count = async () => Number(await sandbox().run('cat /tmp/count'));

async function guestClockError(): Promise<number> {
  const before = Date.now() / 1000;
  const guest = Number(await sandbox().run('date +%s.%N'));
  const after = Date.now() / 1000;
  return Math.max(before - guest, guest - after, 0);
}

test('a resumed sandbox continues where it was paused, with the right time', async () => {
  await sandbox().run(
    '(n=0; while true; do n=$((n+1)); echo $n > /tmp/count.new; mv /tmp/count.new /tmp/count; sleep 0.1; done) >/dev/null 2>&1 & until test -e /tmp/count; do sleep 0.1; done',
  );
  const paused = await api().pause(sandbox().id);
  expectValid(SandboxRecord, paused);
  expect(paused.state).toBe('paused');
  expect(await api().get(sandbox().id)).toMatchObject({ state: 'paused' });
  // Longer than the error allowed below, so that a clock that was not set would show.
  await sleep(2000);
  const resumed = await api().resume(sandbox().id);
  expectValid(SandboxRecord, resumed);
  expect(resumed.state).toBe('running');
  expect(await guestClockError()).toBeLessThan(1);
  const then = await count();
  await sandbox().run(`until test $(cat /tmp/count) -gt ${then}; do sleep 0.1; done`);
});

test('a paused process does not run', async () => {
  const began = performance.now();
  await sandbox().run('cp /tmp/count /tmp/count-before');
  await api().pause(sandbox().id);
  const paused = performance.now();
  // A running process would count to 50 in the meantime.
  await sleep(5000);
  const woken = performance.now();
  const ran = Number(
    await sandbox().run('echo $(( $(cat /tmp/count) - $(cat /tmp/count-before) ))'),
  );
  const ranMs = paused - began + (performance.now() - woken);
  expect(ran).toBeLessThanOrEqual(ranMs / 100 + 1);
});

test('exec, upload and download resume a paused sandbox', async () => {
  const uses = {
    exec: async () => expect(await sandbox().run('echo awake')).toBe('awake'),
    upload: () => api().files.write(sandbox().id, '/tmp/woken', 'x'),
    download: () => api().files.read(sandbox().id, '/tmp/woken'),
  };
  for (const [name, use] of Object.entries(uses)) {
    expect((await api().pause(sandbox().id)).state, name).toBe('paused');
    await use();
    expect((await api().get(sandbox().id)).state, name).toBe('running');
  }
});

test('concurrent commands resume a paused sandbox once, and all of them run', async () => {
  await api().pause(sandbox().id);
  const answers = await Promise.all([1, 2, 3, 4].map((n) => sandbox().exec(`echo ${n}`)));
  expect(answers.map(({ output }) => output)).toEqual(['1\n', '2\n', '3\n', '4\n']);
});

test('pausing a paused sandbox and resuming a running one change nothing', async () => {
  for (const state of ['paused', 'paused'] as const) {
    expect(await api().pause(sandbox().id)).toMatchObject({ state });
  }
  for (const state of ['running', 'running'] as const) {
    expect(await api().resume(sandbox().id)).toMatchObject({ state });
  }
  expect(await sandbox().run('echo fine')).toBe('fine');
});

test('a command that was interrupted by a pause continues after the resume', async () => {
  const running = sandbox().exec('touch /tmp/begun; sleep 2; echo finished');
  await sandbox().run('until test -e /tmp/begun; do sleep 0.1; done');
  await api().pause(sandbox().id);
  await api().resume(sandbox().id);
  expect(await running).toMatchObject({ output: 'finished\n', exit_code: 0 });
});

test('a cancel of a paused sandbox answers 409', async () => {
  await api().pause(sandbox().id);
  await expect(api().cancel(sandbox().id)).rejects.toMatchObject({
    code: 'sandbox_not_running',
    status: 409,
  });
  await api().resume(sandbox().id);
});

/** Answers each WebSocket message with itself. The guest has no library for WebSockets. */
const ECHO = `
const { createHash } = require('node:crypto');
require('node:http').createServer().on('upgrade', (request, socket) => {
  const key = request.headers['sec-websocket-key'] + '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';
  const accept = createHash('sha1').update(key).digest('base64');
  socket.write('HTTP/1.1 101 Go\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\nSec-WebSocket-Accept: ' + accept + '\\r\\n\\r\\n');
  socket.on('data', (frame) => {
    const length = frame[1] & 127;
    const text = frame.subarray(6, 6 + length).map((byte, at) => byte ^ frame[2 + (at % 4)]);
    socket.write(Buffer.concat([Buffer.from([129, length]), text]));
  });
  socket.on('error', () => socket.destroy());
}).listen(8001, '127.0.0.1')`;

test('servers on the loopback address are reached through ports, until a pause or the end', async () => {
  await sandbox().run(`mkdir -p /tmp/site && cd /tmp/site && head -c 4194304 /dev/urandom >page
    (python3 -m http.server --bind 127.0.0.1 8000 & node -e "$(echo ${btoa(ECHO)} | base64 -d)" &) >/dev/null 2>&1 </dev/null
    for port in 8000 8001; do until python3 -c "import socket; socket.create_connection(('127.0.0.1', $port))" 2>/dev/null; do sleep 0.2; done; done`);
  const key = sandbox().account.apiKey;
  const page = `/v1/sandboxes/${sandbox().id}/ports/8000/page`;
  const { status, body } = await shared.raw({ target: page, apiKey: key });
  expect([status, body.length]).toEqual([200, 4_194_304]);
  const sum = createHash('sha256').update(body).digest('hex');
  expect(await sandbox().run('sha256sum </tmp/site/page')).toContain(sum);

  const { url } = await api().link(sandbox().id, { port: 8001 });
  for (const end of [() => api().pause(sandbox().id), () => api().delete(sandbox().id)]) {
    const socket = new WebSocket(url.replace('https', 'wss'), { ca: shared.ca });
    socket.on('error', () => undefined);
    await once(socket, 'open');
    socket.send('hello');
    expect(String((await once(socket, 'message'))[0])).toBe('hello');
    const closed = once(socket, 'close');
    await end();
    await closed;
    const refused = await shared.raw({ target: page, apiKey: key });
    expect(refused.json()).toMatchObject({ code: 'sandbox_not_running' });
    if ((await api().get(sandbox().id)).state === 'paused') await api().resume(sandbox().id);
  }
});

test('a paused sandbox can be deleted', async () => {
  const { vm_id } = await api().create({ template: 'standard' });
  await api().pause(vm_id);
  expect(await api().delete(vm_id)).toMatchObject({ state: 'destroyed' });
});
