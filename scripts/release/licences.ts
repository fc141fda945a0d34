import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';

/** Licences that allow the package to be part of a release under the Apache licence. */
const PERMISSIVE: ReadonlySet<string> = new Set([
  '0BSD',
  'Apache-2.0',
  'BSD-2-Clause',
  'BSD-3-Clause',
  'BlueOak-1.0.0',
  'CC0-1.0',
  'ISC',
  'MIT',
  'MIT-0',
  'Unlicense',
]);
const LICENCE_FILE = /^(licen[cs]e|copying|notice)/i;
const PACKAGE = /^(.*\bnode_modules\/(?:@[^/]+\/)?[^/]+)\//;

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly license?: string;
  /** The form that npm had before. */
  readonly licenses?: readonly { readonly type: string }[];
  readonly author?: string | { readonly name?: string };
}

/**
 * The text of THIRD-PARTY-LICENSES.txt: the licence of every package that one of the bundled files comes from, sorted by name.
 * @param files relative to the repository
 * @throws Error for a package whose licence is not a permissive one
 */
export async function licenceTexts(repository: string, files: Iterable<string>): Promise<string> {
  const folders = new Set<string>();
  for (const file of files) {
    const folder = PACKAGE.exec(file)?.[1];
    if (folder !== undefined) folders.add(folder);
  }
  const texts = await Promise.all(
    [...folders].map((folder) => licenceOf(join(repository, folder))),
  );
  // The same version may be installed in several places.
  return [...new Set(texts)].sort().join(`\n${'-'.repeat(80)}\n\n`);
}

async function licenceOf(folder: string): Promise<string> {
  const manifest = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')) as Manifest;
  const { name, version, licenses = [], author = '' } = manifest;
  const license = manifest.license ?? licenses[0]?.type ?? 'unknown';
  if (!PERMISSIVE.has(license)) {
    throw new Error(`${name} ${version} cannot be part of a release: its licence is ${license}`);
  }
  const holder = typeof author === 'string' ? author : (author.name ?? '');
  const names = (await readdir(folder)).filter((file) => LICENCE_FILE.test(file)).sort();
  const texts = await Promise.all(names.map((file) => readFile(join(folder, file), 'utf8')));
  const stated = `Its authors (${holder}) ship no text of the licence.`;
  return [
    `${name} ${version}`,
    `Licence: ${license}`,
    '',
    ...(texts.length > 0 ? texts : [stated]),
    '',
  ]
    .map((part) => part.trimEnd())
    .join('\n');
}
