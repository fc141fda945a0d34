import { readFile } from 'node:fs/promises';
import { runProgram } from '@svc/service-kit/process';

const KEYRING = '/usr/share/keyrings/debian-archive-keyring.gpg';
const PUBLIC_ARCHIVE = 'http://deb.debian.org';

/** The APT source line that an image of a suite is built from. Names the mirror that this machine itself uses. */
export async function packageSource(suite: string): Promise<string> {
  const mirror = (await machineMirror()) ?? `${PUBLIC_ARCHIVE}/debian`;
  return `deb [signed-by=${KEYRING}] ${mirror} ${suite} main`;
}

/**
 * The contents of a sandbox's /etc/apt/sources.list: the public archive, because sandboxes cannot reach a mirror with a
 * private address.
 */
export function guestPackageSources(suite: string): string {
  const source = (archive: string, name: string) =>
    `deb [signed-by=${KEYRING}] ${PUBLIC_ARCHIVE}/${archive} ${name} main\n`;
  return [
    source('debian', suite),
    source('debian', `${suite}-updates`),
    source('debian-security', `${suite}-security`),
  ].join('');
}

async function machineMirror(): Promise<string | undefined> {
  const release = await readFile('/etc/os-release', 'utf8');
  if (!/^ID=debian$/m.test(release)) return undefined;
  const lines = await runProgram('apt-get', ['indextargets', '--format', '$(REPO_URI) $(LABEL)']);
  const line = lines.split('\n').find((text) => /^https?:\S+ Debian$/.test(text));
  return line?.split(' ')[0]?.replace(/\/$/, '');
}
