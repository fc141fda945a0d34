/**
 * The worker: owns the micro-VMs of one machine.
 *
 * - `http/`           the internal API that the control plane and the runtime host call
 * - `control-plane/`  everything said to the control plane: registration, heartbeats, session state
 * - `sandbox/`        a sandbox: its record, states, power and end
 * - `creating/`       how a sandbox is created
 * - `vms/`            the machine's VMs: pool, capacity, images, sizes
 * - `agents/`         the agent in a sandbox: its setup, line, logs and one-shot tasks
 * - `sessions/`       conversations with an agent: journal, clients, turns
 * - `adoption/`       taking over the VMs of an earlier worker process
 * - `reaper/`         ends sandboxes that are due
 * - `exec/`, `files/` commands and file transfers
 * - `gateway/`        the LLM gateway of the agents
 */

export { LlmGateway } from './gateway/index.ts';
export type { RunningWorker, WorkerOptions } from './options.ts';
export { startWorker } from './start.ts';
