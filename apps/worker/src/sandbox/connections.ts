import type { Activity } from './activity.ts';

/** An attached client of a sandbox, such as a WebSocket. */
export interface Connection {
  /** Ends the connection with a WebSocket close code and reason. */
  close(code: number, reason: string): void;
}

/** The attached clients of one sandbox. Each of them keeps it from being idle. */
export class Connections {
  readonly #activity: Activity;
  readonly #attached = new Set<Connection>();

  constructor(activity: Activity) {
    this.#activity = activity;
  }

  get count(): number {
    return this.#attached.size;
  }

  /** Adds a client; the returned function removes it and may be called twice. */
  attach(connection: Connection): () => void {
    const endActivity = this.#activity.begin();
    this.#attached.add(connection);
    return () => {
      this.#attached.delete(connection);
      endActivity();
    };
  }

  /** Closes and forgets every client. */
  closeAll(code: number, reason: string): void {
    for (const connection of this.#attached) connection.close(code, reason);
    this.#attached.clear();
  }
}
