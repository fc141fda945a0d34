import { AGENT_LINK_LINE_BYTES, type AgentSetup } from '@svc/contract';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { WorkerLine } from '../testing/worker-line.ts';
import { AgentLink, type AgentLinkOptions, type LinkHandler } from './agent-link.ts';

const SETUP = { mode: 'session', agent: 'deictic' } as AgentSetup;
const TOKEN = 'the token of the line';

let link: AgentLink;
let lines: WorkerLine[];
const handler = { configure: vi.fn(), client: vi.fn(), env: vi.fn(), save: vi.fn() };

beforeEach(() => {
  lines = [];
  for (const mock of Object.values(handler)) mock.mockReset();
});
afterEach(async () => {
  for (const line of lines) line.close();
  await link.close();
});

async function listen(options: Partial<AgentLinkOptions> = {}): Promise<void> {
  link = await AgentLink.listen({ host: '127.0.0.1', port: 0, ...options }, handler as LinkHandler);
}

async function open(): Promise<WorkerLine> {
  const line = await WorkerLine.open(link.port);
  lines.push(line);
  return line;
}

async function configured(): Promise<WorkerLine> {
  const line = await open();
  line.say({ type: 'configure', token: TOKEN, setup: SETUP });
  await line.hear('configured');
  return line;
}

async function attach(after: number): Promise<WorkerLine> {
  const line = await open();
  line.say({ type: 'attach', token: TOKEN, after });
  await line.hear('attached');
  return line;
}

const text = (data: string) => link.frame({ type: 'text_delta', data });
const textOf = (line: WorkerLine) =>
  line.all('frame').map(({ n, frame }) => [n, 'data' in frame ? frame.data : frame.type]);

describe('who is let in', () => {
  test('whoever configures first, and then whoever names the token', async () => {
    await listen();
    await configured();
    expect(handler.configure).toHaveBeenCalledExactlyOnceWith(SETUP);
    expect((await attach(0)).all('attached')).toEqual([{ type: 'attached', c: 0 }]);
  });

  test.each([
    ['a wrong token', { type: 'attach', token: 'guess', after: 0 }],
    ['another configuration', { type: 'configure', token: 'mine', setup: SETUP }],
    ['no token at all', { type: 'save' }],
    ['a client frame', { type: 'client', c: 1, frame: { type: 'exec', command: 'true' } }],
    ['new values', { type: 'env', env: {} }],
    ['an acknowledgement', { type: 'ack', n: 1 }],
  ] as const)('%s ends the connection, and the line stays with its owner', async (_what, said) => {
    await listen();
    const owner = await configured();
    const stranger = await open();
    stranger.say(said);
    await stranger.ended();
    text('still here');
    await owner.frame('text_delta');
    expect(stranger.received).toEqual([]);
    expect(handler.configure).toHaveBeenCalledOnce();
    for (const name of ['client', 'env', 'save'] as const) {
      expect(handler[name]).not.toHaveBeenCalled();
    }
  });

  test('an attachment before there is a configuration ends the connection', async () => {
    await listen();
    const line = await open();
    line.say({ type: 'attach', token: '', after: 0 });
    await line.ended();
  });

  test('no process of the guest, though it knew the token', async () => {
    await listen({ workerAddress: '192.0.2.1' });
    const line = await open();
    line.say({ type: 'configure', token: TOKEN, setup: SETUP });
    await line.ended();
    expect(handler.configure).not.toHaveBeenCalled();
  });

  test('a rehearsal leaves nothing of what it named, and there is none of a configured runtime', async () => {
    await listen();
    const rehearsal = { type: 'rehearse', token: 'rehearsal', setup: SETUP } as const;
    const first = await open();
    first.say(rehearsal);
    await first.hear('rehearsed');
    first.say({ type: 'attach', token: 'rehearsal', after: 0 });
    await first.ended();
    expect(handler.configure).not.toHaveBeenCalled();
    await configured();
    const late = await open();
    late.say(rehearsal);
    await late.ended();
    expect(late.received).toEqual([]);
  });

  test('whoever says nothing is sent away', async () => {
    await listen({ authenticateMs: 50 });
    const silent = await open();
    await silent.ended();
    const rehearsing = await open();
    rehearsing.say({ type: 'rehearse', token: TOKEN, setup: SETUP });
    await rehearsing.ended();
  });

  test('only a few may be silent at once, and they do not keep the owner out for long', async () => {
    await listen({ authenticateMs: 3_000 });
    const silent = await Promise.all(Array.from({ length: 10 }, () => open()));
    await expect.poll(() => silent.filter(({ closed }) => closed).length).toBe(6);
    await expect.poll(() => silent.every(({ closed }) => closed)).toBe(true);
    await configured();
  });

  test.each([
    ['no JSON', 'hello\n'],
    ['no message', '{"type":"constructor"}\n'],
    ['a message without its fields', '{"type":"attach","token":5,"after":0}\n'],
    ['an endless line', 'x'.repeat(AGENT_LINK_LINE_BYTES + 1)],
  ])('%s ends the connection', async (_what, said) => {
    await listen();
    const line = await open();
    line.sayText(said);
    await line.ended();
  });
});

