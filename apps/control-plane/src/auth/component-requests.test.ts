import { EventEmitter } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { LIMITS } from '@svc/contract';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { ComponentRequests, hasLargeBody, limitBodyTime } from './component-requests.ts';

const TOO_MANY = { code: 'too_many_requests' };

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const unanswered = () => ({ raw: new EventEmitter() }) as FastifyReply;
const requestTo = (url: string) => ({ routeOptions: { url } }) as FastifyRequest;

test('a large request that gets no turn within 20 seconds is refused, and so is one whose client is gone', async () => {
  const requests = new ComponentRequests();
  const turn = (url = '/turns', reply = unanswered()) =>
    requests.awaitTurn('w1', requestTo(url), reply);
  const first = unanswered();
  await turn('/turns', first);
  await turn();
  const left = unanswered();
  const refused = [
    expect(turn('/turns', left)).rejects.toMatchObject(TOO_MANY),
    expect(turn()).rejects.toMatchObject(TOO_MANY),
  ];
  await turn('/heartbeat');
  left.raw.emit('close');
  await refused[0];
  await vi.advanceTimersByTimeAsync(20_000);
  await refused[1];
  first.raw.emit('close');
  await turn();
  expect(vi.getTimerCount()).toBe(0);
});

test.each([
  [{ 'content-length': String(LIMITS.jsonBodyBytes) }, 2 * LIMITS.jsonBodyBytes, false],
  [{ 'content-length': String(LIMITS.jsonBodyBytes + 1) }, 2 * LIMITS.jsonBodyBytes, true],
  [{}, 2 * LIMITS.jsonBodyBytes, true],
  [{ 'content-length': String(LIMITS.jsonBodyBytes + 1) }, LIMITS.jsonBodyBytes, false],
  [{}, LIMITS.jsonBodyBytes, false],
])('a body is large by its length, or if it may be: %j of at most %i', (headers, most, isLarge) => {
  const request = { headers, routeOptions: { bodyLimit: most } } as unknown as FastifyRequest;
  expect(hasLargeBody(request)).toBe(isLarge);
});

test('a body that has not ended after a minute closes its connection', () => {
  const destroy = vi.fn();
  const open = () => Object.assign(new EventEmitter(), { complete: false, destroy });
  const limit = (request: EventEmitter) => limitBodyTime(request as IncomingMessage);
  const ended = open();
  limit(ended);
  ended.emit('end');
  limit(Object.assign(open(), { complete: true }));
  expect(vi.getTimerCount()).toBe(0);
  limit(open());
  vi.advanceTimersByTime(59_999);
  expect(destroy).not.toHaveBeenCalled();
  vi.advanceTimersByTime(1);
  expect(destroy).toHaveBeenCalledTimes(1);
});
