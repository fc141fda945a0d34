import type { Jail } from '../jail/jail.ts';
import type { NetworkSlots } from '../network/index.ts';
import type { Vmm } from '../vmm/vmm.ts';
import type { SshKey } from './ssh-key.ts';

/** The part of a logger that this package uses. */
export interface MicrovmLogger {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/** The resources of this machine that the VMs of one data directory use. */
export interface HostResources {
  readonly vmsDir: string;
  readonly imageDir: string;
  readonly slots: NetworkSlots;
  readonly jail: Jail;
  readonly vmm: Vmm;
  readonly sshKey: SshKey;
  readonly logger: MicrovmLogger;
}
