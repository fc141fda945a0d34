import type { WorkspaceChange } from '@svc/contract';
import { describe, expect, test } from 'vitest';
import { b64, directory, file, newFlush } from '../../../../test/workspace-changes.ts';
import { useWorkspaceLab } from '../../../../test/workspace-lab.ts';

const lab = useWorkspaceLab();

describe('chunks', () => {
  test('are refused while the account has too many that nothing uses', async () => {
    const mount = await lab().newMount();
    const announce = () =>
      mount.post('/chunks/uploads', { chunks: [{ id: 'A'.repeat(43), stored_bytes: 1 }] });
    expect((await announce()).status).toBe(200);
    await lab().harness.sql.query(
      `insert into workspace_chunks (workspace_id, chunk_id, object_key, stored_bytes)
       select workspace_id, sha256(n::text::bytea), gen_random_uuid(), 2147483647
       from workspaces, generate_series(1, 51) n where app_id = $1`,
      [mount.app],
    );
    expect(await announce()).toMatchObject({ status: 409, code: 'workspace_quota_exceeded' });
    await lab().removeUnused();
    expect((await announce()).status).toBe(200);
  });

  test('stay while a staged change or a file names them, and no longer', async () => {
    const mount = await lab().newMount();
    const chunks = () => lab().chunksOf(mount.app);
    const flush = newFlush();
    const change = await mount.file('a', Buffer.from('x'));
    expect(await chunks()).toEqual({ used: 0, unused: 1 });
    await mount.stage(flush, [change]);
    await lab().removeUnused();
    expect(await chunks()).toEqual({ used: 1, unused: 0 });
    await mount.commit(flush);
    await mount.flush({ ...change, path: b64('copy') } as WorkspaceChange);
    await mount.call('DELETE', '/files/a');
    expect(await chunks()).toEqual({ used: 1, unused: 0 });
    await mount.upload('copy', 'plain');
    expect((await mount.read('copy')).text).toBe('plain');
    expect(await chunks()).toEqual({ used: 0, unused: 1 });
    // A refused change, and a flush that is never committed, give up theirs as well.
    await mount.flush(file('f'));
    await mount.flush({ ...change, path: b64('f/a') } as WorkspaceChange);
    await mount.stage(newFlush(), [change]);
    await mount.stage(newFlush(), [directory('d')]);
    expect(await chunks()).toEqual({ used: 0, unused: 1 });
    await lab().removeUnused();
    expect(await mount.stage(newFlush(), [change])).toMatchObject({ code: 'file_not_found' });
  });

  test('of a race between a flush and the removal are used, or missing', async () => {
    const mount = await lab().newMount();
    let staged = 0;
    for (let round = 0; round < 10; round += 1) {
      const change = await mount.file(`r${round}`, Buffer.from(`r${round}`));
      const flush = newFlush();
      const [answer] = await Promise.all([mount.stage(flush, [change]), lab().removeUnused()]);
      expect([204, 404]).toContain(answer.status);
      if (answer.status !== 204) continue;
      expect((await mount.commit(flush)).status).toBe(200);
      staged += 1;
    }
    expect(await lab().chunksOf(mount.app)).toMatchObject({ used: staged });
    for (const { path } of await mount.files()) expect((await mount.read(path)).text).toBe(path);
  });
});
