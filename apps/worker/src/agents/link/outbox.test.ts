import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { Budget } from '@svc/service-kit/concurrency';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { linkBudgets } from './link-budgets.ts';
import { Outbox } from './outbox.ts';

const MIB = 1024 * 1024;

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

  async function open(path: string, held: Budget = linkBudgets().of('account')): Promise<Outbox> {
    const outbox = await Outbox.open(path, held);
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
    expect([...second.after(0)]).toEqual([
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
    expect([...second.after(0)]).toEqual([]);
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

  it('refuses frames for which its account has no room, beyond 1 MiB of its own', async () => {
    const budgets = linkBudgets(4 * MIB);
    const large = exec('x'.repeat(MIB / 2));
    /** All at once, so that the frames wait for each other. */
    const fill = (outbox: Outbox) =>
      Promise.all(Array.from({ length: 20 }, () => outbox.add(large)));
    const taken: number[] = [];
    const outboxes = ['a', 'a', 'b'].map((account, index) =>
      open(join(directory, `outbox-${index}`), budgets.of(account)),
    );
    for (const outbox of await Promise.all(outboxes)) {
      taken.push((await fill(outbox)).filter((entry) => entry !== undefined).length);
    }
    // Each with a little around the frame.
    expect(taken).toEqual([9, 2, 9]);
    const [first, second] = await Promise.all(outboxes);
    first?.received(5);
    expect(await second?.add(large)).toBeDefined();
    await first?.close();
    await second?.close();
    expect(budgets.of('a').left).toBe(4 * MIB);
  });

  it('takes no room of its account when it cannot be opened', async () => {
    const budgets = linkBudgets(4 * MIB);
    // The name of a temporary file beside it is too long.
    const path = join(directory, 'outbox'.padEnd(255, 'x'));
    await writeFile(path, `${JSON.stringify({ c: 1, frame: exec('x'.repeat(2 * MIB)) })}\n`);
    await expect(Outbox.open(path, budgets.of('account'))).rejects.toThrow('ENAMETOOLONG');
    expect(budgets.of('account').left).toBe(4 * MIB);
  });

  it('holds a frame as its text, however many values are in it', async () => {
    const outbox = await open(join(directory, 'outbox'));
    const frame = JSON.stringify({
      type: 'tool_call',
      name: 'x',
      arguments: { a: Array(100_000).fill([]) },
    });
    const before = heldBytes();
    for (let added = 0; added < 10; added += 1) await outbox.add(JSON.parse(frame));
    expect(heldBytes() - before).toBeLessThan(16 * MIB);
    expect([...outbox.after(0)][9]).toEqual({ c: 10, frame: JSON.parse(frame) });
  });
});

function heldBytes(): number {
  setFlagsFromString('--expose-gc');
  runInNewContext('gc')();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}
