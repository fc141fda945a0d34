import { mkdir, readFile, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { ServiceError } from '@svc/contract';
import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import { SessionLab, useSessionLab } from '../../test/session-lab.ts';
import { filesDuePath } from './journal/directory.ts';

const MIB = 1024 * 1024;
const SAVED = '/var/lib/svc/saved.tar';
const RESTORED = '/var/lib/svc/restore.tar';

const lab = useSessionLab();
const completed = (frame: { type: string }) => frame.type === 'task_completed';
const errors = (types: readonly string[]) => types.filter((type) => type === 'error').length;

/** A session whose guest has an archive, and a client. */
async function withArchive(archive: Buffer, from = lab()) {
  const started = await from.startAttached();
  const vm = from.harness.host.vmOf(started.vmId);
  vm.files.set(SAVED, archive);
  return { ...started, vm };
}
const committedFiles = (from = lab()) => {
  const id = from.store.turns.findLast(({ files_id }) => files_id !== undefined)?.files_id;
  return id === undefined ? undefined : from.store.files.get(id);
};
/** Resumes the session on the same worker, and returns what the guest was given. */
async function restoredBy(session: string): Promise<Buffer | undefined> {
  const { harness, store } = lab();
  store.states.set(session, { ...store.stateOf(session), ...store.states.get(session) });
  const guest = await lab().addGuest();
  let restored: Buffer | undefined;
  guest.onConfigure = (socket) => {
    restored = harness.host.live.map((vm) => vm.files.get(RESTORED)).find(Boolean);
    socket.write('{"type":"configured"}\n');
  };
  await harness.startSession({ chat_session_id: session, generation: 2, resumed: true });
  return restored;
}

describe('saved files', () => {
  it('are encrypted, and never stored or sent in the clear', async () => {
    const { client } = await withArchive(Buffer.alloc(MIB, 'a secret of the customer '));
    lab().guest.turn('a', 'a', true);
    await client.next(completed);
    const { objects } = lab().store.chunks;
    expect(objects.size).toBeGreaterThan(0);
    for (const object of objects.values()) expect(object.includes('customer')).toBe(false);
    expect(committedFiles()?.includes('customer')).toBe(true);
  });

  it('wait for an object store that fails, within the same turn', async () => {
    const { store } = lab();
    const archive = Buffer.alloc(2 * MIB, 'tar');
    const { client } = await withArchive(archive);
    store.chunks.failure = 500;
    const tried = Promise.withResolvers<void>();
    let attempts = 0;
    store.chunks.onUpload = () => {
      attempts += 1;
      if (attempts === 6) tried.resolve();
    };
    lab().guest.turn('a', 'a', true);
    await tried.promise;
    expect(store.turns).toEqual([]);
    store.chunks.failure = undefined;
    await client.next(completed);
    expect(errors(client.types)).toBe(0);
    expect(committedFiles()?.equals(archive)).toBe(true);
  });

  it('that could not be saved in time are saved by the next turn, though they have not changed again', async () => {
    await using impatient = await SessionLab.start({ agentTimeouts: { commitMs: 3_000 } });
    const { store } = impatient;
    const archive = Buffer.alloc(2 * MIB, 'tar');
    const { client } = await withArchive(archive, impatient);
    store.chunks.failure = 503;
    impatient.guest.turn('a', 'a', true);
    await client.next(completed);
    expect(errors(client.types)).toBe(1);
    // The rest of the turn is saved without them.
    expect(store.turns[0]).toMatchObject({ conversation: 'a' });
    expect(committedFiles(impatient)).toBeUndefined();
    store.chunks.failure = undefined;
    impatient.guest.turn('b', 'b', false);
    await expect.poll(() => committedFiles(impatient)?.equals(archive)).toBe(true);
  });

  it('stay due while the turn that names them is not committed', async () => {
    await using impatient = await SessionLab.start({ agentTimeouts: { commitMs: 3_000 } });
    const { store } = impatient;
    const archive = Buffer.alloc(MIB, 'tar');
    const { client } = await withArchive(archive, impatient);
    store.failure = new ServiceError('internal_error');
    impatient.guest.turn('a', 'a', true);
    await client.next(completed);
    expect(errors(client.types)).toBe(1);
    expect(committedFiles(impatient)).toBeUndefined();
    store.failure = undefined;
    impatient.guest.turn('b', 'b', false);
    await expect.poll(() => committedFiles(impatient)?.equals(archive)).toBe(true);
  });

  it('stay due across a restart of the worker, until a turn that names them is committed', async () => {
    await using impatient = await SessionLab.start({ agentTimeouts: { commitMs: 10_000 } });
    const { guest, store } = impatient;
    const archive = Buffer.alloc(MIB, 'tar');
    const { session, client } = await withArchive(archive, impatient);
    store.failure = new ServiceError('internal_error');
    guest.turn('a', 'a', true);
    await client.next(completed);
    await guest.drained();
    store.failure = undefined;
    await impatient.restart();
    const second = await impatient.attach(session);
    guest.turn('b', 'b', false);
    await second.next(completed);
    expect(committedFiles(impatient)?.equals(archive)).toBe(true);
    await impatient.restart();
    const third = await impatient.attach(session);
    guest.turn('c', 'c', false);
    await third.next(completed);
    const turn = store.turns.find(({ conversation }) => conversation === 'c');
    expect(turn?.files_id).toBeUndefined();
  });

  it('whose commit failed let the turn end only once it is recorded that they are due', async () => {
    let log = '';
    const write = (line: string) => {
      log += line;
    };
    await using impatient = await SessionLab.start({
      agentTimeouts: { commitMs: 1_000 },
      logger: pino({ level: 'info' }, { write }),
    });
    const { guest, store, harness } = impatient;
    const { session, client } = await withArchive(Buffer.from('tar'), impatient);
    // A full disk refuses the file likewise.
    const path = filesDuePath(join(harness.dataDir, 'sessions', `${session}.1`));
    await mkdir(path);
    store.failure = new ServiceError('internal_error');
    guest.turn('a', 'a', true);
    await expect.poll(() => log).toContain('record that files are due');
    expect(guest.unacknowledged).toBeGreaterThan(0);
    expect(client.types).not.toContain('task_completed');
    await rmdir(path);
    await client.next(completed);
    expect(await readFile(path, 'utf8')).toBe('');
  });

  it('of a killed worker are saved by the next one, which uploads only what is missing', async () => {
    const { store } = lab();
    // Not repetitive, so that there are several chunks.
    const archive = Buffer.concat(
      Array.from({ length: 12 }, (_, index) => Buffer.alloc(MIB, `file ${index} `)),
    );
    const { client } = await withArchive(archive);
    const begun = Promise.withResolvers<void>();
    const gate = Promise.withResolvers<void>();
    store.chunks.onUpload = async () => {
      if ([...store.chunks.chunks.values()].includes('stored')) {
        begun.resolve();
        await gate.promise;
      }
    };
    lab().guest.turn('a', 'a', true);
    await begun.promise;
    const first = store.chunks.uploads;
    expect(store.turns).toEqual([]);
    store.chunks.onUpload = () => undefined;
    const restarting = lab().restart();
    gate.resolve();
    await restarting;
    await expect.poll(() => committedFiles()?.equals(archive)).toBe(true);
    expect(first).toBeGreaterThan(0);
    expect(client.types).not.toContain('task_completed');
  });

  it('are never saved for a superseded session, whose sandbox ends', async () => {
    const { vmId } = await withArchive(Buffer.from('tar'));
    lab().store.chunks.refusal = new ServiceError('stale_generation');
    lab().guest.turn('a', 'a', true);
    await expect
      .poll(() => lab().harness.json('GET', `/sandboxes/${vmId}`))
      .toMatchObject({ body: { state: 'destroyed' } });
    expect(lab().store.chunks.objects.size).toBe(0);
  });
});

describe('a resume', () => {
  const save = async (archive: Buffer) => {
    const { session, vmId, client } = await withArchive(archive);
    lab().guest.turn('a', 'a', true);
    await client.next(completed);
    await lab().harness.json('DELETE', `/sandboxes/${vmId}`);
    return session;
  };

  it('restores exactly the committed files', async () => {
    const archive = Buffer.concat([Buffer.alloc(3 * MIB, 'a'), Buffer.alloc(MIB, 'bc')]);
    const restored = await restoredBy(await save(archive));
    expect(restored?.equals(archive)).toBe(true);
  });

  it('restores files from before there were chunks', async () => {
    const { store } = lab();
    const { session, vmId } = await lab().harness.startSession();
    await lab().harness.json('DELETE', `/sandboxes/${vmId}`);
    store.files.set('old', Buffer.from('an old archive'));
    store.states.set(session, { ...store.stateOf(session), files_id: 'old' });
    expect((await restoredBy(session))?.toString()).toBe('an old archive');
  });

  it.each([
    ['answers 500', 500],
    ['answers 503', 503],
    ['closes connections', 'closed'],
  ] as const)(
    'fails with object_store_unavailable while the object store %s, and restores the same files later',
    async (_, failure) => {
      const { harness, store } = lab();
      const archive = Buffer.concat([Buffer.alloc(2 * MIB, 'a'), Buffer.alloc(MIB, 'bc')]);
      const session = await save(archive);
      store.states.set(session, store.stateOf(session));
      store.chunks.failure = failure;
      await expect(
        harness.startSession({ chat_session_id: session, generation: 2, resumed: true }),
      ).rejects.toThrow('object_store_unavailable');
      await expect.poll(() => harness.host.live).toEqual([]);
      store.chunks.failure = undefined;
      expect((await restoredBy(session))?.equals(archive)).toBe(true);
    },
  );

  it.each(['object_store_unavailable', 'session_files_damaged'] as const)(
    'fails with %s when the control plane answers that for the transcript, and continues later',
    async (code) => {
      const { harness, store } = lab();
      const session = await save(Buffer.from('archive'));
      store.states.set(session, store.stateOf(session));
      store.stateFailure = new ServiceError(code);
      const resumed = { chat_session_id: session, generation: 2, resumed: true };
      await expect(harness.startSession(resumed)).rejects.toThrow(code);
      await expect.poll(() => harness.host.live).toEqual([]);
      store.stateFailure = undefined;
      expect((await restoredBy(session))?.toString()).toBe('archive');
    },
  );

  it.each([
    [
      'missing',
      (objects: Map<string, Buffer>) => {
        objects.delete([...objects.keys()].at(-1) ?? '');
      },
    ],
    [
      'changed',
      (objects: Map<string, Buffer>) => {
        const object = [...objects.values()].at(-1);
        if (object !== undefined) object[40] = (object[40] ?? 0) ^ 1;
      },
    ],
    [
      'exchanged',
      (objects: Map<string, Buffer>) => {
        const [one, two] = [...objects.keys()];
        if (one !== undefined && two !== undefined)
          objects.set(one, Buffer.from(objects.get(two) ?? ''));
      },
    ],
  ])(
    'fails with session_files_damaged when a chunk is %s, and starts no agent',
    async (_, damage) => {
      const { harness, store } = lab();
      const parts = Array.from({ length: 6 }, (_, index) => Buffer.alloc(MIB, `part ${index}`));
      const session = await save(Buffer.concat(parts));
      damage(store.chunks.objects);
      store.states.set(session, store.stateOf(session));
      const guest = await lab().addGuest();
      await expect(
        harness.startSession({ chat_session_id: session, generation: 2, resumed: true }),
      ).rejects.toThrow('session_files_damaged');
      expect(guest.setup).toBeUndefined();
      await expect.poll(() => harness.host.live).toEqual([]);
    },
  );
});
