import { readFileSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { runEveryStep, runStepsTogether } from '@svc/service-kit/concurrency';
import { availableBytes } from './disk-space.ts';
import { buildSnapshot } from './image/build/build-snapshot.ts';
import type { Image } from './image/image.ts';
import type { ImageInfo } from './image/image-info.ts';
import { describeImage } from './image/image-info.ts';
import { readImage } from './image/image-store.ts';
import { readRecipe, recipeNames } from './image/recipe.ts';
import { findSnapshot } from './image/snapshot-directory.ts';
import { markUsed } from './image/storage/last-used.ts';
import { pruneImages } from './image/storage/prune.ts';
import type { Microvm } from './microvm.ts';
import { MicrovmError } from './microvm-error.ts';
import type { MicrovmHost, PrepareShapeOptions, RestoreRequest } from './microvm-host.ts';
import { ensureDataDirectoryId } from './network/index.ts';
import type { MicrovmLogger } from './resources/host-resources.ts';
import { type OpenHostResources, openHostResources } from './resources/open-host-resources.ts';
import { removeAbandoned } from './resources/remove-abandoned.ts';
import { adoptMicrovms, recordsOfLiveVms, removeAllBut } from './vm/adopt-microvms.ts';
import { diskOfVms } from './vm/disk-of-vms.ts';
import type { LiveMicrovm } from './vm/live-microvm.ts';
import { restoreMicrovm, shapeFor } from './vm/restore-microvm.ts';
import type { VmRecord } from './vm/vm-record.ts';
import type { VmShape } from './vm-shape.ts';

const MIB = 1024 * 1024;
/** Free space without which no snapshot is taken. Most take 250 to 700 MiB while they are being made. */
const SNAPSHOT_SPACE_BYTES = 2048 * MIB;

export interface OpenMicrovmHostOptions {
  readonly dataDir: string;
  readonly imageDir: string;
  /** Bytes that images, bases and snapshots may take together, see `pruneImages`. Default: unlimited. */
  readonly imageBudgetBytes?: number;
  readonly logger: MicrovmLogger;
  /** TCP ports of the guests' gateway that forward to the same port of `serviceAddress`. Default: none. */
  readonly gatewayPorts?: readonly number[];
  /** Most milliseconds that a guest may take to show that KVM works. Default: 8000. */
  readonly kvmProbeMs?: number;
}

/**
 * Opens the micro-VMs of one data directory, and removes what killed processes left behind on this machine. Needs root.
 * Only one process may do so for a data directory at a time.
 */
export async function openMicrovmHost(
  options: OpenMicrovmHostOptions,
  signal: AbortSignal,
): Promise<MicrovmHost> {
  const { dataDir, imageDir, logger, gatewayPorts = [], kvmProbeMs } = options;
  const vmsDir = join(dataDir, 'vms');
  await mkdir(vmsDir, { recursive: true, mode: 0o711 });
  // First, so that what a deleted directory at the same path has left is found to be abandoned.
  await ensureDataDirectoryId(dataDir);
  await removeAbandoned(imageDir).catch((error: unknown) => {
    // Not of this service, which can run without what they hold.
    logger.error({ err: error }, 'cannot remove everything that killed processes left behind');
  });
  const records = await recordsOfLiveVms(vmsDir);
  const keepSlots = records.map(({ slot }) => slot);
  const resources = await openHostResources(
    { dataDir, imageDir, logger, keepSlots, gatewayPorts, kvmProbeMs },
    signal,
  );
  const host = new LocalMicrovmHost(resources, options, records);
  await host.pruneImages().catch((error: unknown) => {
    logger.error({ err: error }, 'cannot remove old images');
  });
  return host;
}

class LocalMicrovmHost implements MicrovmHost {
  readonly accelerator: 'kvm' | 'tcg';
  readonly serviceAddress: string;
  readonly #resources: OpenHostResources;
  readonly #dataDir: string;
  readonly #imageBudgetBytes: number;
  /** VMs of an earlier process that are not adopted yet. */
  #adoptable: readonly VmRecord[];
  readonly #microvms = new Map<LiveMicrovm, number>();
  readonly #images = new Map<string, Image>();
  readonly #closing = new AbortController();

  constructor(
    resources: OpenHostResources,
    { dataDir, imageBudgetBytes = Number.POSITIVE_INFINITY }: OpenMicrovmHostOptions,
    records: readonly VmRecord[],
  ) {
    this.#resources = resources;
    this.#dataDir = dataDir;
    this.#imageBudgetBytes = imageBudgetBytes;
    this.#adoptable = records;
    this.accelerator = resources.vmm.accelerator;
    this.serviceAddress = resources.serviceAddress;
  }

  async images(): Promise<ImageInfo[]> {
    const infos: ImageInfo[] = [];
    for (const template of await recipeNames()) {
      const image = await this.#currentImage(template);
      if (image === undefined) continue;
      const { snapshotKey } = this.#resources.vmm;
      await markUsed(image.directory);
      infos.push(describeImage(image, await findSnapshot(image, snapshotKey, image)));
    }
    return infos;
  }

  async restore(request: RestoreRequest, signal: AbortSignal): Promise<Microvm> {
    const image = await this.#requireImage(request.template);
    const either = AbortSignal.any([signal, this.#closing.signal]);
    await this.#ensureSnapshot(image, shapeFor(request, image), {}, either);
    const microvm = await restoreMicrovm(this.#resources, image, request, either);
    this.#track(microvm);
    return microvm;
  }

  async hasShape(template: string, shape: VmShape): Promise<boolean> {
    const image = await this.#requireImage(template);
    return findSnapshot(image, this.#resources.vmm.snapshotKey, shape);
  }

  async prepareShape(
    template: string,
    shape: VmShape,
    options: PrepareShapeOptions,
    signal: AbortSignal,
  ): Promise<void> {
    const image = await this.#requireImage(template);
    const either = AbortSignal.any([signal, this.#closing.signal]);
    await this.#ensureSnapshot(image, shape, options, either);
  }

  async adopt(signal: AbortSignal): Promise<Microvm[]> {
    const adopted = await adoptMicrovms(this.#resources, this.#adoptable, signal);
    this.#adoptable = [];
    for (const microvm of adopted) this.#track(microvm);
    return adopted;
  }

  memoryAvailableMib(): number {
    const info = readFileSync('/proc/meminfo', 'utf8');
    return Math.floor(Number(/^MemAvailable:\s+(\d+) kB/m.exec(info)?.[1] ?? 0) / 1024);
  }

  async diskAvailableMib(): Promise<number> {
    return Math.floor((await availableBytes(this.#dataDir)) / MIB);
  }

  async diskUsedMib(): Promise<number> {
    return Math.floor((await diskOfVms(this.#resources.vmsDir)) / MIB);
  }

  async close({ keepVms }: { readonly keepVms: boolean }): Promise<void> {
    this.#closing.abort(new MicrovmError('aborted', 'the service is shutting down'));
    const microvms = [...this.#microvms.keys()];
    // A start that failed before adopting the earlier VMs leaves them running.
    const adoptable = this.#adoptable.map(({ slot }) => slot);
    const keep = keepVms ? [...this.#microvms.values(), ...adoptable] : [];
    if (keepVms) for (const microvm of microvms) microvm.detach();
    const ending = keepVms ? [] : microvms;
    await runEveryStep([
      {
        name: 'end the VMs',
        run: () =>
          runStepsTogether(
            ending.map((microvm) => ({ name: `end ${microvm.id}`, run: () => microvm.destroy() })),
          ),
      },
      {
        name: 'end the VMs of an earlier run',
        run: async () => {
          if (!keepVms && adoptable.length > 0) await removeAllBut(this.#resources, new Set());
        },
      },
      { name: 'release the resources', run: () => this.#resources.close({ keep }) },
    ]);
  }

  #track(microvm: LiveMicrovm): void {
    this.#microvms.set(microvm, microvm.slotIndex);
    void microvm.released.then(() => this.#microvms.delete(microvm));
  }

  async #requireImage(template: string): Promise<Image> {
    const image = await this.#currentImage(template);
    if (image !== undefined) return image;
    throw new MicrovmError(
      'unknown_template',
      `the image ${template} is not built on this machine`,
    );
  }

  /** The image version that was current when first requested. A changed recipe takes effect at the next start. */
  async #currentImage(template: string): Promise<Image | undefined> {
    const known = this.#images.get(template);
    if (known !== undefined) return known;
    if (!(await recipeNames()).includes(template)) return undefined;
    const { id } = await readRecipe(template);
    const image = await readImage(this.#resources.imageDir, template, id);
    if (image !== undefined) this.#images.set(template, image);
    return image;
  }

  /** Boots the image and takes a snapshot, if this machine has none in this shape. */
  async #ensureSnapshot(
    image: Image,
    shape: VmShape,
    { background = false }: PrepareShapeOptions,
    signal: AbortSignal,
  ): Promise<void> {
    const { vmm, imageDir, logger } = this.#resources;
    if (await findSnapshot(image, vmm.snapshotKey, shape)) return;
    logger.info(
      { template: image.template, ...shape },
      'taking a snapshot of the image in a new shape',
    );
    await this.#requireSpace();
    const options = { imageDir, background, onProgress: () => undefined };
    await buildSnapshot(image, shape, options, signal);
    await this.pruneImages();
  }

  /** Removes what exceeds the budget of the image directory. */
  async pruneImages(): Promise<void> {
    await this.#prune(this.#imageBudgetBytes);
  }

  /** Makes room for a snapshot on the disk of the images. @throws MicrovmError `host_disk_full` */
  async #requireSpace(): Promise<void> {
    const { imageDir } = this.#resources;
    if ((await availableBytes(imageDir)) >= SNAPSHOT_SPACE_BYTES) return;
    await this.#prune(0);
    if ((await availableBytes(imageDir)) >= SNAPSHOT_SPACE_BYTES) return;
    throw new MicrovmError('host_disk_full', 'too little space for another snapshot');
  }

  async #prune(budgetBytes: number): Promise<void> {
    const { imageDir, logger } = this.#resources;
    for (const { kind, template, name } of await pruneImages({ imageDir, budgetBytes })) {
      logger.info({ kind, template, name }, 'removed from the image directory to save space');
    }
  }
}
