import { run } from './run.ts';

/** Packs a tree as an npm package into `directory`. Returns the name of the file. */
export async function packNpm(tree: string, directory: string): Promise<string> {
  const args = ['pack', '--ignore-scripts', '--silent', '--pack-destination', directory];
  return (await run('npm', args, { cwd: tree })).trim();
}
