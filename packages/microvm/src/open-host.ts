import { readFileSync } from 'node:fs';
import { mkdir, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import type { MicrovmLogger } from './environment.ts';
import {
  type ImageInfo,
  type Microvm,
  MicrovmError,
  type MicrovmHost,
  type RestoreRequest,
  type VmShape,
} from './facade.ts';
import { buildSnapshot } from './image/build-snapshot.ts';
import type { Image } from './image/image.ts';
import { describeImage } from './image/image-info.ts';
import { readImage } from './image/image-store.ts';
import { readRecipe, recipeNames } from './image/recipe.ts';
import { snapshotExists } from './image/snapshot-directory.ts';
import { type OpenEnvironment, openEnvironment } from './open-environment.ts';
import { adoptMicrovms, livingRecords, removeAllBut } from './vm/adopt-microvms.ts';
import type { LiveMicrovm } from './vm/live-microvm.ts';
import { restoreMicrovm, shapeFor } from './vm/restore-microvm.ts';
import type { VmRecord } from './vm/vm-record.ts';

const MIB = 1024 * 1024;

export interface OpenMicrovmHostOptions {
  readonly dataDir: string;
  readonly imageDir: string;
  readonly logger: MicrovmLogger;
  /** TCP ports of the guests' gateway that lead to the same port of `serviceAddress`; none by default. */
  readonly gatewayPorts?: readonly number[];
}

/** Opens the micro-VMs of one data directory. One at a time on each; needs root. */
export async function openMicrovmHost(
  { dataDir, imageDir, logger, gatewayPorts = [] }: OpenMicrovmHostOptions,
  signal: AbortSignal,
): Promise<MicrovmHost> {
  const vmsDir = join(dataDir, 'vms');
  await mkdir(vmsDir, { recursive: true, mode: 0o711 });
  const living = await livingRecords(vmsDir);
  const keepSlots = living.map(({ slot }) => slot);
  const environment = await openEnvironment(
    { dataDir, imageDir, logger, keepSlots, gatewayPorts },
    signal,
  );
  return new LocalMicrovmHost(environment, dataDir, living);
}

class LocalMicrovmHost implements MicrovmHost {
  readonly accelerator: 'kvm' | 'tcg';
  readonly serviceAddress: string;
  readonly #environment: OpenEnvironment;
  readonly #dataDir: string;
  /** VMs of an earlier process that nobody has taken over yet. */
  #unadopted: readonly VmRecord[];
  readonly #microvms = new Map<LiveMicrovm, number>();
  readonly #images = new Map<string, Image>();
  readonly #closing = new AbortController();

  constructor(environment: OpenEnvironment, dataDir: string, living: readonly VmRecord[]) {
    this.#environment = environment;
    this.#dataDir = dataDir;
    this.#unadopted = living;
    this.accelerator = environment.vmm.accelerator;
    this.serviceAddress = environment.serviceAddress;
  }

  async images(): Promise<ImageInfo[]> {
    const infos: ImageInfo[] = [];
    for (const template of await recipeNames()) {
      const image = await this.#currentImage(template);
      if (image === undefined) continue;
      const { snapshotKey } = this.#environment.vmm;
      infos.push(describeImage(image, await snapshotExists(image, snapshotKey, image)));
    }
    return infos;
  }

  async restore(request: RestoreRequest, signal: AbortSignal): Promise<Microvm> {
    const image = await this.#requireImage(request.template);
    const either = AbortSignal.any([signal, this.#closing.signal]);
    await this.#ensureSnapshot(image, shapeFor(request, image), { background: false }, either);
    const microvm = await restoreMicrovm(this.#environment, image, request, either);
    this.#hold(microvm);
    return microvm;
  }

  async prepareShape(template: string, shape: VmShape, signal: AbortSignal): Promise<void> {
    const image = await this.#requireImage(template);
    const either = AbortSignal.any([signal, this.#closing.signal]);
    await this.#ensureSnapshot(image, shape, { background: true }, either);
  }

  async adopt(signal: AbortSignal): Promise<Microvm[]> {
    const adopted = await adoptMicrovms(this.#environment, this.#unadopted, signal);
    this.#unadopted = [];
    for (const microvm of adopted) this.#hold(microvm);
    return adopted;
  }

  memoryAvailableMib(): number {
    const info = readFileSync('/proc/meminfo', 'utf8');
    return Math.floor(Number(/^MemAvailable:\s+(\d+) kB/m.exec(info)?.[1] ?? 0) / 1024);
  }

  async diskAvailableMib(): Promise<number> {
    const { bavail, bsize } = await statfs(this.#dataDir);
    return Math.floor((bavail * bsize) / MIB);
  }

  async close({ keepVms }: { readonly keepVms: boolean }): Promise<void> {
    this.#closing.abort(new MicrovmError('aborted', 'the service is shutting down'));
    const microvms = [...this.#microvms.keys()];
    // A start that failed before it took them over leaves the VMs of before as they were.
    const unadopted = this.#unadopted.map(({ slot }) => slot);
    const keep = keepVms ? [...this.#microvms.values(), ...unadopted] : [];
    try {
      if (keepVms) for (const microvm of microvms) microvm.detach();
      else await Promise.all(microvms.map((microvm) => microvm.destroy()));
      if (!keepVms && unadopted.length > 0) await removeAllBut(this.#environment, new Set());
    } finally {
      await this.#environment.close({ keep });
    }
  }

  #hold(microvm: LiveMicrovm): void {
    this.#microvms.set(microvm, microvm.slotIndex);
    void microvm.released.then(() => this.#microvms.delete(microvm));
  }

  async #requireImage(template: string): Promise<Image> {
    const image = await this.#currentImage(template);
    if (image !== undefined) return image;
    throw new MicrovmError('unknown_template', `the image ${template} is not built here`);
  }

  /** The version that was current when it was first asked for: a recipe that changes is for the next start. */
  async #currentImage(template: string): Promise<Image | undefined> {
    const known = this.#images.get(template);
    if (known !== undefined) return known;
    if (!(await recipeNames()).includes(template)) return undefined;
    const { id } = await readRecipe(template);
    const image = await readImage(this.#environment.imageDir, template, id);
    if (image !== undefined) this.#images.set(template, image);
    return image;
  }

  /** A shape that nobody asked for before on this machine is booted and frozen first. */
  async #ensureSnapshot(
    image: Image,
    shape: VmShape,
    { background }: { readonly background: boolean },
    signal: AbortSignal,
  ): Promise<void> {
    const { vmm, imageDir, logger } = this.#environment;
    if (await snapshotExists(image, vmm.snapshotKey, shape)) return;
    logger.info({ template: image.template, ...shape }, 'freezing the image in a new shape');
    const options = { imageDir, background, onProgress: () => undefined };
    await buildSnapshot(image, shape, options, signal);
  }
}
