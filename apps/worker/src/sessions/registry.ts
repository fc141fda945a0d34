import type { AgentSession } from './agent-session.ts';

/** The agents on this worker that clients can attach to, by id; of several starts of a session, the latest. */
export class SessionRegistry {
  readonly #sessions = new Map<string, AgentSession>();

  find(sessionId: string): AgentSession | undefined {
    return this.#sessions.get(sessionId);
  }

  /** The latest start of each session. */
  all(): AgentSession[] {
    return [...this.#sessions.values()];
  }

  /** Adds an agent until it is released. */
  add(session: AgentSession): void {
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
