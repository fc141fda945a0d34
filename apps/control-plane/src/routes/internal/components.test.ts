import {
  CONTROL_PLANE_NAME,
  type ComponentKind,
  INTERNAL_PREFIX,
  isActive,
  type SandboxState,
} from '@svc/contract';
import {
  createTokenMinter,
  deriveControlPlaneKey,
  type Enrolment,
  generateKeyPair,
  type KeyPair,
  mintEnrolmentToken,
} from '@svc/service-kit';
import { openFleet } from '@svc/store';
import { ComponentDouble, type WorkerDouble } from '@svc/worker-double';
import { Agent, request } from 'undici';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { askAsWorker } from '../../../test/ask-as-worker.ts';
import { CLUSTER_SECRET, Harness } from '../../../test/harness.ts';
import type { ControlPlane } from '../../control-plane.ts';

let harness: Harness;
let second: ControlPlane;
let signer: KeyPair;
let count = 0;

beforeAll(async () => {
  harness = await Harness.start();
  second = await harness.startAnother();
  signer = await deriveControlPlaneKey(CLUSTER_SECRET);
});
afterAll(async () => {
  await second?.close();
  await harness?.[Symbol.asyncDispose]();
});
beforeEach(() => harness.reset());

const newId = () => `component-${++count}`;
const tokenFor = (changes: Partial<Enrolment> = {}, seconds = 60) =>
  mintEnrolmentToken(signer, { kind: 'worker', uses: 1, ...changes }, seconds);

/** Enrols at one of the control planes, and returns the status and the code of a problem. */
async function enrol(
  token: string,
  id: string,
  key: KeyPair,
  plane = harness.plane,
  kind: ComponentKind = 'worker',
) {
  const answer = await fetch(`${plane.internalUrl}${INTERNAL_PREFIX}/components`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ token, kind, component_id: id, public_key: key.publicKey }),
  });
  const text = await answer.text();
  return { status: answer.status, code: text === '' ? undefined : JSON.parse(text).code };
}

/** Whether a control plane takes this key for that of the component. */
async function isEnrolled(id: string, key: KeyPair, plane = harness.plane): Promise<boolean> {
  const token = await createTokenMinter(key, id)(CONTROL_PLANE_NAME);
  const { status } = await fetch(`${plane.internalUrl}${INTERNAL_PREFIX}/components/self`, {
    headers: { authorization: `Bearer ${token}` },
  });
  expect([204, 401]).toContain(status);
  return status === 204;
}

const enrolled = { status: 204, code: undefined };
const invalid = { status: 401, code: 'enrolment_token_invalid' };
const used = { status: 409, code: 'enrolment_token_used' };
const inUse = { status: 409, code: 'component_id_in_use' };

describe('an enrolment', () => {
  test('makes a key that of a component, at every control plane, and can be repeated', async () => {
    const [id, key, token] = [newId(), await generateKeyPair(), await tokenFor()];
    expect(await isEnrolled(id, key)).toBe(false);
    for (const plane of [harness.plane, second]) {
      expect(await enrol(token, id, key, plane)).toEqual(enrolled);
      expect(await isEnrolled(id, key, plane)).toBe(true);
    }
  });

  test('with a token that has been used is refused, whichever component asks, and where', async () => {
    const token = await tokenFor();
    expect(await enrol(token, newId(), await generateKeyPair())).toEqual(enrolled);
    const id = newId();
    const key = await generateKeyPair();
    for (const plane of [harness.plane, second]) {
      expect(await enrol(token, id, key, plane)).toEqual(used);
    }
    expect(await isEnrolled(id, key)).toBe(false);
  });

  test('of many at once succeeds as often as the token says', async () => {
    const token = await tokenFor({ uses: 3 });
    const answers = await Promise.all(
      Array.from({ length: 8 }, async (_, index) => {
        const key = await generateKeyPair();
        return enrol(token, newId(), key, index % 2 === 0 ? harness.plane : second);
      }),
    );
    expect(answers.filter(({ status }) => status === 204)).toHaveLength(3);
    expect(answers.filter(({ code }) => code === 'enrolment_token_used')).toHaveLength(5);
  });

  test('does not take the id of another component, unless the token is for it', async () => {
    const [id, key, thief] = [newId(), await generateKeyPair(), await generateKeyPair()];
    expect(await enrol(await tokenFor(), id, key)).toEqual(enrolled);
    const token = await tokenFor();
    expect(await enrol(token, id, thief)).toEqual(inUse);
    expect(await isEnrolled(id, key)).toBe(true);
    // Nothing is lost with the refusal.
    expect(await enrol(token, newId(), thief)).toEqual(enrolled);
    expect(await enrol(await tokenFor({ componentId: id }), id, thief)).toEqual(enrolled);
    expect(await isEnrolled(id, key)).toBe(false);
    expect(await isEnrolled(id, thief)).toBe(true);
  });

  test('with a token for another id or kind, an expired, a foreign or a malformed one is refused', async () => {
    const key = await generateKeyPair();
    const foreign = await mintEnrolmentToken(key, { kind: 'worker', uses: 1 }, 60);
    const session = await createTokenMinter(signer, 'svc-operator')(CONTROL_PLANE_NAME);
    for (const token of [
      await tokenFor({ componentId: 'other' }),
      await tokenFor({}, -100),
      foreign,
      session,
      'x',
      '',
    ]) {
      expect(await enrol(token, newId(), key)).toEqual(invalid);
    }
    const token = await tokenFor();
    expect(await enrol(token, newId(), key, harness.plane, 'runtime')).toEqual(invalid);
  });

  test('is refused with a key of another form', async () => {
    const token = await tokenFor();
    for (const public_key of [
      { kty: 'RSA', n: 'x', e: 'AQAB' },
      { kty: 'OKP', crv: 'X25519', x: 'A'.repeat(43) },
      { kty: 'OKP', crv: 'Ed25519', x: 'short' },
    ]) {
      const body = JSON.stringify({ token, kind: 'worker', component_id: newId(), public_key });
      const url = `${harness.plane.internalUrl}${INTERNAL_PREFIX}/components`;
      const headers = { 'content-type': 'application/json' };
      expect((await fetch(url, { method: 'POST', headers, body })).status).toBe(400);
    }
  });
});

