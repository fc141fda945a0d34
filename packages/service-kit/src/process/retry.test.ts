import { describe, expect, it } from 'vitest';
import { backoffMs, retry } from './retry.ts';
import { SingleFlight } from './single-flight.ts';

const quick = { baseMs: 1, maxMs: 2 };

describe('retry', () => {
  it('calls again until it succeeds', async () => {
    const result = await retry(async (attempt) => {
      if (attempt < 3) throw new Error('not yet');
      return attempt;
    }, quick);
    expect(result).toBe(3);
  });

  it('ends with the last failure', async () => {
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

  it('ends at a lasting failure and when aborted', async () => {
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

  it('pauses longer each time, up to a bound', () => {
    const pauses = [1, 2, 3, 10].map((n) => backoffMs(n, { baseMs: 100, maxMs: 1000 }, () => 1));
    expect(pauses).toEqual([100, 200, 400, 1000]);
  });
});

describe('single flight', () => {
  it('shares a call between concurrent callers of one key only', async () => {
    const flights = new SingleFlight<string, number>();
    let calls = 0;
    const call = async () => {
      calls += 1;
      return calls;
    };
    expect(await Promise.all([flights.run('a', call), flights.run('a', call)])).toEqual([1, 1]);
    expect(await Promise.all([flights.run('a', call), flights.run('b', call)])).toEqual([2, 3]);
  });

  it('forgets a failed call', async () => {
    const flights = new SingleFlight<string, number>();
    await expect(flights.run('a', () => Promise.reject(new Error('no')))).rejects.toThrow('no');
    expect(await flights.run('a', async () => 1)).toBe(1);
  });
});
