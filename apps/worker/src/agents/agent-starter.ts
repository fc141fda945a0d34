import type { PlaceSandboxRequest } from '@svc/contract';
import type { Microvm } from '@svc/microvm';
import type { SandboxAgent } from '../sandbox/agent.ts';
import type { Sandbox } from '../sandbox/sandbox.ts';

/** Starts agents in sandboxes that are being created. */
export interface AgentStarter {
  /** Begins with the part that needs no VM yet, while the VM is being made. */
  prepare(sandbox: Sandbox, request: PlaceSandboxRequest, signal: AbortSignal): PreparedAgent;
}

/** An agent whose start has been prepared. Either started or abandoned. */
export interface PreparedAgent {
  /**
   * Starts the agent; settles when it is ready. A failure leaves nothing of it behind.
   * @throws ServiceError, MicrovmError
   */
  start(vm: Microvm, signal: AbortSignal): Promise<SandboxAgent>;
  /** Removes what was prepared; does nothing once the agent has been started. */
  abandon(): Promise<void>;
}
