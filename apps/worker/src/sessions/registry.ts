import type { Session } from './session.ts';

/** The sessions on this worker by id; of several starts of a session, the latest. */
export class SessionRegistry {
  readonly #sessions = new Map<string, Session>();

  find(sessionId: string): Session | undefined {
    return this.#sessions.get(sessionId);
  }

  /** The latest start of each session. */
  all(): Session[] {
    return [...this.#sessions.values()];
  }

  /** Adds a session until it closes. */
  add(session: Session): void {
    if (session.closed.aborted) return;
    const known = this.find(session.id);
    if (known !== undefined && known.generation > session.generation) return;
    this.#sessions.set(session.id, session);
    const remove = () => {
      if (this.find(session.id) === session) this.#sessions.delete(session.id);
    };
    session.closed.addEventListener('abort', remove, { once: true });
  }
}
