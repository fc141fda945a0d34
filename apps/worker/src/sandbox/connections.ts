/** One attached client of a sandbox, such as a WebSocket. */
export interface Connection {
  /** Ends the connection with a WebSocket close code and reason. */
  close(code: number, reason: string): void;
}

/** The attached clients of one sandbox. */
export class Connections {
  readonly #attached = new Set<Connection>();

  get count(): number {
    return this.#attached.size;
  }

  /** Adds a client; the returned function removes it and may be called twice. */
  attach(connection: Connection): () => void {
    this.#attached.add(connection);
    return () => {
      this.#attached.delete(connection);
    };
  }

  /** Closes and forgets every client. */
  closeAll(code: number, reason: string): void {
    for (const connection of this.#attached) connection.close(code, reason);
    this.#attached.clear();
  }
}
