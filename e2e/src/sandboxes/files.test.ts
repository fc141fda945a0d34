import { createCipheriv, createHash } from 'node:crypto';
import { buffer } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { expectProblem } from '../../test/assertions.ts';
import { shared } from '../../test/shared-service.ts';
import { TestSandbox, useSandbox } from '../../test/test-sandbox.ts';

const MIB = 1024 * 1024;
const sandbox = useSandbox();
const files = () => sandbox().account.client.sandboxes.files;
const write = (path: string, content: string | Uint8Array) =>
  files().write(sandbox().id, path, content);
const read = async (path: string) => Buffer.from(await files().read(sandbox().id, path));

/** Reproducible pseudo-random bytes, in chunks of 1 MiB. */
function* noise(mib: number): Generator<Buffer> {
  const cipher = createCipheriv('aes-128-ctr', Buffer.alloc(16, 1), Buffer.alloc(16));
  const zeros = Buffer.alloc(MIB);
  for (let n = 0; n < mib; n += 1) yield cipher.update(zeros);
}

async function* noiseStream(mib: number): AsyncGenerator<Buffer> {
  yield* noise(mib);
}

test('a download returns the uploaded bytes unchanged', async () => {
  const bytes = Buffer.from(Array.from({ length: 1024 }, (_, n) => n % 256));
  expect(await write('/tmp/bytes', bytes)).toEqual({ status: 'uploaded' });
  expect(await read('/tmp/bytes')).toEqual(bytes);
  expect(await sandbox().run('stat -c "%s %a %U" /tmp/bytes')).toBe('1024 644 root');
});

test('streams 64 MiB in both directions', async () => {
  const expected = createHash('sha256');
  for (const chunk of noise(64)) expected.update(chunk);
  const digest = expected.digest('hex');
  await files().write(sandbox().id, '/root/big', noiseStream(64));
  expect(await sandbox().run('sha256sum < /root/big')).toBe(`${digest}  -`);

  const { size, stream } = await files().readStream(sandbox().id, '/root/big');
  expect(size).toBe(64 * MIB);
  const received = createHash('sha256');
  for await (const chunk of stream) received.update(chunk);
  expect(received.digest('hex')).toBe(digest);
  await sandbox().run('rm /root/big');
});

test('uploads an empty file', async () => {
  expect(await write('/tmp/nothing', '')).toEqual({ status: 'uploaded' });
  expect(await sandbox().run('stat -c "%s %F" /tmp/nothing')).toBe('0 regular empty file');
});

test('downloads files of /proc and /sys, whose sizes are not known', async () => {
  for (const path of ['/proc/version', '/sys/devices/system/cpu/online']) {
    const content = (await read(path)).toString();
    expect(content.length).toBeGreaterThan(0);
    expect(content.trim()).toBe(await sandbox().run(`cat ${path}`));
  }
});

test('downloads a file whose size only its end tells', async () => {
  // Like a long file in /proc, it has no blocks, but it is read faster.
  await sandbox().run('truncate -s 1M /tmp/hole');
  const { size, stream } = await files().readStream(sandbox().id, '/tmp/hole');
  expect(size).toBeUndefined();
  expect((await buffer(stream)).equals(Buffer.alloc(MIB))).toBe(true);
});

test('an upload onto a symbolic link writes its target, which may be missing, and keeps the link', async () => {
  await sandbox().run(
    'mkdir /tmp/links; cd /tmp/links; echo old >old; ln -s old to-old; ln -s new to-new',
  );
  await write('/tmp/links/to-old', 'one');
  await write('/tmp/links/to-new', 'two');
  expect(await sandbox().run('cd /tmp/links; readlink to-old to-new; cat old; echo; cat new')).toBe(
    'old\nnew\none\ntwo',
  );
});

test('downloads a file that a command created, also an empty one', async () => {
  await sandbox().run('printf hello > /tmp/made; : > /tmp/empty');
  expect((await read('/tmp/made')).toString()).toBe('hello');
  expect(await files().readStream(sandbox().id, '/tmp/empty')).toMatchObject({ size: 0 });
  expect(await read('/tmp/empty')).toHaveLength(0);
});

