import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const REPOSITORY = fileURLToPath(new URL('../../../../', import.meta.url));
/** Where vendors publish one package per platform, the version may end with the platform. */
const PLATFORM = /-linux-(x64|arm64)$/;

/** An agent that an image carries, in the version that it reports itself. */
export interface AgentBuild {
  readonly kind: string;
  readonly version: string;
}

/** The parts of a recipe that say what its agents are, see `RecipeSettings`. */
interface AgentSources {
  readonly agents?: Readonly<Record<string, string>>;
  readonly programs?: Readonly<Record<string, string>>;
}

/**
 * The agents of a recipe. The versions are those of the lock file that the image installs from, or of the package in this
 * repository that a program belongs to. @throws Error that names an agent without a version
 */
export async function readAgentBuilds(
  folder: string,
  { agents = {}, programs = {} }: AgentSources,
): Promise<AgentBuild[]> {
  const builds = [];
  for (const [kind, source] of Object.entries(agents)) {
    const entry = programs[source];
    const version =
      entry === undefined ? await lockedVersion(folder, source) : await packageVersion(entry);
    if (typeof version !== 'string') throw new Error(`the image has no version of ${kind}`);
    builds.push({ kind, version: version.replace(PLATFORM, '') });
  }
  return builds;
}

async function lockedVersion(folder: string, name: string): Promise<unknown> {
  const lock = await readJson(join(folder, 'npm/package-lock.json'));
  return lock.packages?.[`node_modules/${name}`]?.version;
}

/** The version of the package whose sources, in its `src`, contain the entry point of a program. */
async function packageVersion(entry: string): Promise<unknown> {
  return (await readJson(join(REPOSITORY, dirname(entry), '../package.json'))).version;
}

async function readJson(path: string): Promise<{
  readonly version?: unknown;
  readonly packages?: Readonly<Record<string, { readonly version?: unknown }>>;
}> {
  return JSON.parse(await readFile(path, 'utf8'));
}