describe('numbered messages', () => {
  test('come in order, and again after a reconnect until they are acknowledged', async () => {
    await listen();
    const first = await configured();
    for (const word of ['a', 'b', 'c']) text(word);
    await first.frame('text_delta', { data: 'c' });
    first.say({ type: 'ack', n: 1 });
    first.close();
    text('d');
    const second = await attach(2);
    await second.frame('text_delta', { data: 'd' });
    expect(textOf(second)).toEqual([
      [3, 'c'],
      [4, 'd'],
    ]);
    const third = await attach(2);
    await third.frame('text_delta', { data: 'd' });
    expect(textOf(third)).toEqual(textOf(second));
  });

  test('go to the newest connection alone', async () => {
    await listen();
    const first = await configured();
    const second = await attach(0);
    await first.ended();
    text('for the second');
    await second.frame('text_delta');
    expect(first.all('frame')).toEqual([]);
  });

  test('state and exit are numbered like frames', async () => {
    await listen();
    const line = await configured();
    link.state('all of it', true);
    link.exited(3);
    await line.hear('exited');
    expect(line.received.slice(1)).toEqual([
      { type: 'state', conversation: 'all of it', files: true, n: 1 },
      { type: 'exited', exitCode: 3, n: 2 },
    ]);
  });

  test('many are delivered whole, to a reader that goes and comes', async () => {
    await listen();
    const first = await configured();
    for (let index = 0; index < 20_000; index += 1) text(`${index} ${'x'.repeat(200)}`);
    await first.frame('text_delta');
    first.close();
    const seen = first.all('frame').at(-1)?.n ?? 0;
    const second = await attach(seen);
    await second.hear('frame', ({ n }) => n === 20_000);
    expect(second.all('frame').map(({ n }) => n)).toEqual(
      Array.from({ length: 20_000 - seen }, (_, index) => seen + index + 1),
    );
  });
});

describe('a worker that does not keep up', () => {
  test('makes the agent wait, until enough is acknowledged', async () => {
    await listen({ roomBytes: 10_000 });
    const line = await configured();
    await link.drained();
    for (let index = 0; index < 11; index += 1) text('x'.repeat(1000));
    let drained = false;
    const waiting = link.drained().then(() => {
      drained = true;
    });
    await line.hear('frame', ({ n }) => n === 11);
    expect(drained).toBe(false);
    line.say({ type: 'ack', n: 10 });
    await waiting;
  });

  test('and an agent that does not wait loses frames, is told so once, and ends its task', async () => {
    await listen({ roomBytes: 10_000 });
    const line = await configured();
    line.pause();
    for (let index = 0; index < 100; index += 1) text('x'.repeat(1000));
    link.frame({ type: 'task_completed', status: 'completed', result: '' });
    line.close();
    const next = await attach(0);
    await next.frame('task_completed');
    expect(next.order().filter((type) => type === 'error')).toHaveLength(1);
    expect(next.order().length).toBeLessThan(30);
  });

  test('a frame too large for the line becomes an error, and the line lives', async () => {
    await listen();
    const line = await configured();
    text('x'.repeat(AGENT_LINK_LINE_BYTES));
    await line.frame('error', { code: 'frame_too_large' });
    expect(link.state('x'.repeat(AGENT_LINK_LINE_BYTES), false)).toBe(false);
    text('on');
    await line.frame('text_delta', { data: 'on' });
  });
});

describe('client frames', () => {
  test('are handled once, however often they come, and always answered', async () => {
    await listen();
    const line = await configured();
    const frame = { type: 'exec', command: 'true' } as const;
    line.say({ type: 'client', c: 1, frame }, { type: 'client', c: 2, frame });
    line.say({ type: 'client', c: 1, frame });
    await expect.poll(() => line.all('received').map(({ c }) => c)).toEqual([1, 2, 1]);
    const again = await attach(0);
    expect(again.all('attached')).toEqual([{ type: 'attached', c: 2 }]);
    again.say({ type: 'client', c: 2, frame }, { type: 'client', c: 3, frame });
    await again.hear('received', ({ c }) => c === 3);
    expect(handler.client).toHaveBeenCalledTimes(3);
  });
});
