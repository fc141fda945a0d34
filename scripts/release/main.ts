/** Builds the installable forms of svc into `dist/` or another directory: all of them, or those that are named. */

import { cp, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { makeTarball } from './archive.ts';
import { buildDeb } from './deb.ts';
import { CHART, PLATFORM, REPOSITORY, readFacts } from './facts.ts';
import { packNpm } from './npm-package.ts';
import { buildImages } from './oci.ts';
import { installRuntimePrograms } from './runtime-programs.ts';
import { writeTree } from './tree.ts';

const FORMS = ['npm', 'tarball', 'deb', 'oci', 'chart'] as const;
type Form = (typeof FORMS)[number];

const { values, positionals: named } = parseArgs({
  options: { output: { type: 'string', default: join(REPOSITORY, 'dist') } },
  allowPositionals: true,
});
const unknown = named.filter((name) => !FORMS.some((form) => form === name));
if (unknown.length > 0) {
  console.error(`usage: npm run release [-- --output <directory> ${FORMS.join(' | ')} …]`);
  process.exit(2);
}
const wanted = (form: Form) => named.length === 0 || named.includes(form);

const facts = await readFacts();
const output = resolve(values.output);
await mkdir(output, { recursive: true });
const work = await mkdtemp(join(tmpdir(), 'svc-release-'));
try {
  const name = `svc-${facts.version}-${PLATFORM.os}-${PLATFORM.cpu}`;
  const tree = join(work, 'tree');
  await writeTree(tree, facts);
  if (wanted('npm')) say(await packNpm(tree, output));
  const complete = join(work, 'complete', name);
  await cp(tree, complete, { recursive: true });
  await installRuntimePrograms(complete);
  if (wanted('tarball')) {
    await makeTarball(join(work, 'complete'), join(output, `${name}.tar.gz`), facts);
    say(`${name}.tar.gz`);
  }
  if (wanted('deb')) say(await buildDeb(complete, output, facts));
  if (wanted('chart')) {
    await cp(join(tree, CHART), join(work, 'chart/svc'), { recursive: true });
    await makeTarball(join(work, 'chart'), join(output, `svc-${facts.version}.tgz`), facts);
    say(`svc-${facts.version}.tgz`);
  }
  if (wanted('oci')) say(await buildImages(complete, output, facts));
} finally {
  await rm(work, { recursive: true, force: true });
}

function say(file: string): void {
  console.log(`built ${relative(process.cwd(), join(output, file))}`);
}
