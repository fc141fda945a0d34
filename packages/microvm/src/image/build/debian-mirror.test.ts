import { expect, test } from 'vitest';
import { guestPackageSources, packageSources } from './debian-mirror.ts';

const RELEASES = ['trixie', 'trixie-updates', 'trixie-security'];

test('images are built with security updates, and sandboxes can install them', async () => {
  const releaseOf = (line: string) =>
    /^deb \[signed-by=\S+\] https?:\S+ (\S+) main$/.exec(line)?.[1];
  expect((await packageSources('trixie')).map(releaseOf)).toEqual(RELEASES);
  expect(guestPackageSources('trixie').trimEnd().split('\n').map(releaseOf)).toEqual(RELEASES);
});
