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
  /** A running sandbox of the attacker, for this attack alone. */
  readonly sandbox: () => Promise<string>;
  /** Ends the attacks. */
  readonly signal: AbortSignal;
}

/** One round of an attack. It may throw whatever the service answers. */
type Attack = (context: AttackContext) => Promise<unknown>;

/** Longer than any soak. */
const LIFETIME = { idle_timeout_seconds: 6 * 3600, max_lifetime_seconds: 6 * 3600 };

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
    const id = await context.sandbox();
    await all(20, () => unreadOutput(context, id));
  },
  'large metadata and lists': async ({ attacker, signal }) => {
    const { sandboxes } = attacker.client;
    const metadata = { text: 'x'.repeat(16_000) };
    const { vm_id } = await sandboxes.create({ template: 'standard', metadata }, { signal });
    try {
      await all(MANY, () => sandboxes.list({ signal }));
      await all(MANY, () => sandboxes.get(vm_id, { signal }));
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
    const id = await sandbox();
    await all(COMMANDS, () => attacker.client.sandboxes.exec(id, 'sleep 5', { signal }));
  },
  'pauses and resumes': async ({ attacker, sandbox, signal }) => {
    const { sandboxes } = attacker.client;
    const id = await sandbox();
    await all(COMMANDS, (index) =>
      index % 2 === 0 ? sandboxes.pause(id, { signal }) : sandboxes.resume(id, { signal }),
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
    const command = 'head -c 256M /dev/urandom > /root/random';
    await attacker.client.sandboxes.exec(await sandbox(), command, { signal });
  },
  'API keys': async ({ attacker, access, signal }) => {
    const target = '/v1/tenants/me/api-keys';
    await access.raw({ method: 'POST', target, apiKey: attacker.apiKey, body: {}, signal });
  },
};

/** Repeats an attack until its context ends. Returns the number of rounds, and of refusals by their codes. */
export async function attackUntilEnd(
  attack: Attack,
  context: Omit<AttackContext, 'sandbox'>,
): Promise<ReadonlyMap<string, number>> {
  const outcomes = new Map<string, number>();
  let own: string | undefined;
  const sandbox = async () => {
    own = await runningSandbox(context, own);
    return own;
  };
  while (!context.signal.aborted) {
    const outcome = await attack({ ...context, sandbox }).then(
      () => 'done',
      (error: unknown) => (error instanceof SvcError ? error.code : 'failed'),
    );
    outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
    // The attacker's own work is done on the same machine, and is not what is measured.
    await delay(ROUND_PAUSE_MS, undefined, { signal: context.signal }).catch(() => undefined);
  }
  return outcomes;
}

/** This sandbox, if it still runs, or else another one: the service may end those of an attacker. */
async function runningSandbox(
  { attacker, signal }: Pick<AttackContext, 'attacker' | 'signal'>,
  id: string | undefined,
): Promise<string> {
  const { sandboxes } = attacker.client;
  if (id !== undefined) {
    const { state } = await sandboxes.get(id, { signal });
    if (state === 'running') return id;
    if (state === 'paused') return (await sandboxes.resume(id, { signal })).vm_id;
  }
  return (await sandboxes.create({ template: 'standard', ...LIFETIME }, { signal })).vm_id;
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
async function unreadOutput(
  { access, attacker, signal }: AttackContext,
  sandbox: string,
): Promise<void> {
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
