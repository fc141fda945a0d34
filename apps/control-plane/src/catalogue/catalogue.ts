import { readFile } from 'node:fs/promises';
import { CatalogueEntry, type CatalogueEntry as Entry, isAgent, ServiceError } from '@svc/contract';
import { Type } from 'typebox';
import { Value } from 'typebox/value';
import type { AuditTrail } from '../audit/audit-trail.ts';
import type { Caller } from '../auth/caller.ts';

const FILE = new URL('./catalogue.json', import.meta.url);
const ENTRIES = Type.Array(CatalogueEntry, { minItems: 1 });

/** The apps that sessions can use. */
export class Catalogue {
  readonly entries: readonly Entry[];
  readonly #audit: AuditTrail;

  constructor(entries: readonly Entry[], audit: AuditTrail) {
    this.entries = entries;
    this.#audit = audit;
  }

  /** @throws ServiceError `template_not_found`, which is audited */
  async find(caller: Caller, appId: string): Promise<Entry> {
    const entry = this.entries.find((candidate) => candidate.app_id === appId);
    if (entry !== undefined) return entry;
    await this.#audit.note(caller, 'template_not_found', { app_id: recordable(appId) });
    throw new ServiceError('template_not_found');
  }
}

/** Reads the built-in catalogue. @throws Error that names the fault */
export async function readCatalogue(file: string | URL = FILE): Promise<readonly Entry[]> {
  const entries: unknown = JSON.parse(await readFile(file, 'utf8'));
  if (!Value.Check(ENTRIES, entries)) {
    const [error] = Value.Errors(ENTRIES, entries);
    throw new Error(`${file}: ${error?.instancePath} ${error?.message}`);
  }
  for (const entry of entries) checkEntry(entry);
  return entries;
}

/** Session creation needs a known agent, distinct sets, and a default set. */
function checkEntry({ app_id: appId, capability_sets: sets }: Entry): void {
  const ids = sets.map((set) => set.set_id);
  if (!isAgent(appId)) throw new Error(`The catalogue names ${appId}, which is no agent.`);
  if (new Set(ids).size !== ids.length) throw new Error(`${appId} has two sets of one id.`);
  if (!ids.includes('default')) throw new Error(`${appId} has no set called default.`);
}

/** JSON columns cannot store NUL or half a surrogate pair, and a path may be long. */
function recordable(text: string): string {
  return text.slice(0, 128).toWellFormed().replaceAll('\0', '\ufffd');
}
