import { endProcesses, hasProcesses } from './instance-processes.ts';

/** Where the services of a machine are listed, and how what one left running is found and ended. */
export interface InstanceRegistry {
  readonly root: string;
  hasProcesses(index: number): Promise<boolean>;
  endProcesses(index: number): Promise<void>;
}

/** The one registry of this machine. Another would hand out the same users and addresses again. */
export const MACHINE_REGISTRY: InstanceRegistry = { root: '/run/svc', hasProcesses, endProcesses };
