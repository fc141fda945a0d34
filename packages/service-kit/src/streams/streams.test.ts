import { once } from 'node:events';
import { PassThrough, Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { describe, expect, test } from 'vitest';
import { hasData, LimitedStream, limitBody } from './index.ts';

describe('hasData', () => {
  test('tells an empty stream from one with data, which it leaves in the stream', async () => {
    expect(await hasData(Readable.from([]))).toBe(false);
    const stream = Readable.from([Buffer.from('x')]);
    expect(await hasData(stream)).toBe(true);
    expect((await buffer(stream)).toString()).toBe('x');
  });

  test('rejects with the error of the stream or the reason of the signal', async () => {
    const broken = new PassThrough();
    const asked = hasData(broken);
    broken.destroy(new Error('broken'));
    await expect(asked).rejects.toThrow('broken');
    const left = new AbortController();
    const waiting = hasData(new PassThrough(), left.signal);
    left.abort(new Error('left'));
    await expect(waiting).rejects.toThrow('left');
  });
});

describe('LimitedStream', () => {
  test('passes up to its maximum and reports progress', async () => {
    let chunks = 0;
    const limited = new LimitedStream({ maxBytes: 4, onProgress: () => (chunks += 1) });
    limitBody(Readable.from([Buffer.from('ab'), Buffer.from('cd')]), limited);
    expect((await buffer(limited)).toString()).toBe('abcd');
    expect([limited.bytes, chunks]).toEqual([4, 2]);
  });

  test('fails beyond its maximum and leaves the body open', async () => {
    const body = new PassThrough();
    const limited = new LimitedStream({ maxBytes: 4 });
    limitBody(body, limited);
    const failed = once(limited, 'error');
    body.write('abcde');
    expect((await failed)[0]).toMatchObject({ code: 'payload_too_large' });
    expect(body.destroyed).toBe(false);
  });

  test('leaves the body open when detached', () => {
    const body = new PassThrough();
    const limited = new LimitedStream({ maxBytes: 4 });
    limitBody(body, limited)();
    expect([limited.destroyed, body.destroyed]).toEqual([true, false]);
  });

  test('fails when the body breaks off', async () => {
    const body = new PassThrough();
    const limited = new LimitedStream({ maxBytes: 4 });
    limitBody(body, limited);
    const failed = once(limited, 'error');
    body.destroy();
    expect((await failed)[0].message).toMatch(/before it was complete/);
  });
});
