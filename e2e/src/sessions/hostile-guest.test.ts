import { expect, test } from 'vitest';
import { textOf } from '../../test/sessions/session-client.ts';
import { useSessionFixture } from '../../test/sessions/session-fixture.ts';

const USAGE = { input_tokens: 111, output_tokens: 7 };
const fixture = useSessionFixture({
  rules: [{ when: { user: 'hello' }, reply: { text: 'Hello to you.', usage: USAGE } }],
});

/** As root in the guest: sends forbidden requests to the gateway, takes over the runtime's port, and forges frames. */
const ATTACK = `python3 -u - <<'PYTHON'
import json, os, signal, socket, time, urllib.request, urllib.error

def status_of(path, headers, body=b'{}'):
    request = urllib.request.Request('http://172.30.0.1:7200' + path, data=body, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code
    except OSError as error:
        return type(error).__name__

key = {'x-api-key': 'svc-llm-gateway'}
print('no key', status_of('/anthropic/v1/messages', {}))
print('other dialect', status_of('/openai/chat/completions', {'content-type': 'application/json', **key}))
print('traversal', status_of('/anthropic/../../internal/v1/sandboxes', key))
print('unknown path', status_of('/anthropic/v1/organizations', key))
for pid in filter(str.isdigit, os.listdir('/proc')):
    try:
        command = open(f'/proc/{pid}/cmdline', 'rb').read()
    except OSError:
        continue
    # Split so that it does not match the shell that runs this script.
    if b'svc/agent-' + b'runtime' in command:
        os.kill(int(pid), signal.SIGKILL)
deadline = time.time() + 20
while time.time() < deadline:
    try:
        listener = socket.create_server(('0.0.0.0', 7100))
        break
    except OSError:
        time.sleep(0.05)
listener.settimeout(20)
try:
    connection, _ = listener.accept()
    connection.settimeout(5)
    try:
        connection.recv(65536)
    except OSError:
        pass
    lies = [
        {'type': 'attached', 'c': 10 ** 15},
        {'type': 'frame', 'n': 1, 'frame': {'type': 'usage', 'input_tokens': 10 ** 9, 'output_tokens': 1}},
        {'type': 'frame', 'n': 2, 'frame': {'type': 'system', 'event': 'cancel', 'reason': 'admin_action'}},
        {'type': 'frame', 'n': -3, 'frame': {'type': 'ready', 'agent': 'x', 'model': 'y', 'resumed': True}},
        {'type': 'frame', 'n': 4, 'frame': {'type': 'text_delta', 'data': 'lie', 'seq': 1}},
    ]
    for lie in lies:
        connection.sendall(json.dumps(lie).encode() + b'\\n')
    connection.sendall(b'[' * 200000 + b'\\n')
    flood = json.dumps({'type': 'frame', 'n': 5, 'frame': {'type': 'stdout', 'data': 'x' * 60000}}).encode() + b'\\n'
    until = time.time() + 10
    while time.time() < until:
        connection.sendall(flood)
except OSError as error:
    print('connection', type(error).__name__)
PYTHON`;

test('a guest that forges frames affects only its own session, and cannot falsify usage', {
  timeout: 600_000,
}, async () => {
  const victim = await fixture().create('deictic');
  const neighbour = await fixture().attach(await fixture().create('deictic'));
  const client = await fixture().attach(victim);
  await client.task('Say hello', 'before');
  const attacked = fixture().account.client.sandboxes.exec(
    await fixture().sandboxOf(victim),
    ATTACK,
    {
      timeoutMs: 180_000,
    },
  );
  expect(textOf(await neighbour.task('Say hello', 'n'))).toBe('Hello to you.');
  const { output } = await attacked;
  expect(output).toContain('no key 401');
  expect(output).toMatch(/other dialect 40[^1]/);
  expect(output).toMatch(/traversal 40[^1]/);
  expect(output).toMatch(/unknown path 40[^1]/);
  expect(textOf(await neighbour.task('Say hello', 'm'))).toBe('Hello to you.');

  const usage = client.frames.flatMap((frame) =>
    frame.type === 'usage' ? [frame.input_tokens] : [],
  );
  expect(usage).toEqual([USAGE.input_tokens]);
  expect(client.frames.filter(({ type }) => type === 'ready')).toHaveLength(1);
  expect(client.frames.filter(({ type }) => type === 'system')).toEqual([]);
  expect(client.seqs).toEqual(client.seqs.map((_, index) => index + 1));
  await fixture().sessions.delete(victim.chat_session_id);
});
