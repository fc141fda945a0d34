import { describe, expect, it } from 'vitest';
import { backoffMs, retry } from './retry.ts';

const quick = { baseMs: 1, maxMs: 2 };

describe('retry', () => {
  it('calls again until a call succeeds', async () => {
    const result = await retry(async (attempt) => {
      if (attempt < 3) throw new Error('not yet');
      return attempt;
    }, quick);
    expect(result).toBe(3);
  });

  it('throws the last error when the attempts are used up', async () => {
    let calls = 0;
    const call = retry(
      async () => {
        calls += 1;
        throw new Error(`failure ${calls}`);
      },
      { ...quick, attempts: 3 },
    );
    await expect(call).rejects.toThrow('failure 3');
  });

  it('stops at a lasting failure and when aborted', async () => {
    let calls = 0;
    const lasting = async () => {
      calls += 1;
      throw new Error('lasting');
    };
    await expect(retry(lasting, { isTransient: () => false })).rejects.toThrow('lasting');
    expect(calls).toBe(1);
    const controller = new AbortController();
    const aborted = retry(
      async () => {
        controller.abort();
        throw new Error('late');
      },
      { ...quick, signal: controller.signal },
    );
    await expect(aborted).rejects.toThrow('late');
  });

  it('doubles its pauses up to the maximum', () => {
    const pauses = [1, 2, 3, 10].map((n) => backoffMs(n, { baseMs: 100, maxMs: 1000 }, () => 1));
    expect(pauses).toEqual([100, 200, 400, 1000]);
  });
});
