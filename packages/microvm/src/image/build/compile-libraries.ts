import { join } from 'node:path';
import type { Recipe } from '../recipe.ts';
import { shellWord } from './shell-word.ts';

/** How a library is compiled. */
const GCC = [
  ...['gcc', '-std=gnu11', '-O2', '-fPIC', '-shared', '-pipe'],
  ...['-Wall', '-Wextra', '-Werror'],
  ...['-fstack-protector-strong', '-D_FORTIFY_SOURCE=2', '-Wl,-z,relro,-z,now'],
];

/**
 * The commands of a shell that compile the libraries of a recipe in the directory `root`, one per line. The compiler reads
 * its standard input, so the image does not contain the sources.
 *
 * @param enter what runs the compiler in `root`; nothing to use this machine's own
 */
export function compileLibraries(
  { folder, libraries = {} }: Pick<Recipe, 'folder' | 'libraries'>,
  root: string,
  enter: readonly string[] = ['chroot', root],
): string {
  const prefix = enter.length === 0 ? root : '/';
  return Object.entries(libraries)
    .map(([target, source]) => {
      const words = [...enter, ...GCC, '-x', 'c', '-o', join(prefix, target), '-'];
      return `${words.map(shellWord).join(' ')} <${shellWord(join(folder, source))}\n`;
    })
    .join('');
}
