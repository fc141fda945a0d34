import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readGuestMessage } from './guest-messages.ts';
import { LineSplitter } from './line-splitter.ts';
import { Outbox } from './outbox.ts';

describe('the line splitter', () => {
  it('finds the same lines however the bytes come', () => {
    const line = fc
      .string({ unit: 'binary', maxLength: 30 })
      .map((text) => text.replaceAll('\n', ''));
    fc.assert(
      fc.property(fc.array(line), fc.array(fc.nat({ max: 40 })), (lines, cuts) => {
        const bytes = Buffer.from(lines.map((text) => `${text}\n`).join(''));
        const splitter = new LineSplitter(1_000);
        const found: string[] = [];
        let at = 0;
        for (const cut of [...cuts, bytes.length]) {
          const chunk = bytes.subarray(at, at + cut);
          at += chunk.length;
          found.push(...splitter.push(chunk).map((one) => one.toString()));
        }
        found.push(...splitter.push(bytes.subarray(at)).map((one) => one.toString()));
        expect(found).toEqual(lines.map((text) => Buffer.from(text).toString()));
      }),
    );
  });

  it('gives up on a line without end', () => {
    const splitter = new LineSplitter(100);
    expect(splitter.push(Buffer.from(`${'x'.repeat(100)}\n`))).toHaveLength(1);
    splitter.push(Buffer.alloc(60));
    expect(() => splitter.push(Buffer.alloc(60))).toThrow('too long');
  });
});

describe('a line of the guest', () => {
  const read = (value: unknown) => readGuestMessage(Buffer.from(JSON.stringify(value)));

  it('is a message when it has the form of one, with the fields of its form alone', () => {
    const frame = { type: 'text_delta', data: 'x', seq: 99, ts: 'then', owner: true };
    expect(read({ type: 'frame', n: 1, frame })).toMatchObject({
      n: 1,
      frame: { type: 'text_delta', data: 'x' },
    });
    expect(Object.keys((read({ type: 'frame', n: 1, frame }) as { frame: object }).frame)).toEqual([
      'type',
      'data',
    ]);
  });

  it.each([
    ['usage', { type: 'usage', input_tokens: 1, output_tokens: 1 }],
    ['a cancel', { type: 'system', event: 'cancel', reason: 'timeout' }],
    ['a rotation', { type: 'system', event: 'config_update', keys: [] }],
    ['ready', { type: 'ready', agent: 'a', model: 'm', resumed: false }],
    ['pong', { type: 'pong' }],
    ['text without data', { type: 'text_delta' }],
    ['text that is none', { type: 'text_delta', data: 7 }],
    ['an unknown type', { type: 'constructor' }],
    ['no object', 7],
    ['nothing', null],
  ])('that holds %s holds no frame', (_what, frame) => {
    expect(read({ type: 'frame', n: 1, frame })).toMatchObject({ n: 1, frame: undefined });
  });

  it.each([
    ['a number below one', { type: 'frame', n: 0, frame: {} }],
    ['a number that is none', { type: 'frame', n: '1', frame: {} }],
    ['a number with a fraction', { type: 'state', n: 1.5, conversation: '', files: false }],
    ['a number too large', { type: 'exited', n: 2 ** 60, exitCode: 0 }],
    ['an unknown type', { type: 'toString', n: 1 }],
    ['no fields', {}],
    ['no object', []],
  ])('with %s says nothing', (_what, value) => {
    expect(read(value)).toBeUndefined();
  });

  it.each([
    ['no JSON', 'hello'],
    ['half of it', '{"type":"frame"'],
    ['bytes that are no text', '\xff\xfe'],
    ['deep JSON', `{"type":"frame","n":1,"frame":${'['.repeat(100_000)}${']'.repeat(100_000)}}`],
  ])('that is %s says nothing', (_what, text) => {
    expect(readGuestMessage(Buffer.from(text, 'latin1'))).toBeUndefined();
  });

  it('never throws', () => {
    fc.assert(
      fc.property(fc.oneof(fc.json(), fc.string()), (text) => {
        readGuestMessage(Buffer.from(text));
      }),
    );
  });
});

describe('the outbox', () => {
  const opened: Outbox[] = [];
  let directory: string;
  const exec = (command: string) => ({ type: 'exec', command }) as const;

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'svc-outbox-'));
  });

  afterEach(async () => {
    for (const outbox of opened.splice(0)) await outbox.close();
    await rm(directory, { recursive: true, force: true });
  });

  async function open(path: string): Promise<Outbox> {
    const outbox = await Outbox.open(path);
    opened.push(outbox);
    return outbox;
  }

  it('keeps what the guest has not received, over a restart too', async () => {
    const path = join(directory, 'outbox');
    const first = await open(path);
    for (const command of ['a', 'b', 'c']) await first.add(exec(command));
    first.received(1);
    await first.close();
    const second = await open(path);
    second.received(1);
    expect(second.waiting).toEqual([
      { c: 2, frame: exec('b') },
      { c: 3, frame: exec('c') },
    ]);
    second.received(3);
    await second.close();
    const third = await open(path);
    third.received(3);
    expect(await third.add(exec('d'))).toEqual({ c: 4, frame: exec('d') });
  });

  it('goes on with its numbers when all was received and taken out', async () => {
    const path = join(directory, 'outbox');
    const first = await open(path);
    for (let index = 0; index < 20; index += 1) await first.add(exec('x'.repeat(100_000)));
    first.received(20);
    await first.compact();
    expect((await readFile(path)).length).toBeLessThan(1_000);
    await first.close();
    const second = await open(path);
    expect(second.waiting).toEqual([]);
    expect(await second.add(exec('on'))).toMatchObject({ c: 21 });
  });

  it('takes no more than it can hold', async () => {
    const outbox = await open(join(directory, 'outbox'));
    const large = exec('x'.repeat(110_000));
    let taken = 0;
    while ((await outbox.add(large)) !== undefined) taken += 1;
    expect(taken).toBeLessThan(160);
    outbox.received(taken);
    for (taken = 0; (await outbox.add(exec('a'))) !== undefined; ) taken += 1;
    expect(taken).toBe(256);
  });
});
