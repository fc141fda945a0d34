import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Outbox } from './outbox.ts';

describe('Outbox', () => {
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

  it('keeps frames that the guest has not received, across a restart too', async () => {
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

  it('continues its numbering after all frames were received and compacted away', async () => {
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

  it('refuses frames beyond 16 MiB or 256 entries', async () => {
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
