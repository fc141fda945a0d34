import { GUEST_LINK } from '@svc/contract';
import type { MicrovmHost } from '@svc/microvm';
import type { Progress } from '../../output/progress.ts';
import type { ComponentContext } from './component.ts';

const MIB = 1024 * 1024;
const CLOSE_TIMEOUT_MS = 30_000;

type HostContext = Omit<ComponentContext, 'secret'> & { readonly progress: Progress };

/** Builds the missing images of the configured templates and opens the host that restores micro-VMs from them. */
export async function openHost(context: HostContext): Promise<MicrovmHost> {
  await buildImages(context);
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

async function buildImages({ config, progress, signal }: HostContext): Promise<void> {
  const { buildImage } = await import('@svc/microvm');
  const { imageDir, templates } = config;
  const kvmProbeMs = config.kvmProbeSeconds * 1000;
  for (const template of templates) {
    await progress.step(
      `image ${template}`,
      (note) => buildImage({ template, imageDir, kvmProbeMs, onProgress: note }, signal),
      ({ id }) => id,
    );
  }
}
