import { EVENT_STREAM_MEDIA_TYPE, ExecExitEvent } from '@svc/contract';
import type { ExecStreamEvent } from '@svc/sdk';
import { until } from '@svc/service-driver';
import { expect, test } from 'vitest';
import { expectValid } from '../../test/assertions.ts';
import { shared } from '../../test/shared-service.ts';
import { useSandbox } from '../../test/test-sandbox.ts';

const sandbox = useSandbox();
const stream = (command: string, timeout_seconds = 60) =>
  sandbox().account.client.sandboxes.execStream(sandbox().id, { command, timeout_seconds });

async function collect(events: AsyncIterable<ExecStreamEvent>) {
  const text = { stdout: '', stderr: '' };
  const kinds: string[] = [];
  for await (const event of events) {
    kinds.push(event.type);
    if (event.type === 'exit') {
      const { type: _type, ...exit } = event;
      expectValid(ExecExitEvent, exit);
      return { ...text, kinds, exit };
    }
    text[event.type] += event.data;
  }
  throw new Error('no exit event');
}

test('separates stdout from stderr and ends with the exit event', async () => {
  const result = await collect(stream('echo out; echo err >&2; exit 4'));
  expect(result).toMatchObject({
    stdout: 'out\n',
    stderr: 'err\n',
    exit: { exit_code: 4, truncated: false },
  });
  expect(result.kinds.at(-1)).toBe('exit');
});

test('sends output while the command runs', async () => {
  const events = stream('echo first; until test -e /tmp/go; do sleep 0.1; done; echo second');
  const first = await events.next();
  expect(first.value).toEqual({ type: 'stdout', data: 'first\n' });
  await sandbox().run('touch /tmp/go');
  expect(await collect(events)).toMatchObject({ stdout: 'second\n', exit: { exit_code: 0 } });
});

test('does not split a character that the command wrote in two parts', async () => {
  const result = await collect(stream("printf '\\346\\227'; sleep 0.3; printf '\\245!'"));
  expect(result.stdout).toBe('日!');
});

test('leaving the iteration ends the command', async () => {
  for await (const event of stream('echo begun; exec sleep 6001')) {
    expect(event).toEqual({ type: 'stdout', data: 'begun\n' });
    break;
  }
  await until(
    'the command is gone',
    async () => (await sandbox().exec("pgrep -f '[s]leep 6001'")).exit_code !== 0,
  );
});

test('reports a timeout in the exit event', async () => {
  const { exit } = await collect(stream('sleep 600', 1));
  expect(exit).toMatchObject({ exit_code: 124, timed_out: true });
});

test('streams more output than a plain answer can hold', async () => {
  let length = 0;
  let exit: ExecStreamEvent | undefined;
  for await (const event of stream("head -c 3000000 /dev/zero | tr '\\0' x")) {
    if (event.type === 'exit') exit = event;
    else length += event.data.length;
  }
  expect(length).toBe(3_000_000);
  expect(exit).toMatchObject({ exit_code: 0, truncated: false });
});

test('uses the server-sent events format', async () => {
  const answer = await shared.raw({
    method: 'POST',
    target: `/v1/sandboxes/${sandbox().id}/exec`,
    apiKey: sandbox().account.apiKey,
    headers: { accept: EVENT_STREAM_MEDIA_TYPE },
    body: { command: 'printf %s "a \\"quote\\""' },
  });
  expect(answer.status).toBe(200);
  expect(answer.headers['content-type']).toContain(EVENT_STREAM_MEDIA_TYPE);
  const text = answer.body.toString('utf8');
  expect(text).toMatch(/event: stdout\ndata: \{"data":"a \\"quote\\""\}\n\n/);
  expect(text).toMatch(/event: exit\ndata: \{.*"exit_code":0.*\}\n\n$/);
});

test('answers an invalid request with an ordinary problem', async () => {
  const answer = await shared.raw({
    method: 'POST',
    target: `/v1/sandboxes/${sandbox().id}/exec`,
    apiKey: sandbox().account.apiKey,
    headers: { accept: EVENT_STREAM_MEDIA_TYPE },
    body: { command: '' },
  });
  expect(answer.status).toBe(400);
  expect(answer.json()).toMatchObject({ code: 'command_required' });
});
