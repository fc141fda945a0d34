import type { Config } from '@svc/config';
import type { MicrovmHost } from '@svc/microvm';
import type { Secret } from '@svc/service-kit';
import type { AgentTimeouts } from './agents/timeouts.ts';
import type { Clock } from './clock.ts';
import type { WorkerLogger } from './logger.ts';
import type { CapacityLimits } from './vms/capacity/capacity.ts';

export interface WorkerOptions {
  readonly config: Pick<
    Config,
    'pool' | 'workerUrl' | 'dataDir' | 'limits' | 'egressAllowHosts' | 'egressCaFile'
  >;
  /** Shared with the control plane; the keys of the internal tokens come from it. */
  readonly clusterSecret: Secret;
  readonly logger: WorkerLogger;
  /** Stays the caller's: the worker does not close it. */
  readonly microvms: MicrovmHost;
  /** `ca`: PEM of the only CA trusted for it; undefined for those the system trusts. */
  readonly controlPlane: { readonly url: string; readonly ca?: string | undefined };
  readonly workerId: string;
  /** Port 0 takes any free one. */
  readonly listen: { readonly host: string; readonly port: number };
  /** Gives up the start; a worker that has started is ended with `close`. */
  readonly signal: AbortSignal;
  /** What to hand out of this machine; default: all of it, overcommitted. */
  readonly capacity?: CapacityLimits;
  readonly clock?: Clock;
  /** Where the LLM gateway listens on the host's service address; default: where guests look for it. */
  readonly gatewayPort?: number;
  /** Default: {@link AGENT_TIMEOUTS}. */
  readonly agentTimeouts?: Partial<AgentTimeouts>;
}

export interface RunningWorker {
  /** Where it serves the internal API. */
  readonly url: string;
  /** Settles when the worker has registered for the first time; rejects if it is closed before. */
  readonly ready: Promise<void>;
  /**
   * Ends the worker in order, once however often it is called. `keepSandboxes` leaves the VMs of running and
   * paused sandboxes for the next worker.
   */
  close(options: { readonly keepSandboxes: boolean }): Promise<void>;
}
