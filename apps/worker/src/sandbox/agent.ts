import type { ServiceFrame } from '@svc/contract';

/** The agent of a sandbox, as the sandbox's lifecycle knows it. */
export interface SandboxAgent {
  /** Shows a frame of the service to all attached clients; returns how many there are. */
  announce(frame: Extract<ServiceFrame, { type: 'system' }>): Promise<number>;
  /** Bundles were rotated and these keys are new: starts to use the new values. */
  updateConfig(keys: readonly string[], signal: AbortSignal): Promise<void>;
  /** Copies the agent's log out of the running VM. Never rejects; bounded in time. */
  keepLog(): Promise<void>;
  /** Does what requires a running VM, before a pause. Never rejects; bounded in time. */
  beforePause(): Promise<void>;
  /**
   * Saves what has to outlive the VM, before a VM that has run is destroyed. Never rejects; bounded in time.
   * May be called again.
   */
  finish(): Promise<void>;
  /** Frees what the agent holds, when its sandbox is destroyed or was never running. */
  dispose(): Promise<void>;
  /** Detaches from the agent and leaves everything in place for the next worker process. */
  release(): Promise<void>;
}
