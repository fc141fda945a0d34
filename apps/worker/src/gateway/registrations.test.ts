import { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import { Secret } from '@svc/service-kit';
import { expect, test } from 'vitest';
import type { LlmAccount } from './account.ts';
import { Registration, Registrations } from './registrations.ts';

const LIMITS = { requestBytes: 100, heldBytes: 100, requests: 2, idleMs: 1000 };
const ACCOUNT: LlmAccount = {
  vmId: 'vm_1',
  vendor: 'openai',
  dialect: 'openai',
  apiKey: new Secret('sk'),
  onUsage: () => undefined,
};

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
  const registration = new Registration(ACCOUNT, LIMITS);
  const [closed, open] = [addSocket(registration), addSocket(registration)];
  closed.emit('close');
  registration.end();
  expect([closed.destroyed, open.destroyed]).toEqual([0, 1]);
});

test('as many requests run as the limit allows', () => {
  const registration = new Registration(ACCOUNT, LIMITS);
  const starts = [1, 2, 3].map(() => registration.startRequest());
  expect(starts).toEqual([true, true, false]);
  registration.endRequest();
  expect([registration.startRequest(), registration.startRequest()]).toEqual([true, false]);
});

test('as many bytes are held as the limit allows', () => {
  const registration = new Registration(ACCOUNT, LIMITS);
  expect([60, 41, 40, 1].map((bytes) => registration.take(bytes))).toEqual([
    true,
    false,
    true,
    false,
  ]);
  registration.give(40);
  expect([41, 40].map((bytes) => registration.take(bytes))).toEqual([false, true]);
});
