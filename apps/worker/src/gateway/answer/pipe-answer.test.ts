import { once } from 'node:events';
import { get, type IncomingMessage, type ServerResponse } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { expect, onTestFinished, test, vi } from 'vitest';
import { startHttpServer } from '../../../test/http-server.ts';
import { UsageMeter } from '../usage/usage-meter.ts';
import { pipeAnswer } from './pipe-answer.ts';

const KEY = 'sk-the-real-key';
const MIB = Buffer.alloc(1024 * 1024, 'x');

/** A response that is not complete, and what its client sees. */
async function exchange(): Promise<{ response: ServerResponse; answer: IncomingMessage }> {
  const { server, host, port } = await startHttpServer();
  const request = get({ port, host, agent: false });
  const [[, response]] = (await Promise.all([
    once(server, 'request'),
    once(request, 'socket'),
  ])) as [[IncomingMessage, ServerResponse], unknown];
  response.flushHeaders();
  const [answer] = (await once(request, 'response')) as [IncomingMessage];
  answer.on('error', () => undefined);
  return { response, answer };
}
async function* chunks(...all: (string | Buffer)[]): AsyncGenerator<Buffer> {
  for (const chunk of all) yield Buffer.from(chunk);
}
/** Much more than the buffers of a connection hold, and how much of it was asked for. */
function endless() {
  const source = {
    read: 0,
    async *[Symbol.asyncIterator]() {
      for (;;) {
        source.read += 1;
        yield MIB;
      }
    },
  };
  return source;
}
const optionsFor = (signal = new AbortController().signal, idleMs = 60_000) => ({
  key: KEY,
  meter: new UsageMeter('application/json'),
  idleMs,
  signal,
});

test('an answer passes with its key masked and its tokens counted', async () => {
  const { response, answer } = await exchange();
  const options = optionsFor();
  const body = chunks(
    `{"model":"${KEY.slice(0, 5)}`,
    `${KEY.slice(5)}","usage":{"input_tokens":3}}`,
  );
  await pipeAnswer(body, response, options);
  expect(String(await buffer(answer))).toBe(
    `{"model":"${'*'.repeat(KEY.length)}","usage":{"input_tokens":3}}`,
  );
  expect(options.meter.usage).toMatchObject({ input_tokens: 3 });
});

test('what might have been the beginning of the key is sent at the end', async () => {
  const { response, answer } = await exchange();
  await pipeAnswer(chunks('text sk-the'), response, optionsFor());
  expect(String(await buffer(answer))).toBe('text sk-the');
});

test('a sandbox that reads slowly gets all of a large answer', async () => {
  const { response, answer } = await exchange();
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  const many = Array.from({ length: 4 }, () => MIB);
  const piped = pipeAnswer(chunks(...many), response, optionsFor());
  const got = await buffer(answer);
  await piped;
  expect(got.length).toBe(4 * MIB.length);
  expect(response.listenerCount('drain')).toBe(0);
  expect(vi.getTimerCount()).toBe(0);
});

test('no more is read from the endpoint than the sandbox reads, and only for a while', async () => {
  const { response } = await exchange();
  const source = endless();
  await expect(pipeAnswer(source, response, optionsFor(undefined, 100))).rejects.toThrow(
    'does not read',
  );
  expect(source.read).toBeLessThan(64);
  expect(response.listenerCount('drain')).toBe(0);
});

test('the wait for the sandbox ends when the signal aborts', async () => {
  const { response } = await exchange();
  const stop = new AbortController();
  const reason = new Error('gone');
  const source = endless();
  const piped = pipeAnswer(source, response, optionsFor(stop.signal));
  piped.catch(() => undefined);
  await expect.poll(() => response.listenerCount('drain')).toBe(1);
  stop.abort(reason);
  await expect(piped).rejects.toBe(reason);
  expect(response.listenerCount('drain')).toBe(0);
});

test('there is no wait when the signal has aborted before', async () => {
  const { response } = await exchange();
  const reason = new Error('gone');
  const aborted = AbortSignal.abort(reason);
  await expect(pipeAnswer(endless(), response, optionsFor(aborted))).rejects.toBe(reason);
});
