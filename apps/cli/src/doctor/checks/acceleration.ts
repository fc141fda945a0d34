import { constants, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { exists } from '../../files.ts';
import { type Check, ok, warn } from '../finding.ts';

const SLOWER = 'sandboxes run under emulation (TCG), which works and is slower';
const MEND =
  'use a machine with hardware virtualisation, or turn on nested virtualisation for this one';

/** Whether VMs use the processor's virtualisation: the verdict of the probe guest, once there is one. */
export const accelerationCheck: Check = {
  name: 'KVM',
  run: async ({ config, service }) => {
    const running = service?.workers?.[0]?.accelerator;
    const kvm = running === undefined ? await keptVerdict(config.imageDir) : running === 'kvm';
    if (kvm === true) return ok('KVM', 'a probe guest boots under it');
    if (!(await exists('/dev/kvm', constants.R_OK | constants.W_OK)))
      return warn('KVM', `no /dev/kvm: ${SLOWER}`, MEND);
    if (kvm === false) return warn('KVM', `no guest boots under it here: ${SLOWER}`, MEND);
    return ok('KVM', '/dev/kvm is there; the first start probes whether a guest boots under it');
  },
};

/** What the probe of an earlier start has found; undefined before the first. */
async function keptVerdict(imageDir: string): Promise<boolean | undefined> {
  const text = await readFile(join(imageDir, 'kvm.json'), 'utf8').catch(() => '{}');
  const { kvm } = JSON.parse(text) as { kvm?: boolean };
  return kvm;
}
