import { readdir, readFile, readlink } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Image } from '../image/image.ts';
import { readImage } from '../image/image-store.ts';
import { snapshotDirectory } from '../image/snapshot-directory.ts';
import type { Confinement } from '../jail/confinement.ts';
import type { NetworkSlot } from '../network/index.ts';
import { type OpenEnvironment, openEnvironment } from '../open-environment.ts';
import { temporaryDirectory } from '../testing/temporary-directory.ts';
import { testImage } from '../testing/test-image.ts';
import { resourceLimits } from '../vm/resource-limits.ts';
import type { VmProcess } from './vmm.ts';

const PREPARE_MS = 25 * 60_000;
const MIB = 1024 * 1024;
const silent = { info: () => undefined, warn: () => undefined, error: () => undefined };

/** What every machine monitor behind the interface must do, shown on real VMs. */
export function describeVmm(name: string): void {
  describe(name, { timeout: 120_000 }, () => {
    const signal = () => AbortSignal.timeout(60_000);
    let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
    let environment: OpenEnvironment;
    let image: Image;
    const started: { id: string; slot: NetworkSlot; process: VmProcess }[] = [];

    beforeAll(async () => {
      const { imageDir, image: info } = await testImage();
      directory = await temporaryDirectory();
      environment = await openEnvironment(
        { dataDir: directory.path, imageDir, logger: silent },
        signal(),
      );
      const found = await readImage(imageDir, info.template, info.id);
      if (found === undefined) throw new Error('the image has gone');
      image = found;
    }, PREPARE_MS);

    afterAll(async () => {
      for (const { id, slot, process } of started) {
        await process.kill();
        await environment.jail.remove(id);
        await environment.slots.release(slot);
      }
      await environment.close({ keep: [] });
      await directory.remove();
    });

    async function restore(id: string): Promise<{ vm: VmProcess; confinement: Confinement }> {
      const { jail, slots, vmm } = environment;
      const slot = await slots.take(signal());
      await jail.prepare(id, slot);
      const confinement = jail.confine(id, slot, resourceLimits(image));
      const { vcpu, memoryMib } = image;
      const vm = await vmm.restore(
        {
          vcpu,
          memoryMib,
          confinement,
          rootfs: jail.imagePath(image.rootfsPath),
          snapshot: jail.imagePath(snapshotDirectory(image, vmm.snapshotKey, image)),
        },
        signal(),
      );
      started.push({ id, slot, process: vm });
      return { vm, confinement };
    }

    test('a restored VM runs, pauses and goes on', async () => {
      const { vm } = await restore('m_pause');
      expect(await vm.isPaused(signal())).toBe(false);
      await vm.pause(signal());
      expect(await vm.isPaused(signal())).toBe(true);
      await vm.resume(signal());
      expect(await vm.isPaused(signal())).toBe(false);
    });

    test('killing is idempotent and settles exited', async () => {
      const { vm } = await restore('m_kill');
      await Promise.all([vm.kill(), vm.kill()]);
      await vm.exited;
      await vm.kill();
    });

    test('a process that dies by itself settles exited', async () => {
      const { vm } = await restore('m_die');
      process.kill(vm.identity.pid, 'SIGKILL');
      await vm.exited;
      await expect(vm.pause(signal())).rejects.toMatchObject({ code: 'vm_gone' });
    });

    test('a VM that was let go can be taken over', async () => {
      const { vm, confinement } = await restore('m_adopt');
      vm.detach();
      const adopted = await environment.vmm.adopt(confinement, vm.identity, signal());
      expect(await adopted?.isPaused(signal())).toBe(false);
      await adopted?.kill();
      expect(await environment.vmm.adopt(confinement, vm.identity, signal())).toBeUndefined();
    });

    test('the disk grows while it runs', async () => {
      const { vm } = await restore('m_grow');
      await vm.growDisk((image.diskMib + 512) * MIB, signal());
      expect(await vm.isPaused(signal())).toBe(false);
    });

    test("the template's memory is not writable to the VM process", async () => {
      const { vm } = await restore('m_template');
      const maps = await readFile(`/proc/${vm.identity.pid}/maps`, 'utf8');
      const template = maps.split('\n').filter((line) => line.includes('/snapshots/'));
      // Private (p), not shared (s): what it writes is its own.
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

/** Open flags of the descriptors that lead to files with this in their path. */
async function openFlags(pid: number, part: string): Promise<number[]> {
  const flags: number[] = [];
  for (const fd of await readdir(`/proc/${pid}/fd`)) {
    if (!(await readlink(`/proc/${pid}/fd/${fd}`)).includes(part)) continue;
    const info = await readFile(`/proc/${pid}/fdinfo/${fd}`, 'utf8');
    flags.push(Number.parseInt(/^flags:\s+(\d+)$/m.exec(info)?.[1] ?? '', 8));
  }
  return flags;
}
