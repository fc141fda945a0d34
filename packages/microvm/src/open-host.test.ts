import { randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { access, readdir, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { temporaryDirectory } from '../test/temporary-directory.ts';
import { testImage } from '../test/test-image.ts';
import { openFiles } from './image/storage/open-files.ts';
import { isInUse, removeStored } from './image/storage/prune.ts';
import { listStored } from './image/storage/stored-item.ts';
import type { Microvm } from './microvm.ts';
import type { MicrovmHost, RestoreRequest } from './microvm-host.ts';
import { openMicrovmHost } from './open-host.ts';

const PREPARE_MS = 25 * 60_000;
/** An emulated guest on a loaded machine is slow. */
vi.setConfig({ testTimeout: 600_000, hookTimeout: 600_000 });
const silent = { info: () => undefined, warn: () => undefined, error: () => undefined };
const signal = () => AbortSignal.timeout(180_000);

let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
let imageDir: string;
let host: MicrovmHost;

beforeAll(async () => {
  ({ imageDir } = await testImage());
  directory = await temporaryDirectory();
  host = await openMicrovmHost({ dataDir: directory.path, imageDir, logger: silent }, signal());
  await host.adopt(signal());
}, PREPARE_MS);

afterAll(async () => {
  await host.close({ keepVms: false });
  await directory.remove();
});

function restore(request: Partial<RestoreRequest> = {}): Promise<Microvm> {
  const id = `m_${randomUUID().replaceAll('-', '')}`;
  return host.restore({ id, template: 'standard', ...request }, AbortSignal.timeout(400_000));
}

/** The group of a VM in the hierarchy of the processor. */
async function processorGroup(dataDir: string, id: string): Promise<string> {
  const record = JSON.parse(await readFile(join(dataDir, 'vms', id, 'vm.json'), 'utf8'));
  const groups = await readFile(`/proc/${record.process.pid}/cgroup`, 'utf8');
  const v1 = /^\d+:(?:[^:]*,)?cpu(?:,[^:]*)?:\/(?<path>.+)$/m.exec(groups)?.groups?.path;
  const v2 = /^0::\/(?<path>.+)$/m.exec(groups)?.groups?.path;
  return v1 === undefined ? join('/sys/fs/cgroup', v2 ?? '') : join('/sys/fs/cgroup/cpu', v1);
}

async function output(
  microvm: Microvm,
  command: string,
  env: Record<string, string> = {},
): Promise<string> {
  let text = '';
  await microvm.exec(
    {
      command,
      env,
      onOutput: (_stream, chunk) => {
        text += chunk.toString();
      },
    },
    signal(),
  );
  return text.trim();
}

/** Sends a message to the agent runtime and returns the type of its answer. */
async function say(microvm: Microvm, message: object): Promise<string> {
  const socket = await microvm.dialAgent(signal());
  try {
    socket.write(`${JSON.stringify(message)}\n`);
    for await (const text of createInterface(socket)) return JSON.parse(text).type;
    return 'closed';
  } finally {
    socket.destroy();
  }
}

const CONFIGURE = {
  type: 'configure',
  token: 'the token of the line',
  setup: {
    ...{ mode: 'session', agent: 'deictic', model: 'm', dialect: 'openai', wireVersion: 2 },
    ...{ gateway: 'http://172.30.0.1:7200/openai', env: {}, restoreFiles: false },
  },
};

async function configureAgent(microvm: Microvm): Promise<void> {
  expect(await say(microvm, CONFIGURE)).toBe('configured');
}

/** Script for Node in a guest: makes the agent runtime generate random numbers, and prints them. */
const ASK_RUNTIME = `
const { execSync } = require('node:child_process');
const DRAW = \`(() => {
  const { randomBytes, randomInt, randomUUID } = process.getBuiltinModule('node:crypto');
  return [Math.random(), randomUUID(), randomInt(2 ** 47), randomBytes(16).toString('hex')].join(String.fromCharCode(10));
})()\`;
process.kill(Number(execSync('pgrep -f "^/usr/local/bin/node .*agent-runtime"')), 'SIGUSR1');
(async () => {
  let targets;
  while (targets === undefined) {
    targets = await fetch('http://127.0.0.1:9229/json').then((answer) => answer.json(), () => undefined);
  }
  const socket = new WebSocket(targets[0].webSocketDebuggerUrl);
  socket.onopen = () =>
    socket.send(JSON.stringify({ id: 1, method: 'Runtime.evaluate', params: { expression: DRAW } }));
  socket.onmessage = ({ data }) => {
    console.log(JSON.parse(data).result.result.value);
    process.exit();
  };
})();
`;

describe('one VM', () => {
  let microvm: Microvm;
  beforeAll(async () => {
    microvm = await restore();
  });
  afterAll(() => microvm.destroy());

  test('runs commands and returns stdout, stderr and the exit code', async () => {
    const seen = { stdout: '', stderr: '' };
    const { exitCode } = await microvm.exec(
      {
        command: `echo "$A"; pwd; echo bad >&2; exit 7`,
        cwd: '/tmp',
        env: { A: `it's "$HOME"` },
        onOutput: (stream, chunk) => {
          seen[stream] += chunk.toString();
        },
      },
      signal(),
    );
    expect(exitCode).toBe(7);
    expect(seen).toEqual({ stdout: `it's "$HOME"\n/tmp\n`, stderr: 'bad\n' });
  });

  test('a command killed by a signal has exit code 128 plus the signal’s number', async () => {
    const killed = microvm.exec({ command: 'kill -9 $$', onOutput: () => undefined }, signal());
    await expect(killed).resolves.toEqual({ exitCode: 137 });
  });

  test('a command returns while a background process that it started keeps running', async () => {
    expect(await output(microvm, 'sleep 300 & echo started')).toBe('started');
    // The process has another name until its shell has called exec.
    const end = () =>
      output(microvm, 'pgrep -x sleep >/dev/null && pkill -x sleep && echo was there');
    await expect.poll(end).toBe('was there');
  });

  test('aborting a command kills all its processes', async () => {
    const abort = new AbortController();
    const running = microvm.exec(
      {
        command: 'env -i setsid sleep 301 & sleep 301 & echo started; while :; do :; done',
        onOutput: () => abort.abort(new Error('enough')),
      },
      abort.signal,
    );
    await expect(running).rejects.toThrow('enough');
    // A killed process is listed until its parent has reaped it.
    const left = () => output(microvm, 'pgrep -x sleep || pgrep -f "while [:]" || echo none');
    await expect.poll(left).toBe('none');
  });

  test('a command that is aborted while the VM is paused is killed when it runs again', async () => {
    const caller = new AbortController();
    const started = Promise.withResolvers<void>();
    const running = microvm.exec(
      { command: 'echo started; sleep 302', onOutput: () => started.resolve() },
      caller.signal,
    );
    const refused = expect(running).rejects.toThrow('the caller is gone');
    await started.promise;
    await microvm.pause(signal());
    caller.abort(new Error('the caller is gone'));
    await refused;
    await microvm.resume(signal());
    const left = () => output(microvm, 'pgrep -f "sleep 30[2]" || echo none');
    await expect.poll(left).toBe('none');
  });

  test('a slow reader slows the command down instead of filling the memory', async () => {
    const pauses: number[] = [];
    let bytes = 0;
    await microvm.exec(
      {
        command: 'head -c 8000000 /dev/zero',
        onOutput: async (_stream, chunk) => {
          bytes += chunk.length;
          pauses.push(chunk.length);
          await new Promise((resolve) => setImmediate(resolve));
        },
      },
      signal(),
    );
    expect(bytes).toBe(8_000_000);
    // The SSH window limits how much the guest sends ahead.
    expect(Math.max(...pauses)).toBeLessThanOrEqual(2 << 20);
  });

  test('uploads and downloads arbitrary bytes unchanged', async () => {
    for (const size of [1, 65_536, 3_000_001]) {
      const content = randomBytes(size);
      await microvm.upload('/root/file with space', Readable.from([content]), signal());
      const download = await microvm.download('/root/file with space', signal());
      expect(download.size).toBe(size);
      expect((await buffer(download.stream)).equals(content)).toBe(true);
    }
  });

  test('downloads an empty file', async () => {
    await output(microvm, ': >/root/empty');
    const { size, stream } = await microvm.download('/root/empty', signal());
    expect(size).toBe(0);
    expect(await buffer(stream)).toHaveLength(0);
  });

  test('a failed upload keeps the old file and leaves no other file', async () => {
    await output(microvm, 'mkdir /root/broken && echo old >/root/broken/file');
    async function* failing() {
      yield randomBytes(100_000);
      throw new Error('the caller left');
    }
    const upload = microvm.upload('/root/broken/file', Readable.from(failing()), signal());
    await expect(upload).rejects.toThrow('the caller left');
    await expect
      .poll(() => output(microvm, 'ls -A /root/broken; cat /root/broken/file'))
      .toBe('file\nold');
  });

  test.each([
    ['/nowhere/file', 'parent_not_found'],
    ['/root', 'is_directory'],
    ['/etc/hostname/file', 'parent_not_directory'],
  ])('rejects an upload to %s with %s', async (path, code) => {
    const upload = microvm.upload(path, Readable.from([randomBytes(200_000)]), signal());
    await expect(upload).rejects.toMatchObject({ code });
  });

  test.each([
    ['/nowhere', 'file_not_found'],
    ['/root', 'is_directory'],
    ['/dev/null', 'not_a_file'],
  ])('rejects a download of %s with %s', async (path, code) => {
    await expect(microvm.download(path, signal())).rejects.toMatchObject({ code });
  });

  test('lists, reads and writes a tree, and tells what commands changed in it', async () => {
    const tree = microvm.tree('/workspace');
    const names = Array.from({ length: 500 }, (_, at) => `dir${at % 10}/file${at}`);
    const refused = await tree.write(
      names.map((name) => ({
        kind: 'file' as const,
        path: Buffer.from(name),
        mode: 0o755,
        mtimeNs: 1_600_000_000_000_000_000n,
        size: name.length,
        offset: 0,
        content: [Buffer.from(name)],
      })),
      signal(),
    );
    expect(refused).toEqual([]);
    const { generation } = await tree.list({ limit: 1000, silent: true }, signal());
    expect(
      await output(microvm, 'cat /workspace/dir3/file13; find /workspace -type f | wc -l'),
    ).toBe('dir3/file13500');
    await output(microvm, 'cd /workspace; echo new >dir1/new; rm dir2/file2; ln -s /etc link');
    const listing = await tree.list({ since: generation, limit: 1000 }, signal());
    expect(listing).toMatchObject({ complete: false, skipped: 0 });
    expect(listing.changed.map(({ path }) => path.toString()).sort()).toEqual([
      'dir1',
      'dir1/new',
      'dir2',
      'link',
    ]);
    expect(listing.deleted.map(String)).toEqual(['dir2/file2']);
    const file = listing.changed.find(({ kind }) => kind === 'file');
    if (file === undefined) throw new Error('the file is not listed');
    const pieces: string[] = [];
    for await (const piece of tree.read([{ file, offset: 0, length: file.size }], signal())) {
      pieces.push('status' in piece ? piece.status : String(piece.content));
    }
    expect(pieces).toEqual(['new\n', 'complete']);
  });

  test('commands see the name and environment of the owner', async () => {
    await microvm.personalize({ hostname: 'vm-1', env: { GREETING: 'hello' } }, signal());
    expect(await output(microvm, 'hostname; cat /etc/hostname; echo "$GREETING"')).toBe(
      'vm-1\nvm-1\nhello',
    );
  });

  test('the clock is precise, also if the snapshot was taken on a busy machine', async () => {
    const source = '/sys/devices/system/clocksource/clocksource0/current_clocksource';
    expect(await output(microvm, `cat ${source}`)).toMatch(/^(tsc|kvm-clock)$/);
  });

  test('the clock is correct after a pause', async () => {
    await microvm.pause(signal());
    expect(microvm.paused).toBe(true);
    await microvm.resume(signal());
    const before = Date.now();
    const guest = Number(await output(microvm, 'date +%s%3N'));
    expect(guest).toBeGreaterThan(before - 1000);
    expect(guest).toBeLessThan(Date.now() + 1000);
  });

  test('the agent runtime answers, and accepts only one configuration', async () => {
    expect(await say(microvm, { ...CONFIGURE, type: 'rehearse' })).toBe('rehearsed');
    await configureAgent(microvm);
    expect(await say(microvm, CONFIGURE)).toBe('closed');
    const attach = { type: 'attach', token: CONFIGURE.token, after: 0 };
    expect(await say(microvm, attach)).toBe('attached');
    expect(await say(microvm, { ...attach, token: 'guess' })).toBe('closed');
  });

  test('processes in the guest cannot use the agent runtime', async () => {
    const line = JSON.stringify({ type: 'attach', token: CONFIGURE.token, after: 0 });
    const ask = `
      const socket = require('node:net').connect(7100, '127.0.0.1', () => socket.write(process.env.LINE + '\\n'));
      socket.on('data', (data) => console.log(String(data))).on('close', () => console.log('closed'));
    `;
    expect(await output(microvm, 'node -e "$ASK"', { ASK: ask, LINE: line })).toBe('closed');
  });

  test('destroying a VM closes the connection to its agent runtime and refuses new ones', async () => {
    const other = await restore();
    const socket = await other.dialAgent(signal());
    const closed = once(socket, 'close');
    await other.destroy();
    await closed;
    await expect(other.dialAgent(signal())).rejects.toMatchObject({ code: 'vm_gone' });
  });

  test('the guest channel refuses a wrong token', async () => {
    const { GuestChannel } = await import('./guest/channel/guest-channel.ts');
    const client = new GuestChannel({ host: microvm.host, port: 7000 }, 'guess');
    await expect(client.ping(signal())).rejects.toMatchObject({ code: 'guest_unreachable' });
  });
});

test('two clones share no random numbers and no identity', async () => {
  const clones = await Promise.all([restore(), restore()]);
  await Promise.all(clones.map(configureAgent));
  const command =
    'head -c 32 /dev/urandom | base64; cat /etc/machine-id; hostname; sha256sum </etc/dropbear/*_host_key; cat /proc/sys/kernel/random/uuid; node -e "$ASK_RUNTIME"';
  const [first, second] = await Promise.all(
    clones.map((clone) => output(clone, command, { ASK_RUNTIME })),
  );
  const lines = second?.split('\n') ?? [];
  expect(lines).toHaveLength(9);
  for (const line of first?.split('\n') ?? []) expect(lines).not.toContain(line);
  await Promise.all(clones.map((clone) => clone.destroy()));
});

test('restores with a larger disk and another shape', async () => {
  // Both calls need the same snapshot. One takes it, the other waits and uses it.
  const shape = { memoryMib: 768, vcpu: 2 };
  const prepared = host.prepareShape('standard', shape, {}, AbortSignal.timeout(400_000));
  const size = { vcpu: shape.vcpu, memory_mib: shape.memoryMib, disk_mib: 6144 };
  const microvm = await restore({ size });
  await prepared;
  await host.prepareShape('standard', shape, {}, signal());
  const [disk, memory, cpus] = (
    await output(
      microvm,
      `df --output=size -m / | tail -1; awk '/MemTotal/{print $2}' /proc/meminfo; nproc`,
    )
  ).split('\n');
  expect(Number(disk)).toBeGreaterThan(5500);
  expect(Number(memory)).toBeGreaterThan(680 * 1024);
  expect(cpus).toBe('2');
  const { items } = await listStored(imageDir);
  const [snapshot] = items.filter(({ name }) => name.endsWith('-2x768'));
  if (snapshot === undefined) throw new Error('the snapshot is not listed');
  // A prune leaves it alone while a VM runs from it, however long ago that was restored. Else it could go.
  const longAgo = { ...snapshot, lastUsedAt: new Date(0) };
  expect(isInUse(longAgo, [], await openFiles())).toBe(true);
  expect(await removeStored(imageDir, snapshot)).toBe(true);
  expect(await host.hasShape('standard', shape)).toBe(false);
  expect(await output(microvm, 'find /usr -type f | wc -l')).toMatch(/^[1-9]\d{3,}$/);
  await microvm.destroy();
  expect(isInUse(longAgo, [], await openFiles())).toBe(false);
});

test('a destroyed VM leaves no files, and its methods fail with vm_gone', async () => {
  const microvm = await restore();
  await Promise.all([microvm.destroy(), microvm.destroy()]);
  expect((await microvm.exited).reason).toBe('destroyed');
  expect(await readdir(join(directory.path, 'vms'))).not.toContain(microvm.id);
  await expect(output(microvm, 'true')).rejects.toMatchObject({ code: 'vm_gone' });
});

test('an aborted restore leaves no files', async () => {
  const before = await readdir(join(directory.path, 'vms'));
  const abort = new AbortController();
  const restoring = host.restore({ id: 'm_aborted', template: 'standard' }, abort.signal);
  await expect.poll(() => readdir(join(directory.path, 'vms'))).toContain('m_aborted');
  abort.abort(new Error('the caller left'));
  await expect(restoring).rejects.toThrow();
  expect(await readdir(join(directory.path, 'vms'))).toEqual(before);
});

test('rejects an unknown template with unknown_template', async () => {
  await expect(restore({ template: 'unknown' })).rejects.toMatchObject({
    code: 'unknown_template',
  });
});

test('adopts kept VMs with their labels and their paused state', async () => {
  const own = await temporaryDirectory();
  const options = { dataDir: own.path, imageDir, logger: silent };
  const first = await openMicrovmHost(options, signal());
  const microvm = await first.restore({ id: 'm_kept', template: 'standard' }, signal());
  await output(microvm, 'echo kept >/root/note');
  await microvm.label({ owner: 'someone' });
  await microvm.personalize({ hostname: 'vm-1', env: {}, owner: 'tenant-1' }, signal());
  await expect.poll(() => processorGroup(own.path, 'm_kept')).toMatch(/\/owner-tenant-1\/m_kept$/);
  const group = await processorGroup(own.path, 'm_kept');
  await microvm.pause(signal());
  await first.close({ keepVms: true });
  const second = await openMicrovmHost(options, signal());
  const [adopted] = await second.adopt(signal());
  expect(adopted).toMatchObject({ id: 'm_kept', paused: true, labels: { owner: 'someone' } });
  await adopted?.resume(signal());
  expect(adopted && (await output(adopted, 'cat /root/note'))).toBe('kept');
  expect(await processorGroup(own.path, 'm_kept')).toBe(group);
  await adopted?.destroy();
  await expect(access(dirname(group))).rejects.toMatchObject({ code: 'ENOENT' });
  await second.close({ keepVms: false });
  await own.remove();
});
