import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { MicrovmError } from '../microvm-error.ts';
import { type AgentBuild, readAgentBuilds } from './agent-builds.ts';
import { bundleProgram } from './bundle-program.ts';

/** The folder of recipes: one folder per template, and the files shared by all of them. */
const IMAGES = fileURLToPath(new URL('../../../../images/', import.meta.url));
/** Increment when the builder's output changes for an unchanged recipe. */
const BUILDER_VERSION = 5;
const ID_LENGTH = 12;

/** What a template's image contains and how its sandboxes are sized. */
export interface RecipeSettings {
  readonly suite: string;
  /** Debian packages; of a recipe with a base, those that it adds. */
  readonly packages: readonly string[];
  /** Files and directories from the npm packages in the folder `npm`: path in the image → path below node_modules. */
  readonly npmFiles?: Readonly<Record<string, string>>;
  /** Links in /usr/local/bin: name → path in the image. */
  readonly executables?: Readonly<Record<string, string>>;
  /** Shared libraries, each compiled in the image, which needs gcc: path in the image → C source in the recipe's folder. */
  readonly libraries?: Readonly<Record<string, string>>;
  /** Programs of this repository, each bundled into one file for Node: name → entry point. See `programPath`. */
  readonly programs?: Readonly<Record<string, string>>;
  /** The agents: kind → the npm package (path below node_modules) or the program that is the agent. */
  readonly agents?: Readonly<Record<string, string>>;
  /** Services that init starts and restarts: name → command line. */
  readonly services?: Readonly<Record<string, string>>;
  readonly vcpu: number;
  readonly memoryMib: number;
  readonly diskMib: number;
  /** Commands to run before the snapshot is taken. */
  readonly warmUp: readonly string[];
  /** Commands to run in each idle VM of a machine without KVM. They must leave nothing behind, also when they are killed. */
  readonly idleWarmUp?: readonly string[];
}

/**
 * The contents of a template's `image.json`. A recipe that names a base, another template, lists only what it adds to the
 * base's image; sizes that it leaves out are the base's.
 */
type RecipeFile =
  | ({ readonly base?: undefined } & RecipeSettings)
  | ({ readonly base: string } & Partial<Omit<RecipeSettings, 'suite'>>);

export interface Recipe extends RecipeSettings {
  readonly template: string;
  /** The recipe of the image that this one adds to. */
  readonly base: Recipe | undefined;
  /** Digest of everything that goes into the image. */
  readonly id: string;
  /** Digest of everything except the bundled programs, which change more often. */
  readonly baseId: string;
  readonly folder: string;
  readonly kernelFolder: string;
  /** The bundled programs, with those of the base: name → text. */
  readonly bundles: ReadonlyMap<string, string>;
  /** The agents, with those of the base. */
  readonly builds: readonly AgentBuild[];
}

/** Path of a program in the image, relative to the root. */
export function programPath(name: string): string {
  return `usr/lib/svc/${name}.cjs`;
}

/** Reads a template's recipe. Throws `unknown_template`. */
export function readRecipe(template: string, images = IMAGES): Promise<Recipe> {
  return readRecipeAbove([], template, images);
}

/** @param above the recipes that are based on this one */
async function readRecipeAbove(
  above: readonly string[],
  template: string,
  images: string,
): Promise<Recipe> {
  if (above.includes(template)) {
    throw new Error(`recipes are based on each other: ${[...above, template].join(', ')}`);
  }
  const folder = join(images, template);
  if (!(await recipeNames(images)).includes(template)) {
    throw new MicrovmError('unknown_template', `there is no recipe for the image ${template}`);
  }
  const file: RecipeFile = JSON.parse(await readFile(join(folder, 'image.json'), 'utf8'));
  const { settings, base } = await withBase(file, (name) =>
    readRecipeAbove([...above, template], name, images),
  );
  const kernelFolder = join(images, 'kernel');
  const hash = createHash('sha256').update(`${BUILDER_VERSION} ${process.arch}`);
  if (base !== undefined) hash.update(`\0base ${base.baseId}`);
  for (const root of base === undefined ? [folder, kernelFolder] : [folder]) {
    for (const file of await filesIn(root)) {
      const { mode } = await stat(join(root, file));
      hash.update(`\0${file}\0${mode & 0o111}\0`).update(await readFile(join(root, file)));
    }
  }
  const baseId = hash.copy().digest('hex').slice(0, ID_LENGTH);
  const bundles = new Map(base?.bundles);
  for (const [name, entry] of Object.entries(settings.programs ?? {})) {
    bundles.set(name, await bundleProgram(entry));
  }
  for (const [name, text] of bundles) hash.update(`\0${name}\0`).update(text);
  return {
    ...settings,
    template,
    base,
    folder,
    kernelFolder,
    bundles,
    builds: [...(base?.builds ?? []), ...(await readAgentBuilds(folder, settings))],
    baseId,
    id: hash.digest('hex').slice(0, ID_LENGTH),
  };
}

async function withBase(
  file: RecipeFile,
  read: (template: string) => Promise<Recipe>,
): Promise<{ readonly settings: RecipeSettings; readonly base: Recipe | undefined }> {
  if (file.base === undefined) return { settings: file, base: undefined };
  const base = await read(file.base);
  const { suite, vcpu, memoryMib, diskMib } = base;
  const warmUp = [...base.warmUp, ...(file.warmUp ?? [])];
  const idleWarmUp = [...(base.idleWarmUp ?? []), ...(file.idleWarmUp ?? [])];
  const settings = { vcpu, memoryMib, diskMib, packages: [], ...file, suite, warmUp, idleWarmUp };
  return { settings, base };
}

/** The names of all templates with a recipe: the folders with an `image.json`. */
export async function recipeNames(images = IMAGES): Promise<string[]> {
  return (await readdir(images)).filter((name) => existsSync(join(images, name, 'image.json')));
}

async function filesIn(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile() && !entry.parentPath.includes('node_modules'))
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .sort();
}
