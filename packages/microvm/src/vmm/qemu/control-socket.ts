import { join } from 'node:path';
import type { Confinement } from '../../jail/confinement.ts';

/** Name of the socket that QEMU creates in the VM's own directory. */
export const CONTROL_SOCKET = 'qmp';

/** Path of the control socket of a started VM, in a directory that the VM process cannot write to. */
export function controlSocket(confinement: Confinement): string {
  return join(confinement.hostDirectory, CONTROL_SOCKET);
}
