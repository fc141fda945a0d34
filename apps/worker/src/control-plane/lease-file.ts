import { readFile } from 'node:fs/promises';
import { writeFileAtomic } from '@svc/service-kit';
import { Type } from 'typebox';
import { Compile } from 'typebox/compile';

const State = Type.Object({ boot_id: Type.String(), renewed_at_ms: Type.Number() });
const states = Compile(State);

/** When the lease of this worker was last renewed, for the next process. */
export class LeaseFile {
  readonly #path: string;
  readonly #bootId: string;

  /** @param bootId changes when the machine boots, and monotonic time begins again */
  constructor(path: string, bootId: string) {
    this.#path = path;
    this.#bootId = bootId;
  }

  /** The monotonic time in ms that an earlier process saved. Undefined when none did since the machine booted. */
  async load(): Promise<number | undefined> {
    try {
      const state: unknown = JSON.parse(await readFile(this.#path, 'utf8'));
      return states.Check(state) && state.boot_id === this.#bootId
        ? state.renewed_at_ms
        : undefined;
    } catch (error) {
      const isMissing = error instanceof Error && 'code' in error && error.code === 'ENOENT';
      if (isMissing || error instanceof SyntaxError) return undefined;
      throw error;
    }
  }

  async save(renewedAtMs: number): Promise<void> {
    const state = { boot_id: this.#bootId, renewed_at_ms: renewedAtMs };
    await writeFileAtomic(this.#path, JSON.stringify(state), { durable: false });
  }
}
