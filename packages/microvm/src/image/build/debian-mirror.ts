import { readFile } from 'node:fs/promises';
import { runProgram } from '@svc/service-kit/process';

const KEYRING = '/usr/share/keyrings/debian-archive-keyring.gpg';
const PUBLIC_SERVER = 'http://deb.debian.org';

/** Debian's archives by the label of their releases, with their paths below the public server. */
const ARCHIVES = { Debian: 'debian', 'Debian-Security': 'debian-security' } as const;
type Label = keyof typeof ARCHIVES;

/**
 * The APT source lines that an image of a suite is built from: the release, its updates and its security updates. They name
 * the mirrors that this machine itself uses.
 */
export async function packageSources(suite: string): Promise<string[]> {
  const mirrors = await machineMirrors();
  return sourceLines(suite, (label) => mirrors.get(label) ?? publicArchive(label));
}

/**
 * The contents of a sandbox's /etc/apt/sources.list: the public archives, because sandboxes cannot reach a mirror with a
 * private address.
 */
export function guestPackageSources(suite: string): string {
  return sourceLines(suite, publicArchive)
    .map((line) => `${line}\n`)
    .join('');
}

function sourceLines(suite: string, archive: (label: Label) => string): string[] {
  const line = (label: Label, release: string) =>
    `deb [signed-by=${KEYRING}] ${archive(label)} ${release} main`;
  return [
    line('Debian', suite),
    line('Debian', `${suite}-updates`),
    line('Debian-Security', `${suite}-security`),
  ];
}

function publicArchive(label: Label): string {
  return `${PUBLIC_SERVER}/${ARCHIVES[label]}`;
}

/** The mirrors in the APT sources of this machine, if it runs Debian. */
async function machineMirrors(): Promise<ReadonlyMap<string, string>> {
  const release = await readFile('/etc/os-release', 'utf8');
  if (!/^ID=debian$/m.test(release)) return new Map();
  const lines = await runProgram('apt-get', ['indextargets', '--format', '$(REPO_URI) $(LABEL)']);
  const mirrors = new Map<string, string>();
  for (const line of lines.split('\n')) {
    const [, uri, label] = /^(https?:\S+) (\S+)$/.exec(line) ?? [];
    if (uri !== undefined && label !== undefined && !mirrors.has(label)) {
      mirrors.set(label, uri.replace(/\/$/, ''));
    }
  }
  return mirrors;
}
