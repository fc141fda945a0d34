import { HeldSlot } from './held-slot.ts';

interface Waiting {
  readonly onTurn: () => void;
}

/** A task that wants its slot back comes before one that has not begun. */
const KINDS = ['returning', 'queued'] as const;
type Kind = (typeof KINDS)[number];

/** The tasks of one key. */
interface KeyTasks {
  /** Those that have begun and not ended. They run, or have lent their slots. */
  begun: number;
  running: number;
  readonly returning: Set<Waiting>;
  readonly queued: Set<Waiting>;
}

/**
 * Runs at most a fixed number of tasks at once, in the order of the calls. If the calls have keys, the keys take turns: the
 * next task is the oldest of the key with the fewest running ones, and among those of the key that waits longest for its
 * turn. A queued task can be cancelled.
 */
export class Slots {
  readonly #mostPerKey: number;
  #free: number;
  /** Keys whose tasks wait are in the order of their turns. */
  readonly #keys = new Map<string, KeyTasks>();

  /** @param mostPerKey tasks of one key that have begun; default: as many as there are slots */
  constructor(count: number, mostPerKey = count) {
    this.#free = count;
    this.#mostPerKey = mostPerKey;
  }

  /** Slots of which no key has all, so that a task of another one begins at once, however long the others take. */
  static shared(count: number): Slots {
    return new Slots(count, Math.max(1, count - 1));
  }

  /** Runs `task` when a slot is free. Rejects with the signal's reason if the signal aborts while `task` is queued. */
  async run<T>(task: (slot: HeldSlot) => Promise<T>, signal?: AbortSignal, key = ''): Promise<T> {
    await this.#wait(key, 'queued', signal);
    const slot = new HeldSlot({
      isWanted: () => this.#isWantedByOthers(key),
      give: () => this.#give(key),
      takeBack: () => this.#wait(key, 'returning', signal),
      end: () => this.#end(key),
    });
    try {
      return await task(slot);
    } finally {
      slot.end();
    }
  }

  /**
   * Takes a slot when one is free, and returns the function that gives it back, which may be called again. Rejects with the
   * signal's reason if the signal aborts first.
   */
  async take(signal?: AbortSignal, key = ''): Promise<() => void> {
    await this.#wait(key, 'queued', signal);
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      this.#give(key);
      this.#end(key);
    };
  }

  /** Settles when a task has a slot. */
  async #wait(key: string, kind: Kind, signal: AbortSignal | undefined): Promise<void> {
    signal?.throwIfAborted();
    const tasks = this.#tasksOf(key);
    if (this.#free > 0 && this.#mayRun(tasks, kind)) {
      this.#start(tasks, kind);
      return;
    }
    const turn = Promise.withResolvers<void>();
    const waiting = { onTurn: turn.resolve };
    const onAbort = () => {
      // Leave the queue first, so that a cancelled task never gets a slot.
      if (!tasks[kind].delete(waiting)) return;
      this.#forgetIfIdle(key, tasks);
      turn.reject(signal?.reason);
    };
    if (tasks.queued.size === 0 && tasks.returning.size === 0) this.#moveToEnd(key, tasks);
    tasks[kind].add(waiting);
    signal?.addEventListener('abort', onAbort, { once: true });
    try {
      await turn.promise;
    } finally {
      signal?.removeEventListener('abort', onAbort);
    }
  }

  #give(key: string): void {
    this.#tasksOf(key).running -= 1;
    this.#free += 1;
    this.#dispatch();
  }

  #end(key: string): void {
    const tasks = this.#tasksOf(key);
    tasks.begun -= 1;
    this.#forgetIfIdle(key, tasks);
    this.#dispatch();
  }

  /** Passes free slots to those whose turn it is. Afterwards no slot is free that a task waits for. */
  #dispatch(): void {
    while (this.#free > 0) {
      const next = this.#nextKey();
      if (next === undefined) return;
      const [key, tasks] = next;
      const kind = this.#nextKind(tasks);
      const [waiting] = kind === undefined ? [] : tasks[kind];
      if (kind === undefined || waiting === undefined)
        throw new Error('a key has a turn without a task that waits');
      tasks[kind].delete(waiting);
      this.#start(tasks, kind);
      // Its next turn comes after that of every other key.
      this.#moveToEnd(key, tasks);
      waiting.onTurn();
    }
  }

  #start(tasks: KeyTasks, kind: Kind): void {
    this.#free -= 1;
    tasks.running += 1;
    if (kind === 'queued') tasks.begun += 1;
  }

  #nextKey(): [string, KeyTasks] | undefined {
    let best: [string, KeyTasks] | undefined;
    for (const entry of this.#keys) {
      const [, tasks] = entry;
      if (!this.#mayStart(tasks) || tasks.running >= (best?.[1].running ?? Infinity)) continue;
      best = entry;
      if (tasks.running === 0) break;
    }
    return best;
  }

  #isWantedByOthers(key: string): boolean {
    return [...this.#keys].some(([other, tasks]) => other !== key && this.#mayStart(tasks));
  }

  #mayStart(tasks: KeyTasks): boolean {
    return this.#nextKind(tasks) !== undefined;
  }

  /** The kind of the waiting task that runs next if a slot is free. Undefined when none may. */
  #nextKind(tasks: KeyTasks): Kind | undefined {
    return KINDS.find((kind) => tasks[kind].size > 0 && this.#mayRun(tasks, kind));
  }

  #mayRun({ begun }: KeyTasks, kind: Kind): boolean {
    return kind === 'returning' || begun < this.#mostPerKey;
  }

  #tasksOf(key: string): KeyTasks {
    const known = this.#keys.get(key);
    if (known !== undefined) return known;
    const tasks = {
      begun: 0,
      running: 0,
      returning: new Set<Waiting>(),
      queued: new Set<Waiting>(),
    };
    this.#keys.set(key, tasks);
    return tasks;
  }

  #moveToEnd(key: string, tasks: KeyTasks): void {
    this.#keys.delete(key);
    this.#keys.set(key, tasks);
  }

  #forgetIfIdle(key: string, { begun, queued }: KeyTasks): void {
    if (begun === 0 && queued.size === 0) this.#keys.delete(key);
  }
}
