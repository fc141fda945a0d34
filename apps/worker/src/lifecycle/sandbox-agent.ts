import type { ServiceFrame } from '@svc/contract';

/** The agent in a sandbox, as the sandbox's life knows it. */
export interface SandboxAgent {
  /**
   * Shows a frame of the service's to everyone attached; answers how many that are.
   * A one-shot agent has nobody attached.
   */
  announce(frame: Extract<ServiceFrame, { type: 'system' }>): Promise<number>;
  /** Keeps what can only be read while the VM runs. Never rejects; bounded in time. */
  beforePause(): Promise<void>;
  /**
   * Before the VM of a sandbox that has run is destroyed: brings home what has to outlive it. Never rejects;
   * bounded in time. May be called again.
   */
  finish(): Promise<void>;
  /** The sandbox is destroyed, or never came to run. */
  dispose(): Promise<void>;
  /** Lets go of the agent and leaves everything for the next worker. */
  release(): Promise<void>;
}
