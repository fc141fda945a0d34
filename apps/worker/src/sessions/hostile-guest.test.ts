import { beforeEach, describe, expect, it } from 'vitest';
import type { ScriptedGuest } from '../../test/scripted-guest.ts';
import { useSessionLab } from '../../test/session-lab.ts';
import type { SessionSocket } from '../../test/session-socket.ts';
import { until } from '../../test/until.ts';

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

async function neighbourIsWell(): Promise<void> {
  const other = await lab().attach(neighbour);
  other.send({ type: 'task', prompt: 'well?' });
  await other.next(({ type }) => type === 'task_completed');
  await other.close();
}

async function stillTalks(): Promise<void> {
  liar.frame({ type: 'text_delta', data: 'the end' });
  await client.next(({ data }) => data === 'the end');
}

describe('a guest that lies', () => {
  it.each([
    ['usage', { type: 'usage', input_tokens: 1_000_000, output_tokens: 5 }],
    ['a cancel', { type: 'system', event: 'cancel', reason: 'admin_action' }],
    ['a rotation', { type: 'system', event: 'config_update', keys: ['X'] }],
    ['ready', { type: 'ready', agent: 'x', model: 'y', resumed: true }],
    ['a frame without its fields', { type: 'tool_call' }],
    ['a frame of no type', {}],
  ])('about %s is not heard', async (_what, frame) => {
    liar.frame(frame);
    await stillTalks();
    expect(client.types).toEqual(['ready', 'text_delta']);
    await liar.drained();
  });

  it('about numbers and times is put right', async () => {
    liar.frame({ type: 'text_delta', data: 'x', seq: 4711, ts: 'never', more: 1 });
    const frame = await client.next(({ data }) => data === 'x');
    expect(frame).toEqual({ type: 'text_delta', data: 'x', seq: 1, ts: expect.any(String) });
    expect(Date.parse(frame.ts)).toBeGreaterThan(0);
  });

  it('about the numbers of its messages loses only its own', async () => {
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
    await neighbourIsWell();
  });

  it('with garbage is heard behind it, up to a point', async () => {
    liar.raw('garbage\n{"half":\n\n[[[[\n\xff\n');
    await stillTalks();
    const before = liar.connections;
    liar.raw('garbage\n'.repeat(500));
    await until(() => expect(liar.connections).toBeGreaterThan(before));
    liar.frame({ type: 'text_delta', data: 'again' });
    await client.next(({ data }) => data === 'again');
  });

  it('with deep JSON is heard behind it', async () => {
    liar.raw(
      `{"type":"frame","n":1,"frame":{"type":"tool_call","id":"x","name":"x","arguments":${'['.repeat(200_000)}${']'.repeat(200_000)}}}\n`,
    );
    await stillTalks();
  });

  it('with a line that never ends is hung up on, and heard again', async () => {
    const before = liar.connections;
    liar.raw('x'.repeat(9 * 1024 * 1024));
    await until(() => expect(liar.connections).toBeGreaterThan(before));
    await stillTalks();
    await neighbourIsWell();
  });

  it('about what it has received harms nobody', async () => {
    liar.raw(
      '{"type":"received","c":9007199254740991}\n{"type":"attached","c":9007199254740991}\n',
    );
    liar.raw('{"type":"configured"}\n{"type":"rehearsed"}\n');
    client.send({ type: 'task', prompt: 'still?' });
    await client.next(({ type }) => type === 'task_completed');
  });

  it('about the end of its tasks keeps its sandbox busy at most for its lifetime', async () => {
    for (let index = 0; index < 50; index += 1) {
      liar.frame({ type: 'task_completed', status: 'completed', result: 'x' });
    }
    await stillTalks();
    await neighbourIsWell();
  });

  it('that hangs up again and again is called again with pauses, while its neighbour is served', async () => {
    const before = liar.connections;
    for (let index = 0; index < 10; index += 1) {
      liar.cut();
      await until(() => expect(liar.attached).toBe(true));
      // Or it would be given up, for it would not get on.
      liar.frame({ type: 'text_delta', data: `again ${index}` });
      await client.next(({ data }) => data === `again ${index}`);
    }
    expect(liar.connections - before).toBeLessThan(200);
    await stillTalks();
    await neighbourIsWell();
  });

  it('that cannot be reached any more ends its own session', async () => {
    liar.open = false;
    liar.cut();
    expect(await client.closed).toEqual({ code: 1001, reason: 'sandbox destroyed' });
    expect(client.frames.at(-1)).toMatchObject({ type: 'error', code: 'agent_failed' });
    await neighbourIsWell();
  });

  it('that says nothing but nonsense ends its own session', async () => {
    const babble = setInterval(() => liar.raw('x\n'.repeat(200)), 20);
    try {
      expect(await client.closed).toMatchObject({ code: 1001 });
    } finally {
      clearInterval(babble);
    }
    await neighbourIsWell();
  });

  it('without end is heard up to a bound, told so once, and heard again when it is asked', async () => {
    const word = 'x'.repeat(1_000_000);
    client.ws.on('message', () => client.frames.splice(0, Math.max(0, client.frames.length - 50)));
    for (let index = 0; index < 100; index += 1) {
      liar.frame({ type: 'text_delta', data: word });
      if (index % 10 === 9) await liar.drained();
    }
    const errors = () => client.frames.filter(({ code }) => code === 'frame_rate');
    await until(() => expect(errors()).toHaveLength(1));
    const { seq = 0 } = errors()[0] ?? {};
    expect(seq).toBeLessThan(75);
    await neighbourIsWell();
    client.send({ type: 'exec', command: 'go on' });
    await until(() => expect(liar.all('client')).toHaveLength(1));
    await stillTalks();
    expect(client.frames.at(-1)?.seq).toBe(seq + 1);
    // 100 MB, at the pace that a guest is read with.
  }, 120_000);

  it('with endless turns is committed at a bearable pace', async () => {
    for (let index = 0; index < 400; index += 1) liar.state(`${index}`);
    await until(() => expect(lab().store.turns.length).toBeGreaterThan(30));
    await neighbourIsWell();
    expect(lab().store.turns.length).toBeLessThan(150);
  });
});

describe('a guest that does not get ready', () => {
  it.each([
    ['hangs up', (socket: { destroy(): unknown }) => socket.destroy()],
    [
      'sends garbage',
      (socket: { write(text: string): unknown }) => socket.write('x\n'.repeat(500)),
    ],
    [
      'sends a line without end',
      (socket: { write(text: string): unknown }) => socket.write('x'.repeat(9_000_000)),
    ],
  ])('and %s fails its create, which leaves nothing', async (_what, answer) => {
    const silent = await lab().addGuest();
    silent.onConfigure = answer;
    await expect(lab().harness.startSession()).rejects.toThrow('500');
    await until(() => expect(lab().harness.host.live).toHaveLength(2));
    expect(lab().store.turns).toEqual([]);
  });
});
