import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { setTimeout as delay } from 'node:timers/promises';
import type { ModelServer } from '@svc/model-server';
import { SvcError } from '@svc/sdk';
import type { Access } from '../../../test/access.ts';
import type { Account } from '../../../test/sign-up.ts';
import { startSession } from './victim.ts';

/** What the attacks have. */
export interface AttackContext {
  readonly access: Access;
  readonly attacker: Pick<Account, 'client' | 'apiKey'>;
  readonly victim: Pick<Account, 'email'>;
  readonly models: Pick<ModelServer, 'url'>;
  /** A running sandbox of the attacker. */
  readonly sandbox: string;
  /** Ends the attacks. */
  readonly signal: AbortSignal;
}

/** One round of an attack. It may throw whatever the service answers. */
type Attack = (context: AttackContext) => Promise<unknown>;

const ROUND_PAUSE_MS = 250;
const COMMANDS = 100;
const MANY = 50;

/** Each goes on until the soak ends, all at once. */
export const ATTACKS: Readonly<Record<string, Attack>> = {
  'sandboxes of odd sizes': async ({ attacker, signal }) => {
    const { sandboxes } = attacker.client;
    const memory_mib = 257 + Math.floor(Math.random() * 200);
    const { vm_id } = await sandboxes.create({ template: 'standard', memory_mib }, { signal });
    await sandboxes.delete(vm_id);
  },
  'output that nobody reads': async (context) => {
    await all(20, () => unreadOutput(context));
  },
  'large metadata and lists': async ({ attacker, sandbox, signal }) => {
    const { sandboxes } = attacker.client;
    const metadata = { text: 'x'.repeat(16_000) };
    const { vm_id } = await sandboxes.create({ template: 'standard', metadata }, { signal });
    try {
      await all(MANY, () => sandboxes.list({ signal }));
      await all(MANY, () => sandboxes.get(sandbox, { signal }));
    } finally {
      await sandboxes.delete(vm_id);
    }
  },
  'turns with other files': async ({ attacker, models, signal }) => {
    const session = await startSession(attacker, models);
    try {
      for (let turn = 0; turn < 20 && !signal.aborted; turn += 1) {
        await session.task('run: head -c 64M /dev/urandom > ~/random', `attack-${turn}`);
      }
    } finally {
      await session.close();
    }
  },
  'long commands': async ({ attacker, sandbox, signal }) => {
    await all(COMMANDS, () => attacker.client.sandboxes.exec(sandbox, 'sleep 5', { signal }));
  },
  'pauses and resumes': async ({ attacker, sandbox, signal }) => {
    const { sandboxes } = attacker.client;
    await all(COMMANDS, (index) =>
      index % 2 === 0
        ? sandboxes.pause(sandbox, { signal })
        : sandboxes.resume(sandbox, { signal }),
    );
  },
  'wrong codes': async ({ access, victim, signal }) => {
    await access.raw({
      method: 'POST',
      target: '/v1/tenants/verify',
      body: { email: victim.email, code: '000000' },
      signal,
    });
  },
  'a full disk': async ({ attacker, sandbox, signal }) => {
    await attacker.client.sandboxes.exec(sandbox, 'head -c 256M /dev/urandom > /root/random', {
      signal,
    });
  },
  'API keys': async ({ attacker, access, signal }) => {
    const target = '/v1/tenants/me/api-keys';
    await access.raw({ method: 'POST', target, apiKey: attacker.apiKey, body: {}, signal });
  },
};

/** Repeats an attack until its context ends. Returns the number of rounds, and of refusals by their codes. */
export async function attackUntilEnd(
  attack: Attack,
  context: AttackContext,
): Promise<ReadonlyMap<string, number>> {
  const outcomes = new Map<string, number>();
  while (!context.signal.aborted) {
    const outcome = await attack(context).then(
      () => 'done',
      (error: unknown) => (error instanceof SvcError ? error.code : 'failed'),
    );
    outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
    // The attacker's own work is done on the same machine, and is not what is measured.
    await delay(ROUND_PAUSE_MS, undefined, { signal: context.signal }).catch(() => undefined);
  }
  return outcomes;
}

/** Runs calls at once. Throws one of their errors once all have ended. */
async function all(count: number, call: (index: number) => Promise<unknown>): Promise<void> {
  const results = await Promise.allSettled(
    Array.from({ length: count }, (_, index) => call(index)),
  );
  const failed = results.find((result) => result.status === 'rejected');
  if (failed !== undefined) throw failed.reason;
}

/** Runs a command with much output, and reads nothing of the answer until the attack ends or the service cuts it off. */
async function unreadOutput({ access, attacker, sandbox, signal }: AttackContext): Promise<void> {
  const call = request(`${access.address.baseUrl}/v1/sandboxes/${sandbox}/exec`, {
    method: 'POST',
    ca: access.ca,
    agent: false,
    headers: {
      authorization: `Bearer ${attacker.apiKey}`,
      'content-type': 'application/json',
    },
    signal,
  });
  call.end(JSON.stringify({ command: 'head -c 10M /dev/zero' }));
  const [response] = (await once(call, 'response')) as [IncomingMessage];
  if (response.statusCode !== 200) {
    response.destroy();
    throw new Error(`status ${response.statusCode}`);
  }
  await once(response, 'close');
}
