import { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import { Secret } from '@svc/service-kit';
import { KeyedBudget } from '@svc/service-kit/concurrency';
import { describe, expect, test } from 'vitest';
import type { LlmAccount } from './account.ts';
import { Registration, Registrations } from './registrations.ts';
import { llmRoute } from './route.ts';

const LIMITS = {
  connections: 2,
  requestBytes: 100,
  heldBytes: 100,
  tenantHeldBytes: 200,
  requests: 2,
  requestRate: { perSecond: 1, burst: 2 },
  idleMs: 1000,
};
const ACCOUNT: LlmAccount = {
  vmId: 'vm_1',
  tenantId: 'usr_1',
  vendor: 'openai',
  dialect: 'openai',
  apiKey: new Secret('sk'),
  onUsage: () => undefined,
};

const tenantHeld = new KeyedBudget(1_000).of('usr_1');

class SocketDouble extends EventEmitter {
  destroyed = 0;

  destroy(): void {
    this.destroyed += 1;
    this.emit('close');
  }
}

function addSocket(registration: Registration): SocketDouble {
  const socket = new SocketDouble();
  registration.addSocket(socket as unknown as Socket);
  return socket;
}

test('a sandbox is found by its IPv4 address in either form, and by no other', () => {
  const registrations = new Registrations(LIMITS);
  registrations.add('10.0.0.1', ACCOUNT);
  expect(registrations.at('10.0.0.1')?.account).toBe(ACCOUNT);
  expect(registrations.at('::ffff:10.0.0.1')?.account).toBe(ACCOUNT);
  for (const address of [undefined, '', '10.0.0.2', '1::ffff:10.0.0.1', 'svc', '::ffff:']) {
    expect(registrations.at(address), address).toBeUndefined();
  }
});

test('a second sandbox at an address ends the first one, whose removal then does nothing', () => {
  const registrations = new Registrations(LIMITS);
  const remove = registrations.add('10.0.0.1', ACCOUNT);
  const first = registrations.at('10.0.0.1');
  const removeSecond = registrations.add('10.0.0.1', ACCOUNT);
  const second = registrations.at('10.0.0.1');
  expect(second).not.toBe(first);
  expect(first?.ended.aborted).toBe(true);
  remove();
  expect(registrations.at('10.0.0.1')).toBe(second);
  expect(second?.ended.aborted).toBe(false);
  removeSecond();
  expect(registrations.at('10.0.0.1')).toBeUndefined();
  expect(second?.ended.aborted).toBe(true);
});

test('clearing ends and forgets all', () => {
  const registrations = new Registrations(LIMITS);
  registrations.add('10.0.0.1', ACCOUNT);
  registrations.add('10.0.0.2', ACCOUNT);
  const both = ['10.0.0.1', '10.0.0.2'].map((address) => registrations.at(address));
  registrations.clear();
  expect(both.map((one) => one?.ended.aborted)).toEqual([true, true]);
  expect(registrations.at('10.0.0.1')).toBeUndefined();
});

test('the end closes the connections that are open', () => {
  const registration = new Registration(ACCOUNT, LIMITS, tenantHeld);
  const [closed, open] = [addSocket(registration), addSocket(registration)];
  closed.emit('close');
  registration.end();
  expect([closed.destroyed, open.destroyed]).toEqual([0, 1]);
});

test('as many requests run as the limit allows', () => {
  const registration = new Registration(ACCOUNT, LIMITS, tenantHeld);
  const starts = [1, 2, 3].map(() => registration.startRequest());
  expect(starts).toEqual([true, true, false]);
  registration.endRequest();
  expect([registration.startRequest(), registration.startRequest()]).toEqual([true, false]);
});

test('as many bytes are held as the limit allows', () => {
  const registration = new Registration(ACCOUNT, LIMITS, tenantHeld);
  expect([60, 41, 40, 1].map((bytes) => registration.take(bytes))).toEqual([
    true,
    false,
    true,
    false,
  ]);
  registration.give(40);
  expect([41, 40].map((bytes) => registration.take(bytes))).toEqual([false, true]);
});

test('the sandboxes of a tenant share its bytes, which no other tenant takes', () => {
  const registrations = new Registrations(LIMITS);
  const add = (address: string, tenantId: string) => {
    const end = registrations.add(address, { ...ACCOUNT, tenantId });
    const registration = registrations.at(address);
    if (registration === undefined) throw new Error('not registered');
    return { registration, end };
  };
  const [first, second, third] = ['10.0.0.1', '10.0.0.2', '10.0.0.3'].map((address) =>
    add(address, 'usr_1'),
  );
  expect([first, second].map((one) => one?.registration.take(100))).toEqual([true, true]);
  expect(third?.registration.take(1)).toBe(false);
  expect(add('10.0.0.4', 'usr_2').registration.take(100)).toBe(true);
  first?.end();
  first?.registration.give(100);
  expect([101, 100].map((bytes) => third?.registration.take(bytes))).toEqual([false, true]);
});

describe('after a rotation of the keys', () => {
  const own = (baseUrl: string, key: string): LlmAccount => ({
    ...ACCOUNT,
    baseUrl,
    apiKey: new Secret(key),
  });
  const routeOf = ({ dialect, baseUrl }: LlmAccount) => llmRoute(dialect, baseUrl);

  test('requests have the new key, and other dialects still have none', () => {
    const registration = new Registration(ACCOUNT, LIMITS, tenantHeld);
    expect(registration.accountFor('openai')).toBe(ACCOUNT);
    const next = { ...ACCOUNT, apiKey: new Secret('new') };
    registration.replace(next);
    expect(registration.account).toBe(next);
    expect(registration.accountFor('openai')).toBe(next);
    for (const route of [undefined, 'anthropic', 'google', 'none']) {
      expect(registration.accountFor(route)).toBeUndefined();
    }
  });

  test('a task keeps the endpoint that it began with, until the first request for the new one', () => {
    const [first, second] = [own('https://a.example', '1'), own('https://b.example', '2')];
    const registration = new Registration(first, LIMITS, tenantHeld);
    expect(registration.accountFor(routeOf(first))).toBe(first);
    registration.replace(second);
    expect(registration.accountFor(routeOf(first))).toBe(first);
    expect(registration.accountFor(routeOf(second))).toBe(second);
    // From then on, whatever names an earlier endpoint gets the current account.
    expect(registration.accountFor(routeOf(first))).toBe(second);
  });

  test('an endpoint that comes back has its newest key', () => {
    const [first, second, third] = [
      own('https://a.example', '1'),
      own('https://b.example', '2'),
      own('https://a.example', '3'),
    ];
    const registration = new Registration(first, LIMITS, tenantHeld);
    registration.replace(second);
    registration.replace(third);
    expect(registration.accountFor(routeOf(first))).toBe(third);
  });

  test('eight earlier endpoints are known, always with that of the last request', () => {
    const accounts = Array.from({ length: 10 }, (_, index) =>
      own(`https://${index}.example`, String(index)),
    );
    const [first, second, third, ...others] = accounts;
    if (first === undefined || second === undefined || third === undefined)
      throw new Error('there are ten');
    const registration = new Registration(first, LIMITS, tenantHeld);
    registration.accountFor(routeOf(first));
    for (const account of [second, third, ...others]) registration.replace(account);
    const current = accounts.at(-1);
    expect(registration.account).toBe(current);
    expect(registration.accountFor(routeOf(first))).toBe(first);
    // The oldest one that was not used has been forgotten.
    expect(registration.accountFor(routeOf(second))).toBe(current);
    expect(registration.accountFor(routeOf(third))).toBe(third);
  });
});
