import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { AgentSetup } from '@svc/contract';
import type { KeyedBudget } from '@svc/service-kit/concurrency';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { ScriptedGuest } from '../../../test/scripted-guest.ts';
import { silentLogger } from '../../../test/silent-logger.ts';
import { AgentLink } from './agent-link.ts';
import type { NumberedMessage } from './guest-messages.ts';
import { linkBudgets } from './link-budgets.ts';
import { Outbox } from './outbox.ts';

const MIB = 1024 * 1024;
const ACCOUNT = 8 * MIB;

let guest: ScriptedGuest;
let budgets: KeyedBudget;
let directory: string;
let outbox: Outbox | undefined;
let link: AgentLink | undefined;
let received: NumberedMessage[];
let lost: number;

beforeEach(async () => {
  guest = await ScriptedGuest.listen();
  budgets = linkBudgets(ACCOUNT);
  directory = await mkdtemp(join(tmpdir(), 'svc-agent-link-'));
  received = [];
  lost = 0;
});

afterEach(async () => {
  await link?.close();
  link = undefined;
  await outbox?.close();
  outbox = undefined;
  await guest[Symbol.asyncDispose]();
  await rm(directory, { recursive: true, force: true });
});

/** Opens the link of an account that gives up soon. */
async function open(): Promise<void> {
  link = new AgentLink({
    vm: { paused: false, dialAgent },
    token: 'token',
    lastN: 0,
    onCaptured: () => undefined,
    held: budgets.of('account'),
    outbox,
    lineMs: 1_000,
    timeouts: { dialMs: 60_000, linkLostMs: 2_000 },
    metrics: { linkLost: () => undefined },
    logger: silentLogger,
  });
  const handler = {
    receive: async (messages: readonly NumberedMessage[], acknowledge: (n: number) => void) => {
      received.push(...messages);
      acknowledge(messages.at(-1)?.n ?? 0);
    },
    lost: () => {
      lost += 1;
    },
  };
  await link.configure({} as AgentSetup, handler, AbortSignal.timeout(60_000));
}

async function dialAgent() {
  const socket = connect(guest.port, '127.0.0.1');
  await once(socket, 'connect');
  return socket;
}

it('is not lost while its account leaves no room for a line of the guest', async () => {
  budgets.of('account').take(ACCOUNT);
  await open();
  guest.frame({ type: 'text_delta', data: 'x'.repeat(1.25 * MIB) });
  await expect.poll(() => guest.connections > 4 || lost > 0, { timeout: 30_000 }).toBe(true);
  expect(lost).toBe(0);
  budgets.of('account').give(ACCOUNT);
  await expect.poll(() => received.length, { timeout: 20_000 }).toBe(1);
}, 60_000);

it('sends what its outbox kept over one connection while its account has no room', async () => {
  const path = join(directory, 'outbox');
  const frames = 14;
  const earlier = await Outbox.open(path, linkBudgets().of('account'));
  for (let added = 0; added < frames; added += 1) {
    await earlier.add({ type: 'task', prompt: 'x'.repeat(MIB - 1024) });
  }
  await earlier.close();
  guest.onClient = () => undefined;
  budgets.of('account').take(ACCOUNT);
  outbox = await Outbox.open(path, budgets.of('account'));
  await open();
  const hasLeft = () => [...(outbox?.after(0) ?? [])].length > 0;
  await expect.poll(() => !hasLeft() || lost > 0, { timeout: 30_000 }).toBe(true);
  expect(guest.all('client').map(({ c }) => c)).toEqual(
    Array.from({ length: frames }, (_, index) => index + 1),
  );
  expect({ lost, connections: guest.connections }).toEqual({ lost: 0, connections: 1 });
}, 60_000);
