import { join } from 'node:path';
import type { Config } from '@svc/config';
import { CONTROL_PLANE_NAME, type ComponentKind, INTERNAL_PREFIX } from '@svc/contract';
import { backoffMs, sleep, withDeadline } from '@svc/service-kit/concurrency';
import type { Logger } from '@svc/service-kit/logging';
import { writeFileAtomic } from '@svc/service-kit/process';
import { Secret } from '@svc/service-kit/secret';
import {
  type ComponentIdentity,
  createTokenMinter,
  deriveControlPlaneKey,
  formatKeyPair,
  generateKeyPair,
  mintEnrolmentToken,
  parseKeyPair,
} from '@svc/service-kit/tokens';
import { Agent, request } from 'undici';
import { CliError } from '../../output/errors.ts';
import type { ControlPlaneAddress } from './runtime-host.ts';
import { readIfAny, runtimeHostId, storedValue, workerId } from './stored-values.ts';

const DEADLINE_MS = 10_000;
const PAUSES = { baseMs: 250, maxMs: 10_000 };
const LOCAL_TOKEN_SECONDS = 600;

/**
 * The identity of the worker or the runtime host of this machine. Its private key is generated at the first start, and never
 * leaves the machine.
 */
export async function openIdentity(
  config: Config,
  kind: ComponentKind,
): Promise<ComponentIdentity> {
  const id = kind === 'worker' ? await workerId(config) : await runtimeHostId(config);
  const file = join(config.dataDir, `${kind}-key.pem`);
  const pem = await storedValue(file, async () => formatKeyPair(await generateKeyPair()).reveal());
  return { id, key: await parseKeyPair(new Secret(pem)) };
}

export interface EnrolOptions {
  readonly config: Pick<Config, 'dataDir'>;
  readonly kind: ComponentKind;
  readonly identity: ComponentIdentity;
  readonly controlPlane: ControlPlaneAddress;
  /** Undefined when the operator has given none. */
  readonly token: Secret | undefined;
  readonly logger: Logger;
  readonly signal: AbortSignal;
}

/**
 * Enrols the public key of a component, unless that has been done. A component that has enrolled starts without its control
 * plane.
 * @throws CliError `not_enrolled` without a token, `enrolment_refused`
 */
export async function enrol(options: EnrolOptions): Promise<void> {
  const { config, kind, identity, token } = options;
  const file = join(config.dataDir, `${kind}-enrolled`);
  const hasEnrolled = (await readIfAny(file)) === identity.key.id;
  // With a token, its operator may want it to enrol again.
  if (hasEnrolled && token === undefined) return;
  await using calls = new EnrolmentCalls(options);
  const standing = hasEnrolled
    ? await calls.ask().catch(() => 'unknown')
    : await calls.untilAnswered(() => calls.ask());
  if (standing === 'unknown') return;
  if (standing === 'refused') {
    if (token === undefined) throw notEnrolled(options);
    await calls.untilAnswered(() => calls.enrol(token));
  }
  await writeFileAtomic(file, identity.key.id, { mode: 0o600 });
}

/** A token for a component of a machine that has the cluster secret. */
export async function localToken(
  clusterSecret: Secret,
  kind: ComponentKind,
  { id }: ComponentIdentity,
): Promise<Secret> {
  const key = await deriveControlPlaneKey(clusterSecret);
  const enrolment = { kind, componentId: id, uses: 1 };
  return new Secret(await mintEnrolmentToken(key, enrolment, LOCAL_TOKEN_SECONDS));
}

class EnrolmentCalls implements AsyncDisposable {
  readonly #options: EnrolOptions;
  readonly #agent: Agent;
  readonly #mint: ReturnType<typeof createTokenMinter>;

  constructor(options: EnrolOptions) {
    this.#options = options;
    const { ca } = options.controlPlane;
    this.#agent = new Agent(ca === undefined ? {} : { connect: { ca } });
    this.#mint = createTokenMinter(options.identity.key, options.identity.id);
  }

  /** Repeats a call until a control plane answers it. */
  async untilAnswered<T>(call: () => Promise<T>): Promise<T> {
    const { signal, logger } = this.#options;
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await call();
      } catch (err) {
        signal.throwIfAborted();
        if (err instanceof CliError) throw err;
        if (attempt === 1) logger.warn({ err }, 'cannot reach the control plane; retrying');
        await sleep(backoffMs(attempt, PAUSES), signal);
        signal.throwIfAborted();
      }
    }
  }

  /** Whether the control plane knows the key. Rejects when it does not say. */
  async ask(): Promise<'enrolled' | 'refused'> {
    const authorization = `Bearer ${await this.#mint(CONTROL_PLANE_NAME)}`;
    const { status } = await this.#send('GET', '/components/self', { authorization });
    if (status === 401) return 'refused';
    if (status >= 300) throw new Error(`the control plane answered ${status}`);
    return 'enrolled';
  }

  /** @throws CliError `enrolment_refused`; Error when the control plane does not say */
  async enrol(token: Secret): Promise<void> {
    const { identity, kind, logger } = this.#options;
    const body = JSON.stringify({
      token: token.reveal().trim(),
      kind,
      component_id: identity.id,
      public_key: identity.key.publicKey,
    });
    const headers = { 'content-type': 'application/json' };
    const { status, text } = await this.#send('POST', '/components', headers, body);
    if (status >= 500) throw new Error(`the control plane answered ${status}`);
    if (status >= 300) throw enrolmentRefused(this.#options, status, text);
    logger.info({ componentId: identity.id, keyId: identity.key.id }, 'enrolled');
  }

  async #send(
    method: 'GET' | 'POST',
    path: string,
    headers: Record<string, string>,
    body?: string,
  ) {
    const { controlPlane, signal } = this.#options;
    const answer = await request(new URL(`${INTERNAL_PREFIX}${path}`, controlPlane.url), {
      method,
      headers,
      body: body ?? null,
      dispatcher: this.#agent,
      signal: withDeadline(signal, DEADLINE_MS),
    });
    return { status: answer.statusCode, text: await answer.body.text() };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#agent.destroy();
  }
}

function notEnrolled({ kind, identity }: EnrolOptions): CliError {
  return new CliError('not_enrolled', `the fleet does not know ${identity.id}`, {
    next: howToEnrol(kind, identity.id),
  });
}

function enrolmentRefused(
  { kind, identity }: EnrolOptions,
  status: number,
  text: string,
): CliError {
  const { detail } = parseProblem(text);
  const message = `the control plane refused to enrol: ${detail ?? status}`;
  return new CliError('enrolment_refused', message, {
    next: howToEnrol(kind, identity.id),
  });
}

/** With the id, since a component whose id the fleet knows cannot enrol with any other token. */
function howToEnrol(kind: ComponentKind, id: string): string {
  return `run \`svc ${kind} token --id ${id}\` where a control plane runs, and set SVC_ENROLMENT_TOKEN here to what it prints`;
}

function parseProblem(text: string): { readonly detail?: string } {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== 'object' || value === null || !('detail' in value)) return {};
    return typeof value.detail === 'string' ? { detail: value.detail } : {};
  } catch {
    return {};
  }
}
