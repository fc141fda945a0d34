import type { ServiceFrame } from '@svc/contract';

/** The agent of a sandbox, as seen by the sandbox's lifecycle. */
export interface SandboxAgent {
  /** Shows a frame of the service to all attached clients; returns how many there are. */
  announce(frame: Extract<ServiceFrame, { type: 'system' }>): Promise<number>;
  /** Bundles were rotated and these keys are new: starts to use the new values. */
  updateConfig(keys: readonly string[], signal: AbortSignal): Promise<void>;
  /** Copies the agent's log out of the running VM. Never rejects; bounded in time. */
  keepLog(): Promise<void>;
  /** Does the work that needs the running VM, before a pause. Never rejects; bounded in time. */
  beforePause(): Promise<void>;
  /**
   * Saves the state that has to outlive the VM, before the VM is destroyed. Only for a sandbox that has been running.
   * Never rejects; bounded in time.
   * May be called again.
   */
  finish(): Promise<void>;
  /** Frees all resources of the agent, once its sandbox is destroyed or its start was abandoned. */
  dispose(): Promise<void>;
  /** Detaches from the agent and leaves everything in place for the next worker process. */
  release(): Promise<void>;
}
