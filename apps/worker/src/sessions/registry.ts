import type { Session } from './session.ts';

/** The sessions of this worker by their id; of two starts of one session, the newer. */
export class SessionRegistry {
  readonly #sessions = new Map<string, Session>();
  /** Names of journals that somebody works with. */
  readonly #journals = new Set<string>();

  find(sessionId: string): Session | undefined {
    return this.#sessions.get(sessionId);
  }

  /** One start of each session. */
  all(): Session[] {
    return [...this.#sessions.values()];
  }

  add(session: Session): void {
    const known = this.find(session.id);
    if (known === undefined || known.generation <= session.generation) {
      this.#sessions.set(session.id, session);
    }
  }

  remove(session: Session): void {
    if (this.find(session.id) === session) this.#sessions.delete(session.id);
  }

  /** Takes a journal into use; the returned function gives it back. */
  claim(journal: string): () => void {
    this.#journals.add(journal);
    return () => {
      this.#journals.delete(journal);
    };
  }

  isClaimed(journal: string): boolean {
    return this.#journals.has(journal);
  }
}
