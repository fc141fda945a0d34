import { randomBytes } from 'node:crypto';
import {
  appendFile,
  chmod,
  mkdir,
  readFile,
  rename,
  rm,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { join } from 'node:path';
import { CLUSTER_SECRET, Harness } from '@svc/control-plane/testing';
import { type GuestDaemon, startGuestDaemon } from '@svc/microvm/testing';
import type { ComponentIdentity } from '@svc/service-kit';
import {
  contentOf,
  type SandboxWorkspace,
  WorkspaceClient,
  type WorkspaceStep,
} from '@svc/worker/testing';
import { ComponentDouble } from '@svc/worker-double';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';

/**
 * The workspaces of workers at a real control plane, with its database and its object store. The guests are directories
 * of this machine, served by the guest's daemon.
 */

const WORKER = 'w1';
const MIB = 1024 * 1024;

type Account = Awaited<ReturnType<Harness['signUp']>>;

let directory: string;
let daemon: GuestDaemon;
let harness: Harness;
let account: Account;
let worker: Awaited<ReturnType<Harness['addWorker']>>;
let client: WorkspaceClient;
let app: string;
let count = 0;
const clients: WorkspaceClient[] = [];
let identity: ComponentIdentity;

const signal = () => AbortSignal.timeout(120_000);

function newClient(): WorkspaceClient {
  const made = new WorkspaceClient({
    url: harness.plane.url,
    identity,
  });
  clients.push(made);
  return made;
}

function newScope(): string {
  count += 1;
  return `app-${count}`;
}

interface Guest {
  readonly vmId: string;
  readonly root: string;
  readonly workspace: SandboxWorkspace;
}

/** A sandbox with the workspace of this test. */
async function create(owner = account, scope = app): Promise<Guest> {
  count += 1;
  // Its last heartbeat may be too long ago.
  expect((await worker.heartbeat(harness.plane.url)).status).toBe(200);
  const vmId = await harness.create(owner.key, {
    workspace_enabled: true,
    app_id: scope,
    capset_id: 'c',
  });
  const root = join(directory, `root-${count}`);
  return { vmId, root, workspace: client.mount(vmId, daemon.tree(root)) };
}

/** Closes the connections to all guests, of which the daemon accepts a few. */
afterEach(() => daemon.closeTrees());

async function loaded(owner = account): Promise<Guest> {
  const guest = await create(owner);
  await guest.workspace.load(signal());
  return guest;
}

const route = () => `/v1/workspaces/${app}/c`;

async function listed(owner = account): Promise<unknown> {
  return (await harness.call('GET', route(), { key: owner.token })).body.files;
}

beforeAll(async () => {
  daemon = await startGuestDaemon();
  directory = daemon.directory;
  harness = await Harness.start();
  account = await harness.signUp();
  identity = await new ComponentDouble('worker', WORKER, CLUSTER_SECRET).identity();
  worker = await harness.addWorker(WORKER, (made) => {
    made.memoryMib = MIB;
  });
});

afterAll(async () => {
  await Promise.all(clients.map((made) => made.close()));
  await harness?.[Symbol.asyncDispose]();
  await daemon?.stop();
});

beforeEach(() => {
  app = newScope();
  client = newClient();
});

it('brings a tree into another sandbox, and to its owner through the public routes', async () => {
  const one = await loaded();
  await mkdir(join(one.root, 'a/empty'), { recursive: true });
  await chmod(join(one.root, 'a/empty'), 0o710);
  await writeFile(join(one.root, 'a/script'), '#!/bin/sh');
  await chmod(join(one.root, 'a/script'), 0o4755);
  await symlink('../../etc/passwd', join(one.root, 'a/link'));
  await writeFile(Buffer.from(`${one.root}/caf\xe9`, 'latin1'), 'odd');
  const large = randomBytes(3 * MIB + 11);
  await writeFile(join(one.root, 'large'), large);
  for (let index = 0; index < 300; index += 1) {
    await writeFile(join(one.root, `a/small${index}`), randomBytes(index));
  }
  const put = await harness.call('PUT', `${route()}/files/uploaded`, { key: account.token });
  await fetch(String(put.body.url), { method: 'PUT', body: 'by its owner' });
  await one.workspace.flush(signal());

  const two = await loaded();
  const expected = await contentOf(one.root);
  const { uploaded, ...found } = await contentOf(two.root);
  expect(found).toEqual(expected);
  expect(uploaded).toBeDefined();
  expect(await readFile(join(two.root, 'uploaded'), 'utf8')).toBe('by its owner');
  const download = await fetch(`${harness.plane.url}${route()}/files/large`, {
    headers: { authorization: `Bearer ${account.token}`, accept: 'application/octet-stream' },
  });
  expect(Buffer.from(await download.arrayBuffer()).equals(large)).toBe(true);

  await rename(join(two.root, 'large'), join(two.root, 'moved'));
  await rm(join(two.root, 'a'), { recursive: true });
  await two.workspace.flush(signal());
  await writeFile(join(one.root, 'of-one'), 'late');
  await one.workspace.finish(signal());
  const three = await loaded();
  expect(Object.keys(await contentOf(three.root))).toEqual([
    'caf\xe9',
    'moved',
    'of-one',
    'uploaded',
  ]);
  expect(await listed()).toMatchObject([
    { path: 'caf\ufffd', size: 3 },
    { path: 'moved', size: large.length },
    { path: 'of-one', size: 4 },
    { path: 'uploaded', size: 12 },
  ]);
});

describe('a worker that is killed', () => {
  /** Changes of every kind. */
  async function change(root: string): Promise<void> {
    await appendFile(join(root, 'changed'), randomBytes(2 * MIB));
    await writeFile(join(root, 'new'), randomBytes(10_000));
    await rename(join(root, 'old'), join(root, 'renamed'));
    await rm(join(root, 'doomed'));
    await chmod(join(root, 'mode'), 0o700);
  }

  async function prepare(): Promise<Guest> {
    const guest = await loaded();
    for (const name of ['changed', 'old', 'doomed', 'mode', 'kept']) {
      await writeFile(join(guest.root, name), randomBytes(5000));
    }
    await guest.workspace.flush(signal());
    return guest;
  }

  it('leaves the old tree or the new one, whatever step it was at, and the next one goes on', async () => {
    const steps: readonly WorkspaceStep[] = [
      'missing',
      'announce',
      'put',
      'confirm',
      'stage',
      'commit',
    ];
    for (const moment of ['before', 'after'] as const) {
      for (const last of steps) {
        app = newScope();
        client = newClient();
        const guest = await prepare();
        const before = await contentOf(guest.root);
        await change(guest.root);
        const after = await contentOf(guest.root);
        let isKilled = false;
        const passes = (step: WorkspaceStep, at: 'before' | 'after') => {
          isKilled ||= step === last && at === moment;
          if (isKilled) throw new Error('killed');
        };
        client.before = (step) => passes(step, 'before');
        client.after = (step) => passes(step, 'after');
        await expect(guest.workspace.flush(signal())).rejects.toThrow('killed');

        client = newClient();
        const other = await loaded();
        const isCommitted = last === 'commit' && moment === 'after';
        expect(await contentOf(other.root), `${moment} ${last}`).toEqual(
          isCommitted ? after : before,
        );
        // The guest is still there, and the next worker process takes it over.
        const adopted = client.mount(guest.vmId, daemon.tree(guest.root));
        await adopted.flush(signal());
        const { doomed, old, ...next } = await contentOf((await loaded()).root);
        expect(next).toEqual(after);
        expect([doomed, old].map((entry) => entry === undefined)).toEqual(
          isCommitted ? [true, true] : [false, false],
        );
        daemon.closeTrees();
      }
    }
  });
});

it('says that the object store is down, shows nothing of what it could not save, and goes on later', async () => {
  const one = await loaded();
  await writeFile(join(one.root, 'first'), randomBytes(100_000));
  await one.workspace.flush(signal());
  await appendFile(join(one.root, 'first'), 'more');
  await writeFile(join(one.root, 'second'), randomBytes(100_000));
  const before = await listed();
  const objects = join(harness.dataDir, 'objects');
  await rename(objects, `${objects}.away`);
  await symlink(objects, objects);
  try {
    await expect(one.workspace.flush(signal())).rejects.toThrow('the object store answered 5');
    await expect(loaded()).rejects.toThrow('the object store answered 5');
    expect(await listed()).toEqual(before);
  } finally {
    await rm(objects);
    await rename(`${objects}.away`, objects);
  }
  await one.workspace.flush(signal());
  expect(await contentOf((await loaded()).root)).toEqual(await contentOf(one.root));
});

it('is not shared with another account that uses the same names', async () => {
  const one = await loaded();
  await writeFile(join(one.root, 'secret'), 'of the first');
  await one.workspace.flush(signal());
  const stranger = await harness.signUp();
  const other = await loaded(stranger);
  expect(await contentOf(other.root)).toEqual({});
  await writeFile(join(other.root, 'secret'), 'of the other');
  await other.workspace.flush(signal());
  expect(await readFile(join((await loaded()).root, 'secret'), 'utf8')).toBe('of the first');
  expect(await listed(stranger)).toMatchObject([{ path: 'secret', size: 12 }]);
});
