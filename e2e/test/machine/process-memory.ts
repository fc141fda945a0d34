import { open, readFile } from 'node:fs/promises';

const CHUNK = 16 * 1024 * 1024;

/** Those of the texts that the memory of a process contains. For QEMU this includes the guest's memory. */
export async function textsInMemory(pid: number, texts: readonly string[]): Promise<string[]> {
  const missing = new Map(texts.map((text) => [text, Buffer.from(text)]));
  const overlap = Math.max(...[...missing.values()].map((needle) => needle.length));
  const maps = await readFile(`/proc/${pid}/maps`, 'utf8');
  await using memory = await open(`/proc/${pid}/mem`, 'r');
  const chunk = Buffer.alloc(CHUNK);
  for (const line of maps.split('\n')) {
    const [, from, to, name = ''] = /^(\w+)-(\w+) r\S* \S+ \S+ \S+\s*(.*)$/.exec(line) ?? [];
    // Skips unreadable kernel pages such as [vvar].
    if (from === undefined || to === undefined || name.startsWith('[v')) continue;
    const end = Number.parseInt(to, 16);
    for (let at = Number.parseInt(from, 16); at < end; at += CHUNK - overlap) {
      const { bytesRead } = await memory.read(chunk, 0, Math.min(CHUNK, end - at), at);
      const content = chunk.subarray(0, bytesRead);
      for (const [text, needle] of missing) if (content.includes(needle)) missing.delete(text);
      if (bytesRead === 0) break;
    }
  }
  return texts.filter((text) => !missing.has(text));
}
