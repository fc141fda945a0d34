/** The process groups of one runtime, tracked so that none outlives it. */
export class ProcessGroups {
  readonly #groups = new Set<number>();

  /** Tracks the group led by this process until all its processes have ended. */
  add(pid: number): void {
    this.#forgetEnded();
    this.#groups.add(pid);
  }

  /** The leader has exited. Its group stays tracked while background processes run. */
  leaderExited(pid: number): void {
    if (!signalGroup(pid, 0)) this.#groups.delete(pid);
  }

  killAll(): void {
    for (const pid of this.#groups) signalGroup(pid, 'SIGKILL');
    this.#groups.clear();
  }

  #forgetEnded(): void {
    for (const pid of this.#groups) if (!signalGroup(pid, 0)) this.#groups.delete(pid);
  }
}

/** Sends a signal to every process of a group; 0 only checks for one. False when no process is left. */
export function signalGroup(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(-pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false;
    throw error;
  }
}
