import type { RequestDrain, TokenVerifier } from '@svc/service-kit';
import type { Registry } from 'prom-client';
import type { AgentLogs } from '../agents/logs/agent-logs.ts';
import type { SandboxCreator } from '../creating/create.ts';
import type { ExecSlots } from '../exec/exec-slots.ts';
import type { TransferLimits } from '../files/upload.ts';
import type { ExecMetrics } from '../metrics.ts';
import type { SandboxPorts } from '../ports/sandbox-ports.ts';
import type { ByteRates } from '../rates/byte-rates.ts';
import type { SandboxRegistry } from '../sandbox/registry.ts';

/** The services used by the routes. */
export interface WorkerContext {
  readonly workerId: string;
  readonly version: string;
  readonly registry: SandboxRegistry;
  readonly creator: SandboxCreator;
  readonly execSlots: ExecSlots;
  readonly outputRates: Pick<ByteRates, 'ready' | 'spend'>;
  readonly transfers: TransferLimits;
  readonly ports: SandboxPorts;
  readonly agentLogs: AgentLogs;
  readonly verify: TokenVerifier;
  readonly metrics: Registry;
  readonly execMetrics: ExecMetrics;
  /** Refuses new work when the worker is about to end. */
  readonly drain: RequestDrain;
  /** Aborts when the worker ends, and with it all pending requests. */
  readonly ending: AbortSignal;
}
