import { readFile } from 'node:fs/promises';
import { runProgram } from '@svc/service-kit/process';

const KEYRING = '/usr/share/keyrings/debian-archive-keyring.gpg';

/** The APT source line for a suite. Names the mirror that this machine itself uses. */
export async function packageSource(suite: string): Promise<string> {
  const mirror = (await machineMirror()) ?? 'http://deb.debian.org/debian';
  return `deb [signed-by=${KEYRING}] ${mirror} ${suite} main`;
}

async function machineMirror(): Promise<string | undefined> {
  const release = await readFile('/etc/os-release', 'utf8');
  if (!/^ID=debian$/m.test(release)) return undefined;
  const lines = await runProgram('apt-get', ['indextargets', '--format', '$(REPO_URI) $(LABEL)']);
  const line = lines.split('\n').find((text) => /^https?:\S+ Debian$/.test(text));
  return line?.split(' ')[0]?.replace(/\/$/, '');
}