test.each([
  '/tmp/with space & ?#%25 "quotes"',
  "/tmp/it's; touch owned",
  '/tmp/日本語-🚀',
  '/tmp/-n',
  '/tmp/new\nline',
  '/tmp/...',
  '/tmp/%2e%2e',
  '/tmp/..\\up',
])('accepts the file name %j', async (path) => {
  await write(path, path);
  expect((await read(path)).toString()).toBe(path);
  const { output } = await sandbox().exec({ command: 'cat -- "$NAME"', env: { NAME: path } });
  expect(output).toBe(path);
});

test('an overwrite replaces the content and keeps mode and owner', async () => {
  await sandbox().run(
    'echo "a long old content" > /tmp/tool; chown agent /tmp/tool; chmod 751 /tmp/tool',
  );
  await write('/tmp/tool', 'new');
  expect((await read('/tmp/tool')).toString()).toBe('new');
  expect(await sandbox().run('stat -c "%a %U" /tmp/tool')).toBe('751 agent');
});

test('a process that reads a file during an overwrite sees all of the old content', async () => {
  await write('/tmp/replaced', 'old\n');
  expect(await sandbox().run('exec 3< /tmp/replaced; touch /tmp/open; cat <&3')).toBe('old');
  const reading = sandbox().exec(
    'exec 3< /tmp/replaced; touch /tmp/opened; until grep -q new /tmp/replaced; do sleep 0.1; done; cat <&3',
  );
  await sandbox().run('until test -e /tmp/opened; do sleep 0.1; done');
  await write('/tmp/replaced', 'new\n');
  expect((await reading).output).toBe('old\n');
});

test('an interrupted upload leaves no new file and does not change an existing one', async () => {
  await sandbox().run('mkdir /tmp/broken && printf old > /tmp/broken/kept');
  async function* breaking(): AsyncGenerator<Buffer> {
    yield* noise(2);
    throw new Error('the sender failed');
  }
  for (const path of ['/tmp/broken/kept', '/tmp/broken/never']) {
    await expect(files().write(sandbox().id, path, breaking())).rejects.toThrow();
  }
  expect(
    await sandbox().run(
      'until test "$(ls -A /tmp/broken)" = kept; do sleep 0.1; done; cat /tmp/broken/kept',
    ),
  ).toBe('old');
});

test('the file can be downloaded again after an aborted download', async () => {
  await sandbox().run('head -c 20000000 /dev/zero > /tmp/long');
  const { stream } = await files().readStream(sandbox().id, '/tmp/long');
  const reader = stream.getReader();
  expect((await reader.read()).done).toBe(false);
  await reader.cancel();
  expect(await read('/tmp/long')).toHaveLength(20_000_000);
});

test.each([
  ['a missing parent', '/no/such/parent/file', 400, 'parent_not_found'],
  ['a file as parent', '/etc/hostname/file', 400, 'parent_not_directory'],
  ['a link loop', '/tmp/loop', 400, 'symlink_loop'],
  ['a device', '/dev/null', 400, 'not_regular_file'],
  ['a directory', '/tmp', 400, 'is_directory'],
  ['a directory with slash', '/tmp/', 400, 'is_directory'],
])('rejects an upload to %s', async (_case, path, status, code) => {
  await sandbox().run('ln -sfn loop /tmp/loop');
  await expect(write(path, 'x')).rejects.toMatchObject({ status, code });
});

test.each([
  ['that is missing', '/no/such/file', 404, 'file_not_found'],
  ['below a file', '/etc/hostname/file', 404, 'file_not_found'],
  ['that is a directory', '/etc', 400, 'is_directory'],
  ['that is a pipe', '/tmp/pipe', 400, 'not_regular_file'],
  ['that is a device', '/dev/zero', 400, 'not_regular_file'],
])('rejects a download of a file %s', async (_case, path, status, code) => {
  await sandbox().run('test -p /tmp/pipe || mkfifo /tmp/pipe');
  await expect(read(path)).rejects.toMatchObject({ status, code });
});

