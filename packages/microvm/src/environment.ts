import type { Jail } from './jail/jail.ts';
import type { NetworkSlots } from './network/index.ts';
import type { Vmm } from './vmm/vmm.ts';

/** The few words that are written to the log. */
export interface MicrovmLogger {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/** The SSH key with which a service enters its guests, in OpenSSH's formats. */
export interface SshKey {
  readonly privateKey: string;
  readonly publicKey: string;
}

/** What a VM is made with: the machine's side of everything. */
export interface Environment {
  readonly vmsDir: string;
  readonly imageDir: string;
  readonly slots: NetworkSlots;
  readonly jail: Jail;
  readonly vmm: Vmm;
  readonly sshKey: SshKey;
  readonly logger: MicrovmLogger;
}
