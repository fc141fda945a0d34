import type { ConfigUpdate, ServiceFrame } from '@svc/contract';
import type { LogEnd } from '@svc/service-kit/log-tail';

/** The agent of a sandbox, as seen by the sandbox's lifecycle. */
export interface SandboxAgent {
  /** Shows a frame of the service to all attached clients; returns how many there are. */
  announce(frame: Extract<ServiceFrame, { type: 'system' }>): Promise<number>;
  /** A bundle was rotated: starts to use the new values. Ignores a version that it knows. */
  updateConfig(update: ConfigUpdate, signal: AbortSignal): Promise<void>;
  /** Reads the agent's log in the running VM; bounded in time. @throws ServiceError `logs_unavailable` */
  readLog(): Promise<LogEnd>;
  /** Does the work that needs the running VM, before a pause. Never rejects; bounded in time. */
  beforePause(): Promise<void>;
  /**
   * Saves the state that has to outlive the VM, before the VM is destroyed. Only for a sandbox that has been running.
   * Never rejects; bounded in time.
   * May be called again.
   */
  finish(): Promise<void>;
  /** Frees all resources of the agent, once its VM is destroyed or its start was abandoned. Bounded in time. */
  dispose(): Promise<void>;
  /**
   * Saves what can be saved in a few seconds, until `saving` aborts, then detaches from the agent and leaves everything in
   * place for the next worker process. Rejects, detached, when something could not be saved.
   */
  release(saving: AbortSignal): Promise<void>;
}
