/**
 * Keeps a process that serves alive when what it prints can no longer be written: the terminal is gone, or
 * the file it goes to lies on a full disk. Without this, either would end it.
 */
export function outliveReaders(): void {
  for (const out of [process.stdout, process.stderr]) out.on('error', () => undefined);
}
