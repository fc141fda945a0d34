const SAFE = /^[A-Za-z0-9_@%+=:,./-]+$/;

/**
 * The shell command that words on the command line stand for: one word is a command as it is,
 * several are a program and its arguments, quoted.
 */
export function shellCommand([first, ...others]: readonly string[]): string {
  // Options end at the sandbox id already, so that a `--` behind it arrives here.
  const words = first === undefined || first === '--' ? others : [first, ...others];
  if (words.length === 1) return words[0] ?? '';
  return words
    .map((word) => (SAFE.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`))
    .join(' ');
}
