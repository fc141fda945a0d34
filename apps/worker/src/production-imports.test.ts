import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';

it('imports no test code into production code', async () => {
  const root = import.meta.dirname;
  const files = (await readdir(root, { recursive: true })).filter(
    (name) => name.endsWith('.ts') && !name.endsWith('.test.ts'),
  );
  expect(files.length).toBeGreaterThan(40);
  for (const name of files) {
    const source = await readFile(join(root, name), 'utf8');
    expect(source, name).not.toMatch(/from '[^']*(?:\/test\/|\.test\.ts)/);
  }
});