test('rejects an upload without a body, with another media type, or over the size limit', async () => {
  const upload = (headers: Record<string, string>, body?: string) =>
    shared.raw({
      method: 'POST',
      target: `/v1/sandboxes/${sandbox().id}/files?path=/tmp/refused`,
      apiKey: sandbox().account.apiKey,
      headers,
      body,
    });
  const bytes = { 'content-type': 'application/octet-stream' };
  expectProblem(await upload({}), 'missing_body');
  expectProblem(await upload({ 'content-type': 'text/plain' }, 'x'), 'unsupported_media_type');
  expectProblem(
    await upload({ 'content-type': 'application/json' }, '{}'),
    'unsupported_media_type',
  );
  const declared = { ...bytes, 'content-length': String(2 ** 31) };
  expectProblem(await upload(declared, 'x'), 'payload_too_large');
  await expect(read('/tmp/refused')).rejects.toMatchObject({ code: 'file_not_found' });
});

test('reports a full disk with 507, and accepts uploads again when there is space', async () => {
  await sandbox().run(
    'mkdir /root/filler; fallocate -l $(df --output=avail -B1 / | tail -1) /root/filler/0; n=1; while fallocate -l 16M /root/filler/$n; do n=$((n+1)); done; true',
  );
  const tooMuch = files().write(sandbox().id, '/root/overflow', noiseStream(24));
  await expect(tooMuch).rejects.toMatchObject({ status: 507, code: 'disk_full' });
  await sandbox().run('test ! -e /root/overflow; rm -r /root/filler');
  await write('/root/fits', 'x');
});

test('a workspace comes back in the next sandbox, and two sandboxes share it', async () => {
  const { account } = sandbox();
  const scope = { app_id: 'e2e', capset_id: 'files' };
  const create = () => TestSandbox.create(account, { workspace_enabled: true, ...scope });
  const show = `cd /workspace && (find . ! -name of-two -printf '%y %P %m %l\\n';
    find . -type f ! -name of-two -printf '%P %s %Ts\\n' -exec sha256sum {} +) | sort | base64 -w0`;

  const first = await create();
  await first.run(`cd /workspace && mkdir -p dir/empty && chmod 710 dir/empty \
    && printf '#!/bin/sh\necho hello\n' > dir/run && chmod 4750 dir/run && ln -s ../dir/run dir/link \
    && printf odd > "$(printf 'caf\\351')" && head -c 3000000 /dev/urandom > large \
    && printf before > old && printf gone > doomed`);
  const { sandboxes } = account.client;
  await sandboxes.pause(first.id);
  const second = await create();
  expect(await second.run('cat /workspace/doomed; /workspace/dir/link')).toBe('gonehello');
  await first.run('cd /workspace && mv old new && rm doomed && printf more >> dir/run');
  await second.run('printf two > /workspace/dir/of-two');
  const expected = await first.run(show);
  const digest = await first.run('sha256sum < /workspace/large');
  await first.delete();
  await second.delete();
  const third = await create();
  expect(await third.run(show)).toBe(expected);
  expect(await third.run('cat /workspace/dir/of-two')).toBe('two');
  await third.delete();

  const owner = shared.client(account.token);
  const workspace = { appId: scope.app_id, capsetId: scope.capset_id };
  const listed: string[] = [];
  for await (const { path } of owner.workspaces.files(workspace)) listed.push(path);
  expect(listed).toEqual(['caf\ufffd', 'dir/of-two', 'dir/run', 'large', 'new']);
  const large = await owner.workspaces.read(workspace, 'large');
  expect(`${createHash('sha256').update(large).digest('hex')}  -`).toBe(digest);
  await owner.workspaces.deleteAll(workspace);
  await owner.close();
});
