import type { PlaceSandboxRequest, ServiceFrame } from '@svc/contract';
import type { Microvm } from '@svc/microvm';
import type { Sandbox } from '../sandbox/sandbox.ts';

/** The agent in a sandbox, as the sandbox's life knows it. */
export interface SandboxAgent {
  /** Shows a frame of the service's to everyone attached; answers how many that are. */
  announce(frame: Extract<ServiceFrame, { type: 'system' }>): Promise<number>;
  /** Bundles were rotated, these keys are new: takes the new values into use. */
  updateConfig(keys: readonly string[], signal: AbortSignal): Promise<void>;
  /** Copies the agent's log out of the running VM. Never rejects; bounded in time. */
  keepLog(): Promise<void>;
  /** What has to happen while the VM still runs. Never rejects; bounded in time. */
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

/** Starts agents in sandboxes that are being made. */
export interface AgentStarter {
  /** Begins with what needs no VM yet, beside the making of the VM. */
  prepare(sandbox: Sandbox, request: PlaceSandboxRequest, signal: AbortSignal): PreparedAgent;
}

export interface PreparedAgent {
  /**
   * Starts the agent; settles when it is ready. On failure nothing of it is left behind.
   * @throws ServiceError, MicrovmError
   */
  start(vm: Microvm, signal: AbortSignal): Promise<SandboxAgent>;
  /** Removes what was prepared; nothing to do for an agent that was started. */
  abandon(): Promise<void>;
}
