import { GUEST_LINK } from '@svc/contract';
import type { MicrovmHost } from '@svc/microvm';
import type { ComponentIdentity } from '@svc/service-kit/tokens';
import type { Progress } from '../../output/progress.ts';
import type { ComponentContext } from './component.ts';
import { openImageStore } from './image-store.ts';
import type { ControlPlaneAddress } from './runtime-host.ts';

const MIB = 1024 * 1024;
const CLOSE_TIMEOUT_MS = 30_000;

type HostContext = ComponentContext & { readonly progress: Progress };

/** Builds or fetches the missing images of the configured templates and opens the host that restores micro-VMs from them. */
export async function openHost(
  context: HostContext,
  identity: ComponentIdentity,
  controlPlane: Promise<ControlPlaneAddress>,
): Promise<MicrovmHost> {
  await prepareImages(context, identity, controlPlane);
  const { config, paths, logger, progress, signal, shutdown, keepSandboxes } = context;
  const { openMicrovmHost } = await import('@svc/microvm');
  const options = {
    dataDir: paths.dataDir,
    imageDir: config.imageDir,
    imageBudgetBytes: config.imageBudgetMib * MIB,
    logger: logger.child({ component: 'microvm' }),
    gatewayPorts: [GUEST_LINK.llmGatewayPort],
    kvmProbeMs: config.kvmProbeSeconds * 1000,
  };
  const host = await progress.step(
    'micro-VMs',
    () => openMicrovmHost(options, signal),
    ({ accelerator }) => (accelerator === 'kvm' ? 'KVM' : 'TCG: this machine has no usable KVM'),
  );
  shutdown.add({
    name: 'micro-VMs',
    phase: 'close',
    deadlineMs: CLOSE_TIMEOUT_MS,
    run: () => host.close({ keepVms: keepSandboxes() }),
  });
  return host;
}

async function prepareImages(
  context: HostContext,
  identity: ComponentIdentity,
  controlPlane: Promise<ControlPlaneAddress>,
): Promise<void> {
  const { config, progress, signal } = context;
  const { buildImage } = await import('@svc/microvm');
  await using store = await openImageStore(context, identity, controlPlane);
  const { imageDir, templates } = config;
  const kvmProbeMs = config.kvmProbeSeconds * 1000;
  for (const template of templates) {
    const options = { template, imageDir, kvmProbeMs, ...store?.optionsFor(template) };
    await progress.step(
      `image ${template}`,
      (note) => explained(buildImage({ ...options, onProgress: note }, signal), template),
      ({ id }) => id,
    );
  }
}

/** Tells the operator what to do about an image that cannot come from the store. */
async function explained<T>(image: Promise<T>, template: string): Promise<T> {
  try {
    return await image;
  } catch (cause) {
    const { explainImageFailure } = await import('../images/explain-failure.ts');
    throw explainImageFailure(cause, template);
  }
}
