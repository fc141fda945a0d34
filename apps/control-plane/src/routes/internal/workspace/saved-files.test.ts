import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { openFsObjectStore, SignedUrls } from '@svc/object-store';
import { describe, expect, test } from 'vitest';
import { directory, file, symlink } from '../../../../test/workspace-changes.ts';
import { useWorkspaceLab } from '../../../../test/workspace-lab.ts';

const lab = useWorkspaceLab();

describe('a customer', () => {
  test('reads a saved file in whole, in ranges and with holes, also by a URL', async () => {
    const mount = await lab().newMount();
    const parts = [randomBytes(1000), randomBytes(3000), randomBytes(500)] as const;
    const [first, second, third] = [
      await mount.store(parts[0]),
      await mount.store(parts[1]),
      await mount.store(parts[2]),
    ];
    const hole = 200_000;
    await mount.flush(
      file('big', [
        { id: first, length: 1000 },
        { length: hole },
        { id: second, offset: 100, length: 2900 },
        { id: third, length: 500 },
      ]),
    );
    const whole = Buffer.concat([parts[0], Buffer.alloc(hole), parts[1].subarray(100), parts[2]]);
    const { url } = (await mount.call('GET', '/files/big')).body;
    const read = async (headers: Record<string, string> = {}) => {
      const response = await fetch(String(url), { headers });
      return { response, bytes: Buffer.from(await response.arrayBuffer()) };
    };
    const { response, bytes } = await read();
    expect(bytes.equals(whole)).toBe(true);
    expect(response.headers.get('content-disposition')).toBe('attachment');
    const etag = response.headers.get('etag') ?? '';
    const ranges = [
      [0, 0],
      [990, 1010],
      [999, 201_100],
      [204_000, 204_399],
    ] as const;
    for (const [start, last] of ranges) {
      const part = await read({ range: `bytes=${start}-${last}`, 'if-range': etag });
      expect(part.response.status).toBe(206);
      expect(part.bytes.equals(whole.subarray(start, last + 1)), `${start}-${last}`).toBe(true);
    }
    expect((await read({ range: 'bytes=-5' })).bytes.equals(whole.subarray(-5))).toBe(true);
    const beyond = await mount.read('big', { range: `bytes=${whole.length}-` });
    expect([beyond.status, beyond.headers.get('content-range')]).toEqual([
      416,
      `bytes */${whole.length}`,
    ]);
    expect((await fetch(`${url}0`)).status).toBe(403);
    // New content has another tag, and the URL leads to it no more.
    await mount.flush(await mount.file('big', Buffer.from('new')));
    expect((await mount.read('big', { range: 'bytes=1-', 'if-range': etag })).text).toBe('new');
    expect((await read()).response.status).toBe(404);
  });

  test('gets no bytes of a damaged chunk', async () => {
    const mount = await lab().newMount();
    await mount.flush(await mount.file('a', randomBytes(100)));
    const { rows } = await lab().harness.sql.query<{ object_key: string }>(
      `select object_key from workspace_chunks join workspaces using (workspace_id) where app_id = $1`,
      [mount.app],
    );
    const objects = await openFsObjectStore({
      directory: join(lab().harness.dataDir, 'objects'),
      urls: new SignedUrls([Buffer.alloc(32)], () => ''),
    });
    for (const { object_key: key } of rows) {
      const body = Buffer.alloc(60);
      await objects.put(key, body, { size: body.length, signal: AbortSignal.timeout(60_000) });
    }
    expect((await mount.read('a')).body.code).toBe('internal_error');
  });

  test('neither sees nor breaks directories and links', async () => {
    const mount = await lab().newMount();
    const { version } = await mount.flush(directory('d'), symlink('l', 'x'), file('f'));
    expect(await mount.files()).toMatchObject([{ path: 'f' }]);
    for (const path of ['d', 'l']) {
      expect((await mount.read(path)).body.code).toBe('workspace_file_not_found');
      expect((await mount.call('DELETE', `/files/${path}`)).status).toBe(404);
    }
    expect((await mount.call('PUT', '/files/d')).body.code).toBe('workspace_path_conflict');
    expect((await mount.call('PUT', '/files/l/x')).body.code).toBe('workspace_path_conflict');
    await mount.upload('d/x', 'x');
    expect((await mount.files()).map(({ path }) => path)).toEqual(['d/x', 'f']);
    expect(await mount.versions()).toMatchObject({ d: version, 'd/x': version + 1 });
    expect((await mount.call('DELETE', '')).body).toEqual({ status: 'deleted' });
    expect(await mount.paths()).toEqual([]);
  });
});
