import { LLM_GATEWAY_PORT } from '@svc/contract';
import type { MicrovmHost } from '@svc/microvm';
import type { Progress } from '../../output/progress.ts';
import { readyImages } from './images.ts';
import type { Piece } from './piece.ts';

const END_MS = 30_000;

/** Has the images ready and opens the host that restores micro-VMs from them. */
export async function openHost({
  config,
  places,
  logger,
  progress,
  signal,
  shutdown,
  keepSandboxes,
}: Omit<Piece, 'secret'> & { readonly progress: Progress }): Promise<MicrovmHost> {
  await readyImages(config, progress, signal);
  const { openMicrovmHost } = await import('@svc/microvm');
  const { dataDir } = places;
  const { imageDir } = config;
  const host = await progress.step(
    'micro-VMs',
    () =>
      openMicrovmHost(
        {
          dataDir,
          imageDir,
          logger: logger.child({ component: 'microvm' }),
          gatewayPorts: [LLM_GATEWAY_PORT],
        },
        signal,
      ),
    ({ accelerator }) => (accelerator === 'kvm' ? 'KVM' : 'TCG: this machine has no usable KVM'),
  );
  shutdown.add({
    name: 'micro-VMs',
    phase: 'close',
    deadlineMs: END_MS,
    run: () => host.close({ keepVms: keepSandboxes() }),
  });
  return host;
}
