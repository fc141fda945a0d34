import type { Config } from '@svc/config';
import type { MicrovmHost } from '@svc/microvm';
import type { ComponentIdentity } from '@svc/service-kit';
import type { AgentTimeouts } from './agents/timeouts.ts';
import type { Clock } from './clock.ts';
import type { LeaseTimes } from './control-plane/lease.ts';
import type { WorkerLogger } from './logger.ts';
import type { CapacityLimits } from './vms/capacity/capacity.ts';

export interface WorkerOptions {
  readonly config: Pick<
    Config,
    | 'pool'
    | 'workerUrl'
    | 'workerEndSeconds'
    | 'dataDir'
    | 'egressAllowHosts'
    | 'egressCaFile'
    | 'otlpEndpoint'
    | 'otlpHeaders'
    | 'traceRatio'
  > & {
    readonly limits: Pick<
      Config['limits'],
      'uploadBytes' | 'savedBytesPerSecond' | 'viewBytesPerSecond' | 'outputBytesPerSecond'
    >;
  };
  /** The worker's id and its key, which it has enrolled. */
  readonly identity: ComponentIdentity;
  readonly logger: WorkerLogger;
  /** Owned by the caller: the worker does not close it. */
  readonly microvms: MicrovmHost;
  /** `ca`: PEM of the only CA to trust; default: the CAs that the system trusts. */
  readonly controlPlane: { readonly url: string; readonly ca?: string | undefined };
  /** Port 0 selects a free port. */
  readonly listen: { readonly host: string; readonly port: number };
  /** Aborts the start; use `close` to end a worker that has started. */
  readonly signal: AbortSignal;
  /** The capacity to hand out; default: the whole machine, overcommitted. */
  readonly capacity?: CapacityLimits;
  readonly clock?: Clock;
  /** Called when an operator wants this worker to end its sandboxes and itself, until it does. Default: it stays. */
  readonly onDrainOrder?: () => void;
  /** Port of the LLM gateway on the host's service address; default: the port that guests use. */
  readonly gatewayPort?: number;
  /** For what the links to the guests of one tenant hold. Default: that of `linkBudgets`. */
  readonly linkBytesPerTenant?: number;
  /** Default: {@link AGENT_TIMEOUTS}. */
  readonly agentTimeouts?: Partial<AgentTimeouts>;
  /** Default: those of `WORKER_TIMES`. */
  readonly lease?: LeaseTimes;
}

export interface RunningWorker {
  /** URL of the internal API. */
  readonly url: string;
  /** Resolves when the worker has registered for the first time; rejects if it is closed before. */
  readonly ready: Promise<void>;
  /**
   * Tells the control plane that this worker is going away, so that new sandboxes go elsewhere and other work waits for its
   * next process. Then refuses new work and waits up to `workMs` milliseconds for the commands, file transfers and other
   * work in progress; `signal` skips the rest of the wait. Sandboxes and clients stay.
   */
  drain(workMs: number, signal: AbortSignal): Promise<void>;
  /**
   * Shuts the worker down; repeated calls share one shutdown. `keepSandboxes` leaves the VMs of running and
   * paused sandboxes for the next worker process. Otherwise it gets no new ones from then on, and the sandboxes are
   * saved and ended within `workerEndSeconds`.
   */
  close(options: { readonly keepSandboxes: boolean }): Promise<void>;
}
