import { readFile } from 'node:fs/promises';
import {
  AGENT_TOOLS,
  CatalogueApp,
  type CatalogueEntry,
  isAgent,
  ServiceError,
} from '@svc/contract';
import { Type } from 'typebox';
import { Value } from 'typebox/value';
import type { AuditTrail } from '../audit/audit-trail.ts';
import type { Caller } from '../auth/caller.ts';
import type { AgentBuilds } from './agent-builds.ts';

const FILE = new URL('./catalogue.json', import.meta.url);
const APPS = Type.Array(CatalogueApp, { minItems: 1 });

/** The apps that sessions can use. */
export class Catalogue {
  readonly apps: readonly CatalogueApp[];
  readonly #builds: Pick<AgentBuilds, 'versions'>;
  readonly #audit: AuditTrail;

  constructor(
    apps: readonly CatalogueApp[],
    builds: Pick<AgentBuilds, 'versions'>,
    audit: AuditTrail,
  ) {
    this.apps = apps;
    this.#builds = builds;
    this.#audit = audit;
  }

  /** Every app, with the builds of agents that a session can have. */
  async list(): Promise<CatalogueEntry[]> {
    const versions = await this.#builds.versions();
    return this.apps.map((app) => ({ ...app, versions }));
  }

  /** @throws ServiceError `template_not_found`, which is audited */
  async find(caller: Caller, appId: string): Promise<CatalogueEntry> {
    const entries = await this.list();
    const entry = entries.find((candidate) => candidate.app_id === appId);
    if (entry !== undefined) return entry;
    await this.#audit.note(caller, 'template_not_found', { app_id: recordable(appId) });
    throw new ServiceError('template_not_found');
  }
}

/** Reads the built-in catalogue. @throws Error that names the fault */
export async function readCatalogue(file: string | URL = FILE): Promise<readonly CatalogueApp[]> {
  const apps: unknown = JSON.parse(await readFile(file, 'utf8'));
  if (!Value.Check(APPS, apps)) {
    const [error] = Value.Errors(APPS, apps);
    throw new Error(`${file}: ${error?.instancePath} ${error?.message}`);
  }
  for (const app of apps) checkApp(app);
  return apps;
}

/** Session creation needs a known agent, distinct sets of its tools, and a default set. */
function checkApp({ app_id: appId, capability_sets: sets }: CatalogueApp): void {
  const ids = sets.map((set) => set.set_id);
  if (!isAgent(appId)) throw new Error(`The catalogue names ${appId}, which is no agent.`);
  const unknown = sets.flatMap(({ tools }) => tools).find((t) => !AGENT_TOOLS[appId].includes(t));
  if (unknown !== undefined) throw new Error(`${appId} has no tool ${unknown}.`);
  if (new Set(ids).size !== ids.length) throw new Error(`${appId} has two sets of one id.`);
  if (!ids.includes('default')) throw new Error(`${appId} has no set called default.`);
}

/** JSON columns cannot store NUL or half a surrogate pair, and a path may be long. */
function recordable(text: string): string {
  return text.slice(0, 128).toWellFormed().replaceAll('\0', '\ufffd');
}
