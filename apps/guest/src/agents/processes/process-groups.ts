/** The process groups of one runtime, so that none outlives it. */
export class ProcessGroups {
  readonly #groups = new Set<number>();

  /** Holds the group that this process leads, until all of it has ended. */
  add(pid: number): void {
    this.#forgetEnded();
    this.#groups.add(pid);
  }

  /** The leader has ended. What it left in the background goes on, and stays known. */
  leaderEnded(pid: number): void {
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

/** Sends a signal to every process of a group; 0 only asks. False when there is none any more. */
export function signalGroup(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(-pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false;
    throw error;
  }
}