test('the keys of control planes are those that sign their calls', async () => {
  const answer = await fetch(`${second.internalUrl}${INTERNAL_PREFIX}/keys`);
  expect(await answer.json()).toEqual({ keys: [{ ...signer.publicKey, kid: signer.id }] });
});

describe('a worker that is broken into', () => {
  let owner: Awaited<ReturnType<Harness['signUp']>>;
  let victim: WorkerDouble;
  let broken: WorkerDouble;

  beforeAll(async () => {
    owner = await harness.signUp();
    await harness.addBundle(owner.key, 'llm', { LLM_API_KEY: 'k' });
  });
  beforeEach(async () => {
    victim = await harness.addWorker('victim');
  });

  const ids = { session: '', vmId: '' };
  async function startVictims() {
    const session = await harness.startSession(owner.key);
    Object.assign(ids, { session: session.id, vmId: session.vmId });
    broken = await harness.addWorker('broken');
  }

  test('gets nothing of the sandboxes and sessions of other workers', async () => {
    await startVictims();
    const { session, vmId } = ids;
    const generation = 1;
    const chunk = 'A'.repeat(43);
    const turn = { generation, vm_id: vmId, first_seq: 1, last_seq: 1, frames: '{"seq":1}\n' };
    const numbers = { generation, vm_id: vmId, numberer: '00000000-0000-4000-8000-000000000001' };
    const asked: readonly (readonly [string, string, object?])[] = [
      ['GET', `/sandboxes/${vmId}/agent-secrets`],
      ['GET', `/sessions/${session}`],
      ['POST', `/sessions/${session}/recover`],
      ['GET', `/sessions/${session}/state`],
      ['POST', `/sessions/${session}/frame-numbers`, numbers],
      ['POST', `/sessions/${session}/turns`, turn],
      ['GET', `/sessions/${session}/chunk-secret?generation=1`],
      ['POST', `/sessions/${session}/chunks/missing`, { generation, ids: [chunk] }],
      ['POST', `/sessions/${session}/chunks/downloads`, { generation, ids: [chunk] }],
      ['GET', `/sessions/${session}/files/${chunk}`],
      ['POST', `/workers/victim/heartbeat`, {}],
      ['POST', `/workers/victim/events`, {}],
      ['PUT', '/runtime-hosts/00000000-0000-4000-8000-000000000001', { name: 'r' }],
    ];
    for (const [method, path, body] of asked) {
      const answer = await askAsWorker(broken, harness.plane.url, method, path, body);
      expect(answer.status, `${method} ${path}: ${JSON.stringify(answer.body)}`).toBeGreaterThan(
        399,
      );
    }
    // Reports about them change nothing.
    const stolen = victim.sandboxes.get(vmId);
    if (stolen === undefined) throw new Error('the victim has no sandbox');
    await broken.event(harness.plane.url, { ...stolen, state: 'destroyed', revision: 99 });
    expect(await harness.session(owner.key, session)).toMatchObject({ status: 'active' });
  });

  test('cannot speak as a control plane, a runtime host or another worker', async () => {
    const key = await new ComponentDouble('worker', 'broken', CLUSTER_SECRET).key;
    broken = await harness.addWorker('broken');
    const doors = [
      [CONTROL_PLANE_NAME, 'victim', victim.url, '/sandboxes'],
      ['victim', CONTROL_PLANE_NAME, harness.plane.internalUrl, '/components/self'],
      ['svc-runtime', CONTROL_PLANE_NAME, harness.plane.internalUrl, '/components/self'],
    ] as const;
    const dispatcher = new Agent({ connect: { rejectUnauthorized: false } });
    onTestFinished(() => dispatcher.destroy());
    for (const [issuer, audience, url, path] of doors) {
      const token = await createTokenMinter(key, issuer)(audience);
      const { statusCode, body } = await request(`${url}${INTERNAL_PREFIX}${path}`, {
        dispatcher,
        headers: { authorization: `Bearer ${token}` },
      });
      await body.dump();
      expect(statusCode, issuer).toBe(401);
    }
  });

  test('is locked out at once when it is revoked, and its sandboxes end as lost', async () => {
    await startVictims();
    await using fleet = openFleet(harness.postgres.url);
    expect(await fleet.components.revoke('victim', 'worker')).toBe(true);
    for (const plane of [harness.plane, second]) {
      // A control plane may remember its key, but not for anything else.
      expect([401, 404]).toContain((await victim.heartbeat(plane.internalUrl)).status);
      const answer = await victim.register(plane.internalUrl);
      expect(await answer.json()).toMatchObject({ status: 401, code: 'component_unauthorized' });
    }
    const executed = await harness.call('POST', `/v1/sandboxes/${ids.vmId}/exec`, {
      key: owner.key,
      json: { command: 'true' },
    });
    expect(executed.status).toBeGreaterThan(399);
    await expect
      .poll(
        async () => {
          const { body } = await harness.call('GET', `/v1/sandboxes/${ids.vmId}`, {
            key: owner.key,
          });
          return isActive(body.state as SandboxState) ? body.state : body.end_reason;
        },
        { timeout: 60_000 },
      )
      .toBe('worker_lost');
  });
});
