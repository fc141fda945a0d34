import type { Agent } from '@svc/contract';
import type { StartAgent } from '../agents/agent.ts';
import type { Desktop } from '../desktop/index.ts';

/** The addresses, paths and limits of a runtime. */
export interface RuntimeOptions {
  readonly listen: {
    readonly host: string;
    readonly port: number;
    /** The only address that may configure it; undefined: any. */
    readonly workerAddress?: string;
  };
  /** The agent's home directory. The agent's processes run as its owner. */
  readonly home: string;
  readonly logPath: string;
  readonly restoreArchive: string;
  readonly savedArchive: string;
  /** Default `LIMITS.sessionFilesBytes`. */
  readonly filesBytes?: number;
  /** What clients control with `tool_call` frames, if the template has it. */
  readonly desktop?: Desktop | undefined;
  readonly loadAgent: (agent: Agent) => Promise<StartAgent>;
}
