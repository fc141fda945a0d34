/**
 * The worker: owns the sandboxes of one machine.
 *
 * - `lifecycle/`     one sandbox: its states, how it is made, paused and ended
 * - `pool/`          idle VMs that make the usual create a hand-over
 * - `reaper/`        ends what is idle or too old
 * - `capacity/`      what the machine may hand out
 * - `exec/`, `files/`, `logs/`  what is done in a sandbox
 * - `connections/`   who is attached to it, and whether it is idle
 * - `sessions/`      agents in sandboxes: the line to the guest, what is kept of it, and the clients of sessions
 * - `gateway/`       how agents reach their models
 * - `adoption/`      takes up the VMs of an earlier run
 * - `registration/`  the link to the control plane
 * - `http/`          the internal API
 * - `assemble.ts`, `start.ts`, `shutdown.ts`  how the parts come together and end
 */

export { LlmGateway } from './gateway/index.ts';
export type { RunningWorker, WorkerOptions } from './options.ts';
export { startWorker } from './start.ts';
