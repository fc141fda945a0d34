/** The life cycle of a sandbox: its states, the moves between them, and the reasons for its end. */

export const SANDBOX_STATES = [
  'creating',
  'configuring',
  'booting',
  'running',
  'paused',
  'stopping',
  'destroyed',
] as const;
export type SandboxState = (typeof SANDBOX_STATES)[number];

/** Every legal move. `destroyed` is reachable from every state and final. */
export const TRANSITIONS = {
  creating: ['configuring', 'destroyed'],
  configuring: ['booting', 'destroyed'],
  booting: ['running', 'destroyed'],
  running: ['paused', 'stopping', 'destroyed'],
  paused: ['running', 'destroyed'],
  stopping: ['destroyed'],
  destroyed: [],
} as const satisfies Record<SandboxState, readonly SandboxState[]>;

/** The states to which `From` may move, as a type, so that an illegal move does not compile. */
export type Successor<From extends SandboxState> = (typeof TRANSITIONS)[From][number];

/** Whether a sandbox may move from `from` to `to`. Staying in a state is not a move. */
export function canMove(from: SandboxState, to: SandboxState): boolean {
  return (TRANSITIONS[from] as readonly SandboxState[]).includes(to);
}

/** The states from which `to` can be reached in one move, for the `from` list of a conditional update. */
export function predecessors(to: SandboxState): SandboxState[] {
  return SANDBOX_STATES.filter((from) => canMove(from, to));
}

/** States in which a sandbox holds resources of a worker. */
export const ACTIVE_STATES = SANDBOX_STATES.filter((state) => state !== 'destroyed');

/** Whether a sandbox in this state holds resources of a worker. */
export function isActive(state: SandboxState): boolean {
  return state !== 'destroyed';
}

export const END_REASONS = [
  'deleted',
  'idle_timeout',
  'max_lifetime',
  'agent_exited',
  'worker_lost',
  'credits_exhausted',
  'boot_failed',
  'drained',
  'disk_pressure',
] as const;
export type EndReason = (typeof END_REASONS)[number];

export const CANCEL_REASONS = [
  'credits_exhausted',
  'user_request',
  'admin_action',
  'timeout',
] as const;
export type CancelReason = (typeof CANCEL_REASONS)[number];
