import { once } from 'node:events';
import { link, readdir, readFile, readlink, rm, stat } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Image } from '../src/image/image.ts';
import { readImage } from '../src/image/image-store.ts';
import { snapshotDirectory } from '../src/image/snapshot-directory.ts';
import type { Confinement } from '../src/jail/confinement.ts';
import type { NetworkSlot } from '../src/network/index.ts';
import { type OpenHostResources, openHostResources } from '../src/resources/open-host-resources.ts';
import { resourceLimits } from '../src/vmm/resource-limits.ts';
import type { VmProcess } from '../src/vmm/vmm.ts';
import { temporaryDirectory } from './temporary-directory.ts';
import { testImage } from './test-image.ts';

const PREPARE_MS = 25 * 60_000;
const MIB = 1024 * 1024;
/** As a bit of the masks in proc(5). */
const SIGPIPE = 1n << 12n;
const silent = { info: () => undefined, warn: () => undefined, error: () => undefined };

/** Tests that a driver fulfils the contract of a virtual machine monitor, with real VMs. */
export function testVmmContract(name: string): void {
  describe(name, { timeout: 400_000 }, () => {
    const signal = () => AbortSignal.timeout(180_000);
    let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
    let resources: OpenHostResources;
    let image: Image;
    const started: { id: string; slot: NetworkSlot; process: VmProcess }[] = [];

    beforeAll(async () => {
      const { imageDir, image: info } = await testImage();
      directory = await temporaryDirectory();
      resources = await openHostResources(
        { dataDir: directory.path, imageDir, logger: silent },
        signal(),
      );
      const found = await readImage(imageDir, info.template, info.id);
      if (found === undefined) throw new Error('the image does not exist');
      image = found;
    }, PREPARE_MS);

    afterAll(async () => {
      for (const { id, slot, process } of started) {
        await process.kill();
        await resources.jail.remove(id);
        await resources.slots.release(slot);
      }
      await resources.close({ keep: [] });
      await directory.remove();
    });

    async function restore(id: string): Promise<{ vm: VmProcess; confinement: Confinement }> {
      const { jail, slots, vmm } = resources;
      const slot = await slots.take(signal());
      await jail.prepare(id, slot);
      const confinement = jail.confine(id, slot, resourceLimits(image));
      const { vcpu, memoryMib } = image;
      const vm = await vmm.restore(
        {
          vcpu,
          memoryMib,
          confinement,
          rootfs: image.disk.map((file) => jail.imagePath(file)),
          snapshot: jail.imagePath(snapshotDirectory(image, vmm.snapshotKey, image)),
        },
        signal(),
      );
      started.push({ id, slot, process: vm });
      return { vm, confinement };
    }

    test('a restored VM runs, pauses and resumes', async () => {
      const { vm } = await restore('m_pause');
      expect(await vm.isPaused(signal())).toBe(false);
      // A guest can cause messages without end, which must not fill a disk.
      for (const output of [1, 2]) {
        const target = await readlink(`/proc/${vm.identity.pid}/fd/${output}`);
        expect(target).toMatch(/^(socket|pipe):|^\/dev\/null$/);
      }
      const status = await readFile(`/proc/${vm.identity.pid}/status`, 'utf8');
      const [, ignored = '0'] = /^SigIgn:\s+([0-9a-f]+)$/m.exec(status) ?? [];
      expect(BigInt(`0x${ignored}`) & SIGPIPE, 'SIGPIPE is ignored').toBe(SIGPIPE);
      await vm.pause(signal());
      expect(await vm.isPaused(signal())).toBe(true);
      await vm.resume(signal());
      expect(await vm.isPaused(signal())).toBe(false);
    });

    test('kill() is idempotent and settles `exited`', async () => {
      const { vm } = await restore('m_kill');
      await Promise.all([vm.kill(), vm.kill()]);
      await vm.exited;
      await vm.kill();
    });

    test('`exited` settles when the process ends unexpectedly', async () => {
      const { vm } = await restore('m_die');
      process.kill(vm.identity.pid, 'SIGKILL');
      await vm.exited;
      await expect(vm.pause(signal())).rejects.toMatchObject({ code: 'vm_gone' });
    });

    test('a detached VM can be adopted', async () => {
      const { vm, confinement } = await restore('m_adopt');
      vm.detach();
      const adopted = await resources.vmm.adopt(confinement, vm.identity, signal());
      expect(await adopted?.isPaused(signal())).toBe(false);
      await adopted?.kill();
      expect(await resources.vmm.adopt(confinement, vm.identity, signal())).toBeUndefined();
    });

    test('a VM process that took over its directory cannot pose as the VM', async () => {
      const { vm, confinement } = await restore('m_pose');
      await vm.pause(signal());
      vm.detach();
      // What a process with the VM's user can do: replace every file in the directory that it owns.
      const impostor = createServer((socket) => socket.end('{"QMP": {}}\r\n'));
      impostor.listen(join(confinement.socketDirectory, 'mine'));
      await once(impostor, 'listening');
      const names = await readdir(confinement.directory);
      for (const name of new Set([...names, 'qmp'])) {
        if (name === 'mine') continue;
        await rm(join(confinement.directory, name), { force: true, recursive: true });
        await link(join(confinement.directory, 'mine'), join(confinement.directory, name));
      }
      try {
        const adopted = await resources.vmm.adopt(confinement, vm.identity, signal());
        expect(await adopted?.isPaused(signal())).toBe(true);
      } finally {
        impostor.close();
      }
      const { uid } = await stat(confinement.hostDirectory);
      expect(uid, 'owner of the directory with the control socket').toBe(0);
    });

    test('the disk can grow while the VM is running', async () => {
      const { vm } = await restore('m_grow');
      await vm.growDisk((image.diskMib + 512) * MIB, signal());
      expect(await vm.isPaused(signal())).toBe(false);
    });

    test("the snapshot's memory file is not writable by the VM process", async () => {
      const { vm } = await restore('m_template');
      const maps = await readFile(`/proc/${vm.identity.pid}/maps`, 'utf8');
      const template = maps.split('\n').filter((line) => line.includes('/snapshots/'));
      // A private mapping (p), not a shared one (s): writes stay in the process.
      for (const line of template) expect(line).toMatch(/^\S+ ..[x-]p /);
      for (const flags of await openFlags(vm.identity.pid, '/snapshots/')) {
        expect(flags & 0b11, 'opened for reading only').toBe(0);
      }
    });

    test('the VM process has no privileges', async () => {
      const { vm, confinement } = await restore('m_jail');
      const status = await readFile(`/proc/${vm.identity.pid}/status`, 'utf8');
      const { uid } = confinement.slot;
      expect(status).toMatch(new RegExp(`^Uid:\\s+${uid}\\s+${uid}\\s+${uid}\\s+${uid}$`, 'm'));
      expect(status).toMatch(/^CapEff:\s+0+$/m);
      expect(status).toMatch(/^CapBnd:\s+0+$/m);
      expect(status).toMatch(/^NoNewPrivs:\s+1$/m);
      expect(status).toMatch(/^Seccomp:\s+2$/m);
      expect(status).toMatch(/^Groups:\s*$/m);
    });
  });
}

/** The flags of the open file descriptors whose path contains `part`. */
async function openFlags(pid: number, part: string): Promise<number[]> {
  const flags: number[] = [];
  for (const fd of await readdir(`/proc/${pid}/fd`)) {
    if (!(await readlink(`/proc/${pid}/fd/${fd}`)).includes(part)) continue;
    const info = await readFile(`/proc/${pid}/fdinfo/${fd}`, 'utf8');
    flags.push(Number.parseInt(/^flags:\s+(\d+)$/m.exec(info)?.[1] ?? '', 8));
  }
  return flags;
}
