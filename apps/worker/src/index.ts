/**
 * The worker: owns the micro-VMs of one machine.
 *
 * - `http/`           the internal API that the control plane and the runtime host call
 * - `control-plane/`  the client of the control plane: registration, heartbeats, session state
 * - `sandbox/`        a sandbox: lifecycle, pause and resume, teardown, labels, record
 * - `creating/`       creates sandboxes, with roll-back
 * - `vms/`            the machine's VMs: pool, capacity, images, sizes
 * - `agents/`         the agent in a sandbox: its setup, link, logs and one-shot tasks
 * - `sessions/`       conversations with an agent: journal, clients, turns
 * - `workspace/`      workspaces in sandboxes: their load, and what is saved from them
 * - `adoption/`       takes over the VMs of an earlier worker process
 * - `reaper/`         ends sandboxes that are idle or past their lifetime
 * - `exec/`, `files/`, `ports/` commands, file transfers, connections to servers in a sandbox
 * - `gateway/`        the LLM gateway of the agents
 * - `images/`         where VM images come from, if they are not built
 *
 * Imports run one way, from top to bottom: `start.ts`, `assemble.ts`, `shutdown.ts`; `http/`, `control-plane/`,
 * `adoption/`, `reaper/`; `creating/`; `agents/`, `sessions/`, `workspace/`; `vms/`; `sandbox/`.
 */

export { LlmGateway } from './gateway/index.ts';
export { StoredImageSource } from './images/stored-image-source.ts';
export type { RunningWorker, WorkerOptions } from './options.ts';
export { startWorker } from './start.ts';
