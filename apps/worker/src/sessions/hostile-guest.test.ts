import { beforeEach, describe, expect, it } from 'vitest';
import type { ScriptedGuest } from '../../test/scripted-guest.ts';
import { useSessionLab } from '../../test/session-lab.ts';
import type { SessionSocket } from '../../test/session-socket.ts';

let liar: ScriptedGuest;
let neighbour: string;
let client: SessionSocket;

const lab = useSessionLab({ agentTimeouts: { linkLostMs: 2_000 } });

beforeEach(async () => {
  liar = lab().guest;
  ({ client } = await lab().startAttached());
  await lab().addGuest();
  ({ session: neighbour } = await lab().harness.startSession());
});

async function expectNeighbourWorks(): Promise<void> {
  const other = await lab().attach(neighbour);
  other.send({ type: 'task', prompt: 'well?' });
  await other.next(({ type }) => type === 'task_completed');
  await other.close();
}

async function expectStillHeard(): Promise<void> {
  liar.frame({ type: 'text_delta', data: 'the end' });
  await client.next(({ data }) => data === 'the end');
}

describe('a hostile guest', () => {
  it.each([
    ['a usage frame', { type: 'usage', input_tokens: 1_000_000, output_tokens: 5 }],
    ['a cancel frame', { type: 'system', event: 'cancel', reason: 'admin_action' }],
    ['a config_update frame', { type: 'system', event: 'config_update', keys: ['X'] }],
    ['a ready frame', { type: 'ready', agent: 'x', model: 'y', resumed: true }],
    ['a frame without its fields', { type: 'tool_call' }],
    ['a frame of no type', {}],
  ])('cannot show clients %s', async (_what, frame) => {
    liar.frame(frame);
    await expectStillHeard();
    expect(client.types).toEqual(['ready', 'text_delta']);
    await liar.drained();
  });

  it('cannot set the number or the time of a frame', async () => {
    liar.frame({ type: 'text_delta', data: 'x', seq: 4711, ts: 'never', more: 1 });
    const frame = await client.next(({ data }) => data === 'x');
    expect(frame).toEqual({ type: 'text_delta', data: 'x', seq: 1, ts: expect.any(String) });
    expect(Date.parse(frame.ts)).toBeGreaterThan(0);
  });

  it('that misnumbers its messages loses only its own', async () => {
    const say = (n: unknown, data: string) =>
      liar.raw(`${JSON.stringify({ type: 'frame', n, frame: { type: 'text_delta', data } })}\n`);
    say(5, 'five');
    say(3, 'three');
    say(5, 'five again');
    say('6', 'a string');
    say(-1, 'below');
    say(Number.MAX_SAFE_INTEGER, 'the last');
    await client.next(({ data }) => data === 'the last');
    expect(client.frames.map(({ data }) => data)).toEqual([undefined, 'five', 'the last']);
    await expectNeighbourWorks();
  });

  it('that sends garbage is still read, and is reconnected when it sends too much of it', async () => {
    liar.raw('garbage\n{"half":\n\n[[[[\n\xff\n');
    await expectStillHeard();
    const before = liar.connections;
    liar.raw('garbage\n'.repeat(500));
    await expect.poll(() => liar.connections).toBeGreaterThan(before);
    liar.frame({ type: 'text_delta', data: 'again' });
    await client.next(({ data }) => data === 'again');
  });

  it('that sends deeply nested JSON is still read', async () => {
    liar.raw(
      `{"type":"frame","n":1,"frame":{"type":"tool_call","id":"x","name":"x","arguments":${'['.repeat(200_000)}${']'.repeat(200_000)}}}\n`,
    );
    await expectStillHeard();
  });

  it('that sends an endless line is disconnected, then reconnected', async () => {
    const before = liar.connections;
    liar.raw('x'.repeat(9 * 1024 * 1024));
    await expect.poll(() => liar.connections).toBeGreaterThan(before);
    await expectStillHeard();
    await expectNeighbourWorks();
  });

  it('that confirms frames it never received does no harm', async () => {
    liar.raw(
      '{"type":"received","c":9007199254740991}\n{"type":"attached","c":9007199254740991}\n',
    );
    liar.raw('{"type":"configured"}\n{"type":"rehearsed"}\n');
    client.send({ type: 'task', prompt: 'still?' });
    await client.next(({ type }) => type === 'task_completed');
  });

  it('that ends tasks it never started does no harm', async () => {
    for (let index = 0; index < 50; index += 1) {
      liar.frame({ type: 'task_completed', status: 'completed', result: 'x' });
    }
    await expectStillHeard();
    await expectNeighbourWorks();
  });

  it('that disconnects repeatedly is reconnected with backoff, while its neighbour works', async () => {
    const before = liar.connections;
    for (let index = 0; index < 10; index += 1) {
      liar.cut();
      await expect.poll(() => liar.attached).toBe(true);
      // Without progress the worker would give the guest up.
      liar.frame({ type: 'text_delta', data: `again ${index}` });
      await client.next(({ data }) => data === `again ${index}`);
    }
    expect(liar.connections - before).toBeLessThan(200);
    await expectStillHeard();
    await expectNeighbourWorks();
  });

  it('that becomes unreachable ends its own session only', async () => {
    liar.open = false;
    liar.cut();
    expect(await client.closed).toEqual({ code: 1001, reason: 'sandbox destroyed' });
    expect(client.frames.at(-1)).toMatchObject({ type: 'error', code: 'agent_failed' });
    await expectNeighbourWorks();
  });

  it('that sends only garbage ends its own session only', async () => {
    const babble = setInterval(() => liar.raw('x\n'.repeat(200)), 20);
    try {
      expect(await client.closed).toMatchObject({ code: 1001 });
    } finally {
      clearInterval(babble);
    }
    await expectNeighbourWorks();
  });

  it('that sends endless output is cut off with one error, but for its end, until a client asks something new', async () => {
    const word = 'x'.repeat(1_000_000);
    client.ws.on('message', () => client.frames.splice(0, Math.max(0, client.frames.length - 50)));
    for (let index = 0; index < 100; index += 1) {
      liar.frame({ type: 'text_delta', data: word });
      if (index % 10 === 9) await liar.drained();
    }
    const errors = () => client.frames.filter(({ code }) => code === 'frame_rate');
    await expect.poll(() => errors()).toHaveLength(1);
    const { seq = 0 } = errors()[0] ?? {};
    expect(seq).toBeLessThan(75);
    await expectNeighbourWorks();
    liar.frame({ type: 'exit', exit_code: 0, id: 'x' });
    await client.next(({ type }) => type === 'exit');
    client.send({ type: 'exec', command: 'go on' });
    await expect.poll(() => liar.all('client')).toHaveLength(1);
    await expectStillHeard();
    expect(client.frames.at(-1)?.seq).toBe(seq + 2);
    // 100 MB, at the rate limit for reading a guest.
  }, 120_000);

  it('that ends turns endlessly is committed at a limited rate', async () => {
    for (let index = 0; index < 400; index += 1) liar.state(`${index}`);
    await expect.poll(() => lab().store.turns.length).toBeGreaterThan(30);
    await expectNeighbourWorks();
    expect(lab().store.turns.length).toBeLessThan(150);
  });
});

describe('a guest that does not become ready', () => {
  it.each([
    ['disconnects', (socket: { destroy(): unknown }) => socket.destroy()],
    [
      'sends garbage',
      (socket: { write(text: string): unknown }) => socket.write('x\n'.repeat(500)),
    ],
    [
      'sends an endless line',
      (socket: { write(text: string): unknown }) => socket.write('x'.repeat(9_000_000)),
    ],
  ])('but %s fails its create, which leaves nothing behind', async (_what, answer) => {
    const silent = await lab().addGuest();
    silent.onConfigure = answer;
    await expect(lab().harness.startSession()).rejects.toThrow('500');
    await expect.poll(() => lab().harness.host.live).toHaveLength(2);
    expect(lab().store.turns).toEqual([]);
  });
});
